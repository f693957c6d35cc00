"""The drift timeline of a session on a page: the chart, what its signs mean, and the table that says the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from theodolite.core.reading import Level
from theodolite.reports.document import SessionReport, SignalReport
from theodolite.reports.escaping import inert
from theodolite.reports.html.pieces import table
from theodolite.reports.layout import counted
from theodolite.reports.limits import CONTEXT, NAME, ROWS, SAID, WHOLE
from theodolite.reports.markup import Markup, element
from theodolite.reports.timeline import Mark, Timeline, counting, drawn

__all__ = ("figure",)


class _Row(Struct):
    """An event of the timeline: a call, or what was said of something else."""

    seq: int
    tool: str | None
    allowed: bool
    marks: list[str]

    @property
    def quiet(self) -> bool:
        return self.allowed and not self.marks


def figure(session: SessionReport, shown: Timeline, name: str) -> Markup | None:
    """Return the figure of a session's timeline, or None where nothing was scored and nobody failed."""
    rows = _rows(session)
    if not shown.lanes and all(row.quiet for row in rows):
        return None
    chart = None
    if shown.lanes:
        title = f"Drift timeline of session {inert(session.session_id, NAME)}"
        more = f" {counted(shown.more, 'more code')}: the JSON form has all." if shown.more else ""
        shared = " Neighbors share a step." if any(step.first != step.last for step in shown.columns) else ""
        caption = "Scores from 0 to 1 by detector code, each step a call or another judged event, named by its number."
        chart = [
            drawn(shown, name=name, title=title),
            element("figcaption", caption + shared + more),
            element("ul", _legend(shown), class_="legend"),
        ]
    summary = element("summary", "The timeline as a table" if chart else "What was judged")
    details = element("details", summary, _table(rows), open=chart is None)
    return element("figure", chart, details, class_="drift")


def _legend(shown: Timeline) -> Iterator[Markup]:
    points = [point for lane in shown.lanes for point in lane.points]
    marks = {point.mark for point in points if not point.surrogate}
    signs = {
        "a score below its threshold": (Mark.QUIET in marks, "dot quiet", "circle"),
        "an alarm that counts": (Mark.ALARM in marks, "alarm", "triangle"),
        "an alarm that is noted and does not count": (Mark.NOTED in marks, "noted", "triangle"),
        "the answer of a surrogate, another model than the session's own: it says nothing about this agent": (
            any(point.surrogate for point in points),
            "dot surrogate",
            "circle",
        ),
        "the alert threshold": (any(lane.threshold is not None for lane in shown.lanes), "alert", "line"),
        "a refused call": (any(column.refused for column in shown.columns), "refused", "cross"),
    }
    for text, (there, kind, shape) in signs.items():
        if there:
            yield element("li", _sign(kind, shape), f" {text}")
    if any(column.failed for column in shown.columns):
        yield element(
            "li", element("span", "?", class_="failed", aria_hidden="true"), " a detector that could not judge"
        )


def _sign(kind: str, shape: str) -> Markup:
    shapes = {
        "circle": element("circle", cx="8", cy="8", r="3", class_=kind),
        "triangle": element("path", d="M8 2L13.500 12H2.500Z", class_=kind),
        "line": element("line", x1="0", x2="16", y1="8", y2="8", class_=kind, stroke_dasharray="5 4"),
        "cross": element("path", d="M4.500 4.500l7 7m0-7l-7 7", class_=kind),
    }
    return element("svg", shapes[shape], class_="timeline sign", aria_hidden="true", width="16", height="16")


def _rows(session: SessionReport) -> list[_Row]:
    counts = counting(session)
    rows = {call.seq: _Row(call.seq, call.tool, call.allowed, []) for call in session.calls}
    for signal in session.signals:
        if signal.cause is not None or signal.level is not Level.CLEAR:
            row = rows.setdefault(signal.about, _Row(signal.about, None, allowed=True, marks=[]))
            row.marks.append(_said(signal, counts))
    return sorted(rows.values(), key=lambda row: row.seq)


def _said(signal: SignalReport, counts: set[tuple[str, int]]) -> str:
    if signal.cause is not None or signal.score is None:
        return f"{inert(signal.code, NAME)}: {(signal.cause or 'no answer').replace('_', ' ')}"
    word = "ALARM" if (signal.code, signal.about) in counts else "noted"
    return f"{word} {inert(signal.code, NAME)} {signal.score:.2f}{' (surrogate)' if signal.surrogate else ''}"


def _table(rows: Sequence[_Row]) -> Markup:
    near = {n for m, row in enumerate(rows) if not row.quiet for n in range(m - CONTEXT, m + CONTEXT + 1)}
    cells: list[Markup] = []
    skipped = 0
    for place, row in enumerate(rows):
        if (place in near or len(rows) <= WHOLE) and len(cells) < ROWS:
            cells += _skipped(skipped)
            cells.append(_cells(row))
            skipped = 0
        else:
            skipped += 1
    caption = "Each call and each judged event, in order"
    return table(caption, ("event", "call", "decision", "said"), [cells, _skipped(skipped)])


def _skipped(count: int) -> list[Markup]:
    return [element("tr", element("td", f"... {count:,} more", colspan=4, class_="quiet"))] if count else []


def _cells(row: _Row) -> Markup:
    tool = "-" if row.tool is None else inert(row.tool, NAME) or "(no name)"
    decision = "" if row.tool is None else "allowed" if row.allowed else element("strong", "REFUSED", class_="bad")
    marks = list(dict.fromkeys(row.marks))
    more = f", and {len(marks) - SAID} more" if len(marks) > SAID else ""
    return element(
        "tr",
        element("th", row.seq, scope="row"),
        element("td", element("code", tool)),
        element("td", decision),
        element(
            "td", ", ".join(marks[:SAID]) + more, class_="bad" if any(m.startswith("ALARM") for m in marks) else None
        ),
    )
