"""How probable so many hits or more are among draws of a known rate."""

from __future__ import annotations

import math

__all__ = ("at_least",)


def at_least(hits: int, draws: int, rate: float) -> float:
    """Return the probability of `hits` or more among so many independent draws.

    Summed from the nearer end, where terms only fall: at most one term a draw, mostly some square root of their number.
    Raises ValueError for a rate that is none, or fewer than no draws.

    >>> round(at_least(2, 3, 0.5), 12), at_least(0, 3, 0.0)
    (0.5, 1.0)
    """
    if draws < 0 or not 0.0 <= rate <= 1.0:
        raise ValueError(f"draws {draws} or rate {rate} are none")
    if hits <= 0 or hits > draws:
        return float(hits <= 0)
    if rate in {0.0, 1.0}:
        return rate
    if hits < draws * rate:
        return 1.0 - _tail(draws - hits + 1, draws, 1.0 - rate)
    return _tail(hits, draws, rate)


def _tail(hits: int, draws: int, rate: float) -> float:
    """Return the sum from `hits` on, for hits >= 1 and a rate at which terms fall from there."""
    ways = math.lgamma(draws + 1) - math.lgamma(hits + 1) - math.lgamma(draws - hits + 1)
    term = total = math.exp(ways + hits * math.log(rate) + (draws - hits) * math.log1p(-rate))
    odds = rate / (1.0 - rate)
    for seen in range(hits, draws):
        term *= (draws - seen) / (seen + 1) * odds
        total += term
        if term <= total * 1e-17:  # less than a float of the sum can hold
            break
    return min(1.0, total)
