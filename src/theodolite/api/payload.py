"""The guard of tool calls against a published contract, under the names of agent-airlock's OpenAPI guard.

The shape check is exact: what it denies, the contract denies. For whole sessions the same check is the detector
`payload`; `OpenAPIDriftGuard.contracts` is what it takes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from threading import Lock
from typing import ParamSpec, Protocol, TypeVar

from msgspec import UNSET
from msgspec.structs import replace

from theodolite.api.binding import Check, checked_before
from theodolite.api.decisions import (
    DriftMode,
    OpenAPIDivergence,
    OpenAPIDivergenceKind,
    OpenAPIDriftDecision,
    OpenAPIDriftRate,
    OpenAPIDriftVerdict,
    OpenAPIDriftViolation,
)
from theodolite.api.specified import Model, Spec, contracts_of
from theodolite.core.arguments import pointer
from theodolite.core.contract import Contract, Divergence, Kind
from theodolite.core.errors import ConfigError
from theodolite.core.text import brief, inert
from theodolite.detectors.payload.answering import message, unknown
from theodolite.detectors.payload.drift import Mover, Rate, ShapeDrift, Shift, attribution
from theodolite.detectors.payload.engine import Checker
from theodolite.detectors.payload.naming import Name, Naming, meant
from theodolite.detectors.payload.repair import Step, mending, plan

__all__ = (
    "DriftMode",
    "Model",
    "Mover",
    "OpenAPIDivergence",
    "OpenAPIDivergenceKind",
    "OpenAPIDriftDecision",
    "OpenAPIDriftGuard",
    "OpenAPIDriftRate",
    "OpenAPIDriftVerdict",
    "OpenAPIDriftViolation",
    "Rate",
    "ShapeDrift",
    "Shift",
    "Spec",
    "Vaccine",
    "openapi_doc_drift_guard_defaults",
    "vaccinate_openapi",
)

P = ParamSpec("P")
T = TypeVar("T")

_LOG = logging.getLogger("theodolite.payload")
# The paper that agent-airlock's preset names. It measured smells of documentation, and no rate of drift.
_ADVISORY = "https://arxiv.org/abs/2605.14312"
# Places that a line of text names, characters of a pointer and of a field: as many as a finding of the engine has
# (`core.arguments.pointer`); of a name that is the contract's own, and of one that the call made up, which may be a
# secret: less than any key has (our choice).
_LISTED, _LONG, _OURS, _THEIRS = 5, 512, 200, 20
_ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"


class OpenAPIDriftGuard:
    """Holds the arguments of calls against a contract: an OpenAPI or Swagger document, a tool list, or a schema.

    `spec` is the document as a mapping (a list for tools), Contracts that were read before, the Path of a file with it
    (JSON or YAML), or a model class of Pydantic. A plain JSON Schema is the operation `schema`; that of a file has the
    name of the file without its ending, that of a model the name of the class. Nothing is ever fetched.

    `drift_mode` is strict (drift is refused), warn (told to the log `theodolite.payload`, one record a call) or shadow
    (returned, and nothing else). With `observe` decisions also tell what the contract does not declare and does not
    forbid either, some 2 us a value.

    With `track` each call of a known operation counts: `rates` tells how often they diverge and where, and a decision
    has `shifts` once that has become more often than it was. It takes True, or a ShapeDrift with a baseline of its own
    or restored from JSON; `drift` is the one in use. Retries of one call count as calls. Safe for threads.

    Raises ConfigError, with the place in the document, for one that cannot be held against, and for another mode.

    >>> guard = OpenAPIDriftGuard(spec=[{"name": "pay", "inputSchema": {
    ...     "type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}}])
    >>> decision = guard.evaluate(operation_id="pay", args={"amount": "12"})
    >>> decision.allowed, [(one.kind.value, one.field, one.expected, one.observed) for one in decision.divergences]
    (False, [('type_mismatch', 'amount', 'integer', 'string')])
    """

    def __init__(
        self,
        *,
        spec: Spec,
        drift_mode: str = DriftMode.STRICT,
        observe: bool = False,
        track: bool | ShapeDrift = False,
    ) -> None:
        self.mode = _mode(drift_mode)
        self.drift = _drift(track)
        self._counting = Lock()
        self._observes = observe
        self.contracts = contracts_of(spec)
        self._checker = Checker(self.contracts)
        self._naming = Naming(self.contracts)
        # What is decided of nearly every call is the same object each time: it is frozen.
        self._fitting = {
            name: _fits(name, self.contracts.find(name))
            for name in (*self.contracts.contracts, *self.contracts.aliases)
        }
        self._looks_on = observe or self.drift is not None

    def evaluate(self, *, operation_id: str, args: object = None) -> OpenAPIDriftDecision:
        """Return what to do about a call; what it was given is neither changed nor kept.

        `args` are the flat arguments by name, which are taken to parameters and body by name, or the body itself where
        it is no object; None is a call without any, and without a body. Does not raise for what `args` holds.
        """
        fitting = self._fitting.get(operation_id) if _is_text(operation_id) else None
        if fitting is None:
            return self._unknown(operation_id)
        arguments = UNSET if args is None else args
        found = self._checker.check(operation_id, arguments)
        if not found and not self._looks_on:
            return fitting
        return self._decided(operation_id, arguments, found)

    def _decided(
        self, operation_id: str, arguments: object, found: tuple[Divergence, ...], twice: tuple[str, ...] = ()
    ) -> OpenAPIDriftDecision:
        contracts = self.contracts.contracts
        contract = contracts[operation_id if operation_id in contracts else self.contracts.aliases[operation_id]]
        if self._observes:
            found += self._checker.observe(operation_id, arguments)
        found = (*map(_twice, twice), *found)
        shifts = self._counted(contract.name, found) if self.drift is not None else ()
        told = self._told(contract.name, [one for one in found if not one.denies])
        denying = [one for one in found if one.denies]
        made = self._fitting[operation_id]
        if denying:
            # No plan says which of two values is meant.
            made = self._drifted(contract, UNSET if twice else arguments, denying, mends=not twice)
            self._say(made, [f"{one.kind.value}:{self._place(contract.name, one)}" for one in denying])
        return replace(made, observations=told, shifts=shifts)

    def rates(self) -> tuple[OpenAPIDriftRate, ...]:
        """Return how often calls diverged, by operation, place and kind; nothing from a guard that does not track.

        >>> guard = OpenAPIDriftGuard(spec=[{"name": "pay", "inputSchema": {"required": ["amount"]}}], track=True)
        >>> decisions = [guard.evaluate(operation_id="pay", args=args) for args in ({"amount": 1}, {}, {"amount": 2})]
        >>> [(rate.pointer, rate.exactly.value, rate.before.k, rate.before.n) for rate in guard.rates()]
        [('/amount', 'missing_required', 1, 3)]
        """
        if self.drift is None:
            return ()
        with self._counting:
            rates = self.drift.rates()
        return tuple(
            [
                OpenAPIDriftRate(
                    operation_id=name, pointer=pointer, kind=kind.group, exactly=kind, before=before, now=now
                )
                for name, pointer, kind, before, now in rates
            ]
        )

    def attribute(self, *, operation_id: str, args: object = None, pinned: OpenAPIDriftGuard) -> Mover:
        """Return who moved, the model or the contract, by whether `pinned`, the contract as it was, takes the call too.

        `Mover.MODEL` where neither takes it, `CONTRACT` where only the pinned one does, `BOTH` where only the one of
        this guard does, `NEITHER` where both do. An operation that a contract has not is one that it does not take.
        Counts nothing. Raises nothing for what `args` holds.

        >>> old = OpenAPIDriftGuard(spec=[{"name": "pay", "inputSchema": {"required": ["amount"]}}])
        >>> new = OpenAPIDriftGuard(spec=[{"name": "pay", "inputSchema": {"required": ["amount", "currency"]}}])
        >>> new.attribute(operation_id="pay", args={"amount": 3}, pinned=old).value
        'contract'
        """
        arguments = UNSET if args is None else args
        return attribution(partial(pinned._takes, operation_id), partial(self._takes, operation_id), arguments)

    def _takes(self, operation_id: str, arguments: object) -> bool:
        return _is_text(operation_id) and self._checker.accepts(operation_id, arguments)

    def vaccine(
        self, operation_id: str, *, names: Mapping[str, str] | None = None
    ) -> Callable[[Callable[P, T]], Callable[P, T]]:
        """Return the decorator of functions that make calls of an operation (`vaccinate_openapi`).

        Raises ConfigError for an operation that the contract has not, or for none.
        """
        if not _is_text(operation_id):
            raise ConfigError(f"name the operation: {_naming(operation_id)}; {meant(None, self.contracts)}")
        if self.contracts.find(operation_id) is None:
            hint = meant(operation_id, self.contracts)
            raise ConfigError(f"the contract has no operation {brief(operation_id)}: {hint}")

        def check(given: Mapping[str, object], twice: tuple[str, ...]) -> None:
            decision = self._decided(operation_id, given, self._checker.check(operation_id, given), twice)
            if not decision.allowed:
                raise OpenAPIDriftViolation(decision)

        return partial(_checked, names=names, check=check)

    def _counted(self, operation: str, found: Sequence[Divergence]) -> tuple[Shift, ...]:
        if self.drift is None:
            return ()
        kept = [replace(one, pointer=self._naming.place(operation, one)) for one in found]
        with self._counting:
            return self.drift.update(operation, kept)

    def _drifted(
        self, contract: Contract, arguments: object, denying: Sequence[Divergence], *, mends: bool
    ) -> OpenAPIDriftDecision:
        documents, name = self.contracts.documents, contract.name
        repair = plan(contract, documents, arguments, partial(self._checker.accepts, name)) if mends else None
        alone: tuple[Step, ...] = ()
        if mends and repair is None:
            alone = mending(contract, documents, arguments, partial(self._wrong, name), _places(denying))
        return OpenAPIDriftDecision(
            allowed=self.mode is not DriftMode.STRICT,
            verdict=_VERDICTS[self.mode],
            detail=self._detail(name, denying),
            operation_id=name,
            divergences=self._told(name, denying),
            repair=repair,
            retry=message(denying, repair, alone),
        )

    def _wrong(self, name: str, arguments: object) -> frozenset[tuple[str, Kind]]:
        return _places(self._checker.check(name, arguments))

    def _unknown(self, operation_id: str) -> OpenAPIDriftDecision:
        strict = self.mode is DriftMode.STRICT
        decision = OpenAPIDriftDecision(
            allowed=not strict,
            verdict=OpenAPIDriftVerdict.DENY_UNKNOWN_OPERATION if strict else _VERDICTS[self.mode],
            detail=f"the contract has no operation {brief(operation_id)}",
            operation_id=operation_id,
            known_operation=False,
            retry=unknown(operation_id, (*self.contracts.contracts, *self.contracts.aliases)),
        )
        self._say(decision, [])
        return decision

    def _say(self, decision: OpenAPIDriftDecision, divergences: list[str]) -> None:
        if self.mode is DriftMode.WARN:
            name = decision.operation_id
            most = _OURS if decision.known_operation else _THEIRS
            called = _shown(name, most) if isinstance(name, str) else brief(name)
            extra = {"operation_id": called, "verdict": decision.verdict.value, "divergences": divergences}
            with suppress(Exception):  # a handler that cannot write is no reason to stop a call that is to be let run
                _LOG.warning("payload drift: %s", decision.detail, extra=extra)

    def _told(self, operation: str, found: Sequence[Divergence]) -> tuple[OpenAPIDivergence, ...]:
        return tuple(
            [
                OpenAPIDivergence(
                    kind=one.kind.group,
                    field=_field(self._naming.names(operation, one)),
                    expected=inert(one.expected),
                    observed=inert(one.observed),
                    exactly=one.kind,
                    pointer=_cut(one.pointer, _LONG),
                    location=one.location,
                    keyword=one.keyword,
                )
                for one in found
            ]
        )

    def _place(self, operation: str, one: Divergence) -> str:
        """Return a pointer as a log may show it."""
        return _cut("".join([f"/{_named(name)}" for name in self._naming.names(operation, one)]), _LONG)

    def _detail(self, operation: str, denying: Sequence[Divergence]) -> str:
        fields = [f"{one.kind.value}:{_field(self._naming.names(operation, one))}" for one in denying[:_LISTED]]
        more = f" and {len(denying) - _LISTED} more" if len(denying) > _LISTED else ""
        several = "divergence" if len(denying) == 1 else "divergences"
        return f"{len(denying)} {several} from the contract of {brief(operation)}: {', '.join(fields)}{more}"


_VERDICTS = {
    DriftMode.STRICT: OpenAPIDriftVerdict.DENY_DRIFT,
    DriftMode.WARN: OpenAPIDriftVerdict.ALLOW_WARN,
    DriftMode.SHADOW: OpenAPIDriftVerdict.ALLOW_SHADOW,
}


def _fits(name: str, contract: Contract | None) -> OpenAPIDriftDecision:
    said = "the arguments fit the contract of"
    if contract is not None and contract.opaque:
        said = "not checked, since no schema is published of the arguments of"
    return OpenAPIDriftDecision(
        allowed=True,
        verdict=OpenAPIDriftVerdict.ALLOW,
        detail=f"{said} {brief(name)}",
        operation_id=name,
    )


class Vaccine(Protocol):
    """Makes the decorator of one operation."""

    def __call__(
        self, operation_id: str, *, names: Mapping[str, str] | None = None
    ) -> Callable[[Callable[P, T]], Callable[P, T]]:
        """Return the decorator for functions that make calls of this operation."""
        ...


def vaccinate_openapi(
    spec: Spec | None = None, *, drift_mode: str | None = None, guard: OpenAPIDriftGuard | None = None
) -> Vaccine:
    """Return what makes decorators: `vaccine("createUser")` guards the function that makes this call.

    It takes what a guard takes, or a ready `guard`, with its mode, its observations and its rates.

    The function's arguments, positional ones too, are bound to its parameters and checked by name before it runs;
    `names` leads from a Python name to that of the contract (`names={"kind": "type"}`), within `**kwargs` too. The
    object of a method and the class of a class method are left out, defaults that were not given too. Two arguments of
    one name are drift. A coroutine is checked when it is awaited, a generator when it is first asked. What a strict
    guard refuses raises OpenAPIDriftViolation, and the function does not run.

    Raises ConfigError when the decorator is made for an operation that the contract has not, or for none, and when it
    is put on what is no function, on one with `*args`, which have no names, or with `names` that it has not or that
    give two parameters one name.

    >>> vaccine = vaccinate_openapi([{"name": "pay", "inputSchema": {"properties": {"amount": {"type": "integer"}}}}])
    >>> @vaccine("pay")
    ... def pay(amount):
    ...     return amount
    >>> pay(3)
    3
    >>> pay("three")
    Traceback (most recent call last):
    theodolite.api.decisions.OpenAPIDriftViolation: ...
    """
    if guard is not None:
        if spec is not None or drift_mode is not None:
            raise ConfigError("a ready guard has its spec and its drift_mode: leave those two out, or the guard")
        return guard.vaccine
    if spec is None:
        raise ConfigError("give a spec, or a ready guard as guard=OpenAPIDriftGuard(spec=...)")
    return OpenAPIDriftGuard(spec=spec, drift_mode=DriftMode.STRICT if drift_mode is None else drift_mode).vaccine


def _checked(function: Callable[P, T], *, names: Mapping[str, str] | None, check: Check) -> Callable[P, T]:
    return checked_before(function, names, check)


def openapi_doc_drift_guard_defaults(*, spec: Spec, drift_mode: str = DriftMode.STRICT) -> dict[str, object]:
    """Return agent-airlock's preset as a plain dict, with its keys; it makes no guard.

    `advisory_url` is the paper that this preset names. That paper measured smells in the documentation of APIs, not how
    often agents drift. Raises ConfigError for another mode.
    """
    mode = _mode(drift_mode)
    return {
        "preset_id": "openapi_doc_drift_guard_2026_05_17",
        "severity": "medium",
        "default_action": "deny" if mode is DriftMode.STRICT else "allow",
        "advisory_url": _ADVISORY,
        "drift_mode": mode.value,
        "spec": spec,
    }


def _mode(given: object) -> DriftMode:
    for mode in DriftMode:
        if mode == given:
            return mode
    raise ConfigError(f"drift_mode is one of {', '.join(DriftMode)}, not {brief(given)}")


def _drift(track: object) -> ShapeDrift | None:
    if isinstance(track, ShapeDrift):
        return track
    if not isinstance(track, bool):
        raise ConfigError(f"track is True, False or a ShapeDrift, not {brief(track)}")
    return ShapeDrift() if track else None


def _is_text(given: object) -> bool:
    """Whether a caller without a type checker gave what the type says."""
    return isinstance(given, str)


def _naming(given: object) -> str:
    """Return how to write the decorator that was given something else than a name, mostly the function itself."""
    name: object = getattr(given, "__name__", None)
    above = f" above {name}" if isinstance(name, str) else ""
    return f'@vaccinate_openapi(spec)(operation_id="..."){above}'


def _places(found: Sequence[Divergence]) -> frozenset[tuple[str, Kind]]:
    return frozenset([(one.pointer, one.kind) for one in found if one.denies])


def _twice(name: str) -> Divergence:
    where = pointer("", name)
    return Divergence(kind=Kind.UNKNOWN_FIELD, pointer=where, expected="one value for a name", observed="another value")


def _field(names: Sequence[Name]) -> str:
    """Return the way to a place as it is written in code: `/items/0/id` as `items[0].id`."""
    field = ""
    for one in names:
        name = _named(one)
        field += f"[{name}]" if one.text.isdecimal() and field else f".{name}" if field else name
    return _cut(field, _LONG)


def _named(name: Name) -> str:
    return _shown(name.text, _OURS if name.declared else _THEIRS)


def _shown(text: str, most: int) -> str:
    """Return somebody else's text as a person or a log may read it."""
    shown = inert(text[:most])
    return shown if len(text) <= most and len(shown) <= most else f"{shown[:most]}{_ELLIPSIS}"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}{_ELLIPSIS}"
