"""HTML, JUnit, SARIF and PNG of sessions in which every text is an attacker's: they show it, and do nothing it says."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from html.parser import HTMLParser
from importlib import import_module
from io import BytesIO
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from theodolite.core.coverage import Coverage, Sight
from theodolite.core.event import Source
from theodolite.core.intent import Origin, Role
from theodolite.core.policy import Action, Outcome
from theodolite.core.reading import Cause, Evidence, Level, Status
from theodolite.core.text import printable
from theodolite.reports.document import (
    ArgumentReport,
    CallReport,
    FindingReport,
    GoalReport,
    ReasonReport,
    SessionReport,
    SignalReport,
    StepReport,
    Summary,
    UnreadableReport,
)
from theodolite.reports.escaping import inert
from theodolite.reports.html.page import HTMLWriter
from theodolite.reports.junit import JUnitWriter
from theodolite.reports.limits import LARGEST
from theodolite.reports.markup import ATTRIBUTES, TAGS
from theodolite.reports.sarif import SarifWriter
from theodolite.reports.summaries import Summaries
from theodolite.reports.triage import Standing
from theodolite.reports.writer import Writer
from theodolite.testing.sessions import HOSTILE_TEXTS

WORST = (
    *HOSTILE_TEXTS,
    "</script><script>alert(1)</script>",
    "<svg onload=alert(1)>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "javascript:alert(1)",
    "]]><![CDATA[x]]>",
    "<!-- --> --!> <!DOCTYPE x [<!ENTITY y SYSTEM 'file:///etc/passwd'>]>&y;",
    "</style></title></textarea><base href=//evil.example>",
    "&lt;b&gt; &#0; &#x1f;",
    "\x00\x01\x08\x0b\x1b[2J\x7f\x9b",
    "\ud800 lone \udfff",
    "\ufffe\uffff\U0001ffff",
    "a\u202etxt.exe\u2066\u200b\ufeff",
    "{{7*7}} ${7*7} {% raw %} #{x} <%= y %> {0} {1}",
    "[click](https://evil.example) ![x](https://evil.example/x.png)",
    "=cmd|' /C calc'!A0",
    "::error file=a,line=1::hacked",
    "\n##vso[task.complete result=Failed]\n##[error]x\n##teamcity[x]",
    "e" + "\u0301" * 50,
    "%0a%0d://evil.example",
)
TEXTS = (
    st.sampled_from(WORST)
    | st.text(st.characters(), max_size=60)
    | st.text("<>&\"']=:#[]{}()/\x00\n\u202e ab", max_size=60)
)
COMMAND = re.compile(r"(?m)^\s*::[A-Za-z]|##[\w.]*\[")
SCHEMA = json.loads(Path(__file__).with_name("sarif-schema-2.1.0.json").read_text(encoding="utf-8"))
JSONSCHEMA = import_module("jsonschema")  # it has no types
VALID = JSONSCHEMA.Draft7Validator(SCHEMA, format_checker=JSONSCHEMA.FormatChecker())
CODES = st.sampled_from(["margin.untrusted", "behavior.shift", "other.code"]) | TEXTS
SEQS = st.integers(0, 20)


@st.composite
def sessions(draw: st.DrawFn) -> SessionReport:
    """A session as a document may hold it, also one that nobody of ours wrote."""
    text = st.builds(printable, TEXTS)

    def says() -> str:
        return draw(text)

    kinds = st.sampled_from(["margin.passage", "margin.argument", "behavior.choice"])
    evidence = st.builds(
        Evidence, kind=kinds, seqs=st.lists(SEQS, max_size=3).map(tuple), path=text, expected=text, observed=text
    )
    signal = st.builds(
        SignalReport,
        seq=SEQS,
        about=SEQS,
        detector=text,
        version=text,
        code=CODES.map(printable),
        score=st.none() | st.floats(0, 1),
        level=st.sampled_from(Level),
        status=st.sampled_from(Status),
        ambiguous=st.booleans(),
        finds=st.booleans(),
        calibration=st.none() | text,
        models=st.lists(text, max_size=2).map(tuple),
        surrogate=st.booleans(),
        evidence=st.lists(evidence, max_size=3).map(tuple),
        cause=st.none() | st.sampled_from(Cause),
        detail=text,
    )
    finding = st.builds(
        FindingReport,
        code=CODES.map(printable),
        source=SEQS,
        calls=st.lists(SEQS, max_size=3).map(tuple),
        fingerprint=text,
        standing=st.sampled_from(Standing),
        reason=text,
        expires=st.none() | text,
    )
    argument = st.builds(
        ArgumentReport,
        path=text,
        role=st.sampled_from(Role),
        origin=st.sampled_from(Origin),
        seq=st.none() | SEQS,
        start=SEQS,
        end=SEQS,
        within=st.booleans(),
    )
    added = st.floats(allow_nan=False, allow_infinity=False)
    reason = st.builds(ReasonReport, code=text, term=text, added=added, text=text)
    outcomes = st.sampled_from(Outcome)
    sight = Sight(detector=says(), version=says(), decides=True, blind=True, spoke=1, failed=1, missing=(says(),))
    return SessionReport(
        session_id=says(),
        agent_id=says(),
        file=says(),
        reader=says(),
        outcome=draw(outcomes),
        counts_as=draw(st.none() | outcomes),
        action=draw(st.sampled_from(Action)),
        coverage=Coverage(events={says(): 3}, channels={says(): 1}, unset={says(): 2}, detectors=(sight,)),
        calls=tuple(
            [
                CallReport(
                    seq=seq,
                    tool=says(),
                    score=draw(st.none() | st.floats(0.0, 1.0)),
                    allowed=draw(st.booleans()),
                    signals=(),
                    arguments=draw(st.none() | st.lists(argument, max_size=3).map(tuple)),
                    reasons=draw(st.lists(reason, max_size=3).map(tuple)),
                )
                for seq in range(draw(st.integers(0, 3)))
            ]
        ),
        signals=tuple(draw(st.lists(signal, max_size=4))),
        findings=tuple(draw(st.lists(finding, max_size=3))),
        steps=(StepReport(seq=3, turn=1, event=says(), source=draw(st.sampled_from(Source)), tool=says()),),
        unreadable=(UnreadableReport(file=says(), line=draw(st.integers(0, 9)), reason=says(), parts=1),),
        goals=tuple([GoalReport(seq=seq, text=says()) for seq in range(draw(st.integers(0, 3)))]),
    )


MANY = st.lists(sessions(), max_size=3)


def _summary(made: Iterable[SessionReport], text: str) -> Summary:
    summaries = Summaries(text)
    for session in made:
        summaries.add(session)
    whole = summaries.summary()
    part = UnreadableReport(file=text, line=2, reason=text, parts=1)
    return replace(whole, calibration=text, unreadable=(part,), unread=whole.unread + 1)


def _written(kind: Callable[[BytesIO], Writer], made: Iterable[SessionReport], text: str = "x") -> bytes:
    stream = BytesIO()
    writer = kind(stream)
    held = list(made)
    for session in held:
        writer.add(session)
    writer.end(_summary(held, printable(text)))
    return stream.getvalue()


class Page(HTMLParser):
    """What a parser sees of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.open: list[str] = []
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


