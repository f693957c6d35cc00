"""A file that was not there before: evidence is written over nothing, and none of it is left half-written."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from theodolite.core.errors import ConfigError

__all__ = ("new_file",)


@contextmanager
def new_file(path: Path) -> Generator[BinaryIO]:
    """Give a new file to write to, readable by its owner alone; it is removed again where anything is raised inside.

    Raises ConfigError where it is there already or cannot be written.
    """
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0), 0o600)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written ({error.strerror}): name a new file") from error
    try:
        with os.fdopen(descriptor, "w+b") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        path.unlink(missing_ok=True)
        raise ConfigError(f"{path} cannot be written ({error.strerror}): free space, or name another place") from error
    except BaseException:
        path.unlink(missing_ok=True)
        raise
