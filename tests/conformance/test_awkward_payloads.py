"""Awkward specifications and payloads, each with the answer that the specification of its time gives.

The rows are those that were put to the peer (agent-airlock 0.10.26), which answers 13 of 71 of them rightly.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from pathlib import PurePosixPath
from typing import NamedTuple

import pytest

from theodolite.api.payload import OpenAPIDriftGuard
from theodolite.core.contract import Kind
from theodolite.core.errors import ConfigError

Schema = Mapping[str, object]
ALLOW, DENY = True, False


class Row(NamedTuple):
    """A schema of a body, or a whole document, what it is called with, and the right answer."""

    name: str
    schema: object
    args: object
    right: bool
    kind: Kind | None = None
    version: str = "3.1.0"
    required: bool = True
    media: str = "application/json"


def typed(kind: object, **more: object) -> Schema:
    return {"type": "object", "properties": {"a": {"type": kind, **more}}}


def body(row: Row) -> dict[str, object]:
    content = {row.media: {"schema": row.schema}}
    operation: dict[str, object] = {
        "operationId": "op",
        "requestBody": {"required": row.required, "content": content},
        "responses": {"200": {"description": "ok"}},
    }
    defined = {
        "P": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
        "I": {"type": "integer"},
    }
    info = {"title": "t", "version": "1"}
    return {
        "openapi": row.version,
        "info": info,
        "paths": {"/x": {"post": operation}},
        "components": {"schemas": defined},
    }


CLOSED = {"type": "object", "properties": {"a": True}, "required": ["a"], "additionalProperties": False}
NESTED: Schema = {"type": "object", "properties": {"o": CLOSED}}
REF: Schema = {"$ref": "#/components/schemas/P"}
NOT_JSON = Kind.NOT_JSON
ROWS = [
    Row("true for integer", typed("integer"), {"a": True}, DENY, Kind.TYPE_MISMATCH),
    Row("text for integer", typed("integer"), {"a": "12"}, DENY),
    Row("set", typed("array"), {"a": {1}}, DENY, NOT_JSON),
    Row("bytes", typed("string"), {"a": b"x"}, DENY, NOT_JSON),
    Row("datetime", typed("string"), {"a": dt.datetime(2026, 1, 2, tzinfo=dt.UTC)}, DENY, NOT_JSON),
    Row("path", typed("string"), {"a": PurePosixPath("x")}, DENY, NOT_JSON),
    Row("Decimal NaN", typed("number"), {"a": Decimal("NaN")}, DENY, NOT_JSON),
    Row("Decimal", typed("number"), {"a": Decimal("1.5")}, ALLOW),
    Row("required name that properties lack", {"type": "object", "required": ["a"]}, {}, DENY, Kind.MISSING_REQUIRED),
    Row("1.0 for integer", typed("integer"), {"a": 1.0}, ALLOW),
    Row("nullable and null in 3.0", typed("string", nullable=True), {"a": None}, ALLOW, version="3.0.3"),
    Row("null without nullable in 3.0", typed("string"), {"a": None}, DENY, Kind.NULL_NOT_ALLOWED, version="3.0.3"),
    Row("list of types given another", typed(["string", "null"]), {"a": 5}, DENY),
    Row("list of types given null", typed(["string", "null"]), {"a": None}, ALLOW),
    Row("NaN", typed("number"), {"a": float("nan")}, DENY, NOT_JSON),
    Row("Infinity", typed("number"), {"a": float("inf")}, DENY, NOT_JSON),
    Row("enum", typed("string", enum=["x"]), {"a": "y"}, DENY, Kind.ENUM_MISMATCH),
    Row("const", typed("string", const="x"), {"a": "y"}, DENY),
    Row("minimum", typed("integer", minimum=3), {"a": 2}, DENY),
    Row("a bound of 3.0", typed("integer", minimum=3, exclusiveMinimum=True), {"a": 3}, DENY, version="3.0.3"),
    Row("maxLength", typed("string", maxLength=1), {"a": "xy"}, DENY),
    Row("pattern", typed("string", pattern="^x$"), {"a": "y"}, DENY),
    Row("minItems", typed("array", minItems=1), {"a": []}, DENY),
    Row("uniqueItems", typed("array", uniqueItems=True), {"a": [1, 1]}, DENY),
    Row("minProperties", {"type": "object", "minProperties": 1}, {}, DENY),
    Row("dependentRequired", {"dependentRequired": {"a": ["b"]}}, {"a": 1}, DENY),
    Row("nested required", NESTED, {"o": {}}, DENY, Kind.MISSING_REQUIRED),
    Row("nested unknown", NESTED, {"o": {"a": 1, "b": 1}}, DENY, Kind.UNKNOWN_FIELD),
    Row("type of an item", typed("array", items={"type": "integer"}), {"a": [1, "x"]}, DENY),
    Row("body by reference", REF, {"a": "x"}, DENY),
    Row("body by reference, right", REF, {"a": 1}, ALLOW),
    Row("property by reference", {"properties": {"a": {"$ref": "#/components/schemas/I"}}}, {"a": "x"}, DENY),
    Row("allOf", {"allOf": [REF, {"required": ["b"]}]}, {"a": 1}, DENY),
    Row("oneOf, none", {"oneOf": [REF, {"required": ["b"]}]}, {}, DENY),
    Row("oneOf, two", {"oneOf": [REF, {"required": ["b"]}]}, {"a": 1, "b": 1}, DENY),
    Row("oneOf, one", {"oneOf": [REF, {"required": ["b"]}]}, {"b": 1}, ALLOW),
    Row("anyOf", {"anyOf": [REF, {"required": ["b"]}]}, {}, DENY),
    Row("additionalProperties with a schema", {"additionalProperties": {"type": "integer"}}, {"x": "y"}, DENY),
    Row("patternProperties, wrong", {"patternProperties": {"^x": {"type": "integer"}}}, {"xy": "y"}, DENY),
    Row("unevaluatedProperties", {"allOf": [typed("integer")], "unevaluatedProperties": False}, {"b": 1}, DENY),
    Row("false as a schema", {"properties": {"a": False}}, {"a": 1}, DENY),
    Row("patterns, closed", {"patternProperties": {"^x": {}}, "additionalProperties": False}, {"xy": 1}, ALLOW),
    Row("readOnly, required", {**typed("string", readOnly=True), "required": ["a"]}, {}, ALLOW, version="3.0.3"),
    Row("body that is an array", {"type": "array", "items": {"type": "integer"}}, [1, 2], ALLOW),
    Row("body that is an array, wrong", {"type": "array", "items": {"type": "integer"}}, [1, "x"], DENY),
    Row("body that is text", {"type": "string"}, "x", ALLOW),
    Row("pairs for an object", {"type": "object"}, [["a", 1]], DENY),
    Row("no arguments, body optional", {"type": "object", "required": ["a"]}, None, ALLOW, required=False),
    Row("no arguments, body required", {}, None, DENY, Kind.MISSING_REQUIRED),
    Row("media type with a charset", REF, {"a": "x"}, DENY, media="application/json; charset=utf-8"),
    Row("vendor's JSON", REF, {"a": "x"}, DENY, media="application/vnd.api+json"),
    Row("merge patch", REF, {"a": "x"}, DENY, media="application/merge-patch+json"),
    Row("any media type", REF, {"a": "x"}, DENY, media="*/*"),
    Row("form", REF, {"a": "x"}, DENY, media="application/x-www-form-urlencoded"),
    Row("multipart", REF, {"a": "x"}, DENY, media="multipart/form-data"),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_body_has_the_right_answer(row: Row) -> None:
    decision = OpenAPIDriftGuard(spec=body(row)).evaluate(operation_id="op", args=row.args)
    assert decision.allowed is row.right, decision.detail
    if row.kind is not None:
        assert row.kind in {one.exactly for one in decision.divergences}


PLACED = [
    {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}},
    {"name": "page", "in": "query", "schema": {"type": "integer"}},
    {"name": "X-Mode", "in": "header", "required": True, "schema": {"enum": ["a"]}},
    {"name": "sid", "in": "cookie", "schema": {"type": "string"}},
]


@pytest.mark.parametrize(
    ("args", "right"),
    [
        ({"id": 1, "x-mode": "a", "page": 2, "sid": "x"}, ALLOW),
        ({"x-mode": "a"}, DENY),
        ({"id": "x", "x-mode": "a"}, DENY),
        ({"id": 1, "x-mode": "a", "page": "x"}, DENY),
        ({"id": 1, "x-mode": "b"}, DENY),
        ({"id": 1}, DENY),
        ({"id": 1, "x-mode": "a", "sid": 5}, DENY),
    ],
)
def test_parameters_of_every_place_are_checked(args: object, *, right: bool) -> None:
    paths = {"/x/{id}": {"get": {"operationId": "op", "parameters": PLACED}}}
    assert (
        OpenAPIDriftGuard(spec={"openapi": "3.0.3", "paths": paths}).evaluate(operation_id="op", args=args).allowed
        is right
    )


@pytest.mark.parametrize(("args", "right"), [({"a": 1}, ALLOW), ({"a": "x"}, DENY), ({}, DENY)])
def test_a_body_of_swagger_2_is_checked(args: object, *, right: bool) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    parameter = {"name": "body", "in": "body", "required": True, "schema": schema}
    spec = {"swagger": "2.0", "paths": {"/x": {"post": {"operationId": "op", "parameters": [parameter]}}}}
    assert OpenAPIDriftGuard(spec=spec).evaluate(operation_id="op", args=args).allowed is right


def test_a_body_behind_a_reference_is_checked() -> None:
    held = {"content": {"application/json": {"schema": {"required": ["a"]}}}, "required": True}
    paths = {"/x": {"post": {"operationId": "op", "requestBody": {"$ref": "#/components/requestBodies/B"}}}}
    spec = {"openapi": "3.0.3", "paths": paths, "components": {"requestBodies": {"B": held}}}
    assert not OpenAPIDriftGuard(spec=spec).evaluate(operation_id="op", args={"b": 1}).allowed


@pytest.mark.parametrize(
    ("schema", "value"),
    [({"type": "string", "format": "date"}, "2026-02-30"), ({"type": "integer", "format": "int32"}, 2**40)],
)
def test_a_value_that_misses_its_format_is_reported(schema: Schema, value: object) -> None:
    row = Row("format", {"type": "object", "properties": {"a": schema}}, {"a": value}, ALLOW)
    decision = OpenAPIDriftGuard(spec=body(row), observe=True).evaluate(operation_id="op", args=row.args)
    assert decision.allowed
    assert [one.exactly for one in decision.observations] == [Kind.FORMAT_MISMATCH]


GET: dict[str, object] = {"responses": {"200": {"description": "ok"}}}
BODY = {"requestBody": {"required": True, "content": {"application/json": {"schema": {"required": ["a"]}}}}}


def test_an_operation_without_a_name_is_reached_by_method_and_path() -> None:
    guard = OpenAPIDriftGuard(spec={"openapi": "3.0.3", "paths": {"/x": {"post": BODY}}})
    assert not guard.evaluate(operation_id="POST /x", args={}).allowed


def test_webhooks_are_reached() -> None:
    guard = OpenAPIDriftGuard(spec={"openapi": "3.1.0", "webhooks": {"made": {"post": {"operationId": "op", **BODY}}}})
    assert not guard.evaluate(operation_id="op", args={}).allowed


def test_a_path_item_behind_a_reference_is_reached() -> None:
    items = {"pathItems": {"X": {"post": {"operationId": "op", **BODY}}}}
    paths = {"/x": {"$ref": "#/components/pathItems/X"}}
    guard = OpenAPIDriftGuard(spec={"openapi": "3.1.0", "paths": paths, "components": items})
    assert not guard.evaluate(operation_id="op", args={}).allowed


def test_an_extension_is_no_operation() -> None:
    paths = {"/x": {"get": GET, "x-more": {"operationId": "op", **BODY}}}
    guard = OpenAPIDriftGuard(spec={"openapi": "3.0.3", "paths": paths})
    assert guard.evaluate(operation_id="op", args={}).verdict == "deny_unknown_operation"


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"openapi": "3.0.3", "paths": {"/x": {"get": {"operationId": "op"}, "put": {"operationId": "op"}}}}, "op"),
        (body(Row("remote", {"$ref": "https://example.org/s.json"}, {}, DENY)), "nothing is ever fetched"),
        (body(Row("file", {"$ref": "other.yaml#/A"}, {}, DENY)), "nothing is ever fetched"),
        (body(Row("type", {"type": "strng"}, {}, DENY)), "stands no JSON Schema"),
        ({"hello": "world"}, "no contract"),
        (3, "a Path"),
    ],
    ids=["a name given twice", "remote reference", "file reference", "no type", "no contract", "a number"],
)
def test_a_document_that_is_wrong_is_refused_when_it_is_read(spec: Mapping[str, object], says: str) -> None:
    with pytest.raises((ConfigError, TypeError), match=says):
        OpenAPIDriftGuard(spec=spec)
