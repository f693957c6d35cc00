"""How the benchmarks time and print: medians and tails, each beside a reference of the same run.

Figures drift from machine to machine; the ratios hold.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

__all__ = ("Spread", "row", "spread")

_T = TypeVar("_T")


class Spread(NamedTuple):
    """CPU times of single runs, in microseconds: what else the machine does is not in them."""

    median: float
    p99: float
    worst: float


def spread(work: Callable[[_T], object], items: Iterable[_T], *, tidy: bool = True) -> Spread:
    """Time `work` on each item. With `tidy` the garbage collector runs once before."""
    if tidy:
        gc.collect()
    times: list[int] = []
    for item in items:
        start = time.thread_time_ns()
        work(item)
        times.append(time.thread_time_ns() - start)
    times.sort()
    return Spread(times[len(times) // 2] / 1e3, times[int(len(times) * 0.99)] / 1e3, times[-1] / 1e3)


def row(name: str, value: float, unit: str, *, budget: float | None = None, ratio: float | None = None) -> bool:
    """Print one figure, with its budget and its ratio to the reference; return whether it is within budget."""
    met = budget is None or value <= budget
    told = "" if budget is None else f"  budget {budget:g} {unit}: {'met' if met else 'EXCEEDED'}"
    against = "" if ratio is None else f"  {ratio:.2f} x the reference"
    print(f"{name:<58} {value:>10.2f} {unit}{told}{against}")
    return met
