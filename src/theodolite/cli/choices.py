"""What an option may be, where it is one of a few words."""

from __future__ import annotations

from enum import StrEnum

__all__ = ("Form", "Reached", "Retold", "ShortForm")


class Form(StrEnum):
    """The forms of a report."""

    TEXT = "text"
    JSON = "json"
    JSONL = "jsonl"
    HTML = "html"
    JUNIT = "junit"
    SARIF = "sarif"
    PNG = "png"


class Reached(StrEnum):
    """The actions that `--fail-on` takes."""

    ELEVATED_REVIEW = "elevated_review"
    RESTRICTED_MODE = "restricted_mode"


class Retold(StrEnum):
    """The forms that a report can be given again."""

    HTML = "html"
    JUNIT = "junit"
    SARIF = "sarif"
    PNG = "png"


class ShortForm(StrEnum):
    """The forms of an answer that is no report."""

    TEXT = "text"
    JSON = "json"
