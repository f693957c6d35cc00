"""The drift of one session: what each detector scored call by call, beside its threshold, as data and as SVG."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from types import MappingProxyType

from msgspec import Struct

from theodolite.core.calibration import Band, Calibration, in_force
from theodolite.core.reading import Level
from theodolite.reports.alarms import fresh
from theodolite.reports.document import SessionReport, SignalReport
from theodolite.reports.escaping import inert
from theodolite.reports.layout import counted
from theodolite.reports.markup import Markup, element

__all__ = ("Column", "Lane", "Mark", "Point", "Timeline", "counting", "drawn", "thresholds", "timeline", "told")

# A chart of more columns or lanes is not read: neighboring events share a column, further codes are counted.
COLUMNS, LANES = 160, 6
# Scores that are written beside their alarms in one lane, and events that are named below: more would run together.
LABELS, NAMED = 8, 7
# Characters of a code in a chart.
NAME = 48
# Sizes in pixels: a lane is its title and its plot, which is PLOT high and begins TOP below the lane's upper edge.
LANE, TOP, PLOT, AXIS = 100, 34, 52, 40


class Mark(Enum):
    """What a score came to."""

    QUIET = "quiet"
    NOTED = "noted"
    ALARM = "alarm"


class Point(Struct, frozen=True, gc=False):
    """The highest score of a code in one column. A `surrogate` answered, or the session's own model, or none."""

    column: int
    score: float
    mark: Mark
    surrogate: bool


class Lane(Struct, frozen=True):
    """The scores of one code, and the score from which it alarms, where that is known."""

    code: str
    threshold: float | None
    points: tuple[Point, ...]


class Column(Struct, frozen=True, gc=False):
    """One event or several neighbors, from `first` to `last`: whether a call was refused, whether somebody failed."""

    first: int
    last: int
    refused: bool
    failed: bool


class Timeline(Struct, frozen=True):
    """The columns, the lanes, and how many more codes there are than lanes."""

    columns: tuple[Column, ...]
    lanes: tuple[Lane, ...]
    more: int


def thresholds(bands: Mapping[str, Band], calibration: Calibration | None) -> dict[str, float]:
    """Return the score from which each code alarms: by the artefact, where it grades the code.

    >>> thresholds({"d.x": Band(alert=0.6)}, None)
    {'d.x': 0.6}
    """
    return {code: in_force(code, band, calibration).alert for code, band in bands.items()}


