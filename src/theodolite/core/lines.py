"""What every reader of recorded JSON needs: bounded lines, content-free reasons, keys at the head, a session's name.

A recording is hostile input: reasons say place and expected type, and never quote what the file holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import BinaryIO, NamedTuple, TypeVar

import msgspec

from theodolite.core.errors import EventError
from theodolite.core.faults import place_of
from theodolite.core.reader import Unreadable

__all__ = ("BOM", "MAX_RECORD", "Line", "content", "decode", "first_keys", "lines", "session_name", "utf8_fault")

# A message with one attached file of 50 MB, the most that OpenAI takes in a request, is 64 MiB in base64.
MAX_RECORD = 64 * 2**20

BOM = b"\xef\xbb\xbf"
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a pair, which is one character
    rb"|(u[dD][89a-fA-F][0-9a-fA-F]{2})"  # half of one
    rb"|.)"
)
_TOKEN = re.compile(rb'"((?:[^"\\]++|\\.)*+)("?)|[{}\[\]:]', re.DOTALL)
_T = TypeVar("_T")


class Line(NamedTuple):
    """One line that is not blank, without its end and surrounding blanks. `number` counts from 1."""

    number: int
    data: bytes


def lines(stream: BinaryIO, file: str, limit: int = MAX_RECORD) -> Iterator[Line | Unreadable]:
    r"""Yield the lines of a stream, and an Unreadable for each that is too long or not UTF-8.

    Holds one line of at most `limit` bytes; skips blank lines and a byte order mark.

    >>> from io import BytesIO
    >>> list(lines(BytesIO(b"\xef\xbb\xbf{}\r\n\r\n[]"), "a.jsonl"))
    [Line(number=1, data=b'{}'), Line(number=3, data=b'[]')]
    """
    number = 0
    while data := stream.readline(limit + 1):
        number += 1
        if len(data) > limit and not data.endswith(b"\n"):
            while (rest := stream.readline(2**16)) and not rest.endswith(b"\n"):
                pass
            yield Unreadable(file=file, line=number, reason=f"the line is longer than {limit} bytes")
            continue
        data = (data.removeprefix(BOM) if number == 1 else data).strip()
        if not data:
            continue
        fault = utf8_fault(data)
        yield Unreadable(file=file, line=number, reason=fault) if fault else Line(number, data)


def content(head: bytes) -> bytes:
    """Return the beginning of a file without byte order mark and leading blanks."""
    return head.removeprefix(BOM).lstrip()


def utf8_fault(data: bytes) -> str:
    """Return why bytes are not UTF-8 text, or nothing when they are."""
    if data.isascii():
        return ""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return f"not UTF-8: byte {error.start} of it"
    return ""


def decode(decoder: msgspec.json.Decoder[_T], data: bytes | msgspec.Raw) -> _T:
    r"""Return what a JSON value says. Lone surrogates are spelled out; of equal keys the last one counts.

    Raises EventError with a reason that names the place and the expected type, and quotes nothing.

    >>> decode(msgspec.json.Decoder(list[str]), rb'["\ud800!"]')
    ['\\ud800!']
    """
    try:
        return _strict(decoder, data)
    except EventError:
        spelled = _ESCAPE.sub(_spell, bytes(data))
        if spelled == data:
            raise
    return _strict(decoder, spelled)


def _strict(decoder: msgspec.json.Decoder[_T], data: bytes | msgspec.Raw) -> _T:
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise EventError(place_of(error)) from None


def _spell(escape: re.Match[bytes]) -> bytes:
    return escape[0] if escape[1] is None else rb"\\" + escape[1]


def first_keys(head: bytes) -> frozenset[str]:
    """Return the keys of the first object of a file, or of the first in its list, as far as the head shows them.

    >>> sorted(first_keys(b'[{"role": "user", "content": [{"type": "te'))
    ['content', 'role']
    """
    keys: set[str] = set()
    depth, last = 0, b""
    for token in _TOKEN.finditer(content(head).removeprefix(b"[")):
        mark = token[0]
        if mark.startswith(b'"'):
            if not token[2]:  # the head ends inside this string
                break
            last = token[1]
        elif mark == b":":
            if depth == 1:
                keys.add(last.decode(errors="replace"))
        elif mark in b"{[":
            depth += 1
        else:
            depth -= 1
            if depth == 0:
                break
    return frozenset(keys)


def session_name(file: str) -> str:
    """Return the name of a session that its recording does not name: that of the file, without its endings.

    >>> session_name("logs/monday.jsonl.gz")
    'monday'
    """
    return PurePath(PurePath(file).name.removesuffix(".gz")).stem or "recording"
