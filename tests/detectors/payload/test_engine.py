from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import ClassVar, TypeVar

import pytest
from msgspec import UNSET

from theodolite.contracts import read
from theodolite.core.contract import Contract, Contracts, Divergence, Kind, Location, Origin, Part
from theodolite.core.errors import ConfigError
from theodolite.detectors.payload.engine import Checker
from theodolite.detectors.payload.listing import MAX_ERRORS

Found = list[tuple[Kind, str]]
Schema = Mapping[str, object]
T = TypeVar("T")
NAN = float("nan")
EMPTY: dict[str, object] = {}


def checker(schema: Schema, **formats: bool) -> Checker:
    """Return a checker of a tool `t`, whose schema is taken as it is."""
    part = Part(location=Location.ARGUMENTS, schema=schema, pointer="/inputSchema")
    contract = Contract(name="t", origin=Origin.MCP, parts=(part,))
    return Checker(Contracts(contracts={"t": contract}, digest=""), **formats)


def kinds(found: tuple[Divergence, ...]) -> Found:
    return [(one.kind, one.pointer) for one in found]


def of(schema: Schema, value: object) -> Found:
    return kinds(checker(schema).check("t", value))


def field(schema: object) -> Schema:
    return {"type": "object", "properties": {"a": schema}}


def plainly(schema: Schema) -> Schema:
    return schema


def negated(schema: Schema) -> Schema:
    return {"not": schema}


