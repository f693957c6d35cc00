"""In which forms an account of contracts is given, and from where on what it says counts."""

from __future__ import annotations

from enum import StrEnum

__all__ = ("Graded", "Heavy", "Told")


class Told(StrEnum):
    """The forms of an account."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"
    JUNIT = "junit"


class Heavy(StrEnum):
    """How much a note of `lint` matters, from which on it counts."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Graded(StrEnum):
    """How bad a change is, from which on it counts."""

    BREAKING = "breaking"
    WIDENING = "widening"
    TEXT_ONLY = "text_only"
