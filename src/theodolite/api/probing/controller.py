"""axor-probe's scheduler: events and triggers of many sessions in, dispatches out, none by the clock."""

from __future__ import annotations

import hmac
import logging
import math
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio
from anyio.abc import TaskGroup
from msgspec import Struct

from theodolite.api.probing.given import called, of_kind, seconds, secret_bytes
from theodolite.api.probing.reputation import ReputationPoll, checked_path, checked_threshold
from theodolite.core.errors import ConfigError, EventError
from theodolite.core.fields import hold
from theodolite.core.reading import Failure
from theodolite.core.redaction import Scrubber
from theodolite.core.text import brief, printable
from theodolite.detectors.behavior.schedule import Due, Held, Hold, Schedule, ScheduleSettings, Trigger
from theodolite.redactors.rules import RuleRedactor
from theodolite.runtime.drive import attempt

__all__ = ("Dispatch", "Outcome", "ProbeController", "ProbeScheduleConfig", "RuntimeEvent", "Trigger")

_LOG = logging.getLogger(__name__)

# Sessions that are remembered. Our choice: the open sessions of a large host; each is some hundred bytes, and the
# events that were granted a probe and waited for by nobody.
SESSIONS = 10_000
# As many as the hash that it keys gives: RFC 2104, section 3.
_SECRET = 32
# Grants of a session that are held for who waits for them. Our choice: with the default cooldown, of four minutes.
_GRANTS = 8
# A context of more tokens than this is a mistake.
_MOST = 10**12
_TYPES = tuple([trigger.value for trigger in Trigger])
_NO_ID = "the session_id of a ProbeController is text"
_NO_DISPATCH = "nothing can be dispatched: give ProbeController a dispatch_fn"


class RuntimeEvent(Struct, frozen=True, kw_only=True, gc=False):
    """What happened in a session, as axor-probe is told it.

    `event_type` is one of context_growth, external_content, reputation, manual, compaction, handoff. `token_count` is
    how long the context is now, 0 where that is not known; `has_external_content` says that untrusted text came in.
    Raises EventError for a field of another type, for no session, and for no number of tokens.
    """

    session_id: str
    agent_id: str = ""
    model: str = ""
    event_type: str
    token_count: int = 0
    has_external_content: bool = False

    def __post_init__(self) -> None:
        hold(self)
        if self.event_type not in _TYPES:
            raise EventError(
                f"RuntimeEvent.event_type is {brief(self.event_type)}, which is none of {', '.join(_TYPES)}"
            )
        if not self.session_id:
            raise EventError("RuntimeEvent.session_id is empty: give the host's own id of the conversation")
        if not 0 <= self.token_count <= _MOST:
            raise EventError(f"RuntimeEvent.token_count is a number of tokens from 0, not {brief(self.token_count)}")


