from __future__ import annotations

import math
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema_rs import Draft202012Validator, Registry

from theodolite.contracts.document import is_object
from theodolite.contracts.nodes import is_schema
from theodolite.contracts.splitting import split
from theodolite.core.contract import Contract, Location, Origin, Part, Schema
from theodolite.detectors.payload.covering import cover, cover_call
from theodolite.detectors.payload.values import TEXT, vouch

NAMES = st.sampled_from(["a", "b", "c"])
ATOMS = st.none() | st.booleans() | st.integers(-2, 3) | st.sampled_from([0.5, "", "a", "b", "\x00theodolite"])
JSON = st.recursive(ATOMS, lambda below: st.lists(below, max_size=2) | st.dictionaries(NAMES, below, max_size=3))
FOREIGN = st.sampled_from([math.nan, b"x", {1}, "\ud800", {1: 2}, {"\ud800": 1}, object()])
VALUES = st.recursive(
    ATOMS | FOREIGN, lambda below: st.lists(below, max_size=2) | st.dictionaries(NAMES, below, max_size=3)
)
TYPES = st.sampled_from(["object", "array", "string", "number", "integer", "boolean", "null"])


def _around(below: st.SearchStrategy[object]) -> st.SearchStrategy[dict[str, object]]:
    several = st.lists(below, min_size=1, max_size=2)
    fields = st.dictionaries(NAMES, below, max_size=2)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
            "properties": fields,
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "b"]), below, max_size=1),
            "additionalProperties": below,
            "required": st.lists(NAMES, max_size=2, unique=True),
            "items": below,
            "prefixItems": several,
            "contains": below,
            "allOf": several,
            "anyOf": several,
            "oneOf": several,
            "not": below,
            "if": below,
            "then": below,
            "else": below,
            "propertyNames": below,
            "dependentSchemas": fields,
            "enum": st.lists(JSON, min_size=1, max_size=2),
            "const": JSON,
            "minLength": st.integers(0, 2),
            "pattern": st.sampled_from(["a", "^b$"]),
            "maximum": st.integers(0, 2),
            "maxProperties": st.integers(0, 2),
            "$ref": st.sampled_from(["urn:t#/$defs/x", "urn:t#/$defs/y"]),
        },
    )


def schemas(depth: int = 2) -> st.SearchStrategy[object]:
    leaf: st.SearchStrategy[object] = (
        st.booleans() | st.fixed_dictionaries({"type": TYPES}) | st.builds(dict[str, object])
    )
    return leaf if depth == 0 else leaf | _around(schemas(depth - 1))


DEFS = st.fixed_dictionaries({"x": schemas(1), "y": schemas(1)})


def compiled(schema: object, documents: Mapping[str, object]) -> Draft202012Validator:
    assert isinstance(schema, bool) or is_object(schema)
    held_ = [(uri, document) for uri, document in documents.items() if is_object(document)]
    return Draft202012Validator(schema, offline=True, registry=Registry(held_))


def accepts(validator: Draft202012Validator, value: object) -> bool:
    try:
        return validator.is_valid(value)
    except (ValueError, OverflowError):
        return False


def held(defs: dict[str, object]) -> dict[str, object]:
    return {"urn:t": {"$defs": defs}}


@given(schemas(), DEFS, st.lists(VALUES, min_size=1, max_size=8))
def test_what_a_cover_accepts_is_valid_and_vouched_for(
    schema: object, defs: dict[str, object], values: list[object]
) -> None:
    documents = held(defs)
    covered = cover(schema, documents) if is_schema(schema) else None
    if covered is None:
        return
    quick, slow = compiled(covered, {}), compiled(schema, documents)
    for value in values:
        if accepts(quick, value):
            assert vouch(value)
            assert slow.is_valid(value)


