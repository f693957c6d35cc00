"""How far a verb is with things that it can count, on standard error, for who waits."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from theodolite.cli.exits import say

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = ("counting",)

_T = TypeVar("_T")

# Nobody waits for what takes less than a second; after that, a look every hundred items costs nothing.
_PATIENCE = 1.0
_EVERY = 100
# Seconds between two lines in a log: often enough to see that it lives, seldom enough to read the rest. Our choice.
_LINES = 10.0


def counting(
    items: Iterable[_T], what: str, total: int, *, clock: Callable[[], float] = time.monotonic
) -> Iterator[_T]:
    """Yield the items; meanwhile show a bar with the time left on a terminal, and a line now and then elsewhere.

    `what` they are, in the plural; `total` how many there will be.

    >>> sum(counting(range(3), "records", 3))
    3
    """
    begun = told = clock()
    terminal = sys.stderr.isatty()
    bar: Progress | None = None
    try:
        for done, item in enumerate(items):
            if done % _EVERY == 0:
                now = clock()
                if terminal and now - begun >= _PATIENCE:
                    bar = bar or _bar(what, total)
                    bar.update(bar.task_ids[0], completed=done)
                elif not terminal and now - told >= _LINES:
                    told = now
                    say(f"{done:,} of {total:,} {what}, {(now - begun) * (total - done) / done:,.0f} s left")
            yield item
    finally:
        if bar is not None:
            bar.stop()


def _bar(what: str, total: int) -> Progress:
    from rich.console import Console  # noqa: PLC0415 - only for who waits, and it takes a tenth of a second
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn(f"{what},"), TimeRemainingColumn(), TextColumn("left"))
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    bar.add_task(what, total=total)
    bar.start()
    return bar