class ProbeScheduleConfig(ScheduleSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """axor-probe's settings of the scheduler. The file at `reputation_snapshot_path` is read by `run_reputation_poll`.

    Two differ from the original: a session has up to 20 probes, not 10, and `max_interval_seconds` is refused. Raises
    ConfigError for a value that is none.
    """

    reputation_snapshot_path: str | Path | None = None
    reputation_score_threshold: float = 0.5
    reputation_poll_interval_seconds: float = 60.0
    max_interval_seconds: None = None

    def __post_init__(self) -> None:
        try:
            super().__post_init__()
        except ValueError as error:
            raise ConfigError(str(error)) from error
        if self.reputation_snapshot_path is not None:
            checked_path(self.reputation_snapshot_path)
        checked_threshold(self.reputation_score_threshold)
        seconds("reputation_poll_interval_seconds", self.reputation_poll_interval_seconds)
        interval: object = self.max_interval_seconds
        if interval is not None:
            raise ConfigError(
                "max_interval_seconds: sessions are not probed by the clock, since what has taken in nothing would be "
                "asked the same again, and a known interval can be waited out; leave it out"
            )


class Dispatch(str):
    """The reason of a dispatch, as axor-probe gives it; with the session, and all triggers that it serves."""

    __slots__ = ("session_id", "triggers")

    session_id: str
    triggers: tuple[Trigger, ...]

    @classmethod
    def of(cls, reason: str, session_id: str, triggers: tuple[Trigger, ...]) -> Self:
        """Return the dispatch of a session."""
        dispatch = cls(reason)
        dispatch.session_id, dispatch.triggers = session_id, triggers
        return dispatch


class Outcome(StrEnum):
    """What a trigger came to: all but `capped` and `closed` is, or will be, served."""

    DISPATCHED = "dispatched"
    FAILED = "failed"
    COALESCED = "coalesced"
    WAITING = "waiting"
    CAPPED = "capped"
    CLOSED = "closed"


@dataclass(slots=True, kw_only=True)
class _Run:
    """One session: its schedule; the events that were granted probes; when the next may go out; what is on its way."""

    id: str
    schedule: Schedule = field(default_factory=Schedule)
    granted: list[tuple[RuntimeEvent, Due]] = field(default_factory=list)
    free: float = -math.inf
    going: int = 0
    timed: bool = False

    def grant(self, event: RuntimeEvent, due: Due) -> None:
        """Hold a probe for who waits for it. The oldest of too many counts as dispatched by who did not wait."""
        self.granted = [*self.granted, (event, due)][-_GRANTS:]

    def held(self, event: RuntimeEvent) -> Due | None:
        """Return the probe that is held for this very object."""
        return next((due for other, due in self.granted if other is event), None)

    def take(self, event: RuntimeEvent) -> Due | None:
        """Return the probe that is held for this very object, and hold it no more."""
        due = self.held(event)
        self.granted = [one for one in self.granted if one[0] is not event]
        return due


class ProbeController:
    """Decides when sessions are probed, each by itself; by `evaluate` and `wait`, or by `trigger` with a `dispatch_fn`.

    A probe that was granted goes out once and counts once. It is granted to one event, the object itself, and no other
    event takes it away: a tap may ask before the pipeline asks. Who waits gets it when its jitter is over. Who never
    waits has dispatched it when `evaluate` says so. Nobody can tell these two apart, so that a probe for which nobody
    waits counts as dispatched, also where whoever was to wait has failed.

    `dispatch_fn` is called with the reason, a str that also carries the session; what it raises is counted in
    `failures`, kept as `last_failure` and warned of, and breaks nothing later. Used as an async context manager, what
    is triggered within a cooldown is dispatched when that is over; otherwise at the next event or trigger after it.
    When and why is for `detectors.behavior.schedule` to say: growth since the last probe, jitter on every path, a
    cooldown after each, a hard cap per session with spacing that grows.

    Remembers the 10,000 sessions that were heard of last (`max_sessions`); one that was forgotten begins anew, its cap
    too. `secret` is what jitter is drawn from; `clock` gives seconds that only grow. For one event loop. Raises
    ConfigError for arguments of a wrong type.

    >>> controller = ProbeController(secret=b"16 bytes or more")
    >>> controller.evaluate(RuntimeEvent(session_id="s-1", event_type="context_growth", token_count=1_500))
    False
    >>> controller.evaluate(RuntimeEvent(session_id="s-1", event_type="context_growth", token_count=2_100))
    True
    """

    def __init__(
        self,
        config: ProbeScheduleConfig | None = None,
        dispatch_fn: Callable[[Dispatch], Awaitable[object]] | None = None,
        *,
        secret: bytes | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        max_sessions: int = SESSIONS,
    ) -> None:
        self.config = ProbeScheduleConfig() if config is None else of_kind("config", config, ProbeScheduleConfig)
        self._dispatch_fn = _nobody if dispatch_fn is None else dispatch_fn
        for name, given in (("dispatch_fn", self._dispatch_fn), ("clock", clock), ("sleep", sleep)):
            called(name, given)
        if type(max_sessions) is not int or max_sessions < 1:
            raise ConfigError(f"max_sessions is a whole number from 1, not {brief(max_sessions)}")
        self._secret = secret_bytes(secret) or secrets.token_bytes(_SECRET)
        self._clock = clock
        self._sleep = sleep
        self._most = max_sessions
        self._runs: OrderedDict[str, _Run] = OrderedDict()
        self._scopes: set[anyio.CancelScope] = set()
        self._group: TaskGroup | None = None
        self._closed = False
        self._sent = 0
        self.failures = 0
        self.last_failure: Failure | None = None

    async def __aenter__(self) -> Self:
        """Return itself; what waits for the end of a cooldown is dispatched then."""
        group = anyio.create_task_group()
        await group.__aenter__()
        self._group = group
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        """Close. Dispatches of its own that are under way are waited for, or cancelled where an exception leaves."""
        self.close()
        group, self._group = self._group, None
        if group is not None:
            if error is not None:
                group.cancel_scope.cancel()
            # Its tasks raise nothing, and so the host's exception leaves as it is, in no group.
            await group.__aexit__(None, None, None)

    @property
    def probes_sent(self) -> int:
        """How many probes were granted or dispatched, over all sessions."""
        return self._sent

    def sent(self, session_id: str = "") -> int:
        """Return how many probes a session had. Raises ConfigError for an id that is no text."""
        _check_text(_NO_ID, session_id)
        run = self._runs.get(printable(session_id))
        return 0 if run is None else run.schedule.spent

    def forget(self, session_id: str) -> None:
        """Forget a session that has ended, and that has nothing under way. Raises ConfigError for no text."""
        _check_text(_NO_ID, session_id)
        run = self._runs.get(printable(session_id))
        if run is not None and not (run.going or run.timed):
            del self._runs[run.id]

    def close(self) -> None:
        """End what waits for its moment: it is not dispatched. Triggers and events that follow come to nothing."""
        self._closed = True
        for scope in tuple(self._scopes):
            scope.cancel()

    def evaluate(self, event: RuntimeEvent) -> bool:
        """Whether a probe is due, for this event or for what came before it.

        The same object asked about again gets the same answer, and counts once, until `wait` says that the probe goes
        out, or the cooldown after it is over. Equal events that are objects of their own are each an event. Raises
        EventError for what is no RuntimeEvent.
        """
        _check_event(event)
        if self._closed:
            return False
        run, now = self._run(event.session_id), self._clock()
        held = run.held(event)
        if held is not None and (now <= held.not_before or now < held.not_before + self._cooldown):
            return True
        run.take(event)
        trigger = Trigger(event.event_type)
        external = event.has_external_content or trigger is Trigger.EXTERNAL_CONTENT
        if event.token_count:
            run.schedule.rise(event.token_count, external=external)
        if trigger not in {Trigger.CONTEXT_GROWTH, Trigger.EXTERNAL_CONTENT}:
            run.schedule.want(trigger)
        timing = run.schedule.settle(now, self.config, partial(self._draw, run.id))
        if not isinstance(timing, Due):
            return False
        self._sent += 1
        run.grant(event, timing)
        return True

    async def wait(self, event: RuntimeEvent) -> bool:
        """Wait out the jitter of the probe that is due for this event; call it just before the snapshot.

        Asks as `evaluate` does where no probe is held for the event. Who comes late, and so near to another probe of
        the session, waits out the cooldown between them. False where none is due, at once, or where the controller is
        closed meanwhile: then there is nothing to dispatch. Cancelled, the probe is wanted again.
        """
        _check_event(event)
        if self._closed:
            return False
        run = self._run(event.session_id)
        if run.held(event) is None and not self.evaluate(event):
            return False
        due = run.take(event)
        return due is not None and await self._moment(run, due)

    async def trigger(self, reason: str = "manual", session_id: str = "") -> Outcome:
        """Ask for a probe of a session; wait out its jitter and dispatch it, unless one that serves it is on its way.

        `reason` may be the name of a Trigger; any other counts as asked by hand. Raises ConfigError without a
        dispatch_fn, and for a reason or a session that is no text.
        """
        _check_text("a trigger has a reason and a session_id, both of them text", reason, session_id)
        if self._dispatch_fn is _nobody:
            raise ConfigError(_NO_DISPATCH)
        if self._closed:
            return Outcome.CLOSED
        run = self._run(printable(session_id))
        run.schedule.want(Trigger.of(reason))
        return Outcome.COALESCED if run.going else await self._go(run, reason)

    async def run_reputation_poll(self, session_id: str = "") -> None:
        """Look at the reputation file until closed or cancelled; trigger a probe of the session when the score fell.

        Returns at once where no file is configured. Raises ConfigError for a session that is no text.
        """
        _check_text(_NO_ID, session_id)
        config = self.config
        if config.reputation_snapshot_path is None or self._closed:
            return
        poll = ReputationPoll(
            config.reputation_snapshot_path,
            partial(self.trigger, Trigger.REPUTATION.value, session_id),
            threshold=config.reputation_score_threshold,
            interval=config.reputation_poll_interval_seconds,
            sleep=self._sleep,
        )
        with self._stoppable():
            await poll.run()

    @property
    def _cooldown(self) -> float:
        return self.config.cooldown_window_seconds

    def _run(self, session_id: str) -> _Run:
        run = self._runs.get(session_id)
        if run is not None:
            self._runs.move_to_end(session_id)
            return run
        if len(self._runs) >= self._most:
            oldest = next((run for run in self._runs.values() if not (run.going or run.timed)), None)
            if oldest is not None:
                del self._runs[oldest.id]
        run = self._runs[session_id] = _Run(id=session_id)
        return run

    def _draw(self, session_id: str, label: str) -> bytes:
        return hmac.digest(self._secret, f"{label}\0{session_id}".encode(), "sha256")

    async def _go(self, run: _Run, reason: str) -> Outcome:
        """Dispatch what a session wants, if its schedule allows it now."""
        timing = run.schedule.settle(self._clock(), self.config, partial(self._draw, run.id))
        if not isinstance(timing, Due):
            return self._held(run, timing, reason)
        self._sent += 1
        if not await self._moment(run, timing):
            return Outcome.CLOSED
        return await self._dispatch(Dispatch.of(reason, run.id, timing.triggers))

    def _held(self, run: _Run, held: Held | None, reason: str) -> Outcome:
        if held is not None and held.hold is Hold.CAP:
            return Outcome.CAPPED
        if held is not None and held.until is not None and self._group is not None and not run.timed:
            run.timed = True
            self._group.start_soon(self._later, run, held.until, reason)
        return Outcome.WAITING

    async def _later(self, run: _Run, until: float, reason: str) -> None:
        """Dispatch what was held back when a cooldown is over."""
        try:
            with self._stoppable():
                await self._sleep(max(0.0, until - self._clock()))
        finally:
            run.timed = False
        if not (self._closed or run.going):
            await self._go(run, reason)

    async def _moment(self, run: _Run, due: Due) -> bool:
        """Wait for the moment of a dispatch; False where it was called off."""
        before, moment = run.free, max(due.not_before, run.free, self._clock())
        run.free = free = moment + self._cooldown
        run.schedule.last = max(moment, run.schedule.last or moment)
        run.going += 1
        reached = False
        try:
            with self._stoppable():
                await self._sleep(max(0.0, moment - self._clock()))
                reached = True
        finally:
            run.going -= 1
            if reached:
                run.schedule.serve()
            else:
                self._sent -= 1
                run.schedule.withdraw(due)
                # Whoever else waits by now goes when it was told to.
                run.free = before if run.free == free else run.free
        return reached

    @contextmanager
    def _stoppable(self) -> Generator[None, None, None]:
        """Let `close` end what is done in here."""
        with anyio.CancelScope() as scope:
            self._scopes.add(scope)
            try:
                yield
            finally:
                self._scopes.discard(scope)

    async def _dispatch(self, dispatch: Dispatch) -> Outcome:
        done = await attempt(partial(self._dispatch_fn, dispatch), "probe_controller", "1")
        if not isinstance(done, Failure):
            return Outcome.DISPATCHED
        self.failures += 1
        self.last_failure = done
        # What a host's function raises may quote keys and content; no operator's redactor is known here.
        detail = Scrubber(RuleRedactor(), (), ()).quote(done.detail)
        _LOG.warning("a probe could not be dispatched (%s): %s", done.cause, ascii(detail))
        return Outcome.FAILED


async def _nobody(_: Dispatch) -> None:
    raise ConfigError(_NO_DISPATCH)


def _check_event(event: object) -> None:
    if not isinstance(event, RuntimeEvent):
        raise EventError(f"evaluate and wait are asked about a RuntimeEvent, not a {type(event).__name__}")


def _check_text(fault: str, *given: object) -> None:
    if not all(isinstance(text, str) for text in given):
        raise ConfigError(fault)
