"""Artefacts in which every text is an attacker's: each form shows it, and does nothing that it says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html.parser import HTMLParser
from io import StringIO

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from theodolite.core.assessment import (
    Ambiguity,
    Assessment,
    Bin,
    Point,
    Share,
    Slice,
    Threshold,
    Verdict,
    Verified,
)
from theodolite.core.calibration import Band, Calibration, Dataset, Population
from theodolite.core.gate import Gate, Shown
from theodolite.core.reading import Status
from theodolite.core.text import printable
from theodolite.reports.calibration.difference import blocks as told_differences
from theodolite.reports.calibration.difference import differences
from theodolite.reports.calibration.page import paged
from theodolite.reports.calibration.parts import blocks
from theodolite.reports.calibration.pictures import drawable
from theodolite.reports.calibration.verification import verdict_blocks
from theodolite.reports.escaping import ascii_json, inert
from theodolite.reports.json import encoded
from theodolite.reports.layout import Block, plain
from theodolite.reports.markup import ATTRIBUTES, TAGS
from theodolite.reports.terminal import show
from theodolite.testing.sessions import HOSTILE_TEXTS

COMMAND = re.compile(r"(?m)^\s*::[A-Za-z]|##[\w.]*\[")
COLOR = re.compile(r"\x1b\[[0-9;]*m")
WORST = (
    *HOSTILE_TEXTS,
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</style></title><base href=//evil.example>",
    "<!-- --> <!DOCTYPE x [<!ENTITY y SYSTEM 'file:///etc/passwd'>]>&y;",
    "\x1b]8;;https://evil.example\x1b\\click\x1b]8;;\x1b\\",
    "[red]x[/red][link=https://evil.example]y[/link] :skull:",
    "\r\x1b[1A\x1b[2KCALIBRATED",
    "\n::error file=a,line=1::hacked",
    "\n##vso[task.complete result=Failed]\n##[error]x\n##teamcity[x]",
    "a\u202etxt.exe\u2066\u200b\ufeff",
)
TEXTS = st.builds(
    printable,
    st.sampled_from(WORST)
    | st.text(st.characters(), max_size=40)
    | st.text("<>&\"']=:#[]{}()/\x00\x1b\n\u202e ab", max_size=60),
)
NUMBERS = st.sampled_from([0.0, 0.5, 1.0, -1.0, 1e308, -1e308, 1e-320]) | st.floats(0.0, 1.0)
COUNTS = st.sampled_from([0, 1, 412, -1, 10**18]) | st.integers(0, 50)
SHARES = st.builds(Share, COUNTS, COUNTS, NUMBERS, NUMBERS)
SLICES = st.builds(Slice, name=TEXTS, false_alarms=SHARES, found=SHARES, precision=SHARES, enough=st.booleans())
ASSESSMENTS = st.builds(
    Assessment,
    code=TEXTS,
    alert=NUMBERS,
    whole=SLICES,
    slices=st.lists(SLICES, max_size=2).map(tuple),
    curve=st.lists(st.builds(Point, NUMBERS, NUMBERS, NUMBERS), max_size=2).map(tuple),
    bins=st.lists(st.builds(Bin, NUMBERS, NUMBERS, SHARES), max_size=2).map(tuple),
    ambiguity=st.none() | st.builds(Ambiguity, width=NUMBERS, asked=SHARES, changed=SHARES),
    auc=st.none() | NUMBERS,
)
BANDS = st.builds(
    Band, alert=st.just(0.5), strong=st.none() | st.just(0.75), source=TEXTS, acts=st.booleans(), finds=st.booleans()
)
THRESHOLDS = st.builds(
    Threshold, alert=NUMBERS, strong=st.none() | NUMBERS, alpha=NUMBERS, n=COUNTS, out_of_fold=COUNTS, judged=COUNTS,
    low=NUMBERS,
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | COUNTS | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)


def _gate(model: str, text: str) -> Gate:
    return Gate(
        model=model, prompt_hash=text, library=text, version=text, wording=text, shown=Shown.SAMPLES, date=text,
        pairs=12, auc=1.0, violation=-1.0, twin=1.0, decline_share=1.0, conform_share=1.0, spread=0.0, passed=True,
    )  # fmt: skip


def _population(code: str, one: float, other: float) -> Population:
    return Population(code=code, n=9, high=max(one, other), over=1, low=min(one, other), under=9)


@st.composite
def artefacts(draw: st.DrawFn) -> Calibration:
    """An artefact as a file may hold it, also one that nobody of ours wrote."""

    def several(values: st.SearchStrategy[object]) -> dict[str, object]:
        return draw(st.dictionaries(TEXTS, values, max_size=2))

    models = draw(st.lists(TEXTS, max_size=2))
    made: dict[str, object] = {
        "schema": 1,
        "id": draw(TEXTS),
        "status": draw(st.sampled_from([Status.CALIBRATED, Status.REFERENCE])),
        "alpha": draw(st.sampled_from([1e-320, 0.01, 0.5])),
        "date": draw(TEXTS),
        "dataset": draw(
            st.builds(
                Dataset, name=TEXTS, version=TEXTS, sha256=TEXTS, counts=st.dictionaries(TEXTS, COUNTS, max_size=2)
            )
        ),
        "versions": several(TEXTS),
        "bands": several(BANDS),
        "agents": (draw(TEXTS), draw(TEXTS)),
        "models": (draw(TEXTS),),
        "library": draw(TEXTS),
        "probes": draw(TEXTS),
        "thresholds": several(THRESHOLDS),
        "coefficients": several(st.dictionaries(TEXTS, JSON, max_size=2)),
        "population": draw(st.none() | st.builds(_population, TEXTS, NUMBERS, NUMBERS)),
        "assessments": draw(st.lists(ASSESSMENTS, max_size=2)),
        "warnings": draw(st.lists(TEXTS, max_size=2)),
        "gates": {model: _gate(model, draw(TEXTS)) for model in models},
        "digest": draw(TEXTS),
    }
    return msgspec.convert(made, Calibration, from_attributes=True)


def _inert(held: Sequence[Block]) -> None:
    text = "".join(plain(held))
    assert all(char == "\n" or char.isprintable() for char in text)
    assert not COMMAND.search(text)
    for width in (30, 100):
        stream = StringIO()
        show(held, Console(file=stream, width=width, force_terminal=True, highlight=False, color_system="truecolor"))
        drawn = COLOR.sub("", stream.getvalue())
        assert all(char == "\n" or char.isprintable() for char in drawn)
        assert not COMMAND.search(drawn)
        assert all(cell_len(line) <= width for line in drawn.splitlines())


@settings(deadline=None, max_examples=60)
@given(artefacts())
def test_a_terminal_shows_it_and_obeys_nothing(made: Calibration) -> None:
    _inert(list(blocks(made)))


@settings(deadline=None, max_examples=60)
@given(artefacts(), artefacts())
def test_differences_obey_nothing_and_their_json_is_ascii(one: Calibration, other: Calibration) -> None:
    found = differences(one, other)
    _inert(list(told_differences(found)))
    written = encoded(found)
    assert all(0x20 <= byte < 0x7F for byte in written)
    assert not COMMAND.search(written.decode())
    assert msgspec.json.decode(written)["before"] == one.id


@settings(deadline=None, max_examples=60)
@given(artefacts(), st.lists(st.builds(Verified, code=TEXTS, alpha=NUMBERS, assessment=ASSESSMENTS,
                                       verdict=st.sampled_from(Verdict)), max_size=3))  # fmt: skip
def test_a_verification_obeys_nothing(made: Calibration, found: list[Verified]) -> None:
    _inert(list(verdict_blocks(made, found)))


@settings(deadline=None, max_examples=60)
@given(artefacts())
def test_the_artefact_in_ascii_is_the_artefact(made: Calibration) -> None:
    written = ascii_json(made.document())
    assert all(0x20 <= byte < 0x7F or byte == 0x0A for byte in written)
    assert not COMMAND.search(written.decode())
    assert msgspec.json.decode(written, type=Calibration) == made


class Page(HTMLParser):
    """What a parser sees of a page: no comment, no instruction and no declaration, but for the first one."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in {"meta", "link"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    def handle_pi(self, data: str) -> None:
        raise AssertionError(f"an instruction: {data}")

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(f"a declaration: {data}")


