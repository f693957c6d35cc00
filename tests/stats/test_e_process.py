from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from theodolite.stats.e_process import Maxima, mean


@given(st.lists(st.floats(-8, 8), min_size=2, max_size=30), st.sampled_from([0.5, 1.0, 2.0]))
def test_the_mean_over_exchangeable_sessions_is_one(log_odds: list[float], power: float) -> None:
    # Each of them once the new one, the others the clean ones: what exchangeable means.
    total = sum(
        Maxima.of(log_odds[:place] + log_odds[place + 1 :], power).e_value(log_odds[place])
        for place in range(len(log_odds))
    )
    assert total / len(log_odds) == pytest.approx(1.0)


def test_it_reaches_one_over_alpha_no_more_often_than_alpha() -> None:
    rng = Random(3)  # noqa: S311 - a test, drawn alike each time
    alarms = 0
    for _ in range(2_000):
        clean = Maxima.of([rng.gauss(-2, 1) for _ in range(300)], 2.0)
        alarms += clean.e_value(rng.gauss(-2, 1)) >= 20
    assert alarms <= 0.05 * 2_000


@given(st.floats(-800, 800), st.floats(0, 100))
def test_it_grows_with_the_score_and_ends_at_n_plus_one(score: float, more: float) -> None:
    clean = Maxima.of([-3.0, -1.0, 0.5], 2.0)
    low, high = clean.e_value(score), clean.e_value(score + more)
    assert 0.0 <= low <= high <= 4.0


@pytest.mark.parametrize(("n", "total"), [(0, 1.0), (3, 0.0), (3, math.inf), (3, math.nan)])
def test_sums_that_say_nothing_are_refused(n: int, total: float) -> None:
    with pytest.raises(ValueError, match="finite, positive sum"):
        Maxima(n=n, total=total)


def test_a_process_that_has_not_spoken_stands_at_one() -> None:
    assert mean([], 3) == 1.0
    assert mean([4.0, 0.0], 2) == 2.0
    assert mean([4.0], 4) == (4.0 + 3) / 4
