"""The port to what makes one answer of several: it hears all that detectors say of an event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from theodolite.core.calibration import Band
from theodolite.core.event import Event
from theodolite.core.reading import Failure, Reading
from theodolite.core.window import Window

__all__ = ("AnyFusion", "Fusion")

S = TypeVar("S", bound=Struct)


class Fusion(Protocol[S]):
    """Combines the answers to one event, after all detectors have spoken and before anything is graded.

    Immutable and shared by sessions; what it remembers of one is a Struct of its own, saved and restored. Laws: as of
    detectors; and no answer makes a fused score lower that was not there to be heard: a missing one is NO_EVIDENCE, or
    counts for nothing.
    """

    @property
    def name(self) -> str:
        """Return the first part of its codes."""
        ...

    @property
    def version(self) -> str:
        """Return a version that changes whenever equal answers may give another score."""
        ...

    @property
    def bands(self) -> Mapping[str, Band]:
        """Return the default band of each code that it may say."""
        ...

    def begin(self) -> S:
        """Return the state of a session in which nothing was said."""
        ...

    def fuse(
        self, state: S, event: Event, said: Sequence[Reading | Failure], window: Window
    ) -> tuple[Reading | Failure, ...]:
        """Take what was said of one event; return what follows from all of it, mostly nothing."""
        ...


# Which Struct a state is, only its fusion knows.
AnyFusion = Fusion[Any]
