"""What a share of k in n says of the rate behind it: Wilson's interval, and the exact one of Clopper and Pearson."""

from __future__ import annotations

import math
from functools import lru_cache

from theodolite.stats.binomial import at_least

__all__ = ("clopper_pearson", "exact_lower", "exact_upper", "wilson")


def wilson(k: int, n: int, z: float = 1.96) -> tuple[float, float]:
    """Return Wilson's interval of a share of k in n, `z` standard deviations wide on each side; (0, 1) where n is 0.

    Near its level on average over rates, not for each of them. Cost: O(1). Raises ValueError for counts that are none.
    Source: E. B. Wilson, Probable inference, Journal of the American Statistical Association 22, 1927.

    >>> [round(bound, 3) for bound in wilson(1, 20)]
    [0.009, 0.236]
    """
    _check(k, n)
    if n == 0:
        return 0.0, 1.0
    share, square = k / n, z * z
    middle = (share + square / (2 * n)) / (1 + square / n)
    half = z / (1 + square / n) * math.sqrt(share * (1 - share) / n + square / (4 * n * n))
    # At the ends one bound is the end itself, which rounding would miss.
    return 0.0 if k == 0 else max(0.0, middle - half), 1.0 if k == n else min(1.0, middle + half)


def clopper_pearson(k: int, n: int, alpha: float = 0.05) -> tuple[float, float]:
    """Return the exact interval of a share of k in n: it misses the rate with a probability of at most `alpha`.

    Half of `alpha` is for each side. It is what `exact_lower` and `exact_upper` return, and raises what they raise.

    >>> [round(bound, 4) for bound in clopper_pearson(1, 20)]
    [0.0013, 0.2487]
    """
    return exact_lower(k, n, alpha / 2), exact_upper(k, n, alpha / 2)


def exact_upper(k: int, n: int, alpha: float) -> float:
    """Return what a rate is above with a probability of at most `alpha`, where k of n were seen: a one-sided bound.

    It is rounded up. Cost: a sum of up to n - k terms, mostly some square root of n, 60 times. `alpha` is in (0, 0.5];
    ValueError where it is not, and for counts that are none.
    Source: C. J. Clopper and E. S. Pearson, The use of confidence or fiducial limits, Biometrika 26, 1934.

    >>> round(exact_upper(0, 200, 0.05), 4)
    0.0149
    """
    _check(k, n)
    return 1.0 - exact_lower(n - k, n, alpha)


def exact_lower(k: int, n: int, alpha: float) -> float:
    """Return what a rate is below with a probability of at most `alpha`: `exact_upper` of what was not seen."""
    _check(k, n)
    if not 0.0 < alpha <= 0.5:  # noqa: PLR2004 - from there on the bound is beyond the share itself
        raise ValueError(f"alpha {alpha} of a one-sided bound is outside (0, 0.5]")
    if k == 0:
        return 0.0
    return _below(k, n, alpha)


# The bins and slices of a report ask for the same few counts again and again. Our choice: less than a megabyte.
@lru_cache(maxsize=4096)
def _below(k: int, n: int, alpha: float) -> float:
    # The median of a binomial is at least k where the rate is k / n: the bound is not above that.
    low, high = 0.0, k / n
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if at_least(k, n, middle) <= alpha else (low, middle)
    return low


def _check(k: int, n: int) -> None:
    if not 0 <= k <= n:
        raise ValueError(f"{k} of {n} is no share: need 0 <= k <= n")
