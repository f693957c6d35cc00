"""An artefact as a page: what it shows, that one finds the way in it, and that it loads nothing and stays small."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from html.parser import HTMLParser

import pytest
from msgspec.structs import replace

from theodolite.core.assessment import Assessment, Bin, Point, Share
from theodolite.core.calibration import Calibration
from theodolite.core.reading import Status
from theodolite.reports.calibration.page import paged
from theodolite.reports.calibration.pictures import curve, reliability

Made = Callable[..., Calibration]
Measured = Callable[..., Assessment]
VOID = {"meta", "link"}


class Read(HTMLParser):
    """A page as a browser has it: elements with their attributes, headings, and text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.headings: list[str] = []
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "h2":
            self.headings.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words.append(data)
        if "h2" in self.open:
            self.headings[-1] += data

    def of(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())


def _page(artefact: Calibration) -> str:
    return paged(artefact, "1.0").decode()


def test_it_says_what_the_terminal_says_and_draws_what_was_measured(artefact: Made) -> None:
    read = Read(_page(artefact()))
    assert read.headings == [
        "What limits what it says",
        "What it rests on",
        "Thresholds",
        "Rates in its data, with intervals of 95 %",
        "Pictures",
        "Slices of fusion.call, with intervals of 95 %",
        "Where a second opinion is asked for, with intervals of 95 %",
        "Coefficients",
        "The population that is watched",
        "Models that were measured",
    ]
    assert "CALIBRATED: it was fitted on sessions of agent bank-assistant" in read.text
    assert "not confirmed: above alpha" in read.text
    assert "too few clean sessions: 31 missing" in read.text
    assert read.text.count("The picture as a table") == 4
    assert read.text.endswith("theodolite 1.0")


def test_a_bare_artefact_has_no_pictures_and_says_what_it_has_not(bare: Calibration) -> None:
    read = Read(_page(bare))
    assert read.headings == ["What it rests on", "What it has not"]
    assert "rates: how often it alarms without reason was not measured" in read.text
    assert not [one for one in read.of("svg") if "plot" in one["class"]]


def test_only_what_was_measured_is_drawn(artefact: Made, assessment: Measured) -> None:
    empty = (Bin(0.0, 1.0, Share(0, 0, 0.0, 1.0)),)
    made = (assessment("a.x", bins=()), assessment("a.y", curve=(), bins=empty), assessment("a.z", curve=()))
    page = _page(artefact(assessments=made))
    assert re.findall(r"<title id=[^>]*>([^<]*)</title>", page) == [
        "ROC curve of a.x",
        "Drifted sessions by the score of a.z",
    ]


class TestAccess:
    """What a reader with a keyboard or a voice needs."""

    def test_each_picture_has_a_title_a_description_and_a_table_behind_it(self, artefact: Made) -> None:
        page = _page(artefact())
        read = Read(page)
        plots = [one for one in read.of("svg") if one["class"] == "plot"]
        assert len(plots) == 4
        ids = [one["id"] for _, one in read.elements if "id" in one]
        assert len(ids) == len(set(ids))
        for plot in plots:
            assert plot["role"] == "img"
            assert set(plot["aria-labelledby"].split()) <= set(ids)
        described = re.findall(r"<desc[^>]*>([^<]*)</desc>", page)
        assert "30 of 37 (95 %: 64.8 to 92.0 %) drifted sessions found" in described[0]
        assert "alpha is 2.5 %. The area under the curve is 0.981." in described[0]
        assert "0.8 to 1: 8 of 10 (95 %: 44.4 to 97.5 %)" in described[1]
        assert "<td>72.9 %</td>" not in page
        assert "0.8 to 1" in page.partition("<details")[2]

    def test_each_table_has_a_caption_and_heads_with_a_scope(self, artefact: Made) -> None:
        read = Read(_page(artefact()))
        assert len(read.of("table")) == len(read.of("caption")) > 7
        assert all(head.get("scope") in {"row", "col"} for head in read.of("th"))

    def test_each_part_is_in_the_contents_and_each_link_leads_somewhere(self, artefact: Made) -> None:
        read = Read(_page(artefact()))
        targets = [one["href"] for one in read.of("a")]
        ids = {one["id"] for _, one in read.elements if "id" in one}
        assert {target.removeprefix("#") for target in targets} <= ids
        assert targets.count("#report") == 1
        assert "#pictures" in targets


class TestNothingLoads:
    """The page asks nobody for anything, and would not be allowed to."""

    def test_the_policy_forbids_all_but_its_own_style(self, artefact: Made) -> None:
        import base64
        import hashlib

        page = _page(artefact())
        style = page[page.index("<style>") + 7 : page.index("</style>")]
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        assert f"default-src &#x27;none&#x27;; style-src &#x27;sha256-{digest}&#x27;" in page
        assert ".plot .curve" in style

    def test_no_address_and_no_script_is_in_it(self, artefact: Made) -> None:
        page = _page(artefact())
        assert not re.search(r"(?i)https?:(?!//www\.w3\.org/2000/svg)|@import|url\(|javascript|<script", page)

    def test_each_shape_of_a_picture_has_a_color_in_both_schemes(self, artefact: Made) -> None:
        page = _page(artefact())
        style = page[page.index("<style>") : page.index("</style>")]
        plots = "".join(re.findall(r'<svg[^>]*class="plot".*?</svg>', page, re.DOTALL))
        shapes = {one for one in re.findall(r'class="(\w+)"', plots) if one not in {"label", "plot"}}
        assert shapes == {"axis", "grid", "chance", "alpha", "curve", "spread", "point", "dot", "bar"}
        for shape in shapes:
            rule = re.search(rf"\.plot \.{shape} \{{([^}}]*)\}}", style)
            assert rule
            assert "var(--" in rule[1]


