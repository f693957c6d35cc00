"""Fusion: one score for a call, and one running bet on the session, from all that the detectors said.

`fusion.call` starts from the score of the hijack, and what else is said of the same call may only raise it.
`fusion.session` is the mean of e-processes: that of the highest fused call so far, and those that detectors state as a
fact `e_value`. While none of the latter is above 1, the calls count for 1 at most: `fusion.call` has told of them. Both
promises are for whole sessions, of the kind that the coefficients were fitted with: without a hijack at most a share
alpha of them ever alarms on the one, and at most as many on the other, whenever one looks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from theodolite.core.calibration import Band, Dataset
from theodolite.core.event import Event, ToolCallProposed
from theodolite.core.reading import Cause, Evidence, Fact, Failure, Reading, Status
from theodolite.core.window import Window
from theodolite.stats.e_process import Maxima, mean
from theodolite.stats.logistic import logit, probability

__all__ = ("CALL", "SESSION", "Fused", "Fusing", "HijackFusion", "Part", "Refitted", "shipped")

CALL, SESSION = "fusion.call", "fusion.session"

# A person reads the evidence; what alarmed names more of its own.
_MOST_EVIDENCE = 16


class Part(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """How much a code raises the fused log-odds: `weight` times its own log-odds over `above`; nothing below it.

    Raises ValueError for a weight below 0, with which more alarm would lower the score.
    """

    weight: float
    above: float = 0.0

    def __post_init__(self) -> None:
        if not self.weight >= 0.0:
            raise ValueError(f"the weight of a part is {self.weight}: it may not be below 0")

    def term(self, score: float) -> float:
        """Return what a score adds."""
        return self.weight * max(0.0, logit(score) - self.above)


class Fused(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What fusion was fitted to: `benchmarks/trajectory.py --fit` writes it.

    `base` is the code that a call must have; `parts` are those that may raise it. `alert` is the fused score that a
    share `alpha` of the sessions without a hijack reached, out of fold, and `maxima` weighs the highest of each.
    `processes` names the detectors whose `e_value` counts, beside the calls' own. `alpha` is for each of the two codes.
    """

    base: str
    alert: float
    alpha: float
    maxima: Maxima
    source: str
    dataset: Dataset
    parts: Mapping[str, Part] = {}
    processes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # Of several processes the calls alone may not bring the mean so far: the others have to say something too.
        most = self.maxima.n + 1
        if most * self.alpha < 1.0 - 1e-9:
            raise ValueError(
                f"{self.maxima.n} sessions cannot alarm at alpha={self.alpha}: the bet on calls gets to {most} at most"
            )


