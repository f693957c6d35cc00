"""One session: events in, decisions out, in order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeGuard

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from theodolite.core.coverage import Coverage
from theodolite.core.detector import AnyDetector
from theodolite.core.errors import EventError, StoreError
from theodolite.core.event import (
    HOST_EVENTS,
    AnyEvent,
    AnyHostEvent,
    Cleared,
    InquirySettled,
    ModelCalled,
    ProbeRequested,
    ToolCallProposed,
    TurnEnded,
    stamp,
)
from theodolite.core.inquiry import Inquiry, Query, Reply
from theodolite.core.intent import Call
from theodolite.core.policy import Action, Decision
from theodolite.core.reading import Cause, Failure, Reading, Signal
from theodolite.core.redaction import redact
from theodolite.core.verifier import Case
from theodolite.core.window import Window
from theodolite.features.folds import Folds
from theodolite.runtime.consult import Consultation, consult, failure_of
from theodolite.runtime.ledger import Ledger
from theodolite.runtime.tally import Tally

if TYPE_CHECKING:
    from theodolite.runtime.monitor import Monitor

__all__ = ("Saved", "Session")

# The form of `Saved`. A new one may not read an old one's sessions.
SCHEMA = 1


class SavedInquiry(Struct, frozen=True, kw_only=True):
    """An open inquiry, its subject as JSON: the asker knows its type."""

    asker: str
    version: str
    about: int
    not_before: float
    subject: Raw


class Saved(Struct, frozen=True, kw_only=True):
    """A session at rest. Holds raw text of the session: keep it in memory, or seal it."""

    schema: int
    session: str
    agent: str
    seq: int
    turn: int
    models: tuple[str, ...]
    restricted: tuple[str, ...]
    secrets: tuple[str, ...]
    states: dict[str, tuple[str, Raw]]
    inquiries: tuple[SavedInquiry, ...]
    folds: Folds
    window: Window
    tally: Tally
    ledger: Ledger


class Session:
    """What a Monitor knows of one session. Made by `Monitor.session`; safe to call from several threads.

    `observe` takes what happened and answers at once; only it changes what the session knows, one event at a time, in
    the order in which the events arrive. Inquiries that detectors open are put later, by `drain` or by the worker, and
    their answers come back as decisions of their own: an earlier decision is never revised.
    """

    def __init__(self, monitor: Monitor, session: str, agent: str) -> None:
        self.id = session
        self.agent = agent
        self._monitor = monitor
        self._lock = threading.RLock()
        self._seq = 0
        self._turn = 0
        self._models: set[str] = set()
        self._restricted: set[str] = set()
        self._secrets: set[str] = set()
        self._states: dict[str, Struct] = {d.name: d.begin() for d in monitor.detectors}
        self._open: list[Inquiry] = []
        self._driven: list[Inquiry] = []
        self._late: list[Failure] = []
        self._folds = Folds.begin(monitor.needs)
        self._window = Window()
        self._tally = Tally()
        self._ledger = Ledger()
        self._closed = False

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """Close the session."""
        self.close()

    # -- what happened ------------------------------------------------------------------------------------------------

    def observe(self, event: AnyHostEvent) -> Decision:
        """Take an event of the host and decide. The event is stamped with its place and, unless it has one, its time.

        Waits only for a refusal to be kept; a store that fails shows in the decision as a Failure. Raises EventError
        for an event that a host may not bring, or after `close`.
        """
        if type(event) not in HOST_EVENTS:
            raise EventError(
                f"session {self.id}: a host may not bring {type(event).__name__}; own events come from request_probe, "
                "drain, announce and clear"
            )
        return self.take(event)

    def request_probe(self, reason: str) -> Decision:
        """Ask for a probe now; detectors that probe open an inquiry, unless their own limits forbid it."""
        return self.take(ProbeRequested(reason=reason))

    def take(self, event: AnyEvent) -> Decision:
        """Take any event, own ones included: for replay of a sealed recording and for Monitor. Hosts call `observe`."""
        with self._lock:
            if self._closed:
                raise EventError(f"session {self.id} is closed: open it again with monitor.session({self.id!r})")
            # An inquiry that is not open is refused before anything has changed.
            about = self._claim(event).about if isinstance(event, InquirySettled) else self._seq
            stamped = self._stamp(event)
            self._window.push(stamped)
            self._tally.saw(stamped)
            call = self._window.call = self._folds.fold(stamped, self._monitor.effects)
            self._window.goal = self._folds.goal
            said = self._hear(stamped)
            if isinstance(stamped, Cleared):
                self._restricted.clear()
            elif isinstance(stamped, ModelCalled):
                self._models.add(stamped.model)
            return self._decide(stamped, about, said, call)

    def _stamp(self, event: AnyEvent) -> AnyEvent:
        stamped = stamp(
            event,
            session=self.id,
            agent=self.agent,
            seq=self._seq,
            at=event.at or self._monitor.clock(),
            turn=self._turn if event.turn < 0 else event.turn,
        )
        self._seq += 1
        if isinstance(event, TurnEnded):
            self._turn = max(self._turn, stamped.turn) + 1
        return stamped

    def _hear(self, event: AnyEvent) -> list[Reading | Failure]:
        """Ask every detector that reads the event; keep what it opens, return what was said."""
        said: list[Reading | Failure] = [*self._late]
        self._late.clear()
        if isinstance(event, InquirySettled):
            self._secrets.update(event.canaries)
            said.extend(self._banded(answer) for answer in event.said)
        for detector in self._monitor.readers.get(type(event), ()):
            try:
                for answer in detector.update(self._states[detector.name], event, self._window):
                    if isinstance(answer, Inquiry):
                        self._enqueue(answer, said)
                    else:
                        said.append(self._checked(answer, detector))
            except Exception as error:  # noqa: BLE001 - the boundary to detectors: their fault becomes a value
                said.append(failure_of(error, detector.name, detector.version))
        return said

    def _checked(self, answer: Reading | Failure, detector: AnyDetector) -> Reading | Failure:
        if not _is_answer(answer):
            raise TypeError(f"update gave {type(answer).__name__}, not Reading, Failure or Inquiry")
        if answer.detector != detector.name:
            raise TypeError(f"update spoke in the name of {answer.detector}")
        if isinstance(answer, Reading) and answer.code not in detector.bands:
            raise TypeError(f"update gave the code {answer.code}, which has no band")
        return answer

    def _banded(self, answer: Reading | Failure) -> Reading | Failure:
        if isinstance(answer, Failure) or answer.code in self._monitor.bands:
            return answer
        detail = f"the inquiry gave the code {answer.code}, which has no band"
        return Failure(detector=answer.detector, version=answer.version, cause=Cause.MALFORMED, detail=detail)

    def _decide(self, event: AnyEvent, about: int, said: Iterable[Reading | Failure], call: Call | None) -> Decision:
        monitor = self._monitor
        signals = tuple([self._graded(answer) for answer in said])
        self._second_opinions(event, signals)
        self._restricted.update(
            signal.said.detector for signal in signals if monitor.policy.action(signal) is Action.RESTRICTED_MODE
        )
        effect = call.intent.effect if isinstance(event, ToolCallProposed) and call is not None else None
        decision = monitor.policy.decide(
            session=self.id,
            seq=event.seq,
            about=about,
            signals=signals,
            call=effect,
            restricted=self._restricted,
            open_inquiries=len(self._open) + len(self._driven),
        )
        self._tally.decided(decision)
        try:
            self._ledger.keep(decision, event, self._window, monitor, self._secrets)
            if monitor.recorder is not None:
                monitor.recorder(event)
        except StoreError as error:
            return self._unkept(decision, error, call=effect is not None)
        return decision

    def _unkept(self, decision: Decision, error: StoreError, *, call: bool) -> Decision:
        failure = Failure(detector="store", version="1", cause=Cause.ERROR, detail=str(error))
        failed = Signal(said=redact(failure, self._monitor.redactor, self._secrets))
        self._tally.failed("store")
        allowed = decision.allowed and not (call and self._monitor.policy.fail_closed)
        return replace(decision, signals=(*decision.signals, failed), allowed=allowed)

    def _graded(self, said: Reading | Failure) -> Signal:
        return self._monitor.grade(
            redact(said, self._monitor.redactor, self._secrets), agent=self.agent, models=self._models
        )

    def _second_opinions(self, event: AnyEvent, signals: tuple[Signal, ...]) -> None:
        if isinstance(event, InquirySettled):
            return
        for signal in signals:
            verifier = self._monitor.verifier(signal) if signal.ambiguous else None
            if verifier is not None:
                case = Case(signal=signal, events=tuple(self._window.recent()))
                opened = Inquiry(asker=verifier.name, version=verifier.version, about=event.seq, subject=case)
                self._enqueue(opened, self._late)

    # -- inquiries ----------------------------------------------------------------------------------------------------

    def _enqueue(self, inquiry: Inquiry, said: list[Reading | Failure] | list[Failure]) -> None:
        if self._monitor.admit():
            self._open.append(inquiry)
            return
        detail = "the queue of inquiries is full"
        said.append(Failure(detector=inquiry.asker, version=inquiry.version, cause=Cause.ABANDONED, detail=detail))

    def _claim(self, event: InquirySettled) -> Inquiry:
        """Take the inquiry that was settled off the lists. Raises EventError when there is none."""
        for waiting in (self._driven, self._open):
            for inquiry in waiting:
                if (inquiry.asker, inquiry.about) == (event.asker, event.about):
                    waiting.remove(inquiry)
                    self._monitor.release()
                    return inquiry
        raise EventError(
            f"session {self.id}: no open inquiry of {event.asker} about event {event.about}; it was settled before"
        )

    def next_inquiry(self, about: int | None = None) -> Inquiry | None:
        """Take an open inquiry to be driven, so that nobody else drives it; None when there is none."""
        with self._lock:
            for inquiry in self._open:
                if about is None or inquiry.about == about:
                    self._open.remove(inquiry)
                    self._driven.append(inquiry)
                    return inquiry
            return None

    def _put_back(self, inquiry: Inquiry) -> None:
        with self._lock:
            if inquiry in self._driven:
                self._driven.remove(inquiry)
                self._open.insert(0, inquiry)

    @property
    def waiting(self) -> int:
        """How many inquiries are open and not under way."""
        return len(self._open)

    async def drain(self, about: int | None = None) -> tuple[Decision, ...]:
        """Put the open inquiries (about one event, or all) to the panel; return the decisions that follow.

        Cancelled, it leaves the inquiry under way open again.
        """
        # The event loop takes some 80 ms to import: only those who ask models pay for it.
        from theodolite.runtime.drive import drive, wait  # noqa: PLC0415

        decisions: list[Decision] = []
        while (inquiry := self.next_inquiry(about)) is not None:
            try:
                await wait(inquiry.not_before - self._monitor.clock())
                settled = await drive(self._consultation(inquiry), self._monitor.panel)
            except BaseException:
                self._put_back(inquiry)
                raise
            decisions.append(self.take(settled))
        return tuple(decisions)

    def drain_sync(self, ask: Callable[[Query], Reply | Failure] | None = None) -> tuple[Decision, ...]:
        """Like `drain`, for hosts without an event loop; `ask` answers instead of the panel, as a script does."""
        from theodolite.runtime.drive import drive_sync, run  # noqa: PLC0415 - as above

        if ask is None:
            return run(self.drain)
        decisions: list[Decision] = []
        while (inquiry := self.next_inquiry()) is not None:
            try:
                settled = drive_sync(self._consultation(inquiry), ask)
            except BaseException:
                self._put_back(inquiry)
                raise
            decisions.append(self.take(settled))
        return tuple(decisions)

    def _consultation(self, inquiry: Inquiry) -> Consultation:
        monitor = self._monitor
        asker = monitor.askers[inquiry.asker]
        # A verifier's own answer is not put to a verifier again.
        verifiers = () if isinstance(inquiry.subject, Case) else monitor.verifiers
        return consult(asker, inquiry, grade=self._graded, verifiers=verifiers, window=self._window)

    # -- what it comes to ---------------------------------------------------------------------------------------------

    @property
    def restricted(self) -> frozenset[str]:
        """The detectors whose restriction stands."""
        return frozenset(self._restricted)

    def coverage(self) -> Coverage:
        """Return what came, and who could not judge."""
        with self._lock:
            return self._tally.coverage(self._monitor.detectors)

    def close(self) -> None:
        """Settle what is open as ABANDONED, keep the coverage, and leave the Monitor. Closing twice does nothing.

        Raises StoreError where the coverage cannot be kept.
        """
        with self._lock:
            if self._closed:
                return
            for inquiry in (*self._driven, *self._open):
                detail = "the session was closed before the inquiry was settled"
                failure = Failure(detector=inquiry.asker, version=inquiry.version, cause=Cause.ABANDONED, detail=detail)
                self.take(InquirySettled(asker=inquiry.asker, about=inquiry.about, said=(failure,)))
            self._closed = True
            self._monitor.forget(self)
            self._ledger.close(self.id, self.coverage(), self._monitor)

    def save(self) -> bytes:
        """Return all that the session knows, for `Monitor.restore`. Holds raw text: keep it in memory or seal it."""
        with self._lock:
            saved = Saved(
                schema=SCHEMA,
                session=self.id,
                agent=self.agent,
                seq=self._seq,
                turn=self._turn,
                models=tuple(sorted(self._models)),
                restricted=tuple(sorted(self._restricted)),
                secrets=tuple(sorted(self._secrets)),
                states={
                    d.name: (d.version, Raw(msgspec.json.encode(self._states[d.name]))) for d in self._monitor.detectors
                },
                inquiries=tuple([_saved(inquiry) for inquiry in (*self._driven, *self._open)]),
                folds=self._folds,
                window=self._window,
                tally=self._tally,
                ledger=self._ledger,
            )
            return msgspec.json.encode(saved)

    @classmethod
    def restored(cls, monitor: Monitor, document: bytes) -> Session:
        """Return the session that `save` gave, under a Monitor that may have other detectors by now.

        State of a detector in another version, and inquiries of an asker that is not there or in another version, are
        lost; each loss is said as a Failure with the next decision. Raises EventError for what is not a saved session.
        """
        try:
            saved = msgspec.json.decode(document, type=Saved)
        except msgspec.DecodeError as error:
            raise EventError(f"this is not a saved session: {error}") from error
        if saved.schema != SCHEMA:
            raise EventError(f"session {saved.session} was saved in form {saved.schema}, this version reads {SCHEMA}")
        session = cls(monitor, saved.session, saved.agent)
        session._restore(saved)
        return session

    def _restore(self, saved: Saved) -> None:
        self._seq, self._turn = saved.seq, saved.turn
        self._models, self._restricted = set(saved.models), set(saved.restricted)
        self._secrets = set(saved.secrets)
        self._window, self._tally, self._ledger = saved.window, saved.tally, saved.ledger
        self._folds = saved.folds.with_needs(self._monitor.needs)
        for detector in self._monitor.detectors:
            version, state = saved.states.get(detector.name, ("", Raw(b"null")))
            if version == detector.version:
                kind = type(self._states[detector.name])
                self._states[detector.name] = msgspec.json.decode(state, type=kind)
            else:
                detail = f"its state was saved by version {version or 'none'} and is lost"
                self._late.append(
                    Failure(detector=detector.name, version=detector.version, cause=Cause.ABANDONED, detail=detail)
                )
        for inquiry in saved.inquiries:
            self._restore_inquiry(inquiry)

    def _restore_inquiry(self, saved: SavedInquiry) -> None:
        asker = self._monitor.askers.get(saved.asker)
        if asker is None or asker.version != saved.version:
            detail = (
                f"its inquiry about event {saved.about} cannot be restored: the asker is gone or of another version"
            )
            self._late.append(
                Failure(detector=saved.asker, version=saved.version, cause=Cause.ABANDONED, detail=detail)
            )
            return
        inquiry = Inquiry(
            asker=saved.asker,
            version=saved.version,
            about=saved.about,
            not_before=saved.not_before,
            subject=msgspec.json.decode(saved.subject, type=asker.subject),
        )
        self._enqueue(inquiry, self._late)


def _is_answer(value: object) -> TypeGuard[Reading | Failure]:
    return isinstance(value, Reading | Failure)


def _saved(inquiry: Inquiry) -> SavedInquiry:
    return SavedInquiry(
        asker=inquiry.asker,
        version=inquiry.version,
        about=inquiry.about,
        not_before=inquiry.not_before,
        subject=Raw(msgspec.json.encode(inquiry.subject)),
    )
