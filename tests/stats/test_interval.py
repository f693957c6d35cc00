from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from theodolite.stats.interval import clopper_pearson, exact_lower, exact_upper, wilson


def _at_least(k: int, n: int, rate: Fraction) -> Fraction:
    return sum((math.comb(n, i) * rate**i * (1 - rate) ** (n - i) for i in range(k, n + 1)), Fraction(0))


# As `binom.test` of R prints them.
@pytest.mark.parametrize(
    ("k", "n", "exact"),
    [
        (0, 10, (0.0, 0.3084971)),
        (10, 10, (0.6915029, 1.0)),
        (1, 20, (0.001265089, 0.2487328)),
        (5, 10, (0.1870860, 0.8129140)),
    ],
)
def test_the_exact_interval_is_that_of_the_tables(k: int, n: int, exact: tuple[float, float]) -> None:
    assert clopper_pearson(k, n) == pytest.approx(exact, abs=1e-6)


@given(
    st.integers(1, 40).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.sampled_from([0.5, 0.025, 1e-4])
)
def test_at_the_exact_bound_what_was_seen_has_just_that_probability(share: tuple[int, int], alpha: float) -> None:
    k, n = share
    lower, upper = exact_lower(k, n, alpha), exact_upper(k, n, alpha)
    if k > 0:
        assert float(_at_least(k, n, Fraction(lower))) == pytest.approx(alpha, rel=1e-9)
    if k < n:
        assert float(1 - _at_least(k + 1, n, Fraction(upper))) == pytest.approx(alpha, rel=1e-9)
    assert 0.0 <= lower <= k / n <= upper <= 1.0


@pytest.mark.parametrize("rate", [0.0, 0.01, 0.1, 0.5, 0.97])
def test_the_upper_bound_is_missed_no_more_often_than_alpha(rate: float) -> None:
    n, alpha = 200, 0.01
    missed = sum(
        math.comb(n, k) * rate**k * (1 - rate) ** (n - k) for k in range(n + 1) if exact_upper(k, n, alpha) < rate
    )
    assert missed <= alpha


@pytest.mark.parametrize(("k", "n"), [(3, 100_000), (99_990, 100_000), (50_000, 100_000)])
def test_large_counts_cost_little_and_agree_with_wilson(k: int, n: int) -> None:
    middle = [sum(bounds) / 2 for bounds in (clopper_pearson(k, n), wilson(k, n))]
    assert middle[0] == pytest.approx(middle[1], abs=3e-5)


@pytest.mark.parametrize(
    ("k", "n", "bounds"),
    [(0, 10, (0.0, 0.2775)), (1, 20, (0.0089, 0.2361)), (5, 10, (0.2366, 0.7634)), (10, 10, (0.7225, 1.0))],
)
def test_wilsons_interval_is_that_of_the_tables(k: int, n: int, bounds: tuple[float, float]) -> None:
    assert wilson(k, n) == pytest.approx(bounds, abs=1e-4)


def test_of_nothing_wilson_says_nothing() -> None:
    assert wilson(0, 0) == (0.0, 1.0)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilsons_interval_holds_the_share(share: tuple[int, int]) -> None:
    k, n = share
    low, high = wilson(k, n)
    assert 0.0 <= low <= k / n <= high <= 1.0


def _bound(k: int, n: int) -> float:
    return exact_upper(k, n, 0.1)


@pytest.mark.parametrize("interval", [wilson, clopper_pearson, _bound])
@pytest.mark.parametrize(("k", "n"), [(-1, 3), (4, 3), (0, -1)])
def test_counts_that_are_none_are_refused(interval: Callable[[int, int], object], k: int, n: int) -> None:
    with pytest.raises(ValueError, match="is no share"):
        interval(k, n)


@pytest.mark.parametrize("alpha", [0.0, -0.1, 0.51, math.nan])
def test_a_bound_needs_an_alpha(alpha: float) -> None:
    with pytest.raises(ValueError, match="alpha"):
        exact_upper(1, 3, alpha)
