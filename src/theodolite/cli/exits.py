"""What the end of a command tells the shell. Imported by every verb, so it imports next to nothing."""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType, TracebackType

import typer

from theodolite.reports.escaping import inert

__all__ = ("Boundary", "Terminated", "answering", "say")

NOTHING, FINDING, USAGE, NOT_JUDGED = 0, 1, 2, 3
# EX_SOFTWARE of sysexits.h: neither an answer nor the caller's fault.
BUG = 70
# What a shell shows of a program that a signal ended: 128 and the number of the signal.
INTERRUPTED, BROKEN_PIPE, TERMINATED = 130, 141, 143
# What the system says of a place that takes no more: whoever named it can help it.
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


class Terminated(KeyboardInterrupt):
    """SIGTERM: somebody ends this program, and it may say what it did, as after Ctrl-C."""


def say(text: str) -> None:
    """Write one line for the person at the terminal, beside the report. Where that cannot be, nobody hears it."""
    try:
        sys.stderr.write(f"{inert(text)}\n")
    except OSError:
        _drop(sys.stderr.fileno())


@contextmanager
def answering() -> Generator[None, None, None]:
    """Turn what a command may raise into one line of explanation and an exit status."""
    from theodolite.core.errors import TheodoliteError  # noqa: PLC0415 - with the types it names, --help needs neither

    try:
        try:
            with _terminable():
                yield
        finally:
            sys.stdout.flush()
    except TheodoliteError as error:
        say(f"error: {error}")
        raise typer.Exit(USAGE) from None
    except Terminated:
        raise typer.Exit(TERMINATED) from None
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        _drop(sys.stdout.fileno())
        raise typer.Exit(BROKEN_PIPE) from None


def _drop(descriptor: int) -> None:
    """Let what is left for a file go nowhere: it must not be tried again when the program ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)


@contextmanager
def _terminable() -> Generator[None, None, None]:
    """Raise Terminated at a SIGTERM, where nobody else has a say in it."""
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _terminate(number: int, frame: FrameType | None) -> None:
    del number, frame
    raise Terminated


class Boundary:
    """Around the whole program: a fault of ours shows where it happened and nothing that a session said.

    The message of a foreign exception may quote its input, so it is left out; local variables never show. Output that
    cannot be written is no fault of ours: it exits as a wrong command does.
    """

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """Tell of an exception that nobody expected, and exit with 70. Raises SystemExit."""
        if kind is None or not isinstance(error, Exception):
            return
        if isinstance(error, OSError) and error.errno in _NO_ROOM:
            for stream in (sys.stdout, sys.stderr):
                try:
                    stream.flush()
                except OSError:
                    _drop(stream.fileno())
            say(f"error: the output cannot be written ({error.strerror}): free space, or write it somewhere else")
            raise SystemExit(USAGE)
        sys.stderr.writelines(traceback.format_tb(tb))
        say(f"{kind.__module__}.{kind.__qualname__} (its message is not shown, since it may quote a session)")
        say("error: this is a fault of theodolite: please report the lines above with the command that you gave")
        raise SystemExit(BUG)
