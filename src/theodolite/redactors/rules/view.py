r"""The text as rules read it: disguises taken off, finds hidden, and the way back to the original.

Width forms, styled letters and foreign digits become the plain character, every dash `-`, every space a space;
characters that show nothing (zero-width, soft hyphen, NUL) are left out; `&#64;`, `&commat;`, `%40`, `\u0040`, `\x40`,
`[at]`, `(dot)` and the escapes `\n`, `\r`, `\t` are read as what they stand for, also where they were encoded up to
four times over, as in `%2540` and `&amp;#64;`. Letters of another script that merely look alike get through.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable

from theodolite.redactors.rules.span import PLACEHOLDER, Span

__all__ = ("HIDDEN", "View", "holds")

HIDDEN = "\0"
"""Stands for each character that is already redacted. No rule matches it in what it looks for."""

_GONE = "\N{SOFT HYPHEN}"
_SHOWING_NOTHING = "\N{COMBINING GRAPHEME JOINER}\N{HANGUL FILLER}"
# By category. In Hindi, Thai and others, marks are parts of words, which `\w` does not know: any letter does for them.
_LETTER = "\N{MODIFIER LETTER APOSTROPHE}"
_PLAIN = {"Zs": " ", "Pd": "-", "Mn": _LETTER, "Mc": _LETTER, "Me": _LETTER}
_NAMED = {
    "amp": "&",
    "apos": "'",
    "colon": ":",
    "commat": "@",
    "dash": "-",
    "equals": "=",
    "gt": ">",
    "hyphen": "-",
    "lowbar": "_",
    "lt": "<",
    "nbsp": " ",
    "num": "#",
    "period": ".",
    "plus": "+",
    "quot": '"',
    "shy": "",
    "sol": "/",
    "zwj": "",
    "zwnj": "",
}
_SPELLED = {"at": "@", "dot": "."}
# The letter of an escaped line break would otherwise be the first of the word behind it.
_BLANK = {"n": "\n", "r": "\n", "t": " "}
_DISGUISE = re.compile(
    rf"{_GONE}+"
    r"|&(?:amp;){0,3}(?:#(?P<decimal>[0-9]{1,7})|#[xX](?P<hexadecimal>[0-9A-Fa-f]{1,6})"
    rf"|(?P<named>{'|'.join(_NAMED)}));"
    r"|(?:%(?:25){0,3}|\\{1,4}(?:x|u00))(?P<ascii>[2-7][0-9A-Fa-f])"
    r"|\\{1,4}(?P<blank>[nrt])"
    r"|[ ]?[\[(](?P<spelled>at|dot|AT|DOT)[\])][ ]?"
)
_SIGNS = ("&", "%", "\\", _GONE, "[at]", "(at)", "[dot]", "(dot)", "[AT]", "(AT)", "[DOT]", "(DOT)")


def holds(text: str, signs: Iterable[str]) -> bool:
    """Whether one of some signs is in a text. Most texts hold none, and this is asked of each."""
    for sign in signs:  # noqa: SIM110 - `any` and a generator take twice the time
        if sign in text:
            return True
    return False


class View:
    """One text as rules read it; `chars` and its `lower` case have equal length.

    Cost: linear; ASCII text without a disguise is taken as it is.

    >>> View("bob&#64;example.com").chars
    'bob@example.com'
    """

    def __init__(self, original: str, placeholders: re.Pattern[str] = PLACEHOLDER) -> None:
        self._length = len(original)
        self._view: list[int] = []
        self._original: list[int] = []
        chars = original if original.isascii() else original.translate(_folds(original))
        if HIDDEN in chars:
            chars = chars.replace(HIDDEN, _GONE)
        if holds(chars, _SIGNS):
            chars = self._undisguised(chars)
        if "[" in chars:
            chars = placeholders.sub(lambda found: HIDDEN * len(found[0]), chars)
        self.chars = chars
        self.lower = chars.lower()

    def locate(self, position: int) -> int:
        """Return where in the original the character at this position begins."""
        if position == len(self.chars):
            return self._length
        at = bisect_right(self._view, position) - 1
        return position if at < 0 else self._original[at] + position - self._view[at]

    def hide(self, spans: Iterable[Span]) -> None:
        """Keep later rules from finding any of it again."""
        pieces: list[str] = []
        done = 0
        for start, end, _ in sorted(spans):
            if end > done:
                start = max(start, done)  # noqa: PLW2901 - the part that an earlier span hides is done
                pieces += (self.chars[done:start], HIDDEN * (end - start))
                done = end
        pieces.append(self.chars[done:])
        self.chars = "".join(pieces)
        self.lower = self.chars.lower()

    def _undisguised(self, chars: str) -> str:
        pieces: list[str] = []
        done = length = 0
        for found in _DISGUISE.finditer(chars):
            meant = _meaning(found)
            if meant is None:
                continue
            kept = chars[done : found.start()]
            done = found.end()
            length += len(kept) + len(meant)
            pieces += (kept, meant)
            self._view.append(length)
            self._original.append(done)
        pieces.append(chars[done:])
        return "".join(pieces)


def _folds(text: str) -> dict[int, str]:
    """Return the plain form of each character that has one. Always one for one, so that positions stay."""
    return {ord(char): plain for char in set(text) if char > "\x7f" and (plain := _plain(char)) != char}


def _plain(char: str) -> str:
    category = unicodedata.category(char)
    if category == "Cf" or char in _SHOWING_NOTHING or _is_variation(char):
        plain = _GONE
    elif category == "Nd":
        plain = str(unicodedata.decimal(char))
    elif category in _PLAIN:
        plain = _PLAIN[category]
    else:
        plain = unicodedata.normalize("NFKC", char)
    if len(plain) != 1:
        return char
    # The one letter whose lower case is longer than itself.
    return "I" if plain == "\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}" else plain


def _is_variation(char: str) -> bool:
    return "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"


def _meaning(found: re.Match[str]) -> str | None:
    """Return the character that a disguise stands for, "" if it shows nothing, None if it is no disguise."""
    kind = found.lastgroup
    if kind is None:
        return ""
    written = found[kind]
    if kind == "blank":
        return _BLANK[written]
    if kind == "named":
        return _NAMED[written]
    if kind == "spelled":
        return _SPELLED[written.lower()]
    code = int(written, 10 if kind == "decimal" else 16)
    if not ord(" ") <= code <= sys.maxunicode:
        return None
    char = chr(code)
    plain = char if char.isascii() else _plain(char)
    return "" if plain == _GONE else plain
