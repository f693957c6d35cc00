"""How well culprits are found where answers are noisy, and what is said where there is nothing to find."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random

import pytest

from theodolite.detectors.behavior.localization import (
    Ground,
    Localization,
    LocalizationVerdict,
    answered,
    localize,
)
from theodolite.stats.interval import clopper_pearson

RUNS = 200
Drifts = Callable[[frozenset[int], frozenset[int]], bool]


def _runs(
    count: int, culprits: int, drifts: Drifts, *, noise: float = 0.05, budget: int | None = None
) -> list[tuple[frozenset[int], Localization]]:
    """Return the planted culprits of each run and what was found. The search is told of 5 % noise, whatever it is."""
    draw = Random(culprits)  # noqa: S311 - a test, drawn alike each time
    ends: list[tuple[frozenset[int], Localization]] = []

    def drawn(planted: frozenset[int]) -> Callable[[frozenset[int]], bool]:
        return lambda keep: drifts(planted, keep) is not (draw.random() < noise)

    for run in range(RUNS):
        planted = frozenset(draw.sample(range(count), culprits))
        ends.append((planted, answered(localize(count, seed=b"%d" % run, budget=budget), drawn(planted))))
    return ends


def _any(planted: frozenset[int], keep: frozenset[int]) -> bool:
    return not planted.isdisjoint(keep)


def _all(planted: frozenset[int], keep: frozenset[int]) -> bool:
    return planted <= keep


@pytest.mark.parametrize("culprits", [1, 2, 3])
def test_of_64_fragments_every_culprit_is_found_within_ten_calls_for_each_bit(culprits: int) -> None:
    most = 10 * culprits * math.log2(64)
    ends = _runs(64, culprits, _any)
    right = [
        frozenset(found.culprits) == planted and found.confirmed and found.calls <= most for planted, found in ends
    ]
    low, _ = clopper_pearson(sum(right), RUNS)
    assert sum(right) >= 0.95 * RUNS, f"{sum(right)} of {RUNS}, at least {low:.3f}"


def test_of_12_fragments_one_culprit_is_found_within_forty_calls() -> None:
    ends = _runs(12, 1, _any, budget=40)
    assert all(found.calls <= 40 for _, found in ends)
    assert sum(frozenset(found.culprits) == planted and found.confirmed for planted, found in ends) >= 0.95 * RUNS


@pytest.mark.parametrize("culprits", [2, 3])
def test_culprits_that_need_each_other_are_never_cut_out_by_themselves(culprits: int) -> None:
    ends = [found for _, found in _runs(64, culprits, _all)]
    assert not any(found.culprits for found in ends)
    assert sum(found.ground is Ground.NOT_SEPARABLE for found in ends) >= 0.95 * RUNS


@pytest.mark.parametrize("count", [1, 12, 64])
def test_a_coin_is_seldom_believed(count: int) -> None:
    """Each claim about a fixed set is wrong with 0.05 at most, and to cut something out takes two of them."""
    ends = [found for _, found in _runs(count, 0, _any, noise=0.5)]
    cut = sum(found.verdict is LocalizationVerdict.AUTO_EXCISE for found in ends)
    assert cut <= 0.02 * RUNS
    assert sum(found.ground is Ground.UNSETTLED for found in ends) >= 0.8 * RUNS


def test_more_noise_than_was_said_takes_longer_and_names_no_other() -> None:
    ends = _runs(64, 1, _any, noise=0.2)
    assert not any(
        found.verdict is LocalizationVerdict.AUTO_EXCISE and frozenset(found.culprits) != p for p, found in ends
    )
    unsettled = [found for _, found in ends if found.ground is Ground.UNSETTLED]
    assert not any(found.confirmed for found in unsettled)
    assert not any(found.ground is Ground.NOT_SEPARABLE for _, found in ends)
    assert sum(found.contradicted for _, found in ends) > 0.1 * sum(found.calls for _, found in ends)
    assert sum(frozenset(found.culprits) == planted and found.confirmed for planted, found in ends) >= 0.9 * RUNS


@pytest.mark.parametrize("drifts", [True, False])
def test_drift_that_is_not_of_the_fragments_is_not_blamed_on_one(*, drifts: bool) -> None:
    ends = [found for _, found in _runs(64, 0, lambda _planted, _keep: drifts)]
    assert all(found.verdict is not LocalizationVerdict.AUTO_EXCISE for found in ends)
    assert not any(found.culprits for found in ends)
    assert sum(found.verdict is LocalizationVerdict.NO_DRIFT_FROM_TAINT for found in ends) >= 0.95 * RUNS
