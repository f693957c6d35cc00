from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from theodolite.stats.cusum import Cusum


@given(st.lists(st.floats(-5, 5)), st.floats(-1, 1))
def test_the_sum_is_the_highest_of_all_sums_that_end_here(steps: list[float], allowance: float) -> None:
    cusum = Cusum(allowance=allowance)
    for end in range(len(steps)):
        value = cusum.update(steps[end])
        sums = [sum(step - allowance for step in steps[start : end + 1]) for start in range(end + 1)]
        assert abs(value - max(0.0, *sums)) < 1e-6


def test_an_announced_change_begins_it_anew() -> None:
    cusum = Cusum(allowance=0.0)
    cusum.update(3.0)
    cusum.reset()
    assert cusum.update(1.0) == 1.0
