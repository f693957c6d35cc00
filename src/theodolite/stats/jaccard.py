"""Jaccard distance of two sets."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

__all__ = ("jaccard_distance",)


def jaccard_distance(a: AbstractSet[str], b: AbstractSet[str]) -> float:
    """Return 1 - |a & b| / |a | b|, in [0, 1]; 1 when either is empty, two empty sets included.

    Linear in the smaller set. Source: P. Jaccard, 1912; the convention for empty sets is that of zeph's ShadowMemory.

    >>> jaccard_distance({"a", "b"}, {"b", "c"})
    0.6666666666666667
    """
    if not a or not b:
        return 1.0
    common = len(a & b)
    return 1.0 - common / (len(a) + len(b) - common)
