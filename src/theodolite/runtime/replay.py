"""Recorded sessions through the same code as live ones."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from typing import Protocol

from msgspec import UNSET, Struct
from msgspec.structs import replace

from theodolite.core.coverage import Coverage
from theodolite.core.errors import ConfigError, EventError
from theodolite.core.event import (
    AnyEvent,
    GoalStated,
    MessageObserved,
    OwnEvent,
    SessionEnded,
    Source,
    ToolCallProposed,
    ToolResultObserved,
)
from theodolite.core.intent import ArgumentOrigin
from theodolite.core.policy import Action, Decision, Outcome, highest, outcome
from theodolite.core.reader import Recorded, Unreadable
from theodolite.core.reading import Reading
from theodolite.core.redaction import Scrubber
from theodolite.core.snapshot import StateSnapshot
from theodolite.detectors.behavior.arms import ProbeCase
from theodolite.runtime.monitor import Monitor
from theodolite.runtime.opened import opened
from theodolite.runtime.session import Session

__all__ = ("CallRow", "Goal", "Probing", "Sighting", "Step", "elsewhere", "goes_on", "replay")


# Characters of a tool's name that a report may show. The APIs of OpenAI and Anthropic allow 64.
TOOL_NAME = 128
# What the user said that is kept of one session. Nobody reads more; a recording may hold any number.
GOALS = 1_000


class CallRow(Struct, frozen=True, kw_only=True, gc=False):
    """A proposed call and the decision on it. The tool's name is a model's word: it is redacted, and cut.

    `origins` say where its arguments came from; None where nobody looked or could.
    """

    tool: str
    decision: Decision
    origins: tuple[ArgumentOrigin, ...] | None = None


class Goal(Struct, frozen=True, kw_only=True, gc=False):
    """What the user asked for, or said later, which may amend it; redacted, and cut to a quotation."""

    seq: int
    text: str


class Step(Struct, frozen=True, kw_only=True, gc=False):
    """An event that evidence points to, without what it carried: its type, who wrote it, the tool's redacted name."""

    seq: int
    turn: int
    event: str
    source: Source
    tool: str = ""


