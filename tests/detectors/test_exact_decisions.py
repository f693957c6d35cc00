"""Exact decisions when the artefact changes: what today's gate has no references for is none, and nothing breaks."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.detectors.behavior_answers import HELLO

from theodolite.core.event import InquirySettled
from theodolite.core.gate import Gate, Reason, Shown
from theodolite.core.reading import Fact, Reading
from theodolite.core.window import Window
from theodolite.detectors.behavior.deciding import Exact, evidence
from theodolite.detectors.behavior.detector import SESSION, BehaviorDetector, BehaviorSettings, BehaviorState
from theodolite.detectors.behavior.library import shipped
from theodolite.testing.sessions import stamped

VALUES = tuple(number / 10 for number in range(30))
GATE = Gate(
    model="m-1",
    prompt_hash="",
    library=shipped().version,
    version=BehaviorDetector.version,
    wording="proceed",
    shown=Shown.PROBABILITIES,
    date="2026-11-30",
    pairs=12,
    auc=1.0,
    violation=-3.0,
    twin=3.0,
    decline_share=1.0,
    conform_share=1.0,
    spread=0.1,
    passed=True,
    references={"brief": {"dd_01": VALUES, "se_01": VALUES}},
)
# What an artefact of another day may have of the same model.
OTHERS = {
    "no references": replace(GATE, references={}),
    "another length": replace(GATE, references={"short": GATE.references["brief"]}),
    "other probes": replace(GATE, references={"brief": {"ae_01": VALUES}}),
    "draws": replace(GATE, shown=Shown.SAMPLES, references={}),
    "failed": replace(GATE, passed=False, reasons=(Reason.GAP,)),
}


def test_clean_decisions_take_nothing_from_a_later_one() -> None:
    first, late = Exact(), Exact()
    first.add("brief", "dd_01", 9.0)
    late.add("brief", "se_01", 1.0)
    assert evidence(late, GATE) < 1.0
    late.add("brief", "dd_01", 9.0)
    assert evidence(late, GATE) >= evidence(first, GATE) > 20.0


def settled(*, explained: bool = False) -> InquirySettled:
    """Return a probe as it was recorded: its decision was read from probabilities behind a brief context."""
    said = Reading(
        detector="behavior",
        version=BehaviorDetector.version,
        code="behavior.data_disclosure",
        score=0.2,
        models=("m-1",),
        facts=(
            Fact("probe", "dd_01"),
            Fact("library", shipped().version),
            Fact("observed", 0.0),
            Fact("decided", 1.0),
            Fact("gate", "passed"),
            Fact("isolation", 1.0),
            Fact("measured", "dd_01"),
            Fact("length", "brief"),
            Fact("value", 9.0),
            Fact("explained", float(explained)),
        ),
    )
    return InquirySettled(asker="behavior", about=0, said=(said,), session="s-1")


def probing(gate: Gate) -> BehaviorDetector:
    return BehaviorDetector(BehaviorSettings(scheduled=False), gates={"m-1": gate})


def exactly(detector: BehaviorDetector, state: BehaviorState, *, explained: bool = False) -> float:
    """Return what the exact decisions of the session come to with one more probe."""
    (hello,) = stamped([HELLO])
    window = Window()
    window.push(hello)
    (said,) = detector.update(state, settled(explained=explained), window)
    assert isinstance(said, Reading)
    assert said.code == SESSION
    value = said.fact("exactly")
    assert isinstance(value, float)
    return value


def test_with_the_gate_that_it_was_read_by_it_is_evidence() -> None:
    detector = probing(GATE)
    state = detector.begin()
    assert exactly(detector, state) > 10.0
    assert exactly(detector, state, explained=True) < 1.0


@pytest.mark.parametrize("explained", [False, True])
@pytest.mark.parametrize("name", OTHERS)
def test_a_recorded_decision_that_a_gate_has_no_references_for_is_none_and_probes_go_on(
    name: str, *, explained: bool
) -> None:
    detector = probing(OTHERS[name])
    state = detector.begin()
    for _ in range(3):
        assert exactly(detector, state, explained=explained) == 1.0
    assert state.exact == Exact()
    assert state.accumulator.scored == 3


@pytest.mark.parametrize("name", OTHERS)
def test_a_session_that_goes_on_under_another_artefact_keeps_what_it_has_and_breaks_nowhere(name: str) -> None:
    state = probing(GATE).begin()
    before = exactly(probing(GATE), state)
    for _ in range(2):
        assert exactly(probing(OTHERS[name]), state) == before
    assert evidence(state.exact, OTHERS[name]) == (before if name == "failed" else 1.0)


def test_of_decisions_under_two_artefacts_those_count_that_the_new_one_has_references_for() -> None:
    exact = Exact()
    exact.add("brief", "gone", 9.0)
    exact.add("brief", "dd_01", 9.0)
    exact.add("long", "dd_01", 9.0)
    alone = Exact()
    alone.add("brief", "dd_01", 9.0)
    assert evidence(exact, GATE) == evidence(alone, GATE) > 10.0
