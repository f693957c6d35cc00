"""What a probe came to, under axor-probe's names: views of our own signals and decisions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from msgspec import Struct

from theodolite.core.policy import Action, Decision
from theodolite.core.reading import Signal, Status
from theodolite.detectors.behavior.accumulation import Accumulated, DivergenceCategory, OverallVerdict
from theodolite.detectors.behavior.probe import EXPECTED, ProbeType
from theodolite.detectors.behavior.settling import category, compared_in, threshold_of

__all__ = ("DriftAction", "DriftSignal", "ProbeOutcome", "ProbeReport", "drift_signal", "session_status")

DriftAction = Action


class ProbeOutcome(StrEnum):
    """How a run of the pipeline ended.

    NOT_MEASURABLE: nothing was observed, and the decisions of this model say nothing.
    """

    NOT_DUE = "not_due"
    SKIPPED = "skipped"
    FAILED = "failed"
    INVALID = "invalid"
    REDACTION_STOPPED = "redaction_stopped"
    CLEAN = "clean"
    NOT_MEASURABLE = "not_measurable"
    DRIFT = "drift"


class DriftSignal(Struct, frozen=True, kw_only=True):
    """One probe that was answered, redacted. Names are axor-probe's.

    `drift_score` is that of the probe alone, over the `threshold` of its type or not, and never acts;
    `recommended_action` is that of the decision which the whole session led to. The payloads have the fields of the
    answers, `reasoning` as scrubbed text.
    """

    signal_id: str
    probe_id: str
    probe_type: ProbeType
    probe_library_version: str
    snapshot_id: str
    session_id: str
    agent_id: str
    divergence_category: DivergenceCategory | None
    drift_score: float
    threshold: float
    comparator_confidence: float
    comparison_mode: str
    triangulation_result: str | None
    field_divergences: Mapping[str, tuple[str, str]]
    snapshot_payload: Mapping[str, str | bool]
    shadow_payload: Mapping[str, str | bool]
    shadow_baseline_payload: Mapping[str, str | bool] | None
    calibration_status: Status
    timestamp: float
    recommended_action: DriftAction
    longitudinal_signal: float
    escape_detected: bool
    semantic_score: float | None = None
    anomaly: str = ""
    measurable: bool = True


class ProbeReport(Accumulated, frozen=True, kw_only=True):
    """The probes of a session so far, and how this run ended; `detail` says why where there is no answer.

    `timeline` has the last 64 signals; `consistency_anomaly_detected` is a note about the power of probes.
    """

    outcome: ProbeOutcome
    agent_id: str = ""
    model: str = ""
    probes_triangulated: int = 0
    timeline: tuple[DriftSignal, ...] = ()
    action: DriftAction = DriftAction.LOG_ONLY
    calibration_status: Status = Status.UNCALIBRATED
    signal: DriftSignal | None = None
    calls: int = 0
    detail: str = ""

    @property
    def summary_calibration_anomalies(self) -> int:
        """How often the summary led the shadow astray."""
        return self.drift_by_category.get(DivergenceCategory.SUMMARY_CALIBRATION_ANOMALY, 0)

    @property
    def consistency_anomaly_detected(self) -> bool:
        """Whether so many probes in a row showed nothing that their power is in question. It is no verdict."""
        return any(note.startswith(OverallVerdict.CONSISTENCY_ANOMALY) for note in self.notes)

    @property
    def drift_signals(self) -> tuple[DriftSignal, ...]:
        """The signals of the timeline that showed drift, many of which may be chance."""
        return tuple([signal for signal in self.timeline if signal.drift_score >= signal.threshold])

    @property
    def drift_by_probe_type(self) -> Mapping[ProbeType, float]:
        """The highest drift score of each type in the timeline."""
        highest: dict[ProbeType, float] = {}
        for signal in self.timeline:
            highest[signal.probe_type] = max(signal.drift_score, highest.get(signal.probe_type, 0.0))
        return highest


def drift_signal(
    decision: Decision, *, agent: str, snapshot_id: str, at: float, longitudinal: float, status: Status
) -> DriftSignal | None:
    """Return the view of a decision that a probe led to; None where it was not answered."""
    said = compared_in([signal.said for signal in decision.signals])
    if said is None:
        return None
    shown = {item.path: item for item in said.evidence if item.kind.startswith("behavior.")}
    baseline = said.fact("baseline")
    verdict = said.fact("triangulation")
    return DriftSignal(
        signal_id=f"{decision.session}/{decision.seq}",
        probe_id=_word(said.fact("probe")),
        probe_type=ProbeType(said.code.partition(".")[2]),
        probe_library_version=_word(said.fact("library")),
        snapshot_id=snapshot_id,
        session_id=decision.session,
        agent_id=agent,
        divergence_category=category(said),
        drift_score=said.score,
        threshold=threshold_of(said),
        comparator_confidence=_number(said.fact("isolation")),
        comparison_mode="binary" if verdict is None else "triangulated",
        triangulation_result=None if verdict is None else _word(verdict),
        field_divergences={
            path: (item.observed, item.expected) for path, item in shown.items() if item.expected != item.observed
        },
        snapshot_payload=_payload({path: item.observed for path, item in shown.items()}),
        shadow_payload=_payload({path: item.expected for path, item in shown.items()}),
        shadow_baseline_payload=None if baseline is None else {"decision": _word(baseline)},
        calibration_status=status,
        timestamp=at,
        recommended_action=decision.action,
        longitudinal_signal=longitudinal,
        escape_detected=said.fact("breach") == 1.0,
        anomaly=_word(said.fact("anomaly")),
        measurable=said.fact("gate") != "failed" and said.fact("unclear") != 1.0,
        semantic_score=None if said.fact("judged") is None else _number(said.fact("judged")),
    )


def _payload(words: Mapping[str, str]) -> dict[str, str | bool]:
    """Return the fields of an answer in the order and the types of the answer."""
    return {
        name: words[name] == "true" if EXPECTED[name] == "boolean" else words[name]
        for name in EXPECTED
        if name in words
    }


def session_status(signals: Iterable[Signal], code: str) -> Status:
    """Return what the threshold of the session's own signal rests on; UNCALIBRATED where it was not told."""
    return next((signal.status for signal in signals if signal.code == code), Status.UNCALIBRATED)


def _word(value: float | str | None) -> str:
    return "" if value is None else str(value)


def _number(value: float | str | None) -> float:
    return value if isinstance(value, float) else 0.0
