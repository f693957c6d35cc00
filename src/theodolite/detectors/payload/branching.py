"""How many ways a schema has at one place of a value: a short one can ask the engine for more than ever ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import unquote, urljoin

from jsonschema_rs import ReferencingError, Registry

from theodolite.contracts.dialects import EVERY_KEYWORD, Holds
from theodolite.contracts.document import is_list, is_object
from theodolite.contracts.nodes import named
from theodolite.core.arguments import is_mapping, is_sequence
from theodolite.core.contract import Schema

__all__ = ("MAX_WAYS", "Branching")

MAX_WAYS = 10_000
"""Schemas that may be held against one place of a value, each counted as often as it is come to (our choice).

The most that one of five published documents has is 117 (the API of GitHub). The engine takes 30 ns for each, and
35 us to list one that fails.
"""

# Steps in all through what leads back to itself (our choice): they take a second or two.
_STEPS = 200_000
# How often one schema leads to another at one place (our choice), as the engine goes from level to level of a value by
# calling itself: a thread with a stack of 512 kB held 40 times 97 levels, and not 80 times.
_MAX_CHAIN = 40
_ALIKE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies")
_FIELDS = ("additionalProperties", "unevaluatedProperties")
_ITEMS = ("items", "additionalItems", "prefixItems", "contains", "unevaluatedItems")
# To collect what was looked at the engine goes through all other schemas of the place once more.
_COLLECTED = frozenset({"unevaluatedItems", "unevaluatedProperties"})
# Ways for each pair of a schema and a value, on average, and pairs, that are still listed in time (our choice).
_ANEW, _PAIRS = 20, 20_000
# What is referred to is come to by its references.
_INSIDE = tuple(key for key in EVERY_KEYWORD if key not in {"$defs", "definitions"})
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


class _At(NamedTuple):
    """A schema, and the address that its references are relative to."""

    schema: dict[str, object]
    base: str


class _Frame:
    """A schema whose ways are being counted. `cut`: some of them lead back to where they come from."""

    __slots__ = ("at", "cut", "height", "rest", "ways")

    def __init__(self, at: _At, rest: Iterator[_At]) -> None:
        self.at = at
        self.rest = rest
        self.ways = 1
        self.height = 1
        self.cut = False

    def add(self, ways: int, height: int) -> None:
        """Count the ways of a schema that this one leads to."""
        self.ways += ways
        self.height = max(self.height, height + 1)


class _TooMuchError(Exception):
    """There is no point in counting on."""


class Branching:
    """Counts the ways in schemas of one registry, each schema once.

    A schema that refers twice to one that refers twice to a third, and so on 60 times, has 2^60 ways. What leads back
    to where it comes from ends there, as in the engine: published unions do (a pet is a cat or a dog, and both are all
    of a pet). Of a dynamic reference all schemas count that it may lead to. Limit: ways that double with each level of
    a value are not refused, since published unions of trees have them (see `Locating`).
    """

    def __init__(self, registry: Registry, documents: Mapping[str, object]) -> None:
        self._registry = registry
        self._documents = documents
        self._found: dict[tuple[str, str], _At | None] = {}
        self._dynamic: dict[str, list[_At]] | None = None
        self._known: dict[int, tuple[int, int]] = {}
        self._seen: set[int] = set()
        self._kept: list[Schema] = []
        self._left = _STEPS

    def excessive(self, schema: Schema) -> bool:
        """Whether a schema, or one that it leads to, has more than 10,000 ways, or leads on more than 40 times.

        Linear, but for what leads back to itself: 200,000 steps are gone through that in all.
        """
        self._kept.append(schema)  # an id is one's own only as long as one lives
        waiting = list(_schemas(schema, ""))
        seen: set[int] = set()
        while waiting:
            at = waiting.pop()
            if id(at.schema) in seen or id(at.schema) in self._seen:
                continue
            seen.add(id(at.schema))
            if id(at.schema) not in self._known and self._ways(at) > MAX_WAYS:
                return True
            waiting.extend(self._led(at))
            waiting.extend(_below(at, _INSIDE))
        self._seen |= seen
        return False

    def _ways(self, start: _At) -> int:
        """Return the ways of a schema, or more than there may be as soon as there are."""
        path = [_Frame(start, self._alike(start))]
        above = {id(start.schema)}
        while True:
            frame = path[-1]
            below = next(frame.rest, None)
            if below is None:
                path.pop()
                above.discard(id(frame.at.schema))
                if not frame.cut:  # where they are cut off depends on where they were come to from
                    self._known[id(frame.at.schema)] = frame.ways, frame.height
                    self._left += 1
                if not path:
                    return frame.ways
                path[-1].add(frame.ways, frame.height)
                path[-1].cut |= frame.cut
            elif id(below.schema) in above:
                frame.cut = True
            elif id(below.schema) in self._known:
                frame.add(*self._known[id(below.schema)])
            else:
                self._left -= 1
                above.add(id(below.schema))
                path.append(_Frame(below, self._alike(below)))
            if frame.ways > MAX_WAYS or frame.height > _MAX_CHAIN or self._left < 0:
                return MAX_WAYS + 1

    def doubles(self, schema: Schema, value: object) -> bool:
        """Whether listing what is wrong with a value may take the engine very long: it goes each way anew.

        In a union of trees whose branches overlap the ways double with each level of the value. Linear in the value
        times the schemas of a place, some 4 us for each; more than 20,000 of them are too much as well.
        """
        known: dict[tuple[int, int], int] = {}
        try:
            told = sum(self._effort(at, value, known) for at in _schemas(schema, ""))
        except (_TooMuchError, RecursionError):
            return True
        return told > max(MAX_WAYS, _ANEW * len(known))

    def _effort(self, at: _At, value: object, known: dict[tuple[int, int], int]) -> int:
        """Return how many schemas are held against a value and what is in it, each as often as it is come to."""
        key = (id(at.schema), id(value))
        if key not in known:
            if len(known) > _PAIRS:
                raise _TooMuchError
            known[key] = 0  # what leads back to itself ends
            told = 1 + sum(self._effort(one, value, known) for one in self._alike(at))
            if is_mapping(value):
                fields = _maps(at, "properties")
                told += sum(self._effort(one, value[name], known) for name, one in fields if name in value)
                rest = [*(one for _, one in _maps(at, "patternProperties")), *_below(at, _FIELDS)]
                told += sum(self._effort(one, item, known) for item in value.values() for one in rest)
            elif is_sequence(value):
                rest = list(_below(at, _ITEMS))
                told += sum(self._effort(one, item, known) for item in value for one in rest)
            known[key] = told
        return known[key]

    def _alike(self, at: _At) -> Iterator[_At]:
        """Yield the schemas that are held against the same place of a value as this one."""
        yield from self._led(at)
        for _ in range(1 if _COLLECTED.isdisjoint(at.schema) else 2):
            yield from _below(at, _ALIKE)

    def _led(self, at: _At) -> Iterator[_At]:
        for key in _REFERENCES:
            reference = at.schema.get(key)
            if not isinstance(reference, str):
                continue
            if key != "$ref":
                yield from self._anchored(reference)
            uri, _, fragment = reference.partition("#")
            place = (_joined(at.base, uri) if uri else at.base, unquote(fragment))
            if place not in self._found:
                self._found[place] = self._looked_up(at.base, reference)
            if (target := self._found[place]) is not None:
                yield target

    def _looked_up(self, base: str, reference: str) -> _At | None:
        try:
            found = self._registry.resolver(base).lookup(reference)
        except (ValueError, ReferencingError):
            return None  # who compiles it tells
        return next(_schemas(found.contents, found.resolver.base_uri), None)

    def _anchored(self, reference: str) -> Sequence[_At]:
        """Return the schemas that a dynamic reference may lead to: by name, or the roots that are recursive."""
        if self._dynamic is None:
            self._dynamic = {}
            waiting = [at for uri, document in self._documents.items() for at in _schemas(document, uri)]
            while waiting:
                at = waiting.pop()
                name = "" if at.schema.get("$recursiveAnchor") is True else at.schema.get("$dynamicAnchor")
                if isinstance(name, str):
                    self._dynamic.setdefault(name, []).append(at)
                waiting.extend(_below(at, EVERY_KEYWORD))
        return self._dynamic.get(reference.rpartition("#")[2], ())


def _below(at: _At, keywords: Iterable[str]) -> Iterator[_At]:
    """Yield the schemas under some keywords."""
    for key in keywords:
        if (value := at.schema.get(key)) is None:
            continue
        what = EVERY_KEYWORD[key]
        if what is Holds.MAP or what is Holds.MIXED:
            inner: Iterable[object] = value.values() if is_object(value) else ()
        else:
            inner = value if is_list(value) else (value,)
        for item in inner:
            yield from _schemas(item, at.base)


def _maps(at: _At, keyword: str) -> Iterator[tuple[str, _At]]:
    for name, item in named(at.schema.get(keyword)).items():
        for one in _schemas(item, at.base):
            yield name, one


def _schemas(value: object, base: str) -> Iterator[_At]:
    """Yield a schema, if it is one that leads anywhere."""
    if not is_object(value):
        return
    own = value.get("$id", value.get("id"))
    yield _At(value, _joined(base, own) if isinstance(own, str) else base)


def _joined(base: str, address: str) -> str:
    try:
        return urljoin(base, address)
    except ValueError:  # no address, which who compiles it tells
        return base
