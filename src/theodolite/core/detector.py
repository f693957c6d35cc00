"""The port of detectors, and of whoever asks questions."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Protocol, Self, TypeGuard, TypeVar, runtime_checkable

from msgspec import Struct

from theodolite.core.calibration import Band
from theodolite.core.event import Event
from theodolite.core.inquiry import Dialogue, Inquiry, Reply
from theodolite.core.reading import Failure, Reading
from theodolite.core.window import Window

__all__ = ("Answer", "AnyDetector", "Asker", "Detector", "Feature", "Tallying", "Tunable", "asks", "tallies")

S = TypeVar("S", bound=Struct)
Answer = tuple[Reading | Failure | Inquiry, ...]


class Feature(StrEnum):
    """What Session folds from events, once for all detectors that need it."""

    INTENT = "intent"
    PROVENANCE = "provenance"
    MARGIN = "margin"
    SUMMARY = "summary"


class Detector(Protocol[S]):
    """Reads the events of a session and says what it makes of them.

    A detector is immutable and shared by all sessions; what it remembers of one is a Struct of its own, which is saved,
    restored and moved. Laws: `update` is deterministic, never blocks, changes nothing but `state`, costs O(1) amortized
    per event (linear in that event's own text) in bounded memory; equal states and events give equal answers, also
    across save and restore; evidence points to events that exist; every code it says has a band; with default settings
    each alarm can fire.
    """

    @property
    def name(self) -> str:
        """Return the first part of its codes."""
        ...

    @property
    def version(self) -> str:
        """Return a version that changes whenever equal input may give another score."""
        ...

    @property
    def reads(self) -> frozenset[type[Event]]:
        """Return the event types it wants: dispatch table and coverage in one."""
        ...

    @property
    def needs(self) -> frozenset[Feature]:
        """Return the features that must be folded for it."""
        ...

    @property
    def bands(self) -> Mapping[str, Band]:
        """Return the default band of each code that it may say."""
        ...

    def begin(self) -> S:
        """Return the state of a session in which nothing has happened."""
        ...

    def update(self, state: S, event: Event, window: Window) -> Answer:
        """Take one event into the state; return readings, failures or inquiries, mostly none."""
        ...


# Which Struct a detector's state is, only it knows: a list of detectors has a state type for each.
AnyDetector = Detector[Any]


class Asker(Protocol):
    """Puts questions to models: a detector that opens inquiries, or a verifier.

    Laws: making a dialogue calls nothing; a dialogue yields at least once before it returns; sent a Failure, it answers
    with a reading or a failure and does not raise; identical answers from all arms are never drift.
    """

    @property
    def name(self) -> str:
        """Return the name that inquiries carry."""
        ...

    @property
    def version(self) -> str:
        """Return the version that inquiries carry."""
        ...

    @property
    def subject(self) -> type[Struct]:
        """Return the type of its inquiries' subjects."""
        ...

    def inquire(self, subject: Struct) -> Dialogue:
        """Return the dialogue about a subject of that type."""
        ...


@runtime_checkable
class Tunable(Protocol):
    """A detector or fusion that takes the coefficients of a calibration artefact in place of its own."""

    def tuned(self, coefficients: Mapping[str, object]) -> Self:
        """Return this one with the coefficients of a JSON object. Raises ValueError for one that is not of its form.

        What msgspec raises where a value is of another type is one.
        """
        ...


class Tallying(Protocol):
    """An asker that counts the outcomes among draws, so that counts may answer in their place (`Query.reuse`)."""

    def tally(self, reply: Reply) -> Mapping[str, int]:
        """Return how often each outcome came among the draws of an answer. Deterministic; does not raise."""
        ...


def tallies(asker: object) -> TypeGuard[Tallying]:
    """Whether an asker counts outcomes."""
    return callable(getattr(asker, "tally", None))


def asks(detector: object) -> TypeGuard[Asker]:
    """Whether a detector opens inquiries, and so holds their dialogues."""
    return callable(getattr(detector, "inquire", None))
