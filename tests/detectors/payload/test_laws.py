"""What holds for any schema and any value at all: no refusal is silent, nothing raises, and all of it ends in time."""

from __future__ import annotations

import gc
import json
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from enum import Enum, StrEnum
from functools import partial
from types import MappingProxyType
from typing import TypeVar

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema_rs import validator_for

from theodolite.contracts import read
from theodolite.contracts.difference import difference
from theodolite.contracts.document import is_list, is_object
from theodolite.contracts.lint import lint
from theodolite.core.contract import Divergence, Kind, Location
from theodolite.core.errors import ConfigError, EventError
from theodolite.detectors.payload.answering import message
from theodolite.detectors.payload.engine import Checker
from theodolite.detectors.payload.listing import MAX_ERRORS
from theodolite.detectors.payload.repair import Op, Plan, Step, apply, plan
from theodolite.detectors.payload.values import MAX_NODES, few, plain, vouch

T = TypeVar("T")
# Names that are keywords as well, and others.
NAMES = st.sampled_from(
    ["a", "b", "additionalProperties", "properties", "required", "not", "$ref", "items", "body", "path", ""]
)
ATOMS = st.none() | st.booleans() | st.integers(-2, 3) | st.sampled_from(["", "a", "b", "1", "{}", '"1"', 0.5, 1.0])
VALUES = st.recursive(ATOMS, lambda below: st.lists(below, max_size=3) | st.dictionaries(NAMES, below, max_size=3))
TYPES = st.sampled_from(["object", "array", "string", "integer", "number", "boolean", "null"])


def schemas(below: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    by_name = st.dictionaries(NAMES, below, max_size=3)
    several = st.lists(below, min_size=1, max_size=3)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
            "properties": by_name,
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "s$", ""]), below, max_size=2),
            "additionalProperties": below,
            "unevaluatedProperties": below,
            "unevaluatedItems": below,
            "propertyNames": below,
            "dependentSchemas": by_name,
            "dependentRequired": st.dictionaries(NAMES, st.lists(NAMES, max_size=2), max_size=2),
            "required": st.lists(NAMES, max_size=3),
            "items": below,
            "prefixItems": several,
            "contains": below,
            "maxContains": st.integers(0, 2),
            "allOf": several,
            "anyOf": several,
            "oneOf": several,
            "not": below,
            "if": below,
            "then": below,
            "else": below,
            "const": VALUES,
            "enum": st.lists(VALUES, min_size=1, max_size=3),
            "minimum": st.integers(-1, 2),
            "maxLength": st.integers(0, 2),
            "pattern": st.sampled_from(["^a$", "^(?!a)", "b"]),
            "minItems": st.integers(0, 2),
            "maxProperties": st.integers(0, 2),
            "uniqueItems": st.booleans(),
            "$ref": st.just("#/$defs/d"),
        },
    )


SCHEMAS = st.recursive(st.booleans() | schemas(st.booleans()), schemas, max_leaves=8)


def without_twice(schema: object) -> object:
    """Return a schema whose lists of names have each once, for an engine that refuses others. Data stays as it is."""
    if is_list(schema):
        return [without_twice(item) for item in schema]
    if not is_object(schema):
        return schema
    found: dict[str, object] = {}
    for key, item in schema.items():
        if key in {"const", "enum"}:
            found[key] = item
        elif is_list(item) and all(isinstance(one, str) for one in item):
            found[key] = list(dict.fromkeys(item))
        else:
            found[key] = without_twice(item)
    return found


def timed(seconds: float, call: Callable[[], T]) -> T:
    start = time.process_time()
    made = call()
    took = time.process_time() - start
    if took > seconds:  # no assert: what it would show of a value may not end
        pytest.fail(f"it took {took:.2f} s, and at most {seconds} s were expected", pytrace=False)
    return made


def checker(schema: object) -> Checker:
    return Checker(read([{"name": "t", "inputSchema": schema}]))


def denied(found: tuple[Divergence, ...]) -> bool:
    return any(one.denies for one in found)


