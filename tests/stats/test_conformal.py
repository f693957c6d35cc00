from __future__ import annotations

from random import Random

import pytest

from theodolite.stats.conformal import at_least_so_many, threshold


def test_a_new_session_is_above_the_threshold_as_often_as_alpha_says() -> None:
    rng = Random(7)  # noqa: S311 - a test, drawn alike each time
    alarms = rounds = 4_000
    for _ in range(rounds):
        *clean, new = (rng.gauss(0, 1) for _ in range(100))
        least = threshold(clean, 0.05)
        assert least is not None
        alarms -= new <= least
    # 200 are expected at alpha = 0.05; five standard deviations are 69.
    assert 131 <= alarms <= 269


@pytest.mark.parametrize(("sessions", "enough"), [(98, False), (99, True), (100, True)])
def test_one_in_a_hundred_needs_ninety_nine_sessions(sessions: int, *, enough: bool) -> None:
    assert (threshold([0.0] * sessions, 0.01) is not None) is enough


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1])
def test_alpha_is_a_probability(alpha: float) -> None:
    with pytest.raises(ValueError, match="alpha"):
        threshold([1.0], alpha)


@pytest.mark.parametrize(("n", "alpha", "m"), [(199, 0.005, 100), (39, 0.05, 60), (99, 0.1, 40)])
def test_how_many_new_sessions_alarm_is_told_with_the_threshold_drawn_too(n: int, alpha: float, m: int) -> None:
    rng = Random(5)  # noqa: S311 - a test, drawn alike each time
    trials = 2_000
    counts: list[int] = []
    for _ in range(trials):
        found = threshold([rng.random() for _ in range(n)], alpha)
        assert found is not None
        counts.append(sum(rng.random() > found for _ in range(m)))
    for k in (0, 1, 3, 6):
        share = sum(count >= k for count in counts) / trials
        assert abs(at_least_so_many(k, m, n, alpha) - share) <= 4 * (0.25 / trials) ** 0.5
    with pytest.raises(ValueError, match="give no threshold"):
        at_least_so_many(1, m, 3, 0.01)
