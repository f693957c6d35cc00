"""The HTML report: one page of at most five megabytes, whatever the sessions hold, that loads and runs nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import BinaryIO

from theodolite.core.policy import Outcome
from theodolite.reports.alarms import codes
from theodolite.reports.calls import highest, nearest
from theodolite.reports.document import SessionReport, Summary
from theodolite.reports.escaping import inert
from theodolite.reports.html.overview import contents, coverage, masthead, totals, unjudged
from theodolite.reports.html.pieces import section
from theodolite.reports.html.session import article, facts, of_probes
from theodolite.reports.html.sheet import page
from theodolite.reports.layout import counted
from theodolite.reports.limits import LINES, NAME, TOLD
from theodolite.reports.markup import Content, Markup, element
from theodolite.reports.notes import notes_of
from theodolite.reports.totals import Totals
from theodolite.reports.words import OUTCOMES

__all__ = ("HTMLWriter",)

# How much of it sessions may take that are told whole, and the lines of those that are not: findings and failures do
# not take each other's room. All else is bounded by what it lists, and takes a tenth of the page at most.
ROOM: Mapping[Outcome | None, int] = {Outcome.FINDING: 3_000_000, Outcome.FAILED: 1_000_000}
ROOM_FOR_LINES: Mapping[Outcome | None, int] = {
    None: 100_000,
    Outcome.CLEAN: 100_000,
    Outcome.NOT_ENOUGH_EVIDENCE: 100_000,
}
# Quiet sessions of one outcome that have a line each.
LISTED = 1_000

_QUIET = {
    None: ("settled", "Sessions of which no finding is new"),
    Outcome.CLEAN: ("clean", "Clean sessions"),
    Outcome.NOT_ENOUGH_EVIDENCE: ("blind", "Sessions without enough evidence"),
}


class HTMLWriter:
    """Writes the page at the end, since what could be seen comes first. Holds no more than what the page will say.

    `pages` are those that plug-ins bring for their codes. Of each outcome the first 100 sessions are told whole, fewer
    where they would take more than their room.
    """

    def __init__(self, stream: BinaryIO, *, pages: Mapping[str, str] = MappingProxyType({})) -> None:
        self._stream = stream
        self._pages = pages
        self._counts = Totals()
        self._times: Counter[Outcome | None] = Counter()
        self._said: dict[Outcome | None, list[Markup]] = {outcome: [] for outcome in (None, *Outcome)}
        self._room = {**ROOM, **ROOM_FOR_LINES}
        self._number = 0
        self._index: dict[Outcome | None, list[Markup]] = {outcome: [] for outcome in ROOM}

    def add(self, session: SessionReport, thresholds: Mapping[str, float] = MappingProxyType({})) -> None:
        """Take a session."""
        self._counts.add(session)
        counts = session.counts_as
        self._times[counts] += 1
        said = self._said[counts]
        if counts in _QUIET:
            if len(said) < LISTED:
                self._keep(session, _line(session))
        elif self._times[counts] <= TOLD:
            number = self._number + 1
            if self._keep(session, article(session, number, self._pages, thresholds)):
                self._number = number
                self._index[counts].append(_entry(session, number))

    def _keep(self, session: SessionReport, told: Markup) -> bool:
        """Keep what is said of a session, if there is room left for it."""
        size = len(told.encode())
        fits = size <= self._room[session.counts_as]
        if fits:
            self._room[session.counts_as] -= size
            self._said[session.counts_as].append(told)
        return fits

    def end(self, summary: Summary) -> None:
        """Write the page."""
        self._stream.write(page(_title(summary), self._body(summary)))

    def _body(self, summary: Summary) -> Iterator[Markup]:
        yield element("a", "Skip to the report", class_="skip", href="#report")
        yield masthead(summary, self._counts)
        yield contents([entry for entries in self._index.values() for entry in entries])
        yield element("main", self._main(summary), id="report", tabindex="-1")
        clean = element("p", "Clean means that nobody who could look alarmed, no more.")
        yield element("footer", clean, element("p", f"theodolite {inert(summary.version, NAME)}", class_="quiet"))

    def _main(self, summary: Summary) -> Iterator[Markup]:
        yield coverage(summary, self._counts)
        yield totals(summary, self._counts)
        if self._times[Outcome.FINDING] or self._times[Outcome.FAILED]:
            whole = [[self._said[outcome], self._rest(outcome)] for outcome in ROOM]
            yield section("told", "Sessions with findings or failures", whole, level=2)
        for outcome in _QUIET:
            if self._times[outcome]:
                yield self._quiet(outcome)
        yield from unjudged(summary, self._counts)

    def _rest(self, outcome: Outcome | None) -> Content:
        told = len(self._said[outcome])
        more = self._times[outcome] - told
        kind = OUTCOMES[outcome] if outcome else "of which no finding is new"
        rest = f"... and {counted(more, 'more session')} {kind}: {told:,} are told, --format json has all."
        return element("p", rest, class_="quiet") if more else None

    def _quiet(self, outcome: Outcome | None) -> Markup:
        (name, title), count = _QUIET[outcome], self._times[outcome]
        summary = element("summary", counted(count, "session"))
        lines = element("ul", self._said[outcome])
        details = element("details", summary, lines, self._rest(outcome), open=count <= LINES)
        return section(name, title, details, level=2)


def _name(session: SessionReport) -> str:
    return inert(session.session_id, NAME) or "(no name)"


def _line(session: SessionReport) -> Markup:
    call = highest(session.calls)
    told = facts(session) if call is None else f"{facts(session)} · highest call: {nearest(call)}"
    note = notes_of(session)
    noted = [" · ", element("span", note, class_="warn")] if note else None
    probes = [" · ", said] if (said := of_probes(session)) else None
    return element("li", _name(session), " ", element("span", told, class_="quiet"), noted, probes)


def _entry(session: SessionReport, number: int) -> Markup:
    said = element("span", inert(codes(session), NAME) or OUTCOMES[session.outcome], class_="quiet")
    return element("li", element("a", _name(session), href=f"#s{number}"), " ", said)


def _title(summary: Summary) -> str:
    found = f"{summary.outcomes[Outcome.FINDING]:,} of {counted(summary.sessions, 'session')} with a finding"
    return f"Theodolite: {found}"