TYPED: list[tuple[Mapping[str, object], object]] = [
    ({"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"a": "x", "b": [{"c": None}]}),
    ({"type": "object", "additionalProperties": {"type": "integer"}}, {"a": 1}),
    ({"items": {"anyOf": [{"type": "string"}, {"enum": [None]}]}}, ["x", None]),
    ({"allOf": [{"$ref": "urn:t#/$defs/x"}], "description": "x"}, {"a": True}),
    ({"oneOf": [{"type": "string"}, {"type": "object"}]}, {"a": [1.5]}),
    ({"type": ["array", "null"], "prefixItems": [{"const": 1}], "items": False}, [1]),
    ({"description": "anything"}, {"a": {"b": [True]}}),
]


@pytest.mark.parametrize(("schema", "value"), TYPED)
def test_what_calls_are_made_of_is_accepted_in_one_pass(schema: Mapping[str, object], value: object) -> None:
    documents: dict[str, object] = {"urn:t": {"$defs": {"x": {"properties": {"a": {"type": "boolean"}}}}}}
    covered = cover(schema, documents)
    assert covered is not None
    assert accepts(compiled(covered, {}), value)


REFUSED: list[tuple[Mapping[str, object], object]] = [
    ({"properties": {"a": {"type": "string"}}}, {"a": "\ud800"}),
    ({"properties": {"a": {"type": "string", "not": {"const": "x"}}}}, {"a": "\ud800"}),
    ({"properties": {"a": {"type": "string"}}}, {"b": math.nan}),
    ({"type": "array"}, [{"a": b"x"}]),
    ({"anyOf": [{"type": "object"}, {"type": "null"}]}, {"a": {1: 2}}),
    # Two branches fit; one of their covers would not take this text, which is that of the covers themselves.
    ({"oneOf": [{"type": "string", "pattern": "^"}, {"type": "string"}]}, TEXT),
]


@pytest.mark.parametrize(("schema", "value"), REFUSED)
def test_what_is_no_json_or_invalid_is_refused(schema: Mapping[str, object], value: object) -> None:
    covered = cover(schema, {})
    assert covered is not None
    assert not accepts(compiled(covered, {}), value)


def parameter(name: str, place: Location, schema: Schema, required: bool) -> Part:  # noqa: FBT001 - drawn so
    return Part(location=place, name=name, schema=schema, required=required)


PARAMETER_SCHEMAS: list[Schema] = [True, {"type": "integer"}, {"type": "string"}, {"enum": ["a"]}]
PARAMETERS = st.lists(
    st.builds(
        parameter,
        NAMES | st.just("body"),
        st.sampled_from([Location.PATH, Location.QUERY, Location.HEADER]),
        st.sampled_from(PARAMETER_SCHEMAS),
        st.booleans(),
    ),
    max_size=3,
    unique_by=lambda part: (part.name, part.location),
)
FLAT = st.dictionaries(
    NAMES | st.sampled_from(["d", "body", "path", "body.a", "a__path", "A"]),
    ATOMS | FOREIGN | st.just({"a": 1}),
    max_size=5,
)


@given(PARAMETERS, schemas() | st.none(), DEFS, st.lists(FLAT, min_size=1, max_size=8), st.booleans())
def test_flat_arguments_that_are_accepted_are_valid_part_by_part(
    parameters: list[Part],
    schema: object,
    defs: dict[str, object],
    calls: list[dict[str, object]],
    required: bool,  # noqa: FBT001 - hypothesis gives it
) -> None:
    documents = held(defs)
    body = Part(location=Location.BODY, schema=schema, required=required) if is_schema(schema) else None
    covered = cover_call(parameters, body, documents)
    if covered is None:
        return
    parts = (*parameters, *([body] if body is not None else []))
    contract = Contract(name="t", origin=Origin.OPENAPI, parts=parts)
    quick = compiled(covered, {})
    for arguments in filter(lambda one: accepts(quick, one), calls):
        found = split(contract, arguments)
        assert not found.unknown
        assert not [part for part in found.absent if part.required]
        for given_ in found.given:
            assert vouch(given_.value)
            assert compiled(given_.part.schema, documents).is_valid(given_.value)
        if body is not None and is_object(found.body):
            assert vouch(found.body)
            assert compiled(body.schema, documents).is_valid(found.body)


LEFT_ALONE: list[Mapping[str, object]] = [
    {"$ref": "urn:t#/$defs/loop"},
    {"properties": {"a": {"$ref": "urn:t#/$defs/loop"}}},
    {"not": {"$ref": "urn:t#/$defs/loop"}},
    {"unevaluatedProperties": False},
    {"$dynamicRef": "#x"},
    {"$id": "urn:other"},
    {"$ref": "urn:nowhere"},
    {"$ref": "urn:seven#/definitions/a"},
]


@pytest.mark.parametrize("schema", LEFT_ALONE)
def test_schemas_without_a_bound_or_with_names_are_left_alone(schema: Mapping[str, object]) -> None:
    seven = {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"a": {"type": "string"}}}
    loop = {"$defs": {"loop": {"items": {"$ref": "#/$defs/loop"}}}}
    assert cover(schema, {"urn:t": loop, "urn:seven": seven}) is None


def test_a_schema_that_is_used_twice_is_no_loop() -> None:
    documents = {"urn:t": {"$defs": {"leaf": {"type": "string"}}}}
    schema = {"properties": {name: {"$ref": "urn:t#/$defs/leaf"} for name in "ab"}}
    assert cover(schema, documents) is not None
