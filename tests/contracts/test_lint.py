"""What of a contract can be checked, and what makes it hard for agents: each flaw where it is, and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from theodolite.contracts import read
from theodolite.contracts.lint import Flaw, Severity, lint
from theodolite.core.contract import Contract, Contracts, Gap, Location, Origin, Part, Schema

PATH: Mapping[str, object] = {"type": "string", "description": "A path.", "examples": ["a/b"]}
GOOD: Mapping[str, object] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["path"],
    "properties": {"path": PATH},
}
FILE: Mapping[str, object] = {"type": "file"}
RESULT = (Part(location=Location.RESULT, schema={"type": "string"}),)


def told(schema: Schema, documents: Mapping[str, object] | None = None) -> list[tuple[Flaw, str]]:
    part = Part(location=Location.ARGUMENTS, schema=schema)
    contract = Contract(name="t", origin=Origin.MCP, parts=(part,), results=RESULT, description="Does it.")
    notes = lint(Contracts(contracts={"t": contract}, documents=documents or {}, digest="")).notes
    return [(note.flaw, note.pointer) for note in notes]


def field(schema: Mapping[str, object]) -> Mapping[str, object]:
    return {**GOOD, "properties": {"path": PATH, "x": {"description": "It.", **schema}}}


def test_a_contract_that_says_everything_has_no_flaw() -> None:
    assert told(GOOD) == []


@pytest.mark.parametrize(
    ("schema", "flaw", "pointer"),
    [
        (field({}), Flaw.NO_TYPE, "/x"),
        (field({"type": "object"}), Flaw.OPEN_OBJECT, "/x"),
        (field({"type": "array"}), Flaw.ARRAY_OF_ANYTHING, "/x"),
        (field({"description": "", "enum": [0, 1]}), Flaw.UNNAMED_ENUM, "/x"),
        (field({"$ref": "urn:nowhere#/a"}), Flaw.UNRESOLVED, "/x"),
        (field({"type": "string", "description": "", "enum": ["a"]}), Flaw.FIELD_UNDESCRIBED, "/x"),
        (field({"type": "string", "description": ""}), Flaw.NO_EXAMPLE, "/x"),
        ({**GOOD, "required": ["path", "mode"]}, Flaw.REQUIRED_UNDECLARED, "/mode"),
        ({**GOOD, "additionalProperties": True}, Flaw.TAKES_UNDECLARED, ""),
        ({"type": "object"}, Flaw.OPEN_OBJECT, ""),
        (
            {
                **GOOD,
                "properties": {"user_id": {"type": "integer", "title": "a"}, "userId": {"type": "null", "title": "b"}},
            },
            Flaw.ALIKE_NAMES,
            "/user_id",
        ),
        (field({"type": "array", "items": {"type": "array"}}), Flaw.ARRAY_OF_ANYTHING, "/x/*"),
        (field({"anyOf": [{"type": "array"}, {"type": "null"}]}), Flaw.ARRAY_OF_ANYTHING, "/x"),
    ],
)
def test_each_flaw_is_told_where_it_is(schema: Schema, flaw: Flaw, pointer: str) -> None:
    assert (flaw, pointer) in told(schema)


def test_what_is_shared_is_told_once() -> None:
    shared: dict[str, object] = {"type": "object", "description": "Anything."}
    schema: Mapping[str, object] = {
        **GOOD,
        "required": list[object](),
        "properties": {name: {"$ref": "urn:d#/a"} for name in ("x", "y", "z")},
    }
    flaws = told(schema, documents={"urn:d": {"a": shared}})
    assert [flaw for flaw, _ in flaws].count(Flaw.OPEN_OBJECT) == 1


def test_a_recursive_schema_is_walked_once() -> None:
    tree: Mapping[str, object] = {**GOOD, "properties": {"kid": {"$ref": "urn:d#/a"}}, "description": "A tree."}
    assert (Flaw.REQUIRED_UNDECLARED, "/path") in told({"$ref": "urn:d#/a"}, documents={"urn:d": {"a": tree}})


def test_a_recursive_schema_is_told_of_at_the_shortest_way_in_the_order_of_the_document() -> None:
    pet: Mapping[str, object] = {
        "type": "object",
        "title": "A pet.",
        "properties": {
            "parent": {"$ref": "urn:d#/Pet"},
            "name": {"type": "string", "examples": ["a"]},
            "home": {"type": "object", "properties": {"street": {"title": "It."}, "city": {"title": "It."}}},
            "kids": {"type": "array", "title": "a", "items": {"anyOf": [{"$ref": "urn:d#/Pet"}, {"type": "null"}]}},
            "age": {"title": "It."},
        },
    }
    notes = told({"$ref": "urn:d#/Pet"}, documents={"urn:d": {"Pet": pet}})
    assert [one for one in notes if one[0] is not Flaw.TAKES_UNDECLARED] == [
        (Flaw.FIELD_UNDESCRIBED, "/name"),
        (Flaw.FIELD_UNDESCRIBED, "/home"),
        (Flaw.NO_TYPE, "/home/street"),
        (Flaw.NO_TYPE, "/home/city"),
        (Flaw.NO_TYPE, "/age"),
    ]


@pytest.mark.parametrize(
    "schema",
    [
        {"format": "binary"},
        {"contentMediaType": "image/png"},
        {"contentEncoding": "base64"},
        {"allOf": [{"format": "binary"}]},
    ],
)
def test_what_is_binary_has_a_type_in_all_but_name(schema: Mapping[str, object]) -> None:
    assert told(field(schema)) == [(Flaw.BINARY, "/x")]
    assert told(field({**schema, "type": "string"})) in ([], [(Flaw.NO_EXAMPLE, "/x")])


def test_a_file_of_swagger_is_told_once_as_a_note() -> None:
    file = {"name": "f", "in": "formData", "type": "file", "description": "It."}
    post = {"operationId": "send", "summary": "Send.", "parameters": [file], "responses": {"200": {"schema": FILE}}}
    account = lint(read({"swagger": "2.0", "paths": {"/a": {"post": post}}}))
    notes = [(note.flaw, note.location, note.pointer) for note in account.notes]
    assert (Flaw.BINARY, Location.BODY, "/f") in notes
    assert (Flaw.BINARY, None, "/paths/~1a/post/responses/200/schema") in notes
    assert [flaw for flaw, _, _ in notes].count(Flaw.BINARY) == 2
    assert {flaw.severity for flaw, _, _ in notes} == {Severity.NOTE}
    assert (account.checked, account.partly) == (1, 1)


def test_a_provider_s_tool_is_a_note_and_one_of_our_own_without_a_schema_an_error() -> None:
    account = lint(read([{"type": "bash_20250124", "name": "bash"}, {"name": "bare", "description": "Does it."}]))
    assert [(note.flaw, note.contract) for note in account.notes] == [
        (Flaw.PROVIDER_TOOL, "bash"),
        (Flaw.NOT_CHECKED, "bare"),
        (Flaw.NO_RESULT, "bare"),
    ]
    assert (account.operations, account.checked, account.partly) == (2, 0, 0)


def test_operations_are_looked_at_as_a_whole() -> None:
    parts = (
        Part(location=Location.PATH, name="id", schema={"type": "integer"}, required=True),
        Part(location=Location.BODY, schema={"type": "object", "properties": {"id": {}}}),
    )
    bare = Contract(name="GET /a", origin=Origin.OPENAPI, parts=parts, method="GET", path="/a")
    gap = Gap(contract="GET /a", pointer="/paths/~1a", reason="XML is not checked")
    lost = Gap(contract="other", pointer="/paths/~1b", reason="no schema")
    account = lint(Contracts(contracts={"GET /a": bare}, digest="", gaps=(gap, lost)))
    flaws = [(note.flaw, note.pointer) for note in account.notes]
    assert flaws[:2] == [(Flaw.NOT_CHECKED, "/paths/~1a"), (Flaw.NOT_CHECKED, "/paths/~1b")]
    for flaw in (Flaw.NO_DESCRIPTION, Flaw.UNNAMED_OPERATION, Flaw.NO_RESULT):
        assert (flaw, "") in flaws
    assert (Flaw.AMBIGUOUS_NAME, "/id") in flaws
    assert (account.operations, account.checked, account.partly) == (2, 1, 1)
    assert (account.fields, account.typed) == (2, 1)


def test_every_flaw_has_a_severity_and_only_what_is_not_checked_is_an_error() -> None:
    assert {flaw for flaw in Flaw if flaw.severity is Severity.ERROR} == {Flaw.NOT_CHECKED, Flaw.UNRESOLVED}
    assert {flaw.severity for flaw in Flaw} == set(Severity)
