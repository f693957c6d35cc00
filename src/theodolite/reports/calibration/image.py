"""The pictures of one code of an artefact as PNG. Needs the extra `png`."""

from __future__ import annotations

from theodolite.core.calibration import Calibration
from theodolite.core.errors import ConfigError
from theodolite.reports.calibration.parts import title
from theodolite.reports.calibration.pictures import HEIGHT, WIDTH, curve, drawable, filled, reliability
from theodolite.reports.calibration.rates import alpha_of, assessed
from theodolite.reports.escaping import inert
from theodolite.reports.limits import NAME
from theodolite.reports.markup import Markup, element
from theodolite.reports.png import rendered, svg

__all__ = ("imaged",)

# Pixels around the pictures, and above them for the title.
_MARGIN, _TITLE, _CAPTION = 32, 96, 66

_STYLE = """
.plot text { font-size: 11px; }
.axis { fill: none; stroke: #5c6068; }
.grid { stroke: #d9d5ca; }
.chance { fill: none; stroke: #5c6068; }
.alpha { stroke: #7d5200; stroke-width: 1.5; }
.curve { fill: none; stroke: #4a6f8a; stroke-width: 2; }
.spread { stroke: #a32a1e; stroke-width: 1.5; }
.point { fill: #a32a1e; }
.dot { fill: #4a6f8a; }
.bar { stroke: #4a6f8a; stroke-width: 1.5; }
"""
_SIGNS = (
    "Red: the threshold in use, with intervals of 95 %. Dashed: alpha on the left, the threshold on the right.",
    "Dotted: chance on the left; on the right, where a score is the share of drifted sessions. Numbers count sessions.",
)


def imaged(artefact: Calibration) -> bytes:
    """Return the pictures of `fusion.call`, or else of the first code that has any.

    Raises MissingExtraError when resvg is not installed, and ConfigError for an artefact with nothing to draw.
    """
    rendered(svg([], 1, 1))  # before anything is said of the artefact
    measured = next((one for one in assessed(artefact) if drawable(one)), None)
    if measured is None:
        raise ConfigError(
            f"{inert(artefact.id, NAME)}: /assessments: no curve and no bin was measured, so that there is nothing to "
            "draw: --format text shows what it has"
        )
    alpha = alpha_of(artefact, measured.code)
    drawn = [curve(measured, alpha, "curve")] if measured.curve else []
    drawn += [reliability(measured, "bins")] if filled(measured) else []
    return rendered(_laid(artefact, inert(measured.code, NAME), drawn), _STYLE)


def _laid(artefact: Calibration, code: str, drawn: list[Markup]) -> Markup:
    wide = 2 * WIDTH + 3 * _MARGIN
    parts = [
        element("text", code, x=_MARGIN, y=46, class_="title"),
        element("text", title(artefact), x=_MARGIN, y=70),
    ]
    for place, one in enumerate(drawn):
        x = _MARGIN + place * (WIDTH + _MARGIN)
        parts.append(element("svg", one, x=x, y=_TITLE, width=WIDTH, height=HEIGHT))
    for place, line in enumerate(_SIGNS):
        parts.append(element("text", line, x=_MARGIN, y=_TITLE + HEIGHT + 24 + 18 * place))
    return svg(parts, wide, _TITLE + HEIGHT + _CAPTION)
