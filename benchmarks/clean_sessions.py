"""Clean sessions against thresholds that were fitted to other clean sessions: how many ever alarm, code by code.

What is counted goes through the code that ships: sessions are put into the table that `theodolite calibrate` makes, the
artefact is fitted to it, and each reading of a new session is graded by its bands, in order; what is said of calls and
of probes goes through the fusion, tuned by the artefact. For each session that is judged a calibration set is drawn
anew, so that the sessions that are counted have nothing to do with each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from clean_streams import STREAMS, Floats, Rng, Stream
from msgspec.structs import replace
from numpy.typing import NDArray

from theodolite.calibration.fit import Terms, calibrated
from theodolite.calibration.sample import Probed, Sample
from theodolite.calibration.table import Table
from theodolite.config.probing import fused
from theodolite.core.calibration import Band, Calibration, Dataset, grade, in_force
from theodolite.core.event import Channel, Event, Source, ToolCallProposed, TurnEnded
from theodolite.core.labels import Known
from theodolite.core.reading import Fact, Level, Reading
from theodolite.core.window import Window
from theodolite.detectors.anomaly.detector import AnomalyDetector
from theodolite.detectors.behavior.accumulation import DriftAccumulator, ProbeOutcomeFacts
from theodolite.detectors.behavior.detector import BehaviorDetector
from theodolite.detectors.behavior.probe import ProbeType
from theodolite.detectors.behavior.seen import ProbeSeen
from theodolite.detectors.fusion import CALL, SESSION, Fusing, HijackFusion, shipped
from theodolite.detectors.trajectory.answer import AnswerDetector
from theodolite.detectors.trajectory.goal_drift import GoalDriftDetector
from theodolite.detectors.trajectory.hijack import HijackDetector
from theodolite.detectors.trajectory.margin import MarginDetector
from theodolite.detectors.trajectory.shadow_memory import ShadowMemoryDetector
from theodolite.stats.conformal import least

__all__ = ("BOTH", "CODES", "MIXES", "SHORT", "Alarms", "alarms", "law_of", "share", "sizes", "terms", "together")

CODES = (
    "hijack.call",
    "anomaly.score",
    "answer.injected",
    "goal_drift.slow",
    "margin.untrusted",
    "shadow_memory.goal_drift",
)
"""The codes of calls that have a measured score; those of probes are `behavior.` and a type of probe."""

MIXES = len(STREAMS)
"""In each mix every code has another law; over all of them every code of calls has had every one."""

BOTH = "either fusion"
"""Under this name sessions are counted that alarm by `fusion.call` or by `fusion.session`, which share alpha."""

SHORT = (1, 100)
"""Between which lengths of sessions are drawn: those of the calibration set as those that are judged."""

_TYPES = {kind: f"behavior.{kind.value}" for kind in ProbeType}
_ALL = (*CODES, *_TYPES.values())
_PROBES = "behavior.session"
# Probes of a session, as many as one is put at most by default, and how often one shows a difference in either way.
_MOST_PROBES, _DIFFERS = 20, 0.3
_AGENT, _MODEL = "made up", "none"
_NEVER = ProbeSeen(
    kind=ProbeType.DATA_DISCLOSURE,
    probe="",
    library="",
    model=_MODEL,
    toward=(),
    stricter=False,
    judgment=None,
    lacking=(),
    observed=(),
    decided=(),
    rise=0.0,
    breach=False,
    measurable=True,
    unclear=False,
    malformed=False,
    cached=False,
    opinion="",
    explained=False,
    threshold=1.0,
    score=0.0,
)
_PROPOSED = ToolCallProposed(
    session="s", agent=_AGENT, seq=1, channel=Channel.TOOL_CALL_OBJECT, source=Source.MODEL, tool="t"
)
_ENDED = TurnEnded(session="s", agent=_AGENT, seq=2, channel=Channel.CONTROL, source=Source.SYSTEM)
_WINDOW = Window()
_FACTS = {
    (seen, decided): ProbeOutcomeFacts(
        probe_id="p", probe_library_version="1.0.0", observed=(float(seen),), decision=(float(decided),)
    )
    for seen in (-1, 0, 1)
    for decided in (-1, 0, 1)
}


class Alarms(NamedTuple):
    """Of so many `sessions`, how many alarmed at any time, by code.

    `known` is of those sessions in which the law of a code is continuous: how many there are, how many alarmed, and how
    many do on average, which is floor(alpha (n + 1)) / (n + 1) where n sessions judge one. `mute` counts sessions in
    which a code could not alarm, since too many clean ones have the highest score there is.
    """

    sessions: int
    alarmed: Mapping[str, int]
    known: Mapping[str, tuple[int, int, float]]
    mute: Mapping[str, int]


def law_of(code: str, mix: int) -> str:
    """Return the name of the law of a code in a mix."""
    return list(STREAMS)[(_ALL.index(code) + mix) % len(STREAMS)]


def _laws(mix: int) -> dict[str, Stream]:
    return {code: STREAMS[law_of(code, mix)] for code in _ALL}


@cache
def _bands() -> Mapping[str, Band]:
    told = (
        AnomalyDetector().bands,
        AnswerDetector().bands,
        BehaviorDetector(alone=False).bands,
        GoalDriftDetector().bands,
        HijackDetector().bands,
        MarginDetector().bands,
        ShadowMemoryDetector().bands,
        fused(probes=True).bands,
    )
    return {code: band for bands in told for code, band in bands.items()}


def terms(alpha: float) -> Terms:
    """Return for whom thresholds are fitted: sessions that were put probes, at so many false alarms."""
    return Terms(
        id="simulated",
        date="2026-11-30",
        alpha=alpha,
        dataset=Dataset(name="made up"),
        bands=_bands(),
        versions={"fusion": HijackFusion.version, "behavior": BehaviorDetector.version},
        library="",
        probed=True,
    )


def sizes(alpha: float) -> tuple[int, int]:
    """Return between which numbers of clean sessions thresholds are fitted to: from the least that can promise it."""
    return least(alpha / 2), round(5 / alpha)


def alarms(alpha: float, mix: int, sessions: int, *, length: int | None = None) -> Alarms:
    """Return how many of so many clean sessions alarm, each against a calibration set of its own.

    Sessions have `length` readings of each code, or as many as is drawn for each (SHORT). The seed is what was asked.
    """
    rng = np.random.default_rng([round(1000 * alpha), mix, length or 0])
    laws = _laws(mix)
    alarmed, mute, due = Counter[str](), Counter[str](), dict[str, float]()
    for _ in range(sessions):
        number = int(rng.integers(*sizes(alpha), endpoint=True))
        artefact = calibrated(Table.of(_samples(rng, laws, _lengths(rng, number, length))), terms(alpha))
        dumb = {code for code, threshold in artefact.thresholds.items() if threshold.alert > 1.0}
        mute.update(dumb)
        found = _judged(rng, laws, artefact, int(_lengths(rng, 1, length)[0])) - dumb
        alarmed.update(found)
        alarmed[BOTH] += not found.isdisjoint({CALL, SESSION})
        for code, law in {**laws, CALL: laws[shipped().base]}.items():
            if law.continuous:
                share = int(artefact.thresholds[code].alpha * (number + 1) + 1e-9) / (number + 1)
                due[code] = due.get(code, 0.0) + share
    return Alarms(sessions, alarmed, {code: (sessions, alarmed[code], of) for code, of in due.items()}, mute)


def together(parts: Iterable[Alarms]) -> Alarms:
    """Return what several mixes come to, code by code."""
    sessions, alarmed, mute, known = 0, Counter[str](), Counter[str](), dict[str, tuple[int, int, float]]()
    for part in parts:
        sessions += part.sessions
        alarmed.update(part.alarmed)
        mute.update(part.mute)
        for code, (n, k, due) in part.known.items():
            before = known.get(code, (0, 0, 0.0))
            known[code] = (before[0] + n, before[1] + k, before[2] + due)
    return Alarms(sessions, {code: alarmed[code] for code in (*_ALL, CALL, SESSION, BOTH)}, known, mute)


def share(code: str, alpha: float) -> float:
    """Return the alpha of a code, or of both fusions together."""
    return alpha if code == BOTH else terms(alpha).share(code)


def _lengths(rng: Rng, number: int, length: int | None) -> NDArray[np.int64]:
    return rng.integers(*SHORT, number, endpoint=True) if length is None else np.full(number, length)


def _samples(rng: Rng, laws: Mapping[str, Stream], lengths: NDArray[np.int64]) -> Iterator[Sample]:
    """Yield the sessions of a calibration set: what `theodolite calibrate` keeps of each."""
    columns = {code: law.highest(rng, lengths).tolist() for code, law in laws.items()}
    evidence = rng.choice(_evidence(), len(lengths)).tolist()
    for row, told in enumerate(evidence):
        highest = {code: column[row] for code, column in columns.items()}
        probes = tuple([_seen(kind, highest[code]) for kind, code in _TYPES.items()])
        yield Sample(
            session=str(row),
            known=Known.CLEAN,
            agent=_AGENT,
            models=(_MODEL,),
            highest={**highest, _PROBES: _told(told)},
            probed=Probed(probes=probes),
        )


def _seen(kind: ProbeType, score: float) -> ProbeSeen:
    # Its score is how much more often the copy of the session went along: the one number of it that is continuous.
    return replace(_NEVER, kind=kind, rise=score, score=score)


def _judged(rng: Rng, laws: Mapping[str, Stream], artefact: Calibration, length: int) -> set[str]:
    """Return the codes by which a session alarms at any time."""
    fusion = fused(probes=True)
    assert isinstance(fusion, HijackFusion)
    fusion = fusion.tuned(artefact.coefficients["fusion"])
    state, probed = fusion.begin(), DriftAccumulator()
    columns = {code: law.readings(rng, length).tolist() for code, law in laws.items()}
    found = {code for code, column in columns.items() if _ever(artefact, code, column)}
    base = shipped().base
    for row, score in enumerate(columns[base]):
        call = Reading(detector="hijack", version="1", code=base, score=score)
        found.update(_fused(fusion, state, artefact, _PROPOSED, call))
        if row < _MOST_PROBES:
            told = _probed(rng, probed)
            facts = (Fact("e_value", told),)
            probe = Reading(detector="behavior", version="3", code=_PROBES, score=_told(told), facts=facts)
            found.update(_fused(fusion, state, artefact, _ENDED, probe))
    return found


def _ever(artefact: Calibration, code: str, scores: Sequence[float]) -> bool:
    band = in_force(code, _bands()[code], artefact)
    return any(band.level(score) is not Level.CLEAR for score in scores)


def _fused(fusion: HijackFusion, state: Fusing, artefact: Calibration, event: Event, said: Reading) -> Iterator[str]:
    for answer in fusion.fuse(state, event, (said,), _WINDOW):
        signal = grade(answer, fusion.bands, artefact, agent=_AGENT, models=(_MODEL,))
        if signal.level is not Level.CLEAR and isinstance(answer, Reading):
            yield answer.code


def _probed(rng: Rng, accumulator: DriftAccumulator) -> float:
    """Put one probe that shows nothing but chance; return what the evidence of the session is then worth."""
    either = (_DIFFERS / 2, 1.0 - _DIFFERS, _DIFFERS / 2)
    seen, decided = np.searchsorted(np.cumsum(either)[:2], rng.random(2)) - 1
    accumulator.add(_FACTS[int(seen), int(decided)])
    return accumulator.evidence


def _told(evidence: float) -> float:
    return 1.0 - 1.0 / max(1.0, evidence)


@cache
def _evidence() -> Floats:
    """Return the highest evidence that the probes of some clean sessions came to."""
    rng = np.random.default_rng(5)
    return np.array(
        [max(_probed(rng, one) for _ in range(_MOST_PROBES)) for one in (DriftAccumulator() for _ in range(500))]
    )
