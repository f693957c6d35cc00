"""The area is the share of pairs in the right order."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from theodolite.stats.area import area

SCORES = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0, math.inf, -math.inf]), min_size=1, max_size=12)


def test_of_scores_of_which_it_is_known() -> None:
    # The example of scikit-learn's roc_auc_score: labels 0 0 1 1, scores 0.1 0.4 0.35 0.8.
    assert area([0.35, 0.8], [0.1, 0.4]) == 0.75
    assert area([1.0, 2.0], [1.0, 0.0]) == 0.875
    assert area([1.0, 1.0], [1.0]) == 0.5


def test_without_pairs_there_is_none() -> None:
    assert math.isnan(area([], [1.0]))
    assert math.isnan(area([1.0], []))


@given(SCORES, SCORES)
def test_it_is_what_pair_by_pair_comes_to(above: Sequence[float], below: Sequence[float]) -> None:
    pairs = [(one > other) + (one == other) / 2 for one in above for other in below]
    assert area(above, below) == pytest.approx(sum(pairs) / len(pairs))
    assert area(above, below) + area(below, above) == pytest.approx(1.0)
