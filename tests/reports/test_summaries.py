"""Kept reports become one: nothing is counted twice, nothing is lost, and a page is drawn as the scan drew it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from io import BytesIO

import msgspec
import pytest
from msgspec.structs import replace

from theodolite.core.policy import Outcome
from theodolite.core.reader import Unreadable
from theodolite.core.reading import Signal
from theodolite.reports.document import Document, PopulationReport, SessionReport
from theodolite.reports.findings import findings
from theodolite.reports.html.page import HTMLWriter
from theodolite.reports.json import JSONReport
from theodolite.reports.summaries import Summaries
from theodolite.reports.totals import Origin, Run, Totals
from theodolite.reports.triage import Mark, Standing, Suppression, Triaged
from theodolite.reports.writer import WriterReport
from theodolite.runtime.population import PopulationState
from theodolite.runtime.purse import Spent
from theodolite.runtime.replay import Sighting
from theodolite.stats.shift import Direction
from theodolite.testing.sessions import clean_session, hijacked_session, sparse_session

Alarm = Callable[..., Signal]
Saw = Callable[..., Sighting]
PART = Unreadable(file="a.jsonl", line=3, reason="no JSON", parts=2)
RUN = Run(
    version="1.0",
    calibration="c-1",
    store="evidence.db",
    records=1_234,
    asked=Spent(calls=2, tokens=30, cost=0.5),
    triage=Triaged(
        baseline="known.json",
        gone=1,
        expired=(Suppression(code="d.x", session="*", reason="we know", expires=date(2026, 1, 1), entry=1),),
    ),
    thresholds={"margin.untrusted": 0.62},
    population=PopulationState(
        calibration="c-1", sessions=40, e_value=900.5, recalibrate=True, direction=Direction.HIGHER
    ),
)


@pytest.fixture
def items(replayed: Callable[..., Sighting], saw: Saw, alarm: Alarm, failure: Alarm) -> list[Sighting | Unreadable]:
    """Sessions of every kind, and a part that belongs to none."""
    return [
        replayed(hijacked_session(), "mail"),
        replayed(clean_session(), "water"),
        replayed(sparse_session()[:-1], "sparse"),
        PART,
        saw((alarm(source=3),), (alarm(source=4),), session="known", allowed=False),
        saw((failure(),), session="failed", outcome=Outcome.FAILED, unreadable=(PART,)),
    ]


def _origin(item: Sighting | Unreadable) -> Origin:
    if item.session != "known":
        return Origin(file="a.jsonl", reader="openai-chat")
    assert isinstance(item, Sighting)
    return Origin(marks={found.fingerprint: Mark(standing=Standing.KNOWN) for found in findings(item)})


def _kept(items: list[Sighting | Unreadable], run: Run = RUN) -> Document:
    """Return what was written as JSON, read again."""
    stream, totals = BytesIO(), Totals()
    report = JSONReport(stream)
    for item in items:
        totals.add(item, _origin(item))
        report.add(item, _origin(item))
    report.end(totals, run)
    return msgspec.json.decode(stream.getvalue(), type=Document)


def _page(items: list[Sighting | Unreadable]) -> str:
    stream, totals = BytesIO(), Totals()
    report = WriterReport(HTMLWriter(stream), thresholds=RUN.thresholds)
    for item in items:
        totals.add(item, _origin(item))
        report.add(item, _origin(item))
    report.end(totals, RUN)
    return stream.getvalue().decode()


def test_the_summary_of_one_document_is_its_own(items: list[Sighting | Unreadable]) -> None:
    kept = _kept(items)
    summaries = Summaries("2.0")
    for session in kept.sessions:
        summaries.add(session)
    summaries.close(kept.summary)
    assert summaries.summary() == kept.summary
    assert kept.summary.thresholds == {"margin.untrusted": 0.62}
    assert (kept.summary.store, kept.summary.records) == ("evidence.db", 1_234)


def test_a_kept_report_is_drawn_as_the_scan_drew_it_with_its_thresholds(items: list[Sighting | Unreadable]) -> None:
    kept = _kept(items)
    stream = BytesIO()
    writer = HTMLWriter(stream)
    for session in kept.sessions:
        writer.add(session, kept.summary.thresholds)
    writer.end(kept.summary)
    page = stream.getvalue().decode()
    assert page == _page(items)
    assert "alert from 0.62" in page
    assert "Kept 1,234 records in evidence.db." in page
    assert "recalibrate: the highest scores of these 40 sessions lie higher than" in page


def _population(*states: PopulationState | None) -> PopulationReport | None:
    """Return what is said of the population of several scans, one after the other."""
    summaries = Summaries("2.0")
    for state in states:
        summaries.close(_kept([], replace(RUN, population=state)).summary)
    return summaries.summary().population


def test_the_populations_of_several_scans_are_not_added_up() -> None:
    told = RUN.population
    assert told is not None
    quiet = replace(told, recalibrate=False, direction=None, e_value=0.5)
    alone = _population(None, quiet, None)
    assert alone is not None
    assert (alone.sessions, alone.recalibrate) == (40, False)
    assert _population(quiet, quiet) is None
    assert _population(None) is None
    both = _population(quiet, told)
    assert both is not None
    assert both.recalibrate


def test_totals_count_sessions_of_documents_as_they_count_those_that_were_judged(
    items: list[Sighting | Unreadable],
) -> None:
    judged, told = Totals(), Totals()
    for item in items:
        judged.add(item, _origin(item))
    for session in _kept(items).sessions:
        told.add(session)
    told.add(PART)
    assert judged.actions.total() == judged.sessions
    judged.actions.clear()
    assert {**vars(told), "unreadable": []} == {**vars(judged), "unreadable": []}
    assert (told.settled, told.standings[Standing.KNOWN], told.refused) == (1, 2, 2)


def test_several_documents_and_lines_become_one(items: list[Sighting | Unreadable]) -> None:
    one, two = _kept(items), _kept(items, replace(RUN, store="", thresholds={"margin.untrusted": 0.7, "d.x": 0.5}))
    summaries = Summaries("2.0")
    for document in (one, two, None):
        for session in document.sessions if document else one.sessions:
            summaries.add(session)
        summaries.close(document.summary if document else None)
    whole = summaries.summary()
    assert whole.sessions == 15
    assert whole.calls == 3 * one.summary.calls
    assert whole.unread == 2 * one.summary.unread + sum(map(_unread, one.sessions))
    assert (whole.triage.gone, len(whole.triage.expired), whole.triage.baseline) == (2, 2, "known.json")
    assert (whole.store, whole.records) == ("evidence.db", 2_468)
    assert whole.thresholds == {"d.x": 0.5}, "of a code with two thresholds none is named"
    assert whole.asked is not None
    assert (whole.asked.calls, whole.asked.cost) == (4, 1.0)
    assert (whole.version, whole.calibration) == ("1.0", "c-1")


def _unread(session: SessionReport) -> int:
    return sum(part.parts for part in session.unreadable)


def test_lines_alone_have_the_version_that_retells_them() -> None:
    summaries = Summaries("2.0")
    summaries.close(None)
    whole = summaries.summary()
    assert (whole.version, whole.calibration, whole.asked, whole.thresholds) == ("2.0", None, None, {})
