"""PNG: the drift timelines of the first sessions with findings, as a picture. Needs the extra `png`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import BinaryIO

from theodolite.core.errors import MissingExtraError
from theodolite.core.policy import Outcome
from theodolite.reports.alarms import codes
from theodolite.reports.document import SessionReport, Summary
from theodolite.reports.escaping import inert
from theodolite.reports.layout import counted
from theodolite.reports.markup import Markup, element
from theodolite.reports.timeline import AXIS, LANE, Timeline, drawn, timeline
from theodolite.reports.words import verdict

__all__ = ("PNGWriter", "has_fonts", "rendered", "svg")

# Sessions that are drawn: a picture of more is no picture (our choice).
DRAWN = 8
# Pixels: the picture's width and margin, the room for its title, and for the caption of each session.
WIDTH, MARGIN, TITLE, CAPTION = 960, 32, 84, 46
# Screens show twice as many dots as this.
ZOOM = 2.0
# Characters that fit in a line.
LINE = 96

# The texts of every picture. Colors are those of the page in a light scheme; what draws here knows no variables.
_TEXTS = """
text { font-family: "Liberation Sans", "DejaVu Sans", "Segoe UI", Helvetica, Arial, sans-serif; }
text { font-size: 12px; fill: #5c6068; }
.title { font-size: 24px; font-weight: 600; fill: #22252b; }
.name { font-size: 15px; font-weight: 600; fill: #22252b; }
"""
# What is drawn of sessions.
_STYLE = """
.code { font-weight: 600; fill: #22252b; }
.score { font-weight: 600; fill: #a32a1e; }
.scale { font-size: 9px; }
.failed { font-weight: 700; fill: #7d5200; }
.base, .tick { stroke: #d9d5ca; }
.alert { stroke: #5c6068; }
.needle { stroke: #4a6f8a; stroke-width: 1.5; }
.needle.noted { stroke: #7d5200; }
.needle.alarm { stroke: #a32a1e; stroke-width: 2; }
.needle.surrogate { stroke: #5c6068; }
.dot { fill: #4a6f8a; }
.dot.surrogate { fill: #fcfbf8; stroke: #5c6068; stroke-width: 1.5; }
path.alarm { fill: #a32a1e; }
path.noted { fill: #fcfbf8; stroke: #7d5200; stroke-width: 1.5; }
path.refused { fill: none; stroke: #a32a1e; stroke-width: 2; }
"""
_PAPER = "#fcfbf8"
_SIGNS = """\
Filled triangle: an alarm that counts. Hollow triangle: one that is noted. Cross: a refused call. ?: not judged.
Hollow circle on a dotted line: the answer of a surrogate model, which says nothing about this agent.
"""


class PNGWriter:
    """Draws at the end, and holds what it will draw.

    Text needs a font of the system (see `has_fonts`): where there is none, the shapes are drawn without it.

    Raises MissingExtraError when resvg is not installed.
    """

    def __init__(self, stream: BinaryIO) -> None:
        rendered(_picture([], "", ""))  # now, and not when everything was judged
        self._stream = stream
        self._drawn: list[tuple[SessionReport, Timeline]] = []
        self._more = 0

    def add(self, session: SessionReport, thresholds: Mapping[str, float] = MappingProxyType({})) -> None:
        """Take a session."""
        if session.counts_as is Outcome.FINDING:
            if len(self._drawn) < DRAWN:
                self._drawn.append((session, timeline(session, thresholds)))
            else:
                self._more += 1

    def end(self, summary: Summary) -> None:
        """Write the picture."""
        events = f"{counted(summary.events, 'event')} and {counted(summary.calls, 'call')} were judged."
        more = f" {counted(self._more, 'more session')} with findings: --format html tells." if self._more else ""
        self._stream.write(rendered(_picture(self._drawn, verdict(summary), f"{events}{more}")))


def has_fonts() -> bool:
    """Whether the system has a font to draw text with. Raises MissingExtraError as the writer does."""
    letter = element("text", "M", x="10", y="30")
    with_it, without = (svg(content, 40, 40) for content in (letter, Markup("")))
    return rendered(with_it) != rendered(without)


def _picture(sessions: list[tuple[SessionReport, Timeline]], title: str, told: str) -> Markup:
    parts = [element("text", title, x=MARGIN, y=46, class_="title"), element("text", told, x=MARGIN, y=70)]
    top = TITLE
    for number, (session, shown) in enumerate(sessions, 1):
        height = LANE * len(shown.lanes) + AXIS
        agent = f"agent {inert(session.agent_id, LINE // 3)}: " if session.agent_id else ""
        name = inert(session.session_id, LINE) or "(no name)"
        parts.append(element("text", name, x=MARGIN, y=top + 20, class_="name"))
        parts.append(element("text", agent, inert(codes(session), LINE), x=MARGIN, y=top + 38))
        chart = drawn(shown, name=f"s{number}", title=name)
        top += CAPTION
        parts.append(element("svg", chart, x=MARGIN, y=top + 10, width=WIDTH - 2 * MARGIN, height=height))
        top += height + 28
    for line in _SIGNS.splitlines() if sessions else ():
        parts.append(element("text", line, x=MARGIN, y=top))
        top += 18
    return svg(parts, WIDTH, top + MARGIN // 2)


def svg(content: Markup | list[Markup], width: int, height: int) -> Markup:
    """Return a picture of so many pixels."""
    return element("svg", content, xmlns="http://www.w3.org/2000/svg", width=width, height=height)


def rendered(picture: Markup, style: str = _STYLE) -> bytes:
    """Return a picture as PNG. Nothing that it could refer to is read: no file, no address, no style but this.

    Raises MissingExtraError when resvg is not installed.
    """
    try:
        import resvg_py  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingExtraError(extra="png", needed_for="reports as pictures") from error
    sheet = f"{_TEXTS}{style}"
    return bytes(resvg_py.svg_to_bytes(svg_string=picture, background=_PAPER, style_sheet=sheet, zoom=ZOOM))
