"""One session: events in, decisions out, in order."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Collection, Generator, Iterable
from contextlib import contextmanager
from functools import partial
from operator import attrgetter
from types import TracebackType
from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from theodolite.core.coverage import Coverage
from theodolite.core.errors import EventError, StoreError
from theodolite.core.event import (
    HOST_EVENTS,
    AnyEvent,
    AnyHostEvent,
    CanaryChecked,
    CanaryVerdict,
    Channel,
    Cleared,
    InquirySettled,
    ModelCalled,
    ProbeRequested,
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
from theodolite.runtime.answers import attempted, hear, marked
from theodolite.runtime.consult import Consultation, consult
from theodolite.runtime.fleet import Fleet
from theodolite.runtime.ledger import Ledger
from theodolite.runtime.saved import SCHEMA, Saved, SavedInquiry, SavedState, encoded
from theodolite.runtime.tally import Tally

__all__ = ("Session",)


class Session:
    """What a Monitor knows of one session. Made by `Monitor.session`; safe to call from several threads.

    `observe` takes what happened and answers at once; only it changes what the session knows, one event at a time, in
    the order in which the events arrive. Inquiries that detectors open are put later, by `drain` or by the worker, and
    their answers come back as decisions of their own: an earlier decision is never revised.
    """

    def __init__(
        self,
        fleet: Fleet,
        session: str,
        agent: str,
        *,
        on_close: Callable[[Session], None],
        restricted: Collection[str] = (),
    ) -> None:
        self.id = session
        self.agent = agent
        self._fleet = fleet
        self._on_close = on_close
        self._lock = threading.RLock()
        self._seq = 0
        self._turn = 0
        # Frozen, since a drain reads them beside an `observe` on another thread.
        self._models: frozenset[str] = frozenset()
        self._secrets: frozenset[str] = frozenset()
        self._restricted: frozenset[str] = frozenset(restricted)
        # What canary contracts showed last of each channel, and which of the Monitor's announcements that was.
        self._verdicts: dict[Channel, tuple[str, CanaryVerdict]] = {}
        self._told: dict[Channel, int] = {}
        self._states: dict[str, Struct] = {d.name: d.begin() for d in fleet.detectors}
        self._open: list[Inquiry] = []
        self._driven: list[Inquiry] = []
        self._late: list[Failure] = []
        self._folds = Folds.begin(fleet.needs)
        self._window = Window(secret=fleet.secret(session))
        self._queued = 0  # changes of the queue since it was last shelved
        self._tally = Tally()
        self._ledger = Ledger()
        self._closing = False
        self._closed = False

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """Close the session."""
        self.close()

    def observe(self, event: AnyHostEvent) -> Decision:
        """Take an event of the host and decide. The event is stamped with its place and, unless it has one, its time.

        Waits only for a refusal to be kept. A redactor, store or recorder that fails shows in the decision as a
        Failure. Raises EventError for an event that a host may not bring, or after `close`.
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
            call = self._window.call = self._folds.fold(stamped, self._fleet.effects)
            self._window.goal = self._folds.goal
            said = self._hear(stamped)
            if isinstance(stamped, Cleared):
                self._restricted = frozenset()
            elif isinstance(stamped, ModelCalled):
                self._models |= {stamped.model}
            elif isinstance(stamped, CanaryChecked):
                self._verdicts[stamped.checked] = (stamped.contract, stamped.verdict)
            return self._decide(stamped, about, said, call)

    def tell(self, event: CanaryChecked, number: int, *, standing: bool = False) -> Decision | None:
        """Take the Monitor's announcement of that number; None where a later one about the channel was told before.

        None, too, where a `standing` one shows what the session knew when it was saved.
        """
        with self._lock:
            if number <= self._told.get(event.checked, 0):
                return None
            self._told[event.checked] = number
            if standing and self._verdicts.get(event.checked) == (event.contract, event.verdict):
                return None
            return self.take(event)

    def note(self, failure: Failure) -> None:
        """Keep a failure that belongs to no event, to be told with the next decision."""
        with self._lock:
            self._late.append(failure)

    def _stamp(self, event: AnyEvent) -> AnyEvent:
        stamped = stamp(
            event,
            session=self.id,
            agent=self.agent,
            seq=self._seq,
            at=event.at or self._fleet.clock(),
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
            self._secrets |= set(event.canaries)
            said.extend(event.said)
        for detector in self._fleet.readers.get(type(event), ()):
            for answer in hear(detector, self._states[detector.name], event, self._window, self._fleet.askers):
                said.extend(self._enqueue(answer) if isinstance(answer, Inquiry) else (marked(answer, self._models),))
        return said

    def _decide(self, event: AnyEvent, about: int, said: Iterable[Reading | Failure], call: Call | None) -> Decision:
        fleet = self._fleet
        faults = fleet.redactor.watch()
        signals = tuple([self._graded(answer) for answer in said])
        signals += tuple([self._graded(failure) for failure in self._second_opinions(event, signals)])
        denied = tuple(faults)
        signals += tuple([self._graded(failure) for failure in denied])
        self._restricted |= {
            signal.owner for signal in signals if fleet.policy.action(signal) is Action.RESTRICTED_MODE
        }
        decision = fleet.policy.decide(
            session=self.id,
            seq=event.seq,
            about=about,
            signals=signals,
            call=None if call is None else call.intent.effect,
            restricted=self._restricted,
            open_inquiries=self.waiting,
        )
        self._tally.decided(decision)
        unkept = [*self._keep(decision, event), *faults[len(denied) :]]
        return self._unkept(decision, unkept, call=call is not None) if unkept else decision

    def _keep(self, decision: Decision, event: AnyEvent) -> list[Failure]:
        """Keep a decision and record the event; return what failed of that."""
        fleet = self._fleet
        keep = partial(self._ledger.keep, decision, event, self._window, fleet, self._secrets)
        done = [attempted(keep, "store", "1")]
        if fleet.recorder is not None:
            done.append(attempted(partial(fleet.recorder, event), "recorder", "1"))
        done.append(attempted(self._shelve, "shelf", "1"))
        return [fault for fault in done if isinstance(fault, Failure)]

    def _shelve(self) -> None:
        """Hold the session on the shelf while inquiries are open; does nothing when the queue has not changed."""
        shelf = self._fleet.shelf
        if shelf is None or not self._queued:
            return
        if self.waiting:
            shelf.keep(self.id, self.save())
        else:
            shelf.drop(self.id)
        self._queued = 0

    def _unkept(self, decision: Decision, faults: Iterable[Failure], *, call: bool) -> Decision:
        """Return a decision with what failed after it was made, and which is therefore not in its record."""
        for fault in faults:
            self._tally.failed(fault.detector)
        signals = (*decision.signals, *[self._graded(fault) for fault in faults])
        allowed = decision.allowed and not (call and self._fleet.policy.fail_closed)
        return replace(decision, signals=signals, allowed=allowed)

    def _graded(self, said: Reading | Failure) -> Signal:
        # Graded as it was said, since a redactor may take the very names of the models that a calibration vouches for.
        signal = self._fleet.grade(said, agent=self.agent, models=self._models)
        return replace(
            signal, said=redact(signal.said, self._fleet.redactor, self._secrets, around=self._window.events)
        )

    def _second_opinions(self, event: AnyEvent, signals: tuple[Signal, ...]) -> list[Failure]:
        """Open an inquiry about each ambiguous signal that a verifier may settle; return what could not be opened."""
        refused: list[Failure] = []
        if isinstance(event, InquirySettled):
            return refused
        for signal in signals:
            verifier = self._fleet.verifier(signal) if signal.ambiguous else None
            if verifier is not None:
                case = Case(signal=signal, events=tuple(self._window.recent()))
                opened = Inquiry(asker=verifier.name, version=verifier.version, about=event.seq, subject=case)
                refused.extend(self._enqueue(opened))
        return refused

    def _enqueue(self, inquiry: Inquiry) -> tuple[Failure, ...]:
        detail = "the session is being closed"
        if not self._closing:
            if self._fleet.admit(self.id):
                self._open.append(inquiry)
                self._queued += 1
                return ()
            detail = "the queue of inquiries is full"
        return (Failure(detector=inquiry.asker, version=inquiry.version, cause=Cause.ABANDONED, detail=detail),)

    def _claim(self, event: InquirySettled) -> Inquiry:
        """Take the inquiry that was settled off the lists. Raises EventError when there is none."""
        for waiting in (self._driven, self._open):
            for inquiry in waiting:
                if (inquiry.asker, inquiry.about) == (event.asker, event.about):
                    waiting.remove(inquiry)
                    self._queued += 1
                    self._fleet.release(self.id)
                    return inquiry
        raise EventError(
            f"session {self.id}: no open inquiry of {event.asker} about event {event.about}; it was settled before"
        )

    def next_inquiry(self, about: int | None = None, *, due: bool = False) -> Inquiry | None:
        """Take the open inquiry whose time comes first to be driven, so that nobody else drives it.

        None when there is none; with `due`, none whose time has come.
        """
        with self._lock:
            now = self._fleet.clock() if due else math.inf
            ready = [item for item in self._open if item.not_before <= now and about in {None, item.about}]
            if not ready:
                return None
            inquiry = min(ready, key=attrgetter("not_before"))
            self._open.remove(inquiry)
            self._driven.append(inquiry)
            return inquiry

    @contextmanager
    def _driving(self, inquiry: Inquiry) -> Generator[list[InquirySettled], None, None]:
        """Give a list for what the inquiry comes to; where it stays empty, the inquiry is open again afterwards."""
        outcome: list[InquirySettled] = []
        try:
            yield outcome
        finally:
            with self._lock:
                if not outcome and inquiry in self._driven:
                    self._driven.remove(inquiry)
                    self._open.insert(0, inquiry)

    def _settled(self, inquiry: Inquiry, settled: InquirySettled) -> tuple[Decision, ...]:
        """Take what an inquiry came to; nothing where it was abandoned meanwhile, because the session was closed."""
        with self._lock:
            if inquiry not in self._driven:
                return ()
            # Of two inquiries of one asker about one event, the one that was driven is the one that is settled.
            self._driven.remove(inquiry)
            self._driven.insert(0, inquiry)
            return (self.take(settled),)

    @property
    def waiting(self) -> int:
        """How many inquiries are not yet settled."""
        return len(self._open) + len(self._driven)

    @property
    def due(self) -> bool:
        """Whether an inquiry is open, not under way, and its time has come."""
        now = self._fleet.clock()
        return any(inquiry.not_before <= now for inquiry in tuple(self._open))

    async def drain(self, about: int | None = None, *, due: bool = False) -> tuple[Decision, ...]:
        """Put the open inquiries (about one event, or all) to the panel; return the decisions that follow.

        Waits for those whose time has not come; with `due` it leaves them open. Cancelled, it leaves the inquiry under
        way open again.
        """
        # The event loop takes some 80 ms to import: only those who ask models pay for it.
        from theodolite.runtime.drive import attempt, drive, wait  # noqa: PLC0415

        decisions: list[Decision] = []
        while (inquiry := self.next_inquiry(about, due=due)) is not None:
            with self._driving(inquiry) as outcome:
                await wait(inquiry.not_before - self._fleet.clock())
                driving = partial(drive, self._consultation(inquiry), self._fleet.panel)
                driven = await attempt(driving, inquiry.asker, inquiry.version)
                outcome.append(_failed(inquiry, driven) if isinstance(driven, Failure) else driven)
            decisions.extend(self._settled(inquiry, outcome[0]))
        return tuple(decisions)

    def drain_sync(self, ask: Callable[[Query], Reply | Failure] | None = None) -> tuple[Decision, ...]:
        """Like `drain`, for hosts without an event loop; `ask` answers instead of the panel, as a script does."""
        from theodolite.runtime.drive import drive_sync, run  # noqa: PLC0415 - as above

        if ask is None:
            return run(self.drain, self._fleet.panel)
        decisions: list[Decision] = []
        while (inquiry := self.next_inquiry()) is not None:
            with self._driving(inquiry) as outcome:
                outcome.append(drive_sync(self._consultation(inquiry), ask))
            decisions.extend(self._settled(inquiry, outcome[0]))
        return tuple(decisions)

    def _consultation(self, inquiry: Inquiry) -> Consultation:
        fleet = self._fleet
        asker = fleet.askers[inquiry.asker]
        # A verifier's own answer is not put to a verifier again.
        verifiers = () if isinstance(inquiry.subject, Case) else fleet.verifiers
        road = consult(
            asker, inquiry, grade=self._graded, verifiers=verifiers, window=self._window, models=self._models
        )
        return fleet.purse.within(road, self.id)

    @property
    def restricted(self) -> frozenset[str]:
        """The detectors whose restriction stands."""
        return self._restricted

    def coverage(self) -> Coverage:
        """Return what came, and who could not judge."""
        with self._lock:
            return self._tally.coverage(self._fleet.detectors, self._fleet.in_force)

    def close(self) -> tuple[Decision, ...]:
        """Settle what is open as ABANDONED, keep the coverage, leave the Monitor; return the decisions that follow.

        Closing twice does nothing. Raises StoreError where the coverage cannot be kept.
        """
        with self._lock:
            if self._closed:
                return ()
            self._closing = True  # what is opened from here on would be left open
            decisions: list[Decision] = []
            for inquiry in (*self._driven, *self._open):
                detail = "the session was closed before the inquiry was settled"
                failure = Failure(detector=inquiry.asker, version=inquiry.version, cause=Cause.ABANDONED, detail=detail)
                decisions.append(self.take(_failed(inquiry, failure)))
            for failure in self._late:
                self._tally.failed(failure.detector)
            self._leave()
            fault = attempted(partial(self._ledger.close, self.id, self.coverage(), self._fleet), "store", "1")
            if fault is not None:
                raise StoreError(fault.detail)
            return tuple(decisions)

    def suspend(self) -> None:
        """Leave the Monitor with what is open held on its shelf; without a shelf, or open inquiries, `close`.

        Raises StoreError where it cannot be held; the session is then closed.
        """
        with self._lock:
            shelf = self._fleet.shelf
            if shelf is None or not self.waiting or self._closed:
                self.close()
                return
            fault = attempted(partial(shelf.keep, self.id, self.save()), "shelf", "1")
            if isinstance(fault, Failure):
                self.close()
                raise StoreError(fault.detail)
            for _ in range(self.waiting):
                self._fleet.release(self.id)
            self._open.clear()
            self._driven.clear()
            self._leave()

    def _leave(self) -> None:
        self._closed = True
        self._fleet.purse.forget(self.id)
        self._on_close(self)

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
                verdicts=dict(self._verdicts),
                states={d.name: SavedState.of(d, self._states[d.name]) for d in self._fleet.detectors},
                inquiries=tuple([SavedInquiry.of(inquiry) for inquiry in (*self._driven, *self._open)]),
                late=tuple(self._late),
                folds=self._folds,
                window=self._window,
                tally=self._tally,
                ledger=self._ledger,
            )
            return encoded(saved)

    @classmethod
    def restored(
        cls, fleet: Fleet, saved: Saved, *, on_close: Callable[[Session], None], restricted: Collection[str] = ()
    ) -> Session:
        """Return the session that `save` gave, under a Monitor that may have other detectors by now.

        State of a detector in another version, and inquiries of an asker that is not there or in another version, are
        lost; each loss is said as a Failure with the next decision. `restricted` is added to what was saved.
        """
        session = cls(fleet, saved.session, saved.agent, on_close=on_close, restricted=restricted)
        session._restore(saved)
        return session

    def _restore(self, saved: Saved) -> None:
        self._seq, self._turn = saved.seq, saved.turn
        self._models, self._restricted = frozenset(saved.models), self._restricted | set(saved.restricted)
        self._secrets, self._verdicts = frozenset(saved.secrets), dict(saved.verdicts)
        self._window, self._tally, self._ledger = saved.window, saved.tally, saved.ledger
        self._folds = saved.folds.with_needs(self._fleet.needs)
        self._late = list(saved.late)
        for detector in self._fleet.detectors:
            kept = saved.states.get(detector.name)
            try:
                if kept is not None:
                    self._states[detector.name] = kept.restored(detector, type(self._states[detector.name]))
                else:
                    self._lost(detector.name, detector.version, "it was not there when the session was saved")
            except ValueError as error:
                self._lost(detector.name, detector.version, f"its state is lost: {error}")
        for waiting in saved.inquiries:
            try:
                self._late.extend(self._enqueue(waiting.restored(self._fleet.askers)))
            except ValueError as error:
                detail = f"its inquiry about event {waiting.about} is lost: {error}"
                self._lost(waiting.asker, waiting.version, detail)

    def _lost(self, name: str, version: str, detail: str) -> None:
        self._late.append(Failure(detector=name, version=version, cause=Cause.ABANDONED, detail=detail))


def _failed(inquiry: Inquiry, failure: Failure) -> InquirySettled:
    return InquirySettled(asker=inquiry.asker, about=inquiry.about, said=(failure,))
