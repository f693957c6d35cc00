"""The evidence of a session on a page: passages, what was taken from them, both sightings of a point side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from theodolite.core.reading import Evidence
from theodolite.reports.alarms import Gathered, gathered
from theodolite.reports.calls import shown_as_argument
from theodolite.reports.document import SessionReport, SignalReport
from theodolite.reports.escaping import inert
from theodolite.reports.html.pieces import more, section, table
from theodolite.reports.limits import CALLS, NAME, PASSAGES, PATH, PIECES, QUOTE
from theodolite.reports.markup import Content, Markup, element
from theodolite.reports.probe_words import BASELINE, difference
from theodolite.reports.shapes import about_shape, misfits_of, words

__all__ = ("Place", "events", "evidence")

# Events of a session that are listed: more are in the JSON forms.
EVENTS = 200

_SHADOW = ("Two sightings of one point", "clean shadow", "this session", "in short")
_PLAIN = ("Evidence", "expected", "observed")


class Place:
    """Where a session stands on the page, and which of its events the page points to, for which findings.

    `told` are the calls that were told with their arguments, and where these stand. `misfits` is where calls and
    results diverge from their contracts.
    """

    def __init__(self, session: SessionReport, number: int) -> None:
        self.name = f"s{number}"
        self.session = session
        self.tools = {call.seq: call.tool for call in session.calls}
        self.steps = {step.seq: step for step in session.steps}
        self.cited: dict[int, list[int]] = {}
        self.told: dict[int, frozenset[str]] = {}
        self.misfits = misfits_of(session.signals)

    def event(self, seq: int, finding: int | None = None) -> Markup:
        """Return the number of an event, as a link to its row where it is known and gets one."""
        known = seq in self.steps or seq in self.tools
        if seq not in self.cited and (not known or len(self.cited) >= EVENTS):
            return element("span", f"event {seq}")
        findings = self.cited.setdefault(seq, [])
        if finding is not None and finding not in findings:
            findings.append(finding)
        return element("a", f"event {seq}", href=f"#{self.name}-e{seq}", class_="event")

    def call(self, seq: int, finding: int | None = None) -> Content:
        """Return the tool and the number of a call."""
        tool = self.tools.get(seq)
        event = self.event(seq, finding)
        return [element("code", inert(tool, NAME)), " (", event, ")"] if tool else event


def evidence(place: Place, signals: Iterable[SignalReport], finding: int | None = None) -> list[Content]:
    """Return the passages, then what was taken from them, then any other evidence, all for a finding by its number.

    Of an argument that was told with its call, only the passage is left to say.
    """
    held = gathered(signals)
    covered: list[Evidence] = []
    other: list[Evidence] = []
    for item in held.other:
        (covered if shown_as_argument(item, place.told) else other).append(item)
    shadow = [item for item in other if item.kind.startswith("behavior.") and item.kind != "behavior.bet"]
    plain = [item for item in other if item not in shadow and not item.kind.startswith("triangulation.")]
    third = {item.expected for item in other if item.kind.startswith("triangulation.")}
    quoted = [(item.seqs[0], item.observed) for item in covered if item.observed and item.seqs[0] not in place.told]
    passages = list(dict.fromkeys([*held.passages, *quoted]))
    return [
        [_passage(place, source, text, finding) for source, text in passages[:PASSAGES]],
        more(len(passages) - PASSAGES, "passages"),
        _taken(place, held, finding),
        _sightings(place, shadow, finding, shadow=True, baseline=third.pop() if len(third) == 1 else ""),
        _sightings(place, plain, finding, shadow=False),
    ]


def _passage(place: Place, source: int | None, text: str, finding: int | None) -> Markup:
    if source is None:
        return element("p", "No passage: nothing that was read explains the call, and the request does not either.")
    event = place.event(source, finding)
    if not text:
        return element("p", "The text of ", event, " was no longer held when the call came.")
    said = element("figcaption", event, " says")
    return element("figure", said, element("blockquote", inert(text, QUOTE)), class_="passage")


def _taken(place: Place, held: Gathered, finding: int | None) -> Content:
    """Return where the values of arguments came from."""
    rows = [
        element(
            "tr",
            element("th", place.call(about, finding), scope="row"),
            element("td", _paths(paths)),
            element("td", "untrusted text" if source is None else place.event(source, finding)),
        )
        for about, source, paths in held.taken[:CALLS]
    ]
    if not rows:
        return None
    caption = "Argument values that came from elsewhere"
    return [table(caption, ("call", "argument", "came from"), rows), more(len(held.taken) - CALLS, "calls")]


def _paths(paths: Sequence[str]) -> Content:
    shown = [[", " * (n > 0), element("code", inert(path, PATH))] for n, path in enumerate(paths[:CALLS])]
    return [shown, f" and {len(paths) - CALLS} more" if len(paths) > CALLS else None]


def _sightings(
    place: Place, items: Sequence[Evidence], finding: int | None, *, shadow: bool, baseline: str = ""
) -> Content:
    """Return what was expected at each point and what was seen there, side by side.

    With `shadow` the one is what a model answered that had not seen the session, the other what it answered in it;
    `baseline` is then what an instance without any context decides, if one was asked.
    """
    caption, *names = _SHADOW if shadow else _PLAIN
    sides = [*names[:2], BASELINE, *names[2:]] if baseline else names
    one = shadow and len({item.seqs for item in items}) == 1  # what they are all about was said before
    rows = [
        element(
            "tr",
            element("th", _point(item) if one else _where(place, item, finding), scope="row"),
            element("td", inert(item.expected, QUOTE) or "-", class_="said"),
            element("td", inert(item.observed, QUOTE) or "-", class_="said"),
            _third(item, baseline),
            element("td", _compared(item)) if shadow else None,
        )
        for item in items[:PIECES]
    ]
    if not rows:
        return None
    kind = "sightings shadow" if shadow else "sightings"
    return [table(caption, ("where", *sides), rows, kind=kind), more(len(items) - PIECES, "pieces of evidence")]


def _third(item: Evidence, baseline: str) -> Markup | None:
    """Return the cell of an instance without context, which was asked for its decision alone."""
    if not baseline:
        return None
    return element("td", inert(baseline, NAME), class_="said") if item.path == "decision" else element("td")


def _point(item: Evidence) -> Markup:
    return element("code", inert(item.path, PATH) or inert(item.kind, NAME))


def _compared(item: Evidence) -> Markup:
    told = difference(item)
    return element("span", told, class_="quiet") if told == "same" else element("strong", told, class_="warn")


def _where(place: Place, item: Evidence, finding: int | None) -> list[Content]:
    seqs = [[", ", place.event(seq, finding)] for seq in item.seqs[:CALLS]]
    path = [" at ", element("code", inert(item.path, PATH))] if item.path else None
    kind = element("code", inert(item.kind, NAME))
    said = words(item.kind.partition(".")[2]) if about_shape(item.kind) else ""
    return [[said, " (", kind, ")"] if said else kind, path, seqs]


def events(place: Place) -> Content:
    """Return a row for each event that the evidence above points to: the target of those links."""
    if not place.cited:
        return None
    names = ("event", "turn", "what", "written by", "tool", "evidence of")
    caption = "The events that the evidence points to, without what they carried"
    rows = [_event(place, seq, findings) for seq, findings in sorted(place.cited.items())]
    return section(f"{place.name}-events", "Events", table(caption, names, rows), level=4)


def _event(place: Place, seq: int, findings: Sequence[int]) -> Markup:
    step = place.steps.get(seq)
    tool = step.tool if step else place.tools[seq]
    untrusted = step is not None and step.source in {"tool", "external"}
    used = [
        [", " * (n > 0), element("a", f"finding {number}", href=f"#{place.name}-f{number}")]
        for n, number in enumerate(findings)
    ]
    return element(
        "tr",
        element("th", seq, scope="row"),
        element("td", step.turn if step and step.turn >= 0 else "-"),
        element("td", inert(step.event, NAME) if step else "ToolCallProposed"),
        element(
            "td",
            step.source if step else "model",
            [", ", element("strong", "untrusted", class_="warn")] if untrusted else None,
        ),
        element("td", element("code", inert(tool, NAME)) if tool else "-"),
        element("td", used or "-"),
        id=f"{place.name}-e{seq}",
        tabindex="-1",
    )
