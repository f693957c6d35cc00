from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from theodolite.stats.betting import FRACTIONS, Betting, Odds

DRAWS = st.lists(st.floats(-1, 1), max_size=60)


def wealth(draws: Sequence[float]) -> float:
    betting = Betting()
    for draw in draws:
        betting.update(draw)
    return betting.e_value


@pytest.mark.parametrize("low", [-1.0, -0.5, -0.04])
@pytest.mark.parametrize("up", [1.0, 0.5, 0.96])
def test_over_every_tree_of_draws_with_mean_zero_the_mean_wealth_is_one(low: float, up: float) -> None:
    # Two draws of such chances have a mean of 0; seven in a row make 128 paths, each with its own probability.
    rise = -low / (up - low)
    total = math.fsum(
        wealth(path) * math.prod(rise if draw == up else 1 - rise for draw in path)
        for path in product((low, up), repeat=7)
    )
    assert total == pytest.approx(1.0)


def test_chances_that_follow_what_was_seen_leave_the_mean_at_most_one() -> None:
    # As a hostile source would: the next pair leaks more often the more was lost, and never more in one arm.
    def mean(path: tuple[float, ...]) -> float:
        if len(path) == 6:
            return wealth(path)
        leak = 0.5 if sum(path) < 0 else 0.1
        apart = leak * (1 - leak)
        return apart * (mean((*path, 1.0)) + mean((*path, -1.0))) + (1 - 2 * apart) * mean((*path, 0.0))

    assert mean(()) == pytest.approx(1.0)


def _stops_at_a_gain(path: Sequence[float]) -> bool:
    return wealth(path) >= 3


def _stops_when_two_agree(path: Sequence[float]) -> bool:
    return len(path) >= 2 and path[-1] == path[-2]


def _stops_at_the_first_loss(path: Sequence[float]) -> bool:
    return -1.0 in path


@pytest.mark.parametrize("stops", [_stops_at_a_gain, _stops_when_two_agree, _stops_at_the_first_loss])
def test_no_rule_of_stopping_makes_a_gain(stops: Callable[[Sequence[float]], bool]) -> None:
    def mean(path: tuple[float, ...]) -> float:
        if len(path) == 8 or stops(path):
            return wealth(path)
        return (mean((*path, 1.0)) + mean((*path, -1.0))) / 2

    assert mean(()) == pytest.approx(1.0)


def test_where_draws_are_worse_than_nothing_on_average_the_wealth_falls() -> None:
    rise = 0.4
    total = math.fsum(
        wealth(path) * math.prod(rise if draw == 1.0 else 1 - rise for draw in path)
        for path in product((-1.0, 1.0), repeat=5)
    )
    assert total < 1.0


@given(DRAWS)
def test_it_is_the_mean_over_the_fractions_to_the_last_digit(draws: list[float]) -> None:
    exact = sum(
        math.prod((1 + Fraction(share) * Fraction(draw) for draw in draws), start=Fraction(1)) for share in FRACTIONS
    ) / len(FRACTIONS)
    assert wealth(draws) == pytest.approx(float(exact), rel=1e-9)


@given(DRAWS.flatmap(lambda draws: st.tuples(st.just(draws), st.permutations(draws))))
def test_the_order_of_the_draws_does_not_matter(orders: tuple[list[float], list[float]]) -> None:
    one, other = orders
    assert wealth(one) == pytest.approx(wealth(other), rel=1e-9)


@given(DRAWS, st.integers(0, 60))
def test_a_larger_draw_never_makes_less(draws: list[float], place: int) -> None:
    if draws:
        raised = list(draws)
        raised[place % len(draws)] = 1.0
        assert wealth(raised) >= wealth(draws) * (1 - 1e-12)


@given(DRAWS)
def test_what_a_second_opinion_lowers_is_never_more(draws: list[float]) -> None:
    assert wealth([min(draw, 0.0) for draw in draws]) <= min(1.0, wealth(draws)) * (1 + 1e-12)


@given(DRAWS, DRAWS)
def test_saved_and_restored_it_goes_on_alike(before: list[float], after: list[float]) -> None:
    here = Betting()
    for draw in before:
        here.update(draw)
    there = msgspec.json.decode(msgspec.json.encode(here), type=Betting)
    assert [there.update(draw) for draw in after] == [here.update(draw) for draw in after]
    assert there == here


@pytest.mark.parametrize("draw", [math.nan, math.inf, -math.inf, -1.0000001])
def test_what_is_no_draw_is_refused_and_changes_nothing(draw: float) -> None:
    betting = Betting()
    betting.update(0.5)
    before = msgspec.json.encode(betting)
    with pytest.raises(ValueError, match="outside"):
        betting.update(draw)
    assert msgspec.json.encode(betting) == before


def test_it_is_never_infinite_and_comes_back_from_nothing() -> None:
    betting = Betting()
    for _ in range(5_000):
        assert 0.0 < betting.update(1.0) < math.inf
    for _ in range(15_000):
        assert 0.0 <= betting.update(-1.0) < math.inf
    assert betting.e_value == 0.0
    for _ in range(60_000):
        betting.update(1.0)
    assert betting.e_value > 1.0


@pytest.mark.parametrize("logs", [[], [0.0] * 2, [0.0, 0.0, math.nan], [0.0, 0.0, math.inf]])
def test_a_state_that_is_none_is_refused(logs: list[float]) -> None:
    with pytest.raises(ValueError, match="no state of bets"):
        Betting(logs=logs)


def test_nothing_bet_is_one() -> None:
    assert Betting().e_value == 1.0


@pytest.mark.parametrize(("draw", "needed"), [(1.0, 11), (0.5, 19), (0.959, 12)])
def test_the_cap_leaves_room_for_full_drift(draw: float, needed: int) -> None:
    # 20 probes of two draws are 40; the mean with a process that stays at 1 needs 399 for 1 / 0.005.
    assert wealth([draw] * needed) >= 399 > wealth([draw] * (needed - 1))
    assert wealth([draw] * 40) >= 2 * 399


RATE = st.floats(0.001, 1.0)


@given(RATE, RATE, st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_where_the_bounds_hold_the_bets_against_them_mean_nothing_or_less(
    upper: float, lower: float, less: float, more: float, together: float
) -> None:
    odds = Odds(upper=upper, lower=lower)
    rate, twin = upper * less, lower + (1 - lower) * more
    assert rate * odds.bet(did=True) + (1 - rate) * odds.bet(did=False) <= 1e-9
    # However often both are done at once.
    both = min(rate, twin) * together + max(0.0, rate + twin - 1) * (1 - together)
    chances = {(True, True): both, (True, False): rate - both, (False, True): twin - both}
    chances[False, False] = 1 - math.fsum(chances.values())
    assert math.fsum(chance * odds.beside(did=did, twin=also) for (did, also), chance in chances.items()) <= 1e-9


@given(RATE, st.floats(0, 1))
def test_the_most_that_odds_can_lose_is_one(upper: float, lower: float) -> None:
    odds = Odds(upper=upper, lower=lower)
    assert odds.bet(did=False) == odds.beside(did=False, twin=True) == -1.0
    assert min(odds.bet(did=True), *[odds.beside(did=did, twin=False) for did in (False, True)]) >= -1.0


@pytest.mark.parametrize(("upper", "lower"), [(0.0, 0.5), (1.1, 0.5), (0.5, -0.1), (0.5, 1.1), (math.nan, 0.5)])
def test_odds_need_rates(upper: float, lower: float) -> None:
    with pytest.raises(ValueError, match="no odds"):
        Odds(upper=upper, lower=lower)
