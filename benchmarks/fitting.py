"""A monotone logistic score, fitted to sessions of which only the hijack as a whole is labeled; in plain Python.

Of a hijacked session one does not know which call it was, only that it came at the onset or later: the call that
scores highest there is taken as the example, and chosen anew after each fit (multiple instance learning, Andrews,
Tsochantaridis and Hofmann, 2003). Calls of sessions without a hijack are all counterexamples. Both sides weigh alike.
Weights keep the sign that they were given; a ridge keeps them small where the data say little.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from theodolite.stats.logistic import Logistic, probability

__all__ = ("Bag", "fit")

Row = tuple[float, ...]
Bag = Sequence[Row]
"""The calls of one session that may be the example."""

_RIDGE = 0.001  # of the mean loss; ten times as much or a tenth moves no figure of the benchmark by more than 0.005
_ROUNDS = 4  # after the third no example changes any more
_SWEEPS = 60


def fit(names: Mapping[str, int], positive: Sequence[tuple[float, Sequence[Bag]]], negative: Sequence[Row]) -> Logistic:
    """Return the coefficients. `names` maps each feature to the sign (1, -1) of its weight; rows are in its order.

    `positive` are groups of bags, each with the weight of the group.
    """
    signs = list(names.values())
    weights, bias = [0.5 * sign for sign in signs], -3.0
    # Most calls show nothing: equal rows are counted, not repeated.
    counted = _counted((row, 0.5 / len(negative)) for row in negative)
    total = sum(weight for weight, _ in positive)
    for _ in range(_ROUNDS):
        chosen = [
            (max(bag, key=partial(_dot, weights)), 0.5 * weight / total / len(bags))
            for weight, bags in positive
            for bag in bags
        ]
        rows = [(row, 0.0, mass) for row, mass in counted.items()]
        rows += [(row, 1.0, mass) for row, mass in _counted(chosen).items()]
        weights, bias = _descend(rows, signs, weights, bias)
    return Logistic(bias=bias, weights=dict(zip(names, weights, strict=True)))


def _counted(rows: Iterable[tuple[tuple[float, ...], float]]) -> dict[tuple[float, ...], float]:
    counted: dict[tuple[float, ...], float] = {}
    for row, mass in rows:
        counted[row] = counted.get(row, 0.0) + mass
    return counted


def _dot(weights: Sequence[float], row: Row) -> float:
    return sum(weight * value for weight, value in zip(weights, row, strict=True))


def _descend(
    rows: Sequence[tuple[tuple[float, ...], float, float]], signs: Sequence[int], weights: Sequence[float], bias: float
) -> tuple[list[float], float]:
    """Return the weights and the bias of the least loss, by one Newton step a coordinate at a time."""
    weights = list(weights)
    columns = [[row[place] for row, _, _ in rows] for place in range(len(signs))] + [[1.0] * len(rows)]
    log_odds = [bias + _dot(weights, row) for row, _, _ in rows]
    for _ in range(_SWEEPS):
        moved = 0.0
        for place, column in enumerate(columns):
            slope, curve = _slope(rows, column, log_odds)
            if place < len(signs):
                slope, curve = slope + _RIDGE * weights[place], curve + _RIDGE
                new = weights[place] - max(-1.0, min(1.0, slope / curve))
                new = max(0.0, new * signs[place]) * signs[place]
                step, weights[place] = new - weights[place], new
            else:
                step = -max(-1.0, min(1.0, slope / (curve + 1e-12)))
                bias += step
            moved = max(moved, abs(step))
            if step:
                log_odds = [z + step * value for z, value in zip(log_odds, column, strict=True)]
        if moved < 1e-4:
            break
    return weights, bias


def _slope(
    rows: Sequence[tuple[tuple[float, ...], float, float]], column: Sequence[float], log_odds: Sequence[float]
) -> tuple[float, float]:
    slope, curve = list[float](), list[float]()
    for (_, truth, mass), value, z in zip(rows, column, log_odds, strict=True):
        if value:
            p = probability(z)
            slope.append(mass * value * (p - truth))
            curve.append(mass * value * value * p * (1.0 - p))
    return math.fsum(slope), math.fsum(curve)