@settings(deadline=None, max_examples=50)
@given(MANY, TEXTS)
def test_a_page_holds_our_elements_alone_and_the_texts_as_texts(made: list[SessionReport], text: str) -> None:
    written = _written(HTMLWriter, made, text).decode()
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
    for session in made:
        assert inert(session.session_id, 60) in shown or not session.session_id
    assert all(char == "\n" or char.isprintable() for char in shown)
    assert not COMMAND.search(written.partition("</style>")[2])


@settings(deadline=None, max_examples=50)
@given(MANY, TEXTS)
def test_junit_is_xml_whatever_was_said(made: list[SessionReport], text: str) -> None:
    written = _written(JUnitWriter, made, text).decode()
    root = ET.fromstring(written)  # noqa: S314 - written here
    assert "<!" not in written
    assert written.count("<?") == 1
    cases = list(root.iter("testcase"))
    assert len(cases) == len(made) + 1
    for session, case in zip(made, cases, strict=False):
        assert (case.get("name") or "").startswith(inert(session.session_id, 400))
    assert all(char == "\n" or char.isprintable() for part in root.itertext() for char in part)
    assert not COMMAND.search(written)


@settings(deadline=None, max_examples=50)
@given(MANY, TEXTS)
def test_sarif_is_valid_plain_ascii_and_its_messages_are_literal(made: list[SessionReport], text: str) -> None:
    written = _written(SarifWriter, made, text)
    assert all(0x20 <= byte < 0x7F or byte == 0x0A for byte in written)
    assert not re.search(rb"[<>&]", written)
    assert not COMMAND.search(written.decode())
    log = json.loads(written)
    VALID.validate(log)
    (run,) = log["runs"]
    assert len(run["results"]) == sum(len(session.findings) for session in made)
    for result in run["results"]:
        message = result["message"]["text"]
        assert not re.search(r"\]\(", message)
        assert not re.search(r"(?<!\{)\{(?:\{\{)*\d+\}", message)


