"""Whatever a session says, a report shows it and does nothing that it says."""

from __future__ import annotations

import re
from io import BytesIO, StringIO

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.cells import cell_len
from rich.console import Console

from theodolite.core.coverage import Coverage, Sight
from theodolite.core.intent import ArgumentOrigin, Origin
from theodolite.core.policy import Action, Decision, Outcome
from theodolite.core.reader import Unreadable
from theodolite.core.reading import Cause, Evidence, Failure, Level, Reading, Signal
from theodolite.core.text import printable
from theodolite.detectors.trajectory.margin import MarginDetector
from theodolite.redactors.rules import RuleRedactor
from theodolite.reports.document import Document, SessionReport
from theodolite.reports.json import JSONLinesReport, JSONReport
from theodolite.reports.layout import Block, Heading, Paragraph, Span, Table, plain
from theodolite.reports.terminal import show
from theodolite.reports.text import TextReport
from theodolite.reports.totals import Report, Run, Totals
from theodolite.runtime.monitor import Monitor
from theodolite.runtime.replay import CallRow, Goal, Sighting, replay
from theodolite.testing.sessions import HOSTILE_TEXTS, hostile_session

COMMAND = re.compile(r"(?m)^\s*::[A-Za-z]|##[\w.]*\[")
COLOR = re.compile(r"\x1b\[[0-9;]*m")
WORST = (
    *HOSTILE_TEXTS,
    "\x1b]8;;https://evil.example\x1b\\click\x1b]8;;\x1b\\",
    "[red]x[/red][link=https://evil.example]y[/link] :skull:",
    "\n::error file=a,line=1::you are hacked",
    "x ##vso[task.setvariable variable=a]b\n##[command]rm",
    "=cmd|' /C calc'!A0",
    "\r\x1b[1A\x1b[2KAll sessions clean",
    "</script><img src=x onerror=alert(1)>",
)
TEXTS = st.sampled_from(WORST) | st.text(st.characters(), max_size=80) | st.text("ab :#[]\x1b\n\u202e", max_size=80)


@st.composite
def sightings(draw: st.DrawFn) -> Sighting:
    """A session of every outcome in which every text is anybody's."""
    said = Reading(
        detector="margin",
        version="1",
        code="margin.untrusted",
        score=0.9,
        evidence=(
            Evidence(kind="margin.passage", seqs=(3, 5), expected=draw(TEXTS), observed=draw(TEXTS)),
            Evidence(kind="margin.argument", seqs=(3, 5), path=draw(TEXTS)),
            Evidence(kind="other.kind", seqs=(1,), path=draw(TEXTS), expected=draw(TEXTS), observed=draw(TEXTS)),
        ),
    )
    failure = Failure(detector="margin", version="1", cause=Cause.ERROR, detail=draw(TEXTS))
    alarm = Signal(said=said, level=Level.NOTABLE, finds=True, calibration=draw(TEXTS))
    session, part = draw(TEXTS), Unreadable(file=draw(TEXTS), line=1, reason=draw(TEXTS))
    outcome = draw(st.sampled_from(Outcome))
    signals = (alarm, Signal(said=failure)) if outcome in {Outcome.FINDING, Outcome.FAILED} else ()
    decision = Decision(session=session, seq=5, about=5, signals=signals)
    sight = Sight(detector="margin", version="1", decides=True, blind=True, spoke=1, failed=1)
    origins = tuple(
        [ArgumentOrigin(path=draw(TEXTS), origin=origin, seq=3, within=draw(st.booleans())) for origin in Origin]
    )
    return Sighting(
        session=session,
        agent=draw(TEXTS),
        outcome=outcome,
        action=Action.LOG_ONLY,
        coverage=Coverage(events={"ToolCallProposed": 1}, channels={"unknown": 1}, detectors=(sight,)),
        goals=(Goal(seq=2, text=draw(TEXTS)),),
        calls=(CallRow(tool=draw(TEXTS), decision=decision, origins=origins),),
        decisions=(decision,),
        unreadable=(part,),
    )


ITEMS = st.lists(sightings() | st.builds(Unreadable, file=TEXTS, line=st.just(2), reason=TEXTS), max_size=4)


def _told(report: Report, items: list[Sighting | Unreadable], calibration: str = "") -> None:
    totals = Totals()
    for item in items:
        totals.add(item)
        report.add(item)
    report.end(totals, Run(version="1.0", calibration=calibration))


def _blocks(items: list[Sighting | Unreadable], calibration: str = "") -> list[Block]:
    blocks: list[Block] = []
    _told(TextReport(blocks.extend, calls=True), items, calibration)
    return blocks


