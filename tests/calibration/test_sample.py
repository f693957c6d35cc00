"""What is kept of the calls of a session: enough that no fusion of them comes to less than at runtime."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from theodolite.calibration.sample import FRONT, sampled
from theodolite.core.coverage import Coverage
from theodolite.core.labels import Known
from theodolite.core.policy import Action, Decision, Outcome
from theodolite.core.reading import Reading, Signal
from theodolite.runtime.replay import CallRow, Sighting

CODES = ("hijack.call", "x.a", "x.b", "x.c")
SCORES = st.floats(0.01, 1)
CALLS = st.lists(st.dictionaries(st.sampled_from(CODES), SCORES, min_size=1), max_size=60)
WEIGHTS = st.fixed_dictionaries({code: st.floats(0, 5) for code in CODES})


def kept(calls: list[dict[str, float]]) -> tuple[Mapping[str, float], ...]:
    decisions = [
        Decision(
            session="s",
            seq=seq,
            about=seq,
            signals=tuple(
                [
                    Signal(said=Reading(detector=code.partition(".")[0], version="1", code=code, score=score))
                    for code, score in call.items()
                ]
            ),
        )
        for seq, call in enumerate(calls)
    ]
    sighting = Sighting(
        session="s",
        agent="a",
        outcome=Outcome.CLEAN,
        action=Action.LOG_ONLY,
        coverage=Coverage(),
        calls=tuple([CallRow(tool="t", decision=decision) for decision in decisions]),
        decisions=tuple(decisions),
    )
    return sampled(sighting, Known.CLEAN, parts=CODES).front


def highest(calls: list[dict[str, float]] | tuple[Mapping[str, float], ...], weights: Mapping[str, float]) -> float:
    return max([sum(weights[code] * score for code, score in call.items()) for call in calls], default=0.0)


@given(CALLS, WEIGHTS)
def test_what_is_kept_never_comes_to_less_than_the_calls_did(
    calls: list[dict[str, float]], weights: Mapping[str, float]
) -> None:
    """A threshold that is fitted to less lets clean sessions alarm more often than it says."""
    assert highest(kept(calls), weights) >= highest(calls, weights) - 1e-9
    assert len(kept(calls)) <= FRONT


@given(st.lists(st.dictionaries(st.sampled_from(CODES), SCORES, min_size=1), max_size=FRONT), WEIGHTS)
def test_of_few_calls_it_comes_to_the_same(calls: list[dict[str, float]], weights: Mapping[str, float]) -> None:
    assert highest(kept(calls), weights) == pytest.approx(highest(calls, weights))


def test_of_many_calls_that_cannot_be_told_apart_in_advance_the_rest_is_one_that_is_as_high_as_all_of_them() -> None:
    calls = [{"hijack.call": 1 - number / 100, "x.a": number / 200} for number in range(1, 60)]
    front = kept(calls)
    assert len(front) == FRONT
    assert list(front[:-1]) == calls[: FRONT - 1]
    assert front[-1] == {"hijack.call": 1 - FRONT / 100, "x.a": 59 / 200}
