"""Split conformal prediction for one number a session: thresholds and p-values that hold for finite samples."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence

__all__ = ("p_value", "threshold")


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


def p_value(ordered: Sequence[float], score: float) -> float:
    """Return the share of sessions that score as high, the new one counted: `ordered` are clean maxima, ascending.

    >>> p_value([0.1, 0.2, 0.3, 0.4], 0.35)
    0.4
    """
    return (len(ordered) - bisect_left(ordered, score) + 1) / (len(ordered) + 1)
