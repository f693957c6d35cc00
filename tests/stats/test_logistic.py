from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from theodolite.stats.logistic import Logistic, logit, probability

FINITE = st.floats(-1e6, 1e6)


@given(FINITE)
def test_a_probability_stays_in_range_and_comes_back_as_log_odds(log_odds: float) -> None:
    assert 0.0 <= probability(log_odds) <= 1.0
    if abs(log_odds) < 30:
        assert logit(probability(log_odds)) == pytest.approx(log_odds, abs=1e-2)


@given(st.dictionaries(st.sampled_from("abc"), FINITE), FINITE, st.floats(0, 10), st.floats(0, 10))
def test_more_of_a_feature_never_lowers_a_score_with_a_positive_weight(
    features: dict[str, float], bias: float, weight: float, more: float
) -> None:
    model = Logistic(bias=bias, weights={"a": weight, "b": -1.0})
    raised = {**features, "a": features.get("a", 0.0) + more}
    assert model.score(raised) >= model.score(features)


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_a_number_that_is_none_is_refused(number: float) -> None:
    with pytest.raises(ValueError, match="not a number"):
        Logistic(bias=number, weights={})
    with pytest.raises(ValueError, match="not a number"):
        Logistic(bias=0.0, weights={"a": number})