def _drawn(blocks: list[Block], width: int) -> str:
    stream = StringIO()
    console = Console(file=stream, width=width, force_terminal=True, highlight=False, color_system="truecolor")
    show(blocks, console)
    return stream.getvalue()


@settings(deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_no_block_lets_a_text_through_as_it_is(texts: list[str]) -> None:
    spans = tuple([Span(text) for text in texts])
    blocks: list[Block] = [Heading(spans), Paragraph(spans), Table(("",) * len(spans), (spans,))]
    for text in ("".join(plain(blocks)), COLOR.sub("", _drawn(blocks, 1_000))):
        assert all(char == "\n" or char.isprintable() for char in text)


@settings(deadline=None)
@given(ITEMS, TEXTS)
def test_a_plain_report_holds_no_control_character_but_the_newline(
    items: list[Sighting | Unreadable], name: str
) -> None:
    text = "".join(plain(_blocks(items, name)))
    assert all(char == "\n" or char.isprintable() for char in text)
    assert not COMMAND.search(text)


@settings(deadline=None)
@given(ITEMS, st.sampled_from((20, 40, 100)))
def test_a_terminal_gets_colors_of_ours_and_nothing_else(items: list[Sighting | Unreadable], width: int) -> None:
    text = COLOR.sub("", _drawn(_blocks(items), width))
    assert all(char == "\n" or char.isprintable() for char in text)
    assert not COMMAND.search(text)
    assert all(cell_len(line) <= width for line in text.splitlines())


@settings(deadline=None)
@given(ITEMS)
def test_json_is_ascii_and_says_exactly_what_was_said(items: list[Sighting | Unreadable]) -> None:
    stream = BytesIO()
    _told(JSONReport(stream), items)
    written = stream.getvalue()
    assert all(0x20 <= byte < 0x7F or byte == 0x0A for byte in written)
    assert not COMMAND.search(written.decode())
    made = msgspec.json.decode(written, type=Document)
    sessions = [item for item in items if isinstance(item, Sighting)]
    assert [session.session_id for session in made.sessions] == [printable(item.session) for item in sessions]
    assert [session.calls[0].tool for session in made.sessions] == [printable(item.calls[0].tool) for item in sessions]


@settings(deadline=None)
@given(ITEMS)
def test_jsonl_gives_one_line_a_session_whatever_is_in_it(items: list[Sighting | Unreadable]) -> None:
    stream = BytesIO()
    _told(JSONLinesReport(stream), items)
    lines = stream.getvalue().decode("ascii").splitlines()
    assert len(lines) == sum(isinstance(item, Sighting) for item in items)
    for line in lines:
        msgspec.json.decode(line, type=SessionReport)


@pytest.mark.parametrize(
    "text", ["[bold]x[/bold]", "[red]not red[/red]", ":skull:", "[link=https://a.example]x[/link]"]
)
def test_markup_of_a_session_is_shown_and_not_obeyed(text: str) -> None:
    decision = Decision(session="s", seq=5, about=5, signals=())
    coverage = Coverage(events={"ToolCallProposed": 1})
    sighting = Sighting(
        session=text,
        agent="a",
        outcome=Outcome.FAILED,
        action=Action.LOG_ONLY,
        coverage=coverage,
        calls=(CallRow(tool="t", decision=decision),),
    )
    assert f"Failure in session {text} (agent a)" in COLOR.sub("", _drawn(_blocks([sighting]), 120))
    assert f"Failure in session {text} (agent a)" in "".join(plain(_blocks([sighting])))


def test_a_session_of_the_worst_texts_gives_a_small_inert_report() -> None:
    events = [event for event in hostile_session() if type(event).__name__ != "ToolsDeclared"]
    named = [replace(event, session=WORST[2], agent=WORST[3]) for event in events] * 50
    items = list(replay(named, Monitor([MarginDetector()], redactor=RuleRedactor())))
    text = "".join(plain(_blocks(items)))
    assert len(text) < 100_000
    assert all(char == "\n" or char.isprintable() for char in text)


def test_huge_names_stay_out_of_the_report() -> None:
    huge = "\x1b" * 2_000_000
    decision = Decision(session=huge, seq=5, about=5, signals=())
    sighting = Sighting(
        session=huge,
        agent=huge,
        outcome=Outcome.FAILED,
        action=Action.LOG_ONLY,
        coverage=Coverage(),
        calls=(CallRow(tool=huge, decision=decision),),
        unreadable=(Unreadable(file=huge, line=1, reason=huge),),
    )
    assert len("".join(plain(_blocks([sighting])))) < 10_000
