"""The sessions that were seen, as a whole, against those that an artefact was fitted to: when to calibrate anew."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable
from typing import Protocol

from msgspec import Struct

from theodolite.core.calibration import Calibration
from theodolite.core.reading import Reading, Signal
from theodolite.core.text import inert
from theodolite.stats.shift import Direction, Shift

__all__ = ("ALPHA", "LEAST", "PopulationState", "PopulationWatch", "warn")

ALPHA = 0.01
"""How often a process may be told to calibrate anew though its sessions are as they were, ever. Our choice.

Each process watches by itself, and begins anew when it is started.
"""

LEAST = 10
"""Sessions before which nothing is told: fewer are no population. Our choice."""

# Of the name of an artefact. Our choice: a sentence is to be read at a glance.
_NAME = 60


class PopulationState(Struct, frozen=True, kw_only=True, gc=False):
    """How the sessions that were seen compare with those that the artefact `calibration` was fitted to.

    `e_value` is the evidence that they are others, as it stands after `sessions` of them; 1 is none. `recalibrate` says
    that it once reached 200: from then on the artefact's rates are not to be relied on. `direction` is where their
    highest scores lie, HIGHER or LOWER, None before that. It says nothing of any one session.
    """

    calibration: str
    sessions: int
    e_value: float
    recalibrate: bool
    direction: Direction | None = None

    @property
    def words(self) -> str:
        """What to do and why, in a sentence or two; "" where there is nothing to do."""
        if self.direction is None:
            return ""
        return (
            f"recalibrate: the highest scores of these {self.sessions:,} sessions lie {self.direction} than those of "
            f"the sessions that the calibration {inert(self.calibration, _NAME)} was fitted to, so that its rates do "
            "not hold for them. That is about all of them together and says nothing of any one. To fit it to newer "
            "sessions: theodolite calibrate SESSIONS --out calibration.json"
        )


class _Versioned(Protocol):
    """Who speaks: a detector or a fusion."""

    @property
    def name(self) -> str:
        """Return its name."""
        ...

    @property
    def version(self) -> str:
        """Return its version."""
        ...


class PopulationWatch:
    """Takes the highest score of each session that is over, and tells once when they are no longer of the same kind.

    The statistic, and its promise, is that of `stats.shift`: where the sessions are drawn as those of the artefact
    were, the chance that it ever tells is at most 1 in 100, the chance that the artefact's own shares mislead it
    included. What it tells is never a signal, and changes no decision. Sessions of agents and models that the artefact
    does not name are not counted. Safe for several threads. State and cost: O(1) a session.
    """

    def __init__(self, calibration: Calibration, shift: Shift, code: str) -> None:
        self.code = code
        self._calibration = calibration
        self._shift = shift
        self._lock = threading.Lock()

    @classmethod
    def of(cls, calibration: Calibration | None, speakers: Iterable[_Versioned]) -> PopulationWatch | None:
        """Return the watch of an artefact.

        None where there is none, it has no population, or who says the code is not there in the version that it was
        fitted for.
        """
        seen = None if calibration is None else calibration.population
        if calibration is None or seen is None:
            return None
        owner = seen.code.partition(".")[0]
        versions = {speaker.name: speaker.version for speaker in speakers}
        if owner not in versions or not calibration.current(owner, versions):
            return None
        shift = Shift.over(high=seen.high, over=seen.over, low=seen.low, under=seen.under, n=seen.n, alpha=ALPHA)
        return cls(calibration, shift, seen.code)

    def take(self, agent: str, models: Collection[str], score: float) -> bool:
        """Take a session that is over, by its highest score, 0 where nobody spoke.

        Return whether it is the one with which it is time to calibrate anew.
        """
        if not self._calibration.names(agent, models):
            return False
        with self._lock:
            before = self._told
            self._shift.update(score)
            return self._told and not before

    def highest(self, signals: Iterable[Signal], before: float = 0.0) -> float:
        """Return the highest score of the code among some signals, and `before`.

        What a surrogate scores says nothing of the agent.
        """
        for signal in signals:
            said = signal.said
            if isinstance(said, Reading) and said.code == self.code and said.score > before and not said.surrogate:
                before = said.score
        return before

    @property
    def _told(self) -> bool:
        return self._shift.found is not None and self._shift.numbers >= LEAST

    @property
    def state(self) -> PopulationState:
        """How the sessions so far compare."""
        with self._lock:
            shift, told = self._shift, self._told
            return PopulationState(
                calibration=self._calibration.id,
                sessions=shift.numbers,
                e_value=shift.e_value,
                recalibrate=told,
                direction=shift.found if told else None,
            )


def warn(state: PopulationState) -> None:
    """Say on the logger `theodolite` that it is time to calibrate anew."""
    import logging  # noqa: PLC0415 - who imports this package need not pay for what is hardly ever said

    logging.getLogger("theodolite").warning("%s", state.words)
