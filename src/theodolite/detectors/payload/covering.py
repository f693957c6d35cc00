"""A schema that also looks at what it does not ask about, so that one pass of the engine both checks and vouches.

To vouch for a value costs as much as to check it (`values.vouch`). Most contracts name most of what they are sent, so
that it is cheaper to look, in the same pass, at the rest alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from theodolite.contracts.nodes import Node, is_schema
from theodolite.core.arguments import MAX_DEPTH, is_mapping, is_sequence
from theodolite.core.contract import Location, Part, Schema
from theodolite.detectors.payload.values import LEVELS, TEXT

__all__ = ("cover", "cover_call")

# Schemas that one part may lead to (our choice): a copy of them is compiled once more.
_MOST = 20_000
# What is evaluated by names that a copy does not keep, or by what else was looked at: such schemas are left alone.
_REFUSED = frozenset({
    "$anchor", "$dynamicAnchor", "$dynamicRef", "$id", "$recursiveAnchor", "$recursiveRef", "$schema", "$vocabulary",
    "additionalItems", "dependencies", "id", "unevaluatedItems", "unevaluatedProperties",
})  # fmt: skip
_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_MAPS = frozenset({"dependentSchemas", "patternProperties", "properties"})
_SINGLE = frozenset({"additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then"})
# Where a member that is looked at in full makes the whole looked at in full, and asks for no less than before.
_PASSED_ON = ("allOf", "anyOf")
_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_REST: dict[str, object] = {"$ref": "#/$defs/rest"}
_TEXTS = {"not": {"enum": [TEXT]}}


class _LeftAloneError(Exception):
    """This schema cannot be covered: it leads back to itself, or is of a kind that is left alone."""


def cover(schema: Schema, documents: Mapping[str, object]) -> dict[str, object] | None:
    """Return a schema that accepts nothing that the given one refuses, and nothing that is not vouched for; or None.

    It may refuse what the given one accepts, such as values of a named tuple's: then the long way is to be taken. None
    comes of a schema that leads back to itself, since the depth of its values has no bound, of names, anchors, dynamic
    references and `unevaluated...`, of other drafts, and of very large ones. Linear in the schemas that it leads to.

    Why it is sound: schemas are made stricter only where a stricter one accepts less (under `properties`, `items`,
    `allOf`, `anyOf` ... and never under `not`, `if` or `oneOf`), and by induction over the value each of its parts is
    held against `rest`, a type, or an enum, which are what `vouch` goes by.
    """
    covering = _Covering()
    try:
        whole, height = covering.copy(Node(schema, documents), full=True)
    except (_LeftAloneError, RecursionError):  # references that lead on and on
        return None
    return covering.finished({"allOf": [whole]}, height)


def cover_call(
    parameters: Sequence[Part], body: Part | None, documents: Mapping[str, object]
) -> dict[str, object] | None:
    """Return a schema for the flat arguments of an operation, such as `cover` does; or None.

    What it accepts is valid after `contracts.splitting` has taken it apart: no name is one of its special ones, none
    belongs to two parameters, and the body is a plain object schema, of which a parameter that stands beside its fields
    is no part. None comes of headers too, whose names have no case.
    """
    names = [part.name for part in parameters]
    if len(set(names)) < len(names) or any(part.location is Location.HEADER for part in parameters):
        return None
    covering = _Covering()
    try:
        whole, height = _body(covering, body, documents) if body is not None else ({"additionalProperties": False}, 0)
        properties, required = _mapping(whole.get("properties")), _names(whole.get("required"))
        if not (properties.keys() | set(required)).isdisjoint(names):
            return None
        for part in parameters:
            properties[part.name], levels = covering.copy(Node(part.schema, documents), full=True)
            height = max(height, levels + 1)
    except (_LeftAloneError, RecursionError):  # references that lead on and on
        return None
    required.extend(part.name for part in parameters if part.required)
    flat = {**whole, "type": "object", "properties": properties, "required": required, "patternProperties": _FLAT}
    return covering.finished(flat, height)


def _body(covering: _Covering, body: Part, documents: Mapping[str, object]) -> tuple[dict[str, object], int]:
    """Return the copy of the schema of a body if it is plain: nothing but fields, by name and one by one."""
    node = Node(body.schema, documents)
    seen: set[int] = set()
    while "$ref" in node.keywords and _ASKS.isdisjoint(node.keywords.keys() - {"$ref"}):
        if id(node.schema) in seen:
            raise _LeftAloneError
        seen.add(id(node.schema))
        node = _followed(node)
    kinds = set(_types(node.keywords))
    if (
        isinstance(node.schema, bool)
        or (kinds and "object" not in kinds)
        or not (_ASKS - _PLAIN).isdisjoint(node.schema)
    ):
        raise _LeftAloneError
    made, height = covering.copy(Node({**node.schema, "type": "object"}, node.documents, node.base), full=True)
    return _mapping(made), height


def _mapping(value: object) -> dict[str, object]:
    return {str(key): item for key, item in value.items()} if is_mapping(value) else {}


def _names(value: object) -> list[str]:
    return [str(name) for name in value] if is_sequence(value) else []


# All keywords that ask for something, and those of them that ask for fields one by one.
_ASKS = (
    _REFUSED | _LISTS | _MAPS | _SINGLE
    | {"$ref", "const", "dependentRequired", "enum", "exclusiveMaximum", "exclusiveMinimum", "maxContains", "maxItems",
       "maxLength", "maxProperties", "maximum", "minContains", "minItems", "minLength", "minProperties", "minimum",
       "multipleOf", "pattern", "required", "type", "uniqueItems"}
)  # fmt: skip
_PLAIN = frozenset({"additionalProperties", "properties", "required", "type"})
# The names that `contracts.splitting` gives a meaning of their own (rules 1 to 3 of its Splitter).
_FLAT: dict[str, object] = {r"[.]|__|^(path|query|header|cookie|body)$": False}


class _Covering:
    """Copies schemas into definitions of one document: in `full`, which looks at everything, or as they are."""

    def __init__(self) -> None:
        self.definitions: dict[str, object] = {}
        self._heights: dict[tuple[int, bool], int] = {}
        self._names: dict[tuple[int, bool], str] = {}
        self._kept: list[Node] = []
        self._room = _MOST

    def finished(self, whole: dict[str, object], height: int) -> dict[str, object] | None:
        """Return a schema with the definitions that it leads to; None where values of it may be too deep."""
        if height >= MAX_DEPTH:
            return None
        rest = {"$ref": f"#/$defs/{MAX_DEPTH - height}"}
        return {**whole, "$defs": {**LEVELS, **self.definitions, "rest": rest}}

    def copy(self, node: Node, *, full: bool) -> tuple[dict[str, object] | bool, int]:
        """Return a copy, and how many levels of a value it leads to at most."""
        self._room -= 1
        if not self._room or not _REFUSED.isdisjoint(node.keywords):
            raise _LeftAloneError
        if isinstance(node.schema, bool):
            return (_REST if full and node.schema else node.schema), 0
        said = node.schema
        own = full and _own(said)
        passed = "$ref" if "$ref" in said else next((key for key in _PASSED_ON if said.get(key)), "")
        made: dict[str, object] = {}
        height = 0
        for key, value in said.items():
            stricter = (own and key in _COVERED) or (full and not own and key == passed)
            made[key], levels = self._keyword(node, key, value, full=stricter)
            height = max(height, levels + (key in _COVERED))
        if own:
            _look(made)
        elif full and not passed and "enum" not in said and "const" not in said:
            return {"allOf": [made, _REST]}, height
        return made, height

    def _keyword(self, node: Node, key: str, value: object, *, full: bool) -> tuple[object, int]:
        if key == "$ref":
            return self._reference(node, full=full)
        if key in _SINGLE and is_schema(value):
            return self.copy(node.child(value), full=full)
        if key in _LISTS and is_sequence(value):
            made = [self.copy(node.child(item), full=full) for item in value]
            return [schema for schema, _ in made], max((levels for _, levels in made), default=0)
        if key in _MAPS and is_mapping(value):
            below = {str(name): self.copy(node.child(item), full=full) for name, item in value.items()}
            return {name: schema for name, (schema, _) in below.items()}, max((h for _, h in below.values()), default=0)
        return ({} if key in {"$defs", "definitions"} else value), 0

    def _reference(self, node: Node, *, full: bool) -> tuple[str, int]:
        target = _followed(node)
        key = (id(target.schema), full)
        if key not in self._names:
            self._names[key] = f"{'full' if full else 'plain'}{len(self._names)}"
            self._kept.append(target)
            self.definitions[self._names[key]], self._heights[key] = self.copy(target, full=full)
        if key not in self._heights:  # it leads back to itself
            raise _LeftAloneError
        return f"#/$defs/{self._names[key]}", self._heights[key]


_FIELDS = frozenset({"additionalProperties", "patternProperties", "properties"})


def _followed(node: Node) -> Node:
    """Return what a `$ref` leads to, in a document that is in the draft of the cover."""
    target = node.followed()
    root = None if target is None else target.documents[target.base]
    if target is None or (is_mapping(root) and root.get("$schema", _DRAFT) != _DRAFT):
        raise _LeftAloneError
    return target


# Keywords whose schemas are for what is inside a value.
_COVERED = frozenset({"additionalProperties", "items", "patternProperties", "prefixItems", "properties"})


def _types(said: Mapping[str, object]) -> Iterator[str]:
    kinds = said.get("type")
    if isinstance(kinds, str):
        yield kinds
    elif is_sequence(kinds):
        yield from map(str, kinds)


def _own(said: Mapping[str, object]) -> bool:
    """Whether a schema says itself what is inside, or that nothing is: then it is made to look at the rest of it."""
    if "enum" in said or "const" in said:
        return False
    return not _COVERED.isdisjoint(said) or ("type" in said and "$ref" not in said)


def _look(made: dict[str, object]) -> None:
    """Make a schema look at all that is inside, too."""
    # A schema without a type takes everything else as well; what has fields is an object, but for very odd calls.
    made.setdefault("type", "array" if made.keys().isdisjoint(_FIELDS) else "object")
    kinds = set(_types(made))
    if "object" in kinds:
        made.setdefault("additionalProperties", _REST)
    if "array" in kinds:
        made.setdefault("items", _REST)
    if "string" in kinds and "pattern" not in made:
        if "not" in made:
            whole = made.get("allOf")
            made["allOf"] = [*(whole if is_sequence(whole) else ()), _TEXTS]
        else:
            made.update(_TEXTS)
