"""What an option may be, where it is one of a few words."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple, TypeVar

import typer

__all__ = ("Form", "Jobs", "Reached", "Retold", "ShortForm", "alternatives", "jobs_of", "one_of")

_E = TypeVar("_E", bound=StrEnum)

# More processes than the largest machines have cores for are a slip.
_MOST_JOBS = 64
_DASK = re.compile(r"dask://(?P<host>\[[0-9a-fA-F:.]+\]|[^/:\[\]]+):(?P<port>\d{1,5})/?\Z", re.ASCII)


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


class Jobs(NamedTuple):
    """Who works: how many processes of this machine, or the cluster of a Dask scheduler."""

    processes: int = 1
    scheduler: str = ""

    def __str__(self) -> str:
        """Return it as it is written."""
        return f"dask://{self.scheduler}" if self.scheduler else str(self.processes)

    @property
    def alone(self) -> bool:
        """Whether this process does all of it."""
        return self.processes == 1 and not self.scheduler


def jobs_of(text: str) -> Jobs:
    """Return what `--jobs` names. Raises typer.BadParameter for what is neither a number nor a scheduler.

    >>> jobs_of("4").processes, jobs_of("dask://127.0.0.1:8786").scheduler
    (4, '127.0.0.1:8786')
    """
    text = str(text)  # typer gives the default in its own type
    if (found := _DASK.match(text)) and 0 < int(found["port"]) < 2**16:
        return Jobs(scheduler=f"{found['host']}:{int(found['port'])}")
    if text.isascii() and text.isdigit() and 1 <= int(text[:4]) <= _MOST_JOBS:
        return Jobs(processes=int(text))
    raise typer.BadParameter(f"{text!r} is neither a number from 1 to {_MOST_JOBS} nor dask://HOST:PORT")


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
