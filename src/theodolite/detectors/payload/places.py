"""What is declared of the values at one place of a call, by whatever branch, and of those below it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from jsonschema_rs import Draft202012Validator, RegexOptions
from msgspec import Struct

from theodolite.contracts.direction import FORBIDS
from theodolite.contracts.nodes import Node, expand
from theodolite.core.arguments import is_mapping, is_sequence

__all__ = ("Places", "Table")

# Tables that are kept (our choice); there are as many as a document has places, and this bounds them.
_KEPT = 4_096
# Schemas that one place of a value is held against, with all branches of all unions.
_BRANCHES = 200
_UNIONS = ("anyOf", "oneOf")
_CONDITIONS = ("if", "then", "else")


class Table(Struct, frozen=True, kw_only=True):
    """What is declared of the values at one place, by whatever branch."""

    properties: Mapping[str, tuple[Node, ...]]
    patterns: tuple[tuple[Draft202012Validator, Node], ...]
    rest: tuple[Node, ...]
    items: tuple[Node, ...]
    first: tuple[tuple[Node, ...], ...]
    formats: tuple[str, ...]
    closed: bool
    read_only: bool

    def named(self, name: str) -> tuple[Node, ...] | None:
        """Return the schemas of a field; none where nothing is known of any, and None of one that is not declared."""
        found = self.properties.get(name, ())
        if self.patterns:
            found += tuple([node for pattern, node in self.patterns if pattern.is_valid(name)])
        if found or self.rest:
            return found or self.rest
        return None if (self.properties or self.patterns) and not self.closed else ()

    def item(self, place: int) -> tuple[Node, ...]:
        """Return the schemas of an item."""
        return self.first[place] if place < len(self.first) else self.items

    def below(self, value: object) -> Iterator[tuple[str | int, tuple[Node, ...], object]]:
        """Yield what is inside a value and declared: its key or place, its schemas, and the value there."""
        if is_mapping(value):
            for key, item in value.items():
                if nodes := self.named(str(key)):
                    yield str(key), nodes, item
        elif is_sequence(value):
            for place, item in enumerate(value):
                if nodes := self.item(place):
                    yield place, nodes, item


class Places:
    """Works out tables, and keeps them. Cost: some 50 us for each that is met for the first time."""

    def __init__(self) -> None:
        self._tables: dict[tuple[int, ...], Table] = {}

    def table(self, nodes: tuple[Node, ...]) -> Table:
        """Return what is declared at a place by schemas of it, which have to outlive this."""
        key = tuple([id(node.schema) for node in nodes])
        made = self._tables.get(key)
        if made is None:
            if len(self._tables) >= _KEPT:
                self._tables.clear()
            made = self._tables[key] = _made(nodes)
        return made


def _made(nodes: tuple[Node, ...]) -> Table:
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
    return Table(
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
