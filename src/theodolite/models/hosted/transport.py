"""How a request gets to a provider: attempts, waits, one deadline, a breaker.

Only what says nothing about the model is tried again: no connection, no time to connect, 408, 409, 429 and 5xx. An
answer that came is evidence, however odd, and is never asked for a second time. Imported only when a model is made:
needs stamina.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar

import anyio
import msgspec
import stamina
from msgspec import Struct
from msgspec.structs import replace

from theodolite.core.errors import ConfigError, ModelError
from theodolite.core.reading import Cause
from theodolite.models.hosted.breaker import Breaker, Passage
from theodolite.models.hosted.retry import Retry

__all__ = ("Fault", "Transport", "is_down", "may_pass", "retry_after")

_T = TypeVar("_T")


class Fault(Struct, frozen=True, gc=False):
    """What one attempt came to, if it was no answer, in words that hold no secret.

    `transient`: another attempt may do better, after `wait` seconds where the provider says so. `down`: the provider
    could not be reached, or is broken; this is what a breaker counts.
    """

    detail: str
    cause: Cause = Cause.ERROR
    transient: bool = False
    down: bool = False
    wait: float | None = None


class _AttemptError(Exception):
    """Carries a fault through stamina, which logs how its errors represent themselves."""

    def __init__(self, fault: Fault) -> None:
        super().__init__("an attempt failed")  # a provider may repeat in its fault what it was asked
        self.fault = fault


class Transport:
    """Makes the attempts of one request after the other or at once, for one model. Safe for several event loops.

    `timeout` is in seconds, for one request with all its attempts; a deadline of a scope outside that comes earlier
    holds as well, and no wait is begun that would outlast it. `fault_of` says what an error of an attempt means,
    whatever it is. Raises ConfigError for a timeout that is none.
    """

    def __init__(
        self, *, retry: Retry, breaker: Breaker, timeout: float, fault_of: Callable[[Exception], Fault]
    ) -> None:
        if not timeout > 0.0:
            raise ConfigError(f"a timeout of {timeout} s leaves no time for an answer: give more than 0")
        self._retry = retry
        self._breaker = breaker
        self._timeout = timeout
        self._fault_of = fault_of

    async def call(self, attempt: Callable[[], Awaitable[_T]]) -> _T:
        """Return what an attempt gave in the end. Raises ModelError with what the last one failed of."""
        deadline = min(anyio.current_effective_deadline(), anyio.current_time() + self._timeout)
        outcome: _T | Fault = Fault(f"no answer within {self._timeout:g} s", Cause.TIMEOUT, down=True)
        with self._breaker.passage() as passage:
            try:
                with anyio.move_on_after(self._timeout):
                    outcome = await self._attempts(attempt, deadline)
            finally:
                # Whoever is cancelled by a deadline outside has waited in vain; by anything else, it shows nothing.
                if anyio.current_time() >= deadline:
                    passage.down("no answer in time")
            _note(outcome, passage)
        if isinstance(outcome, Fault):
            raise ModelError(outcome.detail, cause=outcome.cause)
        return outcome

    async def _attempts(self, attempt: Callable[[], Awaitable[_T]], deadline: float) -> _T | Fault:
        made, next_wait = 0, 0.0

        def again(error: Exception) -> bool | float:
            if not (isinstance(error, _AttemptError) and error.fault.transient):
                return False
            wait = error.fault.wait
            fits = (next_wait if wait is None else wait) <= deadline - anyio.current_time()
            return fits and (wait is None or wait)

        try:
            async for trial in stamina.retry_context(
                on=again,
                attempts=self._retry.attempts,
                timeout=None,
                wait_initial=self._retry.first,
                wait_max=self._retry.longest,
                wait_jitter=self._retry.jitter,
            ):
                made, next_wait = trial.num, trial.next_wait + self._retry.jitter
                with trial:
                    return await self._made(attempt)
        except _AttemptError as error:
            fault = error.fault
        else:
            raise ModelError("no attempt was made")  # stamina makes at least one
        return _told(fault, made, deadline - anyio.current_time(), last=made >= self._retry.attempts)

    async def _made(self, attempt: Callable[[], Awaitable[_T]]) -> _T:
        try:
            return await attempt()
        except Exception as error:  # noqa: BLE001 - the law of models: whatever their SDKs raise becomes a ModelError
            fault = self._fault_of(error)
        raise _AttemptError(fault)


def _note(outcome: object, passage: Passage) -> None:
    if isinstance(outcome, Fault) and outcome.down:
        passage.down(outcome.detail)
    else:
        passage.up()


def _told(fault: Fault, made: int, left: float, *, last: bool) -> Fault:
    """Return the last fault with how often it was tried, and why not again."""
    detail = fault.detail if made == 1 else f"{fault.detail}, at attempt {made}"
    if fault.transient and fault.wait is not None:
        why = f", and {max(0.0, left):.1f} s are left" if not last else ", and no attempt is left"
        detail = f"{detail}; it asks to wait {fault.wait:g} s{why}"
    return replace(fault, detail=detail)


def may_pass(status: int) -> bool:
    """Whether another attempt may do better after this status of HTTP: as OpenAI's and Anthropic's SDKs have it."""
    return status in {408, 409, 429} or status >= 500  # noqa: PLR2004 - HTTP


def is_down(status: int) -> bool:
    """Whether a provider that answers with this status of HTTP is out of order, rather than the request."""
    return status == 408 or status >= 500  # noqa: PLR2004 - HTTP


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return how many seconds a provider asks to wait, or None.

    Reads `retry-after-ms`, which Azure sends, and Retry-After in seconds or as a date (RFC 9110, section 10.2.3). A
    date is compared with the Date of the same response, where there is one: the clocks of two machines differ.

    >>> retry_after({"retry-after": "1.5"}), retry_after({"retry-after": "soon"})
    (1.5, None)
    >>> retry_after({"retry-after": "Fri, 31 Dec 1999 23:59:59 GMT", "date": "Fri, 31 Dec 1999 23:59:49 GMT"})
    10.0
    """
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1_000
    asked = headers.get("retry-after", "")
    seconds = _number(asked)
    if seconds is not None:
        return seconds
    then, now = _date(asked), _date(headers.get("date", "")) or datetime.now(UTC)
    return None if then is None else max(0.0, (then - now).total_seconds())


def _number(text: str) -> float | None:
    """Return a text as a number that can be waited for."""
    try:
        number = msgspec.convert(text.strip(), float, strict=False)
    except msgspec.ValidationError:
        return None
    return number if math.isfinite(number) and number >= 0.0 else None


def _date(text: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(text)
    except (TypeError, ValueError, OverflowError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)
