"""Fusions hear what was said of an event, after all detectors and before anything is graded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from msgspec import Struct

from theodolite.core.calibration import Band
from theodolite.core.errors import ConfigError
from theodolite.core.event import Event, GoalStated, ToolCallProposed, TurnEnded
from theodolite.core.reading import Cause, Evidence, Failure, Reading, Signal
from theodolite.core.window import Window
from theodolite.runtime.monitor import Monitor
from theodolite.runtime.session import Session
from theodolite.testing.fakes import QuietDetector, RaisingDetector, ScriptedDetector

CALL = ToolCallProposed(tool="t", arguments={"to": "anna@example.org"})


class Count(Struct):
    heard: int = 0


class Counting:
    """Says how many answers it has heard so far."""

    name = "counting"
    version = "1"
    bands: Mapping[str, Band] = {"counting.all": Band(alert=0.5)}

    def begin(self) -> Count:
        return Count()

    def fuse(
        self, state: Count, event: Event, said: Sequence[Reading | Failure], window: Window
    ) -> tuple[Reading | Failure, ...]:
        del window
        state.heard += len(said)
        if not said:
            return ()
        quoted = (Evidence(kind="counting.why", seqs=(event.seq,), observed="anna@example.org"),)
        score = min(1.0, state.heard / 4)
        return (Reading(detector="counting", version="1", code="counting.all", score=score, evidence=quoted),)


class Nonsense(Counting):
    def fuse(
        self, state: Count, event: Event, said: Sequence[Reading | Failure], window: Window
    ) -> tuple[Reading | Failure, ...]:
        del state, event, window
        if said:
            raise RuntimeError("nothing fits")
        return (Reading(detector="somebody", version="1", code="somebody.else", score=1.0),)


def scripted() -> ScriptedDetector:
    return ScriptedDetector(script={ToolCallProposed: 0.1})


def of_fusion(signals: Sequence[Signal]) -> list[float | Cause]:
    return [
        signal.said.score if isinstance(signal.said, Reading) else signal.said.cause
        for signal in signals
        if signal.said.detector == "counting"
    ]


def test_it_hears_all_that_was_said_of_an_event_and_its_answer_is_graded_like_any() -> None:
    with Monitor([scripted(), QuietDetector()], fusions=[Counting()]).session("s") as session:
        signals = [session.observe(event).signals for event in (GoalStated(text="g"), CALL, CALL, CALL)]
    assert [of_fusion(each) for each in signals] == [[], [0.25], [0.5], [0.75]]
    assert [signal.alarmed for signal in signals[2] if signal.code == "counting.all"] == [True]
    assert signals[2][-1].code == "counting.all"


def test_what_it_quotes_is_redacted() -> None:
    with Monitor([scripted()], fusions=[Counting()]).session("s") as session:
        signal = session.observe(CALL).signals[-1]
    assert isinstance(signal.said, Reading)
    assert "anna" not in signal.said.evidence[0].observed


def test_what_it_remembers_is_saved_and_restored() -> None:
    def monitor() -> Monitor:
        return Monitor([scripted()], fusions=[Counting()])

    first = monitor().session("s")
    for event in (GoalStated(text="g"), CALL):
        first.observe(event)
    restored = monitor().restore(first.save())
    assert restored.observe(CALL).signals == first.observe(CALL).signals
    assert of_fusion(restored.observe(CALL).signals) == [0.75]


def test_one_that_is_new_says_that_it_has_not_heard_the_beginning() -> None:
    saved = Monitor([scripted()]).session("s").save()
    restored = Monitor([scripted()], fusions=[Counting()]).restore(saved)
    assert of_fusion(restored.observe(TurnEnded()).signals) == [Cause.ABANDONED]


def test_a_failure_that_belongs_to_no_event_is_not_heard() -> None:
    with Monitor([], fusions=[Counting()]).session("s") as session:
        session.note(Failure(detector="store", version="1", cause=Cause.ERROR))
        assert of_fusion(session.observe(TurnEnded()).signals) == []


def test_one_that_raises_or_speaks_in_another_name_is_a_failure_and_stops_nothing() -> None:
    with Monitor([scripted()], fusions=[Nonsense()]).session("s") as session:
        assert of_fusion(session.observe(GoalStated(text="g")).signals) == [Cause.MALFORMED]
        decision = session.observe(CALL)
    assert of_fusion(decision.signals) == [Cause.ERROR]
    assert decision.allowed
    assert {signal.code for signal in decision.signals} == {"scripted.scripted", "counting.failure"}


def test_it_hears_the_failure_of_a_detector() -> None:
    with Monitor([RaisingDetector()], fusions=[Counting()]).session("s") as session:
        assert of_fusion(session.observe(CALL).signals) == [0.25]


def test_coverage_says_whether_it_could_judge() -> None:
    def sight(session: Session) -> tuple[int, bool]:
        (found,) = (each for each in session.coverage().detectors if each.detector == "counting")
        return found.spoke, found.blind

    with Monitor([scripted()], fusions=[Counting()]).session("s") as session:
        session.observe(GoalStated(text="g"))
        assert sight(session) == (0, False)
        session.observe(CALL)
        assert sight(session) == (1, False)


def test_names_and_codes_are_told_apart() -> None:
    with pytest.raises(ConfigError, match="two detectors, fusions or verifiers are called counting"):
        Monitor([], fusions=[Counting(), Counting()])
    wrong = Counting()
    wrong.bands = {"other.x": Band(alert=0.5)}
    with pytest.raises(ConfigError, match=r"may not say the code other\.x"):
        Monitor([], fusions=[wrong])
