"""Finds recordings, opens them, plain or gzipped, and tells which reader they are for.

A form is detected and named, never guessed: exactly one reader must claim the beginning of a file.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from theodolite.core.errors import ConfigError
from theodolite.core.labels import Label, Labeled
from theodolite.core.lines import content, first_keys
from theodolite.core.reader import Reader, Recorded, Unreadable
from theodolite.core.text import printable
from theodolite.readers.conversations.faults import bounded

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

__all__ = ("HEAD", "detect", "find_recordings", "open_labels", "open_recording")

# How much of the beginning readers may look at.
HEAD = 2**16
_NESTED = re.compile(rb"\[\s*\[")
_GZIP = b"\x1f\x8b"
_PAGE = "The formats are on the page docs/reference/cli.md"
_ENDINGS = (".json", ".jsonl", ".json.gz", ".jsonl.gz", ".eval")


def find_recordings(paths: Iterable[Path]) -> list[Path]:
    """Return the files to read: each named file, and of each folder the .json, .jsonl and .eval files below it, sorted.

    A file is given once. Raises ConfigError for a path that does not exist or cannot be searched and for a
    folder without recordings.
    """
    found: dict[Path, None] = {}
    for path in paths:
        try:
            found.update(dict.fromkeys(_files(path)))
        except OSError as error:
            raise ConfigError(
                f"{_shown(path)} cannot be searched ({error.strerror}): check its name and rights"
            ) from error
    return list(found)


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        if path.exists():
            return [path]
        raise ConfigError(f"{_shown(path)} does not exist: name a recording, or a folder that holds some")
    files = sorted(file for file in _below(path) if file.name.endswith(_ENDINGS) and file.is_file())
    if not files:
        endings = ", ".join(_ENDINGS)
        raise ConfigError(f"{_shown(path)} holds no file that ends in {endings}: name others one by one")
    return files


def _below(path: Path) -> Iterator[Path]:
    """Yield the files below a folder; links to folders are not followed. Raises OSError for what cannot be searched."""

    def refuse(error: OSError) -> None:
        raise error

    for folder, _, names in os.walk(path, onerror=refuse):
        yield from (Path(folder, name) for name in names)


def detect(head: bytes, readers: Sequence[Reader], *, file: str = "this recording") -> Reader:
    """Return the one reader that claims a file with this beginning.

    Raises ConfigError, which names the known formats, when none or several do.
    """
    claims = [reader for reader in readers if reader.detects(head)]
    if len(claims) == 1:
        return claims[0]
    if claims:
        known = f"the known formats are {_names(readers)}"
        raise ConfigError(f"{file} could be any of {_names(claims)}; {known}: give the right one with --reader NAME")
    raise ConfigError(f"{file} is in none of the known formats, {_names(readers)}: {_hint(head)}. {_PAGE}")


def _hint(head: bytes) -> str:
    """Return what is expected in place of this."""
    begins = content(head)
    if not begins.startswith((b"{", b"[")):
        return "a session is expected as JSON, and this is none"
    keys = first_keys(head)
    if _NESTED.match(begins):
        return "it begins with a list in a list, and a session is expected"
    if not keys:
        return "it begins with an empty list or object, and a session is expected"
    if "choices" in keys:
        return "this looks like one answer of a model; a session is the list of messages, the answer at its end"
    return "expected is, for example, a list of messages with a role, alone or under the key messages"


def open_recording(
    path: Path,
    readers: Sequence[Reader],
    *,
    name: str | None = None,
    told: Callable[[Reader], None] | None = None,
    reached: Callable[[int], None] | None = None,
) -> Iterator[Recorded]:
    """Yield what a recording holds, read by the reader of that name, or by the one that claims it.

    Files that begin as gzip does are unpacked as they are read; where that fails, what came before is kept. The file is
    opened when the first item is asked for, and `told` is called with its reader. Whenever more was read `reached` is
    called with how many bytes of the file that makes, packed ones where it is packed. Raises ConfigError when the first
    item is asked for, for a file that cannot be opened, a name that no reader has, or a format that cannot be told.
    """
    file = _shown(path)
    with _opened(path) as opened:
        source = _Source(opened, reached)
        stream = io.BufferedReader(source, HEAD)
        head = stream.peek(HEAD)[:HEAD]
        reader = None
        if content(head) or len(head) == HEAD:
            try:
                reader = detect(head, readers, file=file) if name is None else _named(name, readers)
            except ConfigError:
                if not source.fault:
                    raise
        if reader is not None:
            if told is not None:
                told(reader)
            yield from bounded(reader.read(stream, file))
        if source.fault or reader is None:
            yield Unreadable(file=file, line=0, reason=source.fault or "the file is empty")


def open_labels(path: Path, readers: Sequence[Reader], *, name: str | None = None) -> Iterator[tuple[str, Label]]:
    """Yield the sessions of a recording, each with the label that stands beside it; nothing in a form without labels.

    The file is opened and its reader found as by `open_recording`, which also raises the same and says what cannot be
    read; sessions have the names that the reader gives them.
    """
    file = _shown(path)
    with _opened(path) as opened:
        stream = io.BufferedReader(_Source(opened, None), HEAD)
        head = stream.peek(HEAD)[:HEAD]
        if content(head):
            reader = detect(head, readers, file=file) if name is None else _named(name, readers)
            if isinstance(reader, Labeled):
                yield from reader.labels(stream, file)


def _opened(path: Path) -> io.BufferedReader:
    try:
        return path.open("rb")
    except OSError as error:
        raise ConfigError(f"{_shown(path)} cannot be opened ({error.strerror}): check its name and rights") from error


class _Source(io.RawIOBase):
    """A file, unpacked, that ends where it cannot be read any further; `fault` says why, without quoting it."""

    def __init__(self, opened: io.BufferedReader, reached: Callable[[int], None] | None) -> None:
        super().__init__()
        self._opened = opened
        self._reached = reached if opened.seekable() else None
        self._read: Callable[[int], bytes] | None = None
        self.fault = ""

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Fill a buffer, short of the end; a reader may look at all of the first 64 KiB."""
        view = memoryview(buffer).cast("B")
        filled = 0
        while filled < len(view) and (data := self._next(len(view) - filled)):
            view[filled : filled + len(data)] = data
            filled += len(data)
        if self._reached is not None:
            self._reached(self._opened.tell())
        return filled

    def _next(self, size: int) -> bytes:
        if self.fault:
            return b""
        try:
            if self._read is None:
                packed = self._opened.peek(len(_GZIP)).startswith(_GZIP)
                self._read = gzip.GzipFile(fileobj=self._opened).read1 if packed else self._opened.read1
            return self._read(size)
        except EOFError:
            self.fault = "its gzip data ends too early: the file was cut off"
        except (gzip.BadGzipFile, zlib.error):
            self.fault = "its gzip data is damaged from here on"
        except OSError as error:
            self.fault = f"reading failed: {error.strerror}"
        return b""


def _named(name: str, readers: Sequence[Reader]) -> Reader:
    for reader in readers:
        if reader.name == name:
            return reader
    raise ConfigError(f"no reader is named {name!r}: the known ones are {_names(readers)}")


def _names(readers: Iterable[Reader]) -> str:
    return ", ".join(reader.name for reader in readers)


def _shown(path: Path) -> str:
    return printable(str(path))
