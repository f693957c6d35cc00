"""The tail of a binomial is the sum that it stands for, at either end."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from theodolite.stats.binomial import at_least


@pytest.mark.parametrize("rate", [0.001, 0.1, 0.37, 0.5, 0.8, 0.999])
@pytest.mark.parametrize("draws", [1, 2, 9, 40, 160])
def test_it_is_the_sum_of_the_terms(draws: int, rate: float) -> None:
    exact = Fraction(rate)
    terms = [math.comb(draws, count) * exact**count * (1 - exact) ** (draws - count) for count in range(draws + 1)]
    for hits in range(0, draws + 1, max(1, draws // 40)):
        assert at_least(hits, draws, rate) == pytest.approx(float(sum(terms[hits:])), rel=1e-9, abs=1e-300)


def test_at_the_ends() -> None:
    assert [at_least(hits, 3, 0.4) for hits in (-1, 0, 4)] == [1.0, 1.0, 0.0]
    assert [at_least(2, 3, rate) for rate in (0.0, 1.0)] == [0.0, 1.0]
    assert at_least(0, 0, 0.5) == 1.0


@pytest.mark.parametrize(("draws", "rate"), [(-1, 0.5), (3, -0.1), (3, 1.1), (3, math.nan)])
def test_what_is_no_rate_is_refused(draws: int, rate: float) -> None:
    with pytest.raises(ValueError, match="are none"):
        at_least(1, draws, rate)
