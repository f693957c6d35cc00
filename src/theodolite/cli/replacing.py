"""A file that several processes add to: each writes it anew as a whole, and one at a time."""

from __future__ import annotations

import os
import re
import secrets
import stat
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from theodolite.core.errors import ConfigError

__all__ = ("alone", "put", "target_of")

_NEW = ".new"
_OPEN = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)


def target_of(path: Path, option: str) -> Path:
    """Return the file that a path leads to: a link to it stays one, wherever the file is.

    Raises ConfigError with the option where it is something else than a file, such as a folder, pipe or device.
    """
    try:
        real = Path(os.path.realpath(path))
        mode = real.lstat().st_mode
    except FileNotFoundError:
        return Path(os.path.realpath(path))
    except OSError as error:
        raise _unwritable(path, error, option) from error
    if not stat.S_ISREG(mode):
        what = "a link that leads back to itself" if stat.S_ISLNK(mode) else "no regular file"
        raise ConfigError(f"{path}: cannot be written (it is {what}): name another file with {option}")
    return real


@contextmanager
def alone(path: Path, option: str) -> Generator[None]:
    """Hold the folder of a file while the file is read and written anew; others who do so wait.

    Raises ConfigError with the option. Limits: none are held off on Windows, where a folder cannot be opened.
    """
    if sys.platform == "win32":
        yield
        return
    import fcntl  # noqa: PLC0415 - there is none on Windows

    try:
        descriptor = os.open(path.parent, os.O_RDONLY)
    except OSError as error:
        raise _unwritable(path, error, option) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError as error:
            raise _unwritable(path, error, option) from error
        yield
    finally:
        os.close(descriptor)


def put(path: Path, data: bytes, option: str) -> None:
    """Write a file as a whole, synced, with the mode that it had; to be called while it is held (`alone`).

    A crash at any moment leaves the old file or the new one. What it leaves beside them goes with the next write.
    Raises ConfigError with the option.
    """
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(8)}{_NEW}")
    try:
        _sweep(path)
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
        descriptor = os.open(fresh, _OPEN, 0o666 if mode is None else 0o600)  # never through a link: it is new
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            if mode is not None:
                fresh.chmod(mode)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
        _sync(path.parent)
    except BaseException as error:
        fresh.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise _unwritable(path, error, option) from error
        raise


def _sweep(path: Path) -> None:
    """Take away what processes that are gone left half-written: whoever is not holds the folder."""
    ours = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{16}}{re.escape(_NEW)}")
    if sys.platform == "win32":
        return
    for one in path.parent.iterdir():
        if ours.fullmatch(one.name):
            one.unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    """Make a name durable."""
    if sys.platform == "win32":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unwritable(path: Path, error: OSError, option: str) -> ConfigError:
    return ConfigError(f"{path}: cannot be written ({error.strerror}): name another file with {option}")
