"""The fleet: what all sessions share."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeGuard

from theodolite.core.calibration import Band, Calibration, grade
from theodolite.core.detector import AnyDetector, Asker
from theodolite.core.errors import ConfigError, EventError
from theodolite.core.event import AnyEvent, CanaryChecked, Channel, Cleared, Event
from theodolite.core.intent import Effect
from theodolite.core.policy import Decision, Policy
from theodolite.core.reading import Cause, Failure, Reading, Signal
from theodolite.core.redaction import DenyAll, Redactor
from theodolite.core.store import Store
from theodolite.core.text import printable
from theodolite.core.verifier import Verifier
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

    Raises ConfigError where detectors or verifiers share a name or a code, or an effect is none.

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
        self.detectors = tuple(detectors)
        self.verifiers = tuple(verifiers)
        self.policy = policy or Policy()
        self.store = store
        self.redactor: Redactor = redactor or DenyAll()
        self.calibration = calibration
        self._panel = panel
        self.effects = _effects(effects or {})
        self.clock = clock
        self.recorder = recorder
        self._closing = tuple(closing)
        self.bands = _bands(self.detectors)
        self.askers = _askers(self.detectors, self.verifiers)
        # The codes that each may say. A verifier settles codes of detectors, and has no bands of its own.
        self._codes = {verifier.name: self.bands.keys() & verifier.codes for verifier in self.verifiers}
        self._codes.update({detector.name: set(detector.bands) for detector in self.detectors})
        self.needs = frozenset(need for detector in self.detectors for need in detector.needs)
        self.readers: dict[type[Event], tuple[AnyDetector, ...]] = {
            kind: tuple([detector for detector in self.detectors if kind in detector.reads])
            for kind in {kind for detector in self.detectors for kind in detector.reads}
        }
        self._capacity = capacity
        self._waiting = 0
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
            opened = self._sessions[session] = Session(self, session, agent)
            standing = tuple(self._standing.values())
        for event in standing:
            opened.take(event)
        return opened

    def restore(self, saved: bytes) -> Session:
        """Return the session that `Session.save` gave, open. Raises EventError for what is not one."""
        session = Session.restored(self, saved)
        with self._lock:
            self._sessions[session.id] = session
        return session

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
            if self.store is not None:
                last_to_first.callback(self.store.flush)
            for session in reversed(self.sessions):
                last_to_first.callback(session.close)

    # -- for sessions -------------------------------------------------------------------------------------------------

    def grade(self, said: Reading | Failure, *, agent: str = "", models: Collection[str] = ()) -> Signal:
        """Return what an answer is worth in a session of that agent and those models.

        A code that is none of its detector's or verifier's is worth a Failure.
        """
        if isinstance(said, Reading) and said.code not in self._codes.get(said.detector, ()):
            detail = f"it gave the code {said.code}, which is none of its own"
            said = Failure(detector=said.detector, version=said.version, cause=Cause.MALFORMED, detail=detail)
        return grade(said, self.bands, self.calibration, agent=agent, models=models)

    def verifier(self, signal: Signal) -> Verifier | None:
        """Return the verifier that may settle a signal, if there is one."""
        return next((verifier for verifier in self.verifiers if signal.code in verifier.codes), None)

    def admit(self) -> bool:
        """Take a place in the fleet's queue of inquiries, if there is one."""
        with self._lock:
            if self._waiting >= self._capacity:
                return False
            self._waiting += 1
            return True

    def release(self) -> None:
        """Give a place back."""
        with self._lock:
            self._waiting -= 1

    def forget(self, session: Session) -> None:
        """Take a closed session off the list."""
        with self._lock:
            if self._sessions.get(session.id) is session:
                del self._sessions[session.id]

    @property
    def panel(self) -> Panel:
        """The models that answer, by role; an empty one fails every query."""
        if self._panel is None:
            # The event loop takes some 80 ms to import: only those who ask models pay for it.
            from theodolite.runtime.drive import Panel  # noqa: PLC0415

            self._panel = Panel()
        return self._panel


def _effects(effects: Mapping[str, Effect]) -> dict[str, Effect]:
    try:
        return {tool: Effect(effect) for tool, effect in effects.items()}
    except ValueError as error:
        known = ", ".join(Effect)
        raise ConfigError(f"the effect of a tool: {error}; it is one of {known}") from error


def _bands(detectors: Sequence[AnyDetector]) -> dict[str, Band]:
    bands: dict[str, Band] = {}
    for detector in detectors:
        for code, band in detector.bands.items():
            if code in bands:
                raise ConfigError(f"two detectors say the code {code}: rename it in one of them")
            bands[code] = band
    return bands


def _askers(detectors: Sequence[AnyDetector], verifiers: Sequence[Verifier]) -> dict[str, Asker]:
    names = [detector.name for detector in detectors] + [verifier.name for verifier in verifiers]
    double = sorted({name for name in names if names.count(name) > 1})
    if double:
        raise ConfigError(f"two detectors or verifiers are called {double[0]}: leave one out")
    askers: dict[str, Asker] = {verifier.name: verifier for verifier in verifiers}
    askers.update({detector.name: detector for detector in detectors if _asks(detector)})
    return askers


def _asks(detector: object) -> TypeGuard[Asker]:
    return callable(getattr(detector, "inquire", None))
