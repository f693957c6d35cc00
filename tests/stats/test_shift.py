"""Whether numbers lie otherwise than those before them: what is counted, what it comes to, and what is never told."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from theodolite.stats.change import Rise
from theodolite.stats.interval import exact_upper
from theodolite.stats.shift import Direction, Shift

NUMBERS = st.lists(st.sampled_from([0.0, 0.1, 0.2, 0.5, 0.9, 0.95, 1.0]), max_size=60)


def shift(n: int = 100, alpha: float = 0.01) -> Shift:
    return Shift.over(high=0.9, over=n // 11, low=0.2, under=n // 4, n=n, alpha=alpha)


@given(NUMBERS)
def test_it_is_the_mean_of_two_rises_each_told_of_its_own_event(numbers: list[float]) -> None:
    ours = shift()
    above, below = Rise.over(9, 100, 0.0025), Rise.over(25, 100, 0.0025)
    reached = False
    for number in numbers:
        for rise, event in ((above, number > 0.9), (below, number < 0.2)):
            if event:
                rise.event()
            else:
                rise.skip(1)
        reached = reached or (above.value + below.value) / 2 >= 200
        assert ours.update(number) is reached
    assert ours.e_value == (above.value + below.value) / 2
    assert ours.numbers == len(numbers)
    assert (ours.found is not None) is reached


@given(st.integers(1, 5_000), st.floats(0.001, 0.2))
def test_alpha_is_spent_on_two_bounds_and_on_the_evidence_and_on_no_more(n: int, alpha: float) -> None:
    ours = shift(n, alpha)
    assert ours.above.upper == min(exact_upper(n // 11, n, alpha / 4), 1 - 1e-9)
    assert ours.below.upper == min(exact_upper(n // 4, n, alpha / 4), 1 - 1e-9)
    assert 2 * (alpha / 4) + 1 / ours.bar == pytest.approx(alpha)


@pytest.mark.parametrize(("number", "direction"), [(0.95, Direction.HIGHER), (0.1, Direction.LOWER)])
@pytest.mark.parametrize("before", [0, 1_000, 10_000])
@pytest.mark.parametrize("n", [100, 1_000])
def test_a_shift_of_all_numbers_is_found_within_what_the_formula_says(
    n: int, before: int, number: float, direction: Direction
) -> None:
    ours = shift(n)
    for _ in range(before):
        assert not ours.update(0.5)
    upper = (ours.above if direction is Direction.HIGHER else ours.below).upper
    stake = 6 * ours.bar * (before + 1) * (before + 2)
    formula = math.log(stake) / math.log(20 / (1 + 19 * upper))
    taken = 1
    while not ours.update(number):
        taken += 1
    assert ours.found is direction
    assert 0.8 * formula - 1 <= taken <= math.ceil(formula)


def test_found_once_it_stays_found_and_keeps_its_direction() -> None:
    ours = shift()
    while not ours.update(0.95):
        pass
    for _ in range(2_000):
        assert ours.update(0.5)
    assert ours.e_value < ours.bar
    for _ in range(200):
        ours.update(0.1)
    assert ours.found is Direction.HIGHER


def test_numbers_that_are_equal_but_for_a_rounding_lie_neither_above_nor_below() -> None:
    ours = shift()
    for number in (math.nextafter(0.9, 1), math.nextafter(0.2, 0)) * 50:
        ours.update(number)
    assert ours.e_value < 1.0


def test_what_all_lies_between_the_two_only_loses() -> None:
    ours = shift()
    for _ in range(500):
        ours.update(0.5)
    assert ours.e_value < 0.1


@pytest.mark.parametrize(
    "wrong",
    [
        {"alpha": 0.0},
        {"alpha": 1.0},
        {"low": 0.95},
        {"over": 101},
        {"under": -1},
        {"n": 0, "over": 0, "under": 0},
        {"low": math.nan},
    ],
)
def test_what_is_no_baseline_is_refused(wrong: dict[str, float]) -> None:
    given: dict[str, float] = {"high": 0.9, "over": 9, "low": 0.2, "under": 25, "n": 100, "alpha": 0.01, **wrong}
    if wrong.get("n") == 0:
        assert Shift.over(high=0.9, over=0, low=0.2, under=0, n=0, alpha=0.01).above.upper == 1 - 1e-9
        return
    with pytest.raises(ValueError, match=r"alpha|low|share"):
        Shift.over(
            high=given["high"],
            over=int(given["over"]),
            low=given["low"],
            under=int(given["under"]),
            n=int(given["n"]),
            alpha=given["alpha"],
        )


@given(st.integers(2, 60), st.data())
def test_the_share_above_a_rank_is_never_counted_lower_where_numbers_are_equal(n: int, data: st.DataObject) -> None:
    """The law that `over` by rank rests on: strictly above the r-th smallest lie at most n - r, ties or none."""
    numbers = sorted(data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))
    rank = data.draw(st.integers(1, n))
    counts = Counter(number > numbers[rank - 1] for number in numbers)
    assert counts[True] <= n - rank
