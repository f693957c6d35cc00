"""The evidence that a rate has risen: a supermartingale, whatever is skipped, that rises where there is a rise."""

from __future__ import annotations

import math
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from theodolite.stats.change import RISES, Rise
from theodolite.stats.interval import exact_upper


def exact(path: tuple[bool, ...], upper: float) -> float:
    """The sum over beginnings by its definition, one by one."""
    total = 1.0 / (len(path) + 1)
    for begin in range(1, len(path) + 1):
        for odds in RISES:
            q = upper * odds / (1 + upper * (odds - 1))
            ratio = math.prod(q / upper if event else (1 - q) / (1 - upper) for event in path[begin - 1 :])
            total += ratio / (begin * (begin + 1)) / len(RISES)
    return total


def told(path: tuple[bool, ...], upper: float, *, together: bool) -> float:
    rise, quiet = Rise(upper=upper), 0
    for event in path:
        if event:
            rise.skip(quiet)
            rise.event()
            quiet = 0
        elif together:
            quiet += 1
        else:
            rise.skip(1)
    rise.skip(quiet)
    return rise.value


PATHS = st.lists(st.booleans(), min_size=1, max_size=30).map(tuple)
UPPER = st.sampled_from([0.01, 0.1, 0.5, 0.9])


@given(PATHS, UPPER)
def test_told_one_by_one_it_is_the_sum_over_all_beginnings(path: tuple[bool, ...], upper: float) -> None:
    assert told(path, upper, together=False) == pytest.approx(exact(path, upper))


@given(PATHS, UPPER)
def test_what_is_skipped_together_never_counts_for_more(path: tuple[bool, ...], upper: float) -> None:
    assert told(path, upper, together=True) <= exact(path, upper) * (1 + 1e-9)


@given(UPPER, st.integers(1, 10_000))
def test_many_quiet_trials_cost_what_few_do_and_leave_a_value(upper: float, quiet: int) -> None:
    rise = Rise(upper=upper)
    rise.skip(quiet)
    assert 0.0 < rise.value <= 1.0
    assert rise.trials == quiet


@pytest.mark.parametrize("upper", [0.1, 0.5])
@pytest.mark.parametrize("share", [1.0, 0.5])
def test_over_all_paths_the_mean_is_one_at_the_bound_and_less_below_it(upper: float, share: float) -> None:
    rate = upper * share
    mean = math.fsum(
        told(path, upper, together=False) * math.prod(rate if event else 1 - rate for event in path)
        for path in product((False, True), repeat=9)
    )
    assert mean == pytest.approx(1.0) if share == 1.0 else mean < 1.0


def test_events_in_a_row_make_it_large_and_never_infinite() -> None:
    rise = Rise(upper=0.01)
    values = [rise.event() for _ in range(3_000)]
    assert values[9] > 1_000
    assert math.isfinite(values[-1])


def test_a_baseline_gives_its_bound() -> None:
    assert Rise.over(3, 200, 0.01).upper == exact_upper(3, 200, 0.01)
    assert Rise.over(200, 200, 0.01).upper < 1.0


@pytest.mark.parametrize("upper", [0.0, 1.0, -1.0, math.nan])
def test_a_bound_that_is_none_is_refused(upper: float) -> None:
    with pytest.raises(ValueError, match="no rise"):
        Rise(upper=upper)
