"""The write-ahead log beside a store's file, watched: what was acknowledged may be in it alone.

SQLite keeps writing to a log that somebody removed, and over one that was cut; both look well until the file is opened
anew, and then what was in the log is gone.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from theodolite.core.errors import StoreError

__all__ = ("WriteAheadLog",)

# What a log begins with, whichever way its checksums go: https://www.sqlite.org/fileformat.html, section 4.1.
_MAGIC: Final = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")

_NEXT: Final = "close the store, run `theodolite store verify` on it, and go on in another one if records are missing"


class _Seen(NamedTuple):
    identity: tuple[int, int]
    size: int


class WriteAheadLog:
    """Knows the log as it was after the newest commit. Looks at it before each commit and once more after it.

    It is removed while nobody has the store open, and cut to nothing by an erasure, its records being in the main file
    by then: `holds` tells whether they are. Cost: two `stat` and one short read a commit. Between the two looks of one
    commit a log that is cut and grows again is not noticed.
    """

    def __init__(self, file: Path, holds: Callable[[], bool]) -> None:
        self._path = file.with_name(f"{file.name}-wal")
        self._holds = holds
        self._seen = self._look()
        self._torn = False  # once a commit was written to a log that nobody can read, none behind it can be read

    def check(self) -> None:
        """Raise StoreError where the log is not the one that was seen last, or lost what it alone held."""
        if self._torn:
            raise StoreError(f"{self._path} was cut while a commit was written to it: {_NEXT}")
        found = self._look()
        if found.identity != self._seen.identity:
            raise StoreError(
                f"{self._path} was removed or replaced while the store was open; what was acknowledged since it was "
                f"last written to the store's file may be lost: {_NEXT}"
            )
        if found.size < self._seen.size and not self._holds():
            raise StoreError(f"{self._path} was cut while the store was open, and records were in it alone: {_NEXT}")

    def note(self) -> None:
        """Take the log as it is after a commit. Raises StoreError where that commit is in no log that can be read."""
        self.check()
        try:
            with self._path.open("rb") as log:
                begins = log.read(len(_MAGIC[0]))
        except OSError as error:
            raise StoreError(f"{self._path} cannot be read: {error.strerror}; {_NEXT}") from error
        self._torn = begins not in _MAGIC
        if self._torn:
            self.check()
        self._seen = self._look()

    def emptied(self) -> None:
        """Take the log as it is after this process itself has cut it."""
        self._seen = self._look()

    def _look(self) -> _Seen:
        try:
            status = self._path.stat()
        except OSError:
            return _Seen((0, 0), 0)
        return _Seen((status.st_dev, status.st_ino), status.st_size)
