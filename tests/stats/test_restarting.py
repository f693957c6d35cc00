from __future__ import annotations

import math
from itertools import product
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from theodolite.stats.betting import FRACTIONS, Betting
from theodolite.stats.restarting import Restarting, delay

ALPHA = 0.005


def evidence(draws: tuple[float, ...], every: int) -> float:
    one = Restarting(every=every)
    for draw in draws:
        one.update(draw)
    return one.e_value


@pytest.mark.parametrize("every", [1, 2, 3, 7])
@pytest.mark.parametrize(("low", "up"), [(-1.0, 1.0), (-0.5, 0.96), (-0.04, 1.0)])
def test_over_every_tree_of_draws_with_mean_zero_the_mean_is_one(low: float, up: float, every: int) -> None:
    rise = -low / (up - low)
    total = math.fsum(
        evidence(path, every) * math.prod(rise if draw == up else 1 - rise for draw in path)
        for path in product((low, up), repeat=7)
    )
    assert total == pytest.approx(1.0)


@given(st.lists(st.floats(-1, 1), max_size=60), st.integers(1, 9))
def test_it_is_what_its_periods_came_to_each_with_its_share(draws: list[float], every: int) -> None:
    told = Restarting(every=every)
    for draw in draws:
        told.update(draw)
    parts = [draws[place : place + every] for place in range(0, max(1, len(draws)), every)]
    total = 1.0 / (len(parts) + 1)
    for number, part in enumerate(parts, 1):
        bets = Betting()
        for draw in part:
            bets.update(draw)
        total += bets.e_value / (number * (number + 1))
    assert told.e_value == pytest.approx(total)
    assert 0.0 < told.e_value < math.inf


@given(st.lists(st.floats(-1, 1), max_size=30), st.integers(0, 30))
def test_it_goes_on_from_what_was_saved(draws: list[float], cut: int) -> None:
    one = Restarting(every=4)
    for draw in draws[:cut]:
        one.update(draw)
    other = msgspec.json.decode(msgspec.json.encode(one), type=Restarting)
    for draw in draws[cut:]:
        assert one.update(draw) == other.update(draw)


@pytest.mark.parametrize("bad", [{"every": 0}, {"period": 0}, {"kept": -1.0}, {"kept": math.inf}, {"kept": math.nan}])
def test_a_state_that_is_none_is_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="no bets restart"):
        Restarting(**bad)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def test_a_long_gain_stays_finite_and_a_restart_after_it_too() -> None:
    one = Restarting()
    for _ in range(5_000):
        one.update(1.0)
    assert one.e_value <= 1e300 + 1
    assert math.isfinite(one.e_value)


def _growth(p: float) -> float:
    return max(p * math.log1p(f) + (1 - p) * math.log1p(-f) for f in FRACTIONS)


def measured(p: float, clean: int) -> float:
    """Return the mean delay for draws of 1 and -1: alike for `clean` draws, and then 1 with a chance of p."""
    rng = Random(7)  # noqa: S311 - a simulation
    times: list[int] = []
    for _ in range(60):
        one = Restarting()
        for _ in range(clean):
            one.update(rng.choice((-1.0, 1.0)))
        count = 0
        while one.e_value < 1 / ALPHA and count < 1_000:
            one.update(1.0 if rng.random() < p else -1.0)
            count += 1
        times.append(count)
    return sum(times) / len(times)


@pytest.mark.parametrize("clean", [0, 1_000, 10_000])
@pytest.mark.parametrize("p", [1.0, 0.9])
def test_the_delay_of_a_shift_is_the_stated_one(p: float, clean: int) -> None:
    assert measured(p, clean) == pytest.approx(delay(_growth(p), ALPHA, clean), rel=0.2)


@pytest.mark.parametrize("clean", [1_010, 1_050, 1_090])
def test_a_shift_within_a_period_is_found_no_later(clean: int) -> None:
    assert measured(1.0, clean) <= 1.2 * delay(_growth(1.0), ALPHA, clean)


def test_bets_that_never_begin_anew_grow_deaf() -> None:
    rng = Random(7)  # noqa: S311 - a simulation
    bets, one = Betting(), Restarting()
    for _ in range(10_000):
        draw = rng.choice((-1.0, 1.0))
        bets.update(draw)
        one.update(draw)
    for _ in range(30):
        bets.update(1.0)
        one.update(1.0)
    assert bets.e_value < 1.0
    assert one.e_value > 1 / ALPHA


def test_a_shift_that_does_not_grow_has_no_delay() -> None:
    with pytest.raises(ValueError, match="not found by betting"):
        delay(0.0, ALPHA)
    assert delay(0.05, ALPHA) == math.inf
