from __future__ import annotations

import copy
from datetime import date
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema_rs import Registry, validator_for

from theodolite.contracts import read
from theodolite.contracts.document import is_object
from theodolite.contracts.tools import BUILT_IN
from theodolite.core.contract import Contracts, Location, Origin, Part
from theodolite.core.errors import ConfigError

D7 = "http://json-schema.org/draft-07/schema#"
SCHEMA = {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "integer"}}}


def part(contracts: Contracts, name: str, location: Location = Location.ARGUMENTS) -> Part:
    found = contracts.find(name)
    assert found is not None
    return next(part for part in (*found.parts, *found.results) if part.location is location)


def accepts(contracts: Contracts, part: Part, value: object) -> bool:
    registry = Registry([(uri, held) for uri, held in contracts.documents.items() if is_object(held)])
    if isinstance(part.schema, bool):
        return part.schema
    return validator_for(dict(part.schema), registry=registry, offline=True).is_valid(value)


@pytest.mark.parametrize(
    ("tool", "origin", "pointer"),
    [
        ({"name": "t", "inputSchema": SCHEMA}, Origin.MCP, "/inputSchema"),
        ({"name": "t", "input_schema": SCHEMA}, Origin.ANTHROPIC, "/input_schema"),
        ({"type": "custom", "name": "t", "input_schema": SCHEMA}, Origin.ANTHROPIC, "/input_schema"),
        ({"type": "function", "name": "t", "parameters": SCHEMA}, Origin.OPENAI, "/parameters"),
        ({"name": "t", "parameters": SCHEMA}, Origin.OPENAI, "/parameters"),
        ({"type": "function", "function": {"name": "t", "parameters": SCHEMA}}, Origin.OPENAI, "/function/parameters"),
    ],
)
def test_every_form_of_a_tool_is_read_alone_and_in_a_list(
    tool: dict[str, object], origin: Origin, pointer: str
) -> None:
    for document, before in ((tool, ""), ([tool], "/0"), ({"tools": [tool]}, "/tools/0"), ((tool,), "/0")):
        contracts = read(document)
        found = part(contracts, "t")
        assert found.pointer == f"{before}{pointer}"
        assert contracts.contracts["t"].origin is origin
        assert accepts(contracts, found, {"a": 1})
        assert not accepts(contracts, found, {"a": "1"})


def test_an_mcp_server_s_whole_answer_is_read() -> None:
    tool: dict[str, object] = {
        "name": "t",
        "title": "T",
        "description": "what it does",
        "inputSchema": SCHEMA,
        "outputSchema": {"type": "object", "required": ["b"]},
        "annotations": {"readOnlyHint": True},
        "_meta": {"x": 1},
    }
    contracts = read({"jsonrpc": "2.0", "id": 1, "result": {"tools": [tool]}})
    found = contracts.contracts["t"]
    assert (found.title, found.description, dict(found.annotations)) == ("T", "what it does", {"readOnlyHint": True})
    assert not accepts(contracts, part(contracts, "t", Location.RESULT), {})
    assert found.results[0].pointer == "/result/tools/0/outputSchema"


def test_a_function_without_parameters_takes_an_object() -> None:
    contracts = read([{"type": "function", "name": "t", "strict": True}])
    assert accepts(contracts, part(contracts, "t"), {})
    assert not accepts(contracts, part(contracts, "t"), 3)
    assert contracts.contracts["t"].annotations == {"strict": True}


BASH: dict[str, object] = {"type": "bash_20250124", "name": "bash"}


def test_a_tool_of_the_provider_s_own_is_a_contract_without_parts_and_a_gap() -> None:
    contracts = read([{"type": "web_search"}, BASH, {"name": "t", "inputSchema": {"type": "object"}}])
    assert {name: one.opaque for name, one in contracts.contracts.items()} == {
        "web_search": True,
        "bash": True,
        "t": False,
    }
    assert [(gap.contract, gap.pointer, gap.reason) for gap in contracts.gaps] == [
        ("web_search", "/0", BUILT_IN),
        ("bash", "/1", BUILT_IN),
    ]