class Refitted(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a calibration artefact puts in place of what ships. Without `maxima` sessions are weighed as before.

    `alpha` is that of the weighed sessions.
    """

    alert: float
    parts: dict[str, Part] = {}
    maxima: Maxima | None = None
    alpha: float | None = None
    source: str = ""


@cache
def shipped() -> Fused:
    """Return what comes with the package. Reads its file once."""
    document = files("theodolite.detectors").joinpath("fusion.json").read_bytes()
    return msgspec.json.decode(document, type=Fused)


class Fusing(Struct, kw_only=True):
    """The highest fused log-odds of a session and its call, the newest e-value of each process, and the bet last told.

    A handful of numbers, and one a process.
    """

    highest: float | None = None
    call: int = 0
    e_values: dict[str, float] = {}
    told: float | None = None


class HijackFusion:
    """Combines what was said of a call, and of the session so far.

    State: a handful of numbers. Cost: linear in what was said. A call of which the base code says nothing gets
    NO_EVIDENCE; any other missing answer counts for nothing. Readings of surrogates are not heard.

    Source: the mean of e-values, V. Vovk and R. Wang, E-values: calibration, combination and applications, 2021,
    section 3. Limits: thresholds of recorded sessions of other agents, REFERENCE: they ask for a review and, by
    themselves, refuse nothing. The promise does not hold for sessions of another kind.
    """

    name = "fusion"
    version = "1"

    def __init__(self, fused: Fused | None = None) -> None:
        self._fused = fused = fused or shipped()
        of_session = (
            f"an e-process reaches 1/{fused.alpha:g} in at most {fused.alpha:.1%} of such sessions: Ville, 1939"
        )
        self.bands: Mapping[str, Band] = {
            CALL: Band(alert=fused.alert, status=Status.REFERENCE, source=fused.source),
            # With no process beside the calls it would say of the same calls again what `fusion.call` has said.
            SESSION: Band(
                alert=1.0 - fused.alpha,
                # Ten times the evidence that is asked for a review. Our choice.
                strong=1.0 - fused.alpha / 10,
                status=Status.REFERENCE,
                acts=bool(fused.processes),
                finds=bool(fused.processes),
                source=of_session,
            ),
        }

    def tuned(self, coefficients: Mapping[str, object]) -> HijackFusion:
        """Return this fusion with the coefficients of an artefact (`Refitted`). Raises ValueError for others."""
        given, own = msgspec.convert(coefficients, Refitted), self._fused
        return HijackFusion(
            replace(
                own,
                alert=given.alert,
                alpha=own.alpha if given.alpha is None else given.alpha,
                parts=given.parts,
                maxima=given.maxima or own.maxima,
                source=given.source,
            )
        )

    def begin(self) -> Fusing:
        """Return the state of a session in which nothing was said."""
        return Fusing()

    def fuse(
        self, state: Fusing, event: Event, said: Sequence[Reading | Failure], window: Window
    ) -> tuple[Reading | Failure, ...]:
        """Return the score of a proposed call, and that of the session where it moved."""
        del window
        heard = [reading for reading in said if isinstance(reading, Reading) and not reading.surrogate]
        answers: list[Reading | Failure] = []
        if isinstance(event, ToolCallProposed):
            answers.append(self._call(state, event, heard))
            if len(heard) < len(said) and isinstance(answers[0], Reading):
                answers += self._half_blind(said)
        if self._fused.processes:
            self._bets(state, heard)
        answers += self._session(state, event, heard)
        return tuple(answers)

    def _call(self, state: Fusing, event: Event, heard: Sequence[Reading]) -> Reading | Failure:
        fused = self._fused
        terms: dict[str, float] = {}
        for reading in heard:
            if reading.code == fused.base:
                terms[reading.code] = max(logit(reading.score), terms.get(reading.code, -36.0))
            elif reading.code in fused.parts:
                term = fused.parts[reading.code].term(reading.score)
                terms[reading.code] = max(term, terms.get(reading.code, 0.0))
        if fused.base not in terms:
            detail = f"nothing was said under {fused.base}, from which the fused score starts"
            return Failure(detector=self.name, version=self.version, cause=Cause.NO_EVIDENCE, detail=detail)
        total = sum(terms.values())
        if state.highest is None or total > state.highest:
            state.highest, state.call = total, event.seq
        score = probability(total)
        evidence: tuple[Evidence, ...] = ()
        if score >= self.bands[CALL].alert:
            evidence = _evidence(heard, sorted(terms, key=lambda code: -terms[code]))
        return self._reading(CALL, score, terms, evidence)

    def _half_blind(self, said: Sequence[Reading | Failure]) -> Iterator[Failure]:
        """Yield what the base could not see beside its score: who decides by it could not see that either."""
        base = self._fused.base.partition(".")[0]
        for one in said:
            if isinstance(one, Failure) and one.detector == base and one.cause is Cause.NO_EVIDENCE:
                yield Failure(detector=self.name, version=self.version, cause=one.cause, detail=one.detail)

    def _bets(self, state: Fusing, heard: Sequence[Reading]) -> None:
        for reading in heard:
            value = reading.fact("e_value") if reading.detector in self._fused.processes else None
            if isinstance(value, float) and value >= 0.0:
                state.e_values[reading.detector] = value

    def _session(self, state: Fusing, event: Event, heard: Sequence[Reading]) -> Iterator[Reading]:
        """Yield the bet where it is not what was told last: a session alarms once, not at each event after."""
        fused = self._fused
        # Before the first call 0 and not 1: it is then never above what the whole session comes to.
        calls = 0.0 if state.highest is None else fused.maxima.e_value(state.highest)
        values = {"calls": calls, **state.e_values}
        if fused.processes and not any(value > 1.0 for value in state.e_values.values()):
            # Of the calls alone `fusion.call` has spoken: who names a model that is not asked, or finds nothing by it,
            # would be told of them twice. Less than the mean of all keeps its promise too.
            values["calls"] = min(calls, 1.0)
        e_value = mean(values.values(), 1 + len(fused.processes))
        if e_value == state.told or (state.highest is None and not state.e_values):
            return
        state.told = e_value
        score = 1.0 - 1.0 / max(1.0, e_value)
        evidence: tuple[Evidence, ...] = ()
        if score >= self.bands[SESSION].alert:
            # Of the call only where it stands: `fusion.call` has told its evidence.
            seqs = dict.fromkeys([state.call, event.seq] if calls else [event.seq])
            codes = [reading.code for reading in heard if reading.detector in fused.processes]
            evidence = (Evidence(kind="fusion.bet", seqs=tuple(seqs)), *_evidence(heard, codes))
        yield self._reading(SESSION, score, {**values, "mean": e_value}, evidence)

    def _reading(self, code: str, score: float, terms: Mapping[str, float], evidence: tuple[Evidence, ...]) -> Reading:
        facts = tuple([Fact(name.replace(".", "_"), value) for name, value in terms.items()])
        return Reading(
            detector=self.name,
            version=self.version,
            code=code,
            score=score,
            evidence=evidence,
            facts=facts,
        )


def _evidence(heard: Sequence[Reading], codes: Sequence[str]) -> tuple[Evidence, ...]:
    """Return the evidence of the readings of these codes, in their order."""
    found = [item for code in codes for reading in heard if reading.code == code for item in reading.evidence]
    return tuple(found[:_MOST_EVIDENCE])
