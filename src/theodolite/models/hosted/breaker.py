"""A circuit breaker: a provider that is down is left alone for a while, and said to be down at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

from theodolite.core.errors import ConfigError, ModelError

__all__ = ("Breaker", "Passage")

# Failures: the default of pybreaker. Rest: our choice, half of its 60 s, which is what a Panel waits for one answer: an
# outage then costs a session no more than one silence.
FAILURES = 5
REST = 30.0


class Passage:
    """One request that a breaker let through. Until it says `up` or `down`, it says nothing of the provider."""

    def __init__(self) -> None:
        self.fault: str | None = None
        self.answered = False

    def up(self) -> None:
        """Say that the provider answered, whatever it said."""
        self.answered, self.fault = True, None

    def down(self, fault: str) -> None:
        """Say that the provider could not be reached, or gave no answer."""
        self.answered, self.fault = False, fault


class Breaker:
    """Counts requests that failed in a row, with all their attempts; after `failures` of them it lets none through.

    When `rest` seconds are over it lets one through, and opens for as long again where that one fails too. Safe for
    several threads and event loops; one that is given to several models counts for them together. `clock` gives seconds
    that only grow. Raises ConfigError for numbers that make no breaker.

    >>> now = 0.0
    >>> breaker = Breaker(failures=1, rest=30.0, clock=lambda: now)
    >>> with breaker.passage() as passage:
    ...     passage.down("connection refused")
    >>> with breaker.passage():
    ...     pass
    Traceback (most recent call last):
    theodolite.core.errors.ModelError: not asked: 1 request in a row failed, the last with: connection refused; ...
    """

    def __init__(
        self, *, failures: int = FAILURES, rest: float = REST, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if failures < 1 or not rest >= 0.0:
            raise ConfigError(f"a breaker of {failures} failures and {rest} s: give 1 or more, and 0 s or more")
        self._limit = failures
        self._rest = rest
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._fault = ""
        self._opened: float | None = None
        self._trying = False

    @contextmanager
    def passage(self) -> Generator[Passage, None, None]:
        """Let one request through. Raises ModelError while open, which says when the next is let through."""
        trial = self._enter()
        passage = Passage()
        try:
            yield passage
        finally:
            self._leave(passage, trial=trial)

    def _enter(self) -> bool:
        with self._lock:
            if self._opened is None:
                return False
            left = self._opened + self._rest - self._clock()
            if left > 0.0 or self._trying:
                raise ModelError(self._refusal(left))
            self._trying = True
            return True

    def _refusal(self, left: float) -> str:
        requests = "1 request" if self._failures == 1 else f"{self._failures} requests"
        when = f"the next is tried in {left:.1f} s" if left > 0.0 else "one is being tried just now"
        return f"not asked: {requests} in a row failed, the last with: {self._fault}; {when}"

    def _leave(self, passage: Passage, *, trial: bool) -> None:
        with self._lock:
            if trial:
                self._trying = False
            if passage.answered:
                self._failures, self._opened = 0, None
            elif passage.fault is not None:
                self._failures += 1
                self._fault = passage.fault
                # What was under way when it opened says nothing new when it fails.
                if trial or (self._opened is None and self._failures >= self._limit):
                    self._opened = self._clock()
