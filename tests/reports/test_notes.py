"""What is noted in a session without a finding: shown beside it in each form for people that lists such sessions."""

from __future__ import annotations

import re
from collections.abc import Callable
from io import BytesIO
from xml.etree import ElementTree as ET

import pytest
from msgspec.structs import replace

from theodolite.core.policy import Outcome
from theodolite.core.reading import Level, Signal, Status
from theodolite.reports.entries import session_report
from theodolite.reports.findings import findings
from theodolite.reports.html.page import HTMLWriter
from theodolite.reports.junit import JUnitWriter
from theodolite.reports.layout import plain
from theodolite.reports.limits import LINES, SAID
from theodolite.reports.notes import notes, notes_of
from theodolite.reports.session import every_call
from theodolite.reports.text import TextReport
from theodolite.reports.totals import Origin, Run, Totals
from theodolite.reports.triage import Mark, Standing
from theodolite.reports.writer import WriterReport
from theodolite.runtime.replay import Sighting

Alarm = Callable[..., Signal]
Saw = Callable[..., Sighting]
Told = Callable[..., str]


@pytest.fixture
def note(alarm: Alarm) -> Alarm:
    """Return a function that makes a signal over its threshold that is only shown."""

    def make(code: str = "answer.injected", score: float = 0.965, **fields: object) -> Signal:
        return alarm(code, score=score, finds=False, **fields)

    return make


def _html(*items: Sighting) -> str:
    stream = BytesIO()
    report, totals = WriterReport(HTMLWriter(stream)), Totals()
    for item in items:
        totals.add(item)
        report.add(item)
    report.end(totals, Run(version="1.0"))
    return re.sub(r"<[^>]*>", "", stream.getvalue().decode())


def _cases(*items: Sighting) -> list[str]:
    stream = BytesIO()
    report, totals = WriterReport(JUnitWriter(stream)), Totals()
    for item in items:
        totals.add(item)
        report.add(item)
    report.end(totals, Run(version="1.0"))
    cases = ET.fromstring(stream.getvalue()).iter("testcase")  # noqa: S314 - written here
    return ["\n".join(case.itertext()) for case in cases]


def test_what_is_noted_in_a_clean_session_stands_beside_it_in_every_form(saw: Saw, note: Alarm, told: Told) -> None:
    quiet = saw((note(score=0.7),), (note(),), outcome=Outcome.CLEAN)
    other = saw((note(level=Level.CLEAR),), session="s-2", outcome=Outcome.CLEAN)
    text = told(quiet, other)
    assert re.findall(r"(?m)^ +noted .*", text) == ["     noted answer.injected 0.96"]
    assert text.index("s-1  2 calls") < text.index("noted answer.injected") < text.index("s-2  1 call")
    assert _html(quiet, other).count("noted answer.injected 0.96") == 1
    assert _cases(quiet, other) == ["noted answer.injected 0.96", ""]


def test_each_code_is_noted_once_with_its_highest_score_and_of_many_the_first(saw: Saw, note: Alarm) -> None:
    session = saw((note("b.x", 0.7), note("a.x", 0.6)), (note("b.x", 0.8), note("b.x", 0.75)), outcome=Outcome.CLEAN)
    assert notes(session) == notes_of(session_report(session)) == "noted b.x 0.80, a.x 0.60"
    many = saw(tuple([note(f"c{n}.x", 0.5) for n in range(SAID + 3)]), outcome=Outcome.CLEAN)
    assert notes(many) == notes_of(session_report(many))
    assert notes(many).endswith(", and 3 more")
    assert notes(many).count("0.50") == SAID


@pytest.mark.parametrize("status", Status)
def test_a_note_over_a_threshold_that_nobody_measured_is_kept_for_all_calls_and_for_json(
    saw: Saw, note: Alarm, told: Told, status: Status
) -> None:
    session = saw((note("shadow_memory.goal_drift", 0.62, status=status),), outcome=Outcome.CLEAN)
    measured = status is not Status.UNCALIBRATED
    assert bool(notes(session)) == bool(notes_of(session_report(session))) == measured
    assert ("shadow_memory" in told(session)) == measured
    calls = "".join(plain(every_call(session)))
    assert "noted shadow_memory.goal_drift 0.62" in calls
    assert session_report(session).signals[0].level is Level.NOTABLE


