"""Cuts an archive of an Inspect log into its members as it is read, in the memory of one.

An `.eval` file is a ZIP archive (APPNOTE.TXT of PKWARE, sections 4.3 to 4.5). Its members are taken one after the other
by their local headers, as a stream that cannot be sought in allows: the directory at its end is not needed, so that a
log which was cut off gives what it has. What a member may unpack to is bounded.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from theodolite.core.lines import MAX_RECORD

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

__all__ = ("MAGIC", "Member", "first_name", "members")

MAGIC = b"PK\x03\x04"
CONVERT = "`inspect log convert LOG --to json --output-dir FOLDER` writes a form that is read"

# Section 4.3.7: what follows the signature of a local header.
_HEADER = struct.Struct("<5H3L2H")
_DIRECTORY = (b"PK\x01\x02", b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07", b"PK\x06\x08")
_ENCRYPTED, _SIZE_FOLLOWS = 0x1, 0x8
_IN_ZIP64 = 0xFFFFFFFF
_CHUNK = 2**16
# What a frame of zstd may ask to be remembered: four times what its compressor takes at its highest ordinary level.
_WINDOW = 2**25

_Read = Callable[[int], bytes]


class _Method(IntEnum):
    """How a member is packed: section 4.4.5. Inspect writes the last one since 2026, and the second one before."""

    STORED = 0
    DEFLATED = 8
    ZSTD = 93


class Member(NamedTuple):
    """One member, unpacked, or why it cannot be. `number` counts from 1."""

    number: int
    name: str
    data: bytes = b""
    fault: str = ""


class _Head(NamedTuple):
    name: str
    flags: int
    method: int
    checksum: int
    size: int


def first_name(head: bytes) -> str:
    """Return the name of the first member of an archive that begins so, or nothing."""
    if len(head) < len(MAGIC) + _HEADER.size or not head.startswith(MAGIC):
        return ""
    *_, length, _ = _HEADER.unpack_from(head, len(MAGIC))
    start = len(MAGIC) + _HEADER.size
    return head[start : start + length].decode(errors="replace")


def members(stream: BinaryIO, wanted: Callable[[str], bool], limit: int = MAX_RECORD) -> Iterator[Member]:
    """Yield the wanted members of an archive whose first four bytes were read, each of at most `limit` bytes.

    Where it cannot be followed any further, the last one says why.
    """
    number = 0
    signature = MAGIC
    while signature == MAGIC:
        number += 1
        head = _head(stream)
        if isinstance(head, str):
            yield Member(number, "", fault=head)
            return
        part = _Part(stream, head.size)
        if wanted(head.name):
            data, fault = _unpacked(head, part, limit)
            yield Member(number, head.name, data, fault)
        part.skip()
        if part.missing:
            if not wanted(head.name):
                yield Member(number, "", fault=_CUT_OFF)
            return
        signature = stream.read(len(MAGIC))
    if signature not in _DIRECTORY:
        yield Member(number + 1, "", fault="the archive is damaged from here on" if signature else _CUT_OFF)


_CUT_OFF = "the archive ends too early: the file was cut off"


def _head(stream: BinaryIO) -> _Head | str:
    """Return what the header of the next member says, or why it says nothing."""
    fixed = stream.read(_HEADER.size)
    if len(fixed) < _HEADER.size:
        return _CUT_OFF
    _, flags, method, _, _, checksum, size, unpacked, length, more = _HEADER.unpack(fixed)
    named, extra = stream.read(length), stream.read(more)
    if len(named) < length or len(extra) < more:
        return _CUT_OFF
    if flags & _SIZE_FOLLOWS and not size:
        return f"an archive that does not say how long its members are; {CONVERT}"
    if size == _IN_ZIP64:
        size = _long_size(extra, both=unpacked == _IN_ZIP64)
        if size < 0:
            return "the archive is damaged from here on"
    return _Head(named.decode(errors="replace"), flags, method, checksum, size)


def _long_size(extra: bytes, *, both: bool) -> int:
    """Return the packed size of a member in its ZIP64 field (section 4.5.3), -1 where that is not there."""
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, at)
        place = at + 4 + 8 * both
        if kind == 1 and place + 8 <= at + 4 + length <= len(extra):
            (size,) = struct.unpack_from("<Q", extra, place)
            return int(size)
        at += 4 + length
    return -1


class _Part(io.RawIOBase):
    """The bytes of one member in the stream. `missing`: the stream ended before it did."""

    def __init__(self, stream: BinaryIO, size: int) -> None:
        super().__init__()
        self.left = size
        self.missing = False
        self._stream = stream

    def take(self, size: int = _CHUNK) -> bytes:
        """Return the next bytes, at most `size` of them, and nothing when there are no more."""
        data = self._stream.read(min(self.left, size))
        self.missing = self.missing or (bool(self.left) and not data)
        self.left -= len(data)
        return data

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Fill a buffer with the next bytes."""
        view = memoryview(buffer).cast("B")
        data = self.take(len(view))
        view[: len(data)] = data
        return len(data)

    def skip(self) -> None:
        """Pass over what is left of it."""
        while self.left and not self.missing:
            self.take()


def _unpacked(head: _Head, part: _Part, limit: int) -> tuple[bytes, str]:
    """Return the data of a member, or why there is none."""
    if head.flags & _ENCRYPTED:
        return b"", "an encrypted member"
    reads = _reads(head.method, part)
    if isinstance(reads, str):
        return b"", reads
    held = bytearray()
    try:
        while len(held) <= limit and (data := reads(_CHUNK)):
            held += data
    except ValueError:
        return b"", "its packed data is damaged"
    if part.missing:
        return b"", _CUT_OFF
    if len(held) > limit:
        return b"", f"longer than {limit} bytes"
    return (bytes(held), "") if zlib.crc32(held) == head.checksum else (b"", "its packed data is damaged")


def _reads(method: int, part: _Part) -> _Read | str:
    """Return what reads unpacked bytes, at most so many at once, or why nothing does. It raises ValueError."""
    if method == _Method.STORED:
        return part.take
    if method == _Method.DEFLATED:
        return _Inflating(part).read
    if method == _Method.ZSTD:
        return _zstd(part)
    return f"packed in a way that is not read here; {CONVERT}"


class _Inflating:
    """Unpacks deflated bytes."""

    def __init__(self, part: _Part) -> None:
        self._part = part
        self._inflater = zlib.decompressobj(-zlib.MAX_WBITS)

    def read(self, size: int) -> bytes:
        """Return the next unpacked bytes, at most `size`. Raises ValueError where they are damaged."""
        try:
            while not self._inflater.eof:
                packed = self._inflater.unconsumed_tail or self._part.take()
                data = self._inflater.decompress(packed, size)
                if data or not packed:
                    return data
        except zlib.error as error:
            raise ValueError("not deflated") from error
        return b""


def _zstd(part: _Part) -> _Read | str:
    """Return what reads bytes that zstd packed, which is an extra before Python 3.14."""
    try:
        import zstandard  # noqa: PLC0415 - an extra
    except ImportError:
        return f"packed with zstd, which needs an extra: pip install 'theodolite[inspect]'; or {CONVERT}"
    opened = zstandard.ZstdDecompressor(max_window_size=_WINDOW).stream_reader(
        io.BufferedReader(part, _CHUNK), read_across_frames=True
    )

    def read(size: int) -> bytes:
        try:
            return opened.read(size)
        except zstandard.ZstdError as error:
            raise ValueError("not of zstd") from error

    return read
