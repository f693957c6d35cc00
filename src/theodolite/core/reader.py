"""The port to recorded sessions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, Protocol

from msgspec import Struct

from theodolite.core.event import AnyEvent

__all__ = ("Reader", "Recorded", "Unreadable")


class Unreadable(Struct, frozen=True, kw_only=True, gc=False):
    """One part of a recording that could not be read. `line` counts from 1; 0 means the file as a whole.

    `session` is the session it belongs to, where that is known. `parts` is how many it stands for: a reader lists the
    first ones of many, and counts the rest in one.
    """

    file: str
    line: int
    reason: str
    session: str = ""
    parts: int = 1


Recorded = AnyEvent | Unreadable


class Reader(Protocol):
    """Turns one recorded format into events.

    Laws: `detects` looks at the beginning alone and decides it the same way each time; `read` yields events in order,
    with `session` set, and an Unreadable for what it cannot read, and never raises for bad content; it holds no more
    than one record of its format at a time; every session ends with SessionEnded; own events come only with a valid
    seal.
    """

    @property
    def name(self) -> str:
        """Return the name of the format, as reports and `--reader` give it."""
        ...

    def detects(self, head: bytes) -> bool:
        """Whether a file that begins with these bytes (up to 64 KiB) is of this format."""
        ...

    def read(self, stream: BinaryIO, file: str) -> Iterator[Recorded]:
        """Yield what a file holds. `file` is its name for events and messages."""
        ...