def test_beside_a_finding_the_timeline_notes_what_was_measured(saw: Saw, note: Alarm, alarm: Alarm, told: Told) -> None:
    drift = note("shadow_memory.goal_drift", 0.62, status=Status.UNCALIBRATED)
    guess = alarm("mine.guess", status=Status.UNCALIBRATED)
    text = told(saw((alarm(), note()), (drift,), (guess,)))
    assert "ALARM margin.untrusted 0.90, noted answer.injected 0.96" in text
    assert "ALARM mine.guess" in text
    assert "shadow_memory" not in text


def test_of_very_many_clean_sessions_those_with_a_note_have_their_line(saw: Saw, note: Alarm, told: Told) -> None:
    empty = [saw((), session=f"e-{n}", outcome=Outcome.CLEAN) for n in range(LINES + 1)]
    text = told(*empty, saw((note(),), session="n-1", outcome=Outcome.CLEAN))
    assert "n-1  1 call" in text
    assert "noted answer.injected 0.96" in text
    assert "e-1 " not in text
    noted = [saw((note(),), session=f"n-{n}", outcome=Outcome.CLEAN) for n in range(LINES + 5)]
    text = told(*empty, *noted)
    assert text.count("noted answer.injected") == LINES
    assert "... and 5 more with notes: --format json has all" in text


def test_a_finding_that_is_known_is_no_note(saw: Saw, alarm: Alarm, note: Alarm) -> None:
    session = saw((alarm(source=3), note()))
    (finding,) = findings(session)
    origin = Origin(marks={finding.fingerprint: Mark(standing=Standing.KNOWN)})
    assert notes(session) == notes_of(session_report(session, origin)) == "noted answer.injected 0.96"
    lines: list[str] = []
    totals, report = Totals(), TextReport(lambda blocks: lines.extend(plain(blocks)))
    totals.add(session, origin)
    report.add(session, origin)
    report.end(totals, Run(version="1.0"))
    assert "     noted answer.injected 0.96\n" in lines


def test_a_note_of_a_kept_document_is_made_inert(saw: Saw, note: Alarm) -> None:
    kept = session_report(saw((note(),), outcome=Outcome.CLEAN))
    hostile = replace(kept, signals=(replace(kept.signals[0], code="a\x1b.x"),))
    assert notes_of(hostile) == "noted a\\x1b.x 0.96"


class TestTransfer:
    """A report says once, in one sentence, that thresholds of others' sessions are not those of this agent."""

    SAID = (
        "REFERENCE thresholds do not transfer by themselves: `theodolite calibrate SESSIONS --known-good --out "
        "calibration.json` fits them to clean sessions of your own agent."
    )

    def _forms(self, *sessions: Sighting) -> list[str]:
        page, totals, lines = BytesIO(), Totals(), list[str]()
        reports = (
            WriterReport(HTMLWriter(page)),
            TextReport(lambda blocks: lines.extend(plain(blocks))),
        )
        for session in sessions:
            totals.add(session)
            for report in reports:
                report.add(session)
        for report in reports:
            report.end(totals, Run(version="1.0"))
        shown = re.sub(r"<[^>]*>", "", page.getvalue().decode().partition("</style>")[2])
        return [" ".join(text.split()) for text in ("".join(lines), shown)]

    def test_it_is_said_once_where_a_reference_graded_a_score(self, saw: Saw, alarm: Alarm) -> None:
        quiet = alarm(level=Level.CLEAR)
        for sessions in ([saw((alarm(), alarm("fusion.call")))], [saw((quiet,), outcome=Outcome.CLEAN)] * 3):
            assert [text.count(self.SAID) for text in self._forms(*sessions)] == [1, 1]

    @pytest.mark.parametrize("status", [status for status in Status if status is not Status.REFERENCE])
    def test_it_is_not_said_of_other_thresholds(self, saw: Saw, alarm: Alarm, status: Status) -> None:
        session = saw((alarm(status=status),))
        assert not any("--known-good" in text for text in self._forms(session))

    def test_it_is_not_said_where_nobody_scored(self, saw: Saw, failure: Alarm) -> None:
        for session in (saw((), outcome=Outcome.CLEAN), saw((failure(),), outcome=Outcome.FAILED)):
            assert not any("--known-good" in text for text in self._forms(session))
