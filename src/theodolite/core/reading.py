"""What a detector says, a Reading or a Failure, and what a calibration makes of it: a Signal."""

from __future__ import annotations

import math
import re
from enum import StrEnum
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import force_setattr

from theodolite.core.surrogates import spell_out

__all__ = ("Cause", "Evidence", "Fact", "Failure", "Level", "Reading", "Signal", "Status")

_NAME = re.compile(r"[a-z][a-z0-9_]*\Z")
_DOTTED = re.compile(r"[a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)+\Z")


# The same few hundred names are given on every call of every session, and there is no list of them.
@lru_cache(maxsize=1024)
def _is_name(word: str) -> bool:
    return _NAME.match(word) is not None


@lru_cache(maxsize=1024)
def _is_dotted(word: str) -> bool:
    return _DOTTED.match(word) is not None


class Evidence(Struct, frozen=True, kw_only=True, gc=False):
    """Where a reading rests: events of this session, a place in them, and what was expected and seen there.

    `expected`, `observed` and `path` may quote the session until Session has redacted the reading; in a Signal,
    a Decision or a Record they are redacted. Lone surrogates in them are spelled out.
    """

    kind: str
    seqs: tuple[int, ...] = ()
    path: str = ""
    expected: str = ""
    observed: str = ""

    def __post_init__(self) -> None:
        if not _is_dotted(self.kind):
            raise ValueError(f"evidence kind {self.kind!r} is not of the form 'detector.kind'")
        spell_out(self, "path", "expected", "observed")


class Fact(Struct, frozen=True, array_like=True, gc=False):
    """One named number or word that accumulation, fusion or a face needs. Words are redacted as categorical fields.

    Raises ValueError when the name is not a lower-case word, or the number not finite.
    """

    name: str
    value: float | str

    def __post_init__(self) -> None:
        if not _is_name(self.name):
            raise ValueError(f"fact name {self.name!r} is not a lower-case word")
        if isinstance(self.value, str):
            spell_out(self, "value")
        elif math.isfinite(self.value):
            if type(self.value) is not float:
                force_setattr(self, "value", float(self.value))
        else:
            raise ValueError(f"fact {self.name} is {self.value}, which is not a number")


class Reading(Struct, frozen=True, kw_only=True, tag=True, gc=False):
    """A raw score in [0, 1] with the evidence for it. What it is worth is for the calibration to say.

    `code` is `detector.kind`: the name of the band that grades it and of the page that explains it. `models` names
    those who answered, when any did; `surrogate` marks an answer by a model that is not the session's own. Where it is
    not `vouched`, it rests on what nobody has measured, and no artefact makes it better than UNCALIBRATED.

    Raises ValueError when the score is not a number in [0, 1], or the code is not dotted.

    >>> Reading(detector="margin", version="1", code="trajectory.margin", score=0.25).score
    0.25
    """

    detector: str
    version: str
    code: str
    score: float
    evidence: tuple[Evidence, ...] = ()
    models: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()
    surrogate: bool = False
    vouched: bool = True

    def __post_init__(self) -> None:
        if not 0.0 <= self.score <= 1.0:  # NaN fails this too
            raise ValueError(f"score {self.score} of {self.detector} is outside [0, 1]")
        if not _is_dotted(self.code):
            raise ValueError(f"code {self.code!r} of {self.detector} is not of the form 'detector.kind'")
        if type(self.score) is not float:  # an int, or a float of numpy's, which JSON would write in another way
            force_setattr(self, "score", float(self.score))

    def fact(self, name: str) -> float | str | None:
        """Return the value of the first fact of that name, or None."""
        return next((fact.value for fact in self.facts if fact.name == name), None)


class Cause(StrEnum):
    """Why there is no reading where there should be one."""

    ERROR = "error"
    TIMEOUT = "timeout"
    MALFORMED = "malformed"
    NO_EVIDENCE = "no_evidence"
    ABANDONED = "abandoned"


class Failure(Struct, frozen=True, kw_only=True, tag=True, gc=False):
    """A monitor that could not look. It reaches the policy, the store and the report like a reading does."""

    detector: str
    version: str
    cause: Cause
    detail: str = ""

    def __post_init__(self) -> None:
        spell_out(self, "detail")


class Level(StrEnum):
    """How far a score is over its thresholds."""

    CLEAR = "clear"
    NOTABLE = "notable"
    STRONG = "strong"


class Status(StrEnum):
    """What a threshold rests on.

    EXACT: true or false, as a published contract is: nothing was fitted. CALIBRATED: fitted on sessions of this agent
    and model. REFERENCE: fitted by us on public sessions and shipped. UNCALIBRATED: somebody's estimate. STALE: fitted
    for another version, agent or model.
    """

    EXACT = "EXACT"
    CALIBRATED = "CALIBRATED"
    REFERENCE = "REFERENCE"
    UNCALIBRATED = "UNCALIBRATED"
    STALE = "STALE"


class Signal(Struct, frozen=True, kw_only=True, gc=False):
    """A graded answer. `said` is redacted; a failure is always CLEAR, since nothing was measured.

    `acts` and `finds` come from the band: whether an alarm may cause an action, and whether it counts as a finding.
    """

    said: Reading | Failure
    level: Level = Level.CLEAR
    status: Status = Status.UNCALIBRATED
    ambiguous: bool = False
    acts: bool = False
    finds: bool = False
    calibration: str | None = None

    @property
    def code(self) -> str:
        """The code of the reading, or `detector.failure`."""
        return self.said.code if isinstance(self.said, Reading) else f"{self.said.detector}.failure"

    @property
    def owner(self) -> str:
        """The detector whose code it is, also where a verifier spoke in its place."""
        return self.code.partition(".")[0]

    @property
    def alarmed(self) -> bool:
        """Whether the score is at or over the alert threshold."""
        return self.level is not Level.CLEAR
