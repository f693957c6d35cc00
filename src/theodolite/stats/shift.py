"""Whether numbers lie higher or lower than those that they are compared with: two rises of rates, and their mean."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from theodolite.stats.change import Rise

__all__ = ("Direction", "Shift")

# What the same sum may come to in another order of its terms: such a difference is none.
_ALIKE = 1e-9


class Direction(StrEnum):
    """Where numbers lie, against those that they are compared with."""

    HIGHER = "higher"
    LOWER = "lower"


class Shift(Struct, kw_only=True, forbid_unknown_fields=True):
    """Evidence that a stream of numbers does not come from where n earlier ones came from.

    Two events are watched, a number above `high` and one below `low`, each by a Rise over the bound that the n earlier
    numbers give; the evidence is the mean of both, and the shift is `found` when that reaches `bar`.

    Where the new numbers are drawn as the earlier ones were, independently (or, as well, all exchangeable in a sequence
    without an end: de Finetti), it is ever found with a probability of at most alpha, whenever one looks: of alpha a
    quarter is for each of the two bounds, which the rate exceeds with that probability at most (Clopper and Pearson),
    and half for the evidence. Where both bounds hold each Rise is an e-process, so their mean is one, and it ever
    reaches 2 / alpha with a probability of at most alpha / 2 (Ville). A bound holds as well where `high` or `low` is
    itself one of the n, the r-th smallest: the share above it is then at most one minus a Beta(r, n - r + 1), of which
    the bound for n - r of n is the very quantile. So `over` is to be that rank, with ties among those above; of ties
    alone it would be counted too low.

    From where all numbers lie above `high`, after j of which none did, it takes about ln(6 bar j (j + 1)) / ln(g) of
    them, with g = 20 / (1 + 19 u) and u the bound of the share above `high`; of those below `low` likewise.

    State: that of two Rises, and three numbers. Cost: O(1) a number. Limits: it sees only what moves numbers across
    `high` or `low`, and the fewer the n the larger the shift has to be.

    >>> shift = Shift.over(high=0.9, over=9, low=0.2, under=25, n=100, alpha=0.01)
    >>> [shift.update(0.95) for _ in range(8)][-1], shift.found.value
    (True, 'higher')
    """

    high: float
    low: float
    bar: float
    above: Rise
    below: Rise
    found: Direction | None = None

    def __post_init__(self) -> None:
        if not (self.low <= self.high and self.bar > 1.0):
            raise ValueError(f"no shift is found with low={self.low}, high={self.high}, bar={self.bar}")

    @classmethod
    def over(cls, *, high: float, over: int, low: float, under: int, n: int, alpha: float) -> Shift:
        """Return the evidence over n numbers, of which at most `over` lie above `high` and `under` below `low`.

        Raises ValueError for counts that are none, a `low` above `high`, or an alpha outside (0, 1).
        """
        if not 0.0 < alpha < 1.0:
            raise ValueError(f"alpha is {alpha}, and must lie between 0 and 1")
        return cls(
            high=high,
            low=low,
            bar=2.0 / alpha,
            above=Rise.over(over, n, alpha / 4),
            below=Rise.over(under, n, alpha / 4),
        )

    def update(self, number: float) -> bool:
        """Take one number; return whether a shift was found, by it or before."""
        for rise, event in ((self.above, number > self.high + _ALIKE), (self.below, number < self.low - _ALIKE)):
            if event:
                rise.event()
            else:
                rise.skip(1)
        if self.found is None and self.e_value >= self.bar:
            self.found = Direction.HIGHER if self.above.value >= self.below.value else Direction.LOWER
        return self.found is not None

    @property
    def numbers(self) -> int:
        """How many numbers were taken."""
        return self.above.trials

    @property
    def e_value(self) -> float:
        """The evidence as it stands: it may have been higher before."""
        return (self.above.value + self.below.value) / 2
