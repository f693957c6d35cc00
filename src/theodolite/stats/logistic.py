"""A logistic score from coefficients: fitted elsewhere, computed in plain Python."""

from __future__ import annotations

import math
from collections.abc import Mapping

from msgspec import Struct

__all__ = ("Logistic", "logit", "probability")


class Logistic(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """Weights of named features, and a bias. A positive weight means that more of the feature never lowers the score.

    Raises ValueError for a number that is not finite. Cost: linear in the features.

    >>> model = Logistic(bias=-1.0, weights={"heat": 2.0, "shade": -0.5})
    >>> model.terms({"heat": 1.0, "shade": 2.0})
    {'heat': 2.0, 'shade': -1.0}
    >>> model.score({"heat": 1.0, "shade": 2.0})
    0.5
    """

    bias: float
    weights: Mapping[str, float]

    def __post_init__(self) -> None:
        for name, number in (("the bias", self.bias), *self.weights.items()):
            if not math.isfinite(number):
                raise ValueError(f"{name} of a logistic score is {number}, which is not a number")

    def terms(self, features: Mapping[str, float]) -> dict[str, float]:
        """Return what each feature adds to the log-odds; one that is missing adds nothing."""
        return {name: weight * features.get(name, 0.0) for name, weight in self.weights.items()}

    def score(self, features: Mapping[str, float]) -> float:
        """Return the score, in [0, 1]."""
        return probability(self.bias + sum(self.terms(features).values()))


def probability(log_odds: float) -> float:
    """Return the probability of some log-odds; it overflows nowhere.

    >>> probability(0.0), probability(-1e9), probability(1e9)
    (0.5, 0.0, 1.0)
    """
    if log_odds >= 0.0:
        return 1.0 / (1.0 + math.exp(-log_odds))
    odds = math.exp(log_odds)
    return odds / (1.0 + odds)


def logit(score: float) -> float:
    """Return the log-odds of a score in [0, 1], at most 36 from 0: beyond that a float is 0 or 1.

    >>> logit(0.5), logit(1.0), logit(0.0)
    (0.0, 36.0, -36.0)
    """
    if score <= 0.0:
        return -36.0
    return 36.0 if score >= 1.0 else max(-36.0, min(36.0, math.log(score / (1.0 - score))))