def nullable(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


# What is asked of the field `a`, its value, and what is found: the rows of the table in which peers fail.
ROWS: list[tuple[object, object, Found]] = [
    ({"type": "integer"}, True, [(Kind.TYPE_MISMATCH, "/a")]),
    ({"type": "integer"}, "12", [(Kind.DOUBLE_ENCODED, "/a")]),
    ({"type": "integer"}, "twelve", [(Kind.TYPE_MISMATCH, "/a")]),
    ({"type": "integer"}, "00713", [(Kind.TYPE_MISMATCH, "/a")]),
    ({"type": "integer"}, 1.0, []),
    ({"type": "integer"}, 1.5, [(Kind.TYPE_MISMATCH, "/a")]),
    ({"type": "integer"}, 10**400, []),
    ({"type": "number"}, -0.0, []),
    ({"type": "number"}, Decimal("1.5"), []),
    ({"type": "number"}, NAN, [(Kind.NOT_JSON, "/a")]),
    ({"type": "number"}, float("inf"), [(Kind.NOT_JSON, "/a")]),
    ({"type": "number", "multipleOf": 0.1}, 0.3, []),
    ({}, {1, 2}, [(Kind.NOT_JSON, "/a")]),
    ({}, b"x", [(Kind.NOT_JSON, "/a")]),
    ({}, datetime(2026, 1, 2, tzinfo=UTC), [(Kind.NOT_JSON, "/a")]),
    ({}, "\ud800", [(Kind.NOT_JSON, "/a")]),
    ({}, {1: 2}, [(Kind.NOT_JSON, "/a/<int>")]),
    ({"type": ["string", "null"]}, 5, [(Kind.TYPE_MISMATCH, "/a")]),
    ({"type": ["string", "null"]}, None, []),
    ({"type": "string"}, None, [(Kind.NULL_NOT_ALLOWED, "/a")]),
    ({"enum": ["x", "y"]}, "z", [(Kind.ENUM_MISMATCH, "/a")]),
    ({"type": "string", "enum": ["x"]}, 5, [(Kind.TYPE_MISMATCH, "/a")]),
    ({"const": 1}, 2, [(Kind.CONST_MISMATCH, "/a")]),
    ({"minimum": 3}, 2, [(Kind.RANGE_MISMATCH, "/a")]),
    ({"exclusiveMaximum": 3}, 3, [(Kind.RANGE_MISMATCH, "/a")]),
    ({"multipleOf": 5}, 7, [(Kind.RANGE_MISMATCH, "/a")]),
    ({"maxLength": 2}, "abc", [(Kind.LENGTH_MISMATCH, "/a")]),
    ({"minItems": 1}, [], [(Kind.LENGTH_MISMATCH, "/a")]),
    ({"minProperties": 1}, {}, [(Kind.LENGTH_MISMATCH, "/a")]),
    ({"pattern": "^x"}, "y", [(Kind.PATTERN_MISMATCH, "/a")]),
    ({"uniqueItems": True}, [1, 1.0], [(Kind.NOT_UNIQUE, "/a")]),
    ({"contains": {"const": 1}}, [2], [(Kind.CONTAINS_MISMATCH, "/a")]),
    ({"dependentRequired": {"b": ["c"]}}, {"b": 1}, [(Kind.DEPENDENCY_MISSING, "/a/c")]),
    ({"dependentSchemas": {"b": {"required": ["c"]}}}, {"b": 1}, [(Kind.DEPENDENCY_MISSING, "/a/c")]),
    ({"required": ["b"]}, {}, [(Kind.MISSING_REQUIRED, "/a/b")]),
    ({"items": {"type": "string"}}, ["x", 1], [(Kind.TYPE_MISMATCH, "/a/1")]),
    ({"prefixItems": [{}], "items": False}, [1, 2], [(Kind.FORBIDDEN, "/a/1")]),
    ({"properties": {}, "additionalProperties": False}, {"b/c": 1}, [(Kind.UNKNOWN_FIELD, "/a/b~1c")]),
    ({"additionalProperties": False}, {"b": 1}, [(Kind.UNKNOWN_FIELD, "/a/b")]),
    ({"additionalProperties": {"type": "string"}}, {"b": 1}, [(Kind.TYPE_MISMATCH, "/a/b")]),
    ({"patternProperties": {"^x": {"type": "string"}}}, {"x1": 1}, [(Kind.TYPE_MISMATCH, "/a/x1")]),
    ({"patternProperties": {"^x": {}}, "additionalProperties": False}, {"x1": 1}, []),
    ({"unevaluatedProperties": False}, {"b": 1}, [(Kind.UNKNOWN_FIELD, "/a/b")]),
    ({"unevaluatedItems": False}, [1], [(Kind.FORBIDDEN, "/a")]),
    ({"propertyNames": {"maxLength": 1}}, {"long": 1}, [(Kind.UNKNOWN_FIELD, "/a/long")]),
    (False, 1, [(Kind.FORBIDDEN, "/a")]),
    ({"not": {"type": "integer"}}, 1, [(Kind.FORBIDDEN, "/a")]),
    ({"allOf": [{"required": ["b"]}, {"required": ["b"]}]}, {}, [(Kind.MISSING_REQUIRED, "/a/b")]),
    ({"oneOf": [{"type": "integer"}, {"minimum": 2}]}, 3, [(Kind.UNION_AMBIGUOUS, "/a")]),
    ({"anyOf": [{"minLength": 3}, {"pattern": "x"}]}, "a", [(Kind.UNION_NO_MATCH, "/a")]),
    ({"anyOf": [{"type": "array"}, {"type": "null"}]}, "[1]", [(Kind.DOUBLE_ENCODED, "/a")]),
    ({"type": "object", "required": ["b"]}, '{"c": 1}', [(Kind.TYPE_MISMATCH, "/a")]),
    ({"type": "object", "required": ["b"]}, '{"b": 1}', [(Kind.DOUBLE_ENCODED, "/a")]),
    ({"type": "boolean"}, "true", [(Kind.DOUBLE_ENCODED, "/a")]),
    ({"type": "null"}, "null", [(Kind.TYPE_MISMATCH, "/a")]),
    ({"format": "date"}, "2026-13-41", []),
]


@pytest.mark.parametrize(("schema", "value", "found"), ROWS)
def test_what_is_wrong_is_told_by_kind_and_place(schema: object, value: object, found: Found) -> None:
    assert of(field(schema), {"a": value}) == found
    # A second call goes the quick way, which the first one has compiled.
    assert of(field(schema), {"a": value}) == found


class TestUnions:
    SHAPES: Mapping[str, object] = {
        "oneOf": [
            {"type": "object", "properties": {"kind": {"const": "circle"}, "r": {"type": "number"}}, "required": ["r"]},
            {
                "type": "object",
                "properties": {"kind": {"const": "box"}, "w": {"type": "number"}, "h": {"type": "number"}},
                "required": ["w", "h"],
            },
        ]
    }

    def test_the_branch_whose_tag_fits_is_told_though_another_has_fewer_errors(self) -> None:
        assert of(self.SHAPES, {"kind": "box"}) == [(Kind.MISSING_REQUIRED, "/w"), (Kind.MISSING_REQUIRED, "/h")]

    def test_without_a_tag_the_one_with_the_fewest_errors_is(self) -> None:
        assert of(self.SHAPES, {}) == [(Kind.MISSING_REQUIRED, "/r")]

    def test_of_wrong_types_all_that_would_do_are_named(self) -> None:
        [found] = checker({"anyOf": [{"type": "string"}, {"type": ["array", "null"]}]}).check("t", 3)
        assert (found.kind, found.expected, found.observed) == (
            Kind.TYPE_MISMATCH,
            "array or null or string",
            "integer",
        )

    def test_a_union_in_a_union_is_told_by_its_best_branch(self) -> None:
        schema = {"anyOf": [{"type": "null"}, {"anyOf": [{"type": "string"}, field({"type": "integer"})]}]}
        assert of(schema, {"a": []}) == [(Kind.TYPE_MISMATCH, "/a")]


def test_a_finding_says_types_and_words_of_the_contract_and_never_a_value() -> None:
    secret = "s3cret-value"
    schema: Schema = {
        "type": "object",
        "properties": {
            "a": {"type": "integer"}, "b": {"enum": ["x"]}, "c": {"pattern": "^x"}, "d": {"maxLength": 1},
            "e": {"items": {"type": "integer"}}, "f": {"anyOf": [{"const": 1}, {"const": 2}]}, "g": {"const": "x"},
        },
    }  # fmt: skip
    value = {**dict.fromkeys("abcdg", secret), "e": [secret], "f": secret}
    found = checker(schema).check("t", value)
    assert {one.pointer for one in found} == {"/a", "/b", "/c", "/d", "/e/0", "/f", "/g"}
    assert secret not in repr(found)
    assert [(one.expected, one.observed, one.keyword, one.schema_pointer) for one in found if one.pointer == "/a"] == [
        ("integer", "string", "type", "/inputSchema/properties/a/type")
    ]


def test_formats_deny_where_they_are_asked_to_and_are_told_elsewhere() -> None:
    schema = field({"type": "string", "format": "date"})
    assert kinds(checker(schema, formats=True).check("t", {"a": "2026-13-41"})) == [(Kind.FORMAT_MISMATCH, "/a")]
    [told] = checker(schema).observe("t", {"a": "2026-13-41"})
    assert (told.kind, told.denies) == (Kind.FORMAT_MISMATCH, False)


class TestContractsThatCannotBeChecked:
    @pytest.mark.parametrize(
        ("schema", "place"),
        [
            ({"properties": {"a": {"type": "strng"}}}, "/inputSchema/properties/a/type"),
            ({"properties": {"a": {"pattern": "("}}}, "/inputSchema/properties/a/pattern"),
            ({"properties": {"a": {"$ref": "#/$defs/b"}}}, "/inputSchema/properties/a/$ref"),
            ({"properties": {"a": {"$ref": "https://example.org/b"}}}, "/inputSchema/properties/a/$ref"),
            ({"properties": {"a": {"$ref": "file:///etc/passwd"}}}, "/inputSchema/properties/a/$ref"),
            ({"minimum": "x"}, "/inputSchema/minimum"),
        ],
    )
    def test_are_refused_at_once_with_the_pointer(self, schema: Mapping[str, object], place: str) -> None:
        with pytest.raises(ConfigError, match="'t'") as raised:
            checker(schema)
        assert place in str(raised.value)

    def test_a_result_too(self) -> None:
        part = Part(location=Location.RESULT, schema={"type": "strng"}, pointer="/outputSchema")
        contract = Contract(name="t", origin=Origin.MCP, parts=(), results=(part,))
        with pytest.raises(ConfigError, match="/outputSchema/type"):
            Checker(Contracts(contracts={"t": contract}, digest=""))


class TestPatterns:
    def test_nested_repetition_takes_linear_time(self) -> None:
        assert within(1.0, lambda: of(field({"pattern": "^(a+)+$"}), {"a": "a" * 50_000 + "!"})) == [
            (Kind.PATTERN_MISMATCH, "/a")
        ]

    def test_look_around_works(self) -> None:
        schema = field({"pattern": r"^(?!x)[a-z]+$"})
        assert of(schema, {"a": "abc"}) == []
        assert of(schema, {"a": "xbc"}) == [(Kind.PATTERN_MISMATCH, "/a")]

    @pytest.mark.parametrize(("around", "where"), [(plainly, "/a"), (negated, "")], ids=["plain", "negated"])
    def test_one_that_goes_back_too_often_is_a_finding_and_no_pass(
        self, around: Callable[[Schema], Schema], where: str
    ) -> None:
        schema = field(around({"pattern": r"^(?:(a|b|ab)(?=a|b|c))*c$"}))
        assert within(1.0, lambda: of(schema, {"a": "ab" * 30 + "cd"})) == [(Kind.REGEX_LIMIT, where)]


class TestHostileValues:
    def test_a_hundred_thousand_levels(self) -> None:
        deep: list[object] = []
        for _ in range(100_000):
            deep = [deep]
        schema = {"$defs": {"x": {"items": {"$ref": "#/$defs/x"}}}, "$ref": "#/$defs/x"}
        [found] = within(1.0, lambda: of(schema, deep))
        assert found[0] is Kind.TOO_DEEP

    @pytest.mark.parametrize("levels", [99, 100, 101])
    def test_a_hundred_levels_are_taken_and_no_more(self, levels: int) -> None:
        value: object = 1
        for _ in range(levels):
            value = [value]
        assert [kind for kind, _ in of({}, value)] == [Kind.TOO_DEEP] * (levels > 100)

    def test_objects_that_hold_themselves(self) -> None:
        loop: list[object] = [1]
        loop.append(loop)
        table: dict[str, object] = {}
        table["a"] = {"b": [table, table]}
        assert within(1.0, lambda: of({}, {"a": loop})) == [(Kind.NOT_JSON, "/a/1")]
        assert within(1.0, lambda: of({}, table)) == [(Kind.NOT_JSON, "/a/b/0"), (Kind.NOT_JSON, "/a/b/1")]

    def test_ten_megabytes_of_text(self) -> None:
        schema = {"properties": {"a": {"type": "integer"}, "b": {"pattern": "^(a+)+$"}, "c": {"maxLength": 5}}}
        value = dict.fromkeys("abc", "x" * 10_000_000)
        found = within(1.0, lambda: of(schema, value))
        assert {pointer for _, pointer in found} == {"/a", "/b", "/c"}

    @pytest.mark.parametrize("wrap", [plainly, nullable])
    def test_a_hundred_thousand_wrong_items_are_cut_and_it_is_said(self, wrap: Callable[[Schema], Schema]) -> None:
        one = checker(field(wrap({"type": "array", "items": {"type": "string"}})))
        found = within(1.0, lambda: one.check("t", {"a": [1] * 100_000}))
        assert [divergence.pointer for divergence in found[:2]] == ["/a/0", "/a/1"]
        assert len(found) == MAX_ERRORS + 1
        assert [divergence.denies for divergence in found] == [True] * MAX_ERRORS + [False]

    def test_the_one_wrong_item_among_a_hundred_thousand_is_found(self) -> None:
        value: list[object] = ["x"] * 100_000
        value[77_777] = 1
        found = within(1.0, lambda: of(field({"items": {"type": "string"}}), {"a": value}))
        assert found[0] == (Kind.TYPE_MISMATCH, "/a/77777")

    @pytest.mark.parametrize("rule", [{"uniqueItems": True}, {"maxItems": 5}, {"contains": {"const": 1}}])
    def test_what_is_asked_of_a_long_array_as_a_whole_is_found(self, rule: Mapping[str, object]) -> None:
        found = within(1.0, lambda: of(field(rule), {"a": ["x"] * 50_000}))
        assert [pointer for _, pointer in found][:1] == ["/a"]

    def test_a_hundred_thousand_unknown_fields(self) -> None:
        value = {f"f{place}": place for place in range(100_000)}
        found = within(1.0, lambda: of({"additionalProperties": False}, value))
        assert found[0] == (Kind.UNKNOWN_FIELD, "/f0")
        assert len(found) == MAX_ERRORS + 1


def within(seconds: float, work: Callable[[], T]) -> T:
    """Return what some work comes to, which takes no more time of the processor than that."""
    start = time.thread_time()
    found = work()
    assert time.thread_time() - start < seconds
    return found


class TestTools:
    def test_an_unknown_tool_is_a_finding(self) -> None:
        [found] = checker({}).check("other", {})
        assert (found.kind, found.denies) == (Kind.UNKNOWN_OPERATION, True)

    def test_no_arguments_are_an_empty_object_and_null_is_null(self) -> None:
        schema = {"type": "object", "required": ["a"]}
        assert of(schema, UNSET) == [(Kind.MISSING_REQUIRED, "/a")]
        assert of(schema, None) == [(Kind.NULL_NOT_ALLOWED, "")]
        assert of({"type": "object"}, UNSET) == []

    def test_what_only_looks_like_no_json_is_taken(self) -> None:
        class Text(str):
            __slots__ = ()

        class Number(int):
            pass

        schema = {"properties": {"a": {"type": "string"}, "b": {"type": "integer"}, "c": {"type": "array"}}}
        assert of(schema, {Text("a"): Text("x"), "b": Number(3), "c": (1, 2)}) == []


OPENAPI: Schema = {
    "openapi": "3.0.3",
    "paths": {
        "/pets/{id}": {
            "put": {
                "operationId": "setPet",
                "parameters": [
                    {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}},
                    {"name": "dry", "in": "query", "schema": {"type": "boolean"}},
                ],
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/json": {
                            "schema": {
                                "type": "object",
                                "properties": {
                                    "name": {"type": "string", "nullable": True},
                                    "age": {"type": "integer", "format": "int32"},
                                    "made": {"type": "string", "readOnly": True},
                                },
                                "required": ["name", "made"],
                            }
                        },
                        "application/merge-patch+json": {"schema": {"type": "object", "maxProperties": 1}},
                    },
                },
                "responses": {
                    "200": {"content": {"application/json": {"schema": {"type": "array"}}}},
                    "4XX": {"content": {"application/problem+json": {"schema": {"required": ["title"]}}}},
                    "default": {"content": {"application/json": {"schema": {"type": "null"}}}},
                },
            },
            "get": {"parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}]},
        }
    },
}


