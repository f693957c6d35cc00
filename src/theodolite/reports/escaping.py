r"""What a session said, made inert for where it is written.

A session may hold anything: sequences that a terminal obeys, characters that nobody sees or that turn a line around,
lines that a CI system takes as a command to itself. Everything that a report shows goes through `inert`, everything
that it writes as HTML, SVG or XML through `escaped`, as JSON through `ascii_json`.
"""

from __future__ import annotations

import html
import re

from theodolite.core.text import inert

__all__ = ("ascii_json", "escaped", "inert")

# In JSON these stand in strings alone: what is not ASCII and what a CI system reads, and what HTML reads.
_NOT_PLAIN = re.compile(r"[^\n\x20-\x7e]|#(?=#)|:(?=:[A-Za-z])")
_MARKUP = "<>&"


def escaped(text: str, limit: int | None = None) -> str:
    r"""Return inert text for HTML, SVG or XML, between tags and between the quotes of an attribute alike.

    What `inert` leaves is printable, so that each character is one that XML 1.0 allows (section 2.2).

    >>> print(escaped('<b title="x">\0'))
    &lt;b title=&quot;x&quot;&gt;\x00
    """
    return html.escape(inert(text, limit))


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
