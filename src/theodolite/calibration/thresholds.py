"""The threshold of one code: above all but a stated share of the clean sessions, and what it lets through elsewhere."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from theodolite.calibration.sample import FOLDS, Known, Sample
from theodolite.core.assessment import Threshold
from theodolite.stats.conformal import threshold
from theodolite.stats.interval import clopper_pearson

__all__ = ("fitted", "least")


def least(alpha: float) -> int:
    """Return the least number of clean sessions with which alpha can be promised: 1 / alpha - 1.

    >>> least(0.01), least(0.005)
    (99, 199)
    """
    return math.ceil(1.0 / alpha - 1.0 - 1e-9)


def fitted(code: str, samples: Iterable[Sample], alpha: float) -> Threshold | None:
    """Return the threshold of a code at alpha; None where the clean sessions are too few for it (`least`).

    For a new clean session, exchangeable with these, the chance that its highest score reaches it is at most alpha
    (`stats.conformal`). Raises ValueError for an alpha that is not between 0 and 1.
    """
    clean = [one for one in samples if one.known is Known.CLEAN]
    alert = _alert(code, clean, alpha)
    if alert is None:
        return None
    judged = above = 0
    for fold in range(FOLDS):
        held_back = [one for one in clean if one.fold == fold]
        apart = _alert(code, [one for one in clean if one.fold != fold], alpha)
        if apart is not None:
            judged += len(held_back)
            above += sum(one.score(code) >= apart for one in held_back)
    low, _ = clopper_pearson(above, judged) if judged else (0.0, 1.0)
    return Threshold(alpha=alpha, alert=alert, n=len(clean), out_of_fold=above, judged=judged, low=low)


def _alert(code: str, clean: Sequence[Sample], alpha: float) -> float | None:
    above = threshold([one.score(code) for one in clean], alpha)
    # An alarm is at or over the threshold, and a new session exceeds this score with at most that chance. None of it
    # may be over 1, where no score alarms: then the code has nothing to say at this alpha.
    return None if above is None else math.nextafter(above, math.inf)