class TestOperations:
    CHECKER = Checker(read(OPENAPI))

    def of(self, arguments: object, **where: str) -> Found:
        location = Location(where["location"]) if "location" in where else None
        found = self.CHECKER.check("setPet", arguments, location=location, media_type=where.get("media_type", ""))
        return kinds(found)

    def test_flat_arguments_are_split(self) -> None:
        assert self.of({"id": 1, "name": None, "dry": True}) == []
        assert self.of({"id": "x", "name": 1}) == [(Kind.TYPE_MISMATCH, "/id"), (Kind.TYPE_MISMATCH, "/name")]
        assert self.of({"dry": 1}) == [
            (Kind.TYPE_MISMATCH, "/dry"),
            (Kind.MISSING_REQUIRED, "/id"),
            (Kind.MISSING_REQUIRED, "/name"),
        ]

    def test_pointers_lead_into_the_arguments_as_given(self) -> None:
        assert self.of({"path": {"id": "x"}, "body": {"name": 1}}) == [
            (Kind.TYPE_MISMATCH, "/path/id"),
            (Kind.TYPE_MISMATCH, "/body/name"),
        ]

    def test_foreign_values_are_found_wherever_they_go(self) -> None:
        assert self.of({"id": NAN, "name": b"x"}) == [(Kind.NOT_JSON, "/id"), (Kind.NOT_JSON, "/name")]

    def test_one_location_alone(self) -> None:
        assert self.of({"name": 1}, location="body") == [(Kind.TYPE_MISMATCH, "/name")]
        assert self.of(UNSET, location="body") == [(Kind.MISSING_REQUIRED, "")]
        assert self.of([["name", "x"]], location="body") == [(Kind.TYPE_MISMATCH, "")]
        assert self.of({}, location="path") == [(Kind.MISSING_REQUIRED, "/id")]
        assert self.of({"dry": "no"}, location="query") == [(Kind.TYPE_MISMATCH, "/dry")]

    def test_the_body_of_another_media_type(self) -> None:
        where = {"location": "body", "media_type": "application/merge-patch+json; charset=utf-8"}
        assert self.of({"x": 1}, **where) == []
        assert self.of({"x": 1, "y": 2}, **where) == [(Kind.LENGTH_MISMATCH, "")]
        assert self.of({}, location="body", media_type="text/plain") == [(Kind.WRONG_CONTENT_TYPE, "")]

    def test_what_belongs_to_nothing_is_told(self) -> None:
        [found] = self.CHECKER.check("GET /pets/{id}", {"id": 1, "name": "x"})
        assert (found.kind, found.pointer, found.denies) == (Kind.UNDECLARED_FIELD, "/name", False)

    def test_aliases(self) -> None:
        assert self.CHECKER.check("PUT /pets/{id}", {"id": 1, "name": "x"}) == ()

    def test_read_only_and_undeclared_fields_are_told_and_deny_nothing(self) -> None:
        arguments = {"id": 1, "name": "x", "made": "now", "nmae": "y", "age": 2**40}
        assert self.of(arguments) == []
        told = self.CHECKER.observe("setPet", arguments)
        assert not any(one.denies for one in told)
        assert sorted(kinds(told)) == [
            (Kind.FORMAT_MISMATCH, "/age"),
            (Kind.READ_ONLY_SENT, "/made"),
            (Kind.UNDECLARED_FIELD, "/nmae"),
        ]

    @pytest.mark.parametrize(
        ("status", "value", "found"),
        [
            ("200", [], []),
            ("200", {}, [(Kind.TYPE_MISMATCH, "")]),
            ("404", {}, [(Kind.MISSING_REQUIRED, "/title")]),
            ("500", None, []),
            ("", {}, [(Kind.TYPE_MISMATCH, "")]),
        ],
    )
    def test_results_are_held_against_the_nearest_status(self, status: str, value: object, found: Found) -> None:
        assert kinds(self.CHECKER.check_result("setPet", value, status=status)) == found


