"""The sessions that the detector laws are shown."""

from __future__ import annotations

from typing import NamedTuple

from theodolite.core.event import AnyEvent
from theodolite.testing.sessions import (
    clean_session,
    every_event,
    hijacked_session,
    hostile_session,
    sparse_session,
    stamped,
    synthetic_session,
)

__all__ = ("Stream", "streams")


class Stream(NamedTuple):
    """Stamped events and the words that make them again."""

    name: str
    events: tuple[AnyEvent, ...]

    @property
    def again(self) -> str:
        """What a person does to see what the detector says to it."""
        return f"Playback(detector).run(stamped({self.name}))"


def streams() -> tuple[Stream, ...]:
    """Return every session that a law is tried on."""
    unstamped: dict[str, tuple[AnyEvent, ...]] = {
        "clean_session()": clean_session(),
        "hijacked_session()": hijacked_session(),
        "every_event()": every_event(),
        "sparse_session()": sparse_session(),
        "hostile_session()": hostile_session(),
        "synthetic_session(12, seed=1)": synthetic_session(12, seed=1),
        "synthetic_session(12, seed=2)": synthetic_session(12, seed=2),
    }
    return tuple([Stream(name, tuple(stamped(events))) for name, events in unstamped.items()])
