"""What the end of a command tells the shell. Imported by every verb, so it imports next to nothing."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from types import TracebackType

import typer

from theodolite.reports.escaping import inert

__all__ = ("Boundary", "answering", "say")

NOTHING, FINDING, USAGE, NOT_JUDGED = 0, 1, 2, 3
# EX_SOFTWARE of sysexits.h: neither an answer nor the caller's fault.
BUG = 70
# What a shell shows of a program that a signal ended: 128 and the number of the signal.
INTERRUPTED, BROKEN_PIPE = 130, 141


def say(text: str) -> None:
    """Write one line for the person at the terminal, beside the report."""
    sys.stderr.write(f"{inert(text)}\n")


@contextmanager
def answering() -> Generator[None, None, None]:
    """Turn what a command may raise into one line of explanation and an exit status."""
    from theodolite.core.errors import TheodoliteError  # noqa: PLC0415 - with the types it names, --help needs neither

    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except TheodoliteError as error:
        say(f"error: {error}")
        raise typer.Exit(USAGE) from None
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        # Whoever reads has had enough. What is left in the buffer must not be tried again when the program ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(BROKEN_PIPE) from None


class Boundary:
    """Around the whole program: a fault of ours shows where it happened and nothing that a session said.

    The message of a foreign exception may quote its input, so it is left out; local variables never show.
    """

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """Tell of an exception that nobody expected, and exit with 70. Raises SystemExit."""
        if kind is None or not isinstance(error, Exception):
            return
        sys.stderr.writelines(traceback.format_tb(tb))
        say(f"{kind.__module__}.{kind.__qualname__} (its message is not shown, since it may quote a session)")
        say("error: this is a fault of theodolite: please report the lines above with the command that you gave")
        raise SystemExit(BUG)
