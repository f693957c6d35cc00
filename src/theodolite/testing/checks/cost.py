"""What it costs, in ways that a busy machine does not upset: medians, the least of several runs, and ratios."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from statistics import median
from time import perf_counter_ns
from typing import NamedTuple, TypeVar

from msgspec import Struct

from theodolite.core.detector import Detector
from theodolite.core.event import AnyEvent, GoalStated, MessageObserved, ToolCallProposed, ToolResultObserved
from theodolite.testing.playback import Playback
from theodolite.testing.sessions import flood_session, stamped

__all__ = ("LONG", "SHORT", "TEXTUAL", "Growth", "growth", "seconds", "text_growth", "update_costs")

S = TypeVar("S", bound=Struct)

SHORT, LONG = 300, 3_000
"""Short and long sessions, in events: a factor of ten apart."""

# A run below this, in seconds, is lost in the noise of timers and scheduling, and cheap enough whatever its growth.
_FLOOR = 0.002

# Time that other programs take does not count, where the system tells it finely enough.
_CLOCK = time.thread_time if time.get_clock_info("thread_time").resolution < _FLOOR / 100 else time.perf_counter


class Growth(NamedTuple):
    """How a cost grew from half of `size` to `size`: 2 is linear, 4 is quadratic, 0 is too cheap to tell."""

    size: int
    ratio: float


def seconds(work: Callable[[], object]) -> float:
    """Return the time that the work takes, in seconds, without garbage collection."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        start = _CLOCK()
        work()
        return _CLOCK() - start
    finally:
        if enabled:
            gc.enable()


def growth(
    prepare: Callable[[int], Callable[[], object]],
    *,
    limit: float,
    largest: int = 1 << 17,
    budget: float = 0.01,
    attempts: int = 3,
) -> Growth:
    """Return how the cost of what `prepare(size)` returns grows in its last doubling.

    Doubles the size from 1,024 until one run takes `budget` seconds or `largest` is reached, then runs both sizes in
    turns and compares the least of each; again, up to `attempts` times, while the ratio is over `limit`. What `prepare`
    does is not on the clock.
    """
    size = 1 << 10
    work = before = prepare(size)
    while size < largest and seconds(work) < budget:
        size *= 2
        before, work = work, prepare(size)
    ratio = 0.0
    for _ in range(attempts):
        ratio = _ratio(before, work)
        if ratio <= limit:
            break
    return Growth(size, ratio)


def _ratio(before: Callable[[], object], after: Callable[[], object]) -> float:
    costs = [(seconds(before), seconds(after)) for _ in range(3)]
    least = min(cost for cost, _ in costs)
    return min(cost for _, cost in costs) / least if least >= _FLOOR else 0.0


TEXTUAL: tuple[type[AnyEvent], ...] = (GoalStated, MessageObserved, ToolResultObserved, ToolCallProposed)
"""The events that hold text of any length."""


def _holding(kind: type[AnyEvent], text: str) -> AnyEvent:
    if kind is GoalStated:
        return GoalStated(text=text)
    if kind is MessageObserved:
        return MessageObserved(role="assistant", text=text)
    if kind is ToolResultObserved:
        return ToolResultObserved(tool="read_file", text=text)
    return ToolCallProposed(tool="send_money", arguments={"text": text})


def text_growth(detector: Detector[S], kind: type[AnyEvent], pattern: str, *, limit: float) -> Growth:
    """Return how the cost of an update grows with the text of its event, which is the pattern again and again."""

    def prepare(size: int) -> Callable[[], object]:
        playback = Playback(detector)
        goal, event = stamped([GoalStated(text="pay the bill"), _holding(kind, (pattern * size)[:size])])
        playback.feed(goal)
        playback.show(event)
        saved = playback.save()

        def work() -> None:
            playback.restore(saved)
            playback.ask(event)

        return work

    return growth(prepare, limit=limit)


def update_costs(detector: Detector[S]) -> dict[str, tuple[float, float]]:
    """Return, by event type, the median cost of an update in nanoseconds: early and late in a long session."""
    playback = Playback(detector)
    early: dict[str, list[int]] = {}
    late: dict[str, list[int]] = {}
    for event in stamped(flood_session(LONG)):
        playback.show(event)
        if type(event) not in detector.reads:
            continue
        start = perf_counter_ns()
        playback.ask(event)
        cost = perf_counter_ns() - start
        if SHORT // 2 <= event.seq < SHORT + SHORT // 2:
            early.setdefault(type(event).__name__, []).append(cost)
        elif event.seq >= LONG - SHORT:
            late.setdefault(type(event).__name__, []).append(cost)
    return {name: (median(early[name]), median(late[name])) for name in early.keys() & late.keys()}
