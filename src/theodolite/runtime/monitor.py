"""The instrument: its parts, and the sessions that are open under it."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Self

from theodolite.core.budget import Budget
from theodolite.core.calibration import Calibration
from theodolite.core.detector import AnyDetector
from theodolite.core.errors import ConfigError, EventError
from theodolite.core.event import AnyEvent, CanaryChecked, Channel, Cleared
from theodolite.core.fusion import AnyFusion
from theodolite.core.intent import Operator
from theodolite.core.policy import Decision, Policy
from theodolite.core.redaction import DenyAll, Redactor
from theodolite.core.shelf import Shelf
from theodolite.core.store import Store
from theodolite.core.text import printable
from theodolite.core.verifier import Verifier
from theodolite.runtime.fleet import Fleet
from theodolite.runtime.population import PopulationState
from theodolite.runtime.saved import Saved, decoded
from theodolite.runtime.session import Session

if TYPE_CHECKING:
    from theodolite.runtime.drive import Panel

__all__ = ("Monitor",)

# Inquiries that may wait in the whole fleet. Our choice: at one call of a second each and eight at a time, a thousand
# take two minutes, after which an answer is hardly news.
CAPACITY = 1_000
# As many as the hash that it keys, HMAC-SHA256: RFC 2104, section 3. With fewer than half of them a canary is easier to
# guess than to find.
SECRET_BYTES = 32
LEAST_SECRET_BYTES = 16


class Monitor:
    """Detectors, policy and store, shared by all sessions. Immutable but for its sessions; safe for several threads.

    `fusions` hear what the detectors said of an event. Without a `store` nothing is kept; without a `redactor` no text
    of a session passes (`DenyAll`). `effects` is the operator's map of tool names to effects or rules. `capacity`
    bounds the inquiries that wait in the fleet: one too many is answered by a Failure, and so is a query beyond the
    `budget`. `shelf` holds, sealed, the sessions with open inquiries, so that `recover` finds them after a restart or a
    crash. `secret` is what canaries and choices are drawn from, at least 16 random bytes; without one it is made anew,
    and no two runs draw alike. `clock` gives seconds since the epoch. `recorder` is called with each event, raw: it is
    for operators who opted in to keep sessions. `closing` is called by `close`, so that what belongs to this Monitor
    alone is closed with it.

    A restriction outlives its session: the id is restricted again when it is opened again, until `clear`. State: the
    open sessions, and the ids that are restricted, without a bound; neither outlives the Monitor.

    Raises ConfigError where detectors, fusions or verifiers share a name, a code is not its detector's, an effect is
    none, or the secret is too short.

    >>> from theodolite.core.event import ToolCallProposed
    >>> with Monitor().session("s-1") as session:
    ...     session.observe(ToolCallProposed(tool="get_order", arguments={"id": 7})).allowed
    True
    """

    def __init__(  # noqa: PLR0913 - the parts of the instrument, all but the first by name
        self,
        detectors: Iterable[AnyDetector] = (),
        *,
        fusions: Iterable[AnyFusion] = (),
        verifiers: Iterable[Verifier] = (),
        policy: Policy | None = None,
        store: Store | None = None,
        redactor: Redactor | None = None,
        calibration: Calibration | None = None,
        panel: Panel | None = None,
        effects: Operator | None = None,
        capacity: int = CAPACITY,
        budget: Budget | None = None,
        shelf: Shelf | None = None,
        secret: bytes | None = None,
        clock: Callable[[], float] = time.time,  # noqa: TID251 - the one clock, injected into every Session
        recorder: Callable[[AnyEvent], None] | None = None,
        closing: Iterable[Callable[[], None]] = (),
    ) -> None:
        self.fleet = Fleet(
            detectors=detectors,
            fusions=fusions,
            verifiers=verifiers,
            policy=policy or Policy(),
            store=store,
            redactor=redactor or DenyAll(),
            calibration=calibration,
            panel=panel,
            effects=effects or {},
            capacity=capacity,
            clock=clock,
            budget=budget or Budget(),
            shelf=shelf,
            secret=secrets.token_bytes(SECRET_BYTES) if secret is None else _long_enough(secret),
            recorder=recorder,
        )
        self._closing = tuple(closing)
        self._lock = threading.RLock()
        self._sessions: dict[str, Session] = {}
        self._restricted: dict[str, frozenset[str]] = {}  # of sessions that are not open
        self._standing: dict[Channel, tuple[CanaryChecked, int]] = {}
        self._announced = 0
        self._closed = False

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """Close the monitor."""
        self.close()

    def session(self, session: str, *, agent: str = "") -> Session:
        """Return the open session of that id, or open it. A new one is told what the last canary contracts showed.

        An id that was closed may be opened again: seq then starts anew at 0, and what the session knew is gone but for
        its restriction; to go on where it was, `save` and `restore` it. Lone surrogates in an id are spelled out.
        Raises ConfigError when the id is no text, empty, or open for another agent, and EventError after `close`.
        """
        session, agent = _name(session, "the id of a session"), _name(agent, "the id of an agent")
        if not session:
            raise ConfigError("a session needs an id: pass the host's own id of the conversation")
        with self._lock:
            self._check_open()
            known = self._sessions.get(session)
            if known is not None:
                if agent not in {"", known.agent}:
                    raise ConfigError(
                        f"session {session} is open for the agent {known.agent!r}, not {agent!r}: give each agent's "
                        "session an id of its own"
                    )
                return known
            restricted = self._restricted.get(session, ())
            opened = Session(self.fleet, session, agent, on_close=self._left, restricted=restricted)
            self._add(opened)
        self._tell_standing(opened)
        return opened

    def restore(self, saved: bytes) -> Session:
        """Return the session that `Session.save` gave, open, and tell it what canary contracts have shown since.

        A restriction stands if it stood when the session was saved, or stands for its id here. Raises EventError for
        what is not a saved session, when a session of that id is open, and after `close`.
        """
        return self._restore(decoded(saved))

    def _restore(self, document: Saved) -> Session:
        name = document.session
        with self._lock:
            self._check_open()
            if name in self._sessions:
                raise EventError(f"session {name} is open: close it before it is restored")
            restricted = self._restricted.get(name, ())
            session = Session.restored(self.fleet, document, on_close=self._left, restricted=restricted)
            self._add(session)
        self._tell_standing(session)
        return session

    def recover(self) -> tuple[Session, ...]:
        """Restore the sessions that the shelf holds, each as it was when its queue last changed; return them.

        Call it before sessions are opened: one that is open is left alone, and what is held of it is overwritten.
        Raises EventError where what is held is of another version's form, and StoreError for what cannot be read: both
        after all others were restored.
        """
        restored: list[Session] = []
        faults: list[EventError] = []
        for saved in () if self.fleet.shelf is None else self.fleet.shelf.held():
            try:
                document = decoded(saved)
                if document.session not in self._sessions:
                    restored.append(self._restore(document))
            except EventError as error:
                faults.append(error)
        if faults:
            raise faults[0]
        return tuple(restored)

    def _add(self, session: Session) -> None:
        self._sessions[session.id] = session
        self._restricted.pop(session.id, None)  # while it is open, the session knows

    def _check_open(self) -> None:
        if self._closed:
            raise EventError("the monitor is closed: make another one")

    def _tell_standing(self, session: Session) -> None:
        with self._lock:
            standing = tuple(self._standing.values())
        with suppress(EventError):  # another thread closed it meanwhile
            for event, number in standing:
                session.tell(event, number, standing=True)

    @property
    def detectors(self) -> tuple[AnyDetector, ...]:
        """The detectors, in the order in which they are asked."""
        return self.fleet.detectors

    @property
    def sessions(self) -> tuple[Session, ...]:
        """The open sessions."""
        with self._lock:
            return tuple(self._sessions.values())

    @property
    def waiting(self) -> tuple[Session, ...]:
        """The open sessions with inquiries that are not settled, the one that has waited longest first."""
        names = self.fleet.waiting
        with self._lock:
            return tuple([self._sessions[name] for name in names if name in self._sessions])

    @property
    def population(self) -> PopulationState | None:
        """How the sessions that were closed so far compare with those that the artefact was fitted to.

        None without an artefact that says where those lay. Recorded sessions are not counted. When it is time to
        calibrate anew, a line on the logger `theodolite` says so, once.
        """
        return None if self.fleet.population is None else self.fleet.population.state

    def announce(self, event: CanaryChecked) -> tuple[Decision, ...]:
        """Tell every open session, and each new one, what a canary contract showed of a channel.

        Of two announcements about a channel at the same time, no session is told the older one after the newer.
        """
        with self._lock:
            self._announced = number = self._announced + 1
            self._standing[event.checked] = event, number
            sessions = tuple(self._sessions.values())
        decisions: list[Decision | None] = []
        for session in sessions:
            with suppress(EventError):  # another thread closed it meanwhile
                decisions.append(session.tell(event, number))
        return tuple([decision for decision in decisions if decision is not None])

    def clear(self, session: str, operator: str, reason: str) -> Decision:
        """Lift the restriction of a session, open or not. Both names are kept.

        Raises ConfigError when either is empty, or the session is neither open nor restricted; EventError after
        `close`; and for a session that is not open StoreError where that cannot be kept: the restriction then stands.
        """
        if not (operator and reason):
            raise ConfigError("to clear a restriction, say who does it and why")
        name, event = _name(session, "the id of a session"), Cleared(operator=operator, reason=reason)
        with self._lock:
            self._check_open()
            known = self._sessions.get(name)
            if known is None:
                return self._clear_closed(name, event)
        return known.take(event)

    def _clear_closed(self, name: str, event: Cleared) -> Decision:
        if name not in self._restricted:
            raise ConfigError(f"there is no open session {name!r}, and no restriction of one that was closed")
        # A session for this one event, which no one else is given: the store keeps it as it keeps all others.
        with Session(self.fleet, name, "", on_close=lambda _: None, restricted=self._restricted[name]) as session:
            decision = session.take(event)
        del self._restricted[name]
        return decision

    def forget(self, session: str) -> None:
        """Drop what is known of a session that is not open: its restriction, without a record.

        For recordings, whose ids say nothing about those of other recordings.
        """
        with self._lock:
            self._restricted.pop(_name(session, "the id of a session"), None)

    def close(self) -> None:
        """Close every session, flush the store, and call what was given as `closing`.

        With a shelf, sessions with open inquiries are left there for `recover`; without one their inquiries are settled
        as ABANDONED. Where one of that fails the rest is done all the same. Closing twice does nothing. Raises
        StoreError.
        """
        with self._lock:
            if self._closed:
                return
            self._closed = True
        with ExitStack() as last_to_first:
            for close in reversed(self._closing):
                last_to_first.callback(close)
            if self.fleet.store is not None:
                last_to_first.callback(self.fleet.store.flush)
            for session in reversed(self.sessions):
                last_to_first.callback(session.suspend)

    def _left(self, session: Session) -> None:
        with self._lock:
            if self._sessions.get(session.id) is session:
                del self._sessions[session.id]
                if session.restricted:
                    self._restricted[session.id] = session.restricted


def _name(given: object, what: str) -> str:
    """Return an id as plain text that can be written anywhere. Raises ConfigError where it is none."""
    if not isinstance(given, str):
        raise ConfigError(f"{what} is text, not {type(given).__name__}: pass str(id), the same for each of its events")
    return printable(str.__str__(given))


def _long_enough(secret: bytes) -> bytes:
    if len(secret) < LEAST_SECRET_BYTES:
        raise ConfigError(
            f"the secret has {len(secret)} bytes: give at least {LEAST_SECRET_BYTES} random ones, or None to have some "
            "made in each run"
        )
    return secret
