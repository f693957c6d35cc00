"""What a page says of the scan as a whole: what could be seen and what could not, what it came to, what went wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from theodolite.core.event import HOST_EVENTS
from theodolite.core.policy import Outcome
from theodolite.reports.document import AskedReport, Summary, TriageReport
from theodolite.reports.escaping import inert
from theodolite.reports.html.pieces import section, table
from theodolite.reports.html.sheet import brand
from theodolite.reports.layout import counted
from theodolite.reports.limits import NAME, PARTS, QUOTE
from theodolite.reports.markup import Markup, element
from theodolite.reports.notes import transfer
from theodolite.reports.probe_words import known_of
from theodolite.reports.totals import Totals
from theodolite.reports.trusted import trusting, unmet
from theodolite.reports.words import OUTCOMES, verdict
from theodolite.runtime.population import PopulationState

__all__ = ("contents", "coverage", "masthead", "totals", "unjudged")

_KINDS = {Outcome.FINDING: "bad", Outcome.FAILED: "warn", Outcome.NOT_ENOUGH_EVIDENCE: "warn", Outcome.CLEAN: "good"}


def masthead(summary: Summary, counts: Totals) -> Markup:
    """Return the head of the page: the verdict in a sentence, by what it was graded, and what that rests on."""
    graded = f"the calibration {inert(summary.calibration, NAME)}" if summary.calibration else "the shipped thresholds"
    judged = f"{counted(summary.events, 'event')} and {counted(summary.calls, 'call')} were judged by {graded}."
    stopped = element("p", "The scan was stopped: this is what was judged until then.", class_="warn")
    return element(
        "header",
        brand(),
        element("h1", verdict(summary)),
        element("p", judged, class_="lead"),
        element("p", note, class_="quiet") if (note := transfer(counts.statuses)) else None,
        None if summary.complete else stopped,
        class_="masthead",
    )


def contents(index: Sequence[Markup]) -> Markup:
    """Return the table of contents, with a line for each session that is told whole."""
    titles = {"seen": "What could be seen", "unseen": "What could not be seen", "summary": "Summary"}
    parts = [element("li", element("a", title, href=f"#{name}")) for name, title in titles.items()]
    told = element("li", element("a", "Sessions with findings or failures", href="#told"), element("ol", index))
    return element("nav", element("ul", parts, told if index else None), aria_label="Contents")


def coverage(summary: Summary, counts: Totals) -> Markup:
    """Return what could be seen and what could not, side by side."""
    kinds = {"Events": counts.events, "Formats": counts.readers, "Channels": counts.channels}
    listed = element("dl", [[element("dt", name), element("dd", _counted(of))] for name, of in kinds.items()])
    seen = section("seen", "What could be seen", listed, level=2)
    unseen = section("unseen", "What could not be seen", element("ul", list(_unseen(summary, counts))), level=2)
    return element("div", seen, unseen, class_="two")


def _counted(counts: Mapping[str, int]) -> str:
    told = sorted(counts.items(), key=lambda item: -item[1])[:PARTS]
    return ", ".join([f"{inert(kind, NAME)} {count:,}" for kind, count in told]) or "none"


def _unseen(summary: Summary, counts: Totals) -> Iterator[Markup]:
    never = sorted(kind.__name__ for kind in HOST_EVENTS if kind.__name__ not in counts.events)
    if never:
        shows = "This recording shows no " if summary.sessions == 1 else "These recordings show no "
        yield element("li", shows, ", ".join(never), ".")
    for field, count in sorted(counts.unset.items())[:PARTS]:
        often = f"{count:,} of {counts.events[field.partition('.')[0]]:,}"
        yield element("li", "Not shown: ", element("code", inert(field, NAME)), " in ", element("strong", often))
    if summary.unread:
        unread = f"{counted(summary.unread, 'part')} of the recordings could not be read."
        yield element("li", element("strong", unread, class_="warn"))
    if not (never or counts.unset or summary.unread):
        yield element("li", "Nothing: every kind of event came, with all its fields.")


def totals(summary: Summary, counts: Totals) -> Markup:
    """Return what the scan came to, and who looked."""
    tiles = [
        element(
            "div", element("dt", OUTCOMES[outcome]), element("dd", f"{count:,}"), class_=_KINDS[outcome] * bool(count)
        )
        for outcome, count in summary.outcomes.items()
    ]
    if summary.triage.settled:
        settled = element("dd", f"{summary.triage.settled:,}")
        tiles.append(element("div", element("dt", "of which no finding is new"), settled))
    kept = f"Kept {counted(summary.records, 'record')} in {inert(summary.store, QUOTE)}." if summary.store else None
    codes = f"Findings by code: {_counted(summary.findings)}." if summary.findings else None
    refused = f"Calls refused: {summary.refused:,} of {summary.calls:,}." if summary.refused else None
    return section(
        "summary",
        "Summary",
        element("dl", tiles, class_="tiles"),
        [
            element("p", told)
            for told in (codes, refused, _asked(summary.asked), *_triage(summary.triage), kept)
            if told
        ],
        _watches(counts),
        [element("p", line) for line in trusting(summary.trusted)],
        [element("p", line, class_="warn") for line in unmet(summary.unmet)],
        element("p", words, class_="warn") if (words := _recalibrate(summary)) else None,
        level=2,
    )


def _recalibrate(summary: Summary) -> str:
    seen = summary.population
    if seen is None:
        return ""
    return PopulationState(
        calibration=summary.calibration or "",
        sessions=seen.sessions,
        e_value=seen.e_value,
        recalibrate=seen.recalibrate,
        direction=seen.direction,
    ).words


def _asked(asked: AskedReport | None) -> str | None:
    """Return what was used of models, where there were any."""
    if asked is None:
        return None
    cost = "cost unknown" if asked.cost is None else f"cost {asked.cost:,.4f}"
    used = f"{counted(asked.calls, 'call')}, {counted(asked.tokens, 'token')}, {cost}"
    return f"Asked of models: {used}{known_of(asked.repeatable, asked.known)}."


def _triage(triage: TriageReport) -> Iterator[str]:
    """Yield what is not new, and what is out of date in what says so."""
    if triage.baseline:
        gone = f" Of its findings {triage.gone:,} were not found again." if triage.gone else ""
        yield f"Known from the baseline {inert(triage.baseline, QUOTE)}: {counted(triage.known, 'finding')}.{gone}"
    if triage.suppressions:
        yield f"Suppressed by {inert(triage.suppressions, QUOTE)}: {counted(triage.suppressed, 'finding')}."
    for one in triage.expired[:PARTS]:
        yield f"Suppression {one.entry} ({inert(one.names, QUOTE)}) expired on {one.expires} and hides nothing."
    for one in triage.unused[:PARTS]:
        yield f"Suppression {one.entry} ({inert(one.names, QUOTE)}) is about no finding of this scan."


def _watches(counts: Totals) -> Markup | None:
    rows = [
        element(
            "tr",
            element("th", inert(watch.detector, NAME), scope="row"),
            element("td", inert(watch.version, NAME)),
            element("td", "yes" if watch.decides else "no"),
            element("td", f"{watch.spoke:,}"),
            element("td", f"{watch.failed:,}", class_="warn" if watch.failed else None),
            element("td", counted(watch.blind, "session"), class_="warn" if watch.blind else None),
        )
        for watch in counts.watches[:PARTS]
    ]
    names = ("detector", "version", "decides", "answers", "failures", "could not judge")
    return table("Who looked", names, rows) if rows else None


def unjudged(summary: Summary, counts: Totals) -> Iterator[Markup]:
    """Yield the part that says what could not be judged, where there is any."""
    items = [*_blind(counts), *_troubles(counts), *_parts(summary)]
    if items:
        count = summary.unread - sum(part.parts for part in summary.unreadable[:PARTS])
        rest = f"{counted(count, 'more part')}: see the sessions, or --format json."
        last = element("p", rest, class_="quiet") if count > 0 else None
        yield section("unjudged", "What could not be judged", element("ul", items), last, level=2)


def _blind(counts: Totals) -> Iterator[Markup]:
    if counts.undecided:
        nobody = f"No detector that decides is switched on: nobody judged {counted(counts.undecided, 'session')}."
        yield element("li", element("strong", nobody, class_="warn"))
    for watch in [watch for watch in counts.watches if watch.blind][:PARTS]:
        gaps = ", ".join(f"{name} in {count:,} of them" for name, count in sorted(watch.missing.items())[:PARTS])
        missing = f" (not there: {inert(gaps, QUOTE)})" if gaps else ""
        told = f"{inert(watch.detector, NAME)} could not judge {counted(watch.blind, 'session')}{missing}."
        yield element("li", told, class_="warn" if watch.decides else None)


def _troubles(counts: Totals) -> Iterator[Markup]:
    for trouble in counts.troubles[:PARTS]:
        who = f"{inert(trouble.detector, NAME)} {inert(trouble.version, NAME)}"
        times = f"{who}: {trouble.cause.replace('_', ' ')}, {counted(trouble.times, 'time')}"
        first = f", first in session {inert(trouble.session, NAME)}: {inert(trouble.detail, QUOTE)}"
        yield element("li", element("strong", times, class_="warn"), first)


def _parts(summary: Summary) -> Iterator[Markup]:
    for part in summary.unreadable[:PARTS]:
        place = f"{part.file}:{part.line}" if part.line else part.file
        yield element("li", element("strong", inert(place, QUOTE)), ": " * bool(place), inert(part.reason, QUOTE))
