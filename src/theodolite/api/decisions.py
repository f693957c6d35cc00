"""What the guard of payloads decides, under the names of agent-airlock's OpenAPI guard."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from theodolite.core.contract import Group, Kind, Location
from theodolite.detectors.payload.drift import Rate, Shift
from theodolite.detectors.payload.repair import Plan

__all__ = (
    "DriftMode",
    "OpenAPIDivergence",
    "OpenAPIDivergenceKind",
    "OpenAPIDriftDecision",
    "OpenAPIDriftRate",
    "OpenAPIDriftVerdict",
    "OpenAPIDriftViolation",
)

# The three kinds of the guard that users come from; `OpenAPIDivergence.exactly` says more.
OpenAPIDivergenceKind = Group


class DriftMode(StrEnum):
    """What a guard does about drift: refuse, tell the log, or only return it."""

    STRICT = "strict"
    WARN = "warn"
    SHADOW = "shadow"


class OpenAPIDriftVerdict(StrEnum):
    """What a guard made of a call."""

    ALLOW = "allow"
    ALLOW_WARN = "allow_warn"
    ALLOW_SHADOW = "allow_shadow"
    DENY_DRIFT = "deny_drift"
    DENY_UNKNOWN_OPERATION = "deny_unknown_operation"


class OpenAPIDivergence(Struct, frozen=True, kw_only=True):
    """One place where a call diverges. Names, places and types: never a value of the call.

    `kind` is one of agent-airlock's three, `exactly` one of ours; `field` is the name of the field, with those that it
    stands in (`address.city`, `items[0].id`), to be read: what a terminal or a log would obey in it is spelled out, and
    a name that the contract does not declare is cut to 20 characters. `pointer` is the JSON Pointer (RFC 6901) into the
    arguments as given: data, with the names as they are, cut to 512 characters.
    """

    kind: OpenAPIDivergenceKind
    field: str
    expected: str = ""
    observed: str = ""
    exactly: Kind
    pointer: str
    location: Location
    keyword: str = ""


class OpenAPIDriftDecision(Struct, frozen=True, kw_only=True):
    """What a guard decided about one call.

    `observations` stop nothing: fields that an open schema takes and does not declare, formats that are advice.
    `known_operation` is False where the contract has no such operation; `retry` then names some that are near. `retry`
    is a short message that may be handed back to the model, and `repair` a plan that makes the arguments valid; neither
    is applied, both are absent where there is nothing to mend, and `repair` where no plan was found. `shifts` are the
    rates that this call shows to have risen, where the guard keeps them: mostly none, and no reason for `allowed`.
    """

    allowed: bool
    verdict: OpenAPIDriftVerdict
    detail: str
    operation_id: str | None
    divergences: tuple[OpenAPIDivergence, ...] = ()
    observations: tuple[OpenAPIDivergence, ...] = ()
    known_operation: bool = True
    repair: Plan | None = None
    retry: str = ""
    shifts: tuple[Shift, ...] = ()


class OpenAPIDriftRate(Struct, frozen=True, kw_only=True):
    """How often calls of an operation diverged at one place in one way: `before` in its baseline, and `now` since then.

    A rate is `k` of `n` calls, with Wilson's `interval` of 95 %. `pointer` has `*` for each index, and for a name that
    nobody declared. Places at which no call diverged have none.
    """

    operation_id: str
    pointer: str
    kind: OpenAPIDivergenceKind
    exactly: Kind
    before: Rate
    now: Rate


class OpenAPIDriftViolation(Exception):  # noqa: N818 - the name that users have in their except clauses
    """A call was refused; `decision` says why. Raised by functions that `vaccinate_openapi` wraps."""

    def __init__(self, decision: OpenAPIDriftDecision) -> None:
        super().__init__(decision.detail if not decision.retry else f"{decision.detail}. {decision.retry}")
        self.decision = decision