def timeline(session: SessionReport, thresholds: Mapping[str, float] = MappingProxyType({})) -> Timeline:
    """Return the timeline of a session: its calls and what else was judged, in order. `thresholds` are by code.

    Lanes with an alarm come first.
    """
    calls = {call.seq: call for call in session.calls}
    events = sorted({*calls, *[signal.about for signal in session.signals]})
    width = -(-len(events) // COLUMNS) or 1
    place = {seq: index // width for index, seq in enumerate(events)}
    failed = {place[signal.about] for signal in session.signals if signal.cause is not None}
    refused = {place[call.seq] for call in session.calls if not call.allowed}
    columns = [
        Column(group[0], group[-1], refused=index in refused, failed=index in failed)
        for index, group in enumerate(events[start : start + width] for start in range(0, len(events), width))
    ]
    lanes = sorted(_lanes(session, place, thresholds), key=lambda lane: min(_RANK[point.mark] for point in lane.points))
    return Timeline(tuple(columns), tuple(lanes[:LANES]), max(0, len(lanes) - LANES))


_RANK = {Mark.ALARM: 0, Mark.NOTED: 1, Mark.QUIET: 2}


def _lanes(session: SessionReport, place: Mapping[int, int], thresholds: Mapping[str, float]) -> Iterator[Lane]:
    counts = counting(session)
    highest: dict[str, dict[tuple[int, bool], Point]] = {}
    for signal in session.signals:
        if signal.score is None:
            continue
        made = Point(place[signal.about], signal.score, _mark(signal, counts), signal.surrogate)
        points = highest.setdefault(signal.code, {})
        held = points.get((made.column, made.surrogate))
        if held is None or (_RANK[made.mark], -made.score) < (_RANK[held.mark], -held.score):
            points[made.column, made.surrogate] = made
    for code, points in highest.items():
        yield Lane(code, thresholds.get(code), tuple(sorted(points.values(), key=lambda point: point.column)))


def counting(session: SessionReport) -> set[tuple[str, int]]:
    """Return the code and the event of each alarm of a finding that counts: of one that is new."""
    return {(finding.code, seq) for finding in fresh(session) for seq in finding.calls}


def _mark(signal: SignalReport, counts: set[tuple[str, int]]) -> Mark:
    if signal.level is Level.CLEAR:
        return Mark.QUIET
    return Mark.ALARM if (signal.code, signal.about) in counts else Mark.NOTED


def drawn(shown: Timeline, *, name: str, title: str, width: str = "100%") -> Markup:
    """Return the SVG of a timeline, as wide as there is room. `name` makes the ids in it unique on a page.

    All that it shows is in classes; the colors are for the style sheet around it.
    """
    height = LANE * len(shown.lanes) + AXIS
    lanes = [_lane(lane, row * LANE, len(shown.columns)) for row, lane in enumerate(shown.lanes)]
    return element(
        "svg",
        element("title", title, id=f"{name}-title"),
        element("desc", told(shown), id=f"{name}-desc"),
        lanes,
        _axis(shown, LANE * len(shown.lanes)),
        xmlns="http://www.w3.org/2000/svg",
        class_="timeline",
        role="img",
        aria_labelledby=f"{name}-title {name}-desc",
        width=width,
        height=height,
    )


def told(shown: Timeline) -> str:
    """Return what a chart shows, in a sentence for each of its lanes."""
    parts = [f"{counted(len(shown.columns), 'step')} from left to right."]
    for lane in shown.lanes:
        alarms = sum(point.mark is Mark.ALARM for point in lane.points)
        top = max(point.score for point in lane.points)
        limit = "" if lane.threshold is None else f", alert from {lane.threshold:.2f}"
        parts.append(f"{inert(lane.code, NAME)}: {counted(alarms, 'alarm')}, highest score {top:.2f}{limit}.")
    return " ".join(parts)


def _lane(lane: Lane, top: int, columns: int) -> Markup:
    base = top + TOP + PLOT
    limit = "" if lane.threshold is None else f"alert from {lane.threshold:.2f}"
    marks = [_point(point, base, columns) for point in lane.points]
    return element(
        "g",
        element("text", inert(lane.code, NAME), x="0", y=top + 12, class_="code"),
        element("text", limit, x="100%", y=top + 12, text_anchor="end", class_="label"),
        element("line", x1="0", x2="100%", y1=base, y2=base, class_="base"),
        element("text", "1", x="0", y=base - PLOT + 4, class_="scale"),
        element("text", "0", x="0", y=base - 3, class_="scale"),
        _threshold(lane.threshold, base),
        marks,
        _labels(lane.points, base, columns),
    )


def _threshold(threshold: float | None, base: int) -> Markup | None:
    if threshold is None:
        return None
    at = _number(base - threshold * PLOT)
    return element("line", x1="0", x2="100%", y1=at, y2=at, class_="alert", stroke_dasharray="5 4")


def _point(point: Point, base: int, columns: int) -> Markup:
    x, y = _x(point.column, columns), base - point.score * PLOT
    dash = "2 2" if point.surrogate else None
    kind = "surrogate" if point.surrogate else point.mark.value
    needle = element("line", x1=x, x2=x, y1=base, y2=_number(y), class_=f"needle {kind}", stroke_dasharray=dash)
    if point.surrogate or point.mark is Mark.QUIET:
        return element("g", needle, element("circle", cx=x, cy=_number(y), r="2.5", class_=f"dot {kind}"))
    top = element("svg", element("path", d="M0-6L5.5 4H-5.5Z", class_=kind), x=x, y=_number(y), overflow="visible")
    return element("g", needle, top)


def _labels(points: Iterable[Point], base: int, columns: int) -> Iterator[Markup]:
    """Yield the scores of the alarms, from left to right, as far as they do not run together."""
    last = float("-inf")
    for point in points:
        if point.mark is Mark.ALARM and not point.surrogate and (point.column - last) * LABELS >= columns:
            last = point.column
            x, y = _x(point.column, columns), _number(base - point.score * PLOT - 10)
            yield element("text", f"{point.score:.2f}", x=x, y=y, text_anchor="middle", class_="score")


def _axis(shown: Timeline, top: int) -> Markup:
    columns = len(shown.columns)
    ticks = [_tick(column, _x(index, columns), top) for index, column in enumerate(shown.columns)]
    names = [
        element("text", shown.columns[index].first, x=_x(index, columns), y=top + 32, text_anchor="middle")
        for index in sorted(_named(shown))
    ]
    return element("g", ticks, names, class_="axis")


def _tick(column: Column, x: str, top: int) -> list[Markup]:
    marks = [element("line", x1=x, x2=x, y1=top, y2=top + 5, class_="tick")]
    if column.refused:
        marks.append(
            element("svg", element("path", d="M-3.5 6l7 7m0-7l-7 7", class_="refused"), x=x, y=top, overflow="visible")
        )
    if column.failed:
        marks.append(element("text", "?", x=x, y=top + 16, text_anchor="middle", class_="failed"))
    return marks


def _named(shown: Timeline) -> set[int]:
    """Return the columns whose events are named: those of alarms before others, none too near to the next."""
    columns = len(shown.columns)
    alarms = [point.column for lane in shown.lanes for point in lane.points if point.mark is Mark.ALARM]
    named: set[int] = set()
    for index in [*alarms, 0, columns - 1, *range(columns)]:
        if all(abs(index - other) * NAMED >= columns for other in named):
            named.add(index)
    return named if columns else set()


def _x(column: int, columns: int) -> str:
    """Return how far right a column stands; some room is left at both ends."""
    return f"{_number(3 + 94 * (column + 0.5) / columns)}%"


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
