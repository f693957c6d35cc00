"""Evidence that does not grow deaf: bets that begin anew every so many draws, with a share of the stake for each."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct, field

from theodolite.stats.betting import FRACTIONS, Betting

__all__ = ("EVERY", "Restarting", "delay")

EVERY = 100
"""Draws after which the bets begin anew. Our choice: five times the probes of a session at the default cap, each of
which is one draw, so that such a session never comes to a restart."""


class Restarting(Struct, kw_only=True, forbid_unknown_fields=True):
    """A stake of 1, of which 1 / (j (j + 1)) is bet in the j-th period of `every` draws, and then kept.

    Bets lose while nothing happens, and what was lost must be won back: after 10,000 draws of a source that is alike
    the evidence of `Betting` took 343 draws of a full shift to reach what it reaches at once in 11. Here the past can
    cost no more than one period, and a factor j (j + 1).

    Where the mean of each draw, given all before it, is at most 0, the sum of what each period came to, with what is
    not yet staked, is a nonnegative supermartingale that starts at 1: it ever reaches 1 / alpha with a probability of
    at most alpha (Ville), whenever one looks. A period reaches it by itself at j (j + 1) / alpha, which is the bound
    for alpha_j = alpha / (j (j + 1)); the alpha_j sum to alpha.

    State: that of a Betting and three numbers. Cost: O(1) a draw. Source: Ville 1939, with stakes as in `stats.change`.

    >>> evidence = Restarting(every=2)
    >>> [round(evidence.update(draw), 2) for draw in (-1.0, -1.0, 1.0, 1.0)]
    [0.7, 0.61, 0.71, 0.88]
    """

    every: int = EVERY
    period: int = 1
    kept: float = 0.0
    bets: Betting = field(default_factory=Betting)

    def __post_init__(self) -> None:
        if not (self.every > 0 and self.period > 0 and 0.0 <= self.kept < math.inf):
            raise ValueError(f"no bets restart with every={self.every}, period={self.period}, kept={self.kept}")

    def update(self, d: float, fractions: Sequence[float] = FRACTIONS) -> float:
        """Bet on one draw; return the evidence after it. Raises ValueError for what `Betting.update` does not take."""
        if self.bets.draws >= self.every:
            self.kept = min(self.kept + self.bets.e_value * _share(self.period), _MOST)
            self.period += 1
            self.bets = Betting()
        self.bets.update(d, fractions)
        return self.e_value

    @property
    def e_value(self) -> float:
        """The evidence: what was kept, what the bets of this period stand at, and what is not yet staked."""
        return min(self.kept + self.bets.e_value * _share(self.period), _MOST) + 1.0 / (self.period + 1)


# Far above 1 / alpha of any use, and far below what a float can hold.
_MOST = 1e300


def _share(period: int) -> float:
    return 1.0 / (period * (period + 1))


def delay(growth: float, alpha: float, clean: int = 0, every: int = EVERY) -> float:
    """Return how many draws a shift takes to reach 1 / alpha, about, if it begins after `clean` draws of no shift.

    `growth` is the mean of ln(1 + f d) over shifted draws d, for the best of the fractions f. The bets of the next
    period have to come from 1 to j (j + 1) / alpha, times the number of fractions, among which the stake is spread:
    (ln(j (j + 1) / alpha) + ln 3) / growth draws, after those that the period under way still has; a strong shift that
    begins early in a period may be found before its end. Infinite where it is longer than a period, in which bets begin
    anew. Raises ValueError for a `growth` that is not above 0.

    >>> round(delay(math.log(1.9), 0.005), 1), round(delay(math.log(1.9), 0.005, clean=10_000), 1)
    (11.0, 24.4)
    """
    if not growth > 0.0:
        raise ValueError(f"a shift with a growth of {growth} is not found by betting")
    done, under_way = divmod(clean, every)
    period, wait = (done + 1, 0) if not under_way else (done + 2, every - under_way)
    needed = (math.log(period * (period + 1) / alpha) + math.log(len(FRACTIONS))) / growth
    return wait + needed if needed <= every else math.inf