class TestObservations:
    def observed(self, schema: Schema, value: object) -> Found:
        return kinds(checker(schema).observe("t", value))

    def test_names_of_any_branch_are_declared(self) -> None:
        schema: dict[str, object] = {
            "$defs": {"c": {"properties": {"c": True}}},
            "properties": {"a": True},
            "allOf": [{"$ref": "#/$defs/c"}],
            "anyOf": [{"properties": {"b": True}}, {"type": "null"}],
            "if": {"properties": {"d": True}},
            "patternProperties": {"^x-": True},
        }
        value = dict.fromkeys(["a", "b", "c", "d", "x-y", "z"], 1)
        found = Checker(read([{"name": "t", "inputSchema": schema}])).observe("t", value)
        assert kinds(found) == [(Kind.UNDECLARED_FIELD, "/z")]

    def test_below_arrays_and_described_fields(self) -> None:
        item: Schema = {"properties": {"a": {}}}
        schema = {
            "properties": {"l": {"items": item}, "m": {"additionalProperties": item}, "p": {"prefixItems": [item]}}
        }
        value = {"l": [{"a": 1}, {"b": 1}], "m": {"any": {"b": 1}}, "p": [{"b": 1}, {"b": 1}]}
        assert sorted(self.observed(schema, value)) == [
            (Kind.UNDECLARED_FIELD, "/l/1/b"),
            (Kind.UNDECLARED_FIELD, "/m/any/b"),
            (Kind.UNDECLARED_FIELD, "/p/0/b"),
        ]

    def test_where_no_name_is_declared_none_is_missed(self) -> None:
        assert self.observed({"type": "object"}, {"a": 1}) == []

    def test_of_a_closed_schema_the_check_tells(self) -> None:
        schema: Schema = {"properties": {"a": {}}, "additionalProperties": False}
        assert self.observed(schema, {"b": 1}) == []


