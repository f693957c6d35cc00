"""Of more calls than a page has room for, those with the highest scores are listed, in their order."""

from __future__ import annotations

import re
from io import BytesIO

from msgspec.structs import replace

from theodolite.core.event import ToolCallProposed
from theodolite.detectors.fusion import HijackFusion
from theodolite.detectors.trajectory.hijack import HijackDetector
from theodolite.redactors.rules import RuleRedactor
from theodolite.reports.document import SessionReport
from theodolite.reports.entries import document, session_report
from theodolite.reports.html.calls import ROOM_FOR_CALLS
from theodolite.reports.html.page import HTMLWriter
from theodolite.reports.limits import ROWS
from theodolite.reports.totals import Run
from theodolite.runtime.monitor import Monitor
from theodolite.runtime.replay import Sighting, replay
from theodolite.testing.sessions import hijacked_session


def _hijacked() -> SessionReport:
    monitor = Monitor([HijackDetector()], fusions=[HijackFusion()], redactor=RuleRedactor())
    (seen,) = replay([replace(event, session="s-1") for event in hijacked_session()], monitor)
    assert isinstance(seen, Sighting)
    assert any(isinstance(event, ToolCallProposed) for event in hijacked_session())
    return session_report(seen)


def _page(session: SessionReport) -> str:
    stream = BytesIO()
    writer = HTMLWriter(stream)
    writer.add(session)
    writer.end(document([], Run(version="1.0")).summary)
    return stream.getvalue().decode()


def _listed(page: str) -> list[int]:
    (part,) = re.findall(r'id="s1-calls">Every call</h4>.*?</section>', page, re.DOTALL)
    return [int(seq) for seq in re.findall(r'<th scope="row">(\d+)</th>', part)]


def test_of_very_many_calls_the_highest_are_listed_in_their_order() -> None:
    session = _hijacked()
    quiet = session.calls[0]
    calls = tuple([replace(quiet, seq=100 + n, score=(n * 7 % 400) / 1_000, arguments=()) for n in range(400)])
    listed = _listed(_page(replace(session, calls=calls)))
    best = sorted(calls, key=lambda call: call.score or 0.0, reverse=True)[: len(listed)]
    assert 50 <= len(listed) <= ROWS
    assert listed == sorted(call.seq for call in best)


def test_what_is_left_out_is_counted_and_the_calls_take_no_more_than_their_room() -> None:
    session = _hijacked()
    calls = tuple([replace(session.calls[1], seq=100 + n) for n in range(400)])
    page = _page(replace(session, calls=calls))
    (part,) = re.findall(r'id="s1-calls">Every call</h4>.*?</section>', page, re.DOTALL)
    listed = _listed(page)
    assert 50 <= len(listed) <= ROWS
    assert listed == [100 + n for n in range(len(listed))]
    assert f"... and {400 - len(listed)} more calls with no higher score: --format json has all" in part
    assert len(part.encode()) < ROOM_FOR_CALLS + 2_000


def test_few_calls_are_listed_all() -> None:
    session = _hijacked()
    assert _listed(_page(session)) == [call.seq for call in session.calls]
