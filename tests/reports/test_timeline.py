"""The timeline of a session as data and as SVG."""

from __future__ import annotations

from collections.abc import Callable
from xml.etree import ElementTree as ET

from msgspec.structs import replace

from theodolite.core.reading import Level, Reading, Signal
from theodolite.reports.entries import session_report
from theodolite.reports.timeline import COLUMNS, LABELS, LANES, Mark, drawn, timeline, told
from theodolite.reports.totals import Origin
from theodolite.reports.triage import Mark as Standing
from theodolite.reports.triage import Standing as Known
from theodolite.runtime.replay import Sighting

Alarm = Callable[..., Signal]
Saw = Callable[..., Sighting]
SVG = "{http://www.w3.org/2000/svg}"


def _surrogate(signal: Signal) -> Signal:
    said = signal.said
    assert isinstance(said, Reading)
    return replace(signal, said=replace(said, surrogate=True, models=("small",)), finds=False)


def test_each_code_has_a_lane_and_those_with_an_alarm_come_first(saw: Saw, alarm: Alarm) -> None:
    quiet = alarm("aaa.first", score=0.1, level=Level.CLEAR)
    noted = alarm("idle.code", score=0.7, finds=False)
    shown = timeline(session_report(saw((quiet,), (noted,), (alarm(),), ())), {"margin.untrusted": 0.6})
    assert [lane.code for lane in shown.lanes] == ["margin.untrusted", "idle.code", "aaa.first"]
    assert [lane.threshold for lane in shown.lanes] == [0.6, None, None]
    assert [(point.column, point.mark) for lane in shown.lanes for point in lane.points] == [
        (2, Mark.ALARM),
        (1, Mark.NOTED),
        (0, Mark.QUIET),
    ]
    assert [column.first for column in shown.columns] == [5, 6, 7, 8]


def test_an_alarm_that_is_known_already_is_noted(saw: Saw, alarm: Alarm) -> None:
    session = saw((alarm(source=3),))
    (finding,) = session_report(session).findings
    known = Origin(marks={finding.fingerprint: Standing(standing=Known.KNOWN)})
    marks = [timeline(session_report(session, origin)).lanes[0].points[0].mark for origin in (Origin(), known)]
    assert marks == [Mark.ALARM, Mark.NOTED]


def test_refusals_and_failures_are_marked_below(saw: Saw, alarm: Alarm, failure: Alarm) -> None:
    shown = timeline(session_report(saw((failure(),), (alarm(),), allowed=False)))
    assert [(column.refused, column.failed) for column in shown.columns] == [(True, True), (True, False)]
    picture = drawn(shown, name="s1", title="t")
    assert picture.count('class="refused"') == 2
    assert picture.count(">?</text>") == 1


def test_the_answer_of_a_surrogate_stands_apart_and_is_no_alarm(saw: Saw, alarm: Alarm) -> None:
    own = alarm("behavior.shift", score=0.2, level=Level.CLEAR)
    shown = timeline(session_report(saw((own, _surrogate(alarm("behavior.shift"))))))
    (lane,) = shown.lanes
    assert {(point.surrogate, point.score, point.mark) for point in lane.points} == {
        (False, 0.2, Mark.QUIET),
        (True, 0.9, Mark.NOTED),
    }
    picture = drawn(shown, name="s1", title="t")
    assert 'class="needle surrogate"' in picture
    assert 'class="alarm"' not in picture


def test_a_long_session_shares_columns_and_loses_no_alarm(saw: Saw, alarm: Alarm) -> None:
    quiet = alarm(score=0.1, level=Level.CLEAR)
    calls: list[tuple[Signal, ...]] = [(quiet,)] * 10_000
    calls[7_777] = (alarm(score=0.8),)
    shown = timeline(session_report(saw(*calls)))
    assert len(shown.columns) <= COLUMNS
    assert (shown.columns[0].first, shown.columns[-1].last) == (5, 10_004)
    (lane,) = shown.lanes
    (point,) = [point for point in lane.points if point.mark is Mark.ALARM]
    column = shown.columns[point.column]
    assert column.first <= 7_777 + 5 <= column.last
    assert len(drawn(shown, name="s1", title="t")) < 60_000


def test_of_many_codes_only_their_number_is_said(saw: Saw, alarm: Alarm) -> None:
    shown = timeline(session_report(saw(tuple([alarm(f"d{n}.code") for n in range(LANES + 3)]))))
    assert (len(shown.lanes), shown.more) == (LANES, 3)


def test_scores_beside_alarms_do_not_run_together(saw: Saw, alarm: Alarm) -> None:
    shown = timeline(session_report(saw(*([(alarm(source=3),)] * 100))))
    picture = drawn(shown, name="s1", title="t")
    assert 1 < picture.count('class="score"') <= LABELS
    assert picture.count('class="alarm"') == 100


def test_the_picture_is_xml_with_a_title_and_says_in_words_what_it_shows(saw: Saw, alarm: Alarm) -> None:
    shown = timeline(session_report(saw((alarm(score=0.93),), ())), {"margin.untrusted": 0.6})
    root = ET.fromstring(drawn(shown, name="s1", title="<b>\x00"))  # noqa: S314 - written here
    title, desc = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None
    assert desc is not None
    assert (title.text, title.get("id"), desc.get("id")) == (r"<b>\x00", "s1-title", "s1-desc")
    assert root.get("aria-labelledby") == "s1-title s1-desc"
    assert root.get("role") == "img"
    assert desc.text == told(shown)
    assert "margin.untrusted: 1 alarm, highest score 0.93, alert from 0.60." in told(shown)


def test_a_session_without_a_score_has_no_lane(saw: Saw, failure: Alarm) -> None:
    shown = timeline(session_report(saw((failure(),), ())))
    assert (shown.lanes, len(shown.columns)) == ((), 2)
    assert timeline(session_report(saw())).columns == ()
