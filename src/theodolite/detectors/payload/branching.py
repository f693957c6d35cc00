"""How many ways a schema has at one place of a value: a short one can ask the engine for more than ever ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import urljoin

from jsonschema_rs import ReferencingError, Registry

from theodolite.contracts.document import is_list, is_object
from theodolite.contracts.nodes import named
from theodolite.core.contract import Schema

__all__ = ("MAX_WAYS", "Branching")

MAX_WAYS = 10_000
"""Schemas that may be held against one place of a value, each counted as often as it is come to (our choice).

The most that one of five published documents has is 117 (the API of GitHub). The engine takes 30 ns for each, and
35 us to list one that fails.
"""

# Steps in all through what leads back to itself (our choice): they take a second or two.
_STEPS = 1_000_000
_LISTS = ("allOf", "anyOf", "oneOf")
_SINGLE = ("not", "if", "then", "else")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


class _At(NamedTuple):
    """A schema, and the address that its references are relative to."""

    schema: dict[str, object]
    base: str


class _Frame:
    """A schema whose ways are being counted. `cut`: some of them lead back to where they come from."""

    __slots__ = ("at", "cut", "rest", "ways")

    def __init__(self, at: _At, rest: Iterator[_At]) -> None:
        self.at = at
        self.rest = rest
        self.ways = 1
        self.cut = False


class Branching:
    """Counts the ways in schemas of one registry, each schema once.

    A schema that refers twice to one that refers twice to a third, and so on 60 times, has 2^60 ways. What leads back
    to where it comes from ends there, as in the engine. Limits: of a dynamic reference the static target counts; and
    ways that double with each level of a value are not refused, since published unions of trees have them.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._found: dict[tuple[str, str], _At | None] = {}
        self._known: dict[int, int] = {}
        self._seen: set[int] = set()
        self._kept: list[Schema] = []
        self._left = _STEPS

    def excessive(self, schema: Schema) -> bool:
        """Whether a schema, or one that it leads to, has more than 10,000 ways. Linear, but for `_STEPS`."""
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
            waiting.extend(inner for value in at.schema.values() for inner in _inside(value, at.base))
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
                    self._known[id(frame.at.schema)] = frame.ways
                    self._left += 1
                if not path:
                    return frame.ways
                path[-1].ways += frame.ways
                path[-1].cut |= frame.cut
            elif id(below.schema) in above:
                frame.cut = True
            elif id(below.schema) in self._known:
                frame.ways += self._known[id(below.schema)]
            else:
                self._left -= 1
                above.add(id(below.schema))
                path.append(_Frame(below, self._alike(below)))
            if frame.ways > MAX_WAYS or self._left < 0:
                return MAX_WAYS + 1

    def _alike(self, at: _At) -> Iterator[_At]:
        """Yield the schemas that are held against the same place of a value as this one."""
        yield from self._led(at)
        for key in _LISTS:
            members = at.schema.get(key)
            for member in members if is_list(members) else ():
                yield from _schemas(member, at.base)
        for key in _SINGLE:
            yield from _schemas(at.schema.get(key), at.base)
        for member in named(at.schema.get("dependentSchemas")).values():
            yield from _schemas(member, at.base)

    def _led(self, at: _At) -> Iterator[_At]:
        for key in _REFERENCES:
            reference = at.schema.get(key)
            if not isinstance(reference, str):
                continue
            place = (at.base, reference)
            if place not in self._found:
                self._found[place] = self._looked_up(*place)
            if (target := self._found[place]) is not None:
                yield target

    def _looked_up(self, base: str, reference: str) -> _At | None:
        try:
            found = self._registry.resolver(base).lookup(reference)
        except (ValueError, ReferencingError):
            return None  # who compiles it tells
        return next(_schemas(found.contents, found.resolver.base_uri), None)


def _schemas(value: object, base: str) -> Iterator[_At]:
    """Yield a schema, if it is one that leads anywhere."""
    if is_object(value):
        own = value.get("$id")
        yield _At(value, urljoin(base, own) if isinstance(own, str) else base)


def _inside(value: object, base: str) -> Iterator[_At]:
    """Yield the schemas in the value of a keyword. Names of fields are taken for keywords too, which does no harm."""
    for item in value if is_list(value) else (value,):
        yield from _schemas(item, base)
