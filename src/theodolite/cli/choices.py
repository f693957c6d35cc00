"""What an option may be, where it is one of a few words."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import TypeVar

import typer

__all__ = ("Form", "Reached", "Retold", "ShortForm", "alternatives", "one_of")

_E = TypeVar("_E", bound=StrEnum)


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


def one_of(kind: type[_E]) -> Callable[[str], _E]:
    """Return what reads an option that is one of a few words: what typer says of another one is pydantic's wording."""

    def read(word: str) -> _E:
        try:
            return kind(word)
        except ValueError:
            raise typer.BadParameter(f"{str(word)!r} is none of {', '.join(kind)}") from None

    return read


def alternatives(kind: type[StrEnum]) -> str:
    """Return the words of an option as help shows them.

    >>> alternatives(ShortForm)
    '<text|json>'
    """
    return f"<{'|'.join(kind)}>"
