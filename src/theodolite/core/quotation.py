"""What a quotation may show of the text that it was taken from: what that text, scrubbed as a whole, shows there."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

__all__ = ("MARK", "Hidden", "Whole", "spliced")

MARK = re.compile(r"\[REDACTED:[A-Z0-9_]+\]|\[[A-Z0-9_]+:[0-9a-f]{4,16}\]")
"""What stands in the place of something redacted."""

_ENDS = re.compile(MARK.pattern + r"|\u2026$| \[CUT: [0-9]+ characters\]")
_HIDDEN = "[REDACTED:TEXT]"
# A lone surrogate, which no text of an event has in it: it keeps apart what does not stand side by side.
_GAP = "\ud800"
# A piece that stands in more places than these is hidden whole: so the search stays linear in the text. Our choice.
_MOST_PLACES = 32


class Hidden(NamedTuple):
    """The characters from `start` up to but not including `end` are not to be shown, and `shown` takes their place."""

    start: int
    end: int
    shown: str


def spliced(text: str, hidden: Iterable[Hidden]) -> str:
    """Return a text without what is hidden in it; of what overlaps, the first says what is shown.

    >>> spliced("card 4111", [Hidden(5, 9, "[REDACTED:CARD]")])
    'card [REDACTED:CARD]'
    """
    pieces: list[str] = []
    done = 0
    for start, end, shown in sorted(hidden):
        if start >= done:
            pieces += (text[done:start], shown)
        done = max(done, end)
    pieces.append(text[done:])
    return "".join(pieces)


class Whole:
    """A text and what a redactor left of it, for pieces of the text to be held against.

    A redactor answers with text alone. Where that is the given text with marks in some places, it is told from it which
    places these are. Where more than one set of places would do, it takes the first: what a piece then shows is text
    that the whole shows too. Of any other answer a piece is shown only if all that is left of it stands there in the
    same order.

    Cost: linear in the text once, and linear for each piece.

    >>> whole = Whole("my card is 4111 1111, my name Bob", "my card is [REDACTED:CARD], my name Bob")
    >>> whole.shows("my name"), whole.shows("1111")
    (True, False)
    >>> list(whole.over("is 4111"))
    [Hidden(start=3, end=7, shown='[REDACTED:CARD]')]
    """

    def __init__(self, text: str, scrubbed: str) -> None:
        self._text = text
        self._scrubbed = scrubbed
        self._hidden = _hidden(text, scrubbed)
        self._starts = [hidden.start for hidden in self._hidden or ()]
        self._visible = spliced(text, [Hidden(start, end, _GAP) for start, end, _ in self._hidden or ()])

    def shows(self, piece: str, passed: str | None = None) -> bool:
        """Whether a piece stands somewhere in the text where nothing of it is hidden. `passed` is it, scrubbed."""
        if self._hidden is None:
            return _in_order(piece if passed is None else passed, self._scrubbed)
        return piece in self._visible

    def over(self, piece: str) -> Iterator[Hidden]:
        """Yield what of a piece is hidden in the places where it stands; all of it, where that cannot be told."""
        everything = Hidden(0, len(piece), _HIDDEN)
        if self._hidden is None:
            yield everything
            return
        at = self._text.find(piece)
        for _ in range(_MOST_PLACES):
            if at < 0:
                return
            yield from self._within(at, at + len(piece))
            at = self._text.find(piece, at + 1)
        if at >= 0:
            yield everything

    def _within(self, start: int, end: int) -> Iterator[Hidden]:
        hidden = self._hidden or ()
        number = max(0, bisect_right(self._starts, start) - 1)
        while number < len(hidden) and hidden[number].start < end:
            first, last, shown = hidden[number]
            if last > start:
                yield Hidden(max(first, start) - start, min(last, end) - start, shown)
            number += 1


def _hidden(text: str, scrubbed: str) -> tuple[Hidden, ...] | None:
    """Return which places of a text are hidden in what was left of it; None if these are not the same text."""
    if text == scrubbed:
        return ()
    marks, clear = MARK.findall(scrubbed), MARK.split(scrubbed)
    if not (marks and text.startswith(clear[0]) and text.endswith(clear[-1])):
        return None
    hidden: list[Hidden] = []
    at = len(clear[0])
    for number, mark in enumerate(marks, 1):
        # What follows a mark begins behind one character at least: a mark stands for something.
        last = number == len(marks)
        start = len(text) - len(clear[-1]) if last else text.find(clear[number], at + 1)
        if start <= at:
            return None
        hidden.append(Hidden(at, start, mark))
        at = start + len(clear[number])
    return tuple(hidden)


def _in_order(piece: str, whole: str) -> bool:
    """Whether all that a scrubbed piece shows stands in the scrubbed text around it, in that order."""
    at = 0
    for shown in _ENDS.split(piece):
        at = whole.find(shown, at)
        if at < 0:
            return False
        at += len(shown)
    return True
