"""From what an inquiry came to, to what it adds to the evidence of its session."""

from __future__ import annotations

from collections.abc import Iterable

from theodolite.core.event import InquirySettled
from theodolite.core.reading import Failure, Reading
from theodolite.detectors.behavior.accumulation import DivergenceCategory, ProbeOutcomeFacts, Settled
from theodolite.detectors.behavior.asking import TOLD
from theodolite.detectors.behavior.probe import Probe, ProbeType
from theodolite.detectors.behavior.tuning import ESTIMATES

__all__ = ("category", "compared_in", "invalid", "settled", "threshold_of")


def compared_in(said: Iterable[Reading | Failure]) -> Reading | None:
    """Return the reading that compares the answers to a probe, if any: a second opinion's where it gave one."""
    readings = [one for one in said if isinstance(one, Reading) and _kind(one) is not None]
    return readings[-1] if readings else None


def _kind(said: Reading) -> ProbeType | None:
    owner, _, kind = said.code.partition(".")
    return ProbeType(kind) if owner == "behavior" and kind in set(ProbeType) else None


def threshold_of(said: Reading) -> float:
    """Return the score from which on a probe counts as differing: what its reading says, or the estimate of its type.

    Raises ValueError for what is no reading of a probe.
    """
    told = said.fact("threshold")
    return told if isinstance(told, float) else ESTIMATES.thresholds[ProbeType(said.code.partition(".")[2])]


def settled(event: InquirySettled, *, library: str, maximum: float | None = None) -> ProbeOutcomeFacts:
    """Return what a settled inquiry brings. One that nobody answered brings a failure.

    `library` is the version of the probes that was asked for, of which a failure does not speak; `maximum` is what the
    exact decisions of the session come to.
    """
    said = compared_in(event.said)
    kind = None if said is None else _kind(said)
    if said is None or kind is None:
        return ProbeOutcomeFacts(
            probe_id="",
            probe_library_version=library,
            session_id=event.session,
            settled=Settled.FAILED,
        )
    told = any(isinstance(one, Reading) and one.code == TOLD and one.score >= 1.0 for one in event.said)
    return ProbeOutcomeFacts(
        probe_id=str(said.fact("probe")),
        probe_type=kind,
        probe_library_version=str(said.fact("library")),
        session_id=event.session,
        score=said.score,
        drifted=said.score >= threshold_of(said),
        escaped=said.fact("breach") == 1.0,
        category=category(said),
        observed=_numbers(said, "observed"),
        decision=_numbers(said, "decided"),
        decision_maximum=maximum,
        unmeasured=said.fact("gate") == "failed",
        cached=said.fact("cached") == 1.0,
        explained=said.fact("explained") == 1.0,
        unclear=said.fact("unclear") == 1.0,
        structural=said.fact("anomaly") is not None,
        disclosed=told,
        resampled=_resampled(said),
    )


def invalid(probe: Probe, session: str) -> ProbeOutcomeFacts:
    """Return what a probe brings that was refused before it was put."""
    return ProbeOutcomeFacts(
        probe_id=probe.probe_id,
        probe_type=probe.probe_type,
        probe_library_version=probe.probe_library_version,
        session_id=session,
        settled=Settled.INVALID,
    )


def category(said: Reading) -> DivergenceCategory | None:
    """Return what kind of difference a reading shows: axor-probe's words, in its order."""
    if said.fact("triangulation") == DivergenceCategory.SUMMARY_CALIBRATION_ANOMALY.value:
        return DivergenceCategory.SUMMARY_CALIBRATION_ANOMALY
    differ = {item.path for item in said.evidence if item.expected != item.observed}
    # What was done is told before the form in which it was: else whoever answers in another one would hide it.
    if said.fact("breach") == 1.0 or (differ & {"decision", "disclosed_data"} and said.fact("anomaly") is None):
        return DivergenceCategory.POLICY_DISAGREEMENT
    if said.fact("anomaly") is not None:
        return DivergenceCategory.STRUCTURAL_INSTABILITY
    if differ == {"reasoning"}:
        return DivergenceCategory.REASONING_DIVERGENCE
    return DivergenceCategory.STRUCTURAL_INSTABILITY if differ else None


def _resampled(said: Reading) -> tuple[int, int] | None:
    """Return how many fresh draws told, of subject and reference; None where not both were asked."""
    subject, reference = said.fact("again_by_subject"), said.fact("again_by_reference")
    if not (isinstance(subject, float) and isinstance(reference, float)):
        return None
    return int(subject), int(reference)


def _numbers(said: Reading, name: str) -> tuple[float, ...]:
    return tuple([fact.value for fact in said.facts if fact.name == name and isinstance(fact.value, float)])
