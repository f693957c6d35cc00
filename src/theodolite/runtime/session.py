"""One session: events in, decisions out, in order."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from contextlib import contextmanager
from functools import partial
from types import MappingProxyType, TracebackType
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
    Channel,
    InquirySettled,
    ProbeRequested,
)
from theodolite.core.inquiry import Inquiry, Query, Reply, Role
from theodolite.core.intent import ArgumentOrigin, Call
from theodolite.core.policy import Action, Decision
from theodolite.core.reading import Failure, Reading, Signal
from theodolite.core.redaction import Scrubber, redact
from theodolite.core.snapshot import StateSnapshot
from theodolite.core.verifier import Case
from theodolite.core.window import Window
from theodolite.features.folds import Folds
from theodolite.runtime.answers import attempted, failure_of, fuse, hear, marked
from theodolite.runtime.consult import Consultation, Desk, consult
from theodolite.runtime.fleet import Fleet
from theodolite.runtime.inquiries import Inquiries, abandoned, failed
from theodolite.runtime.memory import Memory
from theodolite.runtime.origins import shown
from theodolite.runtime.purse import Spent
from theodolite.runtime.reuse import Reuse
from theodolite.runtime.saved import SCHEMA, Saved, SavedInquiry, SavedState, encoded, unfolded

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
        window = Window(secret=fleet.secret(session))
        self._memory = Memory(window=window, folds=Folds.begin(fleet.needs), restricted=frozenset(restricted))
        self._states: dict[str, Struct] = {d.name: d.begin() for d in fleet.speakers}
        self._inquiries = Inquiries(fleet, session)
        self._told: dict[Channel, int] = {}  # which of the Monitor's announcements came last
        self._paths: dict[str, str] = {}
        self._closed = False
        self._recorded = False  # what is taken was recorded

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """Close the session."""
        self.close()

    def observe(self, event: AnyHostEvent) -> Decision:
        """Take an event of the host and decide. The event is stamped with its place and, unless it has one, its time.

        Waits only for a refusal to be kept, and for the shelf, where there is one and an inquiry was opened. A
        redactor, store, shelf or recorder that fails shows in the decision as a Failure. Interrupted, by Ctrl-C for
        one, it raises that; the event then was not taken, or the next decision says that this one is missing. Raises
        EventError for an event that a host may not bring, or after `close`.
        """
        if type(event) not in HOST_EVENTS:
            raise EventError(
                f"session {self.id}: {type(event).__name__} is no event that a host may bring: give one such as "
                "ToolCallProposed(tool=...); own events come from request_probe, drain, announce and clear"
            )
        return self.take(event)

    def request_probe(self, reason: str, *, snapshot: StateSnapshot | None = None) -> Decision:
        """Ask for a probe now, of a snapshot where one was taken; what probes opens an inquiry, within its limits."""
        return self.take(ProbeRequested(reason=reason, snapshot=snapshot))

    def recall(self, detector: str) -> Struct | None:
        """Return what a detector remembers of this session, to be read; None for one that is not wired."""
        with self._lock:
            return self._states.get(detector)

    def adopt(self, detector: str, state: Struct) -> None:
        """Let a detector go on from a state that it did not make here. Raises EventError for one of another type."""
        with self._lock:
            known = self._states.get(detector)
            if type(known) is not type(state):
                raise EventError(
                    f"session {self.id}: {detector} remembers a {type(known).__name__}, not a {type(state).__name__}"
                )
            self._states[detector] = state

    @property
    def spent(self) -> Spent:
        """What this session has used of models so far: a copy."""
        with self._lock:
            return replace(self._memory.spent)

    @property
    def models(self) -> tuple[str, ...]:
        """The models that this session was seen to use, by name."""
        with self._lock:
            return tuple(sorted(self._memory.models))

    def take(self, event: AnyEvent) -> Decision:
        """Take any event, own ones included, as Monitor does. Hosts call `observe`.

        Raises EventError for the end of an inquiry that is not open, and after `close`.
        """
        return self._taken(event, recorded=False)

    def retake(self, event: AnyEvent) -> Decision:
        """Take an event of a sealed recording, in the place where it was recorded.

        What an inquiry came to counts also where it was not opened here, and where who asked is not wired: the schedule
        or the judge of the live session need not be here again. Raises EventError where nobody here can judge what was
        said, for the end of an inquiry about an event that has not happened, and after `close`.
        """
        return self._taken(event, recorded=True)

    def _taken(self, event: AnyEvent, *, recorded: bool) -> Decision:
        with self._lock:
            if self._closed:
                raise EventError(f"session {self.id} is closed: open it again with monitor.session({self.id!r})")
            self._recorded = recorded
            # An inquiry that is not open is refused before anything has changed.
            if not isinstance(event, InquirySettled):
                return self._take(event, None)
            optional = recorded and 0 <= event.about < self._memory.window.end and self._fleet.judges(event)
            return self._take(event, self._inquiries.claim(event, optional=optional))

    def tell(self, event: CanaryChecked, number: int, *, standing: bool = False) -> Decision | None:
        """Take the Monitor's announcement of that number; None where a later one about the channel was told before.

        None, too, where a `standing` one shows what the session knew when it was saved.
        """
        with self._lock:
            if number <= self._told.get(event.checked, 0):
                return None
            self._told[event.checked] = number
            if standing and self._memory.verdicts.get(event.checked) == (event.contract, event.verdict):
                return None
            return self.take(event)

    def note(self, failure: Failure) -> None:
        """Keep a failure that belongs to no event, to be told with the next decision."""
        with self._lock:
            self._memory.late.append(failure)

    def _take(self, event: AnyEvent, claimed: Inquiry | None) -> Decision:
        memory = self._memory
        stamped = memory.stamped(event, session=self.id, agent=self.agent, at=event.at or self._fleet.clock())
        late, about = tuple(memory.late), event.about if isinstance(event, InquirySettled) else stamped.seq
        try:
            call = memory.take(stamped, self._fleet.effects)
            if claimed is not None:
                self._inquiries.settle(claimed)
            said = self._hear(stamped)
            memory.learn(stamped)
            return self._decide(stamped, about, said, call)
        except BaseException as stop:
            self._interrupted(stamped, claimed, late, stop)
            raise

    def _interrupted(
        self, event: AnyEvent, claimed: Inquiry | None, late: Collection[Failure], stop: BaseException
    ) -> None:
        """See to it that an event whose decision the host will not get was not taken, or is told of by the next one."""
        self._inquiries.recount()
        if self._memory.mend(event, late):
            if claimed is not None:
                self._inquiries.settle(claimed)
            why = failure_of(stop, "session", "1")
            detail = f"event {event.seq} was interrupted, and what was said of it reached nobody: {why.detail}"
            self._memory.late.append(replace(why, detail=detail))

    def _hear(self, event: AnyEvent) -> list[Reading | Failure]:
        """Ask every detector that reads the event, then the fusions; keep what is opened, return what was said."""
        said: list[Reading | Failure] = [*self._memory.late]
        late = len(said)
        self._memory.late.clear()
        if isinstance(event, InquirySettled):
            said.extend(event.said)
        for detector in self._fleet.readers.get(type(event), ()):
            for answer in hear(detector, self._states[detector.name], event, self._memory.window, self._fleet.askers):
                if isinstance(answer, Inquiry):
                    said.extend(self._inquiries.add(answer))
                else:
                    said.append(marked(answer, self._memory.models))
        about = said[late:]
        for fusion in self._fleet.fusions:
            said += fuse(fusion, self._states[fusion.name], event, about, self._memory.window)
        return said

    def _decide(self, event: AnyEvent, about: int, said: Iterable[Reading | Failure], call: Call | None) -> Decision:
        fleet, memory = self._fleet, self._memory
        faults = fleet.redactor.watch()
        unready = [] if call is None else fleet.unready()
        signals = tuple([self._graded(answer) for answer in (*said, *unready)])
        signals += tuple([self._graded(failure) for failure in self._second_opinions(event, signals)])
        denied = tuple(faults)
        signals += tuple([self._graded(failure) for failure in denied])
        memory.restricted |= {
            signal.owner for signal in signals if fleet.policy.action(signal) is Action.RESTRICTED_MODE
        }
        decision = fleet.policy.decide(
            session=self.id,
            seq=event.seq,
            about=about,
            signals=signals,
            call=None if call is None else call.intent.effect,
            restricted=memory.restricted,
            open_inquiries=self.waiting,
        )
        if unready:
            decision = replace(decision, allowed=False)
        memory.tally.decided(decision)
        if fleet.population is not None:
            memory.highest = fleet.population.highest(signals, memory.highest)
        unkept = [*self._keep(decision, event), *faults[len(denied) :]]
        return self._unkept(decision, unkept, call=call is not None) if unkept else decision

    def _keep(self, decision: Decision, event: AnyEvent) -> list[Failure]:
        """Keep a decision and record the event; return what failed of that."""
        fleet, memory = self._fleet, self._memory
        keep = partial(memory.ledger.keep, decision, event, memory.window, fleet, memory.secrets)
        done = [attempted(keep, "store", "1")]
        if fleet.recorder is not None:
            done.append(attempted(partial(fleet.recorder, event), "recorder", "1"))
        if fleet.shelf is not None and self._inquiries.changed:
            done.append(attempted(self._shelve, "shelf", "1"))
        return [fault for fault in done if isinstance(fault, Failure)]

    def _shelve(self) -> None:
        """Hold the session on the shelf while inquiries are open, and no longer. Raises what the shelf raises."""
        shelf, inquiries = self._fleet.shelf, self._inquiries
        if shelf is None or not inquiries.changed or (inquiries.closing and inquiries):
            return
        if inquiries:
            shelf.keep(self.id, self.save())
        else:
            shelf.drop(self.id)
        inquiries.changed = False

    def _unkept(self, decision: Decision, faults: Iterable[Failure], *, call: bool) -> Decision:
        """Return a decision with what failed after it was made, and which is therefore not in its record."""
        for fault in faults:
            self._memory.tally.failed(fault.detector)
        signals = (*decision.signals, *[self._graded(fault) for fault in faults])
        allowed = decision.allowed and not (call and self._fleet.policy.fail_closed)
        return replace(decision, signals=signals, allowed=allowed)

    def _graded(self, said: Reading | Failure) -> Signal:
        # Graded as it was said, since a redactor may take the very names of the models that a calibration vouches for.
        signal = self._fleet.grade(said, agent=self.agent, models=self._memory.models, recorded=self._recorded)
        around = self._memory.window.events
        return replace(signal, said=redact(signal.said, self._fleet.redactor, self._memory.secrets, around=around))

    def _second_opinions(self, event: AnyEvent, signals: tuple[Signal, ...]) -> list[Failure]:
        """Open an inquiry about each ambiguous signal that a verifier may settle; return what could not be opened."""
        refused: list[Failure] = []
        for signal in () if isinstance(event, InquirySettled) else signals:
            opened = self._fleet.second_opinion(signal, event.seq, self._memory.window)
            refused.extend(() if opened is None else self._inquiries.add(opened))
        return refused

    def next_inquiry(self, about: int | None = None, *, due: bool = False) -> Inquiry | None:
        """Take the open inquiry whose time comes first to be driven, so that nobody else drives it.

        None when there is none; with `due`, none whose time has come.
        """
        with self._lock:
            return self._inquiries.take(self._fleet.clock() if due else math.inf, about)

    @contextmanager
    def _driving(self, inquiry: Inquiry) -> Generator[None, None, None]:
        """Let an inquiry wait again that is not settled at the end."""
        try:
            yield
        finally:
            with self._lock:
                self._inquiries.put_back(inquiry)

    def _settled(self, inquiry: Inquiry, settled: InquirySettled) -> tuple[Decision, ...]:
        """Take what an inquiry came to; nothing where it was abandoned meanwhile, because the session was closed."""
        with self._lock:
            return (self._take(settled, inquiry),) if self._inquiries.drives(inquiry) else ()

    @property
    def waiting(self) -> int:
        """How many inquiries are not yet settled."""
        return len(self._inquiries)

    @property
    def due(self) -> bool:
        """Whether an inquiry is open, not under way, and its time has come."""
        return self._inquiries.due(self._fleet.clock())

    async def drain(self, about: int | None = None, *, due: bool = False) -> tuple[Decision, ...]:
        """Put the open inquiries (about one event, or all) to the panel; return the decisions that follow.

        Waits for those whose time has not come; with `due` it leaves them open. Cancelled, it leaves the inquiry under
        way open again.
        """
        # The event loop takes some 80 ms to import: only those who ask models pay for it.
        from theodolite.runtime.drive import attempt, drive, wait  # noqa: PLC0415

        decisions: list[Decision] = []
        while (inquiry := self.next_inquiry(about, due=due)) is not None:
            with self._driving(inquiry):
                await wait(inquiry.not_before - self._fleet.clock())
                fleet = self._fleet
                driving = partial(drive, self._consultation(inquiry, fleet.reuse, fleet.panel.plays), fleet.panel)
                driven = await attempt(driving, inquiry.asker, inquiry.version)
                settled = failed(inquiry, driven) if isinstance(driven, Failure) else driven
                decisions.extend(self._settled(inquiry, settled))
        return tuple(decisions)

    def drain_sync(self, ask: Callable[[Query], Reply | Failure] | None = None) -> tuple[Decision, ...]:
        """Like `drain`, for hosts without an event loop; `ask` answers instead of the panel, as a script does."""
        from theodolite.runtime.drive import drive_sync, run  # noqa: PLC0415 - as above

        if ask is None:
            return run(self.drain, self._fleet.panel)
        decisions: list[Decision] = []
        while (inquiry := self.next_inquiry()) is not None:
            with self._driving(inquiry):
                decisions.extend(self._settled(inquiry, drive_sync(self._consultation(inquiry), ask)))
        return tuple(decisions)

    def abandon(self, about: int) -> tuple[Decision, ...]:
        """Settle what is open about an event as ABANDONED: nobody waits for it any more. Return what follows."""
        with self._lock:
            open_ = [inquiry for inquiry in self._inquiries if inquiry.about == about]
            return tuple([self._take(abandoned(inquiry), inquiry) for inquiry in open_])

    def _consultation(
        self, inquiry: Inquiry, reuse: Reuse | None = None, plays: Mapping[Role, str] = MappingProxyType({})
    ) -> Consultation:
        fleet, memory = self._fleet, self._memory
        asker = fleet.askers[inquiry.asker]
        # A verifier's own answer is not put to a verifier again.
        verifiers = () if isinstance(inquiry.subject, Case) else fleet.verifiers
        road = consult(
            asker,
            inquiry,
            grade=self._graded,
            verifiers=verifiers,
            window=memory.window,
            models=memory.models,
            desk=Desk(self.scrubbed, fleet.redactor.concealed, reuse, plays),
            ambiguous=lambda said: fleet.grade(said, agent=self.agent, models=memory.models).ambiguous,
        )
        return fleet.purse.within(road, memory.spent)

    @property
    def turn(self) -> int:
        """The number of the turn that is under way, from 0."""
        return self._memory.turn

    @property
    def restricted(self) -> frozenset[str]:
        """The detectors whose restriction stands."""
        return self._memory.restricted

    @property
    def origins(self) -> tuple[ArgumentOrigin, ...] | None:
        """Where each argument of the call that came last came from, redacted, for a report to show.

        None where the last event was no call, its arguments were not shown, or no detector needs to know.
        """
        with self._lock:
            call = self._memory.window.call
            return None if call is None or call.origins is None else shown(call.origins, self._scrubber, self._paths)

    def quoted(self, text: str) -> str:
        """Return a text of this session as a report may show it: redacted, and cut to the length of a quotation."""
        with self._lock:
            return self._scrubber.quote(text)

    def scrubbed(self, text: str) -> str:
        """Return a text of this session redacted, and not cut to a quotation: what a judge may be shown of it."""
        with self._lock:
            return self._scrubber.words(text)

    @property
    def _scrubber(self) -> Scrubber:
        return Scrubber(self._fleet.redactor, self._memory.secrets, self._memory.window.events)

    def coverage(self) -> Coverage:
        """Return what came, and who could not judge."""
        with self._lock:
            fleet = self._fleet
            return self._memory.tally.coverage(fleet.detectors, fleet.in_force, fusions=fleet.fusions)

    def close(self) -> tuple[Decision, ...]:
        """Settle what is open as ABANDONED, keep the coverage, leave the Monitor; return the decisions that follow.

        Closing twice does nothing. Raises StoreError where the coverage cannot be kept, or the shelf still holds it.
        """
        with self._lock:
            if self._closed:
                return ()
            self._inquiries.closing = True  # what is opened from here on would be left open
            decisions = tuple([self._take(abandoned(inquiry), inquiry) for inquiry in self._inquiries])
            held = attempted(self._shelve, "shelf", "1")
            for failure in (*self._memory.late, *([] if held is None else [held])):
                self._memory.tally.failed(failure.detector)
            self._leave()
            self._memory.leave(None if self._recorded else self._fleet.population, self.agent)
            keep = partial(self._memory.ledger.close, self.id, self.coverage(), self._fleet)
            fault = attempted(keep, "store", "1") or held
            if fault is not None:
                raise StoreError(fault.detail)
            return decisions

    def suspend(self) -> None:
        """Leave the Monitor with what is open held on its shelf; without a shelf, or open inquiries, `close`.

        Raises StoreError where it cannot be held; the session is then closed.
        """
        with self._lock:
            if self._fleet.shelf is None or not self._inquiries:
                self.close()
                return
            self._inquiries.changed = True
            fault = attempted(self._shelve, "shelf", "1")
            if fault is not None:
                self.close()
                raise StoreError(fault.detail)
            self._leave()

    def _leave(self) -> None:
        self._closed = True
        self._inquiries.clear()
        self._on_close(self)

    def save(self) -> bytes:
        """Return all that the session knows, for `Monitor.restore`. Holds raw text: keep it in memory or seal it."""
        with self._lock:
            saved = Saved(
                schema=SCHEMA,
                session=self.id,
                agent=self.agent,
                memory=self._memory,
                states={d.name: SavedState.of(d, self._states[d.name]) for d in self._fleet.speakers},
                inquiries=tuple(map(SavedInquiry.of, self._inquiries)),
            )
            return encoded(saved)

    @classmethod
    def restored(
        cls, fleet: Fleet, saved: Saved, *, on_close: Callable[[Session], None], restricted: Collection[str] = ()
    ) -> Session:
        """Return the session that `save` gave, under a Monitor that may have other detectors by now.

        State of a detector in another version, and inquiries of an asker that is not there or in another version, are
        lost; each loss is said as a Failure with the next decision, and so is that texts were not kept which detectors
        now need. `restricted` is added to what was saved.
        """
        session = cls(fleet, saved.session, saved.agent, on_close=on_close, restricted=restricted)
        session._memory = memory = saved.memory
        memory.restricted |= frozenset(restricted)
        kept, memory.folds = memory.folds, memory.folds.with_needs(fleet.needs)
        states, forgotten = saved.known(fleet.speakers, session._states)
        session._states.update(states)
        inquiries, lost = saved.open(fleet.askers)
        refused = [failure for inquiry in inquiries for failure in session._inquiries.add(inquiry)]
        memory.late += [*forgotten, *refused, *lost, *unfolded(kept, memory.folds, memory.window.end)]
        session._inquiries.changed = True  # what the shelf holds may not be what was restored
        return session
