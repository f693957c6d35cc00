"""The one way in: what a document is, and the contracts in it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import msgspec

from theodolite.contracts.direction import Direction
from theodolite.contracts.document import child, is_object, own_copy, word
from theodolite.contracts.openapi import read_openapi
from theodolite.contracts.schema import Documents
from theodolite.contracts.swagger import read_swagger
from theodolite.contracts.tools import is_tool, read_schema, read_tools, tool_list
from theodolite.core.contract import Contracts
from theodolite.core.errors import ConfigError

__all__ = ("read",)

# What of a document says nothing about calls.
_ASIDE = frozenset({"info", "tags", "externalDocs"})
# A mapping with one of these is a schema; with none it may be anything.
_KEYWORDS = frozenset({
    "$defs", "$dynamicRef", "$id", "$recursiveRef", "$ref", "$schema", "additionalProperties", "allOf", "anyOf",
    "const", "contains", "definitions", "dependencies", "dependentRequired", "dependentSchemas", "enum",
    "exclusiveMaximum", "exclusiveMinimum", "if", "items", "maxItems", "maxLength", "maxProperties", "maximum",
    "minItems", "minLength", "minProperties", "minimum", "multipleOf", "not", "oneOf", "pattern", "patternProperties",
    "prefixItems", "properties", "propertyNames", "required", "type", "unevaluatedItems", "unevaluatedProperties",
    "uniqueItems",
})  # fmt: skip


def read(
    document: object,
    *,
    name: str = "schema",
    documents: Mapping[str, object] | None = None,
) -> Contracts:
    """Return the contracts in a document.

    It is a mapping or a sequence: OpenAPI 3.0, 3.1 or 3.2, Swagger 2.0, the list of tools of an MCP server (or its
    whole answer), tools for OpenAI in either form or for Anthropic, alone or in a list, mixed too, or a JSON Schema of
    drafts 4 to 2020-12, whose contract is then called `name`. `documents` are those that `$ref`s may lead to, by
    absolute address; nothing is ever fetched.

    Raises ConfigError, with the JSON Pointer, for what is none of these and for what is wrong in it. Reads a copy:
    later changes of `document` change nothing. Costs about 0.4 s for the 7 MB and 1,223 operations of GitHub.

    >>> contracts = read([{"name": "add", "inputSchema": {"type": "object", "required": ["a", "b"]}}])
    >>> contracts.find("add").parts[0].location.value
    'arguments'
    """
    try:
        known = own_copy(dict(documents or {}))
        return _read(own_copy(document), name, known if is_object(known) else {})
    except RecursionError as error:
        raise ConfigError("the document is nested too deep to be a contract: flatten it") from error


def _read(root: object, name: str, known: Documents) -> Contracts:
    if is_object(root):
        if "openapi" in root or "swagger" in root:
            return _described(root, known)
        if is_tool(root):
            return read_tools([(root, "")], known)
    tools = tool_list(root)
    if tools is not None:
        entries, pointer = tools
        return read_tools([(entry, child(pointer, index)) for index, entry in enumerate(entries)], known)
    if is_object(root) and not _KEYWORDS.isdisjoint(root):
        return read_schema(root, name, known)
    raise ConfigError(
        f"this {word(root)} is no contract: give an OpenAPI or Swagger document (with `openapi` or `swagger`), a list "
        "of tools (`tools`, or an array), one tool, or a JSON Schema (with `type`, `properties` ...)"
    )


def _described(root: dict[str, object], known: Documents) -> Contracts:
    """Return the contracts of an OpenAPI or Swagger document."""
    agreed = {key: value for key, value in root.items() if key not in _ASIDE and not key.startswith("x-")}
    text = msgspec.json.encode(agreed, order="sorted")  # the canonical form: our copy has no 1.0
    digest = hashlib.sha256(text).hexdigest()
    marks = [direction for direction in Direction if f'"{direction}":true'.encode() in text]
    if "openapi" in root:
        return read_openapi(root, digest, marks, known)
    return read_swagger(root, digest, marks)
