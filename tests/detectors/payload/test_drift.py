"""Drift of shapes over time: how often it is told without one, how soon with one, and what is kept."""

from __future__ import annotations

import random
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from theodolite.core.contract import Divergence, Kind
from theodolite.detectors.payload.drift import Mover, Rate, ShapeDrift, Shift, attribution
from theodolite.stats.interval import exact_upper


def wrong(pointer: str, kind: Kind = Kind.TYPE_MISMATCH) -> Divergence:
    return Divergence(kind=kind, pointer=pointer)


def watched(drift: ShapeDrift, calls: int, rate: Callable[[int], float], places: int, seed: int) -> list[Shift]:
    """Calls of one operation in which each of some places diverges by itself, at a rate that a call's number gives."""
    chance, told = random.Random(seed), list[Shift]()  # noqa: S311 - a simulation
    every = [wrong(f"/field{place}") for place in range(places)]
    for call in range(1, calls + 1):
        told += drift.update("op", [one for one in every if chance.random() < rate(call)])
    return told


@pytest.mark.parametrize("rate", [0.004, 0.03, 0.3])
def test_without_a_rise_alarms_are_no_more_than_promised(rate: float) -> None:
    # 200 places, 2,500 calls: what is told of them is at most alpha of them, up to the chance of the simulation.
    alpha, places = 0.25, 200
    told = watched(ShapeDrift(alpha=alpha, baseline=200), 2_500, lambda _: rate, places, seed=5)
    alarmed = len({shift.pointer for shift in told})
    assert alarmed <= alpha * places
    assert exact_upper(alarmed, places, 0.01) <= alpha


def test_a_rise_is_told_soon_and_dated() -> None:
    # Power with default settings: of 100 places that rise from 1 in 100 to 3 in 10, at least 95 within 100 calls.
    told = watched(ShapeDrift(), 1_100, lambda call: 0.01 if call <= 1_000 else 0.3, 100, seed=3)
    assert len({shift.pointer for shift in told}) >= 95
    dated = sorted(abs(shift.since - 1_001) for shift in told)
    assert dated[50] <= 10
    for shift in told:
        assert shift.before.interval[1] < shift.now.interval[0]
        assert shift.evidence >= 1 / ShapeDrift().alpha


def test_a_rise_is_told_once_and_its_rate_is_then_the_baseline() -> None:
    told = watched(ShapeDrift(baseline=200), 3_000, lambda call: 0.0 if call <= 500 else 0.5, 20, seed=1)
    assert len(told) == 20


def test_a_name_that_nobody_declared_counts_at_its_parent() -> None:
    drift = ShapeDrift(baseline=10)
    for call in range(60):
        shifts = drift.update("op", [wrong(f"/rows/{call}/invented{call}", Kind.UNKNOWN_FIELD)] if call > 30 else [])
        if shifts:
            break
    assert next(iter(drift.tracks)).split("\x1f") == ["op", "/rows/*/*", "unknown_field"]
    assert "invented" not in msgspec.json.encode(drift).decode()


def test_the_same_place_counts_once_in_a_call() -> None:
    drift = ShapeDrift(baseline=5)
    drift.update("op", [wrong(f"/rows/{index}") for index in range(50)])
    assert [(rate.k, rate.n) for _, _, _, rate, _ in drift.rates()] == [(1, 1)]


def test_rates_are_those_of_the_baseline_and_since() -> None:
    drift = ShapeDrift(baseline=4)
    for call in range(10):
        drift.update("op", [wrong("/a")] if call in {1, 5} else [])
    drift.update("other")
    assert drift.rates() == (("op", "/a", Kind.TYPE_MISMATCH, Rate(1, 4), Rate(1, 6)),)
    assert Rate(0, 0).interval == (0.0, 1.0)


def test_what_is_remembered_is_bounded_and_what_was_forgotten_alarms_nobody() -> None:
    drift = ShapeDrift(baseline=50, limit=20)
    chance = random.Random(2)  # noqa: S311 - a simulation
    told: list[Shift] = []
    for _ in range(4_000):  # each place at a steady rate, far more places than there is room for
        places = {chance.randrange(60) for _ in range(3)}
        told += drift.update("op", [wrong(f"/x{place}") for place in places])
        assert len(drift.tracks) <= 20
    for number in range(100):
        drift.update(f"operation {number}")
    assert len(drift.operations) <= 20
    assert told == []


def test_a_contract_that_was_changed_on_purpose_begins_anew() -> None:
    drift = ShapeDrift(baseline=10)
    for _ in range(40):
        drift.update("op")
    drift.forget("op")
    told = [drift.update("op", [wrong("/a")]) for _ in range(200)]
    assert not any(told)


CALLS = st.lists(
    st.tuples(st.sampled_from(["a", "b"]), st.lists(st.sampled_from(["/x", "/y/0", "/y/1"]), max_size=2)), max_size=60
)


@given(CALLS, st.integers(0, 60))
def test_saved_and_restored_at_any_call_it_says_the_same(calls: list[tuple[str, list[str]]], at: int) -> None:
    whole, torn = ShapeDrift(baseline=3, alpha=0.5, limit=2), ShapeDrift(baseline=3, alpha=0.5, limit=2)
    for place, (operation, pointers) in enumerate(calls):
        if place == at:
            torn = msgspec.json.decode(msgspec.json.encode(torn), type=ShapeDrift)
        seen = [wrong(pointer) for pointer in pointers]
        assert whole.update(operation, seen) == torn.update(operation, seen)
    assert whole == torn


@pytest.mark.parametrize("wrongly", [{"alpha": 0.0}, {"alpha": 0.6}, {"baseline": 0}, {"limit": 0}])
def test_settings_that_promise_nothing_are_refused(wrongly: dict[str, float]) -> None:
    with pytest.raises((ValueError, msgspec.ValidationError), match="no drift is watched"):
        msgspec.convert(wrongly, ShapeDrift)


@pytest.mark.parametrize(
    ("old", "new", "mover"),
    [
        (True, True, Mover.NEITHER),
        (True, False, Mover.CONTRACT),
        (False, True, Mover.BOTH),
        (False, False, Mover.MODEL),
    ],
)
def test_who_moved_follows_from_which_contract_still_fits(old: bool, new: bool, mover: Mover) -> None:  # noqa: FBT001 - a table
    assert attribution(lambda _: old, lambda _: new, {}) is mover
