"""How much may be asked of models."""

from __future__ import annotations

import math

from msgspec import Struct

__all__ = ("Budget", "Limit")


class Limit(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """The most of each that may be used; None for no limit.

    `calls` counts answers that were asked for: a query for four samples is four. `tokens` are those of questions and
    answers together, `cost` is in the currency of the models' prices. Raises ValueError for what is below 0 or no
    number.
    """

    calls: int | None = None
    tokens: int | None = None
    cost: float | None = None

    def __post_init__(self) -> None:
        for name in ("calls", "tokens", "cost"):
            value: object = getattr(self, name)
            if value is not None and not (isinstance(value, int | float) and 0 <= value < math.inf):
                raise ValueError(f"a limit of {value} {name} is none: give a number, 0 or more")


class Budget(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """Limits for each session, for all sessions of a Monitor together, and for them in one day, by UTC.

    >>> Budget(session=Limit(calls=20), day=Limit(cost=5.0)).fleet.calls is None
    True
    """

    session: Limit = Limit()
    fleet: Limit = Limit()
    day: Limit = Limit()
