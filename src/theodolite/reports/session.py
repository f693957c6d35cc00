"""One session in words: its timeline, its findings with their evidence, and what went wrong."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType

from msgspec import Struct

from theodolite.core.policy import Action, Outcome
from theodolite.core.reader import Unreadable
from theodolite.core.reading import Evidence, Failure, Reading, Signal
from theodolite.reports.calls import (
    Paths,
    call_blocks,
    goal_blocks,
    goal_line,
    misfit_lines,
    paths_of,
    shown_as_argument,
)
from theodolite.reports.entries import call_report, goal_report, step_report
from theodolite.reports.escaping import inert
from theodolite.reports.findings import Alarm, Finding, findings
from theodolite.reports.layout import Block, Heading, Paragraph, Span, Style, Table
from theodolite.reports.limits import (
    ACCOUNTS,
    CALLS,
    CONTEXT,
    FAILURES,
    FINDINGS,
    NAME,
    PASSAGES,
    PATH,
    PIECES,
    QUOTE,
    ROWS,
    SAID,
    WHOLE,
)
from theodolite.reports.notes import notable, notes
from theodolite.reports.pages import explaining, meaning_of
from theodolite.reports.probe_verdict import came_to
from theodolite.reports.probes import probe_blocks, probe_signals, verdict_blocks
from theodolite.reports.shapes import about_shape, misfit, misfits, words
from theodolite.reports.totals import NOWHERE, Origin
from theodolite.reports.triage import Mark, Standing, left
from theodolite.reports.words import SURE
from theodolite.runtime.replay import Sighting

__all__ = ("every_call", "place", "session_blocks", "where")

_TITLES = {
    Outcome.FINDING: Span("Finding in session ", Style.BAD),
    Outcome.FAILED: Span("Failure in session ", Style.WARN),
    Outcome.NOT_ENOUGH_EVIDENCE: Span("Not enough evidence in session ", Style.WARN),
    Outcome.CLEAN: Span("Nothing found in session ", Style.GOOD),
}


class _Row(Struct):
    """An event of the timeline: a call, or what was said of something else."""

    about: int
    tool: str | None
    allowed: bool
    marks: list[Signal]

    @property
    def quiet(self) -> bool:
        return self.allowed and not self.marks


class _Accounts:
    """The calls of a session as they are told: each once with its arguments, in the first finding that it is part of.

    `paths` says where the arguments stand of those that were told.
    """

    def __init__(self, sighting: Sighting) -> None:
        self.paths: dict[int, frozenset[str]] = {}
        self._rows = {row.decision.about: row for row in sighting.calls}
        self._steps = {step.seq: step_report(step) for step in sighting.steps}
        self._goals = list(map(goal_report, sighting.goals))
        self._misfits = misfits(sighting)

    def of(self, finding: Finding) -> Iterator[Block]:
        """Yield what the user had asked for, and the first calls of a finding that were not told.

        Nothing for one of shape: it is so whatever the user asked for, and whoever gave the values.
        """
        if about_shape(finding.code):
            return
        rows = [self._rows[seq] for seq in finding.calls[:ACCOUNTS] if seq in self._rows and seq not in self.paths]
        calls = [call for call in map(call_report, rows) if call.score is not None or call.arguments]
        self.paths.update(paths_of(calls))
        if calls:
            yield from goal_blocks(self._goals, calls[0].seq)
        for call in calls:
            yield from call_blocks(call, self._steps)

    def all(self) -> Iterator[Block]:
        """Yield every call in order, and between them what the user said, a hundred calls at most.

        Where a call, or what one returned, diverges from a contract, that is told too.
        """
        goals = deque(self._goals)
        results = deque(sorted(seq for seq in self._misfits if seq not in self._rows)[:ROWS])
        for row in islice(self._rows.values(), ROWS):
            about = row.decision.about
            while results and results[0] < about:
                yield from self._result(results.popleft())
            while goals and goals[0].seq < about:
                yield goal_line("goal", goals.popleft(), indent=2)
            yield from call_blocks(call_report(row), self._steps, wrong=self._misfits.get(about, ()), indent=2)
        for seq in results:
            yield from self._result(seq)
        if len(self._rows) > ROWS:
            more = f"... and {len(self._rows) - ROWS:,} more calls: --format json has all"
            yield Paragraph((Span(more, Style.QUIET),))

    def _result(self, seq: int) -> Iterator[Block]:
        yield from misfit_lines("result", self._misfits[seq], before=f"event {seq}: ", indent=2)


def every_call(sighting: Sighting, origin: Origin = NOWHERE) -> Iterator[Block]:
    """Yield each call of a session with its goal, its arguments, its score and why: a hundred calls at most.

    After them stands what is noted of the session, by thresholds that nobody measured too.
    """
    yield Heading((Span("Calls of session "), *_name(sighting)))
    if origin.file:
        yield Paragraph((Span(f"read from {where(origin)}", Style.QUIET),))
    if not sighting.calls:
        yield Paragraph((Span("none", Style.QUIET),))
    yield from _Accounts(sighting).all()
    said = notes(sighting, every=True)
    if said:
        yield Paragraph((Span(said, Style.WARN),))


def session_blocks(
    sighting: Sighting, origin: Origin = NOWHERE, pages: Mapping[str, str] = MappingProxyType({})
) -> Iterator[Block]:
    """Yield what there is to say of a session with a finding or a failure. Findings that are not new have a line each.

    `pages` are those that plug-ins bring. Evidence of a kind `NAME.passage` is told as the text that a call follows,
    `NAME.argument` as what the call took from it; any other kind as it is.
    """
    title = _TITLES[left(sighting, origin.marks) or sighting.outcome]
    yield Heading((title, *_name(sighting), *_asked(sighting.action)))
    if origin.file:
        yield Paragraph((Span(f"read from {where(origin)}", Style.QUIET),))
    rows = _rows(sighting)
    if not all(row.quiet for row in rows):
        yield _timeline(rows)
    tools, accounts = {row.about: row.tool for row in rows}, _Accounts(sighting)
    found = [(finding, origin.mark(finding)) for finding in findings(sighting)]
    fresh = [finding for finding, mark in found if mark.standing is Standing.NEW]
    for number, finding in enumerate(fresh[:FINDINGS], 1):
        yield _meaning(number, finding, pages)
        yield from _finding(finding, tools, accounts)
    if len(fresh) > FINDINGS:
        yield Paragraph((Span(f"... and {len(fresh) - FINDINGS} more findings in this session", Style.QUIET),))
    old = (_old(finding, mark, tools) for finding, mark in found if mark.standing is not Standing.NEW)
    yield from _limited(old, FINDINGS, "findings that are not new")
    if any(isinstance(signal.said, Reading) for signal in probe_signals(sighting)):
        yield from _limited(probe_blocks(sighting), ROWS, "parts of what probes came to")
        yield from verdict_blocks(came_to(sighting))
    yield from _failures(sighting)
    yield from _limited((_unreadable(item) for item in sighting.unreadable), FAILURES, "parts that could not be read")


def where(origin: Origin) -> str:
    """Return the file and the format of a session."""
    return f"{inert(origin.file, QUOTE)} ({inert(origin.reader, NAME)})" if origin.file else ""


def place(item: Unreadable) -> str:
    """Return where an unreadable part stands."""
    part = f"{item.file}:{item.line}" if item.line else item.file
    return f"{part}: " if part else ""


def _name(sighting: Sighting) -> tuple[Span, ...]:
    agent = f" (agent {inert(sighting.agent, NAME)})" if sighting.agent else ""
    return Span(inert(sighting.session, QUOTE), Style.STRONG), Span(agent)


def _asked(action: Action) -> tuple[Span, ...]:
    return () if action is Action.LOG_ONLY else (Span(f", asks for {action.replace('_', ' ')}", Style.BAD),)


def _rows(sighting: Sighting) -> list[_Row]:
    rows = {row.decision.about: _Row(row.decision.about, row.tool, row.decision.allowed, []) for row in sighting.calls}
    for decision in sighting.decisions:
        marks = [one for one in decision.signals if (one.alarmed and notable(one)) or isinstance(one.said, Failure)]
        if marks:
            row = rows.setdefault(decision.about, _Row(decision.about, None, allowed=True, marks=[]))
            row.marks.extend(marks)
    return sorted(rows.values(), key=lambda row: row.about)


def _timeline(rows: Sequence[_Row]) -> Table:
    near = {n for m, row in enumerate(rows) if not row.quiet for n in range(m - CONTEXT, m + CONTEXT + 1)}
    cells: list[tuple[Span, ...]] = []
    skipped = 0
    for n, row in enumerate(rows):
        if (n in near or len(rows) <= WHOLE) and len(cells) < ROWS:
            cells += _skipped(skipped)
            cells.append(_cells(row))
            skipped = 0
        else:
            skipped += 1
    return Table(("event", "call", "", "said"), (*cells, *_skipped(skipped)))


def _skipped(count: int) -> list[tuple[Span, ...]]:
    return [(Span("..."), Span(f"{count:,} more", Style.QUIET), Span(""), Span(""))] if count else []


def _cells(row: _Row) -> tuple[Span, ...]:
    tool = Span("-", Style.QUIET) if row.tool is None else Span(inert(row.tool, NAME) or "(no name)")
    allowed = Span("allowed" if row.allowed else "REFUSED", Style.PLAIN if row.allowed else Style.BAD)
    marks = list(dict.fromkeys(map(_mark, row.marks)))
    said = ", ".join(marks[:SAID]) + (f", and {len(marks) - SAID} more" if len(marks) > SAID else "")
    style = Style.BAD if any(mark.alarmed and mark.finds for mark in row.marks) else Style.WARN
    return Span(str(row.about)), tool, Span("") if row.tool is None else allowed, Span(said, style)


def _mark(signal: Signal) -> str:
    said = signal.said
    if isinstance(said, Failure):
        return f"{inert(signal.code, NAME)}: {said.cause.replace('_', ' ')}"
    word = "ALARM" if signal.finds or signal.acts else "noted"
    return f"{word} {inert(signal.code, NAME)} {said.score:.2f}"


def _meaning(number: int, finding: Finding, pages: Mapping[str, str]) -> Paragraph:
    meaning = f" {inert(meaning_of(finding.code, pages), QUOTE)}"
    return Paragraph((Span(f"{number}. "), Span(f"{finding.code}:", Style.BAD), Span(meaning)), hang=3)


def _finding(finding: Finding, tools: dict[int, str | None], accounts: _Accounts) -> Iterator[Block]:
    calls = [_call(seq, tools) for seq in finding.calls[:CALLS]]
    more = f" and {len(finding.calls) - CALLS} more" if len(finding.calls) > CALLS else ""
    yield _line("calls", Span(", ".join(calls) + more))
    yield from accounts.of(finding)
    yield from _evidence(finding, tools, accounts.paths)
    yield _line("how sure", Span(_sure(finding.worst.signal)))
    yield _line("known as", Span(finding.fingerprint))
    yield _line("more", Span(", ".join([f"theodolite explain {code}" for code in _helping(finding)])))


def _helping(finding: Finding) -> tuple[str, ...]:
    """Return the codes whose pages help with a finding."""
    said = finding.worst.signal.said
    return explaining(finding.code, [item.kind for item in said.evidence] if isinstance(said, Reading) else ())


def _old(finding: Finding, mark: Mark, tools: dict[int, str | None]) -> Paragraph:
    """Return a line about a finding that is not new."""
    first, *others = finding.calls
    more = f" and {len(others)} more" if others else ""
    what = f"{finding.code}, {_call(first, tools)}{more}, {finding.fingerprint}"
    why = f" until {mark.expires}: {inert(mark.reason, QUOTE)}" if mark.expires else ""
    return Paragraph((Span(f"{mark.standing}: {what}{why}", Style.QUIET),))


def _line(label: str, *spans: Span) -> Paragraph:
    return Paragraph((Span(f"{label + ':':<10}", Style.QUIET), *spans), indent=5, hang=10)


def _call(seq: int, tools: dict[int, str | None]) -> str:
    tool = tools.get(seq)
    return f"{inert(tool, NAME)} (event {seq})" if tool else f"event {seq}"


def _evidence(finding: Finding, tools: dict[int, str | None], told: Paths) -> Iterator[Block]:
    """Yield the passages, then what was taken from them, then any other evidence; equal pieces once.

    Of an argument that was told with its call, only the passage is left to say.
    """
    passages: dict[tuple[Span, ...], None] = {}
    taken: dict[tuple[int, int | None], list[str]] = {}
    other: dict[tuple[Span, ...], None] = {}
    for alarm in finding.alarms:
        said = alarm.signal.said
        for item in said.evidence if isinstance(said, Reading) else ():
            kind = item.kind.partition(".")[2]
            covered = shown_as_argument(item, told)
            if kind == "passage" or (covered and item.observed):
                passages[_passage(item, alarm)] = None
            elif kind == "argument":
                source = next((seq for seq in item.seqs if seq != alarm.about), None)
                taken.setdefault((alarm.about, source), []).append(inert(item.path, PATH))
            elif not covered:
                other[_other(item)] = None
    yield from _limited((_line("passage", *spans) for spans in passages), PASSAGES, "passages", indent=5)
    lines = (_line("taken", *_taken(paths, about, source, tools)) for (about, source), paths in taken.items())
    yield from _limited(lines, CALLS, "calls", indent=5)
    yield from _limited((_line("evidence", *spans) for spans in other), PIECES, "pieces of evidence", indent=5)


def _passage(item: Evidence, alarm: Alarm) -> tuple[Span, ...]:
    source = next((seq for seq in item.seqs if seq != alarm.about), None)
    if source is None:
        return (Span("none: nothing that was read explains the call, and the request does not either"),)
    if not item.observed:
        return Span(f"event {source}: "), Span("its text was no longer held when the call came", Style.QUIET)
    return Span(f"event {source} says "), Span(f'"{inert(item.observed, QUOTE)}"', Style.QUOTED)


def _taken(paths: list[str], about: int, source: int | None, tools: dict[int, str | None]) -> tuple[Span, ...]:
    noun = "arguments" if len(paths) > 1 else "argument"
    origin = "untrusted text" if source is None else f"event {source}"
    more = f" and {len(paths) - CALLS} more" if len(paths) > CALLS else ""
    return (Span(f"{noun} {', '.join(paths[:CALLS])}{more} of {_call(about, tools)}, from {origin}"),)


def _other(item: Evidence) -> tuple[Span, ...]:
    if about_shape(item.kind) and words(item.kind.partition(".")[2]):
        return (Span(misfit(item, item.seqs)),)
    spans = [Span(", ".join([inert(item.kind, NAME), *(f"event {seq}" for seq in item.seqs[:CALLS])]))]
    spans += [Span(f", at {inert(item.path, PATH)}")] * bool(item.path)
    for label, text in (("expected", item.expected), ("observed", item.observed)):
        if text:
            spans += [Span(f", {label} "), Span(f'"{inert(text, QUOTE)}"', Style.QUOTED)]
    return tuple(spans)


def _sure(signal: Signal) -> str:
    said = signal.said
    score = f"score {said.score:.2f}" if isinstance(said, Reading) else "no score"
    near = "; so near to the threshold that it may be chance" if signal.ambiguous else ""
    graded = f" ({inert(signal.calibration, NAME)})" if signal.calibration else ""
    return f"{score}, {signal.level}, {signal.status}: {SURE[signal.status]}{graded}{near}"


def _failures(sighting: Sighting) -> Iterator[Block]:
    said: dict[Failure, int] = {}
    for decision in sighting.decisions:
        for signal in decision.signals:
            if isinstance(signal.said, Failure):
                said.setdefault(signal.said, decision.about)
    yield from _limited((_failure(failure, about) for failure, about in said.items()), FAILURES, "failures")


def _failure(failure: Failure, about: int) -> Paragraph:
    detail = f": {inert(failure.detail, QUOTE)}" if failure.detail else ""
    what = f"{inert(failure.detector, NAME)} could not judge event {about} ({failure.cause.replace('_', ' ')}){detail}"
    return Paragraph((Span(what, Style.WARN),))


def _unreadable(item: Unreadable) -> Paragraph:
    return Paragraph((Span(f"not read: {inert(place(item), QUOTE)}{inert(item.reason, QUOTE)}", Style.WARN),))


def _limited(blocks: Iterable[Block], limit: int, what: str, indent: int = 2) -> Iterator[Block]:
    """Yield at most `limit` blocks, and how many more there are."""
    count = 0
    for count, block in enumerate(blocks, 1):
        if count <= limit:
            yield block
    if count > limit:
        yield Paragraph((Span(f"... and {count - limit} more {what}: --format json has all", Style.QUIET),), indent)
