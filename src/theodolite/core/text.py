r"""Text that can be written anywhere, and does nothing there.

Lone surrogates are taken by no UTF-8 file, database or terminal. What somebody else wrote may also hold sequences that
a terminal obeys, ends of lines that forge a line of a log, characters that nobody sees or that turn a line around.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ("brief", "encodable", "inert", "printable")

# Letters and marks that are printable by their category and yet show nothing (Default_Ignorable_Code_Point of Unicode).
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
# No written language stacks more marks on one letter; a tower of them covers the lines above.
_MARKS = 4
# `##vso[`, `##[` and `##teamcity[` count anywhere in a line; `::error` where a line begins, which wrapping may move.
_COMMAND = re.compile(r"#(?=#[\w.]*\[)|:(?=:[A-Za-z])")
# Characters of a value that an error shows: enough to find it by, and less than any key has.
_SHOWN = 20


def brief(value: object) -> str:
    """Return a value as an error may show it: its first 20 characters, inert, and of what has no text its type.

    >>> print(brief("warm"), brief("x" * 30), brief(3), brief([]))
    'warm' 'xxxxxxxxxxxxxxxxxxxx…' 3 list
    """
    if isinstance(value, str):
        return inert(repr(value if len(value) <= _SHOWN else f"{value[:_SHOWN]}\N{HORIZONTAL ELLIPSIS}"))
    if value is None or isinstance(value, bool | float):
        return repr(value)
    return repr(value) if isinstance(value, int) and abs(value) < 10**_SHOWN else type(value).__name__


def encodable(text: str) -> bool:
    """Whether the text is free of lone surrogates."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def inert(text: str, limit: int | None = None) -> str:
    r"""Return text that shows what it holds and does nothing, on one line and of at most about `limit` characters.

    What is not printable, or is not seen, is spelled out as Python does; a backslash of the text stays as it is, so
    that the original cannot be told from the result: that is what the JSON forms are for.

    >>> print(inert("\x1b[2J\u202e[red]two\nlines"))
    \x1b[2J\u202e[red]two\nlines
    >>> print(inert("##vso[task.complete] ::error::", 24))
    \x23#vso[task.complete] ... [30 characters]
    """
    shown = _spelled(text if limit is None else text[:limit])
    if limit is None or len(shown) <= limit >= len(text):
        return shown
    return f"{shown[:limit]}... [{len(text)} characters]"


def printable(text: str) -> str:
    r"""Return the text with each lone surrogate spelled out.

    >>> print(printable("a\ud800b"))
    a\ud800b
    """
    return text if encodable(text) else text.encode("utf-8", "backslashreplace").decode()


def _spelled(text: str) -> str:
    if not text.isascii():
        text = _without_unseen(text)
    elif not text.isprintable():
        text = "".join([char if char.isprintable() else _spell(char) for char in text])
    return _COMMAND.sub(lambda match: _spell(match[0]), text) if "##" in text or "::" in text else text


def _without_unseen(text: str) -> str:
    shown: list[str] = []
    marks = 0
    for char in text:
        marks = marks + 1 if unicodedata.category(char) in {"Mn", "Me"} else 0
        seen = char.isprintable() and marks <= _MARKS and not _UNSEEN.match(char)
        shown.append(char if seen else _spell(char))
    return "".join(shown)


def _spell(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii") if not " " <= char <= "~" else f"\\x{ord(char):02x}"
