"""One cause, one finding, and one fingerprint."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from theodolite.core.event import Source
from theodolite.core.policy import Action
from theodolite.core.reading import Evidence, Level, Reading, Signal
from theodolite.core.text import printable
from theodolite.reports.findings import findings
from theodolite.runtime.replay import Sighting, Step
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


# -- fingerprints -----------------------------------------------------------------------------------------------------


def _marks(sighting: Sighting) -> list[str]:
    return [finding.fingerprint for finding in findings(sighting)]


def test_a_fingerprint_is_what_its_description_says(alarm: Alarm, saw: Saw) -> None:
    (finding,) = findings(saw((alarm(source=3),)))
    basis = '["margin.untrusted","s-1","a-1","","","",[["send",[]]],0]'
    assert finding.fingerprint == f"v1:{hashlib.sha256(basis.encode()).hexdigest()[:32]}"


def test_the_fingerprint_of_a_known_session_is_that_of_earlier_releases(replayed: Callable[..., Sighting]) -> None:
    """A change here makes every baseline and suppression worthless: then it needs another scheme than v1."""
    assert _marks(replayed(hijacked_session(), "s-1")) == ["v1:aa3ebd2b7ea5c4c9983d530cb4d7f7e3"]


def test_scores_levels_and_versions_change_no_fingerprint(alarm: Alarm, saw: Saw) -> None:
    one = _marks(saw((alarm(source=3),)))
    assert _marks(saw((alarm(source=3, score=0.99, level=Level.STRONG),), action=Action.ELEVATED_REVIEW)) == one
    newer = alarm(source=3)
    assert isinstance(newer.said, Reading)
    assert _marks(saw((replace(newer, said=replace(newer.said, version="9"), calibration="c-9"),))) == one


def test_what_tells_findings_apart_changes_the_fingerprint(alarm: Alarm, saw: Saw) -> None:
    found = [
        saw((alarm(source=3),)),
        saw((alarm("payload.shape", source=3),)),
        saw((alarm(source=3),), session="s-2"),
        saw((alarm(source=3),), agent="a-2"),
        saw((alarm(source=3),), tool="transfer"),
        replace(saw((alarm(source=3),)), steps=(_step("read_file"),)),
        replace(saw((alarm(source=3),)), steps=(_step("fetch"),)),
        saw((_taking(alarm(source=3), "/to"),)),
    ]
    assert len({mark for sighting in found for mark in _marks(sighting)}) == len(found)


def test_calls_of_the_same_tool_join_a_finding_and_one_of_another_tool_makes_it_new(alarm: Alarm, saw: Saw) -> None:
    one, two = alarm(source=3), saw((alarm(source=3),), (alarm(source=3),))
    assert _marks(two) == _marks(saw((one,)))
    first, second = two.calls
    assert _marks(replace(two, calls=(first, replace(second, tool="transfer")))) != _marks(two)


def test_equal_findings_of_a_session_are_told_apart_by_their_order(alarm: Alarm, saw: Saw) -> None:
    both = _marks(saw((alarm(source=3),), (alarm(source=4),)))
    assert len(set(both)) == 2
    assert both[0] == _marks(saw((alarm(source=3),)))[0]
    assert len(_marks(saw((alarm(source=3),), (alarm(source=4),), (alarm(source=3),)))) == 2


@given(names=st.lists(st.text(), min_size=3, max_size=3), again=st.lists(st.text(), min_size=3, max_size=3))
def test_no_text_of_a_session_makes_two_different_findings_alike(
    alarm: Alarm, saw: Saw, names: list[str], again: list[str]
) -> None:
    def marks(session: str, agent: str, tool: str) -> list[str]:
        return _marks(saw((alarm(source=3),), session=session, agent=agent, tool=tool))

    assert (marks(*names) == marks(*again)) is ([*map(printable, names)] == [*map(printable, again)])


def _step(tool: str) -> Step:
    return Step(seq=3, turn=0, event="ToolResultObserved", source=Source.TOOL, tool=tool)


def _taking(signal: Signal, path: str) -> Signal:
    assert isinstance(signal.said, Reading)
    taken = Evidence(kind="margin.argument", seqs=(3, 5), path=path)
    return replace(signal, said=replace(signal.said, evidence=(*signal.said.evidence, taken)))
