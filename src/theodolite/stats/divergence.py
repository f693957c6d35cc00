"""How far two distributions are from each other."""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ("jensen_shannon",)


def jensen_shannon(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the Jensen-Shannon divergence of two distributions over the same things, in bits: 0 to 1.

    It has no sign: it says that something moved, not which way. Raises ValueError where the lengths differ.
    Source: J. Lin, Divergence measures based on the Shannon entropy, IEEE Transactions on Information Theory 37, 1991.

    >>> jensen_shannon([1.0, 0.0], [0.0, 1.0]), jensen_shannon([0.5, 0.5], [0.5, 0.5])
    (1.0, 0.0)
    """
    total = math.fsum(_half(p, q) + _half(q, p) for p, q in zip(one, other, strict=True))
    return min(1.0, max(0.0, total / 2))


def _half(share: float, other: float) -> float:
    return share * math.log2(2 * share / (share + other)) if share > 0.0 else 0.0
