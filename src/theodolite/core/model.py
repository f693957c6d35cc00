"""The port to whatever answers queries."""

from __future__ import annotations

import math
from collections.abc import Awaitable
from typing import Protocol, TypeGuard

from msgspec import Struct

from theodolite.core.inquiry import Query, Reply

__all__ = ("Model", "Price", "Releasing", "releases")


class Model(Protocol):
    """Answers queries.

    Laws: `ask` never runs a tool call, answers the query it was given (`reply.query == query`), raises ModelError and
    nothing else when it cannot, may be cancelled at any await, and is safe for `max_concurrency` callers at once.
    """

    @property
    def name(self) -> str:
        """Return the model id that readings and calibrations carry."""
        ...

    @property
    def max_concurrency(self) -> int:
        """Return how many queries may be under way at once."""
        ...

    def ask(self, query: Query) -> Awaitable[Reply]:
        """Answer one query. Raises ModelError."""
        ...


class Releasing(Protocol):
    """A model that holds something for the event loop that it is asked in, such as open connections."""

    def release(self) -> Awaitable[None]:
        """Give back what is held for the running event loop. A later `ask` may take it anew. Does not raise."""
        ...


def releases(model: object) -> TypeGuard[Releasing]:
    """Whether a model holds something for the event loop that it is asked in."""
    return callable(getattr(model, "release", None))


class Price(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """What a million tokens cost, in a currency that the operator has in mind: all prices in one.

    Raises ValueError when a price is negative or not finite.

    >>> Price(input=3.0, output=15.0).of(input_tokens=1_000, output_tokens=200)
    0.006
    """

    input: float
    output: float

    def __post_init__(self) -> None:
        for price in (self.input, self.output):
            if not (math.isfinite(price) and price >= 0.0):
                raise ValueError(f"{price} is no price of a million tokens: give a number, 0 or more")

    def of(self, *, input_tokens: int, output_tokens: int) -> float:
        """Return what that many tokens cost."""
        return (self.input * input_tokens + self.output * output_tokens) / 1_000_000
