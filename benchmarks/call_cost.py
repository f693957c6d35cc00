"""What it costs to score a call before it runs, per call, per kB of new text and by length of the session.

    python benchmarks/call_cost.py [DATA_DIR] [--beside FILE] [--short]

Exits with 1 when a budget is exceeded. What counts: all folds of a session, the detectors `hijack` and `goal_drift`,
and the fusion of what they say. What does not: making the event, the window, redaction, policy and store.

Each event of each recorded session of AgentDojo's train split is timed by itself, in CPU time, and the least of several
runs counts: what else the machine does makes a run slower and none faster. To read the clock costs up to 1 us, which is
in each figure.

`--beside FILE` runs another scorer on the same sessions, in turns with ours: figures drift from machine to machine, and
the ratios, ours over the other's, hold. The file is Python and has `Session(goal)` with `call(tool, arguments)`, which
returns numbers, whether the user pointed there and whether the call has an effect, and `result(text, pointed)`, which
is given the results of calls without one.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.util import module_from_spec, spec_from_file_location
from itertools import count, islice
from pathlib import Path
from statistics import fmean, median
from string import ascii_lowercase, digits
from typing import NamedTuple, Protocol

from agentdojo import Session, events, sessions
from timing import row

from theodolite.core.detector import Feature
from theodolite.core.event import (
    AnyHostEvent,
    Event,
    GoalStated,
    MessageObserved,
    Source,
    ToolCallProposed,
    ToolResultObserved,
    stamp,
)
from theodolite.core.window import Window
from theodolite.detectors.fusion import HijackFusion
from theodolite.detectors.trajectory.goal_drift import GoalDriftDetector
from theodolite.detectors.trajectory.hijack import HijackDetector
from theodolite.features.folds import Folds

PER_CALL = 60.0  # microseconds
PER_KB = 100.0
FLAT = 1.5  # what a call late in a session may cost more than one early in it, for the caches that it misses
MEMORY = 16.0  # MB that a session's folds may hold, however long it is
LENGTHS = (100, 1_000, 10_000)
LATE = 10  # figures at a length are of the last tenth of the events, and ten more
_LETTERS = ascii_lowercase + digits
NEEDS = (Feature.MARGIN, Feature.PROVENANCE)


class Timed(NamedTuple):
    """An event and what it cost, in microseconds. `size`: the kB of its text, where it is text."""

    kind: str
    size: float
    cost: float


class Scorer:
    """The part of a session that is measured."""

    def __init__(self) -> None:
        self.hijack, self.drift, self.fusion = HijackDetector(), GoalDriftDetector(), HijackFusion()
        self.folds = Folds.begin(NEEDS)
        self.states = self.hijack.begin(), self.drift.begin(), self.fusion.begin()
        self.window = Window(goal=True)

    def take(self, event: Event) -> None:
        """Fold an event and, if it is a call, score it."""
        window = self.window
        window.call = self.folds.fold(event, {})
        if window.call is not None:
            hijack, drift, fusion = self.states
            said = (*self.hijack.update(hijack, event, window), *self.drift.update(drift, event, window))
            self.fusion.fuse(fusion, event, said, window)


def stamped(made: Iterable[AnyHostEvent]) -> list[AnyHostEvent]:
    """Return events as a session stamps them."""
    return [stamp(event, session="s", agent="", seq=seq, at=0.0, turn=event.turn) for seq, event in enumerate(made)]


def ours(placed: Sequence[AnyHostEvent]) -> Iterator[Timed]:
    """Yield each event of a session with what it cost us."""
    scorer = Scorer()
    for event in placed:
        start = time.process_time_ns()
        scorer.take(event)
        cost = (time.process_time_ns() - start) / 1_000
        scorer.window.push(event)
        yield Timed(*_kind(event), cost)


def _kind(event: Event) -> tuple[str, float]:
    if isinstance(event, ToolCallProposed):
        return "call", 0.0
    if isinstance(event, ToolResultObserved):
        return "result", len(str(event.text)) / 1_000
    return ("said", 1.0) if isinstance(event, GoalStated | MessageObserved) else ("other", 0.0)


class Other(Protocol):
    """A session of another scorer."""

    def call(self, tool: str, arguments: Mapping[str, object], /) -> tuple[object, bool, bool]:
        """Take a call."""
        ...

    def result(self, text: str, pointed: bool, /) -> None:  # noqa: FBT001 - the other scorer's own
        """Take a result."""
        ...


def loaded(path: Path) -> Callable[[str], Other] | None:
    """Return what begins a session of the scorer in a file; None where something that it imports is missing."""
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except ImportError as error:
        print(f"{path.name} is left out: {error}")
        return None
    begin: Callable[[str], Other] = vars(module)["Session"]
    return begin


def theirs(begin: Callable[[str], Other], session: Session) -> Iterator[Timed]:
    """Yield each call and result of a session with what it cost the other scorer."""
    other, called = begin(session.goal), list[tuple[bool, bool]]()
    for step in session.events:
        start = time.process_time_ns()
        if step.role == "assistant" and step.tool:
            _, pointed, effect = other.call(step.tool, step.args or {})
            called.append((pointed, effect))
        elif step.role == "tool":
            pointed, effect = called.pop(0) if called else (False, False)
            if effect or not step.text:
                continue
            other.result(step.text, pointed)
        else:
            continue
        size = len(step.text) / 1_000
        yield Timed("result" if step.role == "tool" else "call", size, (time.process_time_ns() - start) / 1_000)


def least(runs: Sequence[Sequence[Timed]]) -> list[Timed]:
    """Return what each event cost in the run in which it cost least."""
    return [min(same, key=lambda timed: timed.cost) for same in zip(*runs, strict=True)]


class Figures(NamedTuple):
    """What calls cost, and what a kB of results does; in microseconds."""

    calls: list[float]
    per_kb: float


def figures(timed: Sequence[Timed]) -> Figures:
    """Return the figures of some events."""
    results = [one for one in timed if one.kind == "result"]
    size = sum(one.size for one in results)
    return Figures(
        [one.cost for one in timed if one.kind == "call"], sum(one.cost for one in results) / size if size else 0.0
    )


def show_recorded(recorded: Sequence[Session], rounds: int, begin: Callable[[str], Other] | None) -> bool:
    """Print what recorded sessions cost; return whether it is within the budgets."""
    own: list[Timed] = []
    beside: list[Timed] = []
    for session in recorded:
        placed = stamped(events(session))
        runs = [
            (list(ours(placed)), [] if begin is None else list(theirs(begin, session)))  # in turns
            for _ in range(rounds)
        ]
        own += least([run for run, _ in runs])
        beside += least([run for _, run in runs])
    calls, per_kb = figures(own)
    print(f"{len(recorded)} recorded sessions, {len(calls)} calls; the least of {rounds} runs")
    met = row("a call, mean", fmean(calls), "us", budget=PER_CALL)
    row("a call, median", median(calls), "us")
    row("a call, 99 in 100 at most", sorted(calls)[int(0.99 * len(calls))], "us")
    met &= row("a kB of results", per_kb, "us", budget=PER_KB)
    row("a goal or message, mean", fmean([one.cost for one in own if one.kind == "said"]), "us")
    whole = sum([one.cost for one in own]) / len(calls)
    row("all events, by calls", whole, "us")
    if beside:
        other = figures(beside)
        row("beside: a call, mean", fmean(other.calls), "us", ratio=fmean(calls) / fmean(other.calls))
        row("beside: a kB of results", other.per_kb, "us", ratio=per_kb / other.per_kb)
        both = sum([one.cost for one in beside]) / len(calls)
        row("beside: all events, by calls", both, "us", ratio=whole / both)
    return met


def chained(recorded: Sequence[Session]) -> Iterator[AnyHostEvent]:
    """Yield the events of recorded sessions one after the other, under the goal of the first."""
    for place, session in enumerate(recorded):
        for event in events(session):
            if not (place and isinstance(event, GoalStated | MessageObserved)):
                yield event


def hostile(different: int) -> Iterator[AnyHostEvent]:
    """Yield results of 1 kB and calls that repeat some of them, of so many words: short ones, and no sentence ends."""
    yield GoalStated(text="Send the report to Anna.", source=Source.USER)
    for number in count(0, 200):
        words = [_word(place % different) for place in range(number, number + 200)]
        yield ToolResultObserved(tool="read_mail", text=" ".join(words), source=Source.TOOL)
        yield ToolCallProposed(tool="send_email", arguments={"to": words[5], "body": " ".join(words[40:70])})


def _word(number: int) -> str:
    return "".join([_LETTERS[number // len(_LETTERS) ** place % len(_LETTERS)] for place in range(4)])


def show_lengths(recorded: Sequence[Session]) -> bool:
    """Print what long sessions cost and hold; return whether it is bounded."""
    sources: Mapping[str, Callable[[], Iterator[AnyHostEvent]]] = {
        "recorded sessions as one": lambda: chained([session for session in recorded for _ in range(4)]),
        "every word new": lambda: hostile(len(_LETTERS) ** 4),
        "all text repeated": lambda: hostile(200),
    }
    met = True
    print(f"{'a session of':<28} {'events':>7} {'us a call':>10} {'us a kB':>9} {'MB held':>8}")
    for name, source in sources.items():
        placed = stamped(islice(source(), max(LENGTHS)))
        timed, held = list(ours(placed)), memory(placed)
        medians: list[float] = []
        for length in LENGTHS:
            late = figures(timed[length - length // LATE - LATE : length])
            medians.append(median(late.calls))
            print(f"{name:<28} {length:>7,} {medians[-1]:>10.1f} {late.per_kb:>9.1f} {held[length]:>8.2f}")
        met &= row(f"{name}: {LENGTHS[-1]:,} events over {LENGTHS[-2]:,}", medians[-1] / medians[-2], "x", budget=FLAT)
        met &= row(f"{name}: held", max(held.values()), "MB", budget=MEMORY)
    return met


def memory(placed: Sequence[AnyHostEvent]) -> dict[int, float]:
    """Return how many MB the folds and states of a session hold after so many events; the events are not counted."""
    held: dict[int, float] = {}
    gc.collect()
    tracemalloc.start()
    scorer = Scorer()
    for length, event in enumerate(placed, 1):
        scorer.take(event)
        if length in LENGTHS:
            held[length] = tracemalloc.get_traced_memory()[0] / 1e6
    tracemalloc.stop()
    return held


def main() -> int:
    """Print all figures; return 1 when a budget is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?", default=Path("../shared/data/agentdojo"))
    parser.add_argument("--beside", type=Path, metavar="FILE", help="another scorer, to run on the same sessions")
    parser.add_argument("--short", action="store_true", help="every sixth session, and fewer runs")
    options = parser.parse_args()
    train = options.data / "train.jsonl.gz"
    if not train.exists():
        print(f"skipped: no recorded sessions in {options.data}")
        return 0
    recorded = sessions(train)[:: 6 if options.short else 1]
    begin = None if options.beside is None else loaded(options.beside)
    met = show_recorded(recorded, 3 if options.short else 5, begin)
    return 0 if show_lengths(recorded) and met else 1


if __name__ == "__main__":
    sys.exit(main())
