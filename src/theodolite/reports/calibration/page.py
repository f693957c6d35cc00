"""A calibration artefact as one page: its tables, and two pictures of each code that was measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files

from theodolite.core.assessment import Assessment
from theodolite.core.calibration import Calibration
from theodolite.core.reading import Status
from theodolite.reports.calibration.figures import number, percent, share
from theodolite.reports.calibration.parts import Part, parts, standing, title
from theodolite.reports.calibration.pictures import curve, drawable, filled, reliability
from theodolite.reports.calibration.rates import alpha_of, assessed
from theodolite.reports.escaping import inert
from theodolite.reports.html.pieces import more, section, table, within
from theodolite.reports.html.sheet import brand, page
from theodolite.reports.layout import Block, Heading, Paragraph, Span, Style, Table
from theodolite.reports.limits import NAME
from theodolite.reports.markup import Content, Markup, element

__all__ = ("paged",)

# Slices of one code, and rows of the tables behind a picture, that a page has.
_SLICES, _ROWS = 200, 200
# Bytes that the pictures may take, and all else: together with the style less than a megabyte (our choice).
_ROOM_FOR_PICTURES, _ROOM = 500_000, 400_000

_KINDS = {
    Style.PLAIN: None,
    Style.STRONG: None,
    Style.QUIET: "quiet",
    Style.GOOD: "good",
    Style.WARN: "warn",
    Style.BAD: "bad",
    Style.QUOTED: None,
}
_TONES = {Status.CALIBRATED: "good", Status.REFERENCE: "warn"}


def paged(artefact: Calibration, version: str) -> bytes:
    """Return the page, less than a megabyte whatever the artefact holds. `version` is that of this package.

    It loads and runs nothing.
    """
    return page(f"Theodolite: calibration {title(artefact)}", _body(artefact, version), style=_style())


def _body(artefact: Calibration, version: str) -> Iterator[Markup]:
    told = list(parts(artefact, _SLICES))
    shown = _fitting(told)
    index = {part.name: _entry(part.name, part.title) for part in told if part.name in shown}
    drawn = list(_pictures(artefact))
    if drawn:
        shown = _after_rates(shown, section("pictures", "Pictures", drawn, level=2))
        index = _after_rates(index, _entry("pictures", "Pictures"))
    yield element("a", "Skip to the report", class_="skip", href="#report")
    yield _masthead(artefact)
    yield element("nav", element("ul", index.values()), aria_label="Contents")
    rest = more(len(told) + bool(drawn) - len(shown), "parts")
    yield element("main", shown.values(), rest, id="report", tabindex="-1")
    yield element("footer", element("p", f"theodolite {inert(version, NAME)}", class_="quiet"))


def _fitting(told: Iterable[Part]) -> dict[str, Markup]:
    """Return the parts that there is room for: one that is too large does not take the place of others."""
    room, kept = _ROOM, dict[str, Markup]()
    for part in told:
        made = _part(part)
        size = len(made.encode())
        if size <= room:
            room -= size
            kept[part.name] = made
    return kept


def _after_rates(held: Mapping[str, Markup], pictures: Markup) -> dict[str, Markup]:
    """Return what stands on a page with the pictures behind what they draw, or at the end."""
    names = list(held)
    place = names.index("rates") + 1 if "rates" in names else len(names)
    return {name: held.get(name, pictures) for name in (*names[:place], "pictures", *names[place:])}


def _masthead(artefact: Calibration) -> Markup:
    status, *rest = standing(artefact)
    return element(
        "header",
        brand(),
        element("h1", "Calibration ", title(artefact)),
        element("p", element("strong", status, class_=_TONES[artefact.status])),
        [element("p", line, class_="lead") for line in rest],
        class_="masthead",
    )


def _entry(name: str, text: str) -> Markup:
    return element("li", element("a", text, href=f"#{name}"))


def _part(part: Part) -> Markup:
    return section(part.name, part.title, list(_blocks(part)), level=2)


def _blocks(part: Part) -> Iterator[Markup]:
    """Yield the blocks of a part; a table of coefficients is called by the detector that stands before it."""
    name = _CAPTIONS.get(part.name, "Slice by slice")
    for block in part.blocks:
        yield _block(block, name)
        if part.name == "coefficients" and isinstance(block, Paragraph):
            name = f"Coefficients of {inert(block.spans[0].text, NAME)}"


_CAPTIONS = {"thresholds": "Code by code", "rates": "Code by code", "opinion": "Code by code"}


def _block(block: Block, name: str) -> Markup:
    if isinstance(block, Table):
        rows = [element("tr", _cells(row)) for row in block.rows]
        return table(name, block.head, rows)
    return element("h3" if isinstance(block, Heading) else "p", _spans(block.spans))


def _cells(row: Iterable[Span]) -> Iterator[Markup]:
    first, *rest = row
    yield element("th", inert(first.text), scope="row", class_=_KINDS[first.style])
    yield from [element("td", inert(cell.text), class_=_KINDS[cell.style]) for cell in rest]


def _spans(spans: Iterable[Span]) -> Iterator[Content]:
    for span in spans:
        if span.style is Style.PLAIN:
            yield inert(span.text)
        else:
            kind = "strong" if span.style in {Style.STRONG, Style.BAD} else "span"
            yield element(kind, inert(span.text), class_=_KINDS[span.style])


def _pictures(artefact: Calibration) -> Iterator[Markup]:
    measured = [one for one in assessed(artefact) if drawable(one)]
    pairs = (_pair(one, alpha_of(artefact, one.code), f"p{place}") for place, one in enumerate(measured, 1))
    told = within(pairs, _ROOM_FOR_PICTURES)
    yield from told
    rest = more(len(measured) - len(told), "codes with pictures")
    if rest is not None:
        yield rest


def _pair(measured: Assessment, alpha: float, name: str) -> Markup:
    pictures = [
        _figure(curve(measured, alpha, f"{name}-curve"), _CURVE, _corners(measured)) if measured.curve else None,
        _figure(reliability(measured, f"{name}-bins"), _BARS, _bins(measured)) if filled(measured) else None,
    ]
    title = element("h3", inert(measured.code, NAME), class_="name")
    return element("div", title, element("div", pictures, class_="pictures"))


_CURVE = (
    "What share of the drifted sessions is found, and of the clean ones alarms, as the threshold falls. The dot is the "
    "threshold in use with intervals of 95 %, the dashed line alpha, the dotted one chance. The left edge is none."
)
_BARS = (
    "Of the sessions whose highest score lies in a range, what share was drifted, with intervals of 95 % and how many "
    "there are. On the dotted line a score is that share. The dashed line is the threshold in use. What share of all "
    "sessions was drifted is the choice of who gathered them."
)


def _figure(picture: Markup, caption: str, behind: Markup) -> Markup:
    details = element("details", element("summary", "The picture as a table"), behind)
    return element("figure", picture, element("figcaption", caption), details)


def _corners(measured: Assessment) -> Markup:
    rows = [
        element(
            "tr",
            element("th", number(point.score), scope="row"),
            element("td", f"{percent(point.false_alarms)} %"),
            element("td", f"{percent(point.found)} %"),
        )
        for point in measured.curve[:_ROWS]
    ]
    rest = more(len(measured.curve) - len(rows), "scores")
    name = f"ROC curve of {inert(measured.code, NAME)}"
    return element("div", table(name, ("score from", "false alarms", "found"), rows), rest)


def _bins(measured: Assessment) -> Markup:
    rows = [
        element(
            "tr",
            element("th", f"{number(one.low)} to {number(one.high)}", scope="row"),
            element("td", share(one.drifted)),
        )
        for one in measured.bins[:_ROWS]
    ]
    rest = more(len(measured.bins) - len(rows), "ranges of scores")
    name = f"Drifted sessions by the score of {inert(measured.code, NAME)}"
    return element("div", table(name, ("score", "drifted (95 %)"), rows), rest)


@cache
def _style() -> str:
    return files("theodolite.reports.calibration").joinpath("style.css").read_text(encoding="utf-8")
