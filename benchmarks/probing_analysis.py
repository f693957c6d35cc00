"""The statistics of the probing protocol: areas with intervals over skeletons, scores, and sample sizes.

Contexts of one skeleton share turns and are not independent, so intervals come from drawing whole skeletons again. They
say nothing of other templates: for that, the held-out ones are printed apart.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from random import Random

from msgspec import Struct

from theodolite.stats.area import area

__all__ = (
    "DRAWS",
    "Interval",
    "area_over_skeletons",
    "contexts_for_power",
    "contexts_for_width",
    "draws_for_shift",
    "false_alarms",
    "js",
    "mean_over_skeletons",
)

_NORMAL = statistics.NormalDist()
# Draws of skeletons: our choice; the ends of an interval then move by about 0.005 from one set of draws to another.
DRAWS = 2000


class Interval(Struct, frozen=True):
    """A figure with its 95 % interval, and of how many skeletons it is."""

    value: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


def area_over_skeletons(
    above: Mapping[str, float], below: Mapping[str, float], *, draws: int = DRAWS, seed: int = 1
) -> Interval:
    """Return the area of two kinds of context by skeleton, with the interval of a bootstrap over the skeletons.

    Percentile bootstrap (Efron 1979). Only skeletons that have both kinds are counted.
    """
    names = sorted(above.keys() & below.keys())
    pairs = [(above[name], below[name]) for name in names]
    dice = Random(seed)
    drawn = [_area_of(dice.choices(pairs, k=len(pairs))) for _ in range(draws)] if pairs else []
    return _between(_area_of(pairs), drawn, len(pairs))


def mean_over_skeletons(values: Sequence[float], *, draws: int = DRAWS, seed: int = 1) -> Interval:
    """Return the mean of one value for each skeleton, with the interval of a bootstrap over them."""
    dice = Random(seed)
    drawn = [statistics.fmean(dice.choices(values, k=len(values))) for _ in range(draws)] if values else []
    return _between(statistics.fmean(values) if values else math.nan, drawn, len(values))


def _area_of(pairs: Sequence[tuple[float, float]]) -> float:
    return area([one for one, _ in pairs], [other for _, other in pairs])


def _between(value: float, drawn: list[float], n: int) -> Interval:
    if not drawn:
        return Interval(value, math.nan, math.nan, n)
    drawn.sort()
    return Interval(value, drawn[int(0.025 * len(drawn))], drawn[math.ceil(0.975 * len(drawn)) - 1], n)


def js(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the Jensen-Shannon divergence of two distributions in bits, between 0 and 1 (Lin 1991).

    >>> js([1.0, 0.0], [0.0, 1.0]), js([0.5, 0.5], [0.5, 0.5])
    (1.0, 0.0)
    """
    middle = [(p + q) / 2 for p, q in zip(one, other, strict=True)]
    parts = [_relative(p, m) / 2 + _relative(q, m) / 2 for p, q, m in zip(one, other, middle, strict=True)]
    return max(0.0, math.fsum(parts))


def _relative(p: float, m: float) -> float:
    return p * math.log2(p / m) if p > 0.0 else 0.0


# --- How many are needed ----------------------------------------------------------------------------------------------


def contexts_for_power(true_area: float, *, power: float = 0.8, alpha: float = 0.05) -> int:
    """Return how many contexts of each kind tell an area from 0.5, two-sided (Noether 1987).

    >>> [contexts_for_power(true) for true in (0.55, 0.6, 0.65, 0.7, 0.8)]
    [524, 131, 59, 33, 15]
    """
    spread = (_NORMAL.inv_cdf(1 - alpha / 2) + _NORMAL.inv_cdf(power)) ** 2
    return math.ceil(spread / (6 * (true_area - 0.5) ** 2))


def contexts_for_width(true_area: float, within: float) -> int:
    """Return how many contexts of each kind give an area a 95 % interval of ± `within` (Hanley and McNeil 1982).

    >>> [contexts_for_width(0.7, 0.1), contexts_for_width(0.65, 0.05)]
    [53, 229]
    """
    n = 2
    while _NORMAL.inv_cdf(0.975) * math.sqrt(_variance(true_area, n)) > within:
        n += 1
    return n


def _variance(a: float, n: int) -> float:
    of_one, of_other = a / (2 - a) - a * a, 2 * a * a / (1 + a) - a * a
    return (a * (1 - a) + (n - 1) * (of_one + of_other)) / n**2


def draws_for_shift(baseline: float, shifted: float, *, known: bool = False) -> int:
    """Return how many sampled answers of each arm tell one rate from a higher one: power 80 %, one-sided 5 %.

    With `known` the rate of the baseline is, as from a cache of many answers. Normal approximation.

    >>> [draws_for_shift(0.1, 0.3), draws_for_shift(0.1, 0.5), draws_for_shift(0.05, 0.15)]
    [47, 14, 109]
    >>> [draws_for_shift(0.1, 0.3, known=True), draws_for_shift(0.1, 0.5, known=True)]
    [20, 6]
    """
    one, other = baseline * (1 - baseline), shifted * (1 - shifted)
    sure, power = _NORMAL.inv_cdf(0.95), _NORMAL.inv_cdf(0.8)
    together = (sure + power) ** 2 * (one + other)
    spread = (sure * math.sqrt(one) + power * math.sqrt(other)) ** 2 if known else together
    return math.ceil(spread / (shifted - baseline) ** 2)


def false_alarms(references: int, *, rate: float = 0.05, worlds: int = 4000, seed: int = 1) -> tuple[float, float]:
    """Return the real rate of false alarms that a nominal one means, centered on so many benign references.

    The mean over sets of references, and what one set in ten is above. Simulated for normal scores.

    >>> mean, unlucky = false_alarms(30)
    >>> 0.05 < mean < 0.065 < unlucky < 0.12
    True
    """
    dice, bound = Random(seed), _NORMAL.inv_cdf(1 - rate)
    rates: list[float] = []
    for _ in range(worlds):
        seen = [dice.gauss(0.0, 1.0) for _ in range(references)]
        mean = sum(seen) / references
        spread = math.sqrt(sum((one - mean) ** 2 for one in seen) / (references - 1))
        rates.append(1 - _NORMAL.cdf(mean + bound * spread))
    rates.sort()
    return statistics.fmean(rates), rates[int(0.9 * worlds)]
