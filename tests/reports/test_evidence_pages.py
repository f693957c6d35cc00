"""Every kind of evidence that the hijack prints leads to a page, and a finding names the page that helps."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO

import pytest
from msgspec.structs import replace

from theodolite.core.event import AnyEvent, GoalStated, SessionEnded, Source, ToolCallProposed, ToolResultObserved
from theodolite.core.intent import Role
from theodolite.core.policy import Outcome
from theodolite.core.reading import Signal
from theodolite.detectors.fusion import HijackFusion
from theodolite.detectors.trajectory.hijack import HijackDetector
from theodolite.redactors.rules import RuleRedactor
from theodolite.reports.entries import session_report, summary
from theodolite.reports.html.page import HTMLWriter
from theodolite.reports.pages import codes, explaining, kinds
from theodolite.reports.totals import Run, Totals
from theodolite.runtime.monitor import Monitor
from theodolite.runtime.replay import Sighting, replay
from theodolite.testing.sessions import hijacked_session

Alarm = Callable[..., Signal]
Saw = Callable[..., Sighting]
Told = Callable[..., str]


def _seen(events: tuple[AnyEvent, ...]) -> Sighting:
    monitor = Monitor([HijackDetector()], fusions=[HijackFusion()], redactor=RuleRedactor())
    (seen,) = replay([replace(event, session="s-1") for event in events], monitor)
    assert isinstance(seen, Sighting)
    return seen


def _page(*items: Sighting) -> str:
    stream, counts = BytesIO(), Totals()
    writer = HTMLWriter(stream)
    for item in items:
        counts.add(item)
        writer.add(session_report(item))
    writer.end(summary(counts, Run(version="1.0")))
    return stream.getvalue().decode()


@pytest.mark.parametrize("kind", ["passage", "carried_link", *Role])
def test_every_kind_of_evidence_of_the_hijack_has_a_page(kind: str) -> None:
    assert kinds()[f"hijack.{kind}"] == "hijack.call"


def test_no_kind_has_the_name_of_a_code() -> None:
    assert not set(kinds()) & set(codes())


@pytest.mark.parametrize(
    ("code", "evidence", "pages"),
    [
        ("fusion.call", ["hijack.passage", "hijack.target"], ("hijack.call", "fusion.call")),
        ("fusion.session", ["fusion.bet", "hijack.passage"], ("fusion.session",)),
        ("fusion.call", ["anomaly.exfiltration"], ("anomaly.exfiltration", "fusion.call")),
        ("margin.untrusted", ["margin.passage"], ("margin.untrusted",)),
        ("x.y", ["x.z"], ("x.y",)),
        ("x.y", [], ("x.y",)),
    ],
)
def test_the_page_of_the_evidence_comes_first(code: str, evidence: list[str], pages: tuple[str, ...]) -> None:
    assert explaining(code, evidence) == pages


def test_a_finding_of_the_fused_score_names_the_page_that_says_what_to_do(told: Told) -> None:
    seen = _seen(tuple(hijacked_session()))
    assert "more:     theodolite explain hijack.call, theodolite explain fusion.call\n" in told(seen)
    more = "<dd><code>theodolite explain hijack.call</code>, <code>theodolite explain fusion.call</code></dd>"
    assert more in _page(seen)


def test_a_finding_without_evidence_names_its_own_page(alarm: Alarm, saw: Saw, told: Told) -> None:
    seen = saw((alarm("margin.untrusted"),))
    assert "more:     theodolite explain margin.untrusted\n" in told(seen)
    assert "<dd><code>theodolite explain margin.untrusted</code></dd>" in _page(seen)


CLEAN = (
    GoalStated(text="What is in report.txt? Mail it to ada@example.org", source=Source.USER),
    ToolCallProposed(tool="read_file", arguments={"path": "report.txt"}),
    ToolResultObserved(tool="read_file", text="Sales rose by 4 %.", source=Source.TOOL),
    ToolCallProposed(tool="send_email", arguments={"to": "ada@example.org", "body": "Sales rose by 4 %."}),
    SessionEnded(),
)


def test_a_clean_session_says_which_call_came_nearest(told: Told) -> None:
    seen = _seen(CLEAN)
    scores = {call.seq: call.score for call in session_report(seen).calls}
    highest = max(scores, key=lambda seq: scores[seq] or 0.0)
    tool = {1: "read_file", 3: "send_email"}[highest]
    run = Run(version="1.0", thresholds={"fusion.call": 0.75})
    text = " ".join(told(seen, run=run).split())
    assert f"highest call: {tool} (event {highest}), score {scores[highest]:.2f}, alarms from 0.75" in text
    assert f"highest call: {tool} (event {highest}), score {scores[highest]:.2f}" in " ".join(told(seen).split())
    assert f"highest call: {tool} (event {highest}), score {scores[highest]:.2f}" in _page(seen)


def test_a_clean_session_without_scores_says_nothing_of_a_highest_call(saw: Saw, told: Told) -> None:
    seen = saw((), outcome=Outcome.CLEAN)
    assert "highest call" not in told(seen)
    assert "highest call" not in _page(seen)


def test_of_very_many_clean_sessions_the_highest_call_of_all_is_told(told: Told) -> None:
    seen = _seen(CLEAN)
    low = _seen((CLEAN[0], CLEAN[1], CLEAN[4]))
    (least,) = [call.score for call in session_report(low).calls]
    most = max(call.score or 0.0 for call in session_report(seen).calls)
    assert least is not None
    items = [replace(low, session=f"low-{n}") for n in range(30)]
    items[17] = replace(seen, session="the-one") if most > least else items[17]
    text = " ".join(told(*items).split())
    named = "the-one" if most > least else "low-0"
    assert text.count("highest call") == 1
    assert "highest call of all: " in text
    assert f"in session {named}" in text
