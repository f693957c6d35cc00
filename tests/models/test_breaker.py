"""A breaker opens, rests, tries one, and closes; over threads too."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from theodolite.core.errors import ConfigError, ModelError
from theodolite.models.hosted.breaker import Breaker
from theodolite.testing.fakes import FakeClock


def fail(breaker: Breaker, times: int = 1, fault: str = "refused") -> None:
    for _ in range(times):
        with breaker.passage() as passage:
            passage.down(fault)


def succeed(breaker: Breaker) -> None:
    with breaker.passage() as passage:
        passage.up()


def test_it_opens_after_so_many_failures_in_a_row_and_says_when_it_tries_again() -> None:
    clock = FakeClock(100.0)
    breaker = Breaker(failures=3, rest=30.0, clock=clock)
    fail(breaker, 3, "connection refused")
    clock.now = 112.5
    with pytest.raises(ModelError, match=r"3 requests in a row failed, .*: connection refused; .* tried in 17\.5 s"):
        succeed(breaker)


def test_a_success_in_between_begins_the_count_anew() -> None:
    breaker = Breaker(failures=3, clock=FakeClock())
    fail(breaker, 2)
    succeed(breaker)
    fail(breaker, 2)
    succeed(breaker)


def test_what_says_nothing_of_the_provider_counts_for_nothing() -> None:
    breaker = Breaker(failures=2, clock=FakeClock())
    fail(breaker)
    with pytest.raises(KeyError), breaker.passage():
        raise KeyError("cancelled, say")
    with breaker.passage():
        pass
    fail(breaker)
    with pytest.raises(ModelError):
        succeed(breaker)


def test_after_its_rest_it_lets_one_through_and_closes_when_that_succeeds() -> None:
    clock = FakeClock(0.0)
    breaker = Breaker(failures=1, rest=30.0, clock=clock)
    fail(breaker)
    clock.now = 30.0
    with breaker.passage() as trial:
        with pytest.raises(ModelError, match="one is being tried just now"), breaker.passage():
            pass
        trial.up()
    fail(breaker)


def test_it_opens_again_when_the_trial_fails_and_tries_another_when_the_trial_shows_nothing() -> None:
    clock = FakeClock(0.0)
    breaker = Breaker(failures=5, rest=30.0, clock=clock)
    fail(breaker, 5)
    clock.now = 30.0
    fail(breaker)
    with pytest.raises(ModelError, match=r"6 requests .* in 30\.0 s"):
        succeed(breaker)
    clock.now = 60.0
    with breaker.passage():
        pass
    succeed(breaker)
    succeed(breaker)


def test_what_was_under_way_when_it_opened_does_not_prolong_the_rest() -> None:
    clock = FakeClock(0.0)
    breaker = Breaker(failures=1, rest=30.0, clock=clock)
    with breaker.passage() as late:
        fail(breaker)
        clock.now = 20.0
        late.down("refused")
    clock.now = 30.0
    succeed(breaker)


def test_several_threads_count_together_and_one_of_them_tries() -> None:
    clock = FakeClock(0.0)
    breaker = Breaker(failures=64, rest=30.0, clock=clock)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(fail, [breaker] * 8, [8] * 8))
    clock.now = 30.0
    gate = threading.Barrier(8)

    def attempt(_: int) -> bool:
        gate.wait()
        try:
            with breaker.passage() as passage:
                gate.wait()
                passage.down("refused")
        except ModelError:
            gate.wait()
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(attempt, range(8))) == 1


@given(st.lists(st.sampled_from(["up", "down", "nothing", "time"]), max_size=40), st.integers(1, 4))
def test_it_is_open_only_after_as_many_failures_and_never_after_a_success(steps: list[str], limit: int) -> None:
    clock = FakeClock(0.0)
    breaker = Breaker(failures=limit, rest=10.0, clock=clock)
    row = 0
    for step in steps:
        clock.now += 4.0 if step == "time" else 0.0
        try:
            with breaker.passage() as passage:
                if step == "up":
                    passage.up()
                elif step == "down":
                    passage.down("refused")
            row = {"up": 0, "down": row + 1}.get(step, row)
        except ModelError:
            assert row >= limit
        else:
            assert step != "up" or row == 0


@pytest.mark.parametrize(("failures", "rest"), [(0, 1.0), (1, -1.0), (1, float("nan"))])
def test_a_breaker_of_impossible_numbers_is_refused(failures: int, rest: float) -> None:
    with pytest.raises(ConfigError):
        Breaker(failures=failures, rest=rest)
