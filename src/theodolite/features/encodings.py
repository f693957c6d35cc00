"""Text that is written in another way: base64, hexadecimal, percent-encoding, HTML entities, escapes of JSON."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from html import unescape
from urllib.parse import unquote

__all__ = ("decoded",)

# 16 letters of base64 are 12 characters: hardly an address is shorter. No text in UTF-8 starts with + or /.
_SHORTEST = 16
_RUN = re.compile(rf"\b[A-Za-z0-9+/_-]{{{_SHORTEST},8192}}={{0,2}}")
# By byte: "a" for each character of a run, and so many of them.
_MARKED = bytes([ord("a") if re.match(rb"[A-Za-z0-9+/_-]", bytes([code])) else ord(" ") for code in range(256)])
_ENOUGH = b"a" * _SHORTEST
_HEX = re.compile(r"(?:[0-9a-fA-F]{2})+\Z")
_PERCENT = re.compile(r"%[0-9A-Fa-f]{2}")
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]{2,8});")
_ESCAPE = re.compile(r"\\(?:u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2})")
_ENDS = re.compile(r"[\s<>\"']")
# Of a word in which something is encoded, so many characters to each side.
_AROUND = 1_024
_RUNS = 64


def decoded(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and plain text of what is encoded in a text; up to 64 runs of each kind.

    Linear in the text. One encoding inside another is followed once. What decodes to no readable text is none, as with
    nearly every word and path.

    >>> list(decoded("run ZXZlQGV2aWwuZXhhbXBsZQ== now"))
    [(4, 28, 'eve@evil.example')]
    """
    if len(text) < _SHORTEST and "%" not in text and "&" not in text and "\\" not in text:
        return
    for start, end, plain in _runs(text):
        yield start, end, next((inner for _, _, inner in _runs(plain)), plain)


def _runs(text: str) -> Iterator[tuple[int, int, str]]:
    left = _RUNS
    for found in _found(text):
        plain = _plain(found[0])
        if plain:
            yield *found.span(), plain
            left -= 1
            if not left:
                break
    if "%" in text:
        for start, end in _words(_PERCENT, text):
            yield start, end, unquote(text[start:end])
    if "&" in text:
        for start, end in _words(_ENTITY, text):
            yield start, end, unescape(text[start:end])
    if "\\u" in text or "\\x" in text:
        for start, end in _words(_ESCAPE, text):
            units = _ESCAPE.sub(_character, text[start:end])  # of two a character beyond the first 65,536 is made
            yield start, end, units.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _character(escape: re.Match[str]) -> str:
    return chr(int(f"0x{escape[0][2:]}", 0))


def _found(text: str) -> Iterator[re.Match[str]]:
    """Yield what `_RUN` finds: it starts where there are 16 of its characters in a row, which bytes tell at once."""
    marks = text.encode("ascii", "replace").translate(_MARKED)
    start = marks.find(_ENOUGH)
    while start >= 0:
        found = _RUN.search(text, start)
        if found is None:
            return
        yield found
        start = marks.find(_ENOUGH, found.end())


def _words(mark: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    """Yield the bounds of the words that hold a mark, each once."""
    end = 0
    for _ in range(_RUNS):
        found = mark.search(text, end)
        if found is None:
            return
        least = max(end, found.start() - _AROUND)
        start = max((at.end() for at in _ENDS.finditer(text, least, found.start())), default=least)
        after = _ENDS.search(text, found.end(), found.end() + _AROUND)
        end = after.start() if after else min(len(text), found.end() + _AROUND)
        yield start, end


def _plain(run: str) -> str:
    """Return the text that a run of letters and digits stands for, or nothing."""
    # Of words hardly any has a digit, or capitals and small letters after its first.
    inside = run[1:]
    if inside.isalpha() and (inside.islower() or inside.isupper()):
        return ""
    try:
        if _HEX.match(run):
            raw = bytes.fromhex(run)
        else:
            body = run.rstrip("=").replace("-", "+").replace("_", "/")
            raw = base64.b64decode(body + "=" * (-len(body) % 4))
        plain = raw.decode()
    except (binascii.Error, ValueError):
        return ""
    return plain if plain.replace("\n", " ").replace("\t", " ").isprintable() else ""
