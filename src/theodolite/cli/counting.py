"""How far a verb is with things that it can count."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from theodolite.cli.progress import EVERY, Display, span

__all__ = ("counting",)

_T = TypeVar("_T")


def counting(
    items: Iterable[_T], what: str, total: int, *, clock: Callable[[], float] = time.monotonic
) -> Iterator[_T]:
    """Yield the items, and show meanwhile how many came, with the time left.

    `what` they are, in the plural; `total` how many there will be.

    >>> sum(counting(range(3), "records", 3))
    3
    """
    done = 0

    def told() -> str:
        left = display.left(done, total)
        return f"{done:,} of {total:,} {what}" + ("" if left is None else f", {span(left)} left")

    with Display(clock=clock) as display:
        for item in items:
            if done % EVERY == 0:
                display.show(done, total, told)
            yield item
            done += 1
