"""Growth tells linear from quadratic work, and leaves alone what is too cheap to tell."""

from __future__ import annotations

from collections.abc import Callable

from theodolite.testing.checks.cost import growth, update_costs
from theodolite.testing.fakes import QuietDetector


def _linear(size: int) -> Callable[[], object]:
    return lambda: [number * number for number in range(size * 4)]


def _quadratic(size: int) -> Callable[[], object]:
    text = "a" * size
    return lambda: [text.count(letter) for letter in text]


def test_linear_work_doubles() -> None:
    assert 1.0 < growth(_linear, limit=3.0, largest=1 << 20).ratio <= 3.0


def test_quadratic_work_grows_fourfold() -> None:
    found = growth(_quadratic, limit=3.0)
    assert found.ratio > 2.5  # 4 where nothing else runs; linear work gives 2
    assert found.size < 1 << 17


def test_work_that_costs_nothing_does_not_grow() -> None:
    assert growth(lambda _: int, limit=3.0).ratio == 0.0


def test_costs_are_told_by_type_of_event() -> None:
    costs = update_costs(QuietDetector())
    assert {"ToolCallProposed", "MessageObserved", "TurnEnded"} <= costs.keys()
    assert all(early >= 0 and late >= 0 for early, late in costs.values())
