"""Cuts the JSON document of an Inspect log into what stands before its samples, and sample after sample."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from theodolite.core.lines import BOM
from theodolite.readers.conversations.pieces import Cut, Piece, pieces

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

__all__ = ("Document", "document")

# What stands before the samples: names, settings, figures. Our choice, a thousand times what one has.
_MOST = 16 * 2**20
_CHUNK = 2**16
# A string, and whether it ends in what was read so far; a bracket.
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+("?)|[{}\[\]]', re.DOTALL)
_LIST = re.compile(rb"\s*:\s*\[")
_ON_THE_WAY = re.compile(rb"\s*:?\s*\Z")


class Document(NamedTuple):
    """What stands before the samples, closed to a document of its own, and the samples; `fault` says what is wrong."""

    head: bytes
    samples: Iterator[Piece]
    fault: str = ""


def document(stream: BinaryIO, begun: bytes) -> Document:
    """Return the parts of a document of which `begun` was read. Holds what stands before the samples, and one sample.

    Where there are no samples, all of it is the head.
    """
    held, at, depth = begun.removeprefix(BOM), 0, 0
    while len(held) <= _MOST:
        token = _TOKEN.search(held, at)
        named = token is not None and depth == 1 and token[0] == b'"samples"'
        if token is None or token[1] == b"" or (named and _ON_THE_WAY.match(held, token.end())):
            # What decides was not read yet. Twice as much each time: a long text is looked through twice, no more.
            data = stream.read(max(_CHUNK, len(held)))
            if not data:
                break
            at = len(held) if token is None else token.start()
            held += data
            continue
        at = token.end()
        depth += {b"{": 1, b"[": 1, b"}": -1, b"]": -1}.get(token[0], 0)
        if depth <= 0:
            return Document(held[:at], iter(()), "" if token[0] == b"}" else "expected an object")
        begins = _LIST.match(held, at) if named else None
        if begins is not None:
            head = held[: token.start()].rstrip().removesuffix(b",") + b"}"
            rest = io.BufferedReader(_Rest(held[begins.end() - 1 :], stream), _CHUNK)
            return Document(head, _samples(rest, held.count(b"\n", 0, begins.end())))
    fault = f"what stands before its samples is longer than {_MOST} bytes"
    return Document(b"", iter(()), fault if len(held) > _MOST else "the file ends inside a value")


def _samples(rest: BinaryIO, lines: int) -> Iterator[Piece]:
    """Yield the elements of the list that the rest of a document begins with, and what is wrong with it."""
    for piece in pieces(rest):
        if piece.cut is Cut.LIST_ENDS:
            return
        if piece.cut is not Cut.LIST_BEGINS:
            yield piece._replace(line=piece.line + lines)


class _Rest(io.RawIOBase):
    """A stream of which the beginning was read already."""

    def __init__(self, begun: bytes, stream: BinaryIO) -> None:
        super().__init__()
        self._begun = begun
        self._stream = stream

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Fill a buffer, as far as there is something at hand."""
        view = memoryview(buffer).cast("B")
        data = self._begun[: len(view)] or self._stream.read(len(view))
        self._begun = self._begun[len(view) :]
        view[: len(data)] = data
        return len(data)
