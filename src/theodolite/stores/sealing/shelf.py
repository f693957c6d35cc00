"""Sessions with open inquiries, sealed, in a folder."""

from __future__ import annotations

import os
import re
import secrets
import stat
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from theodolite.core.errors import StoreError
from theodolite.stores.sealing.sealer import Sealer

__all__ = ("SealedShelf",)

_SEALED, _PART = ".sealed", ".part"
_NAME: Final = re.compile(rf"[0-9a-f]{{64}}\{_SEALED}")

_STRANGE: Final = "it is no regular file, which this shelf never makes: take it away"

# O_BINARY is there on Windows alone, the others everywhere else.
_READ: Final = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOFOLLOW", "O_BINARY"))


class SealedShelf:
    """A shelf of one file for each session: sealed, readable by the owner alone, named by a keyed hash of the id.

    `keep` writes a new file and puts it in the old one's place in one step, synced, so that a crash at any moment
    leaves the one or the other. `drop` is durable when it returns. `held` takes away what a killed process left
    half-written, yields what opens, and only then raises StoreError with the names of all files that do not: they stay
    where they are. Bounded by the disk alone. Several processes may use one folder; a session belongs to one of them at
    a time.

    Cost of a `keep`: sealing, and three syncs. Raises StoreError for a folder that cannot be made, or is open to
    others.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     shelf = SealedShelf(Path(place, "sessions"), Sealer(bytes(32)))
    ...     shelf.keep("s-1", b"first")
    ...     shelf.keep("s-1", b"second")
    ...     list(shelf.held())
    [b'second']
    """

    def __init__(self, folder: Path, sealer: Sealer) -> None:
        self._folder = folder
        self._sealer = sealer
        with self._telling("be used as a shelf"):
            folder.mkdir(mode=0o700, exist_ok=True)
            others = folder.stat().st_mode & 0o077
        if others and os.name == "posix":
            raise StoreError(f"the folder {folder} is open to others: chmod 700 it, or name another one")

    def keep(self, session: str, saved: bytes) -> None:
        """Hold a session in place of what was held of it. Returns when that is on the disk. Raises StoreError."""
        name = self._sealer.name(session)
        sealed = self._sealer.seal(saved, "shelf", name)
        part = self._folder / f"{name}.{secrets.token_hex(8)}{_PART}"
        with self._telling(f"hold session {session!r}"), self._open() as synced:
            try:
                _write(part, sealed)
                part.replace(self._folder / f"{name}{_SEALED}")
            except OSError:
                part.unlink(missing_ok=True)
                raise
            synced()

    def drop(self, session: str) -> None:
        """Hold a session no longer; nothing happens where it is not held. Raises StoreError."""
        file = self._folder / f"{self._sealer.name(session)}{_SEALED}"
        with self._telling(f"let go of session {session!r}"):
            if file.exists():
                with self._open() as synced:
                    file.unlink(missing_ok=True)
                    synced()

    def held(self) -> Iterator[bytes]:
        """Yield what is held, in no order, one file at a time. Raises StoreError at the end for what does not open."""
        with self._telling("be read"):
            self._sweep()
            names = sorted(path.name for path in self._folder.iterdir())
        faults: list[str] = []
        for name in names:
            if _NAME.fullmatch(name):
                try:
                    saved = self._read(name)
                except StoreError as fault:
                    faults.append(f"{name}: {fault}")
                else:
                    yield from saved
        if faults:
            raise StoreError(f"the folder {self._folder} holds sessions that cannot be read: {'; '.join(faults)}")

    def _read(self, name: str) -> tuple[bytes, ...]:
        path = self._folder / name
        try:
            if not stat.S_ISREG(path.lstat().st_mode):
                raise StoreError(_STRANGE)
            sealed = _content(path)
        except FileNotFoundError:  # dropped meanwhile
            return ()
        except OSError as error:
            raise StoreError(f"{error.strerror}; ask for the right to read it") from error
        return (self._sealer.unseal(sealed, "shelf", name.removesuffix(_SEALED)),)

    def _sweep(self) -> None:
        """Take away what a process that is gone left half-written; where somebody writes, that is left to the next."""
        with suppress(BlockingIOError), self._open(alone=True):
            for part in self._folder.glob(f"*{_PART}"):
                part.unlink(missing_ok=True)

    @contextmanager
    def _open(self, *, alone: bool = False) -> Generator[Callable[[], None]]:
        """Hold the folder, with others who write or alone, and give what syncs it: a file is durable when its name is.

        Raises BlockingIOError where it cannot be had alone.
        """
        if sys.platform == "win32":  # a folder cannot be opened there, and a file that is open cannot be removed
            yield lambda: None
            return
        import fcntl  # noqa: PLC0415 - there is none on Windows

        descriptor = os.open(self._folder, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB if alone else fcntl.LOCK_SH)
            yield lambda: os.fsync(descriptor)
        finally:
            os.close(descriptor)

    @contextmanager
    def _telling(self, what: str) -> Generator[None]:
        try:
            yield
        except OSError as error:
            raise StoreError(
                f"the folder {self._folder} cannot {what}: {error.strerror}; free space, or make it writable"
            ) from error


def _content(path: Path) -> bytes:
    """Return what a regular file holds; nothing else that may have taken its place is waited for or followed."""
    descriptor = os.open(path, _READ)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise StoreError(_STRANGE)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def _write(path: Path, content: bytes) -> None:
    with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
