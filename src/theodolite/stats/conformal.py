"""Split conformal prediction for one number a session: thresholds that hold for finite samples."""

from __future__ import annotations

import math
from collections.abc import Iterable

__all__ = ("at_least_so_many", "least", "threshold")


# No number of sessions is enough for less.
_LEAST = 1e-300


def threshold(maxima: Iterable[float], alpha: float) -> float | None:
    """Return the score that a new clean session exceeds with a probability of at most alpha; None where n is too small.

    `maxima` are the highest scores of clean sessions; the new one is exchangeable with them (drawn in the same way).
    A score alarms when it is *above* the threshold. Needs n >= 1 / alpha - 1. Source: Vovk, Gammerman and Shafer,
    Algorithmic Learning in a Random World, 2005, section 4.2.

    >>> threshold([0.1, 0.2, 0.3, 0.4], 0.2), threshold([0.1, 0.2, 0.3, 0.4], 0.1)
    (0.4, None)
    """
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha is {alpha}, and must lie between 0 and 1")
    ordered = sorted(maxima, reverse=True)
    # 1e-9: of 0.01 * 100 a float makes less than 1.
    above = math.floor(alpha * (len(ordered) + 1) + 1e-9)
    return ordered[above - 1] if above >= 1 else None


def least(alpha: float) -> int:
    """Return the least number of clean sessions with which alpha can be promised: 1 / alpha - 1.

    >>> least(0.01), least(0.005)
    (99, 199)
    """
    return math.ceil(1.0 / max(alpha, _LEAST) - 1.0 - 1e-9)


def at_least_so_many(k: int, m: int, n: int, alpha: float) -> float:
    """Return how probable it is that k or more of m new sessions exceed the threshold of n others at alpha.

    Both are drawn alike, and nothing is tied: then the rate behind the threshold is a Beta(r, n - r + 1) with
    r = floor(alpha (n + 1)), since the threshold was drawn too; ties make it smaller. One that keeps its promise may
    so have a rate above alpha, and this says how far. Cost: m terms. Source: Vovk 2012, Conditional validity of
    inductive conformal predictors, proposition 2a.

    >>> round(at_least_so_many(0, 100, 199, 0.005), 6), round(at_least_so_many(3, 100, 199, 0.005), 3)
    (1.0, 0.037)
    """
    above = math.floor(alpha * (n + 1) + 1e-9)
    if above < 1:
        raise ValueError(f"{n} sessions give no threshold at alpha={alpha:g}")
    below = n - above + 1

    def chance(hits: int) -> float:
        ways = math.lgamma(m + 1) - math.lgamma(hits + 1) - math.lgamma(m - hits + 1)
        inside = math.lgamma(hits + above) + math.lgamma(m - hits + below) - math.lgamma(m + n + 1)
        return math.exp(ways + inside - math.lgamma(above) - math.lgamma(below) + math.lgamma(n + 1))

    return max(0.0, min(1.0, 1.0 - math.fsum(chance(hits) for hits in range(k))))
