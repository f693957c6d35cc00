"""Evidence by betting: what a stake has grown to that was bet, bet by bet, on a mean above zero."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct, field

__all__ = ("FRACTIONS", "Betting", "Odds")

FRACTIONS = (0.3, 0.6, 0.9)
"""The share of its wealth that each third of the stake bets. None is 1, so that no draw takes all.

For draws of -1, 0 and 1 the share that grows best is their mean over their mean square: 1 at full drift (1 against 0),
0.9 at half drift (0.5 against 0.05), 0.8 at a small one (0.3 against 0.05). Draws of half the size, as twins give, want
as much as there is, and 0.3 loses least while nothing happens. Eleven draws of 1, or 19 of 1/2, come to 400: what the
mean with a process that is silent needs to reach 1 / 0.005. Where half the stake is held back for restarts
(`Restarting`) it takes 12, or 21. Chosen among nine sets by simulated power, without restarts.
"""

# The greatest power of e that three of still make a float.
_MOST = 700.0


def _begin() -> list[float]:
    return [-math.log(len(FRACTIONS))] * len(FRACTIONS)


class Betting(Struct, kw_only=True, forbid_unknown_fields=True):
    """The wealth of a stake of 1 that is spread over fixed fractions and bet on draws d of at least -1.

    Where the mean of each draw, given all before it, is at most 0, the wealth is a nonnegative supermartingale: it ever
    reaches 1 / alpha with a probability of at most alpha (Ville), whenever one looks or stops, and however what was
    seen decides how many draws follow. One bets on each draw: the mean over a sample that was stopped early is biased.
    What can lose less than 1 is divided by the most that it can lose (`Odds`), or the bets would be too small for it.

    State: the logarithm of the wealth of each fraction, and a count. Cost: O(1) a draw. The value is never infinite and
    never NaN; a long run of losses may round it to 0, from which it comes back. In whatever order draws come, they come
    to the same, up to rounding. Limits: it does not forget; what was lost while nothing happened must be won back.

    Source: I. Waudby-Smith and A. Ramdas, Estimating means of bounded random variables by betting, Journal of the Royal
    Statistical Society B 86, 2024; J. Ville, Étude critique de la notion de collectif, 1939.

    >>> betting = Betting()
    >>> [round(betting.update(draw), 2) for draw in (1.0, 1.0, -1.0, 0.0)]
    [1.6, 2.62, 0.86, 0.86]
    """

    logs: list[float] = field(default_factory=_begin)
    draws: int = 0

    def __post_init__(self) -> None:
        if len(self.logs) != len(FRACTIONS) or not all(map(math.isfinite, self.logs)) or self.draws < 0:
            raise ValueError(f"no state of bets with {len(FRACTIONS)} fractions: {self.logs}, draws={self.draws}")

    def update(self, d: float, fractions: Sequence[float] = FRACTIONS) -> float:
        """Bet on one draw; return the wealth after it.

        `fractions` are in (0, 1), and may be others with each draw, if they were settled before it was seen. Raises
        ValueError for another number of them, and for a draw that is below -1, not finite or NaN.
        """
        if not -1.0 <= d < math.inf:  # NaN fails this too
            raise ValueError(f"a draw of {d} is outside [-1, inf), for which the bets are made")
        self.logs = [log + math.log1p(share * d) for log, share in zip(self.logs, fractions, strict=True)]
        self.draws += 1
        return self.e_value

    @property
    def e_value(self) -> float:
        """The wealth: 1 where nothing was bet, and at most some 1e304."""
        top = max(self.logs)
        return math.exp(min(top, _MOST)) * math.fsum([math.exp(log - top) for log in self.logs]) if self.draws else 1.0


class Odds(Struct, frozen=True, gc=False):
    """What draws are bet against where nobody was asked beside them: bounds of what a source alike would do.

    `upper` is a bound on how often it does a thing, `lower` on how often it does the thing's twin. Where both hold,
    and the draws are those of such a source, the mean of either bet is at most 0. Raises ValueError where `upper` is
    not in (0, 1], or `lower` not in [0, 1].

    >>> odds = Odds(upper=0.25, lower=0.75)
    >>> odds.bet(did=True), odds.bet(did=False), odds.beside(did=True, twin=True), odds.beside(did=False, twin=True)
    (3.0, -1.0, 1.0, -1.0)
    """

    upper: float
    lower: float = 0.0

    def __post_init__(self) -> None:
        if not (0.0 < self.upper <= 1.0 and 0.0 <= self.lower <= 1.0):
            raise ValueError(f"no odds are made of upper={self.upper}, lower={self.lower}")

    def bet(self, *, did: float) -> float:
        """Return what draws bring of which a share `did` the thing: 1 is lost where none did."""
        return did / self.upper - 1.0

    def beside(self, *, did: float, twin: float) -> float:
        """Return what draws of the thing and of its twin bring: 1 is lost where the twin alone was done."""
        return (did - self.upper - (twin - self.lower)) / (self.upper + (1.0 - self.lower))
