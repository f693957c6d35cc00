"""What a contract does not forbid and yet does not know: fields that it names nowhere, read-only ones, odd formats.

Only 2 of 100 published bodies are closed to further fields, so that a field that a model made up is seldom refused. It
is told all the same, as an observation: apart from the check, since it takes a walk in Python.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import islice

from jsonschema_rs import Draft202012Validator, RegexOptions
from msgspec import Struct

from theodolite.contracts.direction import FORBIDS
from theodolite.contracts.nodes import Node, expand
from theodolite.core.arguments import is_mapping, is_sequence, pointer
from theodolite.core.contract import Divergence, Kind, Location
from theodolite.detectors.payload.values import word

__all__ = ("Declarations",)

# Values that are walked over, and observations that are told: the rest of a longer call is not looked at.
_ROOM, _MOST = 5_000, 100
# Schemas that one place of a value is held against, with all branches of all unions.
_BRANCHES = 200
# Tables that are kept; there are as many as a document has places, and this bounds them.
_KEPT = 4_096
_UNIONS = ("anyOf", "oneOf")
_CONDITIONS = ("if", "then", "else")
# OpenAPI's own formats of numbers (3.0.4, data types), which the engine does not know.
_BITS = {"int32": 31, "int64": 63}


# The way to a value, backwards: text is made of it only where there is something to tell.
_Trail = tuple["_Trail", str | int] | None
# Schemas, the value that they are of, and the way to it.
_Step = tuple[tuple[Node, ...], object, _Trail]


# A kind, the way to the value, what was due there, and the value.
_Seen = tuple[Kind, _Trail, str, object]


class _Table(Struct, frozen=True, kw_only=True):
    """What is declared of the values at one place, by whatever branch."""

    properties: Mapping[str, tuple[Node, ...]]
    patterns: tuple[tuple[Draft202012Validator, Node], ...]
    rest: tuple[Node, ...]
    items: tuple[Node, ...]
    first: tuple[tuple[Node, ...], ...]
    formats: tuple[str, ...]
    closed: bool
    read_only: bool


class Declarations:
    """Tells of what a contract does not declare; keeps what was worked out of each schema.

    Cost: about 2 us for each value, after some 50 us for each schema that is met for the first time.
    """

    def __init__(self) -> None:
        self._tables: dict[tuple[int, ...], _Table] = {}

    def observe(
        self, node: Node, value: object, location: Location = Location.ARGUMENTS, prefix: str = ""
    ) -> tuple[Divergence, ...]:
        """Return what of a value its schema does not declare: at most 100 observations, none of which denies.

        `undeclared_field`, where the schema names fields and this is none of them, nor of a pattern, nor described by
        `additionalProperties`: what any branch of any union names counts as declared. `read_only_sent`, of what OpenAPI
        3 says that it SHOULD NOT be sent, except in a result; where Swagger 2.0 says MUST NOT, the check denies it.
        `format_mismatch`, for the formats that the engine knows, int32 and int64.
        """
        found = islice(self._walk((node,), value, asks=location is not Location.RESULT), _MOST)
        return tuple([_observed(kind, location, _pointer(prefix, at), due, one) for kind, at, due, one in found])

    def _walk(self, nodes: tuple[Node, ...], value: object, *, asks: bool) -> Iterator[_Seen]:
        todo: list[_Step] = [(nodes, value, None)]
        room = _ROOM
        while todo and room:
            room -= 1
            here, one, trail = todo.pop()
            table = self._table(here)
            for name in table.formats:
                if not _formed(name, one):
                    yield Kind.FORMAT_MISMATCH, trail, f"format {name[:200]}", one
            if is_mapping(one):
                for key, item in one.items():
                    below = _named(table, str(key))
                    if below is None:
                        yield Kind.UNDECLARED_FIELD, (trail, str(key)), "absent", item
                    elif below:
                        if asks and self._table(below).read_only:
                            yield Kind.READ_ONLY_SENT, (trail, str(key)), "absent", item
                        todo.append((below, item, (trail, str(key))))
            elif is_sequence(one):
                todo.extend(_items(table, one[:room], trail))

    def _table(self, nodes: tuple[Node, ...]) -> _Table:
        key = tuple([id(node.schema) for node in nodes])
        made = self._tables.get(key)
        if made is None:
            if len(self._tables) >= _KEPT:
                self._tables.clear()
            made = self._tables[key] = _made(nodes)
        return made


def _made(nodes: tuple[Node, ...]) -> _Table:
    certain = list({id(one.schema): one for node in nodes for one in expand(node)}.values())
    every = _branches(certain)
    properties: dict[str, list[Node]] = {}
    first: list[list[Node]] = []
    patterns: list[tuple[Draft202012Validator, Node]] = []
    rest: list[Node] = []
    items: list[Node] = []
    for node in every:
        words = node.keywords
        for name, schema in _entries(words.get("properties")):
            properties.setdefault(name, []).append(node.child(schema))
        patterns.extend((_pattern(name), node.child(s)) for name, s in _entries(words.get("patternProperties")))
        rest.extend(
            node.child(words[key]) for key in ("additionalProperties", "unevaluatedProperties") if words.get(key)
        )
        prefix = words.get("prefixItems")
        for place, schema in enumerate(prefix if is_sequence(prefix) else ()):
            first.extend([[] for _ in range(place + 1 - len(first))])
            first[place].append(node.child(schema))
        items.extend(node.child(words[key]) for key in ("items", "unevaluatedItems") if is_mapping(words.get(key)))
    return _Table(
        properties={name: tuple(below) for name, below in properties.items()},
        patterns=tuple(patterns),
        rest=tuple([node for node in rest if node.keywords]),
        items=tuple(items),
        first=tuple([tuple(below) for below in first]),
        formats=tuple({str(node.keywords["format"]) for node in certain if "format" in node.keywords}),
        closed=any(node.keywords.get("additionalProperties") is False for node in certain),
        # What may not be sent at all is denied by the check.
        read_only=any(node.keywords.get("readOnly") is True for node in certain)
        and not any(node.keywords.get("not") == FORBIDS for node in certain),
    )


def _branches(nodes: Iterable[Node]) -> list[Node]:
    """Return schemas with all branches of their unions and conditions, and what these refer to."""
    found: dict[int, Node] = {}
    todo = list(nodes)
    while todo and len(found) < _BRANCHES:
        node = todo.pop()
        if id(node.schema) in found:
            continue
        found[id(node.schema)] = node
        words = node.keywords
        unions = [branch for key in _UNIONS if is_sequence(listed := words.get(key)) for branch in listed]
        conditions = [words[key] for key in _CONDITIONS if key in words]
        depending = [schema for _, schema in _entries(words.get("dependentSchemas"))]
        for schema in (*unions, *conditions, *depending):
            todo.extend(expand(node.child(schema)))
    return list(found.values())


def _items(table: _Table, value: Sequence[object], trail: _Trail) -> Iterator[_Step]:
    for place, item in enumerate(value):
        below = table.first[place] if place < len(table.first) else table.items
        if below:
            yield below, item, (trail, place)


def _pointer(prefix: str, trail: _Trail) -> str:
    keys: list[str | int] = []
    while trail is not None:
        trail, key = trail
        keys.append(key)
    for key in reversed(keys):
        prefix = pointer(prefix, key)
    return prefix


def _named(table: _Table, name: str) -> tuple[Node, ...] | None:
    """Return the schemas of a field; none where nothing is known of any, and None of one that is not declared."""
    found = table.properties.get(name, ())
    if table.patterns:
        found += tuple([node for pattern, node in table.patterns if pattern.is_valid(name)])
    if found or table.rest:
        return found or table.rest
    return None if (table.properties or table.patterns) and not table.closed else ()


def _entries(value: object) -> Iterator[tuple[str, object]]:
    if is_mapping(value):
        for name, schema in value.items():
            yield str(name), schema


@cache
def _any() -> Draft202012Validator:
    return Draft202012Validator({}, offline=True)


def _pattern(text: str) -> Draft202012Validator:
    """Return what tells whether a name fits a pattern; everything does that has no form in linear time."""
    try:
        return Draft202012Validator({"pattern": text}, offline=True, pattern_options=RegexOptions())
    except ValueError:
        return _any()


@lru_cache(maxsize=64)
def _format(name: str) -> Draft202012Validator:
    return Draft202012Validator({"format": name}, offline=True, validate_formats=True)


def _formed(name: str, value: object) -> bool:
    """Whether a value has a format, as far as is known of it."""
    if isinstance(value, str):
        return _format(name).is_valid(value)
    if name in _BITS and isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return -(1 << _BITS[name]) <= value < 1 << _BITS[name]
    return True


def _observed(kind: Kind, location: Location, where: str, expected: str, value: object) -> Divergence:
    return Divergence(
        kind=kind, location=location, pointer=where, expected=expected, observed=word(value), denies=False
    )