@pytest.mark.parametrize("arguments", [{"command": "ls"}, {}, [], None, UNSET, NAN, {"a": object()}])
def test_a_tool_without_a_schema_is_not_judged(arguments: object) -> None:
    checker = Checker(read([{"type": "bash_20250124", "name": "bash"}, {"name": "bare", "description": "Does it."}]))
    for name in ("bash", "bare"):
        assert checker.check(name, arguments) == checker.observe(name, arguments) == ()
        assert checker.check(name, arguments, location=Location.BODY) == ()
        assert checker.check_result(name, arguments) == ()


def test_an_operation_that_takes_nothing_is_judged_all_the_same() -> None:
    document = {"openapi": "3.1.0", "paths": {"/a": {"get": {"operationId": "a", "responses": EMPTY}}}}
    assert kinds(Checker(read(document)).check("a", {"x": 1})) == [(Kind.UNDECLARED_FIELD, "/x")]


class TestGivenTwice:
    """A tool that takes the other one of two spellings would send what was not looked at."""

    PARAMETERS: ClassVar[list[object]] = [
        {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}},
        {"name": "X-Id", "in": "header", "schema": {"type": "integer"}},
    ]
    BODY: ClassVar[dict[str, object]] = {"content": {"application/json": {"schema": {"properties": {"x": {}}}}}}
    CHECKER = Checker(
        read(
            {
                "openapi": "3.1.0",
                "paths": {
                    "/a/{id}": {
                        "get": {"operationId": "bare", "parameters": PARAMETERS},
                        "put": {"operationId": "full", "parameters": PARAMETERS, "requestBody": BODY},
                    }
                },
            }
        )
    )

    @pytest.mark.parametrize(
        ("name", "arguments", "pointer"),
        [
            ("bare", {"id": 1, "x-id": 1, "X-ID": "z"}, "/X-ID"),
            ("bare", {"path": {"id": 1}, "id": "z"}, "/id"),
            ("bare", {"path.id": 1, "id__path": "z"}, "/id__path"),
            ("full", {"id": 1, "body": {"x": 1}, "x": "z"}, "/x"),
            ("full", {"id": 1, "body": {"y": 1}, "y": "z"}, "/y"),
            ("full", {"id": 1, "body": {}, "body.x": "z"}, "/body.x"),
        ],
    )
    def test_is_denied(self, name: str, arguments: dict[str, object], pointer: str) -> None:
        found = [one for one in self.CHECKER.check(name, arguments) if one.denies]
        assert [(one.kind, one.pointer) for one in found] == [(Kind.UNKNOWN_FIELD, pointer)]
        assert not self.CHECKER.accepts(name, arguments)

    def test_what_belongs_to_nothing_passes(self) -> None:
        assert self.CHECKER.accepts("bare", {"id": 1, "y": 1})
        assert self.CHECKER.accepts("full", {"id": 1, "body": {"x": 1}, "y": 1})
        assert self.CHECKER.accepts("full", {"path.id": 1, "id": 2})


