"""What the session code of the fusion tells beside that of the calls: never the same evidence twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from theodolite.core.calibration import Dataset
from theodolite.core.event import Event, ToolCallProposed, TurnEnded
from theodolite.core.reading import Evidence, Fact, Reading
from theodolite.core.window import Window
from theodolite.detectors.fusion import Fused, Fusing, HijackFusion
from theodolite.stats.e_process import Maxima
from theodolite.stats.logistic import logit

CALL = ToolCallProposed(tool="send_money", arguments={})
CLEAN = Maxima.of([-3.0 + place / 100 for place in range(300)], 2.0)
# A call that no recorded clean session comes near to: by itself it is more than the mean of two bets needs.
STANDS_OUT = 1.0 - 1e-9


def fusion(*processes: str) -> HijackFusion:
    return HijackFusion(
        Fused(
            base="hijack.call",
            alert=0.8,
            alpha=0.05,
            maxima=CLEAN,
            source="a test",
            dataset=Dataset(name="none"),
            processes=processes,
        )
    )


def read(code: str, score: float, **facts: float) -> Reading:
    evidence = (Evidence(kind="test.why", seqs=(0,)),)
    told = tuple([Fact(name, value) for name, value in facts.items()])
    detector = code.partition(".")[0]
    return Reading(detector=detector, version="1", code=code, score=score, evidence=evidence, facts=told)


def alarms(fused: HijackFusion, state: Fusing, *said: Reading, event: Event = CALL) -> bool:
    answers = fused.fuse(state, event, said, Window())
    alert = fused.bands["fusion.session"].alert
    return any(isinstance(one, Reading) and one.code == "fusion.session" and one.score >= alert for one in answers)


def test_calls_that_stand_out_are_not_told_again_where_no_probe_was_put() -> None:
    made = fusion("behavior")
    assert CLEAN.e_value(logit(STANDS_OUT)) / 2 >= 20.0  # the mean of both would alarm
    assert not alarms(made, made.begin(), read("hijack.call", STANDS_OUT))


@pytest.mark.parametrize(("e_value", "told"), [(0.0, False), (0.4, False), (1.0, False), (1.5, True), (90.0, True)])
def test_they_count_beside_probes_that_say_something_and_not_beside_those_that_say_nothing(
    *, e_value: float, told: bool
) -> None:
    made = fusion("behavior")
    state = made.begin()
    alarms(made, state, read("hijack.call", STANDS_OUT))
    assert alarms(made, state, read("behavior.x", 0.5, e_value=e_value), event=TurnEnded()) is told


def test_probes_that_fall_back_take_the_calls_out_again() -> None:
    made = fusion("behavior")
    state = made.begin()
    alarms(made, state, read("hijack.call", STANDS_OUT))
    assert alarms(made, state, read("behavior.x", 0.5, e_value=2.0), event=TurnEnded())
    assert not alarms(made, state, read("behavior.x", 0.5, e_value=0.5), event=TurnEnded())


@given(st.floats(0.0, 1.0), st.floats(0.0, 1e6))
def test_what_is_told_is_never_more_than_the_mean_of_all(score: float, e_value: float) -> None:
    made = fusion("behavior")
    state = made.begin()
    made.fuse(state, CALL, [read("hijack.call", score)], Window())
    answers = made.fuse(state, TurnEnded(), [read("behavior.x", 0.5, e_value=e_value)], Window())
    told = [one.fact("mean") for one in answers if isinstance(one, Reading) and one.code == "fusion.session"]
    whole = (CLEAN.e_value(logit(score)) + e_value) / 2
    assert all(isinstance(one, float) and one <= whole * (1 + 1e-9) + 1e-9 for one in told)
