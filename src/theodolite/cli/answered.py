"""How many calls models have answered so far, and how many sessions still will take."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from theodolite.config.wiring import Instrument
from theodolite.core.inquiry import Query, Reply
from theodolite.core.model import Model, releases
from theodolite.detectors.behavior.arms import ProbeCase
from theodolite.detectors.behavior.deciding import read_exactly
from theodolite.detectors.behavior.detector import BehaviorDetector, BehaviorSettings
from theodolite.reports.probes import DETECTOR
from theodolite.runtime.opened import opened
from theodolite.runtime.session import Session

__all__ = ("Answered", "again", "exactly", "foreseen")

# Who is asked again where the first answers are alike, as detectors.behavior.asking has it; the questions of an exact
# decision, three in three orders, as detectors.behavior.deciding has them.
_ARMS, _EXACT = 2, 9


class Answered:
    """Counts the answers of models as they come: `calls` of them. Safe for several threads.

    `first` is how many seconds the first call took, None before it; `at_once` how many calls are under way at once.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.calls = 0
        self.first: float | None = None
        self.at_once = 1
        self._clock = clock
        self._lock = threading.Lock()

    def heard(self, model: Model) -> Model:
        """Return a model whose answers are counted."""
        self.at_once = max(self.at_once, model.max_concurrency)
        return _Heard(model, self, self._clock)

    def add(self, calls: int, seconds: float) -> None:
        """Count an answer."""
        with self._lock:
            self.calls += calls
            if self.first is None:
                self.first = seconds / max(1, calls)


class _Heard:
    """A model that is asked as before, while somebody counts its answers."""

    def __init__(self, model: Model, answered: Answered, clock: Callable[[], float]) -> None:
        self._model = model
        self._answered = answered
        self._clock = clock

    @property
    def name(self) -> str:
        """The name of the model."""
        return self._model.name

    @property
    def max_concurrency(self) -> int:
        """How many queries may be under way at once."""
        return self._model.max_concurrency

    async def ask(self, query: Query) -> Reply:
        """Answer one query. Raises what the model does."""
        begun = self._clock()
        reply = await self._model.ask(query)
        self._answered.add(query.samples, self._clock() - begun)
        return reply

    async def release(self) -> None:
        """Give back what the model holds for the running event loop."""
        if releases(self._model):
            await self._model.release()


def again(instrument: Instrument) -> int:
    """Return how many calls a probe takes beyond its first round where the first answers are alike: most do."""
    samples = instrument.settings.detectors.get(DETECTOR, {}).get("samples", BehaviorSettings().samples)
    return _ARMS * (samples - 1) if isinstance(samples, int) else 0


def exactly(instrument: Instrument) -> int:
    """Return how many calls a probe takes where a gate lets decisions be read exactly; 0 where none does."""
    fitted = instrument.monitor.fleet.calibration
    return _EXACT if fitted is not None and any(map(read_exactly, fitted.gates.values())) else 0


def foreseen(session: Session, instrument: Instrument) -> int:
    """Return about how many calls the open probes of a session will take: nobody knows before they are answered."""
    detector = next((one for one in instrument.monitor.detectors if isinstance(one, BehaviorDetector)), None)
    if detector is None:
        return 0
    more = again(instrument) + exactly(instrument)
    cases = [
        one.subject for one in opened(session, instrument.monitor.fleet.askers) if isinstance(one.subject, ProbeCase)
    ]
    return sum(more + sum(query.samples for query in detector.queries(case)) for case in cases)
