"""What `Session.observe` costs: a quiet call, one with the margin, and the margin by size of the text it follows.

Usage: python benchmarks/observe.py [--short]. Exits with 1 when a budget is exceeded.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator

from timing import Spread, row, spread

from theodolite.core.detector import AnyDetector
from theodolite.core.event import GoalStated, Source, ToolCallProposed, ToolResultObserved, TurnEnded
from theodolite.detectors.trajectory.margin import MarginDetector
from theodolite.detectors.trajectory.shadow_memory import ShadowMemoryDetector
from theodolite.runtime.monitor import Monitor
from theodolite.runtime.session import Session
from theodolite.stores.memory import MemoryStore
from theodolite.testing.fakes import QuietDetector

ARGUMENTS = {"to": "anna@example.org", "subject": "Report", "body": "Please find the report attached.", "copies": 2}
WORDS = [f"word{n}" for n in range(5_000)]


def opened(*, margin: bool) -> Session:
    """Return a session in which a goal was stated and something was read."""
    detectors: list[AnyDetector] = [
        ShadowMemoryDetector(deviation=margin),
        *[QuietDetector(name=f"quiet_{n}") for n in range(3)],
    ]
    monitor = Monitor([*detectors, MarginDetector()] if margin else detectors, store=MemoryStore())
    session = monitor.session("bench")
    session.observe(GoalStated(text="send the March report to anna@example.org", source=Source.USER))
    session.observe(ToolResultObserved(text="The report of March is ready. " * 10, source=Source.TOOL))
    return session


def calls(count: int) -> Iterator[ToolCallProposed]:
    """Yield calls with arguments of their own."""
    for number in range(count):
        yield ToolCallProposed(tool="send_email", arguments={**ARGUMENTS, "copies": number})


def quiet(count: int, reference: Spread) -> bool:
    """Print what a quiet call costs; a turn ends after every eight."""
    session = opened(margin=False)

    def observe(event: ToolCallProposed) -> None:
        session.observe(event)

    figures = spread(observe, calls(count))
    met = row("quiet call, ShadowMemory and three fakes, median", figures.median, "us", budget=25.0,
              ratio=figures.median / reference.median)  # fmt: skip
    row("quiet call, p99", figures.p99, "us", ratio=figures.p99 / reference.median)
    turns = spread(session.observe, (TurnEnded() for _ in range(count // 8)))
    row("end of a turn, median", turns.median, "us", ratio=turns.median / reference.median)
    made = spread(lambda number: ToolCallProposed(tool="send", arguments={**ARGUMENTS, "copies": number}), range(count))
    row("making the event, in the host", made.median, "us", ratio=made.median / reference.median)
    return met


def text(kilobytes: float, seed: int) -> str:
    """Return prose of made-up words, some 1,000 characters a kB."""
    rng = random.Random(seed)
    words = rng.choices(WORDS, k=int(kilobytes * 125))
    return " ".join(word + "." if n % 12 == 11 else word for n, word in enumerate(words))


def margin(rounds: int, reference: Spread) -> bool:
    """Print what reading a result and judging a call cost with the margin on, by size of the results.

    Each event has the budget of its own text. The results share 5,000 words, and so do the calls.
    """
    met = True
    for kilobytes in (0.1, 1.0, 10.0, 100.0):
        session = opened(margin=True)
        body = text(0.2, 0)
        read: list[float] = []
        judged: list[float] = []
        for number in range(max(300, int(rounds / (1 + kilobytes)))):
            result = ToolResultObserved(text=text(kilobytes, number), source=Source.TOOL)
            call = ToolCallProposed(tool="send_email", arguments={**ARGUMENTS, "body": text(0.2, number)})
            read.append(spread(session.observe, [result], tidy=False).median)
            judged.append(spread(session.observe, [call], tidy=False).median)
        for name, times, size in (("result read", read, kilobytes), ("call judged", judged, len(body) / 1_000)):
            p99 = sorted(times)[int(len(times) * 0.99)]
            told = f"with the margin, results of {kilobytes:g} kB: {name}, p99"
            met &= row(told, p99, "us", budget=500.0 + 100.0 * size, ratio=p99 / reference.median)
    return met


def main() -> int:
    """Print all figures; return 1 when a budget is exceeded."""
    count = 2_000 if "--short" in sys.argv else 20_000
    payload = {"tool": "send_email", "arguments": ARGUMENTS}
    reference = spread(lambda _: json.loads(json.dumps(payload)), range(count))
    row("reference: json.loads(json.dumps(call)), median", reference.median, "us")
    met = [quiet(count, reference), margin(count // 20, reference)]
    return 0 if all(met) else 1


if __name__ == "__main__":
    raise SystemExit(main())
