"""What would change if another artefact graded: of each call and session what it comes to before and after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import BinaryIO, Literal

from msgspec import Struct

from theodolite.core.policy import Action, Decision, Mode, Outcome, Policy, highest
from theodolite.core.reading import Signal
from theodolite.core.text import printable
from theodolite.reports.escaping import inert
from theodolite.reports.json import encoded
from theodolite.reports.layout import Block, Heading, Paragraph, Span, Style, Table, counted
from theodolite.reports.limits import LINES, NAME, PARTS, QUOTE
from theodolite.reports.reasons import score
from theodolite.reports.words import OUTCOMES
from theodolite.runtime.replay import CallRow, Sighting

__all__ = (
    "CallChange",
    "CallVerdict",
    "Changes",
    "ChangesJSON",
    "ChangesText",
    "Compared",
    "Comparison",
    "Counts",
    "SessionChange",
    "SessionVerdict",
    "compared",
)


class CallVerdict(Struct, frozen=True, kw_only=True):
    """What a call comes to: `alarmed` are the codes that alarm and count, sorted; `score` is that of `fusion.call`."""

    alarmed: tuple[str, ...]
    allowed: bool
    action: Action
    score: float | None


class CallChange(Struct, frozen=True, kw_only=True):
    """A call of which more than the score differs. `seq` is its place in the session, `tool` its redacted name."""

    seq: int
    tool: str
    before: CallVerdict
    after: CallVerdict


class SessionVerdict(Struct, frozen=True, kw_only=True):
    """What a session comes to: `alarmed` are the codes that alarmed and count, on a call or elsewhere, sorted."""

    outcome: Outcome
    action: Action
    alarmed: tuple[str, ...]


class SessionChange(Struct, frozen=True, kw_only=True):
    """What a session comes to before and after, and of its calls those of which that differs."""

    session_id: str
    file: str
    before: SessionVerdict
    after: SessionVerdict
    calls: tuple[CallChange, ...]


class Compared(Struct, frozen=True, kw_only=True):
    """One session that was judged twice; `judged` counts its calls."""

    judged: int
    change: SessionChange

    @property
    def differs(self) -> bool:
        """Whether anything of it would change."""
        return bool(self.change.calls) or self.change.before != self.change.after


class Counts(Struct, frozen=True, kw_only=True):
    """What one side comes to as a whole. `calibration` is null for the thresholds that ship with the detectors."""

    calibration: str | None
    outcomes: dict[Outcome, int]
    actions: dict[Action, int]


class Comparison(Struct, frozen=True, kw_only=True):
    """The summary: how much was compared, and how much of it would change.

    `stopped` calls were allowed before and are refused after, `let_through` the other way round; `alarmed` calls have a
    code that alarms and counts after and had none before, `quiet` ones the other way round. `complete` is false where
    it was stopped; `unread` counts parts that could not be read.
    """

    version: str
    before: Counts
    after: Counts
    sessions: int
    calls: int
    sessions_changed: int
    calls_changed: int
    stopped: int
    let_through: int
    alarmed: int
    quiet: int
    unread: int
    complete: bool


class Changes:
    """Counts what was compared, in memory that does not grow with it."""

    def __init__(self, version: str, before: str | None, after: str | None) -> None:
        self.sessions = self.calls = self.sessions_changed = self.calls_changed = self.unread = 0
        self._version = version
        self._ids = (before, after)
        self._counts = Counter[str]()
        self._outcomes = (Counter[Outcome](), Counter[Outcome]())
        self._actions = (Counter[Action](), Counter[Action]())

    def add(self, item: Compared) -> None:
        """Count a session."""
        self.sessions += 1
        self.calls += item.judged
        self.sessions_changed += item.differs
        for side, verdict in enumerate((item.change.before, item.change.after)):
            self._outcomes[side][verdict.outcome] += 1
            self._actions[side][verdict.action] += 1
        for call in item.change.calls:
            self.calls_changed += 1
            self._counts.update(_kinds(call))

    def summary(self, *, complete: bool) -> Comparison:
        """Return what it came to."""
        before, after = [
            Counts(
                calibration=None if name is None else printable(name),
                outcomes={outcome: self._outcomes[side][outcome] for outcome in Outcome},
                actions={action: self._actions[side][action] for action in Action},
            )
            for side, name in enumerate(self._ids)
        ]
        return Comparison(
            version=self._version,
            before=before,
            after=after,
            sessions=self.sessions,
            calls=self.calls,
            sessions_changed=self.sessions_changed,
            calls_changed=self.calls_changed,
            stopped=self._counts["stopped"],
            let_through=self._counts["let_through"],
            alarmed=self._counts["alarmed"],
            quiet=self._counts["quiet"],
            unread=self.unread,
            complete=complete,
        )


def _kinds(call: CallChange) -> Iterator[str]:
    if call.before.allowed is not call.after.allowed:
        yield "stopped" if call.before.allowed else "let_through"
    if bool(call.before.alarmed) is not bool(call.after.alarmed):
        yield "quiet" if call.before.alarmed else "alarmed"


def compared(before: Sighting, after: Sighting, file: str = "") -> Compared:
    """Return what differs between two judgments of one recorded session.

    A call is held against itself by its place. That its score differs, or what its threshold rests on, is no change: an
    alarm that counts, an action or a refusal is.
    """
    late = (_about(before.decisions), _about(after.decisions))
    own = {row.decision.about: row for row in before.calls}
    calls: list[CallChange] = []
    for row in after.calls:
        seq = row.decision.about
        if seq in own:
            was, is_now = _call(own[seq], late[0]), _call(row, late[1])
            if _weighs(was) != _weighs(is_now):
                calls.append(CallChange(seq=seq, tool=printable(row.tool), before=was, after=is_now))
    change = SessionChange(
        session_id=printable(after.session),
        file=printable(file),
        before=_session(before),
        after=_session(after),
        calls=tuple(calls),
    )
    return Compared(judged=len(after.calls), change=change)


def _about(decisions: Iterable[Decision]) -> Mapping[int, Sequence[Decision]]:
    """Return the decisions about each event: the one on it, and those that models' answers brought later."""
    found: dict[int, list[Decision]] = {}
    for decision in decisions:
        found.setdefault(decision.about, []).append(decision)
    return found


