"""Cuts a stream of JSON into objects and the elements of lists, in linear time and bounded memory.

The stream holds one JSON value, or one value a line. It is cut by brackets, quotes and commas alone; whether a piece is
JSON is for its decoder to say. In a file of one value a line, a broken value ends with its line. Elsewhere a line that
begins with a bracket, where none can stand, begins a new value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum, auto
from typing import BinaryIO, NamedTuple

from msgspec import DecodeError, Raw
from msgspec.json import Decoder

from theodolite.core.lines import BOM, MAX_RECORD, utf8_fault

__all__ = ("Cut", "Piece", "pieces")

# Read at a time; what is held beyond it is one piece.
_CHUNK = 2**16
_QUOTED = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_TEXT = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
# An object or list without others in it, whole: most of what there is, and nothing that changes the depth.
_FLAT = rb'[{\[](?:[^"{}\[\]]++|' + _TEXT + rb")*+[}\]]"
# What may stand before the next bracket, or comma, that counts: whole strings, whole flat values, and no half of one.
_TO_BRACKET = re.compile(rb'(?:[^"{}\[\]]++|' + _TEXT + rb"|" + _FLAT + rb")*+", re.DOTALL)
_TO_COMMA = re.compile(rb'(?:[^"{}\[\],]++|' + _TEXT + rb"|" + _FLAT + rb")*+", re.DOTALL)
_BLANK = re.compile(rb"\s*")
_OPENERS = re.compile(rb"[{\[]*+")
_CLOSERS = re.compile(rb"[}\]]*+")
_ROW = Decoder(Raw)
_ELEMENTS = Decoder(list[Raw])


class Cut(Enum):
    """What a piece is."""

    OBJECT = auto()
    LIST_BEGINS = auto()
    ELEMENT = auto()
    LIST_ENDS = auto()
    FAULT = auto()


class Piece(NamedTuple):
    """One part of the stream, and the line it begins on, from 1. A FAULT has a reason in place of data."""

    cut: Cut
    line: int
    data: bytes = b""
    reason: str = ""


def pieces(stream: BinaryIO, limit: int = MAX_RECORD) -> Iterator[Piece]:
    """Yield objects, and lists element by element, none of them longer than `limit` bytes.

    Blank elements are passed over; a last element that is whole is kept even where its list is cut off.

    >>> from io import BytesIO
    >>> [piece.data for piece in pieces(BytesIO(b'[{"a": 1}, {}]'))]
    [b'', b'{"a": 1}', b'{}', b'']
    """
    scan = _Scan(limit)
    ended = True
    part = stream.readline(_CHUNK).removeprefix(BOM)
    while part:
        whole = part.endswith(b"\n")
        if ended and whole and not scan.depth and part.isspace():
            scan.line += 1
        elif not (ended and whole and scan.row(part)):
            if ended:
                scan.begin_line(part)
            scan.read(part)
        if scan.found:
            yield from scan.found
            scan.found.clear()
        ended = whole
        part = stream.readline(_CHUNK)
    scan.end()
    yield from scan.found


class _Scan:
    """Where the scan stands, and what it found since it was last asked."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.found: list[Piece] = []
        self.line = 0
        self.began = 0  # the line on which the value began
        self.depth = 0
        self.listed = False  # the value is a list
        self.quoted = False
        self.escaped = False  # the next byte follows a backslash
        self.rows = False  # the file holds one value a line
        self.skipping = False  # no value can begin here
        self.last = b""  # the last byte that is not blank
        self.start = 0  # where in this part the piece goes on
        self.held = bytearray()
        self.held_line = 0
        self.over = False  # the piece is longer than the limit, and is not held

    def row(self, part: bytes) -> bool:
        """Take a line that is one whole value, which the decoder cuts ten times as fast; whether it was one."""
        first = part[:1]
        if self.depth or first not in {b"{", b"["} or len(part) > self.limit:
            return False
        data = part.strip()
        if not data.endswith(b"}" if first == b"{" else b"]") or utf8_fault(data):
            return False
        try:
            elements = [_ROW.decode(data)] if first == b"{" else _ELEMENTS.decode(data)
        except (DecodeError, RecursionError):
            return False
        self.line += 1
        self.rows, self.skipping = True, False
        if first == b"{":
            self.found.append(Piece(Cut.OBJECT, self.line, data))
            return True
        self.found.append(Piece(Cut.LIST_BEGINS, self.line))
        self.found += [Piece(Cut.ELEMENT, self.line, bytes(element)) for element in elements]
        self.found.append(Piece(Cut.LIST_ENDS, self.line))
        return True

    def begin_line(self, part: bytes) -> None:
        """Take up a new line: an open value may not go on here, or a new one may begin."""
        opens = part[:1] in {b"{", b"["}
        if self.depth and (self.rows or self.quoted or (opens and self.last not in {b"{", b"[", b",", b":"})):
            self._break("the line ends inside a value")
        if self.rows or opens:
            self.skipping = False
        self.line += 1

    def read(self, part: bytes) -> None:
        """Scan a line, or the next part of a long one."""
        self.start, at = 0, int(self.escaped)
        self.escaped = False
        while at < len(part) and not self.skipping:
            if self.quoted:
                at = self._string(part, at)
            else:
                at = self._inside(part, at) if self.depth else self._outside(part, at)
        if self.depth:
            self._hold(part[self.start :])
            self.last = part.rstrip()[-1:] or self.last

    def end(self) -> None:
        """Take up the end of the file."""
        if self.depth:
            self._break("the file ends inside a value")

    def _string(self, part: bytes, at: int) -> int:
        run = _QUOTED.match(part, at)
        at = run.end() if run else at
        self.quoted = part[at : at + 1] != b'"'
        self.escaped = part[at : at + 1] == b"\\"
        return at + 1

    def _outside(self, part: bytes, at: int) -> int:
        blank = _BLANK.match(part, at)
        at = blank.end() if blank else at
        first = part[at : at + 1]
        self.start, self.began = at, self.line
        if first == b"{":
            self.depth, self.listed = 1, False
        elif first == b"[":
            self.depth, self.listed = 1, True
            self.start += 1
            self.found.append(Piece(Cut.LIST_BEGINS, self.line))
        elif first:
            self._fault("expected a list or an object")
            self.skipping = True
        return at + 1

    def _inside(self, part: bytes, at: int) -> int:
        run = (_TO_COMMA if self.listed and self.depth == 1 else _TO_BRACKET).match(part, at)
        at = (run.end() if run else at) + 1
        byte = part[at - 1 : at]
        if byte == b'"':
            self.quoted = True
        elif byte == b",":
            self._hold(part[self.start : at - 1])
            self._finish(Cut.ELEMENT)
            self.start = at
        elif byte in {b"{", b"["}:
            more = _count(_OPENERS, part, at, len(part))
            self.depth += 1 + more
            at += more
        elif byte:
            more = _count(_CLOSERS, part, at, at + max(0, self.depth - 2))
            self.depth -= 1 + more
            at += more
            if self.depth == 0:
                self._close(part, at)
        return at

    def _close(self, part: bytes, at: int) -> None:
        if self.listed:
            self._hold(part[self.start : at - 1])
            self._finish(Cut.ELEMENT)
            if part[at - 1 : at] != b"]":
                self._fault("a list that a brace closes")
            self.found.append(Piece(Cut.LIST_ENDS, self.line))
        else:
            self._hold(part[self.start : at])
            self._finish(Cut.OBJECT)
        self.rows = self.rows or self.began == self.line

    def _break(self, reason: str) -> None:
        """Give up the open value, but not an element of it that is whole."""
        if self.listed and self.depth == 1 and not self.quoted:
            self._finish(Cut.ELEMENT)
        self._fault(reason)
        if self.listed:
            self.found.append(Piece(Cut.LIST_ENDS, self.line))
        self.depth, self.quoted, self.escaped, self.skipping = 0, False, False, True
        self.held.clear()
        self.over = False

    def _fault(self, reason: str) -> None:
        self.found.append(Piece(Cut.FAULT, self.line, reason=reason))

    def _hold(self, data: bytes) -> None:
        if self.over:
            return
        if not self.held:
            data = data.lstrip()
            self.held_line = self.line
        self.held += data
        if len(self.held) > self.limit:
            self.held.clear()
            self.over = True

    def _finish(self, cut: Cut) -> None:
        data, self.held = bytes(self.held.rstrip()), bytearray()
        reason = f"longer than {self.limit} bytes" if self.over else utf8_fault(data)
        self.over = False
        if reason:
            self.found.append(Piece(Cut.FAULT, self.held_line, reason=reason))
        elif data:
            self.found.append(Piece(cut, self.held_line, data))


def _count(run: re.Pattern[bytes], part: bytes, at: int, end: int) -> int:
    """Return how many bytes of a kind follow in a part, up to `end`."""
    found = run.match(part, at, end)
    return found.end() - at if found else 0
