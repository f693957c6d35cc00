"""The guard beside the oracle: every operation of a document, valid calls and calls with one planted fault."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol

from msgspec import Struct, field
from tests.quality.payload.bodies import Fill, Unsatisfiable, Written, write
from tests.quality.payload.mutations import Fault, Mutation, mutations, sampled
from tests.quality.payload.oracle import Oracle
from tests.quality.payload.published import Body, Document, Json, Operation, Parameter, token

from theodolite.contracts import read
from theodolite.core.contract import Divergence, Kind, Location
from theodolite.detectors.payload.engine import Checker

__all__ = ("AGAIN", "FILLS", "Case", "Comparison", "Tally")

FILLS: Mapping[str, Fill] = {
    "sparse": Fill(0, 0), "full": Fill(1, 2), "mixed": Fill(0.6, 4), "deep": Fill(0.35, 8)
}  # fmt: skip
AGAIN = 40
"""Mutations of a body for each further operation that has the same schema."""

_TRIES = 20
_Given = list[tuple[Parameter, Json]]
# The kinds that say what was done.
_MISMATCHES = frozenset({
    Kind.ENUM_MISMATCH, Kind.CONST_MISMATCH, Kind.RANGE_MISMATCH, Kind.LENGTH_MISMATCH, Kind.PATTERN_MISMATCH,
    Kind.NOT_UNIQUE,
})  # fmt: skip
_TOLD: Mapping[Fault, frozenset[Kind]] = {
    Fault.DROP: frozenset({Kind.MISSING_REQUIRED, Kind.LENGTH_MISMATCH}),
    Fault.TYPE: frozenset({Kind.TYPE_MISMATCH, *_MISMATCHES}),
    Fault.VALUE: frozenset({Kind.TYPE_MISMATCH, Kind.NULL_NOT_ALLOWED, Kind.UNKNOWN_FIELD, *_MISMATCHES}),
    Fault.NULL: frozenset({Kind.NULL_NOT_ALLOWED}),
    Fault.DOUBLE_ENCODE: frozenset({Kind.DOUBLE_ENCODED, *_MISMATCHES}),
    Fault.UNKNOWN: frozenset({Kind.UNKNOWN_FIELD, Kind.MISSING_REQUIRED}),
    Fault.READ_ONLY: frozenset({Kind.READ_ONLY_SENT}),
}


class Case(NamedTuple):
    """One call that oracle and guard were asked about."""

    document: str
    dialect: str
    operation: str
    place: str
    mutation: Mutation
    allowed: bool
    found: tuple[Divergence, ...]

    @property
    def denied(self) -> bool:
        """Whether the guard denies the call."""
        return any(one.denies for one in self.found)

    @property
    def located(self) -> bool:
        """Whether a finding that denies is where the fault is or within it; at a neighbor, where a name was changed."""
        place, _, name = self.place.partition(" ")
        start = "" if place.endswith(",") else f"/{place}/{token(name)}"
        if place == "body," and isinstance(self.mutation.value, dict):
            start = "/body"
        fault = f"{start}{self.mutation.pointer}"
        if self.mutation.detail == "renamed":
            fault = fault.rpartition("/")[0]
        if self.mutation.detail == "parameter":
            fault = f"/{token(name)}"
        return any(one.denies and f"{one.pointer}/".startswith(f"{fault}/") for one in self.found)

    def told(self) -> str:
        """Say what the case is, without its value."""
        what = f"{self.mutation.fault} ({self.mutation.detail}) at {self.mutation.pointer or 'the whole'}"
        ours = ", ".join(f"{one.kind} at {one.pointer}" for one in self.found[:3]) or "nothing"
        return f"{self.document} {self.operation} {self.place}: {what}; oracle {self.allowed}; guard found {ours}"


class Tally(Struct):
    """What was counted of one document."""

    operations: int = 0
    bodies: int = 0
    without: list[str] = field(default_factory=list)
    valid: int = 0
    planted: int = 0
    possible: int = 0
    rejected: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    caught: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    allowed: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    alarms: int = 0
    denied: Counter[str] = field(default_factory=Counter)
    named: Counter[str] = field(default_factory=Counter)
    located: int = 0


class Guard(Protocol):
    """What is compared: the guard, or what a test puts in its place."""

    def check(
        self, name: str, arguments: object, *, location: Location | None = None, media_type: str = ""
    ) -> tuple[Divergence, ...]: ...


class Comparison:
    """All cases of one document. Counts as it goes."""

    def __init__(self, document: Document, *, most: int, guard: Guard | None = None) -> None:
        self.document = document
        self.oracle = Oracle(document)
        self.checker = guard or Checker(read(document.root))
        self.tally = Tally()
        self.most = most
        self._bodies: dict[tuple[str, str], Written | None] = {}
        self._faults: dict[tuple[str, str], list[Mutation]] = {}

    def cases(self, operations: Iterable[Operation]) -> Iterator[Case]:
        """Yield the cases of these operations, those of parameters among them."""
        for operation in operations:
            self.tally.operations += 1
            parameters = [(one, self._value(one)) for one in operation.parameters]
            given = [(one, value.value) for one, value in parameters if value is not None]
            yield from self._counted(self._of_bodies(operation, given))
            yield from self._counted(self._of_parameters(operation, parameters, given))

    def cases_of_schema(self, tool: str) -> Iterator[Case]:
        """Yield the cases of a tool that the document is the schema of."""
        self.tally.operations += 1
        body = Body("", required=True, pointer="", schema=self.document.root)
        for name in self._filled(body, tool):
            written = self._body(body, name)
            if written is None:
                continue
            sound = Mutation(Fault.NONE, "", "", written.value, written.rules[""])
            for one in (sound, *self._planted(body, name, written)):
                allowed = self.oracle.allows(one.value, schema=body.schema)
                found = self.checker.check(tool, one.value)
                case = Case(self.document.name, "", tool, f"arguments, {name}", one, allowed, found)
                self._count(case)
                yield case

    def excuse(self, case: Case) -> None:
        """Do not count a case in which the oracle is wrong."""
        if case.allowed:
            self.tally.alarms -= 1
        elif case.mutation.fault is not Fault.NONE:
            self.tally.rejected[self._counter(case)] -= 1

    @staticmethod
    def _counter(case: Case) -> tuple[str, str, int]:
        place = case.place.partition(",")[0] if "," in case.place else "parameter"
        return place, str(case.mutation.fault), min(case.mutation.depth, 5)

    def _counted(self, cases: Iterator[Case]) -> Iterator[Case]:
        for case in cases:
            self._count(case)
            yield case

    def _count(self, case: Case) -> None:
        self.tally.alarms += case.allowed and case.denied
        if case.mutation.fault is Fault.NONE:
            self.tally.valid += 1
            return
        self.tally.planted += 1
        key = self._counter(case)
        if case.allowed:
            self.tally.allowed[key] += 1
            return
        self.tally.rejected[key] += 1
        self.tally.caught[key] += case.denied
        if not case.denied:
            return
        fault = str(case.mutation.fault)
        self.tally.denied[fault] += 1
        self.tally.named[fault] += any(one.kind in _TOLD[case.mutation.fault] for one in case.found)
        self.tally.located += case.located

    def _of_bodies(self, operation: Operation, given: _Given) -> Iterator[Case]:
        required = [(one, value) for one, value in given if one.required]
        for body in operation.bodies:
            self.tally.bodies += 1
            for name in self._filled(body, operation.name):
                written = self._body(body, name)
                if written is None:
                    continue
                place = f"body, {name}"
                sound = Mutation(Fault.NONE, "", "", written.value, written.rules[""])
                for one in (sound, *self._planted(body, name, written)):
                    allowed = self.oracle.allows(one.value, pointer=body.pointer, schema=body.schema)
                    if isinstance(one.value, dict):
                        found = self._whole(operation, required, body, one.value)
                    else:  # a whole call could mean a field that is called "body"
                        found = self.checker.check(
                            operation.name, one.value, location=Location.BODY, media_type=body.media_type
                        )
                    yield self._case(operation, place, one, found, allowed=allowed)

    def _filled(self, body: Body, name: str) -> list[str]:
        """Return the fills in which the body can be written."""
        found = [fill for fill in FILLS if self._body(body, fill) is not None]
        if not found:
            self.tally.without.append(f"{name} {body.media_type}")
        return found

    def _planted(self, body: Body, name: str, written: Written) -> list[Mutation]:
        key = _key(body), name
        if key in self._faults:
            return self._faults[key]
        found = list(mutations(written))
        self.tally.possible += len(found)
        self._faults[key] = sampled(found, min(self.most, AGAIN), f"{key}")
        return sampled(found, self.most, f"{key}")

    def _of_parameters(
        self, operation: Operation, written: list[tuple[Parameter, Written | None]], given: _Given
    ) -> Iterator[Case]:
        """Yield the cases of parameters, where the operation can be called without a body or a body can be written."""
        body = next(iter(operation.bodies), None)
        rest = self._body(body, "sparse") if body else None
        if body is not None and rest is None:
            return
        for parameter, value in written:
            if value is None:
                self.tally.without.append(f"{operation.name} ({parameter.location} {parameter.name})")
                continue
            without = [(one, entry) for one, entry in given if one is not parameter]
            sent = rest.value if rest else None
            place = f"{parameter.location} {parameter.name}"
            drop = Mutation(Fault.DROP, "parameter", "", None, value.rules[""])
            allowed = not (parameter.required or parameter.location == "path")
            yield self._case(operation, place, drop, self._whole(operation, without, body, sent), allowed=allowed)
            for one in (Mutation(Fault.NONE, "", "", value.value, value.rules[""]), *mutations(value)):
                allowed = self.oracle.allows(one.value, pointer=parameter.pointer, schema=parameter.schema)
                found = self._whole(operation, [*without, (parameter, one.value)], body, sent)
                yield self._case(operation, place, one, found, allowed=allowed)

    def _whole(
        self, operation: Operation, parameters: _Given, body: Body | None, value: Json
    ) -> tuple[Divergence, ...]:
        """Return what the guard finds in a call with all of its parts."""
        arguments: dict[str, dict[str, Json]] = {}
        for parameter, entry in parameters:
            arguments.setdefault(parameter.location, {})[parameter.name] = entry
        if body is None:
            return self.checker.check(operation.name, arguments)
        return self.checker.check(operation.name, {**arguments, "body": value}, media_type=body.media_type)

    def _case(
        self, operation: Operation, place: str, mutation: Mutation, found: tuple[Divergence, ...], *, allowed: bool
    ) -> Case:
        document = self.document
        return Case(document.name, document.dialect, operation.name, place, mutation, allowed, found)

    def _value(self, parameter: Parameter) -> Written | None:
        key = _key(parameter)
        if (key, "") not in self._bodies:
            self._bodies[key, ""] = self._written(parameter.schema, parameter.pointer, key, "full")
        return self._bodies[key, ""]

    def _body(self, body: Body, name: str) -> Written | None:
        """Return a body that the oracle allows, in that fill; the same for all operations that share the schema."""
        key = _key(body), name
        if key not in self._bodies:
            self._bodies[key] = self._written(body.schema, body.pointer, key[0], name)
        return self._bodies[key]

    def _written(self, schema: Json, pointer: str, seed: str, name: str) -> Written | None:
        for count in range(_TRIES):
            try:
                written = write(self.document, schema, f"{seed} {name} {count}", FILLS[name])
            except Unsatisfiable:
                continue
            # Only the oracle refuses a whole value for what is meant for properties.
            read_only = any(rule.get("readOnly") is True for rule in written.rules[""])
            if read_only or self.oracle.allows(written.value, pointer=pointer, schema=schema):
                return written
        return None


def _key(place: Body | Parameter) -> str:
    return place.pointer or json.dumps(place.schema)
