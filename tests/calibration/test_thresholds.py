from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from theodolite.calibration import thresholds
from theodolite.calibration.sample import Sample
from theodolite.calibration.table import Table
from theodolite.core.assessment import Threshold
from theodolite.core.labels import Known
from theodolite.stats.conformal import least
from theodolite.stats.interval import clopper_pearson

CODE = "a.b"


def sample(number: int, score: float, *, known: Known = Known.CLEAN, task: str = "") -> Sample:
    return Sample(session=f"s-{number}", known=known, task=task, highest={CODE: score})


def fitted(code: str, samples: list[Sample], alpha: float) -> Threshold | None:
    table = Table.of(samples)
    return thresholds.fitted(code, table, table.rows(Known.CLEAN), alpha)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=80), st.sampled_from([0.5, 0.2, 0.1, 0.05]))
def test_at_most_a_share_alpha_of_those_it_was_fitted_on_alarm(scores: list[float], alpha: float) -> None:
    samples = [sample(number, score) for number, score in enumerate(scores)]
    found = fitted(CODE, samples, alpha)
    if len(scores) < least(alpha):
        assert found is None
        return
    assert found is not None
    assert sum(score >= found.alert for score in scores) <= alpha * (len(scores) + 1)


@pytest.mark.parametrize("alpha", [0.1, 0.05])
def test_a_new_clean_session_alarms_with_at_most_that_chance(alpha: float) -> None:
    """The calibration set is drawn anew each time: the promise is over both."""
    rng = Random(11)  # noqa: S311 - a test, drawn alike each time
    trials = 4_000
    alarms = 0
    for _ in range(trials):
        found = fitted(CODE, [sample(number, rng.random() ** 3) for number in range(40)], alpha)
        assert found is not None
        alarms += rng.random() ** 3 >= found.alert
    assert clopper_pearson(alarms, trials)[0] <= alpha


def test_sessions_that_drifted_are_no_part_of_it() -> None:
    clean = [sample(number, 0.1) for number in range(30)]
    drifted = [sample(100 + number, 0.9, known=Known.DRIFTED) for number in range(300)]
    assert fitted(CODE, [*clean, *drifted], 0.05) == fitted(CODE, clean, 0.05)


def test_a_code_that_did_not_speak_has_no_score() -> None:
    found = fitted("other.code", [sample(number, 0.9) for number in range(30)], 0.05)
    assert found is not None
    assert found.alert == 1e-6


def test_sessions_of_one_task_that_are_unlike_the_others_are_not_confirmed() -> None:
    plain = [sample(number, 0.1, task=f"t{number % 20}") for number in range(200)]
    loud = [sample(500 + number, 0.9, task="loud") for number in range(60)]
    found = fitted(CODE, [*plain, *loud], 0.25)
    assert found is not None
    assert found.confirmed
    worse = fitted(CODE, [*plain, *loud], 0.1)
    assert worse is not None
    assert worse.out_of_fold >= 60
    assert not worse.confirmed


def test_too_few_sessions_give_none() -> None:
    assert fitted(CODE, [sample(number, 0.1) for number in range(98)], 0.01) is None
    assert fitted(CODE, [sample(number, 0.1) for number in range(99)], 0.01) is not None


@pytest.mark.parametrize("alpha", [0.0, 1.0, -1.0])
def test_an_alpha_that_is_none_is_refused(alpha: float) -> None:
    with pytest.raises(ValueError, match="alpha"):
        fitted(CODE, [sample(0, 0.1)], alpha)


@given(st.floats(0, 1))
def test_a_threshold_is_over_the_score_that_it_is_made_of(score: float) -> None:
    found = fitted(CODE, [sample(number, score) for number in range(20)], 0.1)
    assert found is not None
    assert score < found.alert <= score + 1.1e-6
    assert found.alert < 1.0 or score > 0.999998
