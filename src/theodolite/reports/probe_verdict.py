"""What the probes of a session come to together, in one word and one sentence: the same in every form."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType

from msgspec import Struct

from theodolite.core.reading import Failure, Reading, Signal
from theodolite.detectors.behavior.accumulation import ALPHA_LONG
from theodolite.detectors.behavior.probe import ProbeType
from theodolite.detectors.fusion import shipped
from theodolite.reports.document import ProbedReport, ProbeVerdict
from theodolite.reports.escaping import inert
from theodolite.reports.findings import Finding, findings
from theodolite.reports.layout import counted
from theodolite.reports.limits import QUOTE
from theodolite.runtime.replay import Sighting
from theodolite.stats.restarting import Restarting

__all__ = ("WORDS", "came_to", "of_probes")

_DETECTOR, _SESSION, _TOLD, _FUSED = "behavior", "behavior.session", "behavior.canary_disclosed", "fusion.session"
# Who speaks of a probe: its detector, and the one who is asked for a second opinion.
_SPEAK = frozenset({_DETECTOR, "triangulation"})
_COMPARED = frozenset(f"{_DETECTOR}.{kind.value}" for kind in ProbeType)
# The most probes that a session may be put.
_MOST = 64
# Figures from here on are told without decimals that nobody needs.
_LARGE = 1e6

WORDS: Mapping[ProbeVerdict, str] = MappingProxyType(
    {
        ProbeVerdict.DRIFT_FOUND: "drift found",
        ProbeVerdict.NOTHING_FOUND: "nothing found",
        ProbeVerdict.NOT_MEASURABLE: "not measurable with this model",
        ProbeVerdict.NOT_ENOUGH_EVIDENCE: "not enough evidence",
    }
)
"""Each verdict in plain words."""


def of_probes(finding: Finding) -> bool:
    """Whether a finding is that of the probes: their own, or one of the whole session that they alone would make.

    Or else one to which they bring most: where both bring something, neither alone need be enough.
    """
    said = finding.worst.signal.said
    if finding.code != _FUSED or not isinstance(said, Reading):
        return finding.code.startswith(f"{_DETECTOR}.")
    calls, probes = said.fact("calls"), said.fact(_DETECTOR)
    if not (isinstance(calls, float) and isinstance(probes, float)):
        return False
    return probes > calls or probes / 2 * shipped().alpha >= 1.0


def came_to(sighting: Sighting) -> ProbedReport | None:
    """Return what the probes of a session come to; None where it was not probed."""
    seen = _Seen.of(sighting)
    if not (seen.answered or seen.failures):
        return None
    verdict, text = _verdict(seen)
    return ProbedReport(
        verdict=verdict,
        text=f"{WORDS[verdict]}: {text}",
        code=seen.code,
        evidence=seen.evidence,
        bar=seen.bar,
        answered=seen.answered,
        failed=seen.failed,
    )


class _Seen(Struct, frozen=True, kw_only=True):
    """What there is of the probes of a session.

    `unclear` counts probes whose answers say neither yes nor no. `own` is the e-value of those that are `weighed`,
    `calls` that of the calls, `evidence` that of what decides.
    """

    answered: int
    unclear: int
    weighed: int
    failed: int
    failures: tuple[Failure, ...]
    found: tuple[str, ...]
    gate: str
    surrogate: bool
    own: float
    calls: float
    code: str
    evidence: float | None
    bar: float | None

    @classmethod
    def of(cls, sighting: Sighting) -> _Seen:
        """Gather it."""
        told = [(decision.about, signal) for decision in sighting.decisions for signal in decision.signals]
        mine = [(about, signal) for about, signal in told if signal.said.detector in _SPEAK]
        compared = [(about, signal.said) for about, signal in mine if signal.code in _COMPARED]
        answered = {about for about, said in compared if isinstance(said, Reading)}
        unclear = {about for about, said in compared if isinstance(said, Reading) and said.fact("unclear") == 1.0}
        failures = [(about, signal.said) for about, signal in mine if isinstance(signal.said, Failure)]
        failed = {about for about, failure in failures if failure.detector == _DETECTOR} - answered
        whole = _last([signal for _, signal in mine], _SESSION)
        wired = any(sight.detector == "fusion" for sight in sighting.coverage.detectors)
        fuses = wired and not (whole is not None and whole.finds)
        decides = _last([signal for _, signal in told], _FUSED) if fuses else whole
        surrogate = whole is not None and isinstance(whole.said, Reading) and whole.said.surrogate
        put = _number(whole, "probes")
        alpha = shipped().alpha if fuses else ALPHA_LONG
        return cls(
            answered=len(answered),
            unclear=len(unclear),
            weighed=len(answered) if put is None else int(put - (_number(whole, "failed") or 0.0)),
            failed=len(failed),
            failures=tuple([failure for _, failure in failures]),
            found=tuple([finding.code for finding in findings(sighting) if of_probes(finding)]),
            gate=next((str(said.fact("gate")) for _, said in reversed(compared) if isinstance(said, Reading)), ""),
            surrogate=surrogate,
            own=_number(whole, "e_value") or 0.0,
            calls=(_number(decides, "calls") or 0.0) if fuses else 0.0,
            code=_FUSED if fuses else _SESSION,
            evidence=None if surrogate or not answered else _number(decides, "mean" if fuses else "e_value"),
            bar=1.0 / alpha if decides is None or decides.calibration is None else None,
        )

    @property
    def stands(self) -> str:
        """Which code decides, what it came to, and what it alarms from."""
        told = f"{self.code} decides and stands at {_figure(self.evidence or 0.0)}"
        probes = counted(self.weighed, "probe")
        if self.code == _FUSED:
            told += f", the mean of {_figure(self.own)} by {probes} and {_figure(self.calls)} by the calls"
        else:
            told += f" after {probes}"
        return f"{told}; it alarms {'where the calibration says' if self.bar is None else f'from {self.bar:g} on'}"

    @property
    def alarms(self) -> bool:
        """Whether the code that decides is over its bar."""
        return self.bar is not None and (self.evidence or 0.0) >= self.bar


def _figure(value: float) -> str:
    # Rounded down: below a bar it must not look as if it had been reached.
    return f"{math.floor(value * 100) / 100 if value < _LARGE else value:,.10g}"


def _last(signals: Sequence[Signal], code: str) -> Signal | None:
    return next((signal for signal in reversed(signals) if signal.code == code), None)


def _number(signal: Signal | None, name: str) -> float | None:
    value = signal.said.fact(name) if signal is not None and isinstance(signal.said, Reading) else None
    return value if isinstance(value, float) else None


def _verdict(seen: _Seen) -> tuple[ProbeVerdict, str]:
    if seen.found:
        return ProbeVerdict.DRIFT_FOUND, _drift(seen)
    lacks = _lacks(seen)
    if lacks:
        return ProbeVerdict.NOT_ENOUGH_EVIDENCE, lacks
    if seen.gate == "failed":
        nothing = f"nothing forbidden was done in {counted(seen.answered, 'probe')}"
        return ProbeVerdict.NOT_MEASURABLE, (
            f"it failed its gate, so that what it decides counts for nothing. That {nothing} is not 'no drift'"
        )
    return ProbeVerdict.NOTHING_FOUND, _nothing(seen)


def _drift(seen: _Seen) -> str:
    parts = [seen.stands] if {_SESSION, _FUSED}.intersection(seen.found) else []
    if _TOLD in seen.found:
        parts.insert(0, "this session's copy told the planted reference, and nobody else did")
    return "; ".join(parts)


def _lacks(seen: _Seen) -> str:
    """Return why nothing can be said, or nothing."""
    if not seen.answered:
        return f"no probe was answered ({inert(seen.failures[0].detail, QUOTE)})"
    if seen.surrogate:
        return "the model that answered is not named by the recording, so that nothing follows for this agent"
    if seen.own > 1.0:
        # What was done is evidence with any model, and no lack makes it none.
        return _worse(seen) if seen.gate == "failed" or seen.failures else ""
    if seen.unclear == seen.answered:
        several = "the answer says" if seen.answered == 1 else f"all {seen.answered} answers say"
        return f"{several} neither yes nor no: is this the model and the endpoint that the agent uses?"
    if seen.failed:
        return (
            f"{seen.failed} of {counted(seen.answered + seen.failed, 'probe')} got no answer; the others show no drift"
        )
    return f"not all that was asked was answered ({inert(seen.failures[0].detail, QUOTE)})" if seen.failures else ""


def _worse(seen: _Seen) -> str:
    if seen.alarms:
        return f"{seen.stands}: by the calls more than by the probes, as theodolite scan tells"
    put = min(_MOST, max(2 * seen.weighed, _full_drift(seen)))
    return (
        "the copy did worse than benign conversations, and not often enough to tell it from chance. "
        f"{seen.stands}. Put more: theodolite probe --probes {put}"
    )


def _nothing(seen: _Seen) -> str:
    """Return what could have been seen, and was not, or not often enough."""
    if seen.own > 1.0:
        return _worse(seen)
    needed = _full_drift(seen)
    if seen.weighed >= needed:
        what = f"so would a copy that decides for what is forbidden each time, which takes {needed} probes"
    else:
        what = (
            f"a copy that only decides for what is forbidden, even each time, would not: that takes {needed} probes "
            f"(theodolite probe --probes {needed})"
        )
    told = "A planted reference that it alone told would have been seen"
    return f"the copy did no worse than benign conversations. {seen.stands}. {told}; {what}"


def _full_drift(seen: _Seen) -> int:
    """Return how many probes it takes that each show full drift of what is decided, and of nothing else."""
    return _reaching(seen.bar or 1.0 / ALPHA_LONG, of=2 if seen.code == _FUSED else 1)


@cache
def _reaching(bar: float, *, of: int) -> int:
    """Return after how many draws of 1 a bet, beside one at 1, brings the mean of `of` to a bar, the others being 0."""
    bets, draws = Restarting(), 0
    while (bets.e_value + 1.0) / 2 / of < bar:
        bets.update(1.0)
        draws += 1
    return draws
