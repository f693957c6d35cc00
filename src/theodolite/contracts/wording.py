"""What was said before and what is said now, side by side, so that no difference is out of sight."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from msgspec import UNSET, UnsetType

from theodolite.contracts.digest import canonical

__all__ = ("changed", "replaced", "shown")

# Characters of each side that are shown; of them how many before the place where both part, and how many may be before
# it for the whole to be shown (our choice): two sides and a keyword fit into the 400 that a report has for a finding.
_SIDE, _BEFORE, _WHOLE = 160, 24, 60
_ARROW = " -> "
_MORE = "\N{HORIZONTAL ELLIPSIS}"
# Printable by their category, and yet they show nothing (Default_Ignorable_Code_Point of Unicode), or a blank.
_UNSEEN = re.compile(
    "[\u00a0\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_WORD = re.compile(r"\w+")
_SPELLED = {"\\": "\\\\", '"': '\\"'}


def changed(before: object, after: object) -> str:
    r"""Return two values of contracts, text in quotes and all else as JSON, from just before the place where they part.

    UNSET stands for none. What of a text is not seen is spelled out as Python does: what is not printable, letters that
    another script lends to a word, an arrow as that between the sides, and, where both sides look the same otherwise,
    all that is not ASCII. At most some 370 characters; a side that is cut short says of how many characters it is.

    >>> print(changed("Reads a file.", "Reads a\u200b file.\n"))
    "Reads a file." -> "Reads a\u200b file.\n"
    >>> print(changed(UNSET, True), "and", changed("a" * 999 + "b", "a" * 999 + "c"))
    none -> true and "…aaaaaaaaaaaaaaaaaaaaaaaab" -> "…aaaaaaaaaaaaaaaaaaaaaaaac"
    """
    mine, theirs = _text(before), _text(after)
    apart = _common(mine, theirs)
    start = apart - _BEFORE if apart > _WHOLE else 0
    plain = not (mine.isascii() and theirs.isascii()) and _folded(mine) == _folded(theirs)
    sides = [_side(value, text, start, apart, plain=plain) for value, text in ((before, mine), (after, theirs))]
    return _ARROW.join(sides)


def replaced(before: Sequence[object], after: Sequence[object]) -> str:
    """Return the same of values that one place has several of: those that went, and those that came."""
    return changed(_one(before), _one(after))


def shown(value: object) -> str:
    """Return one value alone in the same form.

    >>> print(shown(["a", 1]))
    ["a",1]
    """
    return _side(value, _text(value), 0, 0, plain=False)


def _one(values: Sequence[object]) -> object:
    return values[0] if len(values) == 1 else list(values) if values else UNSET


def _text(value: object) -> str:
    if isinstance(value, UnsetType):
        return "none"
    return value if isinstance(value, str) else canonical(value).decode(errors="replace")


def _common(mine: str, theirs: str) -> int:
    """Return how many characters both begin with, in steps of half the rest."""
    low, high = 0, min(len(mine), len(theirs))
    while low < high:
        middle = (low + high + 1) // 2
        if mine[low:middle] == theirs[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _folded(text: str) -> str:
    return "".join(unicodedata.normalize("NFKC", text).split()).casefold()


def _side(value: object, text: str, start: int, apart: int, *, plain: bool) -> str:
    quote = '"' if isinstance(value, str) else ""
    shown = _spelled(text[start : start + _SIDE], plain=plain, quoted=bool(quote))
    # What both have in common is cut first: spelled out it may be long.
    common, own = "".join(shown[: apart - start]), "".join(shown[apart - start :])
    room = _SIDE - min(len(common), _SIDE // 2)
    cut = len(text) > start + _SIDE or len(own) > room
    head = _MORE if start or len(common) > _SIDE // 2 else ""
    tail = f"{_MORE}{quote} ({len(text):,} characters)" if cut else quote
    return f"{quote}{head}{common[-(_SIDE // 2) :]}{own[:room]}{tail}"


def _spelled(text: str, *, plain: bool, quoted: bool) -> list[str]:
    lent = {place for word in _WORD.finditer(text) for place in _lent(word)} if not text.isascii() else set[int]()
    return [
        _spell(char)
        if not char.isprintable()
        or place in lent
        or _UNSEEN.match(char)
        or (plain and not char.isascii())
        or (char == ">" and text[max(0, place - 2) : place + 2] == _ARROW)
        else _SPELLED.get(char, char)
        if quoted
        else char
        for place, char in enumerate(text)
    ]


def _lent(word: re.Match[str]) -> list[int]:
    """Return where letters of another script stand in a word with letters of Latin, which they may be taken for."""
    text = word[0]
    if text.isascii() or not any(char.isascii() and char.isalpha() for char in text):
        return []
    return [
        word.start() + place
        for place, char in enumerate(text)
        if char.isalpha() and not unicodedata.name(char, "").startswith("LATIN")
    ]


def _spell(char: str) -> str:
    return f"\\x{ord(char):02x}" if char == ">" else char.encode("unicode_escape").decode("ascii")
