"""ShadowMemory: one record and one score, by window, beside the documented algorithm restated as it reads.

Usage: python benchmarks/shadow_memory.py [--short]. Exits with 1 when a budget is exceeded.
"""

from __future__ import annotations

import itertools
import random
import sys
from collections import deque

from timing import row, spread

from theodolite.detectors.trajectory.shadow_memory import ShadowEvent, ShadowMemory, ShadowMemoryConfig

WINDOWS = (8, 10, 64, 100, 1_000)


class Restated:
    """The documented algorithm, plainly: the words of every summary in the window are compared anew each time."""

    def __init__(self, window: int, threshold: float) -> None:
        self.events: deque[ShadowEvent] = deque(maxlen=window)
        self.threshold = threshold

    def step(self, event: ShadowEvent) -> float:
        """Record an event and return the score."""
        self.events.append(event)
        count = len(self.events)
        if count <= 1:
            return 0.0
        words = [set(kept.goal_summary[:100].split()) for kept in self.events]
        distances = [1 - len(a & b) / len(a | b) if a and b else 1.0 for a, b in itertools.pairwise(words)]
        rises = self.events[-1].max_permission_class > self.events[0].max_permission_class
        deviating = sum(kept.deviation_score > self.threshold * 0.5 for kept in self.events)
        return 0.5 * sum(distances) / (count - 1) + 0.25 * 0.3 * rises + 0.25 * deviating / count


def events(count: int) -> list[ShadowEvent]:
    """Return steps whose summaries have twenty words."""
    rng = random.Random(0)
    words = [f"w{n}" for n in range(200)]
    return [
        ShadowEvent(
            turn=turn,
            tools=("read",),
            max_permission_class=rng.randrange(4),
            deviation_score=rng.random(),
            goal_summary=" ".join(rng.choices(words, k=20)),
        )
        for turn in range(count)
    ]


def measured(window: int, steps: list[ShadowEvent]) -> float:
    """Return the median of a record and a score, in microseconds, once the window is full."""
    memory = ShadowMemory(settings=ShadowMemoryConfig(enabled=True, window_size=window, max_events=window))

    def step(event: ShadowEvent) -> None:
        memory.record(event)
        memory.goal_drift_score()

    for event in steps[:window]:
        step(event)
    return spread(step, steps).median


def main() -> int:
    """Print both by window; return 1 when a budget is exceeded."""
    count = 2_000 if "--short" in sys.argv else 10_000
    steps = events(count)
    met = True
    ours: dict[int, float] = {}
    for window in WINDOWS:
        plain = Restated(window, 0.6)
        for event in steps[:window]:
            plain.step(event)
        reference = spread(plain.step, steps[: 100 if window > 100 else 1_000]).median
        row(f"restated, window {window}", reference, "us")
        ours[window] = measured(window, steps)
        met &= row(f"ShadowMemory, window {window}", ours[window], "us", budget=10.0, ratio=ours[window] / reference)
    # Flat: what a window a hundred times as long may cost more, for the cache that it misses.
    met &= row("window 1,000 over window 10", ours[1_000] / ours[10], "x", budget=1.5)
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(main())