@settings(max_examples=200, deadline=None)
@given(schema=SCHEMAS, ref=schemas(st.booleans()), value=VALUES)
def test_there_is_a_finding_that_denies_where_the_engine_refuses_and_nowhere_else(
    schema: object, ref: dict[str, object], value: object
) -> None:
    ref.pop("$ref", None)
    whole = {"allOf": [schema], "$defs": {"d": ref}}
    plain_names = without_twice(whole)
    assert is_object(plain_names)
    engine = validator_for(plain_names)
    guard = checker(whole)
    assert denied(guard.check("t", value)) is not engine.is_valid(value)
    assert guard.accepts("t", value) is engine.is_valid(value)


@pytest.mark.parametrize(
    ("schema", "value", "found"),
    [
        ({"properties": {"additionalProperties": False}}, {"additionalProperties": 1}, "/additionalProperties"),
        ({"properties": {"additionalProperties": False}}, {"additionalProperties": {"x": 1}}, "/additionalProperties"),
        ({"properties": {"properties": {"additionalProperties": False}}}, {"properties": {"x": 1}}, "/properties/x"),
        ({"patternProperties": {"additionalProperties": False}}, {"additionalProperties": 1}, "/additionalProperties"),
        ({"items": {"additionalProperties": False}}, [{"x": 1, "y": 2}], "/0/x"),
    ],
)
def test_what_is_forbidden_is_told_at_its_own_place(schema: object, value: object, found: str) -> None:
    assert checker(schema).check("t", value)[0].pointer == found


class Hostile:
    """Raises wherever it is asked anything, and is taken for the name of a place of a call."""

    def __init__(self, name: str) -> None:
        self._hash = hash(name)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no")

    def __len__(self) -> int:
        raise RuntimeError("no")

    def __iter__(self) -> Iterator[object]:
        raise RuntimeError("no")

    def __str__(self) -> str:
        raise RuntimeError("no")

    __repr__ = __str__


class Liar(dict[str, object]):
    def __len__(self) -> int:
        raise RuntimeError("no")

    def items(self) -> object:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        raise RuntimeError("no")


class Table(Mapping[object, object]):
    def __getitem__(self, key: object) -> object:
        raise KeyError(key)

    def __iter__(self) -> Iterator[object]:
        return iter(["a", 1])

    def __len__(self) -> int:
        return 2


class Asked(StrEnum):
    """Raises when it is asked for its value, as the engine does."""

    A = "a"

    @property
    def value(self) -> str:
        raise KeyError("no")

    def __eq__(self, other: object) -> bool:
        raise SystemExit

    __hash__ = str.__hash__


class Exactly(Decimal):
    """A number of another class."""


class Held(Enum):
    LIST = ([1], [2])
    TEXT = "a"


def cyclic() -> object:
    value: dict[str, object] = {}
    value["a"] = [value, value]
    return value


def shared(levels: int) -> object:
    value: object = ["x"]
    for _ in range(levels):
        value = [value, value]
    return value


