"""What a window of intents is worth: a score in [0, 1], its class, and what raised it."""

from __future__ import annotations

import math
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import force_setattr

__all__ = ("CRITICAL", "GRAY_ZONE", "SUSPICIOUS", "AnomalyClass", "AnomalyResult", "class_of")

SUSPICIOUS, CRITICAL = 0.40, 0.75
"""Scores from which a window is suspicious, and critical. Source: axor-classifier-llm, "AnomalyResult contract"."""

GRAY_ZONE = 0.50
"""Score from which a suspicious window is worth a second opinion. Source: as above, its escalation table."""


class AnomalyClass(StrEnum):
    """The class of a score: NORMAL below 0.40, SUSPICIOUS from 0.40, CRITICAL from 0.75."""

    NORMAL = "normal"
    SUSPICIOUS = "suspicious"
    CRITICAL = "critical"


class AnomalyResult(Struct, frozen=True, gc=False):
    """A score in [0, 1], its class, and the reasons, those first that weigh most.

    Raises ValueError when the score is not a number in [0, 1].

    >>> AnomalyResult(0.55, AnomalyClass.SUSPICIOUS).reasons
    ()
    """

    score: float
    cls: AnomalyClass
    reasons: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not (math.isfinite(self.score) and 0.0 <= self.score <= 1.0):
            raise ValueError(f"an anomaly score is in [0, 1], not {self.score}")
        force_setattr(self, "cls", AnomalyClass(self.cls))


def class_of(score: float, *, suspicious: float = SUSPICIOUS, critical: float = CRITICAL) -> AnomalyClass:
    """Return the class of a score.

    >>> class_of(0.75).value, class_of(0.7499).value, class_of(0.39).value
    ('critical', 'suspicious', 'normal')
    """
    if score >= critical:
        return AnomalyClass.CRITICAL
    return AnomalyClass.SUSPICIOUS if score >= suspicious else AnomalyClass.NORMAL
