r"""What a session said, made inert for where it is written.

A session may hold anything: sequences that a terminal obeys, characters that nobody sees or that turn a line around,
lines that a CI system takes as a command to itself. Everything that a report shows goes through `inert`, everything
that it writes as HTML, SVG or XML through `escaped`, as JSON through `ascii_json`.
"""

from __future__ import annotations

import html
import re
import unicodedata

__all__ = ("ascii_json", "escaped", "inert")

# Letters and marks that are printable by their category and yet show nothing (Default_Ignorable_Code_Point of Unicode).
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
# No written language stacks more marks on one letter; a tower of them covers the lines above.
_MARKS = 4
# `##vso[`, `##[` and `##teamcity[` count anywhere in a line; `::error` where a line begins, which wrapping may move.
_COMMAND = re.compile(r"#(?=#[\w.]*\[)|:(?=:[A-Za-z])")
# In JSON these stand in strings alone: what is not ASCII and what a CI system reads, and what HTML reads.
_NOT_PLAIN = re.compile(r"[^\n\x20-\x7e]|#(?=#)|:(?=:[A-Za-z])")
_MARKUP = "<>&"


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


def escaped(text: str, limit: int | None = None) -> str:
    r"""Return inert text for HTML, SVG or XML, between tags and between the quotes of an attribute alike.

    What `inert` leaves is printable, so that each character is one that XML 1.0 allows (section 2.2).

    >>> print(escaped('<b title="x">\0'))
    &lt;b title=&quot;x&quot;&gt;\x00
    """
    return html.escape(inert(text, limit))


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


def ascii_json(document: bytes) -> bytes:
    r"""Return JSON that says the same in plain ASCII, and in which neither HTML nor a CI system finds anything.

    >>> print(ascii_json('{"a":"<b> é \U0001f600 ##[x]"}'.encode()).decode())
    {"a":"\u003cb\u003e \u00e9 \ud83d\ude00 \u0023#[x]"}
    """
    text = _NOT_PLAIN.sub(_units, document.decode())
    for char in _MARKUP:
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text.encode("ascii")


def _units(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code <= 0xFFFF:  # noqa: PLR2004 - the end of the basic plane: JSON escapes are UTF-16 (RFC 8259, section 7)
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
