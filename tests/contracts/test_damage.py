"""Whatever is wrong with a document, reading ends with contracts or with an error that says what is wrong."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema_rs import ReferencingError, Registry, ValidationError, validator_for

from theodolite.contracts import read
from theodolite.contracts.difference import difference
from theodolite.contracts.document import is_list, is_object
from theodolite.contracts.lint import lint
from theodolite.core.contract import Contracts
from theodolite.core.errors import ConfigError
from theodolite.detectors.payload.engine import Checker

SCHEMAS: dict[str, object] = {
    "A": {
        "$id": "x",
        "$defs": {"a": {"$anchor": "z", "type": "object"}},
        "properties": {"id": {"readOnly": True}, "s": {"writeOnly": True}},
        "required": ["id", "s"],
        "allOf": [{"required": ["id"]}, {"$ref": "#z"}],
    },
    "B": {"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 3, "exclusiveMinimum": True},
    "C": {"$dynamicAnchor": "n", "items": {"$dynamicRef": "#n"}},
    "D": {"$ref": "#/components/schemas/C/items"},
    "E": {"type": "object", "nullable": True, "allOf": [{"$ref": "#/components/schemas/D"}], "enum": [None]},
}
NEW: dict[str, object] = {
    "openapi": "3.2.0",
    "$self": "https://example.com/a",
    "paths": {
        "/a/{b}": {
            "$ref": "#/components/pathItems/p",
            "parameters": [{"$ref": "#/components/parameters/q"}],
            "query": {
                "operationId": "q",
                "requestBody": {"content": {"a/b": {"schema": {"$ref": "#/components/schemas/A"}}}},
                "responses": {"200": {"content": {"a/b": {"schema": {"$dynamicRef": "#n"}}}}},
            },
        }
    },
    "webhooks": {"w": {"post": {}}},
    "components": {
        "pathItems": {"p": {"get": {}}},
        "parameters": {"q": {"name": "b", "in": "path", "schema": {"type": "string"}}},
        "schemas": SCHEMAS,
    },
}
OLD: dict[str, object] = {
    "openapi": "3.0.3",
    "paths": NEW["paths"],
    "components": {
        "pathItems": {
            "p": {"put": {"requestBody": {"content": {"a/b": {"schema": {"$ref": "#/components/schemas/E"}}}}}}
        },
        "parameters": {"q": {"name": "b", "in": "path", "schema": {"type": "string"}}},
        "schemas": {**SCHEMAS, "A": {"items": {"exclusiveMinimum": True, "minimum": 1}}},
    },
}
SWAGGER: dict[str, object] = {
    "swagger": "2.0",
    "consumes": ["application/json"],
    "paths": {
        "/a": {
            "post": {
                "parameters": [
                    {"name": "b", "in": "body", "schema": {"$ref": "#/definitions/E"}},
                    {"name": "q", "in": "query", "type": "array", "items": {"type": "integer"}},
                ],
                "responses": {"200": {"schema": {"type": "file"}}},
            },
            "put": {"parameters": [{"name": "f", "in": "formData", "type": "file"}]},
        }
    },
    "definitions": {"E": {"type": "object", "properties": {"a": {"readOnly": True}}, "required": ["a"]}},
}
TOOLS: dict[str, object] = {
    "tools": [
        {"name": "t", "inputSchema": SCHEMAS["A"], "outputSchema": {}, "annotations": {}},
        {
            "type": "function",
            "function": {"name": "f", "parameters": {"$ref": "#/definitions/x", "definitions": {"x": {}}}},
        },
    ]
}
KEYS = (
    "$ref", "$id", "id", "$schema", "$anchor", "properties", "items", "allOf", "required", "type", "enum", "schema",
    "content", "parameters", "name", "in", "openapi", "swagger", "paths", "readOnly", "nullable", "", "x-a", "$self",
)  # fmt: skip
EMPTY: tuple[dict[str, object], list[object]] = ({}, [])
VALUES: tuple[object, ...] = (
    *EMPTY,
    None, True, 0, -1.5, 10**30, "", "#", "#/", "#a", "x#n", "a", "://", "http://[", "//[", "\x00", "%zz", "#/%zz", "{",
    "http://example.com/a#/b", "urn:x", "#/components/schemas/A", "#/components/schemas/A/allOf/0", "#/paths", "3.1.0",
    [], {"a": 1}, [3], {"$ref": "#/components/schemas/E"}, {"$id": "//["}, "http://json-schema.org/draft-04/schema#",
)  # fmt: skip


def nodes(node: object) -> Iterator[dict[str, object] | list[object]]:
    if is_object(node):
        yield node
        for below in node.values():
            yield from nodes(below)
    elif is_list(node):
        yield node
        for below in node:
            yield from nodes(below)


@pytest.mark.parametrize("version", ["3.0.3", "3.1.0", "3.2.0"])
@pytest.mark.parametrize("odd", [{"const": None}, [], None, 3])
def test_a_list_of_names_with_something_else_in_it_is_no_trap(version: str, odd: object) -> None:
    schema = {"type": "object", "properties": {"id": {"readOnly": True}}, "required": ["id", odd]}
    body = {"requestBody": {"content": {"application/json": {"schema": schema}}}}
    with pytest.raises(ConfigError):
        Checker(read({"openapi": version, "paths": {"/a": {"put": body}}}))


@settings(max_examples=100, deadline=None)
@given(data=st.data())
@pytest.mark.parametrize(
    "whole", [NEW, OLD, SWAGGER, TOOLS, SCHEMAS["A"]], ids=["new", "old", "swagger", "tools", "schema"]
)
def test_a_damaged_document_ends_in_contracts_or_a_config_error(data: st.DataObject, whole: object) -> None:
    document = copy.deepcopy(whole)
    for _ in range(data.draw(st.integers(1, 3))):
        node = data.draw(st.sampled_from(list(nodes(document))))
        value = copy.deepcopy(data.draw(st.sampled_from(VALUES)))
        if is_object(node):
            node[data.draw(st.sampled_from([*KEYS, *node]))] = value
        elif is_list(node) and node:
            node[data.draw(st.integers(0, len(node) - 1))] = value
    with suppress(ConfigError):
        contracts = read(document)
        assert unfound(contracts) == []
        lint(contracts)
        difference(contracts, read(whole))
        difference(read(whole), contracts)
        assert difference(contracts, read(copy.deepcopy(document))) == ()
        Checker(contracts)


def unfound(contracts: Contracts) -> list[str]:
    """Return what the engine does not find of what references name; it may still find fault with the schemas."""
    try:
        registry = Registry([(uri, held) for uri, held in contracts.documents.items() if is_object(held)])
        for contract in contracts.contracts.values():
            for part in (*contract.parts, *contract.results):
                if is_object(part.schema):
                    validator_for(part.schema, registry=registry, offline=True)
    except (ValueError, ValidationError, ReferencingError) as error:
        said = str(error)
        return [said] if "not present in a registry" in said or "does not exist" in said else []
    return []