@settings(deadline=None, max_examples=60)
@given(artefacts())
def test_a_page_holds_our_elements_alone_and_the_texts_as_texts(made: Calibration) -> None:
    written = paged(made, "1.0").decode()
    page = Page(written)
    assert not page.open
    assert {tag for tag, _ in page.elements} <= TAGS
    names = {name for _, attributes in page.elements for name in attributes}
    assert names <= {name.lower() for name in ATTRIBUTES}
    for tag, attributes in page.elements:
        if "href" in attributes:
            assert re.fullmatch(r"#[a-z][a-z0-9-]*" if tag == "a" else "data:,", attributes["href"] or "")
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    shown = "".join(page.text)
    assert inert(made.id, 60) in shown
    assert all(inert(text, 400) in shown for text in made.warnings)
    assert all(char == "\n" or char.isprintable() for char in shown)
    assert not COMMAND.search(written.partition("</style>")[2])


@settings(deadline=None, max_examples=10)
@given(artefacts())
def test_a_picture_is_drawn_whatever_was_said(made: Calibration) -> None:
    pytest.importorskip("resvg_py", reason="the extra png is not installed")
    from theodolite.core.errors import ConfigError
    from theodolite.reports.calibration.image import imaged

    if any(map(drawable, made.assessments)):
        assert imaged(made).startswith(b"\x89PNG\r\n\x1a\n")
    else:
        with pytest.raises(ConfigError, match="nothing to draw"):
            imaged(made)


@pytest.mark.parametrize("piece", ["<", "\x00", "\U000e0100"])
def test_a_megabyte_of_text_in_every_field_stays_out_of_each_form(piece: str) -> None:
    text = piece * 1_000_000
    none = Share(0, 0, 0.0, 1.0)
    part = Slice(name=text, false_alarms=none, found=none, precision=none, enough=False)
    made = Calibration(
        schema=1,
        id=text,
        status=Status.CALIBRATED,
        alpha=0.05,
        date=text,
        dataset=Dataset(name=text, version=text, sha256=text, counts={text: 1}),
        versions={text: text},
        bands={text: Band(alert=0.5, source=text)},
        agents=(text,) * 20,
        models=(text,) * 20,
        library=text,
        probes=text,
        coefficients={text: {text: text}},
        assessments=(Assessment(code=text, alert=0.5, whole=part, slices=(part,) * 30, curve=(Point(0, 0, 0),)),),
        warnings=(text,) * 20,
        gates={text: _gate(text, text)},
    )
    assert len("".join(plain(blocks(made)))) < 100_000
    assert len(paged(made, text)) < 300_000
    bare = msgspec.structs.replace(made, id="a", warnings=(), coefficients={}, gates={})
    assert len("".join(plain(told_differences(differences(made, bare))))) < 100_000
