"""Changes to JSON that keep it JSON: keywords put in, taken out and moved, references turned, text that is hostile."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import TypeAlias

__all__ = ("mutated",)

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
Raw = Callable[[bytes, int], bytes]

_MOST_CHANGES = 4
_KEYS = (
    "$anchor", "$defs", "$dynamicAnchor", "$dynamicRef", "$id", "$ref", "$schema", "$self", "additionalItems",
    "additionalOperations", "additionalProperties", "allOf", "allowEmptyValue", "anyOf", "collectionFormat",
    "components", "const", "consumes", "contains", "content", "definitions", "dependencies", "dependentRequired",
    "dependentSchemas", "discriminator", "else", "enum", "exclusiveMaximum", "exclusiveMinimum", "explode", "format",
    "function", "get", "id", "if", "in", "inputSchema", "input_schema", "items", "jsonSchemaDialect", "mapping",
    "maxItems", "maxLength", "maxProperties", "maximum", "minItems", "minLength", "minProperties", "minimum",
    "multipleOf", "name", "not", "nullable", "oneOf", "openapi", "operationId", "outputSchema", "parameters", "paths",
    "pattern", "patternProperties", "post", "prefixItems", "properties", "propertyName", "propertyNames", "query",
    "readOnly", "requestBody", "required", "responses", "schema", "schemas", "style", "swagger", "then", "tools",
    "type", "unevaluatedItems", "unevaluatedProperties", "uniqueItems", "webhooks", "writeOnly", "x-more", "$py",
    "body", "path", "header", "", "~", "/", "a/b~c",
)  # fmt: skip
_TEXTS = (
    "", "a", "string", "integer", "object", "array", "null", "number", "boolean", "file", "strng", "date-time",
    "uuid", "#", "#/", "#/components", "#/components/schemas/tree", "#/$defs/node", "#node", "#/paths/~1items/post",
    "#/%zz", "#/~2", "https://example.org/x", "urn:x:y", "file:///etc/passwd", "//x", "^(a+)+$", "(?<=a)b", "(",
    "\\1", "^[a-z]+$", "\\p{L}", "3.0.3", "3.1.0", "3.2.0", "2.0", "9.9", "http://json-schema.org/draft-07/schema#",
    "http://json-schema.org/draft-04/schema#", "path", "query", "header", "cookie", "querystring", "body", "formData",
    "multipart/form-data", "application/json", "*/*", "\u202e\u0007\x1b[31m", "\ud800", "\U0001f600" * 40, "x" * 5000,
    "nan", "deep", "cycle", "surrogate", "huge", "1.0", "true", "{}", "[1]", '"a"', "secret-value-of-the-call",
)  # fmt: skip
_NUMBERS = (0, 1, -1, 2, 3, 0.5, 1.0, -0.0, 1e308, 5e-324, 2**31, 2**53 + 1, 2**63, 2**64, 10**30, -(10**30), 1e22, 0.1)
_SCHEMAS: tuple[Json, ...] = (
    True, False, {}, {"type": "string"}, {"type": ["integer", "null"]}, {"$ref": "#"}, {"not": {}}, {"enum": []},
    {"allOf": []}, {"type": "array", "items": {"$ref": "#/$defs/node"}},
    {"properties": {"a": {"readOnly": True}}, "required": ["a"]}, {"pattern": "^(a+)+$"}, {"const": None},
    {"dependentRequired": {"a": ["b"]}}, {"if": {"required": ["a"]}, "then": False}, {"$id": "x", "$anchor": "y"},
)  # fmt: skip


def mutated(data: bytes, most: int, seed: int, raw: Raw) -> bytes:
    """Return changed bytes, at most so many. `raw` changes what is no JSON, and now and then what is."""
    dice = Random(seed)
    try:
        value: Json = json.loads(data)
    except (ValueError, RecursionError):
        return raw(data, most)
    if dice.random() < 0.05:
        return raw(data, most)
    try:
        for _ in range(dice.randint(1, _MOST_CHANGES)):
            value = _changed(value, dice)
        new = json.dumps(value, ensure_ascii=dice.random() < 0.8).encode("utf-8", "surrogatepass")
    except RecursionError:
        return data[:most]
    return new if len(new) <= most else data[:most]


def _changed(root: Json, dice: Random) -> Json:
    places = _places(root)
    keys = dice.choice(places)
    way = dice.choice((_replaced, _replaced, _keyed, _keyed, _removed, _renamed, _moved, _turned, _wrapped, _doubled))
    return _put(root, keys, way(_at(root, keys), root, places, dice))


def _replaced(node: Json, root: Json, places: list[tuple[str | int, ...]], dice: Random) -> Json:
    del node, root, places
    choices: tuple[tuple[Json, ...], ...] = (_TEXTS, _NUMBERS, _SCHEMAS, (None, True, False, [], {}))
    return dice.choice(dice.choice(choices))


def _keyed(node: Json, root: Json, places: list[tuple[str | int, ...]], dice: Random) -> Json:
    new = _replaced(node, root, places, dice)
    if isinstance(node, dict):
        return {**node, dice.choice(_KEYS): new}
    return [*node, new] if isinstance(node, list) else new


def _removed(node: Json, root: Json, places: list[tuple[str | int, ...]], dice: Random) -> Json:
    del root, places
    if isinstance(node, dict) and node:
        gone = dice.choice(list(node))
        return {key: entry for key, entry in node.items() if key != gone}
    return node[1:] if isinstance(node, list | str) else node


def _renamed(node: Json, root: Json, places: list[tuple[str | int, ...]], dice: Random) -> Json:
    del root, places
    if isinstance(node, dict) and node:
        old = dice.choice(list(node))
        return {dice.choice(_KEYS) if key == old else key: entry for key, entry in node.items()}
    return node


def _moved(node: Json, root: Json, places: list[tuple[str | int, ...]], dice: Random) -> Json:
    other = _at(root, dice.choice(places))
    if isinstance(node, dict) and dice.random() < 0.5:
        return {**node, dice.choice(_KEYS): other}
    return other


def _turned(node: Json, root: Json, places: list[tuple[str | int, ...]], dice: Random) -> Json:
    """Make the place refer to another one of the document."""
    del root
    pointer = "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in dice.choice(places))
    if isinstance(node, dict) and dice.random() < 0.5:
        return {**node, "$ref": f"#{pointer}"}
    return {"$ref": f"#{pointer}"}


def _wrapped(node: Json, root: Json, places: list[tuple[str | int, ...]], dice: Random) -> Json:
    del root, places
    key = dice.choice((*_KEYS, None, None))
    for _ in range(dice.choice((1, 1, 2, 5, 60))):
        node = [node] if key is None else {key: node}
    return node


def _doubled(node: Json, root: Json, places: list[tuple[str | int, ...]], dice: Random) -> Json:
    del root, places
    if isinstance(node, list) and node:
        return node * dice.choice((2, 3, 40)) if len(node) < 50 else node
    return json.dumps(node) if dice.random() < 0.5 else [node, node]


def _places(root: Json) -> list[tuple[str | int, ...]]:
    found: list[tuple[str | int, ...]] = []
    stack: list[tuple[tuple[str | int, ...], Json]] = [((), root)]
    while stack:
        keys, node = stack.pop()
        found.append(keys)
        pairs = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
        stack.extend(((*keys, key), below) for key, below in pairs)
    return found


def _at(root: Json, keys: tuple[str | int, ...]) -> Json:
    if keys and isinstance(root, dict):
        return _at(root[str(keys[0])], keys[1:])
    if keys and isinstance(root, list):
        return _at(root[int(keys[0])], keys[1:])
    return root


def _put(root: Json, keys: tuple[str | int, ...], value: Json) -> Json:
    if not keys:
        return value
    first, rest = keys[0], keys[1:]
    if isinstance(root, dict) and isinstance(first, str):
        return {**root, first: _put(root[first], rest, value)}
    if isinstance(root, list) and isinstance(first, int):
        return [*root[:first], _put(root[first], rest, value), *root[first + 1 :]]
    return root
