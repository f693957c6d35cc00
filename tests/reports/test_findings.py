"""One cause, one finding."""

from __future__ import annotations

from collections.abc import Callable

from theodolite.core.policy import Action
from theodolite.core.reading import Level, Signal
from theodolite.reports.findings import findings
from theodolite.runtime.replay import Sighting
from theodolite.testing.sessions import hijacked_session

Alarm = Callable[..., Signal]
Saw = Callable[..., Sighting]


def test_calls_that_follow_one_passage_are_one_finding(alarm: Alarm, saw: Saw) -> None:
    (finding,) = findings(saw((alarm(source=3),), (), (alarm(source=3, score=0.95),)))
    assert (finding.code, finding.source, finding.calls) == ("margin.untrusted", 3, (5, 7))
    assert finding.worst.about == 7


def test_two_sources_are_two_findings_in_the_order_of_their_alarms(alarm: Alarm, saw: Saw) -> None:
    found = findings(saw((alarm(source=4),), (alarm(source=2),), (alarm(source=4),)))
    assert [(finding.source, finding.calls) for finding in found] == [(4, (5, 7)), (2, (6,))]


def test_two_codes_are_two_findings(alarm: Alarm, saw: Saw) -> None:
    found = findings(saw((alarm(source=3), alarm("payload.shape", source=3))))
    assert [finding.code for finding in found] == ["margin.untrusted", "payload.shape"]


def test_without_evidence_a_finding_rests_on_what_it_is_about(alarm: Alarm, saw: Saw) -> None:
    assert [finding.source for finding in findings(saw((alarm(),), (alarm(),)))] == [5, 6]


def test_what_did_not_alarm_is_no_finding(alarm: Alarm, failure: Alarm, saw: Saw) -> None:
    assert findings(saw((alarm(level=Level.CLEAR), failure()))) == ()


def test_a_code_that_only_acts_is_a_finding_when_it_did(alarm: Alarm, saw: Saw) -> None:
    acting = alarm(finds=False, acts=True)
    assert findings(saw((acting,), action=Action.LOG_ONLY)) == ()
    assert len(findings(saw((acting,), action=Action.ELEVATED_REVIEW))) == 1


def test_a_code_that_neither_acts_nor_finds_is_none_beside_one_that_does(alarm: Alarm, saw: Saw) -> None:
    idle = alarm("shadow_memory.goal_drift", finds=False, acts=False)
    found = findings(saw((alarm(acts=True), idle), action=Action.ELEVATED_REVIEW))
    assert [finding.code for finding in found] == ["margin.untrusted"]


def test_the_strong_alarm_is_the_worst_whatever_the_scores(alarm: Alarm, saw: Saw) -> None:
    (finding,) = findings(saw((alarm(source=1, score=0.9),), (alarm(source=1, score=0.5, level=Level.STRONG),)))
    assert finding.worst.about == 6


def test_a_hijacked_session_is_one_finding_with_both_calls(replayed: Callable[..., Sighting]) -> None:
    (finding,) = findings(replayed(hijacked_session(), "s-1"))
    assert finding.code == "margin.untrusted"
    assert len(finding.calls) == 2
    assert finding.source < min(finding.calls)
