"""A probe that was due and could not be put: it is told, it is not clean, and it costs nothing of the cap."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import pytest
from msgspec.structs import replace
from tests.detectors.behavior_answers import AT_ONCE, HASH, HELLO, PROMPT

from theodolite.core.event import AnyEvent, AnyHostEvent, ContextCompacted, ProbeRequested, SystemPromptSet
from theodolite.core.inquiry import Inquiry, Message
from theodolite.core.policy import Outcome, outcome
from theodolite.core.reading import Cause, Failure, Reading
from theodolite.core.snapshot import StateSnapshot
from theodolite.core.window import Window
from theodolite.detectors.behavior.detector import BehaviorDetector, BehaviorSettings, BehaviorState
from theodolite.detectors.behavior.library import ProbeLibrary
from theodolite.detectors.behavior.probe import Probe, ProbeTemplate
from theodolite.redactors.rules import RuleRedactor
from theodolite.runtime.monitor import Monitor
from theodolite.testing.sessions import stamped

THEIRS = SystemPromptSet(prompt_hash=hashlib.sha256(b"You sell.").hexdigest())
COMPACTED = ContextCompacted(before=900, after=100)
NOW = ProbeRequested(reason="now")


def detector(library: ProbeLibrary | None = None) -> BehaviorDetector:
    return BehaviorDetector(BehaviorSettings(system=PROMPT, schedule=AT_ONCE), library=library)


class Unsound(ProbeLibrary, frozen=True):
    """One whose probes are refused before they are put: they expect no answer of any form."""

    def fill(self, template: ProbeTemplate, random: bytes, *, canary: str | None = None, at: float = 0.0) -> Probe:
        return replace(ProbeLibrary.fill(self, template, random, canary=canary, at=at), expected_schema={})


def ran(
    probing: BehaviorDetector, events: Sequence[AnyEvent]
) -> tuple[BehaviorState, list[Reading | Failure | Inquiry]]:
    window, state = Window(secret=b"s"), probing.begin()
    answers: list[Reading | Failure | Inquiry] = []
    for event in stamped(list(events)):
        window.push(event)
        answers += probing.update(state, event, window)
    return state, answers


CASES: list[tuple[list[AnyHostEvent], str]] = [
    ([THEIRS, HELLO], "the system prompt that was configured is not the one of this session"),
    ([], "no message of the session was shown with its text"),
]


@pytest.mark.parametrize(("before", "why"), CASES)
def test_one_that_was_scheduled_is_told_once_and_leaves_the_session_without_enough_evidence(
    before: list[AnyHostEvent], why: str
) -> None:
    monitor = Monitor([detector()], redactor=RuleRedactor(), secret=bytes(range(32)))
    with monitor.session("s-1") as session:
        decisions = [session.observe(event) for event in [*before, *[COMPACTED] * 5]]
    told = [signal.said for decision in decisions for signal in decision.signals]
    assert [(one.cause, one.detail) for one in told if isinstance(one, Failure)] == [(Cause.NO_EVIDENCE, why)]
    assert len(told) == 1
    coverage = session.coverage()
    assert coverage.blind == ("behavior",)
    assert outcome(decisions, blind=coverage.blind) is Outcome.NOT_ENOUGH_EVIDENCE


@pytest.mark.parametrize(("before", "why"), CASES)
def test_it_costs_nothing_of_the_cap_and_comes_as_soon_as_it_can(before: list[AnyHostEvent], why: str) -> None:
    state, answers = ran(detector(), [*before, *[COMPACTED] * 30])
    assert [one.detail for one in answers if isinstance(one, Failure)] == [why]
    assert state.schedule.spent == 0
    state, answers = ran(
        detector(), [*before, *[COMPACTED] * 30, SystemPromptSet(prompt_hash=HASH), replace(HELLO, text="Hello again")]
    )
    assert [type(one) for one in answers] == [Failure, Inquiry]
    assert state.schedule.spent == 1


@pytest.mark.parametrize(("before", "why"), CASES)
def test_who_asks_by_hand_is_told_each_time_and_asks_again(before: list[AnyHostEvent], why: str) -> None:
    state, answers = ran(detector(), [*before, *[NOW] * 30])
    assert [one.detail for one in answers if isinstance(one, Failure)] == [why] * 30
    assert (state.schedule.spent, state.schedule.pending) == (0, ())
    assert len(state.skipped) == 1


def test_what_waits_beside_a_request_by_hand_still_waits() -> None:
    state, _ = ran(detector(), [COMPACTED, NOW])
    assert [trigger.value for trigger in state.schedule.pending] == ["compaction"]


def test_a_snapshot_of_another_session_costs_nothing_either() -> None:
    foreign = StateSnapshot(session_id="s-9", timestamp=0.0, context_window=(Message("user", "Hi."),))
    state, answers = ran(detector(), [HELLO, ProbeRequested(reason="now", snapshot=foreign)])
    assert [one.detail for one in answers if isinstance(one, Failure)] == ["the snapshot is of another session"]
    assert (state.schedule.spent, state.schedule.pending) == (0, ())


def test_probes_that_are_invalid_are_told_and_cost_nothing_and_what_is_remembered_is_bounded() -> None:
    state, answers = ran(detector(Unsound()), [HELLO, *[COMPACTED] * 100])
    failures = [one for one in answers if isinstance(one, Failure)]
    assert len(answers) == len(failures) == len(state.skipped) == 8
    assert {one.cause for one in failures} == {Cause.MALFORMED}
    assert "is invalid" in failures[0].detail
    assert state.schedule.spent == 0
