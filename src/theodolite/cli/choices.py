"""What an option may be, where it is one of a few words."""

from __future__ import annotations

from enum import StrEnum

__all__ = ("Form", "Reached", "ShortForm")


class Form(StrEnum):
    """The forms of a report."""

    TEXT = "text"
    JSON = "json"
    JSONL = "jsonl"


class Reached(StrEnum):
    """The actions that `--fail-on` takes."""

    ELEVATED_REVIEW = "elevated_review"
    RESTRICTED_MODE = "restricted_mode"


class ShortForm(StrEnum):
    """The forms of an answer that is no report."""

    TEXT = "text"
    JSON = "json"
