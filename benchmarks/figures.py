"""Figures of a detector with 95 % intervals: area under the curve, shares at a false-alarm rate; and their bars."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec import Struct

from theodolite.stats.area import placements
from theodolite.stats.interval import clopper_pearson

__all__ = ("Area", "Bar", "Figure", "Share", "auc", "cut", "found_at", "held", "share")

_Z = 1.959964  # the 97.5 % point of the normal distribution


class Share(tuple[int, int]):
    """So many of so many, with the exact interval of a share (Clopper and Pearson 1934)."""

    __slots__ = ()

    @property
    def value(self) -> float:
        """The share."""
        return self[0] / self[1] if self[1] else math.nan

    def __str__(self) -> str:
        low, high = clopper_pearson(*self)
        return f"{self.value:.3f} [{low:.3f}, {high:.3f}] ({self[0]}/{self[1]})"


def share(holds: Sequence[bool]) -> Share:
    """Return how many hold, of how many."""
    return Share((sum(holds), len(holds)))


def cut(negative: Sequence[float], rate: float) -> float:
    """Return the score that at most this share of the negatives is above."""
    return sorted(negative, reverse=True)[int(rate * len(negative))]


def found_at(positive: Sequence[float], negative: Sequence[float], rate: float) -> Share:
    """Return how many positives are above the score that at most this share of the negatives is above."""
    least = cut(negative, rate)
    return share([score > least for score in positive])


class Area(float):
    """An area under the curve with its interval."""

    low: float
    high: float

    def __str__(self) -> str:
        return f"{float(self):.4f} [{self.low:.3f}, {self.high:.3f}]"


Figure = Area | Share | str
"""A figure, or the words of several."""


class Bar(Struct, frozen=True):
    """What a figure has to reach, or may not exceed."""

    figure: str
    least: float = 0.0
    most: float = 1.0

    def __str__(self) -> str:
        return f"{self.figure} at least {self.least:.3f}" if self.least else f"{self.figure} at most {self.most:.3f}"

    def held(self, figures: Mapping[str, Figure]) -> bool:
        """Whether the figure of that name holds it. A share of nothing holds no bar."""
        figure = figures[self.figure]
        value = figure.value if isinstance(figure, Share) else float(figure)
        return self.least <= value <= self.most


def held(bars: Sequence[Bar], figures: Mapping[str, Figure]) -> bool:
    """Print whether each bar is held; return whether all are."""
    for bar in bars:
        print(f"bar: {bar}: {'held' if bar.held(figures) else 'MISSED'}, {figures[bar.figure]}")
    return all(bar.held(figures) for bar in bars)


def auc(positive: Sequence[float], negative: Sequence[float]) -> Area:
    """Return the share of pairs in the right order, ties counting half, with the interval of DeLong (1988)."""
    placed = placements(positive, negative)
    against = [1.0 - place for place in placements(negative, positive)]
    value = sum(placed) / len(placed)
    error = math.sqrt(_variance(placed) / len(placed) + _variance(against) / len(against))
    area = Area(value)
    area.low, area.high = max(0.0, value - _Z * error), min(1.0, value + _Z * error)
    return area


def _variance(values: Sequence[float]) -> float:
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values) / max(1, len(values) - 1)
