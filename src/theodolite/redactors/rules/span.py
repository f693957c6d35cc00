"""What a rule finds: a stretch of text and the kind of thing that it is."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import NamedTuple

__all__ = ("PLACEHOLDER", "Cut", "Kind", "Label", "Span", "placeholder")


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


Label = Callable[[Kind, str], str]
"""Returns what stands in the place of a piece of text of some kind."""

PLACEHOLDER = re.compile(r"\[REDACTED:[A-Z_]{1,32}\]")
_RANK = {kind: rank for rank, kind in enumerate(Kind)}


def placeholder(kind: Kind, piece: str = "") -> str:
    """Return what stands in the place of any thing of this kind.

    >>> placeholder(Kind.EMAIL)
    '[REDACTED:EMAIL]'
    """
    del piece
    return f"[REDACTED:{kind}]"


class Cut:
    """A text with placeholders for some spans of it; spans that overlap are one.

    >>> cut = Cut("write to bob@example.com", [Span(9, 24, Kind.EMAIL)])
    >>> cut.text
    'write to [REDACTED:EMAIL]'
    >>> cut.more([Span(6, 12, Kind.TEXT)]).text
    'write [REDACTED:EMAIL]'
    """

    def __init__(self, original: str, spans: Sequence[Span] = ()) -> None:
        self._original = original
        self._spans = _united(spans)
        self.text = self.labeled(placeholder) if spans else original

    def labeled(self, label: Label) -> str:
        """Return the text with other placeholders."""
        pieces: list[str] = []
        done = 0
        for start, end, kind in self._spans:
            pieces += (self._original[done:start], label(kind, self._original[start:end]))
            done = end
        pieces.append(self._original[done:])
        return "".join(pieces)

    def more(self, found: Sequence[Span]) -> Cut:
        """Return the same with what was found in its text taken away too."""
        if not self._spans:
            return Cut(self._original, found)
        starts: list[int] = []
        ends: list[int] = []
        longer = 0
        for start, end, kind in self._spans:
            starts.append(start + longer)
            longer += len(placeholder(kind)) - (end - start)
            ends.append(end + longer)

        def place(position: int) -> tuple[int, int]:
            """Return where in the original begins and ends what stands at a position: a placeholder is one thing."""
            number = bisect_right(starts, position) - 1
            if number < 0:
                return position, position + 1
            start, end, _ = self._spans[number]
            if position < ends[number]:
                return start, end
            at = end + position - ends[number]
            return at, at + 1

        back = [Span(place(start)[0], place(end - 1)[1], kind) for start, end, kind in found]
        return Cut(self._original, self._spans + back)


def _united(spans: Sequence[Span]) -> list[Span]:
    united: list[Span] = []
    for span in sorted(spans):
        last = united[-1] if united else None
        if last is None or span.start >= last.end:
            united.append(span)
        else:
            kind = min(last.kind, span.kind, key=_RANK.__getitem__)
            united[-1] = Span(last.start, max(last.end, span.end), kind)
    return united
