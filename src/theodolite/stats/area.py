"""How well scores tell two kinds apart: the area under the curve."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

__all__ = ("area", "placements")


def area(above: Sequence[float], below: Sequence[float]) -> float:
    """Return the share of pairs of one each in which the first is higher, ties counting half; NaN where there are none.

    Cost: O(n log n). Source: the statistic of H. B. Mann and D. R. Whitney, 1947.

    >>> area([0.1, 0.4, 0.35, 0.8], [0.1, 0.3])
    0.8125
    """
    return math.fsum(placements(above, below)) / len(above) if above and below else math.nan


def placements(scores: Sequence[float], others: Sequence[float]) -> list[float]:
    """Return the share of the others that each score is above, ties counting half. There must be others.

    >>> placements([0.1, 0.4], [0.1, 0.3])
    [0.25, 1.0]
    """
    ranked = sorted(others)
    return [(bisect_left(ranked, score) + bisect_right(ranked, score)) / 2 / len(ranked) for score in scores]