def test_a_tool_without_a_schema_is_a_contract_with_its_words() -> None:
    tool: dict[str, object] = {"name": "evil", "description": "Reads.", "annotations": {"title": "E"}, "_meta": {}}
    for document in ([tool], {"tools": [tool]}, {"result": {"tools": [tool]}}):
        found = read(document).contracts["evil"]
        assert (found.opaque, found.title, found.description) == (True, "E", "Reads.")
        assert [gap.contract for gap in read(document).gaps] == ["evil"]


def test_one_tool_alone_may_be_the_provider_s() -> None:
    assert read(BASH).contracts["bash"].annotations == {"type": "bash_20250124"}
    assert read({"name": "a schema with a name", "type": "object"}).contracts["schema"].origin is Origin.SCHEMA
    assert read({"name": "a package of Node", "type": "module"}).contracts["schema"].origin is Origin.SCHEMA


def test_what_a_tool_without_a_schema_returns_is_read() -> None:
    found = read([{"name": "t", "outputSchema": {"type": "string"}}]).contracts["t"]
    assert (found.opaque, len(found.results), found.annotations) == (True, 1, {})


def test_provider_s_tools_without_names_are_told_apart() -> None:
    server: dict[str, object] = {"type": "mcp", "server_label": "a", "server_url": "https://a.example"}
    tools: list[object] = [{"type": "x"}, {"type": "x", "size": 1}, server, {"name": "x 2", "inputSchema": {}}]
    contracts = read(tools).contracts
    assert set(contracts) == {"x", "x 3", "mcp a", "x 2"}
    assert contracts["mcp a"].annotations["server_url"] == "https://a.example"
    assert contracts["x 3"].annotations == {"type": "x", "size": 1}


def test_a_custom_tool_of_openai_is_read_in_both_forms() -> None:
    inner: dict[str, object] = {"name": "code", "description": "Runs it.", "format": {"type": "text"}}
    for tool in ({"type": "custom", **inner}, {"type": "custom", "custom": inner}):
        found = read([tool]).contracts["code"]
        assert (found.opaque, found.description) == (True, "Runs it.")
        assert found.annotations == {"type": "custom", "format": {"type": "text"}}


@pytest.mark.parametrize("key", ["name", "title", "description", "type", "max_characters", "annotations"])
def test_every_change_of_a_tool_without_a_schema_changes_the_digest(key: str) -> None:
    tool: dict[str, object] = {**BASH, "title": "t", "description": "d", "max_characters": "1", "annotations": {}}
    changed: dict[str, object] = {**tool, key: {"title": "changed"} if key == "annotations" else "changed"}
    assert read([tool]).digest != read([changed]).digest


def test_each_tool_s_references_are_its_own() -> None:
    one: dict[str, object] = {"name": "one", "inputSchema": {"$ref": "#/$defs/A", "$defs": {"A": {"type": "integer"}}}}
    other: dict[str, object] = {
        "name": "other",
        "inputSchema": {"$ref": "#/$defs/A", "$defs": {"A": {"type": "string"}}},
    }
    contracts = read([one, other])
    assert accepts(contracts, part(contracts, "one"), 1)
    assert not accepts(contracts, part(contracts, "other"), 1)


