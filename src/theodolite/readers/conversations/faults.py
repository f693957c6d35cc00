"""Bounds the parts of a recording that are reported as unreadable: a small file can hold millions of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from theodolite.core.event import SessionEnded
from theodolite.core.reader import Recorded, Unreadable

__all__ = ("LISTED", "Faults", "bounded")

# Of a session, and of what belongs to none: our choice. What is wrong with a recording shows in the first few.
LISTED = 1_000


class Faults:
    """Lists the first 1,000 unreadable parts that it is given, and counts those beyond."""

    def __init__(self) -> None:
        self._room = LISTED
        self._beyond = 0
        self._first: Unreadable | None = None

    def take(self, item: Unreadable) -> tuple[Unreadable, ...]:
        """Return a part that is to be listed; nothing where it was only counted."""
        if self._room and item.parts == 1:
            self._room -= 1
            return (item,)
        self._beyond += item.parts
        self._first = self._first or item
        return ()

    def rest(self) -> tuple[Unreadable, ...]:
        """Return what was only counted, as one, or nothing."""
        first = self._first
        if first is None:
            return ()
        reason = f"parts that cannot be read, from here on, and are not listed one by one: {self._beyond:,}"
        more = Unreadable(file=first.file, line=first.line, reason=reason, session=first.session, parts=self._beyond)
        return (more,)


def bounded(recorded: Iterable[Recorded]) -> Iterator[Recorded]:
    """Yield what a reader yields; of each session's unreadable parts, and of the file's own, the first 1,000.

    One more, in the place of the first that is not listed, says how many those are; that of a session comes before the
    session's end. Holds two numbers for each session that is under way.
    """
    under = {"": Faults()}
    for item in recorded:
        if isinstance(item, Unreadable):
            yield from under.get(item.session, under[""]).take(item)
            continue
        if isinstance(item, SessionEnded):
            yield from under.pop(item.session, Faults()).rest()
        elif item.session not in under:
            under[item.session] = Faults()
        yield item
    for faults in under.values():
        yield from faults.rest()
