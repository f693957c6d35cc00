"""A session at rest: what `Session.save` gives and `Monitor.restore` takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
from msgspec import Raw, Struct

from theodolite.core.arguments import is_mapping, is_sequence
from theodolite.core.detector import AnyDetector, Asker
from theodolite.core.errors import EventError
from theodolite.core.fusion import AnyFusion
from theodolite.core.inquiry import Inquiry
from theodolite.core.reading import Cause, Failure
from theodolite.features.folds import Folds
from theodolite.runtime.memory import Memory

__all__ = ("SCHEMA", "Saved", "SavedInquiry", "SavedState", "decoded", "encoded", "unfolded")

# The form of `Saved`. A new one may not read an old one's sessions: a field that an old one lacks would be read as it
# is in a new session, and calls judged as if what it stands for had never been said.
SCHEMA = 5


class SavedInquiry(Struct, frozen=True, kw_only=True):
    """An open inquiry, its subject as JSON: the asker knows its type."""

    asker: str
    version: str
    about: int
    not_before: float
    subject: Raw

    @classmethod
    def of(cls, inquiry: Inquiry) -> SavedInquiry:
        """Return an inquiry in the form in which it is saved."""
        return cls(
            asker=inquiry.asker,
            version=inquiry.version,
            about=inquiry.about,
            not_before=inquiry.not_before,
            subject=Raw(msgspec.json.encode(inquiry.subject)),
        )

    def restored(self, askers: Mapping[str, Asker]) -> Inquiry:
        """Return the inquiry. Raises ValueError when its asker is gone, or cannot read its subject any more."""
        asker = askers.get(self.asker)
        if asker is None or asker.version != self.version:
            raise ValueError("the asker is gone or of another version")
        return Inquiry(
            asker=self.asker,
            version=self.version,
            about=self.about,
            not_before=self.not_before,
            subject=msgspec.json.decode(self.subject, type=asker.subject),
        )


class SavedState(Struct, frozen=True, kw_only=True):
    """What a detector or a fusion remembers, as JSON: it alone knows its type."""

    version: str
    state: Raw

    @classmethod
    def of(cls, detector: AnyDetector | AnyFusion, state: Struct) -> SavedState:
        """Return a state in the form in which it is saved."""
        return cls(version=detector.version, state=Raw(msgspec.json.encode(state)))

    def restored(self, detector: AnyDetector | AnyFusion, kind: type[Struct]) -> Struct:
        """Return the state. Raises ValueError when the detector is of another version, or cannot read it any more."""
        if self.version != detector.version:
            raise ValueError(f"it was saved by version {self.version}")
        return msgspec.json.decode(self.state, type=kind)


class Saved(Struct, frozen=True, kw_only=True):
    """A session at rest. Holds raw text of the session and its secret: keep it in memory, or seal it."""

    schema: int
    session: str
    agent: str
    memory: Memory
    states: dict[str, SavedState]
    inquiries: tuple[SavedInquiry, ...]

    def known(
        self, detectors: Iterable[AnyDetector | AnyFusion], begun: Mapping[str, Struct]
    ) -> tuple[dict[str, Struct], list[Failure]]:
        """Return what the detectors remember, by name, and a Failure for each whose memory is lost.

        `begun` has a state of each, which tells its type.
        """
        states: dict[str, Struct] = {}
        lost: list[Failure] = []
        for detector in detectors:
            kept = self.states.get(detector.name)
            detail = "it was not there when the session was saved"
            try:
                if kept is not None:
                    states[detector.name] = kept.restored(detector, type(begun[detector.name]))
                    continue
            except ValueError as error:
                detail = f"its state is lost: {error}"
            lost.append(_lost(detector.name, detector.version, detail))
        return states, lost

    def open(self, askers: Mapping[str, Asker]) -> tuple[list[Inquiry], list[Failure]]:
        """Return the open inquiries, and a Failure for each that is lost."""
        inquiries: list[Inquiry] = []
        lost: list[Failure] = []
        for waiting in self.inquiries:
            try:
                inquiries.append(waiting.restored(askers))
            except ValueError as error:
                detail = f"its inquiry about event {waiting.about} is lost: {error}"
                lost.append(_lost(waiting.asker, waiting.version, detail))
        return inquiries, lost


def _lost(name: str, version: str, detail: str) -> Failure:
    return Failure(detector=name, version=version, cause=Cause.ABANDONED, detail=detail)


class _Form(Struct):
    """What all forms have in common."""

    schema: int
    session: str


def encoded(saved: Saved) -> bytes:
    """Return a session at rest as JSON."""
    return msgspec.json.encode(saved)


def decoded(document: bytes) -> Saved:
    """Return the session at rest of a JSON document. Raises EventError for what is none of this version's."""
    try:
        form = msgspec.json.decode(document, type=_Form)
        saved = msgspec.json.decode(document, type=Saved) if form.schema == SCHEMA else None
        whole = saved is None or _alike(msgspec.json.decode(document), msgspec.json.decode(encoded(saved)))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError) as error:
        raise EventError(f"this is not a saved session: {error}; give what Session.save returned") from error
    advice = "restore it with the version that saved it, or open it anew"
    if saved is None:
        raise EventError(
            f"session {form.session} was saved in form {form.schema}, and this version reads {SCHEMA}: {advice}"
        )
    if not whole:
        raise EventError(f"session {form.session} was saved with other fields than this version keeps: {advice}")
    return saved


def _alike(one: object, other: object) -> bool:
    """Whether two JSON values have the same keys everywhere: nothing was left out, and nothing put in its place."""
    left: list[tuple[object, object]] = [(one, other)]
    while left:
        one, other = left.pop()
        if is_mapping(one) and is_mapping(other):
            if one.keys() != other.keys():
                return False
            left += [(one[key], other[key]) for key in one]
        elif is_sequence(one) and is_sequence(other):
            left += zip(one, other, strict=False)
        elif is_mapping(one) or is_mapping(other):
            return False  # a fold in one place, none in the other
    return True


def unfolded(before: Folds, now: Folds, events: int) -> list[Failure]:
    """Return the Failure that is said where a fold starts empty in a session that already has events."""
    begun = any(getattr(before, fold) is None and getattr(now, fold) is not None for fold in ("index", "shape"))
    if not (begun and events):
        return []
    detail = f"the texts before event {events} were not kept for the detectors that compare calls with them"
    return [Failure(detector="features", version="1", cause=Cause.NO_EVIDENCE, detail=detail)]