class TestOneLocation:
    CHECKER = TestGivenTwice.CHECKER

    def test_names_of_headers_have_no_case(self) -> None:
        assert self.CHECKER.check("bare", {"x-id": 1}, location=Location.HEADER) == ()
        [found] = self.CHECKER.check("bare", {"x-id": "z"}, location=Location.HEADER)
        assert (found.kind, found.pointer) == (Kind.TYPE_MISMATCH, "/x-id")

    def test_what_is_not_published_there_is_told(self) -> None:
        found = self.CHECKER.check("bare", {"id": 1, "no": 2}, location=Location.PATH)
        assert [(one.kind, one.pointer, one.denies) for one in found] == [(Kind.UNDECLARED_FIELD, "/no", False)]


def test_parameters_are_observed_as_well() -> None:
    day = {"name": "day", "in": "query", "schema": {"type": "string", "format": "date"}}
    paths = {"/a": {"get": {"operationId": "t", "parameters": [day]}}}
    guard = Checker(read({"openapi": "3.1.0", "paths": paths}))
    found = guard.observe("t", {"day": "2026-99-99"})
    assert [(one.kind, one.pointer, one.denies) for one in found] == [(Kind.FORMAT_MISMATCH, "/day", False)]
    assert guard.observe("t", {"day": "2026-99-99"}, location=Location.QUERY)[0].pointer == "/day"


