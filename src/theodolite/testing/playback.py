"""One detector, driven over events as Session drives it, with its state in plain sight."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct

from theodolite.core.detector import Answer, Detector
from theodolite.core.event import AnyEvent
from theodolite.core.window import Window
from theodolite.features.folds import Folds

__all__ = ("Playback",)

S = TypeVar("S", bound=Struct)


class Playback(Generic[S]):
    """A session of one detector. Grades nothing, keeps nothing, and lets through what the detector raises.

    >>> from theodolite.testing.fakes import ScriptedDetector
    >>> from theodolite.testing.sessions import clean_session, stamped
    >>> said = Playback(ScriptedDetector(script={4: 0.75})).run(stamped(clean_session()))
    >>> [[reading.score for reading in answer] for answer in said][3:6]
    [[], [0.75], []]
    """

    def __init__(self, detector: Detector[S]) -> None:
        self.detector = detector
        self.state = detector.begin()
        self.window = Window()
        self.folds = Folds.begin(detector.needs)

    def run(self, events: Iterable[AnyEvent]) -> list[Answer]:
        """Take stamped events; return what was said to each."""
        return [self.feed(event) for event in events]

    def feed(self, event: AnyEvent) -> Answer:
        """Take one stamped event; return what was said to it. An event of a type that is not read is only shown."""
        self.show(event)
        return self.ask(event) if type(event) in self.detector.reads else ()

    def show(self, event: AnyEvent) -> None:
        """Put an event into the window and the folds, without asking the detector."""
        self.window.push(event)
        self.window.call = self.folds.fold(event, {})
        self.window.goal, self.window.summary = self.folds.goal, self.folds.summary()

    def ask(self, event: AnyEvent) -> Answer:
        """Ask the detector about the event that was shown last."""
        return self.detector.update(self.state, event, self.window)

    def save(self) -> bytes:
        """Return the detector's state as Session saves it."""
        return msgspec.json.encode(self.state)

    def restore(self, saved: bytes) -> None:
        """Put a saved state in the place of the present one."""
        self.state = msgspec.json.decode(saved, type=type(self.state))