FAULTS: list[tuple[object, str]] = [
    ([{"name": "t", "inputSchema": {}}, {"name": "t", "parameters": {}}], "^/1: .*'t'.* /0 too"),
    ([3], "^/0: a tool is an object"),
    ([{"inputSchema": {}}], "^/0: a tool has a name"),
    ([{"name": "", "inputSchema": {}}], "^/0: a tool has a name"),
    ([{"type": "function", "function": {}}], "^/0/function: a tool has a name"),
    ([{"name": "t", "inputSchema": []}], "^/0/inputSchema: a schema is an object"),
    ([{"name": "t", "inputSchema": {"items": 3}}], "^/0/inputSchema/items: a schema is an object"),
    ([{"name": "t", "inputSchema": {"allOf": {}}}], "^/0/inputSchema/allOf: "),
    ([{"name": "t", "inputSchema": {"properties": []}}], "^/0/inputSchema/properties: "),
    ([{"name": "t", "inputSchema": {"$ref": "#/$defs/A"}}], "^/0/inputSchema/.ref: .*leads nowhere"),
    ([{"name": "t", "inputSchema": {"$ref": "#A"}}], "^/0/inputSchema/.ref: .*anchor 'A'"),
    ([{"name": "t", "inputSchema": {"$ref": "a.json"}}], "^/0/inputSchema/.ref: .*out of the document"),
    ([{"name": "t", "inputSchema": {"$id": "https://[", "type": "object"}}], "^/0/inputSchema: .* no address"),
    ([{"name": "t", "inputSchema": {"$id": "https://x.y/z#a"}}], "^/0/inputSchema/.id: an address has no fragment"),
    ([{"name": "t", "inputSchema": {"$id": "https://x.y/z", "$ref": "https://x.y/z#/a"}}], "/a leads nowhere"),
    ([{"name": "t", "inputSchema": {"$id": "https://x.y/z", "$ref": "https://x.y/z#a"}}], "anchor 'a' leads nowhere"),
    ([{"name": "t", "inputSchema": {"$ref": 3}}], "^/0/inputSchema/.ref: a reference is text"),
    (
        [{"name": "t", "inputSchema": {"$schema": "http://json-schema.org/draft-03/schema#"}}],
        "^/0/inputSchema/.schema",
    ),
    ({}, "is no contract"),
    ({"a": 1}, "is no contract"),
    ({"paths": {}}, "is no contract"),
    ("openapi: 3.0.3", "string is no contract"),
    ({"type": "object", "default": float("nan")}, "at /default: nan"),
    ({"type": "object", "default": [date(2026, 1, 2)]}, "at /default/0: date"),
    ({"type": "object", "default": "\ud800"}, "at /default: a lone surrogate"),
    ({"type": "object", "default": {1, 2}}, "at /default: set"),
]


@pytest.mark.parametrize(("document", "says"), FAULTS)
def test_what_is_no_contract_is_said_clearly(document: object, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        read(document)


def test_a_document_that_holds_itself_is_refused() -> None:
    document: dict[str, object] = {"type": "object"}
    document["properties"] = {"a": document}
    with pytest.raises(ConfigError, match="holds itself"):
        read(document)


def test_a_document_nested_too_deep_is_refused() -> None:
    document: dict[str, object] = {"type": "object"}
    for _ in range(900):
        document = {"items": document}
    for wrapped in (document, {"openapi": "3.1.0", "components": {"schemas": {"A": document}}}):
        with pytest.raises(ConfigError, match="too deep"):
            read(wrapped)


def test_other_mappings_tuples_and_numbers_as_keys_are_json() -> None:
    schema = MappingProxyType({"type": "object", "required": ("a",), "properties": {1: {"type": "integer"}}})
    contracts = read(schema)
    assert accepts(contracts, part(contracts, "schema"), {"a": 0, "1": 1})
    assert not accepts(contracts, part(contracts, "schema"), {"a": 0, "1": "x"})
    assert not accepts(contracts, part(contracts, "schema"), {})


def test_later_changes_of_the_document_change_nothing() -> None:
    tool: dict[str, object] = {"name": "t", "inputSchema": copy.deepcopy(SCHEMA)}
    contracts = read([tool])
    tool["inputSchema"] = {"type": "string"}
    assert accepts(contracts, part(contracts, "t"), {"a": 1})


# ---- plain schemas


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 3, "exclusiveMinimum": True}, 4, 3),
        ({"$schema": "http://json-schema.org/draft-07/schema", "items": [{"type": "string"}]}, ["a"], [1]),
        ({"$schema": "https://json-schema.org/draft/2020-12/schema#", "prefixItems": [{"type": "string"}]}, ["a"], [1]),
        ({"definitions": {"Map<a b>": {"type": "string"}}, "$ref": "#/definitions/Map<a b>"}, "a", 1),
        ({"definitions": {"Map<a b>": {"type": "string"}}, "$ref": "#/definitions/Map%3Ca%20b%3E"}, "a", 1),
        ({"$id": "c.json", "$defs": {"a": {"type": "string"}}, "items": {"$ref": "#/$defs/a"}}, ["a"], [1]),
        ({"$id": "c.json", "$defs": {"a": {"$id": "d", "type": "string"}}, "items": {"$ref": "d"}}, ["a"], [1]),
        ({"$id": "https://x.y/a/", "$defs": {"a": {"$id": "d", "type": "string"}}, "items": {"$ref": "d"}}, ["a"], [1]),
        ({"$defs": {"a": {"$anchor": "x", "type": "string"}}, "$ref": "#x"}, "a", 1),
        ({"items": {"$schema": "http://json-schema.org/draft-04/schema#", "exclusiveMinimum": 3}}, [4], [3]),
        ({"$schema": D7, "definitions": {"a": {"$id": "#x", "type": "string"}}, "items": {"$ref": "#x"}}, ["a"], [1]),
        ({"$ref": "https://json-schema.org/draft/2020-12/schema"}, {"type": "string"}, {"type": 3}),
        ({"$ref": "https://example.com/more#/a"}, "a", 1),
        ({"properties": {"$ref": {"type": "string"}, "$id": {"type": "string"}}}, {"$ref": "a"}, {"$id": 1}),
        ({"enum": [{"$ref": "nowhere"}]}, {"$ref": "nowhere"}, {}),
        ({"const": {"$ref": 3, "$id": "x y"}}, {"$ref": 3, "$id": "x y"}, {}),
        ({"dependencies": {"a": ["b"], "c": {"required": ["d"]}}}, {"a": 1, "b": 1}, {"c": 1}),
    ],
)  # fmt: skip
def test_a_plain_schema_means_what_it_says(schema: dict[str, object], good: object, bad: object) -> None:
    contracts = read(schema, documents={"https://example.com/more": {"a": {"type": "string"}}})
    assert accepts(contracts, part(contracts, "schema"), good)
    assert not accepts(contracts, part(contracts, "schema"), bad)
    assert contracts.contracts["schema"].origin is Origin.SCHEMA


