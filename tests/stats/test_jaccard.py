from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from theodolite.stats.jaccard import jaccard_distance

WORDS = st.frozensets(st.sampled_from("abcdefgh"))


@pytest.mark.parametrize(
    ("a", "b", "distance"),
    [
        ("", "", 1.0),
        ("a", "", 1.0),
        ("a", "a", 0.0),
        ("a", "b", 1.0),
        ("ab", "bc", 2 / 3),
        ("abcd", "abce", 0.4),
    ],
)
def test_known_distances(a: str, b: str, distance: float) -> None:
    assert jaccard_distance(set(a), set(b)) == pytest.approx(distance)


@given(WORDS, WORDS)
def test_it_is_symmetric_and_bounded(a: frozenset[str], b: frozenset[str]) -> None:
    assert jaccard_distance(a, b) == jaccard_distance(b, a)
    assert 0.0 <= jaccard_distance(a, b) <= 1.0


@given(WORDS, WORDS, WORDS)
def test_it_obeys_the_triangle_inequality_on_sets_that_are_not_empty(
    a: frozenset[str], b: frozenset[str], c: frozenset[str]
) -> None:
    if a and b and c:
        assert jaccard_distance(a, c) <= jaccard_distance(a, b) + jaccard_distance(b, c) + 1e-12
