"""The report for a person: what could be seen, what was found and why, what could not be judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import itemgetter
from types import MappingProxyType

from msgspec import Struct

from theodolite.core.event import HOST_EVENTS
from theodolite.core.policy import Outcome
from theodolite.core.reader import Unreadable
from theodolite.reports.calls import nearest
from theodolite.reports.document import CallReport
from theodolite.reports.entries import call_report
from theodolite.reports.escaping import inert
from theodolite.reports.layout import Block, Heading, Paragraph, Span, Style, Table, counted, plain
from theodolite.reports.limits import LINES, NAME, PARTS, QUOTE, TOLD
from theodolite.reports.notes import notes, transfer
from theodolite.reports.probes import used
from theodolite.reports.reasons import FUSED, score
from theodolite.reports.session import every_call, place, session_blocks, where
from theodolite.reports.totals import NOWHERE, Origin, Run, Totals, Watch
from theodolite.reports.triage import Standing, Suppression, Triaged, left
from theodolite.reports.trusted import trusting, unmet
from theodolite.reports.words import OUTCOMES
from theodolite.runtime.replay import Sighting

__all__ = ("TextReport", "tally", "triage_lines")

_STYLES = {
    Outcome.FINDING: Style.BAD,
    Outcome.FAILED: Style.WARN,
    Outcome.NOT_ENOUGH_EVIDENCE: Style.WARN,
    Outcome.CLEAN: Style.GOOD,
}


# Bytes that sessions may take that are told whole, findings and failures each for themselves, as a terminal of ASCII
# alone would write them. All else is bounded by what it lists (our choice). Where each call is asked for, those of
# quiet sessions have a room too.
ROOM: Mapping[Outcome, int] = {Outcome.FINDING: 3_000_000, Outcome.FAILED: 1_000_000}
ROOM_FOR_CALLS = 400_000


class _Quiet(Struct):
    """The quiet sessions of one outcome: a line for each of the first, and for the first of which something is noted.

    And of all the call with the highest score.
    """

    lines: list[tuple[Paragraph, str, CallReport | None]] = []
    noted: list[tuple[Paragraph, str]] = []
    notes: int = 0
    highest: CallReport | None = None
    session: str = ""

    def add(self, item: Sighting, line: Paragraph) -> None:
        """Take a session."""
        # Of all the calls of all quiet sessions only one is told of each: the others' reports are not made.
        scored = ((score(row.decision.signals), row) for row in item.calls)
        rows = [(found, row) for found, row in scored if found is not None]
        call = call_report(max(rows, key=itemgetter(0))[1]) if rows else None
        note = notes(item)
        if len(self.lines) <= LINES:
            self.lines.append((line, note, call))
        if note:
            self.notes += 1
            self.noted += [(line, note)] * (len(self.noted) < LINES)
        if call is not None and (self.highest is None or (call.score or 0.0) > (self.highest.score or 0.0)):
            self.highest, self.session = call, item.session

    def blocks(self, count: int, threshold: float | None) -> Iterator[Block]:
        """Yield a line for each session, with what is noted of it and its highest call.

        Of too many only those of which something is noted, and the highest call of all.
        """
        if count <= LINES:
            for line, note, call in self.lines:
                yield line
                yield from _noted(note)
                if call is not None:
                    yield _nearest("highest call: ", nearest(call, threshold), indent=5)
            return
        for line, note in self.noted:
            yield line
            yield from _noted(note)
        if self.notes > len(self.noted):
            rest = f"... and {self.notes - len(self.noted):,} more with notes: --format json has all"
            yield Paragraph((Span(rest, Style.QUIET),))
        if self.highest is not None:
            named = f"{nearest(self.highest, threshold)}, in session {inert(self.session, QUOTE)}"
            yield _nearest("highest call of all: ", named, indent=2)


class TextReport:
    """Tells it all at the end, since what could be seen comes first. Of a quiet session it keeps one line.

    `show` takes the blocks of the report in order and writes them somewhere. `pages` are those that plug-ins bring for
    their codes. With `calls` every call is told, also those of quiet sessions, as far as there is room. Of each outcome
    the first 100 sessions are told whole, fewer where they would take more than their room, and the others counted. A
    session counts by what is left of it without the findings that are not new.
    """

    def __init__(
        self,
        show: Callable[[Iterable[Block]], None],
        *,
        pages: Mapping[str, str] = MappingProxyType({}),
        calls: bool = False,
    ) -> None:
        self._show = show
        self._calls = calls
        self._pages = pages
        self._times: Counter[Outcome | None] = Counter()
        self._told: list[Block] = []
        self._whole: Counter[Outcome] = Counter()
        self._room = dict(ROOM)
        self._room_for_calls = ROOM_FOR_CALLS
        self._accounts: list[Block] = []
        self._untold_calls = 0
        self._lines = {outcome: _Quiet() for outcome in (Outcome.CLEAN, Outcome.NOT_ENOUGH_EVIDENCE, None)}

    def add(self, item: Sighting | Unreadable, origin: Origin = NOWHERE) -> None:
        """Take a session and where it was read."""
        if isinstance(item, Unreadable):
            return
        counts_as = left(item, origin.marks)
        quiet = self._lines.get(counts_as)
        self._times[counts_as] += 1
        if quiet is None and counts_as is not None:
            if self._times[counts_as] <= TOLD:
                calls = every_call(item, origin) if self._calls else ()
                self._tell(counts_as, [*session_blocks(item, origin, self._pages), *calls])
        elif quiet is not None:
            quiet.add(item, _line(item, origin))
            if self._calls:
                self._account(item, origin)

    def _account(self, item: Sighting, origin: Origin) -> None:
        """Keep the calls of a quiet session, if there is room left for them."""
        blocks = list(every_call(item, origin)) if self._room_for_calls > 0 else []
        size = _size(blocks)
        if blocks and size <= self._room_for_calls:
            self._room_for_calls -= size
            self._accounts += blocks
        else:
            self._untold_calls += 1

    def _tell(self, outcome: Outcome, blocks: list[Block]) -> None:
        """Keep a session that is told whole, if there is room left for it."""
        size = _size(blocks)
        if size <= self._room[outcome]:
            self._room[outcome] -= size
            self._told += blocks
            self._whole[outcome] += 1

    def end(self, totals: Totals, run: Run) -> None:
        """Write the report."""
        self._show(self._blocks(totals, run))

    def _blocks(self, totals: Totals, run: Run) -> Iterator[Block]:
        yield from _opening(totals, run)
        yield from _seen(totals)
        yield from _unseen(totals)
        if totals.watches:
            yield Heading((Span("Who looked", Style.STRONG),))
            yield _watches(totals.watches)
        yield from [Paragraph((Span(line),)) for line in trusting(run.trusted)]
        yield from [Paragraph((Span(line, Style.WARN),)) for line in unmet(run.unmet)]
        yield from self._told
        yield from self._untold()
        threshold = run.thresholds.get(FUSED)
        yield from self._quiet("Sessions of which no finding is new", None, threshold)
        yield from self._quiet("Clean sessions", Outcome.CLEAN, threshold)
        yield from self._quiet("Sessions without enough evidence", Outcome.NOT_ENOUGH_EVIDENCE, threshold)
        yield from self._accounts
        if self._untold_calls:
            rest = f"... and the calls of {counted(self._untold_calls, 'more session')}: --format json has all"
            yield Heading((Span(rest, Style.QUIET),))
        yield from _unjudged(totals)
        yield from _triage(totals, run.triage)
        yield Heading((Span("Summary", Style.STRONG),))
        yield Paragraph(tally(totals), hang=0)
        if run.asked is not None:
            asked = used(run.asked, repeatable=run.repeatable, known=run.known)
            yield Paragraph((Span(f"Asked of models: {asked}."),), hang=0)
        if run.store:
            kept = f"Kept {counted(run.records, 'record')} in {inert(run.store, QUOTE)}."
            yield Paragraph((Span(kept),), hang=0)
        if run.population is not None and run.population.recalibrate:
            yield Paragraph((Span(inert(run.population.words), Style.WARN),), hang=0)
        yield Paragraph((Span("Clean means that nobody who could look alarmed, no more.", Style.QUIET),), hang=0)

    def _untold(self) -> Iterator[Block]:
        for outcome in ROOM:
            more = self._times[outcome] - self._whole[outcome]
            if more:
                told = f"{self._whole[outcome]} {_are(self._whole[outcome])} told, --format json has all"
                rest = f"{counted(more, 'more session')} {OUTCOMES[outcome]}: {told}"
                yield Heading((Span(f"... and {rest}", Style.QUIET),))

    def _quiet(self, title: str, outcome: Outcome | None, threshold: float | None) -> Iterator[Block]:
        count = self._times[outcome]
        if count:
            yield Heading((Span(f"{title}: {count:,}", Style.STRONG),))
            yield from self._lines[outcome].blocks(count, threshold)


def tally(totals: Totals) -> tuple[Span, ...]:
    """Return in one line what a scan came to."""
    spans = [Span(counted(totals.sessions, "session"))]
    for outcome in Outcome:
        count = totals.outcomes[outcome]
        if count:
            told = Span(f"{count:,} {OUTCOMES[outcome]}", _STYLES[outcome])
            spans += [Span(": " if len(spans) == 1 else ", "), told]
    if totals.settled:
        spans.append(Span(f"{': ' if len(spans) == 1 else ', '}{totals.settled:,} of which no finding is new"))
    spans.append(Span("."))
    if totals.findings:
        spans.append(Span(f" Findings: {_listed(totals.findings)}."))
    if totals.refused:
        spans.append(Span(f" Calls refused: {totals.refused:,} of {totals.calls:,}."))
    if totals.unread:
        spans.append(Span(f" {counted(totals.unread, 'part')} could not be read.", Style.WARN))
    return tuple(spans)


def triage_lines(totals: Totals, triage: Triaged) -> Iterator[str]:
    """Yield what to say of the baseline and of the suppressions that were used; nothing where there are none."""
    if triage.baseline:
        known = counted(totals.standings[Standing.KNOWN], "known finding")
        gone = f"; {triage.gone:,} of the baseline {_are(triage.gone)} no longer found" if triage.gone else ""
        yield f"baseline {inert(triage.baseline, QUOTE)}: {known}{gone}"
    if triage.suppressions:
        hidden = counted(totals.standings[Standing.SUPPRESSED], "finding")
        yield f"suppressions {inert(triage.suppressions, QUOTE)}: {hidden} suppressed"
    for one in triage.expired[:PARTS]:
        yield f"{_entry(one)} expired on {one.expires} and hides nothing: decide again, or remove it"
    for one in triage.unused[:PARTS]:
        yield f"{_entry(one)} is about no finding of this scan: remove it if that stays so"


def _entry(one: Suppression) -> str:
    return f"suppression {one.entry} ({inert(one.names, QUOTE)})"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _triage(totals: Totals, triage: Triaged) -> Iterator[Block]:
    lines = list(triage_lines(totals, triage))
    if lines:
        yield Heading((Span("What is not new", Style.STRONG),))
        for line in lines:
            yield Paragraph((Span(line, Style.WARN if line.startswith("suppression ") else Style.PLAIN),))


def _opening(totals: Totals, run: Run) -> Iterator[Block]:
    events = counted(totals.events.total(), "event")
    title = f"theodolite {run.version}: {counted(totals.sessions, 'session')}, {events}"
    yield Heading((Span(title, Style.STRONG),))
    graded = f"by the calibration {inert(run.calibration, NAME)}" if run.calibration else "by the shipped thresholds"
    yield Paragraph((Span(f"Graded {graded}.", Style.QUIET),))
    if note := transfer(totals.statuses):
        yield Paragraph((Span(note, Style.QUIET),))
    if not run.complete:
        yield Paragraph((Span("The scan was stopped: this is what was judged until then.", Style.WARN),))


def _seen(totals: Totals) -> Iterator[Block]:
    yield Heading((Span("What could be seen", Style.STRONG),))
    yield Paragraph((Span("events:    ", Style.QUIET), Span(_listed(totals.events) or "none")), hang=11)
    if totals.readers:
        yield Paragraph((Span("formats:   ", Style.QUIET), Span(_listed(totals.readers))), hang=11)
    yield Paragraph((Span("channels:  ", Style.QUIET), Span(_listed(totals.channels) or "none")), hang=11)


def _unseen(totals: Totals) -> Iterator[Block]:
    yield Heading((Span("What could not be seen", Style.STRONG),))
    never = sorted(kind.__name__ for kind in HOST_EVENTS if kind.__name__ not in totals.events)
    if never:
        shows = "this recording shows no" if totals.sessions == 1 else "these recordings show no"
        yield Paragraph((Span(f"{shows} ", Style.QUIET), Span(", ".join(never))))
    for field, count in sorted(totals.unset.items()):
        of = totals.events[field.partition(".")[0]]
        yield Paragraph((Span("not shown:   ", Style.QUIET), Span(f"{field} in {count:,} of {of:,}", Style.WARN)))
    if totals.unread:
        unread = f"{counted(totals.unread, 'part')} of the recordings"
        yield Paragraph((Span("not read:    ", Style.QUIET), Span(unread, Style.WARN)))
    if not (never or totals.unset or totals.unread):
        yield Paragraph((Span("nothing: every kind of event came, with all its fields"),))


def _watches(watches: Iterable[Watch]) -> Table:
    rows = [
        (
            Span(inert(watch.detector, NAME)),
            Span(inert(watch.version, NAME)),
            Span("yes" if watch.decides else "no"),
            Span(f"{watch.spoke:,}"),
            Span(f"{watch.failed:,}", Style.WARN if watch.failed else Style.PLAIN),
            Span(counted(watch.blind, "session"), Style.WARN if watch.blind else Style.PLAIN),
        )
        for watch in watches
    ]
    return Table(("detector", "version", "decides", "answers", "failures", "could not judge"), tuple(rows))


def _unjudged(totals: Totals) -> Iterator[Block]:
    blind = [watch for watch in totals.watches if watch.blind]
    if not (blind or totals.undecided or totals.troubles or totals.unexplained or totals.unreadable):
        return
    yield Heading((Span("What could not be judged", Style.STRONG),))
    if totals.undecided:
        nobody = f"no detector that decides is switched on: nobody judged {counted(totals.undecided, 'session')}"
        yield Paragraph((Span(nobody, Style.WARN),))
    for watch in blind:
        what = f"{inert(watch.detector, NAME)} could not judge {counted(watch.blind, 'session')}"
        gaps = ", ".join(f"{name} in {count:,} of them" for name, count in sorted(watch.missing.items()))
        missing = f" (not there: {gaps})" if gaps else ""
        yield Paragraph((Span(what + missing, Style.WARN if watch.decides else Style.PLAIN),))
    for trouble in totals.troubles[:PARTS]:
        who = f"{inert(trouble.detector, NAME)} {inert(trouble.version, NAME)}"
        times = f"{who}: {trouble.cause.replace('_', ' ')}, {counted(trouble.times, 'time')}"
        first = f", first in session {inert(trouble.session, NAME)}: {inert(trouble.detail, QUOTE)}"
        yield Paragraph((Span(times, Style.WARN), Span(first)))
    for name, count in totals.unexplained.items():
        yield Paragraph((Span(f"{inert(name, NAME)}: failed outside of any decision, {counted(count, 'time')}"),))
    for part in totals.unreadable[:PARTS]:
        yield Paragraph((Span(inert(place(part), QUOTE), Style.STRONG), Span(inert(part.reason, QUOTE))))
    inside = totals.unread - len(totals.unreadable)
    if inside > 0 or len(totals.unreadable) > PARTS:
        more = totals.unread - min(PARTS, len(totals.unreadable))
        yield Paragraph((Span(f"{counted(more, 'more part')}: see the sessions, or --format json", Style.QUIET),))


def _size(blocks: Iterable[Block]) -> int:
    """Return the bytes of some blocks as a terminal of ASCII alone would get them."""
    return sum(len(line.encode("ascii", "backslashreplace")) for line in plain(blocks))


def _line(item: Sighting, origin: Origin) -> Paragraph:
    seen = f"{counted(len(item.calls), 'call')}, {counted(sum(item.coverage.events.values()), 'event')}"
    blind = f"; could not judge: {', '.join(map(inert, item.coverage.blind))}" if item.coverage.blind else ""
    old = Counter(mark.standing for mark in origin.marks.values())
    seen += "".join(f"; {count} {standing}" for standing, count in sorted(old.items()))
    file = f"; {where(origin)}" if origin.file else ""
    return Paragraph((Span(inert(item.session, QUOTE)), Span(f"  {seen}{blind}{file}", Style.QUIET)))


def _noted(note: str) -> Iterator[Paragraph]:
    if note:
        yield Paragraph((Span(note, Style.WARN),), indent=5)


def _nearest(label: str, call: str, *, indent: int) -> Paragraph:
    return Paragraph((Span(label, Style.QUIET), Span(call)), indent=indent, hang=len(label))


def _listed(counts: Mapping[str, int]) -> str:
    most = sorted(counts.items(), key=lambda item: -item[1])
    more = f" and {len(most) - PARTS:,} more" if len(most) > PARTS else ""
    return ", ".join(f"{inert(name, NAME)} {count:,}" for name, count in most[:PARTS]) + more
