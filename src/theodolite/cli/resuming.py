"""What a long command has done so far, in a file beside the one that it makes: killed, it goes on from there."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec import Struct

from theodolite.cli.sampling import Line
from theodolite.core.errors import ConfigError

__all__ = ("Kept", "kept_beside", "partial_of")


class _Head(Struct, frozen=True):
    """The first line: of which work these are the results."""

    theodolite: str
    version: int
    of: str


_HEAD = msgspec.json.Decoder(_Head)
_KIND = "calibration under way"
# A link is not followed, and a pipe not waited for.
_OPEN = (
    os.O_CREAT | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
)
_LINE = msgspec.json.Decoder(Line)
_ENCODER = msgspec.json.Encoder()


class Kept:
    """Lines that were written and synced; `done` has the places of those that were there when it was opened."""

    def __init__(self, path: Path, stream: BinaryIO) -> None:
        self.path = path
        self.done: set[tuple[int, int]] = set()
        self.empty = True
        self._stream = stream

    def add(self, lines: Iterable[Line]) -> None:
        """Write lines, so that they are there after a kill or a crash. Raises ConfigError where there is no room."""
        self.empty = False
        try:
            self._stream.write(_ENCODER.encode_lines(list(lines)))
            self._stream.flush()
            os.fsync(self._stream.fileno())
        except OSError as error:
            raise ConfigError(f"{self.path} cannot be written ({error.strerror}): free space, and go on") from error

    def lines(self) -> Iterator[Line]:
        """Yield all lines, in the order of their places, however they came in. Holds where each line begins."""
        self._stream.seek(0)
        self._stream.readline()
        begins: list[tuple[tuple[int, int], int]] = []
        at = self._stream.tell()
        for data in self._stream:
            begins.append((_LINE.decode(data).place, at))
            at += len(data)
        begins.sort()
        for number, (place, start) in enumerate(begins):
            if number and begins[number - 1][0] == place:
                continue
            self._stream.seek(start)
            yield _LINE.decode(self._stream.readline())

    def remove(self) -> None:
        """Take the file away: what was to be made of it is made."""
        self.path.unlink(missing_ok=True)


def partial_of(out: Path) -> Path:
    """Return the file beside an artefact in which stands what is done for it."""
    return out.with_name(f".{out.name}.partial.jsonl")


@contextmanager
def kept_beside(out: Path, of: str, *, anew: bool = False) -> Generator[Kept]:
    """Give what was done for `out` of the work whose hash is `of`, to be gone on with; `anew` forgets what was.

    What stands half-written at the end is forgotten. Raises ConfigError where what is there is of other work or none of
    ours, and where another process is at it.
    """
    path = partial_of(out)
    with _held(path) as stream:
        kept = Kept(path, stream)
        head = _ENCODER.encode(_Head(_KIND, 1, of)) + b"\n"
        first = stream.readline()
        ours = _ours(first)
        if first and not ours:
            raise ConfigError(
                f"{path} is in the way, and nothing that this command wrote: move it, or name another --out"
            )
        if anew or (first != head and not stream.readline().endswith(b"\n")):  # nothing is lost with it
            stream.seek(0)
            stream.truncate()
            stream.write(head)
        elif first != head:
            raise ConfigError(
                f"{path} has what is done of an interrupted calibration of other sessions, settings or versions: go on "
                "with that one as it was, or add --anew to begin again"
            )
        else:
            _read(kept, stream)
            kept.empty = not kept.done
        try:
            yield kept
        finally:
            if kept.empty:
                kept.remove()


def _ours(first: bytes) -> bool:
    """Whether this is the first line of such a file, or what an interrupted writer left of it."""
    begins = _ENCODER.encode(_Head(_KIND, 1, ""))[:-2]
    return first.startswith(begins) or begins.startswith(first)


@contextmanager
def _held(path: Path) -> Generator[BinaryIO]:
    """Open a file of ours, made if absent, and hold it. Never through a link, and nothing but a file."""
    while True:
        try:
            descriptor = os.open(path, _OPEN, 0o600)
        except OSError as error:
            raise ConfigError(f"{path} cannot be written ({error.strerror}): name another file with --out") from error
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise ConfigError(f"{path} is in the way, and no regular file: move it, or name another --out")
        with os.fdopen(descriptor, "r+b") as stream:
            _hold(stream, path)
            # Who was at it may have taken the file away meanwhile: then this is one that has no name.
            if not (path.exists() and os.path.samestat(os.fstat(stream.fileno()), path.lstat())):
                continue
            yield stream
            return


def _read(kept: Kept, stream: BinaryIO) -> None:
    at = stream.tell()
    for data in stream:
        try:
            if not data.endswith(b"\n"):
                break
            kept.done.add(_LINE.decode(data).place)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            break  # torn by a crash of the machine: nothing after it counts
        at += len(data)
    stream.seek(at)
    stream.truncate()


def _hold(stream: BinaryIO, path: Path) -> None:
    """Hold the file until it is closed. Limits: not on Windows."""
    if sys.platform == "win32":
        return
    import fcntl  # noqa: PLC0415 - there is none on Windows

    try:
        fcntl.flock(stream.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise ConfigError(f"{path} is being written by another process: let it end, or give another --out") from error
