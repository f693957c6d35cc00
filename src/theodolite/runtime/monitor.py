"""The instrument: its parts, and the sessions that are open under it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Self

from theodolite.core.calibration import Calibration
from theodolite.core.detector import AnyDetector
from theodolite.core.errors import ConfigError, EventError
from theodolite.core.event import AnyEvent, CanaryChecked, Channel, Cleared
from theodolite.core.intent import Effect
from theodolite.core.policy import Decision, Policy
from theodolite.core.redaction import DenyAll, Redactor
from theodolite.core.store import Store
from theodolite.core.text import printable
from theodolite.core.verifier import Verifier
from theodolite.runtime.fleet import Fleet
from theodolite.runtime.session import Session

if TYPE_CHECKING:
    from theodolite.runtime.drive import Panel

__all__ = ("Monitor",)

# Inquiries that may wait in the whole fleet. Our choice: at one call of a second each and eight at a time, a thousand
# take two minutes, after which an answer is hardly news.
CAPACITY = 1_000


class Monitor:
    """Detectors, policy and store, shared by all sessions. Immutable but for its sessions; safe for several threads.

    Without a `store` nothing is kept; without a `redactor` no text of a session passes (`DenyAll`). `effects` is the
    operator's map of tool names to effects. `capacity` bounds the inquiries that wait in the fleet: one too many is
    answered by a Failure. `clock` gives seconds since the epoch. `recorder` is called with each event, raw: it is for
    operators who opted in to keep sessions. `closing` is called by `close`, so that what belongs to this Monitor alone
    is closed with it.

    Raises ConfigError where detectors or verifiers share a name, a code is not its detector's, or an effect is none.

    >>> from theodolite.core.event import ToolCallProposed
    >>> with Monitor().session("s-1") as session:
    ...     session.observe(ToolCallProposed(tool="get_order", arguments={"id": 7})).allowed
    True
    """

    def __init__(  # noqa: PLR0913 - the parts of the instrument, all but the first by name
        self,
        detectors: Iterable[AnyDetector] = (),
        *,
        verifiers: Iterable[Verifier] = (),
        policy: Policy | None = None,
        store: Store | None = None,
        redactor: Redactor | None = None,
        calibration: Calibration | None = None,
        panel: Panel | None = None,
        effects: Mapping[str, Effect] | None = None,
        capacity: int = CAPACITY,
        clock: Callable[[], float] = time.time,  # noqa: TID251 - the one clock, injected into every Session
        recorder: Callable[[AnyEvent], None] | None = None,
        closing: Iterable[Callable[[], None]] = (),
    ) -> None:
        self.fleet = Fleet(
            detectors=detectors,
            verifiers=verifiers,
            policy=policy or Policy(),
            store=store,
            redactor=redactor or DenyAll(),
            calibration=calibration,
            panel=panel,
            effects=effects or {},
            capacity=capacity,
            clock=clock,
            recorder=recorder,
        )
        self._closing = tuple(closing)
        self._lock = threading.Lock()
        self._sessions: dict[str, Session] = {}
        self._standing: dict[Channel, CanaryChecked] = {}

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """Close the monitor."""
        self.close()

    def session(self, session: str, *, agent: str = "") -> Session:
        """Return the open session of that id, or open it. A new one is told what the last canary contracts showed.

        Lone surrogates in an id are spelled out. Raises ConfigError when it is empty.
        """
        if not session:
            raise ConfigError("a session needs an id: pass the host's own id of the conversation")
        session, agent = printable(session), printable(agent)
        with self._lock:
            known = self._sessions.get(session)
            if known is not None:
                return known
            opened = self._sessions[session] = Session(self.fleet, session, agent, on_close=self._forget)
            standing = tuple(self._standing.values())
        for event in standing:
            opened.take(event)
        return opened

    def restore(self, saved: bytes) -> Session:
        """Return the session that `Session.save` gave, open. Raises EventError for what is not one."""
        session = Session.restored(self.fleet, saved, on_close=self._forget)
        with self._lock:
            self._sessions[session.id] = session
        return session

    @property
    def detectors(self) -> tuple[AnyDetector, ...]:
        """The detectors, in the order in which they are asked."""
        return self.fleet.detectors

    @property
    def sessions(self) -> tuple[Session, ...]:
        """The open sessions."""
        with self._lock:
            return tuple(self._sessions.values())

    def announce(self, event: CanaryChecked) -> tuple[Decision, ...]:
        """Tell every open session, and each new one, what a canary contract showed of a channel."""
        with self._lock:
            self._standing[event.checked] = event
            sessions = tuple(self._sessions.values())
        decisions: list[Decision] = []
        for session in sessions:
            with suppress(EventError):  # another thread closed it meanwhile
                decisions.append(session.take(event))
        return tuple(decisions)

    def clear(self, session: str, operator: str, reason: str) -> Decision:
        """Lift the restriction of a session. Both names are kept. Raises ConfigError when either is empty."""
        if not (operator and reason):
            raise ConfigError("to clear a restriction, say who does it and why")
        with self._lock:
            known = self._sessions.get(printable(session))
        if known is None:
            raise ConfigError(f"there is no open session {session!r}")
        return known.take(Cleared(operator=operator, reason=reason))

    def close(self) -> None:
        """Close every session, flush the store, and call what was given as `closing`.

        Where one of that fails the rest is done all the same. Raises StoreError.
        """
        with ExitStack() as last_to_first:
            for close in reversed(self._closing):
                last_to_first.callback(close)
            if self.fleet.store is not None:
                last_to_first.callback(self.fleet.store.flush)
            for session in reversed(self.sessions):
                last_to_first.callback(session.close)

    def _forget(self, session: Session) -> None:
        with self._lock:
            if self._sessions.get(session.id) is session:
                del self._sessions[session.id]
