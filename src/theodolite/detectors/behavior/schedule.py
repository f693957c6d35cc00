"""When a session is probed: on what it has taken in since the last probe, with few probes and never by the clock."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from enum import StrEnum

from msgspec import UNSET, Struct
from msgspec.structs import force_setattr

from theodolite.core.event import (
    ContextCompacted,
    Event,
    HandedOff,
    MessageObserved,
    ModelCalled,
    ProbeRequested,
    SessionEnded,
    Source,
    ToolCallProposed,
    ToolResultObserved,
    TurnEnded,
)
from theodolite.core.text import brief

__all__ = ("READS", "Due", "Held", "Hold", "Schedule", "ScheduleSettings", "Secrets", "Trigger")

Secrets = Callable[[str], bytes]
"""Gives 32 bytes for a label that nobody outside can foresee, the same for the same label: `Window.draw`."""

READS: frozenset[type[Event]] = frozenset(
    {
        ContextCompacted,
        HandedOff,
        MessageObserved,
        ModelCalled,
        ProbeRequested,
        SessionEnded,
        ToolCallProposed,
        ToolResultObserved,
        TurnEnded,
    }
)
"""The events that a schedule goes by. A call tells it nothing, but that time has passed."""

# Bytes of UTF-8 that are counted as a token where nobody says how many tokens there are: the rule of thumb of OpenAI's
# documentation for English text. Amounts are kept in bytes.
_TOKEN = 4
# The power with which spacing grows as probes run out. Our choice: under a cap of 20 a session of 60,000 tokens is
# probed up to 7 times for what it took in, one of 300,000 up to 10 times, and the last such probe comes not before it
# has taken in 83 million.
_POWER = 4
# How much longer than needed a step may be drawn: whoever counts tokens shall not know when the next probe comes.
_SPREAD = 0.5
# Larger numbers than this are no counts of tokens, and a float does not hold them exactly.
_MOST = 2**53
# Of one draw: bytes for the jitter, and as many for the spread.
_BYTES = 7


class Trigger(StrEnum):
    """Why a probe is wanted."""

    CONTEXT_GROWTH = "context_growth"
    EXTERNAL_CONTENT = "external_content"
    COMPACTION = "compaction"
    HANDOFF = "handoff"
    REPUTATION = "reputation"
    MANUAL = "manual"

    @classmethod
    def of(cls, reason: str) -> Trigger:
        """Return the trigger of that name; somebody who gives any other reason asks by hand.

        >>> Trigger.of("handoff").value, Trigger.of("looks odd").value
        ('handoff', 'manual')
        """
        return _BY_NAME.get(reason, cls.MANUAL)


_BY_NAME: Mapping[str, Trigger] = {trigger.value: trigger for trigger in Trigger}
_TAKEN_IN = (Trigger.CONTEXT_GROWTH, Trigger.EXTERNAL_CONTENT)
_SHIFTS = frozenset({Trigger.COMPACTION, Trigger.HANDOFF, Trigger.REPUTATION})


class ScheduleSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How often a session is probed. Names and defaults are axor-probe's, but for its cap of 10.

    A probe is wanted when the context grew by `context_growth_tokens` since the last one, or took in
    `external_content_threshold` tokens of untrusted text; both grow as probes run out. A session has at most
    `max_probes_per_session`. Each comes up to `jitter_seconds` later than it is wanted, and not within
    `cooldown_window_seconds` of the one before. There is no interval: a session that has taken in nothing would be
    asked the same again. Raises ValueError for what is no whole number from 1, or no number of seconds from 0.
    """

    context_growth_tokens: int = 2_000
    external_content_threshold: int = 500
    max_probes_per_session: int = 20
    jitter_seconds: float = 15.0
    cooldown_window_seconds: float = 30.0

    def __post_init__(self) -> None:
        for name in ("context_growth_tokens", "external_content_threshold", "max_probes_per_session"):
            count: object = getattr(self, name)
            if type(count) is not int or not 1 <= count <= _MOST:
                raise ValueError(f"{name} is a whole number from 1, not {brief(count)}")
        for name in ("jitter_seconds", "cooldown_window_seconds"):
            seconds: object = getattr(self, name)
            if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < _MOST:
                raise ValueError(f"{name} is a number of seconds from 0, not {brief(seconds)}")
            force_setattr(self, name, float(seconds))

    def allowance(self, trigger: Trigger) -> int:
        """Return how many probes a session may have had, of any kind, for this trigger to bring one more.

        Three of ten are kept from what the session takes in, one of ten from compaction, handoff and reputation as
        well: with a cap of 2 or more, one is left for who asks by hand.

        >>> settings = ScheduleSettings()
        >>> [settings.allowance(trigger) for trigger in (Trigger.CONTEXT_GROWTH, Trigger.HANDOFF, Trigger.MANUAL)]
        [14, 18, 20]
        """
        cap = self.max_probes_per_session
        kept = 0 if trigger is Trigger.MANUAL else max(1, cap // 10 if trigger in _SHIFTS else 3 * cap // 10)
        return max(1, cap - kept)

    def stretch(self, trigger: Trigger, spent: int) -> float:
        """Return by how much the amount is stretched that this trigger waits for, after so many probes.

        That is (allowance / what is left of it) ** 4: 1 at first, at least e ** (4 * spent / allowance), and without a
        bound where nothing is left. n probes for what a session took in thus take at least the threshold times the sum
        of the first n stretches.
        """
        allowance = self.allowance(trigger)
        return (allowance / (allowance - spent)) ** _POWER if spent < allowance else math.inf


class Hold(StrEnum):
    """Why a probe that is wanted does not come now."""

    COOLDOWN = "cooldown"
    SPACING = "spacing"
    CAP = "cap"


class Due(Struct, frozen=True, kw_only=True, gc=False):
    """A probe is to be dispatched, at `not_before` (in seconds, as the times of events); `number` counts from 0."""

    triggers: tuple[Trigger, ...]
    not_before: float
    number: int


class Held(Struct, frozen=True, kw_only=True, gc=False):
    """A probe is wanted and does not come now: for the cooldown, which is over at `until`, for spacing, or the cap.

    All but what the cap forbids stays wanted.
    """

    triggers: tuple[Trigger, ...]
    hold: Hold
    until: float | None = None


class Schedule(Struct, kw_only=True):
    """When one session is probed: what it took in since its last probe, how many there were, and what is wanted.

    Growth is told by `ModelCalled.input_tokens`; between two of these, and where they are not shown, by the bytes of
    messages and results, four to a token. A context that is smaller than the one before is taken for a call on the
    side, until the next that is smaller too. The first context of a session counts as far as its texts were shown, or
    whole where none was: a long system prompt is nothing that the session took in.

    What is wanted within the cooldown, or before the spacing allows it, becomes one probe later: at the next event for
    which both are over. When a turn ends, it is set for the end of the cooldown at once, since nothing more may come
    before the user does; when the session ends, regardless of spacing. A request that brings its own snapshot was
    scheduled by who took it: it is held by the cap alone.

    Laws: never more probes than the cap; no two within the cooldown, snapshots that are brought excepted; nothing that
    is wanted is lost but to the cap. A clock that is set back holds a probe no longer than two cooldowns and jitters.
    State and cost per event: O(1), but for the length of text that is not ASCII.
    """

    spent: int = 0
    last: float | None = None
    spread: float = 1.0
    pending: tuple[Trigger, ...] = ()
    seen: bool = False
    level: int = -1
    lower: int = -1
    grown: int = 0
    guessed: int = 0
    external: int = 0
    shifted: int | None = None

    def take(self, event: Event, settings: ScheduleSettings, secrets: Secrets) -> Due | Held | None:
        """Take an event in; return whether a probe is due, or wanted and held. None: no probe is wanted."""
        if type(event) not in READS:
            return None
        if isinstance(event, ProbeRequested):
            trigger = Trigger.of(event.reason)
            if event.snapshot is not None:
                return self._brought(trigger, event.at, settings)
            self.want(trigger)
        elif isinstance(event, ModelCalled):
            if isinstance(event.input_tokens, int):
                self.rise(event.input_tokens)
        elif isinstance(event, MessageObserved | ToolResultObserved):
            self._read(event)
        elif isinstance(event, ContextCompacted):
            self._compacted(event)
        elif isinstance(event, HandedOff):
            self.want(Trigger.HANDOFF)
        over = isinstance(event, SessionEnded)
        return self.settle(event.at, settings, secrets, rests=over or isinstance(event, TurnEnded), over=over)

    def want(self, trigger: Trigger) -> None:
        """Note that a probe is wanted."""
        if trigger not in self.pending:
            self.pending = _ordered(self.pending, (trigger,))

    def rise(self, tokens: int, *, external: bool = False) -> None:
        """Note the length of the whole context; with `external`, that untrusted text is what it grew by."""
        tokens = min(max(0, tokens), _MOST)
        if 0 <= tokens < self.level and self.lower < 0:
            self.lower = tokens
            return
        if self.level < 0:
            added = self.guessed if self.seen else tokens * _TOKEN
        elif tokens >= self.level:
            added = (tokens - self.level) * _TOKEN
        else:
            added = max(self.guessed, (tokens - self.lower) * _TOKEN)
        self.level, self.lower, self.guessed, self.seen = tokens, -1, 0, True
        self.grown = _counted(self.grown + added)
        if external:
            self.external = _counted(self.external + added)

    def settle(
        self, at: float, settings: ScheduleSettings, secrets: Secrets, *, rests: bool = False, over: bool = False
    ) -> Due | Held | None:
        """Return whether a probe is due at a moment. `rests`: nothing may come for a while; `over`: ever."""
        wanted = self._wanted(settings)
        if not wanted:
            return None
        allowed = tuple([trigger for trigger in wanted if self.spent < settings.allowance(trigger)])
        self.pending = tuple([trigger for trigger in self.pending if trigger in allowed])
        if not allowed:
            return Held(triggers=wanted, hold=Hold.CAP)
        if not over and not any(self._spaced(trigger, settings) for trigger in allowed):
            return Held(triggers=allowed, hold=Hold.SPACING)
        last = self._last(at, settings)
        until = at if last is None else last + settings.cooldown_window_seconds
        # A probe that is set for later shows nothing of what comes until then: one more may be set behind it, not ten.
        soon = rests and last is not None and last <= at + settings.jitter_seconds
        if at < until and not over and not soon:
            return Held(triggers=allowed, hold=Hold.COOLDOWN, until=until)
        return self._dispatch(wanted, max(at, until), settings, secrets)

    def serve(self) -> None:
        """Begin anew: what came so far is before a probe now. For who dispatches later than `settle` was asked."""
        if self.level >= 0:
            # The next length that is told has these texts in it.
            self.level = min(self.level + self.guessed // _TOKEN, _MOST)
        if self.shifted is not None:
            self.shifted = _counted(self.shifted + self.grown + self.guessed)
        self.grown = self.guessed = self.external = 0
        self.pending = ()

    def withdraw(self, due: Due) -> None:
        """Take a dispatch back that was cancelled before anybody was asked: it is wanted again after the cooldown."""
        self.spent = max(0, self.spent - 1)
        self.pending = _ordered(self.pending, due.triggers)

    def _brought(self, trigger: Trigger, at: float, settings: ScheduleSettings) -> Due | Held:
        if self.spent >= settings.max_probes_per_session:
            return Held(triggers=(trigger,), hold=Hold.CAP)
        number, last = self.spent, self._last(at, settings)
        self.spent += 1
        self.last = at if last is None else max(at, last)
        triggers = _ordered(self.pending, (trigger,))
        self.serve()
        return Due(triggers=triggers, not_before=at, number=number)

    def _dispatch(self, triggers: tuple[Trigger, ...], at: float, settings: ScheduleSettings, secrets: Secrets) -> Due:
        number = self.spent
        drawn = secrets(f"schedule {number}")
        self.spent += 1
        self.last = at + _share(drawn[:_BYTES]) * settings.jitter_seconds
        self.spread = 1.0 + _share(drawn[_BYTES : 2 * _BYTES]) * _SPREAD
        self.serve()
        if not _SHIFTS.isdisjoint(triggers):
            self.shifted = 0
        return Due(triggers=triggers, not_before=self.last, number=number)

    def _wanted(self, settings: ScheduleSettings) -> tuple[Trigger, ...]:
        """Return the triggers that want a probe: those that wait, and those that what was taken in is enough for."""
        growth, content = _TAKEN_IN
        grown = self.grown + self.guessed
        # The least that can be enough, for most events are far from it.
        if (
            grown < settings.context_growth_tokens * _TOKEN
            and self.external < settings.external_content_threshold * _TOKEN
        ):
            return self.pending
        factor = settings.stretch(growth, self.spent) * self.spread * _TOKEN
        found = [growth] if grown >= settings.context_growth_tokens * factor else []
        if self.external >= settings.external_content_threshold * factor:
            found.append(content)
        return _ordered(self.pending, tuple(found))

    def _spaced(self, trigger: Trigger, settings: ScheduleSettings) -> bool:
        """Whether a trigger that wants a probe need not wait for more to be taken in.

        Compactions, handoffs and reputation come however often somebody likes, so that all but the first wait for as
        much since the last of them as their stretch exceeds 1; the others have waited already, or do not wait.
        """
        if trigger not in _SHIFTS or self.shifted is None:
            return True
        needed = settings.context_growth_tokens * (settings.stretch(trigger, self.spent) - 1.0) * _TOKEN
        return self.shifted + self.grown + self.guessed >= needed

    def _last(self, at: float, settings: ScheduleSettings) -> float | None:
        """Return when the last probe was, or is to be; never so far ahead as only a clock that was set back puts it."""
        ahead = 2 * (settings.cooldown_window_seconds + settings.jitter_seconds)
        if self.last is not None and self.last > at + ahead:
            self.last = at
        return self.last

    def _read(self, event: MessageObserved | ToolResultObserved) -> None:
        if event.text is UNSET:
            return
        text = str(event.text)
        size = len(text) if text.isascii() else len(text.encode())
        self.guessed, self.seen = _counted(self.guessed + size), True
        if _from_outside(event):
            self.external = _counted(self.external + size)

    def _compacted(self, event: ContextCompacted) -> None:
        self.grown = _counted(self.grown + self.guessed)
        self.guessed, self.lower, self.level = 0, -1, -1
        if isinstance(event.after, int):
            self.level = min(max(0, event.after), _MOST)
        self.want(Trigger.COMPACTION)


def _from_outside(event: MessageObserved | ToolResultObserved) -> bool:
    if isinstance(event, MessageObserved) and event.role == "assistant":
        return False
    return event.source is Source.TOOL or event.source is Source.EXTERNAL


def _counted(amount: int) -> int:
    return min(amount, _MOST)


def _ordered(some: tuple[Trigger, ...], others: tuple[Trigger, ...]) -> tuple[Trigger, ...]:
    return tuple([trigger for trigger in Trigger if trigger in some or trigger in others]) if others else some


def _share(drawn: bytes) -> float:
    """Return a number from 0 to below 1."""
    return int.from_bytes(drawn) / 2.0 ** (8 * len(drawn))
