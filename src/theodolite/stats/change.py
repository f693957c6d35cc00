"""Whether a rate has risen above what it was, whenever that began: an e-process over all beginnings."""

from __future__ import annotations

import math

from msgspec import Struct, field

from theodolite.stats.interval import exact_upper

__all__ = ("RISES", "Rise")

RISES = (2.0, 5.0, 20.0)
"""What the odds of an event may have been multiplied by; a third of each stake is on each (our choice)."""


def _begin() -> list[float]:
    return [0.0] * len(RISES)


class Rise(Struct, kw_only=True, forbid_unknown_fields=True):
    """Evidence that events come more often than a bound `upper` on their rate, from some trial on.

    For each beginning j a stake of 1 / (j (j + 1)) is bet from trial j on, by the likelihood ratio of a raised rate to
    the bound. Where the chance of an event, given all before, never exceeds `upper`, the sum of all, with what is not
    yet staked, is a nonnegative supermartingale that starts at 1: it ever reaches 1 / alpha with a probability of at
    most alpha (Ville). The price of not knowing the beginning is a factor j (j + 1): 18 of evidence in nats at trial
    10,000.

    Trials without an event are not told one by one but counted (`skip`): stakes that begin among them are valued below
    what they came to, by a closed form, which keeps the promise. The value rises with an event alone, so that it need
    be looked at only then.

    State: three numbers and a count. Cost: O(1) for an event, however long ago the last one was. Source: G. Lorden,
    Procedures for reacting to a change in distribution, Annals of Mathematical Statistics 42, 1971, for the sum over
    beginnings; J. Shin, A. Ramdas and A. Rinaldo, E-detectors, New England Journal of Statistics in Data Science 2,
    2024; weights that sum to 1 make the sum an e-process.

    >>> rise = Rise(upper=0.01)
    >>> for _ in range(4):
    ...     rise.skip(9)
    ...     value = rise.event()
    >>> round(value, 1)
    21.1
    """

    upper: float
    trials: int = 0
    staked: list[float] = field(default_factory=_begin)

    def __post_init__(self) -> None:
        if not (0.0 < self.upper < 1.0 and self.trials >= 0 and len(self.staked) == len(RISES)):
            raise ValueError(f"no rise is measured over upper={self.upper}, trials={self.trials}")

    @classmethod
    def over(cls, k: int, n: int, alpha: float) -> Rise:
        """Return the evidence over a baseline of k in n: its bound is missed with a probability of at most `alpha`.

        Raises ValueError for counts that are none, or an `alpha` outside (0, 0.5].
        """
        return cls(upper=min(exact_upper(k, n, alpha), 1.0 - 1e-9))

    def skip(self, trials: int) -> None:
        """Take so many trials without an event."""
        if trials <= 0:
            return
        last = self.trials + trials
        stake = 1.0 / (last * (last + 1)) / len(RISES)  # the smallest of those that began here
        for place, odds in enumerate(RISES):
            kept = 1.0 / (1.0 + self.upper * (odds - 1.0))  # (1 - q) / (1 - upper)
            # What began before has lost each time; what began here, once to `trials` times: a geometric sum.
            power = kept**trials
            self.staked[place] = self.staked[place] * power + stake * kept * (1.0 - power) / (1.0 - kept)
        self.trials = last

    def event(self) -> float:
        """Take one trial with an event; return the evidence after it, at least 0 and finite."""
        self.trials += 1
        stake = 1.0 / (self.trials * (self.trials + 1)) / len(RISES)
        for place, odds in enumerate(RISES):
            gain = odds / (1.0 + self.upper * (odds - 1.0))  # q / upper
            self.staked[place] = min((self.staked[place] + stake) * gain, _MOST)
        return self.value

    @property
    def value(self) -> float:
        """The evidence: what all stakes have come to, with those that are still to be made."""
        return math.fsum(self.staked) + 1.0 / (self.trials + 1)


# Far above 1 / alpha of any use, and far below what a float can hold.
_MOST = 1e300
