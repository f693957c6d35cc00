"""What a rule finds: a stretch of text and the kind of thing that it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import NamedTuple

__all__ = ("PLACEHOLDER", "Kind", "Locate", "Span", "placeholder", "splice")


class Kind(StrEnum):
    """The word in a placeholder. Where two finds overlap, the one that stands first here names both."""

    CANARY = "CANARY"
    PRIVATE_KEY = "PRIVATE_KEY"
    JWT = "JWT"
    API_KEY = "API_KEY"
    CREDENTIALS = "CREDENTIALS"
    PASSWORD = "PASSWORD"  # noqa: S105 - the name of a kind, not a password
    SECRET = "SECRET"  # noqa: S105 - as above
    EMAIL = "EMAIL"
    IBAN = "IBAN"
    CARD = "CARD"
    SSN = "SSN"
    IPV6 = "IPV6"
    IPV4 = "IPV4"
    PHONE = "PHONE"
    TEXT = "TEXT"
    UNKNOWN_FIELD = "UNKNOWN_FIELD"
    UNKNOWN_VALUE = "UNKNOWN_VALUE"


class Span(NamedTuple):
    """The characters from `start` up to but not including `end`."""

    start: int
    end: int
    kind: Kind


Locate = Callable[[int], int]
"""Turns a position in the text that rules read into one in the text that was given."""

PLACEHOLDER = re.compile(r"\[REDACTED:[A-Z_]{1,32}\]")
_RANK = {kind: rank for rank, kind in enumerate(Kind)}


def placeholder(kind: Kind) -> str:
    """Return what stands in the place of a thing of this kind.

    >>> placeholder(Kind.EMAIL)
    '[REDACTED:EMAIL]'
    """
    return f"[REDACTED:{kind}]"


def splice(text: str, spans: Iterable[Span], locate: Locate) -> str:
    """Return the text with a placeholder for each span; spans that overlap become one."""
    pieces: list[str] = []
    done = 0
    for span in _united(spans):
        start = locate(span.start)
        pieces += (text[done:start], placeholder(span.kind))
        done = locate(span.end)
    pieces.append(text[done:])
    return "".join(pieces)


def _united(spans: Iterable[Span]) -> list[Span]:
    united: list[Span] = []
    for span in sorted(spans):
        last = united[-1] if united else None
        if last is None or span.start >= last.end:
            united.append(span)
        else:
            kind = min(last.kind, span.kind, key=_RANK.__getitem__)
            united[-1] = Span(last.start, max(last.end, span.end), kind)
    return united
