"""The inquiries of one session, from when they are opened until they are settled."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from operator import attrgetter

from theodolite.core.errors import EventError
from theodolite.core.event import InquirySettled
from theodolite.core.inquiry import Inquiry
from theodolite.core.reading import Cause, Failure
from theodolite.runtime.fleet import Fleet

__all__ = ("Inquiries", "abandoned", "failed")


class Inquiries:
    """What is not settled: inquiries that wait, and those that somebody drives.

    Each holds a place in the fleet's queue. `changed` says that they are not what was last shelved; once `closing` is
    set, nothing more is opened. Not safe for several threads, but for `due` and its length: Session holds its lock
    around all else.
    """

    def __init__(self, fleet: Fleet, session: str) -> None:
        self.changed = False
        self.closing = False
        self._fleet = fleet
        self._session = session
        # By identity, in the order in which they were opened. To drive one is one step, which nothing interrupts.
        self._all: dict[int, Inquiry] = {}
        self._driven: set[int] = set()

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Inquiry]:
        """Yield those that are driven first, as they are now."""
        return iter(sorted(self._all.values(), key=lambda inquiry: id(inquiry) not in self._driven))

    def add(self, inquiry: Inquiry) -> tuple[Failure, ...]:
        """Let an inquiry wait; return the Failure that it comes to where there is no place for it."""
        if self.closing:
            return (_abandoned(inquiry, "the session is being closed"),)
        if not self._fleet.admit(self._session):
            return (_abandoned(inquiry, "the queue of inquiries is full"),)
        own = copy(inquiry)  # an asker may open the very same one twice
        self._all[id(own)] = own
        self.changed = True
        return ()

    def claim(self, event: InquirySettled, *, optional: bool = False) -> Inquiry | None:
        """Return the inquiry that an event settles, one that is driven before one that waits.

        Where there is none it is None if that is `optional`, and else an EventError.
        """
        for inquiry in self:
            if (inquiry.asker, inquiry.about) == (event.asker, event.about):
                return inquiry
        if optional:
            return None
        raise EventError(
            f"session {self._session}: no open inquiry of {event.asker} about event {event.about}; it was settled "
            f"before, or {event.asker} is switched off here"
        )

    def settle(self, inquiry: Inquiry) -> None:
        """Take an inquiry off, and give its place back; nothing happens where it is off."""
        self._all.pop(id(inquiry), None)
        self._driven.discard(id(inquiry))
        self.recount()

    def take(self, now: float, about: int | None) -> Inquiry | None:
        """Return the inquiry whose time comes first, if it has come by `now`, as one that is driven."""
        ready = [item for item in self._waiting(now) if about in {None, item.about}]
        inquiry = min(ready, key=attrgetter("not_before"), default=None)
        if inquiry is not None:
            self._driven.add(id(inquiry))
        return inquiry

    def drives(self, inquiry: Inquiry) -> bool:
        """Whether somebody drives an inquiry that is not settled."""
        return id(inquiry) in self._driven

    def put_back(self, inquiry: Inquiry) -> None:
        """Let an inquiry wait again that is driven no longer."""
        self._driven.discard(id(inquiry))

    def due(self, now: float) -> bool:
        """Whether the time of one that waits has come."""
        return any(True for _ in self._waiting(now))

    def _waiting(self, now: float) -> Iterator[Inquiry]:
        for key, inquiry in tuple(self._all.items()):
            if key not in self._driven and inquiry.not_before <= now:
                yield inquiry

    def clear(self) -> None:
        """Take all off."""
        self._all.clear()
        self._driven.clear()
        self.recount()

    def recount(self) -> None:
        """Hold as many places in the fleet's queue as there are inquiries."""
        self.changed = True
        self._fleet.hold(self._session, len(self))


def failed(inquiry: Inquiry, failure: Failure) -> InquirySettled:
    """Return the end of an inquiry that came to nothing but a failure."""
    return InquirySettled(asker=inquiry.asker, about=inquiry.about, said=(failure,))


def abandoned(inquiry: Inquiry) -> InquirySettled:
    """Return the end of an inquiry that nobody will drive any more."""
    return failed(inquiry, _abandoned(inquiry, "the session was closed before the inquiry was settled"))


def _abandoned(inquiry: Inquiry, detail: str) -> Failure:
    return Failure(detector=inquiry.asker, version=inquiry.version, cause=Cause.ABANDONED, detail=detail)