def nested(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = {"a": value}
    return value


STRANGE: list[Callable[[], object]] = [
    lambda: {1: 2}, lambda: {None: 1, "a": 1}, lambda: {("a",): 1}, cyclic, lambda: nested(200),
    lambda: nested(50_000), lambda: math.nan, lambda: {"a": math.inf}, lambda: 10**5_000, lambda: {"a": 10**400},
    lambda: Decimal("NaN"), lambda: Decimal("sNaN"), lambda: {"a": Exactly("1")},
    lambda: {"account": Exactly("-Infinity")}, lambda: {"a": Decimal("1e999999")}, lambda: b"a",
    lambda: {"a": {1, 2}}, object,
    lambda: Hostile("a"), lambda: {"a": Hostile("a")}, lambda: {Hostile("body"): 1}, lambda: {Hostile("a"): 1, "b": 2},
    lambda: {"body": Hostile("a")}, lambda: {"path": {Hostile("id"): 1}}, lambda: Liar(a=1), lambda: [Liar(a=1)],
    Table, lambda: {"a": Table()}, lambda: {"body": Table()}, lambda: {"path": Table()}, lambda: {"a": Held.LIST},
    lambda: {"a": Held.TEXT}, lambda: {Held.TEXT: 1}, lambda: {"a": Asked.A}, lambda: {"account": Asked.A, "a": []},
    lambda: MappingProxyType({"a": "1"}), lambda: ("a", 1),
    lambda: OrderedDict([("a", "1")]), lambda: {"a": "\ud800"}, lambda: {"\ud800": 1}, lambda: msgspec.UNSET,
    lambda: None,
    lambda: {"a": ["x"] * 100_000}, lambda: {f"k{n}": n for n in range(100_000)}, lambda: {"a": "[" * 100_000},
    lambda: {"a": [json.dumps(["x"] * 100_000)] * 20}, lambda: {"a": '"' * 50_000}, lambda: {"body.a": 1, "a__path": 1},
    lambda: {"a": ["1"] * 100_000}, lambda: {"a": [{"b": "1"}] * 20_000}, lambda: nested(99), int, lambda: Hostile,
]  # fmt: skip
SELF: dict[str, object] = {"properties": {"a": {"$ref": "#"}, "b": {"type": "integer"}}, "additionalProperties": False}
ARRAYS: dict[str, object] = {
    "type": "object",
    "required": ["a", "account"],
    "properties": {
        "a": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
        "account": {"type": "string", "enum": ["x"]},
    },
    "additionalProperties": False,
}


def operation(schema: dict[str, object]) -> Checker:
    parameter = {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}
    body = {"content": {"application/json": {"schema": schema}}, "required": True}
    put = {"operationId": "t", "parameters": [parameter], "requestBody": body}
    return Checker(read({"openapi": "3.1.0", "paths": {"/{id}": {"put": put}}}))


CHECKERS = [checker({}), checker(ARRAYS), checker(SELF), operation({"type": "object"}), operation(ARRAYS)]


@pytest.mark.parametrize("make", STRANGE)
@pytest.mark.parametrize("guard", CHECKERS)
def test_nothing_raises_for_any_value_and_each_answer_takes_less_than_a_second(
    guard: Checker, make: Callable[[], object]
) -> None:
    value = make()
    contract = guard.contracts.contracts["t"]

    def fits(one: object) -> bool:
        return not denied(guard.check("t", one))

    for location in (None, Location.BODY, Location.PATH):
        found = timed(1.5, partial(guard.check, "t", value, location=location))
        assert len(found) <= MAX_ERRORS + 1
        timed(1.5, partial(guard.observe, "t", value, location=location))
        assert message(found)
    offered = timed(3.0, lambda: plan(contract, guard.contracts.documents, value, fits))
    if offered is not None:
        assert fits(apply(offered, value))
    guard.check_result("t", value, status="200")


class Name(str):
    __slots__ = ()


@pytest.mark.parametrize(
    "number", [Decimal("1e400"), Decimal("1e999999"), Exactly("1e400"), Exactly("0.1"), Decimal(3)]
)
def test_a_decimal_is_the_same_number_on_either_road(number: Decimal) -> None:
    guard = checker({"properties": {"a": {"type": "number"}, "b": {"type": "string"}}, "additionalProperties": False})
    assert guard.check("t", {"a": number, "b": "x"}) == ()
    assert guard.check("t", {"a": number, "b": Name("x")}) == ()
    assert [one.kind for one in guard.check("t", {"b": number})] == [Kind.TYPE_MISMATCH]


def test_a_plan_for_other_arguments_is_refused_and_says_so() -> None:
    for make in STRANGE:
        with pytest.raises(EventError):
            apply(Plan((Step(Op.RENAME, "/no such name", "a"),)), make())


def untracked(levels: int) -> object:
    """Return tuples within tuples, of which the collector knows that none leads back to itself, and lets go of them."""
    value: tuple[object, ...] = ("x",)
    for _ in range(levels):
        value = (value, value)
        gc.collect(0)
    gc.collect()
    return value


def wide(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = [value] * 10_000
    return value


@pytest.mark.parametrize("make", [partial(shared, 60), partial(untracked, 60), partial(wide, 3)])
def test_what_is_shared_many_times_is_counted_as_often_as_it_is_met(make: Callable[[], object]) -> None:
    value = make()
    for whole in (value, {"a": value}):
        assert not timed(1.0, partial(few, whole))
        assert not timed(1.0, partial(vouch, whole))
        assert [one.kind for one in timed(2.0, partial(plain, whole))[1]] == [Kind.TOO_LARGE]
    for guard in CHECKERS[:3]:
        assert [one.kind for one in timed(2.0, partial(guard.check, "t", {"a": value}))] == [Kind.TOO_LARGE]
    contract = CHECKERS[1].contracts.contracts["t"]
    timed(2.0, partial(CHECKERS[1].observe, "t", {"a": value}))
    timed(2.0, partial(plan, contract, CHECKERS[1].contracts.documents, {"a": value}, lambda _: False))


def test_what_is_shared_a_few_times_is_taken() -> None:
    assert few(shared(12))
    assert vouch(shared(12))
    assert checker({}).check("t", {"a": untracked(12)}) == ()


def test_the_number_of_values_is_counted_exactly() -> None:
    assert vouch([[None]] * (MAX_NODES // 2))
    assert not vouch([[None]] * (MAX_NODES // 2 + 1))


@settings(max_examples=200)
@given(VALUES)
def test_what_is_json_and_small_is_few(value: object) -> None:
    assert few(value)


def chained(count: int, link: Callable[[str], dict[str, object]], last: object) -> dict[str, object]:
    defined: dict[str, object] = {f"c{n}": link(f"#/$defs/c{n + 1}") for n in range(count)}
    return {"$defs": {**defined, f"c{count}": last}, "properties": {"a": {"$ref": "#/$defs/c0"}}}


LOOPS: dict[str, object] = {
    "itself": {"$defs": {"A": {"$ref": "#/$defs/A"}}, "properties": {"a": {"$ref": "#/$defs/A"}}},
    "each other": {"$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}, "$ref": "#/$defs/A"},
    "members": {
        "$defs": {
            "A": {
                "allOf": [{"$ref": "#/$defs/A"}] * 5,
                "properties": {"a": {"$ref": "#/$defs/A"}, "b": {"type": "integer", "readOnly": True}},
                "required": ["b"],
            }
        },
        "$ref": "#/$defs/A",
    },
    "branches": {
        "$defs": {"A": {"anyOf": [*[{"$ref": "#/$defs/A"}] * 20, {"type": "object"}]}},
        "properties": {"a": {"$ref": "#/$defs/A"}},
    },
    "long": chained(36, lambda ref: {"$ref": ref}, {"type": "integer"}),
    "deep": chained(400, lambda ref: {"properties": {"a": {"$ref": ref}}}, {"type": "integer"}),
}


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("form", ["tool", "2.0", "3.0.3", "3.1.0"])
def test_references_that_lead_back_or_on_and_on_end(form: str, loop: str) -> None:
    guard = timed(3.0, lambda: _published(form, LOOPS[loop]))
    contract = guard.contracts.contracts["t"]
    values: list[object] = [{"a": "x"}, {"b": 1}, nested(30), {"a": nested(30)}, [], None, {"b": "1"}]
    for value in values:
        timed(1.0, partial(guard.check, "t", value))
        timed(1.0, partial(guard.check, "t", value, location=Location.BODY))
        timed(1.0, partial(guard.observe, "t", value))
        timed(2.0, partial(plan, contract, guard.contracts.documents, value, lambda _: False))


@pytest.mark.parametrize("form", ["tool", "2.0", "3.0.3", "3.1.0"])
def test_what_is_referred_to_by_many_ways_is_looked_at_once(form: str) -> None:
    """The engine itself goes each way, and is not given it; what reads a document and tells of it does not."""
    last = {"type": "integer", "readOnly": True}
    schema = chained(60, lambda ref: {"allOf": [{"$ref": ref}, {"$ref": ref}]}, last)
    contracts = timed(1.0, lambda: read(_document(form, {**schema, "required": ["a"]})))
    timed(1.0, lambda: lint(contracts))
    timed(1.0, lambda: difference(contracts, contracts))
    timed(1.0, lambda: plan(contracts.contracts["t"], contracts.documents, {"a": "1"}, lambda _: False))


def _published(form: str, schema: object) -> Checker:
    return Checker(read(_document(form, schema)))


def _document(form: str, schema: object) -> object:
    if form == "tool":
        return [{"name": "t", "inputSchema": schema}]
    place = "definitions" if form == "2.0" else "components/schemas"
    moved: dict[str, object] = json.loads(json.dumps(schema).replace("#/$defs/", f"#/{place}/"))
    defined = moved.pop("$defs")
    if form == "2.0":
        parameters = [{"name": "b", "in": "body", "schema": moved}]
        paths: object = {"/a": {"put": {"operationId": "t", "parameters": parameters}}}
        return {"swagger": form, "paths": paths, "definitions": defined}
    body = {"content": {"application/json": {"schema": moved}}}
    paths = {"/a": {"put": {"operationId": "t", "requestBody": body}}}
    return {"openapi": form, "paths": paths, "components": {"schemas": defined}}


LONG = "\x1b[2J\n" + "x" * 5_000
WRONG: list[object] = [
    [{"name": LONG, "inputSchema": {"type": "strng"}}],
    [{"name": LONG, "inputSchema": {"properties": {LONG: {"type": "strng"}}}}],
    [{"name": LONG, "inputSchema": {"$ref": f"#/{LONG}"}}],
    [{"name": LONG, "inputSchema": {"pattern": f"({LONG}"}}],
    [{"name": LONG, "inputSchema": {"$schema": LONG}}],
    [{"name": LONG, "inputSchema": {"$anchor": LONG, "items": {"$anchor": LONG}}}],
    [{"name": LONG, "inputSchema": {}}, {"name": LONG, "inputSchema": {}}],
    [{"name": LONG, "inputSchema": {"properties": {LONG: 3}}}],
    {"openapi": "3.0.3", "paths": {LONG: {}}},
    {"openapi": "3.0.3", "paths": {f"/{LONG}": {"get": {"operationId": LONG}, "put": {"operationId": LONG}}}},
    {"openapi": "3.0.3", "paths": {"/a": {"$ref": f"#/{LONG}"}}},
    {"openapi": "3.0.3", "paths": {"/a": {"$ref": LONG}}},
    {"openapi": "3.1.0", "paths": {}, "components": {"schemas": {LONG: {"properties": 3}}}},
    {"openapi": "3.0.3", "paths": {}, "components": {"schemas": {LONG: {"properties": {LONG: {"$ref": LONG}}}}}},
]


@pytest.mark.parametrize("document", WRONG)
def test_an_error_shows_a_long_name_in_part_and_no_control_characters(document: object) -> None:
    with pytest.raises(ConfigError) as caught:
        Checker(read(document))
    text = str(caught.value)
    assert len(text) < 900
    assert text.isprintable()


@pytest.mark.parametrize("times", [1, 2, 3, 4])
@pytest.mark.parametrize("value", [{"x": 1}, [1]])
def test_json_in_json_in_json_is_told_as_such_and_unwrapped(times: int, value: object) -> None:
    guard = checker({"type": "object", "properties": {"a": {"type": ["object", "array"]}}})
    text: object = value
    for _ in range(times):
        text = json.dumps(text)
    [found] = guard.check("t", {"a": text})
    assert found.kind is (Kind.DOUBLE_ENCODED if times <= 3 else Kind.TYPE_MISMATCH)
    offered = plan(
        guard.contracts.contracts["t"], guard.contracts.documents, {"a": text}, lambda one: not guard.check("t", one)
    )
    assert (offered is not None) is (times <= 3)
    if offered is not None:
        assert apply(offered, {"a": text}) == {"a": value}