class Sighting(Struct, frozen=True, kw_only=True):
    """What one recorded session came to.

    `decisions` are those on which somebody spoke or that refuse a call; `steps` the events that their evidence points
    to or that arguments came from, in order. `goals` is what the user said, in order: the first 1,000 texts, none
    twice in a row. `models` are those that the session was seen to use, by name.
    """

    session: str
    agent: str
    outcome: Outcome
    action: Action
    coverage: Coverage
    models: tuple[str, ...] = ()
    goals: tuple[Goal, ...] = ()
    calls: tuple[CallRow, ...] = ()
    decisions: tuple[Decision, ...] = ()
    steps: tuple[Step, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()


class Probing(Protocol):
    """Who probes sessions that are over, each `probes` times; `ahead` sessions may be under way at once.

    `reason` goes into what asks for each probe.
    """

    @property
    def reason(self) -> str:
        """Return why they are probed."""
        ...

    @property
    def probes(self) -> int:
        """Return how many probes each is put, 1 or more."""
        ...

    @property
    def ahead(self) -> int:
        """Return how many sessions may be under way at once, 0 or more."""
        ...

    def probe(self, session: Session) -> Future[tuple[Decision, ...]]:
        """Put the open inquiries of a session; give the decisions that follow when they are there."""
        ...


class _Under:
    """A session under way. `broken`: events of it may be missing between the last one and the next."""

    def __init__(self, monitor: Monitor, first: AnyEvent, *, broken: bool) -> None:
        self.monitor = monitor
        self.session = monitor.session(first.session, agent=first.agent)
        self.goals: list[Goal] = []
        self.calls: list[CallRow] = []
        self.decisions: list[Decision] = []
        self.steps: list[Step] = []
        self.unreadable: list[Unreadable] = []
        self.answers: Future[tuple[Decision, ...]] | None = None
        self.ended = False
        self.broken = broken
        self._said = ""  # what the user said last
        self._last = -1  # the seq of the event before, as it was recorded

    def take(self, event: AnyEvent) -> None:
        turn = self.session.turn if event.turn < 0 else event.turn
        try:
            self._follow(event)
            if self.ended and isinstance(event, SessionEnded):
                return
            decision = self.session.retake(event)
        except EventError as error:
            self.unreadable.append(Unreadable(file="", line=0, reason=str(error), session=self.session.id))
            return
        self.steps.append(_step(event, decision.seq, turn))
        if isinstance(event, ToolCallProposed):
            origins = self.session.origins
            self.calls.append(CallRow(tool=self._shown(event.tool), decision=decision, origins=origins))
        elif len(self.goals) < GOALS and (said := _asked(event)) not in {"", self._said}:
            self._said = said
            self.goals.append(Goal(seq=decision.seq, text=self.session.quoted(said)))
        self.ended = self.ended or isinstance(event, SessionEnded)
        if decision.signals or not decision.allowed:
            self.decisions.append(decision)

    def _follow(self, event: AnyEvent) -> None:
        """Go on to an event. Raises EventError for an own one that was recorded in another place.

        Its seal says what it is, and not where in a file it belongs: elsewhere it would clear or settle what it was
        never about.
        """
        wanted = self._last + 1
        if isinstance(event, OwnEvent) and (event.seq < wanted or (event.seq > wanted and not self.broken)):
            raise EventError(
                f"session {self.session.id}: a {type(event).__name__} was recorded as event {event.seq}, and event "
                f"{wanted} is wanted here: it was moved or repeated, or what came before it was removed"
            )
        self._last, self.broken = max(self._last, event.seq), False  # an end that a reader adds has no place

    def _shown(self, tool: str) -> str:
        return Scrubber(self.monitor.fleet.redactor, (), ()).quote(tool)[:TOOL_NAME]

    def probe(self, prober: Probing) -> None:
        """Have the session probed, unless it is known already why it cannot be.

        All probes are about one snapshot: what asks for them takes places in the window, and must push nothing out.
        """
        snapshot: StateSnapshot | None = None
        for number in range(prober.probes):
            before = self.session.waiting
            decision = self.session.request_probe(prober.reason, snapshot=snapshot)
            if decision.signals:
                self.decisions.append(decision)
            if decision.open <= before:
                break  # the next one would be refused for the same reason
            if number == 0 and prober.probes > 1:
                snapshot = self._snapshot(decision.seq)
        if self.session.waiting:
            self.answers = prober.probe(self.session)

    def _snapshot(self, about: int) -> StateSnapshot | None:
        """Return the snapshot that was taken for the inquiry about an event."""
        for inquiry in opened(self.session, self.monitor.fleet.askers):
            if inquiry.about == about and isinstance(inquiry.subject, ProbeCase):
                return inquiry.subject.snapshot
        return None

    def end(self) -> Sighting:
        if self.answers is not None:
            self.decisions.extend(self.answers.result())
        self.decisions.extend(self.session.close())
        self.monitor.forget(self.session.id)
        coverage = replace(self.session.coverage(), unreadable=sum(part.parts for part in self.unreadable))
        return Sighting(
            session=self.session.id,
            agent=self.session.agent,
            outcome=outcome(
                self.decisions,
                unreadable=coverage.unreadable,
                blind=coverage.blind,
                deciding=any(sight.decides for sight in coverage.detectors),
            ),
            action=highest(decision.action for decision in self.decisions),
            coverage=coverage,
            models=self.session.models,
            goals=tuple(self.goals),
            calls=tuple(self.calls),
            decisions=tuple(self.decisions),
            steps=self._cited(),
            unreadable=tuple(self.unreadable),
        )

    def _cited(self) -> tuple[Step, ...]:
        """Return the events that evidence points to, and those that arguments came from."""
        said = [signal.said for decision in self.decisions for signal in decision.signals]
        cited = {seq for one in said if isinstance(one, Reading) for item in one.evidence for seq in item.seqs}
        cited |= {item.seq for row in self.calls for item in row.origins or () if item.seq is not None}
        return tuple([replace(step, tool=self._shown(step.tool)) for step in self.steps if step.seq in cited])


def _asked(event: AnyEvent) -> str:
    """Return what a user says in an event that may set or amend the goal."""
    if not event.source.trusted or not isinstance(event, GoalStated | MessageObserved):
        return ""
    if isinstance(event, MessageObserved) and (event.role != "user" or event.text is UNSET):
        return ""
    return str(event.text)


def _step(event: AnyEvent, seq: int, turn: int) -> Step:
    tool = event.tool if isinstance(event, ToolCallProposed | ToolResultObserved) else ""
    return Step(seq=seq, turn=turn, event=type(event).__name__, source=event.source, tool=tool)


def elsewhere(session: str) -> Unreadable:
    """Return what stands for a part that cannot be read and is told elsewhere: events of the session may be missing."""
    return Unreadable(file="", line=0, reason="", session=session)


def goes_on(ended: str | None, item: Recorded) -> bool:
    """Whether an item may still belong to the session `ended`, the last one that ended (None: there is none).

    Own events that follow its end at once do: what was settled, checked or cleared after it. So does a second end,
    which a reader may add, and what cannot be read says nothing either way.
    """
    if ended is None or isinstance(item, Unreadable):
        return True
    if item.session != ended:
        return False
    return isinstance(item, SessionEnded) or (isinstance(item, OwnEvent) and item.seq != 0)  # 0: it was opened anew


def replay(
    recorded: Iterable[Recorded], monitor: Monitor, prober: Probing | None = None
) -> Iterator[Sighting | Unreadable]:
    """Yield what each recorded session came to, in the order in which they end, and what belongs to no session.

    A session is over with SessionEnded and the own events that follow at once. With a `prober` each is then probed,
    several sessions at a time. An own event counts only where its seq follows that of the event before it, or lies
    beyond a part that could not be read; else it is Unreadable. Holds the sessions that are not over and, of each, the
    calls and the decisions on which somebody spoke. Raises StoreError where the end of a session cannot be kept.
    """
    probed: deque[_Under | Unreadable] = deque()
    ahead = 0 if prober is None else prober.ahead
    for item in _over(recorded, monitor):
        if isinstance(item, str):  # an id is used again: what it stood for before comes to its end first
            while any(isinstance(one, _Under) and one.session.id == item for one in probed):
                yield _told(probed.popleft())
            continue
        if prober is not None and isinstance(item, _Under):
            item.probe(prober)
        probed.append(item)
        if len(probed) > ahead:
            yield _told(probed.popleft())
    while probed:
        yield _told(probed.popleft())


def _told(item: _Under | Unreadable) -> Sighting | Unreadable:
    return item if isinstance(item, Unreadable) else item.end()


def _over(recorded: Iterable[Recorded], monitor: Monitor) -> Iterator[_Under | Unreadable | str]:
    """Yield the sessions as they are over, what belongs to none, and the id of each one before it is opened."""
    under: dict[str, _Under] = {}
    ended: str | None = None
    lost: set[str] = set()  # sessions, "" for any, of which something could not be read since the last one was over
    for item in recorded:
        if ended is not None and not goes_on(ended, item):
            yield under.pop(ended)
            ended = None
            lost.clear()
        if isinstance(item, Unreadable):
            lost.add(item.session)
            _break(under, item.session)
            known = under.get(item.session)
            if item == elsewhere(item.session):
                continue
            if known is None:
                yield item
            else:
                known.unreadable.append(item)
            continue
        current = under.get(item.session)
        if current is None:
            yield item.session
            try:
                current = under[item.session] = _Under(monitor, item, broken=bool(lost & {"", item.session}))
            except ConfigError as error:  # a recording may hold what no host would send: it stops nobody else's
                yield Unreadable(file="", line=0, reason=str(error), session=item.session)
                continue
        current.take(item)
        if isinstance(item, SessionEnded):
            ended = item.session
    for left in sorted(under, key=lambda session: session != ended):
        yield under[left]


def _break(under: Mapping[str, _Under], session: str) -> None:
    """Note that an event of a session may be missing here, of any where none is named."""
    for name, one in under.items():
        one.broken = one.broken or session in {"", name}
