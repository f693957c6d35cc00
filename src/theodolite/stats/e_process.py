"""Evidence that may be looked at after every step: e-values of the highest score so far, and their mean."""

from __future__ import annotations

import math
from collections.abc import Iterable

from msgspec import Struct

__all__ = ("Maxima", "mean")


# Sessions beyond this are none: a float holds no larger count exactly.
_MOST = 2**53


class Maxima(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """What an e-value of the session maximum needs of the clean sessions: how many there were, and a sum.

    Each session weighs `odds ** power` of its highest score; `total` is the sum over the clean ones. For a new session
    of weight w the e-value is (n + 1) w / (total + w): its expectation is 1 where the session is exchangeable with the
    clean ones, so that it reaches 1 / alpha with a probability of at most alpha. It only grows with the score; taken of
    the highest score so far it is never above that of the whole session, so it may be looked at after every call and
    stopped at will. It can reach n + 1. Source: V. Vovk, Conformal e-prediction, 2025.

    >>> clean = Maxima.of([-3.0, -2.0, -2.5, -4.0])
    >>> round(clean.e_value(-3.0), 2), round(clean.e_value(4.0), 2)
    (0.74, 4.97)
    """

    n: int
    total: float
    power: float = 1.0

    def __post_init__(self) -> None:
        if not (0 < self.n <= _MOST and 0.0 < self.total < math.inf and 0.0 < self.power < math.inf):
            raise ValueError(f"need sessions with a finite, positive sum: n={self.n}, total={self.total}")

    @classmethod
    def of(cls, log_odds: Iterable[float], power: float = 1.0) -> Maxima:
        """Return the sum over the highest log-odds of clean sessions."""
        weights = [math.exp(power * highest) for highest in log_odds]
        return cls(n=len(weights), total=math.fsum(weights), power=power)

    def e_value(self, log_odds: float) -> float:
        """Return the e-value of a session whose highest log-odds so far are these."""
        # Divided by the weight, which for a high score would be infinite.
        return (self.n + 1) / (self.total * math.exp(min(700.0, -self.power * log_odds)) + 1.0)


def mean(values: Iterable[float], count: int) -> float:
    """Return the mean of so many e-processes, of which those that have not spoken stand at 1.

    The mean of e-processes in one filtration is one, whatever they have to do with each other.

    >>> mean([20.0], 2)
    10.5
    """
    spoken = list(values)
    return (math.fsum(spoken) + count - len(spoken)) / count
