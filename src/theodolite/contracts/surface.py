"""What two schemas declare at each place, by name, and what they say there in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec
from msgspec import Struct

from theodolite.contracts.digest import canonical
from theodolite.contracts.document import child, is_list
from theodolite.contracts.nodes import Node, expand, named
from theodolite.contracts.plain import EVALUATED_OTHERWISE, NOT_COMPARED, WHOLE_NUMBER

__all__ = ("PLACES", "Spoken", "Surface", "below", "speaking")

# Places that are compared in one part of a contract (our choice; the largest bodies that we have read have 20,000).
PLACES = 200_000
_UNIONS = ("anyOf", "oneOf")
_ARMS = ("if", "then", "else")
# What decides whether a value is accepted, or leads to a schema. All else is words: for people, models and tools.
_DECIDES = frozenset(
    {
        *("type", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("minLength", "maxLength", "pattern", "format", "contentEncoding", "contentMediaType", "contentSchema"),
        *("items", "prefixItems", "contains", "minContains", "maxContains", "minItems", "maxItems", "uniqueItems"),
        *("properties", "patternProperties", "additionalProperties", "propertyNames", "required", "minProperties"),
        *("maxProperties", "dependentRequired", "dependentSchemas", "unevaluatedProperties", "unevaluatedItems"),
        *("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "$ref", "$dynamicRef", "$recursiveRef"),
        *("dependencies", "additionalItems", NOT_COMPARED, WHOLE_NUMBER, EVALUATED_OTHERWISE),
        *("discriminator", "readOnly", "$defs", "definitions", "$id", "$schema", "$anchor", "$dynamicAnchor"),
    }
)


class Spoken(Struct, frozen=True):
    """A name that only one of two schemas declares, or words of both that differ, and where.

    `keyword` is `properties` for a name, of which `gone` says that the old one has it and the new one does not;
    otherwise it is the keyword whose words differ, and `gone` that the old one had some: `before` are those that the
    old one alone has, `after` those of the new one.
    """

    pointer: str
    keyword: str
    gone: bool
    before: tuple[object, ...] = ()
    after: tuple[object, ...] = ()


class Surface:
    """Compares places, and remembers what it has found alike; made once for two sets of documents."""

    def __init__(self) -> None:
        self._alike: set[_Key] = set()
        self._groups: dict[tuple[int, ...], _Group] = {}

    def spoken(self, old: Node, new: Node) -> tuple[Spoken, ...]:
        """Return the names that only one of two schemas declares, and what differs in words, place by place.

        A place is compared once however often it can be reached: recursion ends. Linear in the places of both.
        """
        found: list[Spoken] = []
        seen: set[_Key] = set()
        waiting = [("", self._group([old]), self._group([new]))]
        while waiting and len(seen) < PLACES:
            pointer, before, after = waiting.pop()
            key = (before.key, after.key)
            if key in seen or key in self._alike or before.key == after.key:
                continue
            seen.add(key)
            found.extend(_apart(pointer, before, after))
            waiting += [
                (f"{pointer}{token[1:]}", self._group(before.below[token]), self._group(after.below[token]))
                for token in sorted(before.below.keys() & after.below.keys(), reverse=True)
            ]
        if not found and not waiting:
            self._alike |= seen
        return tuple(found)

    def _group(self, nodes: Sequence[Node]) -> _Group:
        starts = tuple([id(one.schema) for one in nodes])
        group = self._groups.get(starts)
        if group is None:
            group = self._groups[starts] = _grouped(speaking(nodes))
        return group


class _Group(NamedTuple):
    """All schemas that speak of a place, by their ids; the places below; the words."""

    key: frozenset[int]
    nodes: tuple[Node, ...]
    below: dict[str, list[Node]]
    words: frozenset[tuple[str, bytes]]


def _apart(pointer: str, before: _Group, after: _Group) -> Iterator[Spoken]:
    for keyword in sorted({name for name, _ in before.words ^ after.words}):
        gone = any(name == keyword for name, _ in before.words)
        went, came = _said(before.words - after.words, keyword), _said(after.words - before.words, keyword)
        yield Spoken(pointer, keyword, gone, went, came)
    for token in sorted(before.below.keys() ^ after.below.keys()):
        if token[0] == ".":
            yield Spoken(f"{pointer}{token[1:]}", "properties", gone=token in before.below)


def _said(words: frozenset[tuple[str, bytes]], keyword: str) -> tuple[object, ...]:
    texts = sorted([text for name, text in words if name == keyword])
    return tuple([value for text in texts for value in msgspec.json.decode(text, type=list[object])])


_Key = tuple[frozenset[int], frozenset[int]]


def _grouped(nodes: tuple[Node, ...]) -> _Group:
    words = [
        (keyword, canonical([value]))
        for one in nodes
        for keyword, value in one.keywords.items()
        if keyword not in _DECIDES
    ]
    return _Group(frozenset([id(one.schema) for one in nodes]), nodes, below(nodes), frozenset(words))


def speaking(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """Return all schemas that speak of one place, in the order in which they are written."""
    found: dict[int, Node] = {}
    waiting = [*nodes][::-1]
    while waiting:
        for one in expand(waiting.pop(), found):
            found[id(one.schema)] = one
            unions = [branches for keyword in _UNIONS if is_list(branches := one.keywords.get(keyword))]
            inner = [branch for branches in unions for branch in branches]
            inner += [one.keywords[arm] for arm in _ARMS if arm in one.keywords]
            inner += named(one.keywords.get("dependentSchemas")).values()
            waiting.extend(map(one.child, reversed(inner)))
    return tuple(found.values())


def below(nodes: Iterable[Node]) -> dict[str, list[Node]]:
    """Return the places below: the pointer behind `.` for a name, behind `*` for all else."""
    found: dict[str, list[Node]] = {}
    for one in nodes:
        for name, schema in named(one.keywords.get("properties")).items():
            found.setdefault(f".{child('', name)}", []).append(one.child(schema))
        for keyword in ("items", "additionalProperties"):
            if keyword in one.keywords:
                found.setdefault("*/*", []).append(one.child(one.keywords[keyword]))
        prefix = one.keywords.get("prefixItems")
        for place, schema in enumerate(prefix if is_list(prefix) else ()):
            found.setdefault(f"*/{place}", []).append(one.child(schema))
        for schema in named(one.keywords.get("patternProperties")).values():
            found.setdefault("*/*", []).append(one.child(schema))
    return found
