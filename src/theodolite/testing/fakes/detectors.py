"""Detectors that say what they are told to, and two that break."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import get_args

from msgspec import Struct

from theodolite.core.calibration import Band
from theodolite.core.detector import Answer, Feature
from theodolite.core.event import AnyEvent, Event, ProbeRequested
from theodolite.core.inquiry import Dialogue, Inquiry, Query, Reply, Role
from theodolite.core.reading import Cause, Evidence, Failure, Reading
from theodolite.core.window import Window

__all__ = (
    "AskingDetector",
    "NonsenseDetector",
    "Question",
    "QuietDetector",
    "RaisingDetector",
    "ScriptedDetector",
    "Tally",
)

_ALL: frozenset[type[Event]] = frozenset(get_args(AnyEvent))
_BAND = Band(alert=0.5, strong=0.9, width=0.1, source="a fake: half the scale, and nine tenths of it")


class Tally(Struct, kw_only=True):
    """How many events a fake was shown."""

    seen: int = 0


@dataclass(frozen=True, kw_only=True)
class QuietDetector:
    """Reads everything and says nothing.

    >>> QuietDetector(name="watcher").name
    'watcher'
    """

    name: str = "quiet"
    version: str = "1"
    reads: frozenset[type[Event]] = _ALL
    needs: frozenset[Feature] = frozenset()
    bands: Mapping[str, Band] = field(default_factory=dict[str, Band])

    def begin(self) -> Tally:
        """Return a count of nothing."""
        return Tally()

    def update(self, state: Tally, event: Event, window: Window) -> Answer:
        """Count the event."""
        del event, window
        state.seen += 1
        return ()


@dataclass(frozen=True, kw_only=True)
class ScriptedDetector:
    """Says a score, or fails with a cause, wherever its script has the event's seq or else its type.

    Its one code is `<name>.scripted`, graded by `band`; the evidence is the event itself.

    >>> from theodolite.core.event import TurnEnded
    >>> detector = ScriptedDetector(script={TurnEnded: 0.75, 3: Cause.NO_EVIDENCE})
    >>> [said] = detector.update(detector.begin(), TurnEnded(seq=0), Window())
    >>> said.code, said.score
    ('scripted.scripted', 0.75)
    """

    script: Mapping[int | type[Event], float | Cause]
    name: str = "scripted"
    version: str = "1"
    reads: frozenset[type[Event]] = _ALL
    needs: frozenset[Feature] = frozenset()
    band: Band = _BAND

    @property
    def bands(self) -> Mapping[str, Band]:
        """Return the band of its one code."""
        return {f"{self.name}.scripted": self.band}

    def begin(self) -> Tally:
        """Return a count of nothing."""
        return Tally()

    def update(self, state: Tally, event: Event, window: Window) -> Answer:
        """Say what the script has for the event."""
        del window
        if type(event) not in self.reads:
            return ()
        state.seen += 1
        said = self.script.get(event.seq, self.script.get(type(event)))
        if said is None:
            return ()
        if isinstance(said, Cause):
            return (Failure(detector=self.name, version=self.version, cause=said, detail="as scripted"),)
        return (_reading(self, said, event.seq),)


class Question(Struct, frozen=True, kw_only=True):
    """What an AskingDetector wants to know."""

    prompt: str
    seq: int


@dataclass(frozen=True, kw_only=True)
class AskingDetector:
    """Opens an inquiry at each event of type `on`, and compares what the subject and its shadow answer.

    Its one code is `<name>.differs`: the share of draws in which the two differ. A Failure on either side is passed on.
    """

    on: type[Event] = ProbeRequested
    prompt: str = "May a refund be paid without the order's number?"
    samples: int = 4
    not_before: float = 0.0
    name: str = "asking"
    version: str = "1"
    needs: frozenset[Feature] = frozenset()
    band: Band = _BAND
    subject: type[Question] = Question

    @property
    def reads(self) -> frozenset[type[Event]]:
        """Return the one type that it reads."""
        return frozenset({self.on})

    @property
    def bands(self) -> Mapping[str, Band]:
        """Return the band of its one code."""
        return {f"{self.name}.differs": self.band}

    def begin(self) -> Tally:
        """Return a count of nothing."""
        return Tally()

    def update(self, state: Tally, event: Event, window: Window) -> Answer:
        """Open an inquiry."""
        del window
        if type(event) is not self.on:
            return ()
        state.seen += 1
        subject = Question(prompt=self.prompt, seq=event.seq)
        inquiry = Inquiry(
            asker=self.name, version=self.version, about=event.seq, subject=subject, not_before=self.not_before
        )
        return (inquiry,)

    def inquire(self, subject: Struct) -> Dialogue:
        """Ask both sides the same question, once."""
        if not isinstance(subject, Question):
            raise TypeError(f"{self.name} asks about a Question, not a {type(subject).__name__}")
        sides = (Role.SUBJECT, Role.SHADOW)
        answers = yield tuple([Query(role=side, prompt=subject.prompt, samples=self.samples) for side in sides])
        failed = [answer for answer in answers if isinstance(answer, Failure)]
        if failed:
            return (Failure(detector=self.name, version=self.version, cause=failed[0].cause, detail=failed[0].detail),)
        replies = [answer for answer in answers if isinstance(answer, Reply)]
        texts = [[draw.text for draw in reply.draws] for reply in replies]
        if not all(texts):
            return (Failure(detector=self.name, version=self.version, cause=Cause.MALFORMED, detail="no draws"),)
        pairs = list(zip(*texts, strict=False))
        score = sum(mine != other for mine, other in pairs) / len(pairs)
        models = tuple([reply.model for reply in replies])
        return (_reading(self, score, subject.seq, models),)


@dataclass(frozen=True, kw_only=True)
class RaisingDetector:
    """Breaks the law: raises `error` at every event that it reads."""

    error: Exception = field(default_factory=lambda: RuntimeError("a detector that raises"))
    name: str = "raising"
    version: str = "1"
    reads: frozenset[type[Event]] = _ALL
    needs: frozenset[Feature] = frozenset()
    bands: Mapping[str, Band] = field(default_factory=dict[str, Band])

    def begin(self) -> Tally:
        """Return a count of nothing."""
        return Tally()

    def update(self, state: Tally, event: Event, window: Window) -> Answer:
        """Raise."""
        del state, event, window
        raise self.error


@dataclass(frozen=True, kw_only=True)
class NonsenseDetector:
    """Breaks the law: answers every event with `nonsense`, whatever that is."""

    nonsense: object = None
    name: str = "nonsense"
    version: str = "1"
    reads: frozenset[type[Event]] = _ALL
    needs: frozenset[Feature] = frozenset()
    bands: Mapping[str, Band] = field(default_factory=dict[str, Band])

    def begin(self) -> Tally:
        """Return a count of nothing."""
        return Tally()

    def update(self, state: Tally, event: Event, window: Window) -> Answer:
        """Answer with nonsense."""
        del state, event, window
        return self.nonsense  # type: ignore[return-value]  # pyright: ignore[reportReturnType] - that is its purpose


def _reading(maker: ScriptedDetector | AskingDetector, score: float, seq: int, models: tuple[str, ...] = ()) -> Reading:
    (code,) = maker.bands
    evidence = (Evidence(kind=code, seqs=(seq,)),)
    return Reading(detector=maker.name, version=maker.version, code=code, score=score, evidence=evidence, models=models)
