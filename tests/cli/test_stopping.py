"""Signals that wait for a place where nothing is cut in half."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager

import pytest
import typer

from theodolite.cli.exits import Terminated, answering
from theodolite.cli.stopping import Stop
from theodolite.core.errors import ConfigError

STOPS = [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)]


def numbers(*, stop_at: int = -1, number: signal.Signals = signal.SIGINT) -> Iterator[int]:
    for n in range(5):
        if n == stop_at:
            signal.raise_signal(number)
        yield n


@contextmanager
def ended(number: signal.Signals) -> Generator[None, None, None]:
    """Show that the command ended as a signal ends it."""
    with pytest.raises(typer.Exit) as stop:
        yield
    assert stop.value.exit_code == 128 + number


@pytest.mark.parametrize(("number", "kind"), STOPS)
def test_a_stop_ends_the_wait_for_the_next_item(number: signal.Signals, kind: type[KeyboardInterrupt]) -> None:
    with ended(number), answering(), Stop() as stop:
        assert list(stop.until(numbers(stop_at=3, number=number))) == [0, 1, 2]
        assert type(stop.error) is kind
        stop.check()


@pytest.mark.parametrize(("number", "kind"), STOPS)
def test_anywhere_else_it_is_held(number: signal.Signals, kind: type[KeyboardInterrupt]) -> None:
    done: list[int] = []
    with ended(number), answering(), Stop() as stop:
        for n in stop.until(numbers()):
            if n == 2:
                signal.raise_signal(number)
            done.append(n)
        assert type(stop.error) is kind
    assert done == [0, 1, 2]  # what was begun came to its end, and no more


def test_the_second_one_waits_for_nothing() -> None:
    done: list[str] = []
    try:
        with Stop():
            signal.raise_signal(signal.SIGINT)
            done.append("first")
            signal.raise_signal(signal.SIGINT)
            done.append("second")
    except KeyboardInterrupt:
        done.append("ended")
    assert done == ["first", "ended"]


def test_an_error_of_ours_is_a_stop_too_and_another_is_not() -> None:
    def fails(error: Exception) -> Iterator[int]:
        yield 1
        raise error

    with pytest.raises(ConfigError), Stop() as stop:
        assert list(stop.until(fails(ConfigError("no")))) == [1]
    with pytest.raises(OSError, match="disk"), Stop() as stop:
        list(stop.until(fails(OSError("disk"))))


def test_signals_are_given_back() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with Stop():
        assert signal.getsignal(signal.SIGINT) is not before[0]
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_who_ignores_a_signal_is_not_stopped_by_it() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Stop() as stop:
            signal.raise_signal(signal.SIGINT)
            assert stop.error is None
    finally:
        signal.signal(signal.SIGINT, before)


def test_in_another_thread_there_are_no_signals_to_wait_for() -> None:
    done: list[int] = []

    def work() -> None:
        with Stop() as stop:
            done.extend(stop.until(numbers()))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [0, 1, 2, 3, 4]