def _call(row: CallRow, late: Mapping[int, Sequence[Decision]]) -> CallVerdict:
    made = late.get(row.decision.about, ())
    return CallVerdict(
        alarmed=_alarmed(made),
        allowed=row.decision.allowed,
        action=highest([row.decision.action, *[decision.action for decision in made]]),
        score=score(row.decision.signals),
    )


def _weighs(verdict: CallVerdict) -> tuple[object, ...]:
    return verdict.alarmed, verdict.allowed, verdict.action


def _session(sighting: Sighting) -> SessionVerdict:
    return SessionVerdict(outcome=sighting.outcome, action=sighting.action, alarmed=_alarmed(sighting.decisions))


def _alarmed(decisions: Iterable[Decision]) -> tuple[str, ...]:
    return tuple(sorted({signal.code for made in decisions for signal in made.signals if _counts(signal)}))


def _counts(signal: Signal) -> bool:
    return signal.alarmed and (signal.finds or signal.acts)


class _Document(Struct, frozen=True, kw_only=True):
    """The whole of the JSON form; `sessions` are those of which something would change."""

    schema: Literal[1] = 1
    sessions: tuple[SessionChange, ...]
    summary: Comparison


class ChangesJSON:
    """Writes one JSON document. Each session is written as it comes and then forgotten."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._begun = False

    def add(self, change: SessionChange) -> None:
        """Write a session."""
        self._stream.write(b",\n" if self._begun else b'{"schema":1,"sessions":[\n')
        self._stream.write(encoded(change))
        self._begun = True

    def end(self, summary: Comparison) -> None:
        """Write the summary, which makes the document whole."""
        if not self._begun:
            self._stream.write(encoded(_Document(sessions=(), summary=summary)) + b"\n")
            return
        self._stream.write(b'\n],"summary":%b}\n' % encoded(summary))


class ChangesText:
    """Keeps the first sessions of which something would change, and returns the blocks of a report for people."""

    def __init__(self, policy: Policy, detectors: Iterable[str]) -> None:
        self._policy = policy
        self._detectors = tuple(detectors)
        self._kept: list[SessionChange] = []
        self._more = 0
        self.blocks: tuple[Block, ...] = ()

    def add(self, change: SessionChange) -> None:
        """Take a session."""
        if len(self._kept) < LINES:
            self._kept.append(change)
        else:
            self._more += 1

    def end(self, summary: Comparison) -> None:
        """Make the blocks."""
        self.blocks = tuple(self._blocks(summary))

    def _blocks(self, summary: Comparison) -> Iterator[Block]:
        title = f"theodolite {summary.version}: {counted(summary.sessions, 'session')} judged twice"
        yield Heading((Span(title, Style.STRONG),))
        sides = f"Before: {_graded(summary.before)}. After: {_graded(summary.after)}."
        yield Paragraph((Span(sides),))
        yield Paragraph((Span(self._ruled(), Style.QUIET),))
        if not summary.complete:
            yield Paragraph((Span("It was stopped: this is what was compared until then.", Style.WARN),))
        if self._kept:
            yield Heading((Span("What would change", Style.STRONG),))
        for change in self._kept:
            yield from _changed(change)
        if self._more:
            yield Paragraph((Span(f"... and {counted(self._more, 'more session')}: --format json has all"),))
        yield Heading((Span("Summary", Style.STRONG),))
        yield _table(summary)
        yield Paragraph((Span(_told(summary)),), hang=0)
        if summary.unread:
            yield Paragraph((Span(f"{counted(summary.unread, 'part')} could not be read.", Style.WARN),), hang=0)

    def _ruled(self) -> str:
        """Say what the policy makes of an alarm: what is stopped depends on it."""
        enforcing = [inert(name, NAME) for name in self._detectors if self._policy.mode(name) is Mode.ENFORCE]
        held = "is refused" if self._policy.hold else "is not refused by itself"
        return (
            f"By these settings a call whose own signal acts {held} (hold = {str(self._policy.hold).lower()}); in mode "
            f"enforce: {', '.join(enforcing[:PARTS]) or 'nobody'}."
        )


def _graded(side: Counts) -> str:
    return (
        "the detectors' own thresholds"
        if side.calibration is None
        else f"the calibration {inert(side.calibration, NAME)}"
    )


def _changed(change: SessionChange) -> Iterator[Block]:
    before, after = change.before, change.after
    came = [] if before.outcome is after.outcome else [f"{OUTCOMES[before.outcome]} -> {OUTCOMES[after.outcome]}"]
    came += [] if before.action is after.action else [f"{before.action} -> {after.action}"]
    if not came and not change.calls:
        came = [_codes(before.alarmed, after.alarmed)]
    file = f"  {inert(change.file, QUOTE)}" if change.file else ""
    said = f"  {'; '.join(came)}" if came else ""
    yield Paragraph((Span(inert(change.session_id, QUOTE), Style.STRONG), Span(said), Span(file, Style.QUIET)))
    for call in change.calls[:PARTS]:
        yield Paragraph((Span(f"call {call.seq} {inert(call.tool, NAME)}: "), *_spans(call)), indent=5)
    if len(change.calls) > PARTS:
        yield Paragraph((Span(f"... and {counted(len(change.calls) - PARTS, 'more call')}", Style.QUIET),), indent=5)


def _spans(call: CallChange) -> Iterator[Span]:
    before, after = call.before, call.after
    if before.allowed is not after.allowed:
        style = Style.BAD if before.allowed else Style.WARN
        yield Span("would be stopped; " if before.allowed else "would be let through; ", style)
    if before.alarmed != after.alarmed:
        yield Span(f"{_codes(before.alarmed, after.alarmed)}; ")
    if before.action is not after.action:
        yield Span(f"{before.action} -> {after.action}; ")
    yield Span(f"score {_score(before)} -> {_score(after)}", Style.QUIET)


def _codes(before: Sequence[str], after: Sequence[str]) -> str:
    newly, gone = [sorted(set(one) - set(other)) for one, other in ((after, before), (before, after))]
    parts = [f"{', '.join([inert(code, NAME) for code in newly[:PARTS]])} alarms"] if newly else []
    parts += [f"{', '.join([inert(code, NAME) for code in gone[:PARTS]])} no longer alarms"] if gone else []
    return "; ".join(parts)


def _score(verdict: CallVerdict) -> str:
    return "none" if verdict.score is None else f"{verdict.score:.3f}"


def _table(summary: Comparison) -> Table:
    rows = [
        (OUTCOMES[outcome], summary.before.outcomes[outcome], summary.after.outcomes[outcome]) for outcome in Outcome
    ]
    rows += [(action.value, summary.before.actions[action], summary.after.actions[action]) for action in Action]
    return Table(
        ("sessions", "before", "after"),
        tuple([(Span(name), Span(f"{was:,}"), Span(f"{now:,}")) for name, was, now in rows if was or now]),
    )


def _told(summary: Comparison) -> str:
    if not (summary.sessions_changed or summary.calls_changed):
        return f"Nothing would change: {counted(summary.sessions, 'session')}, {counted(summary.calls, 'call')}."
    sessions = f"{summary.sessions_changed:,} of {counted(summary.sessions, 'session')}"
    calls = f"{summary.calls_changed:,} of {counted(summary.calls, 'call')}"
    stops = f"{summary.stopped:,} would newly be stopped and {summary.let_through:,} let through"
    alarms = f"{summary.alarmed:,} would newly alarm and {summary.quiet:,} no longer"
    return f"Something would change in {sessions}, and of {calls}: {stops}; {alarms}."
