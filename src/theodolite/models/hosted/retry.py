"""How often a provider is asked again, and how long is waited."""

from __future__ import annotations

import math

from msgspec import Struct

from theodolite.core.errors import ConfigError

__all__ = ("Retry",)


class Retry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """How often a request is attempted, and how long is waited in between, in seconds.

    The n-th wait is `first * 2 ** (n - 1)` and up to `jitter` more, at most `longest`; where a provider says how long
    to wait, that long. The defaults are the numbers of the OpenAI and Anthropic SDKs: 2 more attempts, 0.5 s, 8 s.
    Raises ConfigError for less than one attempt, and for times that are none.

    >>> Retry(attempts=1)
    Retry(attempts=1, first=0.5, longest=8.0, jitter=0.5)
    """

    attempts: int = 3
    first: float = 0.5
    longest: float = 8.0
    jitter: float = 0.5

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ConfigError(f"{self.attempts} attempts ask nobody: give 1 or more")
        if not all(math.isfinite(wait) and wait >= 0.0 for wait in (self.first, self.longest, self.jitter)):
            raise ConfigError("waits between attempts are finite numbers of seconds, 0 or more")
