"""The threshold of one code: above all but a stated share of the clean sessions, and what it lets through elsewhere."""

from __future__ import annotations

import math

from msgspec.structs import replace

from theodolite.calibration.table import Rows, Table
from theodolite.core.assessment import Threshold
from theodolite.stats.conformal import threshold
from theodolite.stats.interval import exact_lower

__all__ = ("STRONGER", "fitted", "held_back")

STRONGER = 10
"""An alarm is strong that a tenth as many clean sessions would reach: ten times the evidence. Our choice."""

_PARTS = 10**6
# Of the lower bound of what was seen out of fold.
_CONFIDENCE = 0.05


def fitted(code: str, table: Table, rows: Rows, alpha: float) -> Threshold | None:
    """Return the threshold of a code at alpha; None where these clean sessions are too few for it (`least`).

    For a new clean session, exchangeable with these, the chance that its highest score reaches it is at most alpha
    (`stats.conformal`). One over 1 is reached by no score: the code has nothing to say at this alpha. Raises ValueError
    for an alpha that is not between 0 and 1.
    """
    scores = table.scores(code)
    alert = _alert([scores[row] for row in rows], alpha)
    if alert is None:
        return None
    folds = [[scores[row] for row in fold] for fold in table.folds(rows)]
    judged = above = 0
    for fold in folds:
        apart = _alert([score for other in folds if other is not fold for score in other], alpha)
        if apart is not None:
            judged += len(fold)
            above += sum(score >= apart for score in fold)
    strong = _alert([scores[row] for row in rows], alpha / STRONGER)
    return held_back(
        Threshold(alert=alert, alpha=alpha, n=len(rows), out_of_fold=above, judged=judged, low=0.0, strong=strong)
    )


def held_back(counted: Threshold) -> Threshold:
    """Return a threshold with the bound that what was counted out of fold gives."""
    k, n = counted.out_of_fold, counted.judged
    low = exact_lower(k, n, _CONFIDENCE) if n else 0.0
    return replace(counted, low=low)


def _alert(scores: list[float], alpha: float) -> float | None:
    above = threshold(scores, alpha)
    return None if above is None else _over(above)


def _over(score: float) -> float:
    """Return a threshold over a score: an alarm is at or over it, and a new session exceeds the score so seldom.

    It has six decimals, which a person can read, and is a little higher than need be; near 1 it has more.
    """
    over = math.floor(score * _PARTS + 1.0) / _PARTS
    return over if score < over < 1.0 else math.nextafter(score, math.inf)
