"""What a window of intents is worth: a score in [0, 1], its class, and what raised it."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct
from msgspec.structs import force_setattr

from theodolite.core.arguments import is_sequence
from theodolite.core.text import brief

__all__ = ("CRITICAL", "DISAGREE", "GRAY_ZONE", "SUSPICIOUS", "AnomalyClass", "AnomalyResult", "class_of")

SUSPICIOUS, CRITICAL = 0.40, 0.75
"""Scores from which a window is suspicious, and critical. Source: axor-classifier-llm, "AnomalyResult contract"."""

GRAY_ZONE = 0.50
"""Score from which a suspicious window is worth a second opinion. Source: as above, its escalation table."""

DISAGREE = "score_and_class_disagree"
"""The reason that a result gains whose score and class contradicted each other."""


class AnomalyClass(StrEnum):
    """The class of a score: NORMAL below 0.40, SUSPICIOUS from 0.40, CRITICAL from 0.75."""

    NORMAL = "normal"
    SUSPICIOUS = "suspicious"
    CRITICAL = "critical"


class AnomalyResult(Struct, frozen=True, gc=False, repr_omit_defaults=True):
    """A score in [0, 1], its class, and the reasons, those first that weigh most.

    `suspicious` and `critical` are the thresholds that the class goes by. Where score and class contradict each other,
    whoever made them, the worse of them holds: the class of the score, or the least score of the class; and the reasons
    say so. Raises ValueError when the score or a threshold is not a number in [0, 1], for what is no class, and for
    reasons that are not a list of texts.

    >>> AnomalyResult(0.55, AnomalyClass.SUSPICIOUS).reasons
    ()
    >>> AnomalyResult(0.05, AnomalyClass.CRITICAL)
    AnomalyResult(score=0.75, cls=<AnomalyClass.CRITICAL: 'critical'>, reasons=('score_and_class_disagree',))
    """

    score: float
    cls: AnomalyClass
    reasons: tuple[str, ...] = ()
    suspicious: float = SUSPICIOUS
    critical: float = CRITICAL

    def __post_init__(self) -> None:
        for name in _NUMBERS:
            force_setattr(self, name, _share(name, getattr(self, name)))
        force_setattr(self, "cls", AnomalyClass(self.cls))
        force_setattr(self, "reasons", _texts(self.reasons))
        if self.cls is not self._class_of(self.score):
            self._reconcile()

    def _class_of(self, score: float) -> AnomalyClass:
        return class_of(score, suspicious=self.suspicious, critical=self.critical)

    def _reconcile(self) -> None:
        least = {
            AnomalyClass.NORMAL: 0.0,
            AnomalyClass.SUSPICIOUS: self.suspicious,
            AnomalyClass.CRITICAL: self.critical,
        }
        score = max(self.score, least[self.cls])
        force_setattr(self, "score", score)
        force_setattr(self, "cls", self._class_of(score))
        force_setattr(self, "reasons", (*self.reasons, DISAGREE))


_NUMBERS = ("score", "suspicious", "critical")


def _share(name: str, value: object) -> float:
    # A bool is a whole number to Python; who gives one has mixed up two fields.
    if isinstance(value, int | float) and not isinstance(value, bool) and 0.0 <= value <= 1.0:
        return float(value)
    raise ValueError(f"an anomaly score is in [0, 1], not {brief(value)}: {name} of an AnomalyResult")


def _texts(given: object) -> tuple[str, ...]:
    if is_sequence(given):
        texts = [text for text in given if isinstance(text, str)]
        if len(texts) == len(given):
            return tuple(texts)
    raise ValueError(f"the reasons of an AnomalyResult are a tuple of texts, not {brief(given)}")


def class_of(score: float, *, suspicious: float = SUSPICIOUS, critical: float = CRITICAL) -> AnomalyClass:
    """Return the class of a score.

    >>> class_of(0.75).value, class_of(0.7499).value, class_of(0.39).value
    ('critical', 'suspicious', 'normal')
    """
    if score >= critical:
        return AnomalyClass.CRITICAL
    return AnomalyClass.SUSPICIOUS if score >= suspicious else AnomalyClass.NORMAL