@settings(deadline=None, max_examples=10)
@given(MANY, TEXTS)
def test_a_picture_is_drawn_whatever_was_said(made: list[SessionReport], text: str) -> None:
    pytest.importorskip("resvg_py", reason="the extra png is not installed")
    from theodolite.reports.png import PNGWriter

    assert _written(PNGWriter, made, text).startswith(b"\x89PNG\r\n\x1a\n")


def _huge(text: str, many: int) -> SessionReport:
    """A session of `many` calls, each alarmed and failed, in which every text is the same."""
    kinds = ("margin.passage", "margin.argument", "margin.other")
    evidence = [
        tuple(
            [
                Evidence(kind=kind, seqs=(seq, 200 + other), path=text, expected=text, observed=text)
                for other in range(10)
                for kind in kinds
            ]
        )
        for seq in range(min(many, 100))
    ]
    signals = [
        SignalReport(
            seq=seq, about=seq, detector="margin", version=text, code="margin.untrusted", score=0.9,
            level=Level.NOTABLE, status=Status.REFERENCE, ambiguous=True, finds=True, calibration=text,
            models=(text,), surrogate=False,
            evidence=evidence[seq] if seq < 100 else (), cause=None, detail="",
        )
        for seq in range(many)
    ]  # fmt: skip
    failed = [
        replace(said, detector=f"d{said.seq}", score=None, cause=Cause.ERROR, detail=text) for said in signals[:99]
    ]
    findings = [
        FindingReport(
            code="margin.untrusted", source=seq, calls=(seq,), fingerprint=text, standing=Standing.NEW, reason=text,
            expires=text,
        )
        for seq in range(many)
    ]  # fmt: skip
    argument = ArgumentReport(
        path=text, role=Role.CREDENTIAL, origin=Origin.TOOL_RESULT, seq=3, start=0, end=0, within=True
    )
    told = CallReport(
        seq=0, tool=text, score=0.9, allowed=False, signals=(), arguments=(argument,) * 64,
        reasons=(ReasonReport(code=text, term=text, added=1e308, text=text),) * 20,
    )  # fmt: skip
    return SessionReport(
        session_id=text, agent_id=text, file=text, reader=text, outcome=Outcome.FINDING, counts_as=Outcome.FINDING,
        action=Action.RESTRICTED_MODE, coverage=Coverage(events={text: 1}, channels={text: 1}, unset={text: 1}),
        calls=tuple([replace(told, seq=seq) for seq in range(many)]),
        signals=(*signals, *failed), findings=tuple(findings),
        steps=tuple([StepReport(seq=seq, turn=0, event=text, source=Source.TOOL, tool=text) for seq in range(many)]),
        unreadable=(UnreadableReport(file=text, line=1, reason=text, parts=1),) * 100,
        goals=(GoalReport(seq=0, text=text),) * 100,
    )  # fmt: skip


@pytest.mark.parametrize(("piece", "times"), [("<", 10_000_000), ("\x00", 1_000_000), ("\U000e0100", 50_000)])
def test_ten_megabytes_of_text_in_every_field_stay_out_of_each_form(piece: str, times: int) -> None:
    text = piece * times
    session = _huge(text, 20)
    sizes = [len(_written(kind, [session], text)) for kind in (HTMLWriter, JUnitWriter, SarifWriter)]
    assert max(sizes) < 2_000_000


def test_very_many_huge_sessions_make_a_page_of_less_than_five_megabytes() -> None:
    worst = _huge('"' * 500, 300)
    quiet = replace(worst, signals=(), findings=(), calls=())
    failed = replace(worst, outcome=Outcome.FAILED, counts_as=Outcome.FAILED, findings=())
    made = [
        *[worst] * 5,
        *[failed] * 20,
        *[replace(quiet, counts_as=counts) for counts in (None, Outcome.CLEAN)] * 500,
    ]
    written = _written(HTMLWriter, made, '"' * 500)
    size, left_out = len(written), len(re.findall(rb"\.\.\. and [\d,]+ more sessions", written))
    assert 3_000_000 < size < LARGEST
    assert left_out == 4


@pytest.mark.slow
def test_a_session_of_ten_thousand_turns_is_small_in_each_form() -> None:
    session = _huge("x", 10_000)
    sizes = [len(_written(kind, [session])) for kind in (HTMLWriter, JUnitWriter, SarifWriter)]
    assert all(size < most for size, most in zip(sizes, (350_000, 50_000, LARGEST), strict=True))
