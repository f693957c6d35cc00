"""The calls of a session on a page: what was asked for, where each argument came from, the score and why."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

from theodolite.core.intent import Origin
from theodolite.reports.calls import asked, came_from, listed, paths_of, why
from theodolite.reports.document import ArgumentReport, CallReport, FindingReport, GoalReport
from theodolite.reports.escaping import inert
from theodolite.reports.html.evidence import Place
from theodolite.reports.html.pieces import more, section, table, within
from theodolite.reports.layout import counted
from theodolite.reports.limits import ACCOUNTS, ANSWERS, NAME, PATH, PIECES, QUOTE, ROWS
from theodolite.reports.markup import Content, Markup, element
from theodolite.reports.shapes import about_shape, alone, misfit

__all__ = ("accounts", "every_call", "goals")

# Bytes that the list of all calls may take (our choice): a row of a recorded call has some 400, so that 90 fit, and the
# findings of a large session keep most of its page. Findings tell their own calls, whether they stand here or not.
ROOM_FOR_CALLS = 36_000


def goals(place: Place) -> Content:
    """Return what the user asked for, and said later."""
    said = place.session.goals
    if not said:
        return None
    items = [element("li", _said(goal)) for goal in said[:ANSWERS]]
    rest = more(len(said) - ANSWERS, "messages of the user")
    return section(f"{place.name}-goals", "What the user asked for", element("ul", items), rest, level=4)


def accounts(place: Place, finding: FindingReport, number: int) -> Content:
    """Return the first calls of a finding, each with its arguments; one that an earlier finding told is left out.

    Nothing for a finding of shape: it is so whatever the user asked for, and whoever gave the values.
    """
    if about_shape(finding.code):
        return None
    wanted = {seq for seq in finding.calls[:ACCOUNTS] if seq not in place.told}
    found = [call for call in place.session.calls if call.seq in wanted]
    calls = [call for call in found if call.arguments or call.score is not None]
    place.told.update(paths_of(calls))
    said = asked(place.session.goals, calls[0].seq) if calls else []
    goal = element("p", "Before these calls the user said last: ", _said(said[-1])) if len(said) > 1 else None
    return [goal, [_account(place, call, number) for call in calls]]


def every_call(place: Place) -> Content:
    """Return the calls in order, each with its arguments, its score and why, and where it does not fit its contract.

    Of more than a hundred, or than there is room for, those with the highest scores.
    """
    calls = place.session.calls
    if not any(call.arguments or call.score is not None or call.seq in place.misfits for call in calls):
        return None
    names = ("event", "call", "score", "arguments", "why")
    first = sorted(calls, key=lambda call: -1.0 if call.score is None else call.score, reverse=True)[:ROWS]
    kept = within((_row(place, call) for call in first), ROOM_FOR_CALLS)
    rows = [row for _, row in sorted(zip([call.seq for call in first], kept, strict=False), key=itemgetter(0))]
    what = "Each call, where its arguments came from, and what made its score, in log-odds"
    whole = table(what, names, rows, kind="calls")
    summary = element("summary", counted(len(calls), "call"))
    rest = more(len(calls) - len(rows), "calls with no higher score")
    every = element("details", summary, whole, rest)
    return section(f"{place.name}-calls", "Every call", every, _results(place), level=4)


def _said(goal: GoalReport) -> Content:
    return [f"“{inert(goal.text, QUOTE)}”", element("span", f" (event {goal.seq})", class_="quiet")]


def _account(place: Place, call: CallReport, number: int) -> Markup:
    rows = [
        element(
            "tr",
            element("th", element("code", inert(item.path, PATH) or "(all)"), scope="row"),
            element("td", item.role),
            element("td", _source(place, item, number)),
        )
        for item in listed(call.arguments or ())
    ]
    tool = inert(call.tool, NAME) or "(no name)"
    score = "" if call.score is None else f", score {call.score:.2f}"
    caption = f"{tool} (event {call.seq}){score}, {'allowed' if call.allowed else 'REFUSED'}"
    return element(
        "div",
        table(caption, ("argument", "is for", "came from"), rows) if rows else element("p", caption),
        more(len(call.arguments or ()) - len(rows), "arguments"),
        element("p", "Why: ", why(call), ".") if call.score is not None else None,
    )


def _row(place: Place, call: CallReport) -> Markup:
    score = "-" if call.score is None else f"{call.score:.2f}"
    return element(
        "tr",
        element("th", call.seq, scope="row"),
        element("td", element("code", inert(call.tool, NAME) or "(no name)")),
        element("td", score if call.allowed else [score, ", ", element("strong", "REFUSED", class_="bad")]),
        element("td", _briefly(place, listed(call.arguments or ()), len(call.arguments or ()))),
        element("td", _why(place, call)),
    )


def _why(place: Place, call: CallReport) -> Content:
    """Return where a call does not fit its contract, and why it has its score, unless that alone alarmed."""
    wrong = _wrong(place, call.seq)
    told = why(call) if call.score is not None and not alone(call) else None
    return [wrong, told] if wrong or told else "-"


def _briefly(place: Place, arguments: Sequence[ArgumentReport], count: int) -> Content:
    items = [
        element("li", element("code", inert(item.path, PATH) or "(all)"), f", {item.role}, from ", _source(place, item))
        for item in arguments
    ]
    return [element("ul", items) if items else "-", more(count - len(items), "arguments")]


def _results(place: Place) -> Content:
    """Return where what came back does not fit what was published."""
    seqs = [seq for seq in place.misfits if seq not in place.tools]
    if not seqs:
        return None
    items = [element("li", _wrong(place, seq, f"event {seq}: ")) for seq in seqs[:ANSWERS]]
    told = element("p", "Results of another shape than was published:")
    return [told, element("ul", items), more(len(seqs) - ANSWERS, "results")]


def _wrong(place: Place, seq: int, before: str = "") -> list[Content]:
    """Return where a call or a result does not fit its contract, nothing where it does."""
    wrong = place.misfits.get(seq, ())
    lines = [element("p", before, misfit(item)) for item in wrong[:PIECES]]
    return [*lines, more(len(wrong) - PIECES, "places that do not fit")] if lines else []


def _source(place: Place, item: ArgumentReport, number: int | None = None) -> Content:
    """Return whose a value is, with the event that held it: for a finding, by its number, as a link."""
    whose, tool = came_from(item, place.steps)
    who = element("strong", whose, class_="warn") if item.origin is Origin.TOOL_RESULT else whose
    if item.seq is None:
        return who
    event = f"event {item.seq}" if number is None else place.event(item.seq, number)
    inside = "a link or an address in it, " if item.within else ""
    return [inside, event, f" ({tool})" * bool(tool), ": ", who]
