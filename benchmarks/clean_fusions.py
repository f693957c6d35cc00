"""Clean sessions against a fusion whose coefficients were fitted, and against its threshold: how many alarm.

To fit coefficients takes half a second: here several sessions are judged by one artefact. Whether one of them alarms
has to do with whether another does, since both are held against the same threshold. So the blocks are what is
independent, and the interval of a rate is made of the shares of the blocks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from clean_sessions import terms
from clean_streams import Floats, Rng

from theodolite.calibration.fit import calibrated
from theodolite.calibration.sample import Sample, sampled
from theodolite.calibration.table import Table
from theodolite.config.probing import fused
from theodolite.core.calibration import Calibration, grade
from theodolite.core.coverage import Coverage
from theodolite.core.event import Channel, Source, ToolCallProposed
from theodolite.core.labels import Known
from theodolite.core.policy import Action, Decision, Outcome
from theodolite.core.reading import Level, Reading, Signal
from theodolite.core.window import Window
from theodolite.detectors.fusion import CALL, HijackFusion, shipped
from theodolite.runtime.replay import CallRow, Sighting

__all__ = ("CLEAN", "SCENES", "Blocks", "Scene", "blocks")

Call = Mapping[str, float]

CLEAN = {0.1: 59, 0.05: 119, 0.01: 599}
"""Clean sessions of a calibration set, by alpha: numbers of which the promise is kept to the last bit, or is broken.

Where no coefficient is kept they are all for the threshold; else three fifths of them are.
"""

_DRIFTED = 100
_PARTS = ("anomaly.score", "goal_drift.slow", "shadow_memory.goal_drift", "answer.injected")
_PROPOSED = ToolCallProposed(session="s", seq=1, channel=Channel.TOOL_CALL_OBJECT, source=Source.MODEL, tool="t")
_WINDOW = Window()
# One-sided, of a normal law.
_Z95 = 1.6449


class Scene(NamedTuple):
    """What sessions are like: how many calls at most, how often a part speaks, and how surely one tells a drift."""

    calls: int
    speaks: float
    tells: float


SCENES: Mapping[str, Scene] = {
    "few calls, parts speak seldom": Scene(calls=6, speaks=0.2, tells=0.9),
    "many calls, parts always speak": Scene(calls=40, speaks=1.0, tells=0.9),
    "a part is kept in half of the fits": Scene(calls=6, speaks=1.0, tells=0.15),
}
"""Each by its name."""


class Blocks(NamedTuple):
    """The share of sessions that alarmed in each block, and in which blocks coefficients were fitted and kept."""

    shares: Sequence[float]
    sessions: int
    kept: Sequence[bool]

    @property
    def rate(self) -> float:
        """The share of all."""
        return math.fsum(self.shares) / len(self.shares)

    @property
    def lower(self) -> float:
        """The lower 95 % bound of the rate, by the spread of the blocks: normal, since there are hundreds of them."""
        spread = math.fsum((share - self.rate) ** 2 for share in self.shares) / (len(self.shares) - 1)
        return max(0.0, self.rate - _Z95 * math.sqrt(spread / len(self.shares)))


def blocks(alpha: float, scene: str, count: int, size: int) -> Blocks:
    """Return how many clean sessions alarm by `fusion.call`: so many blocks, each with an artefact of its own."""
    rng = np.random.default_rng([round(1000 * alpha), list(SCENES).index(scene), 77])
    like = SCENES[scene]
    shares: list[float] = []
    kept: list[bool] = []
    for _ in range(count):
        artefact = calibrated(Table.of(_samples(rng, like, CLEAN[alpha])), terms(alpha))
        kept.append(bool(artefact.coefficients["fusion"].get("parts")))
        fusion = _tuned(artefact)
        shares.append(sum(_alarms(fusion, artefact, _calls(rng, like, drifted=False)) for _ in range(size)) / size)
    return Blocks(shares, count * size, kept)


def _tuned(artefact: Calibration) -> HijackFusion:
    fusion = fused(probes=True)
    assert isinstance(fusion, HijackFusion)
    return fusion.tuned(artefact.coefficients["fusion"])


def _samples(rng: Rng, scene: Scene, clean: int) -> Iterator[Sample]:
    for number in range(clean + _DRIFTED):
        drifted = number >= clean
        decisions = [
            Decision(session=str(number), seq=seq, about=seq, signals=tuple([Signal(said=one) for one in _said(call)]))
            for seq, call in enumerate(_calls(rng, scene, drifted=drifted))
        ]
        sighting = Sighting(
            session=str(number),
            agent="made up",
            models=("none",),
            outcome=Outcome.CLEAN,
            action=Action.LOG_ONLY,
            coverage=Coverage(),
            calls=tuple([CallRow(tool="t", decision=decision) for decision in decisions]),
            decisions=tuple(decisions),
        )
        known = Known.DRIFTED if drifted else Known.CLEAN
        yield sampled(sighting, known, parts=(shipped().base, *_PARTS))


def _calls(rng: Rng, scene: Scene, *, drifted: bool) -> list[Call]:
    """Return what is said of each call: of one call of a drifted session the base and the first part say more."""
    count = int(rng.integers(1, scene.calls, endpoint=True))
    base = _odds(rng.normal(-3.0, 1.0, count))
    parts = np.where(rng.random((len(_PARTS), count)) < scene.speaks, 0.8 * rng.random((len(_PARTS), count)), 0.0)
    if drifted:
        at = int(rng.integers(count))
        base[at] = _odds(rng.normal(-1.5, 1.0, 1))[0]
        if rng.random() < scene.tells:
            parts[0, at] = 0.8 + 0.2 * rng.random()
    rows = zip(base.tolist(), *parts.tolist(), strict=True)
    return [dict(zip((shipped().base, *_PARTS), row, strict=True)) for row in rows]


def _odds(log_odds: Floats) -> Floats:
    return 1.0 / (1.0 + np.exp(-log_odds))


@cache
def _named(code: str) -> str:
    return code.partition(".")[0]


def _said(call: Call) -> list[Reading]:
    return [
        Reading(detector=_named(code), version="1", code=code, score=score)
        for code, score in call.items()
        if score > 0.0
    ]


def _alarms(fusion: HijackFusion, artefact: Calibration, calls: Sequence[Call]) -> bool:
    """Whether a session alarms by any of its calls."""
    state = fusion.begin()
    answers = [answer for call in calls for answer in fusion.fuse(state, _PROPOSED, _said(call), _WINDOW)]
    levels = [
        grade(answer, fusion.bands, artefact, agent="made up", models=("none",)).level
        for answer in answers
        if isinstance(answer, Reading) and answer.code == CALL
    ]
    return any(level is not Level.CLEAR for level in levels)
