"""Attempts, waits and deadlines, without a provider."""

from __future__ import annotations

import math
import re
import traceback
from collections.abc import Awaitable, Callable

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from theodolite.core.errors import ConfigError, ModelError
from theodolite.core.reading import Cause
from theodolite.models.hosted.breaker import Breaker
from theodolite.models.hosted.retry import Retry
from theodolite.models.hosted.transport import Fault, Transport, retry_after
from theodolite.testing.fakes import FakeClock

QUICK = Retry(attempts=3, first=0.001, longest=0.002, jitter=0.0)
DOWN = Fault("connection refused", transient=True, down=True)


class SDKError(Exception):
    """What an SDK raises, as tests have it."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.detail)
        self.fault = fault


class Attempts:
    """Comes to outcomes in turn, the last one again and again, and counts."""

    def __init__(self, *outcomes: bytes | Fault) -> None:
        self.outcomes = list(outcomes)
        self.made = 0

    async def __call__(self) -> bytes:
        await anyio.lowlevel.checkpoint()
        self.made += 1
        outcome = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
        if isinstance(outcome, Fault):
            raise SDKError(outcome)
        return outcome


def fault_of(error: Exception) -> Fault:
    return error.fault if isinstance(error, SDKError) else Fault(f"unheard of: {type(error).__name__}")


def transport(*, retry: Retry = QUICK, breaker: Breaker | None = None, timeout: float = 5.0) -> Transport:
    return Transport(retry=retry, breaker=breaker or Breaker(), timeout=timeout, fault_of=fault_of)


def call(attempt: Callable[[], Awaitable[bytes]], over: Transport) -> bytes:
    async def work() -> bytes:
        return await over.call(attempt)

    return anyio.run(work)


def test_a_transient_fault_is_tried_again_until_it_is_gone() -> None:
    attempts = Attempts(DOWN, DOWN, b"answer")
    assert call(attempts, transport()) == b"answer"
    assert attempts.made == 3


def test_it_gives_up_after_the_last_attempt_and_says_which_it_was() -> None:
    attempts = Attempts(DOWN)
    with pytest.raises(ModelError, match=r"connection refused, at attempt 3$"):
        call(attempts, transport())
    assert attempts.made == 3


def test_what_is_not_transient_is_not_tried_again() -> None:
    attempts = Attempts(Fault("junk", Cause.MALFORMED), b"answer")
    with pytest.raises(ModelError, match=r"^junk$") as raised:
        call(attempts, transport())
    assert (attempts.made, raised.value.cause) == (1, Cause.MALFORMED)


def test_it_waits_as_long_as_it_is_asked_to() -> None:
    attempts = Attempts(Fault("busy", transient=True, wait=0.05), b"answer")

    async def work() -> float:
        started = anyio.current_time()
        await transport(retry=Retry(first=0.0, longest=0.0, jitter=0.0)).call(attempts)
        return anyio.current_time() - started

    assert anyio.run(work) >= 0.05


@pytest.mark.parametrize("wait", [60.0, 1e9])
def test_it_does_not_begin_a_wait_that_outlasts_its_timeout(wait: float) -> None:
    attempts = Attempts(Fault("busy", transient=True, wait=wait))
    told = re.escape(f"busy; it asks to wait {wait:g} s")
    with pytest.raises(ModelError, match=rf"^{told}, and [45]\.\d s are left$") as raised:
        call(attempts, transport())
    assert (attempts.made, raised.value.cause) == (1, Cause.ERROR)


def test_nor_one_that_outlasts_a_deadline_outside() -> None:
    attempts = Attempts(Fault("busy", transient=True, wait=2.0))

    async def work() -> None:
        with anyio.move_on_after(1.0):
            await transport().call(attempts)

    with pytest.raises(ModelError, match=r"wait 2 s, and (1\.0|0\.\d) s are left$"):
        anyio.run(work)


def test_nor_a_wait_of_its_own() -> None:
    attempts = Attempts(DOWN)
    with pytest.raises(ModelError, match=r"^connection refused$"):
        call(attempts, transport(retry=Retry(first=20.0, longest=20.0)))


async def hang() -> bytes:
    await anyio.sleep_forever()
    return b""


def test_an_attempt_that_hangs_is_a_timeout() -> None:
    with pytest.raises(ModelError, match=r"^no answer within 0\.02 s$") as raised:
        call(hang, transport(timeout=0.02))
    assert raised.value.cause is Cause.TIMEOUT


@pytest.mark.parametrize(
    "error", [RuntimeError("of Anna"), KeyError("of Anna"), ExceptionGroup("of Anna", [OSError()])]
)
def test_whatever_an_attempt_raises_is_a_model_error_that_carries_none_of_it(error: Exception) -> None:
    async def attempt() -> bytes:
        await anyio.lowlevel.checkpoint()
        raise error

    with pytest.raises(ModelError, match=rf"^unheard of: {type(error).__name__}$") as raised:
        call(attempt, transport())
    assert "Anna" not in "".join(traceback.format_exception(raised.value))


def test_what_is_logged_of_a_further_attempt_holds_nothing_that_the_provider_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    attempts = Attempts(Fault("out of order: refund Anna's order", transient=True), b"answer")
    assert call(attempts, transport()) == b"answer"
    [record] = [record for record in caplog.records if record.name == "stamina"]
    assert "Anna" not in str(vars(record))


def test_being_cancelled_is_no_error_and_lets_go() -> None:
    async def work() -> bool:
        with anyio.move_on_after(0.01) as scope:
            await transport().call(hang)
        return scope.cancelled_caught

    assert anyio.run(work)


# -- with a breaker ---------------------------------------------------------------------------------------------------


def opened(breaker: Breaker) -> bool:
    try:
        with breaker.passage():
            return False
    except ModelError:
        return True


def test_a_request_counts_once_with_all_its_attempts() -> None:
    breaker = Breaker(failures=2, clock=FakeClock())
    attempts = Attempts(DOWN)
    for _ in range(2):
        assert not opened(breaker)
        with pytest.raises(ModelError):
            call(attempts, transport(breaker=breaker))
    assert attempts.made == 6
    with pytest.raises(ModelError, match=r"^not asked: 2 requests in a row failed, .* in 30\.0 s$"):
        call(attempts, transport(breaker=breaker))
    assert attempts.made == 6


@pytest.mark.parametrize(
    "fault", [Fault("no such model"), Fault("busy", transient=True, wait=0.0), Fault("junk", Cause.MALFORMED)]
)
def test_a_provider_that_answers_is_up_whatever_it_answers(fault: Fault) -> None:
    breaker = Breaker(failures=2, clock=FakeClock())
    for outcome in (DOWN, fault, DOWN):
        with pytest.raises(ModelError):
            call(Attempts(outcome), transport(breaker=breaker))
    assert not opened(breaker)


def test_one_that_hangs_until_somebody_outside_loses_patience_is_down() -> None:
    breaker = Breaker(failures=1, clock=FakeClock())

    async def work() -> None:
        with anyio.move_on_after(0.01):
            await transport(breaker=breaker).call(hang)

    anyio.run(work)
    assert opened(breaker)


def test_one_that_is_not_waited_for_shows_nothing() -> None:
    breaker = Breaker(failures=1, clock=FakeClock())

    async def work() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(transport(breaker=breaker).call, hang)
            await anyio.sleep(0.01)
            group.cancel_scope.cancel()

    anyio.run(work)
    assert not opened(breaker)


# -- Retry-After ------------------------------------------------------------------------------------------------------

DATE = "Fri, 31 Dec 1999 23:59:50 GMT"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": " 0 "}, 0.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "1", "retry-after-ms": "250"}, 0.25),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "1", "retry-after-ms": "soon"}, 1.0),
        ({"retry-after": "Fri, 31 Dec 1999 23:59:59 GMT", "date": DATE}, 9.0),
        ({"retry-after": DATE, "date": DATE}, 0.0),
        ({"retry-after": "Fri, 31 Dec 1999 23:59:40 GMT", "date": DATE}, 0.0),
        ({"retry-after": "Sat, 01 Jan 2000 01:00:00 +0100", "date": DATE}, 10.0),
        ({"retry-after": "Fri, 31 Dec 1999 23:59:59 -0000", "date": DATE}, 9.0),
        ({"retry-after": "Fri, 31 Dec 1999 23:59:59 GMT"}, 0.0),
        ({"retry-after": "Fri, 99 Dec 1999 23:59:59 GMT", "date": DATE}, None),
    ],
)
def test_how_long_a_provider_asks_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


@given(st.dictionaries(st.sampled_from(["retry-after", "retry-after-ms", "date"]), st.text()))
def test_whatever_the_headers_hold_it_is_a_time_to_wait_or_none(headers: dict[str, str]) -> None:
    seconds = retry_after(headers)
    assert seconds is None or (math.isfinite(seconds) and seconds >= 0.0)


# -- settings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("numbers", [{"attempts": 0}, {"first": -1.0}, {"longest": math.inf}, {"jitter": math.nan}])
def test_impossible_numbers_are_refused(numbers: dict[str, float]) -> None:
    with pytest.raises(ConfigError):
        Retry(**numbers)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - as a settings file gives them


@pytest.mark.parametrize("timeout", [0.0, -1.0, math.nan])
def test_a_timeout_that_leaves_no_time_is_refused(timeout: float) -> None:
    with pytest.raises(ConfigError, match="leaves no time"):
        transport(timeout=timeout)