def test_a_result_is_made_ready_once() -> None:
    tool: dict[str, object] = {
        "name": "t",
        "inputSchema": EMPTY,
        "outputSchema": {"type": "object", "properties": {"a": {"type": "integer"}}},
    }
    guard = Checker(read([tool]))
    assert guard.check_result("t", {"a": 1}) == ()
    start = time.process_time()
    for _ in range(1_000):
        guard.check_result("t", {"a": 1})
    assert time.process_time() - start < 0.05


@pytest.mark.parametrize(
    "schema", [{"items": [EMPTY]}, {"type": "strng"}, {"not": 3}, {"properties": {"a": {"minLength": -1}}}]
)
@pytest.mark.parametrize("where", ["arguments", "results", "body", "response"])
def test_what_is_no_schema_is_refused_when_it_is_read_wherever_it_stands(schema: Schema, where: str) -> None:
    media = {"application/json": {"schema": schema}}
    responses = {"200": {"description": "", "content": media}}
    operation: object = {"requestBody": {"content": media}} if where == "body" else {"responses": responses}
    tool: dict[str, object] = {"name": "t", "inputSchema": schema if where == "arguments" else EMPTY}
    tools = [tool if where == "arguments" else {**tool, "outputSchema": schema}]
    published: object = {"openapi": "3.1.0", "paths": {"/a": {"put": operation}}}
    document = tools if where in {"arguments", "results"} else published
    with pytest.raises(ConfigError, match=r"/(items|type|not|minLength)\b"):
        Checker(read(document))


def test_a_name_of_any_length_is_cut_in_what_is_told() -> None:
    guard = Checker(read([{"name": "t", "inputSchema": {"additionalProperties": False}}]))
    bare = Checker(read({"openapi": "3.1.0", "paths": {"/a": {"get": {"operationId": "t"}}}}))
    for one in (guard, bare):
        assert [len(found.pointer) for found in one.check("t", {"x" * 100_000: 1})] == [512]
