"""A reputation that somebody else keeps in a file: looked at every minute or so, and told of when it falls."""

from __future__ import annotations

import errno
import logging
import os
import secrets
import stat
from collections.abc import Awaitable, Callable
from enum import StrEnum
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec
from msgspec import Struct

from theodolite.api.probing.given import called, seconds
from theodolite.core.errors import ConfigError
from theodolite.core.reading import Failure
from theodolite.core.text import brief, printable
from theodolite.runtime.drive import attempt

__all__ = ("Look", "ReputationPoll", "checked_path", "checked_threshold", "read_reputation")

_LOG = logging.getLogger(__name__)

# Bytes of a snapshot. Our choice: one number is wanted of it.
_LARGEST = 65_536
# Characters of a path that a warning shows.
_PATH = 200
# From which share of the interval on the next look may come; on average it is the whole.
_SOONEST = 0.75
# Do not wait for the other end of a pipe; do not change bytes. Not every system has both.
_PLAINLY: int = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_RANDOM = secrets.SystemRandom().random


class _Snapshot(Struct, frozen=True):
    reputation_score: float


class Look(StrEnum):
    """What one look at the file came to."""

    FINE = "fine"
    FELL = "fell"
    LOW = "low"
    FAILED = "failed"


class ReputationPoll:
    """Looks at the file every `interval` seconds, a quarter sooner or later, and calls `trigger` when the score fell.

    That is when it is below `threshold` and was not at the look before, or is lower than it has been since; a score
    that merely stays low is told once. A file that is absent, no regular file, over 64 KiB or without a number from 0
    to 1 as `reputation_score`, and a trigger that raises, are warned of once, until all is well or fails in another
    way; `failures` counts them all. Raises ConfigError for a path, a threshold, an interval or a function that is none.
    """

    def __init__(
        self,
        path: str | Path,
        trigger: Callable[[], Awaitable[object]],
        *,
        threshold: float = 0.5,
        interval: float = 60.0,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        random: Callable[[], float] = _RANDOM,
    ) -> None:
        self._path = checked_path(path)
        self._threshold = checked_threshold(threshold)
        self._interval = seconds("reputation_poll_interval_seconds", interval)
        for name, given in (("trigger", trigger), ("sleep", sleep), ("random", random)):
            called(name, given)
        self._trigger = trigger
        self._sleep = sleep
        self._random = random
        self._lowest: float | None = None
        self._fault = ""
        self.failures = 0

    async def run(self) -> None:
        """Look again and again, until the task or a scope around it is cancelled."""
        while True:
            await self._sleep(self._interval * (_SOONEST + 2.0 * (1.0 - _SOONEST) * self._random()))
            await self.look()

    async def look(self) -> Look:
        """Look once; call the trigger where the score fell."""
        try:
            score = await anyio.to_thread.run_sync(read_reputation, self._path, abandon_on_cancel=True)
        except ValueError as error:
            return self._failed(f"the reputation is not known: {_shown(self._path)} {error}")
        if score < self._threshold and (self._lowest is None or score < self._lowest):
            done = await attempt(self._trigger, "reputation", "1")
            if isinstance(done, Failure):
                return self._failed(
                    f"the reputation fell, and what it triggers failed ({done.cause}): it is tried again"
                )
            self._fault, self._lowest = "", score
            return Look.FELL
        self._fault = ""
        if score < self._threshold:
            return Look.LOW
        self._lowest = None
        return Look.FINE

    def _failed(self, fault: str) -> Look:
        self.failures += 1
        if fault != self._fault:
            self._fault = fault
            _LOG.warning("%s", fault)
        return Look.FAILED


def read_reputation(path: Path) -> float:
    """Return the score of a file: a link is followed, a pipe or device is not opened. Raises ValueError, with why."""
    try:
        document = _read(path)
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror or type(error).__name__}") from error
    if len(document) > _LARGEST:
        raise ValueError(f"is larger than {_LARGEST:,} bytes")
    try:
        score = msgspec.json.decode(document, type=_Snapshot).reputation_score
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        why = str(error) if isinstance(error, msgspec.ValidationError) else "it is not JSON"
        raise ValueError(f"holds no reputation_score: {why}") from error
    if not 0.0 <= score <= 1.0:
        raise ValueError(f"has a reputation_score of {score:g}, which is not from 0 to 1")
    return score


def _read(path: Path) -> bytes:
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "it is no file")
    # It may have become a pipe since, and opening one that nobody writes to would wait without end.
    descriptor = os.open(path, os.O_RDONLY | _PLAINLY)
    with open(descriptor, "rb") as file:  # noqa: PTH123 - a Path has no way to open a descriptor
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no file")
        return file.read(_LARGEST + 1)


def checked_path(path: object) -> Path:
    """Return a path. Raises ConfigError for what is none."""
    if not isinstance(path, str | Path) or not str(path) or "\0" in str(path):
        raise ConfigError(f"reputation_snapshot_path is the path of a JSON file, not {brief(path)}")
    return Path(path)


def checked_threshold(threshold: object) -> float:
    """Return a threshold. Raises ConfigError for what is no number from 0 to 1."""
    if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not 0.0 <= threshold <= 1.0:
        raise ConfigError(f"reputation_score_threshold is a number from 0 to 1, not {brief(threshold)}")
    return float(threshold)


def _shown(path: Path) -> str:
    text = str(path)
    return ascii(printable(text if len(text) <= _PATH else f"{text[:_PATH]}\N{HORIZONTAL ELLIPSIS}"))