def test_a_schema_may_be_a_boolean() -> None:
    contracts = read([{"name": "t", "inputSchema": True, "outputSchema": False}])
    assert part(contracts, "t").schema is True
    assert part(contracts, "t", Location.RESULT).schema is False


def test_a_plain_schema_is_called_what_its_reader_calls_it() -> None:
    schema: dict[str, object] = {"type": "object", "title": "T", "description": "D"}
    found = read(schema, name="mine").contracts["mine"]
    assert (found.title, found.description) == ("T", "D")


# ---- digests


@given(keys=st.permutations(["name", "description", "inputSchema", "annotations"]), both=st.booleans())
def test_the_digest_is_of_what_was_agreed_in_any_order(keys: list[str], *, both: bool) -> None:
    tool: dict[str, object] = {
        "name": "t",
        "description": "d",
        "inputSchema": {"a": 1, "minimum": 1.0},
        "annotations": {"x": {"y": 1}},
    }
    other: dict[str, object] = {"name": "u", "inputSchema": {"minimum": 1}}
    same: dict[str, object] = {key: tool[key] for key in keys} | {"_meta": {"seen": 3}, "icons": 1}
    tools: list[object] = [other, same] if both else [same]
    assert read(tools).digest == read([tool, other] if both else [tool]).digest


@pytest.mark.parametrize("key", ["name", "title", "description", "inputSchema", "outputSchema", "annotations"])
def test_every_change_of_what_was_agreed_changes_the_digest(key: str) -> None:
    tool: dict[str, object] = {
        "name": "t", "title": "t", "description": "d", "inputSchema": {}, "outputSchema": {}, "annotations": {},
    }  # fmt: skip
    changed: dict[str, object] = {**tool, key: {"title": "changed"} if isinstance(tool[key], dict) else "changed"}
    assert read([tool]).digest != read([changed]).digest


def test_the_digest_of_a_description_leaves_out_what_says_nothing_about_calls() -> None:
    one: dict[str, object] = {"openapi": "3.1.0", "paths": {}, "components": {"schemas": {"A": {"minimum": 1}}}}
    other: dict[str, object] = {
        **one,
        "info": {"version": "2"},
        "tags": [],
        "x-more": 1,
        "components": {"schemas": {"A": {"minimum": 1.0}}},
    }
    changed: dict[str, object] = {**one, "components": {"schemas": {"A": {"minimum": 2}}}}
    assert read(one).digest == read(other).digest
    assert read(one).digest != read(changed).digest