def _places(picture: str, kind: str, attribute: str) -> list[float]:
    found = re.findall(rf'<(?:circle|line)[^>]*?\s{attribute}="([\d.]+)"[^>]*class="{kind}"', picture)
    return [float(one) for one in found]


def test_the_operating_point_lies_between_its_intervals_and_left_of_alpha(assessment: Measured) -> None:
    picture = curve(assessment(), 0.025, "c")
    [x], [y] = _places(picture, "point", "cx"), _places(picture, "point", "cy")
    left, right = _places(picture, "spread", "x1")[0], _places(picture, "spread", "x2")[0]
    low, high = _places(picture, "spread", "y1")[1], _places(picture, "spread", "y2")[1]
    assert left < x < right < _places(picture, "alpha", "x1")[0]
    assert high < y < low


def test_no_false_alarm_stands_at_the_left_edge_and_every_one_at_the_right(assessment: Measured) -> None:
    ends = (Point(1.0, 0.0, 0.0), Point(0.5, 0.1, 0.5), Point(0.0, 1.0, 1.0))
    picture = curve(assessment(curve=ends), 0.01, "c")
    assert re.search(r'<path d="M46 272L[\d.]+ 143L388 14" class="curve">', picture)


@pytest.mark.parametrize("alpha", [1e-12, 1e-5, 0.001, 0.01, 0.05, 0.5, 0.999])
@pytest.mark.parametrize("odd", [-1e308, 0.0, 1e-300, 0.5, 7.0, 1e308])
def test_nothing_is_drawn_beside_the_plot(assessment: Measured, alpha: float, odd: float) -> None:
    shares = (Share(3, 7, odd, -odd), Share(9, 2, 0.0, 1.0), Share(10**18, 10**18, 1.0, 1.0))
    bins = tuple([Bin(odd, -odd, share) for share in shares])
    made = assessment(
        alert=odd, curve=(Point(odd, odd, odd), Point(0, 1.0, -odd)), bins=bins,
        whole=replace(assessment().whole, false_alarms=shares[0], found=shares[2]),
    )  # fmt: skip
    for picture in (curve(made, alpha, "c"), reliability(made, "r")):
        across = re.findall(r' (?:x1|x2|cx)="([^"]*)"', picture)
        along = re.findall(r' (?:y1|y2|cy)="([^"]*)"', picture)
        assert all(46 <= float(one) <= 388 for one in across)
        assert all(14 <= float(one) <= 277 for one in along)
        assert not re.search(r"nan|inf|e\+", re.sub(r"<(desc|title)[^>]*>[^<]*</|>[^<]*</text>", "", picture))


def test_two_hundred_slices_and_a_hundred_points_are_quick_and_small(artefact: Made, assessment: Measured) -> None:
    bins = tuple([Bin(n / 20, (n + 1) / 20, Share(n, 20, 0.0, 1.0)) for n in range(20)])
    made = artefact(assessments=tuple([assessment(f"d{n}.x", slices=200, points=100, bins=bins) for n in range(5)]))
    paged(made, "1.0")
    begun = time.perf_counter()
    page = paged(replace(made, assessments=made.assessments[:1]), "1.0")
    assert time.perf_counter() - begun < 0.3, "three times what it may take, for a machine that is busy"
    assert page.count(b'<th scope="row">suite: s') == 200
    assert len(page) < 150_000
    assert len(paged(made, "1.0")) < 1_000_000


def test_of_very_much_what_is_left_out_is_counted(artefact: Made, assessment: Measured) -> None:
    bins = tuple([Bin(n / 5000, (n + 1) / 5000, Share(n, 5000, 0.0, 1.0)) for n in range(5000)])
    huge = assessment(slices=1_000, points=3_000, bins=bins)
    made = artefact(
        status=Status.REFERENCE,
        assessments=tuple([replace(huge, code=f"d{n}.x") for n in range(40)]),
        warnings=("x" * 5_000,) * 5_000,
        coefficients={f"d{n}": {f"w{m}": "v" * 500 for m in range(500)} for n in range(500)},
    )
    page = paged(made, "1.0")
    assert len(page) < 1_000_000
    read = Read(page.decode())
    for left_out in ("4,950 more warnings", "800 more slices", "more codes with pictures", "more parts"):
        assert re.search(rf"\.\.\. and [\d,]* ?{left_out}: --format json has all", read.text), left_out
    assert "Models that were measured" in read.headings, "what is too large does not take the place of the rest"
