"""What a request need not hold because only responses have it, and the other way round."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType

from msgspec import Struct

from theodolite.contracts.document import find, is_list, is_object, pointer_of

__all__ = ("FORBIDS", "Direction", "Marks", "directions")

# Longer chains of `$ref`s and `allOf`s are not followed to a mark; none was met beyond 4.
_DEPTH = 16
FORBIDS: Mapping[str, object] = MappingProxyType({"readOnly": True})
"""What stands under `not` where a property may not be sent: it says why, and holds for every value."""


class Direction(StrEnum):
    """Which way a value goes: the keyword that keeps a property out of it."""

    REQUEST = "readOnly"
    RESPONSE = "writeOnly"


def directions(marks: Container[Direction]) -> list[Direction | None]:
    """Return what is left out of requests, and of responses; one entry for both where nothing is.

    >>> directions([Direction.REQUEST]), directions([])
    ([<Direction.REQUEST: 'readOnly'>, None], [None])
    """
    ways = [way if way in marks else None for way in Direction]
    return ways if any(ways) else [None]


class Marks(Struct, frozen=True, kw_only=True):
    """Finds the properties that one direction leaves out.

    A property is marked by its own schema, or by one that this refers to or holds in `allOf`. It counts for the
    `required` beside it and for that of the other members of an `allOf`, unless these are `$ref`s, whose target is the
    same wherever it is used. `siblings` says whether keywords beside a `$ref` count. Without a `direction` nothing is
    marked. Each schema is looked at once, however often it is referred to.
    """

    root: dict[str, object]
    direction: Direction | None
    siblings: bool

    def apply(self, node: dict[str, object], changes: dict[str, object]) -> None:
        """Take what is marked out of `required` here and in the members of `allOf`. Writes what changes."""
        if self.direction is None or ("required" not in node and "allOf" not in node):
            return
        wanted = set(_required(node))
        if not wanted:
            return
        hidden = self._hidden(node, wanted)
        if not hidden:
            return
        changed = self._without({**node, **changes}, hidden)
        for key in ("required", "allOf"):
            if key in changed and changed[key] is not node.get(key):
                changes[key] = changed[key]

    def _without(self, node: dict[str, object], hidden: set[str]) -> dict[str, object]:
        """Return a schema that does not require these names."""
        new = dict(node)
        names = node.get("required")
        if is_list(names) and not hidden.isdisjoint(name for name in names if isinstance(name, str)):
            new["required"] = [name for name in names if not (isinstance(name, str) and name in hidden)]
        members = node.get("allOf")
        if is_list(members):
            new["allOf"] = [self._without(entry, hidden) if is_object(entry) else entry for entry in members]
        return new

    def forbid(self, node: dict[str, object], changes: dict[str, object]) -> None:
        """Forbid the properties of a schema that are marked, beside what it says of them. Writes what changes.

        They stand in a further member of `allOf`, so that what refers to the schema of a property finds it as it was.
        """
        properties = node.get("properties")
        if self.direction is None or not is_object(properties):
            return
        names = [name for name, schema in properties.items() if self._marked(schema)]
        if names:
            members = changes.get("allOf", node.get("allOf"))
            never = {"readOnly": True, "not": dict(FORBIDS)}
            changes["allOf"] = [*(members if is_list(members) else ()), {"properties": dict.fromkeys(names, never)}]

    def _hidden(self, node: dict[str, object], wanted: Iterable[str]) -> set[str]:
        """Return which of these names a schema, or one that it holds in `allOf`, marks."""
        names: set[str] = set()
        for one in self._together(node):
            properties = one.get("properties")
            if is_object(properties):
                names.update(name for name in wanted if name in properties and self._marked(properties[name]))
        return names

    def _marked(self, node: object) -> bool:
        direction = self.direction
        return (
            direction is not None
            and is_object(node)
            and any(one.get(direction) is True and (self.siblings or "$ref" not in one) for one in self._together(node))
        )

    def _together(self, node: dict[str, object]) -> Iterator[dict[str, object]]:
        """Yield a schema and what applies to the same value: the targets of `$ref`s and the members of `allOf`s."""
        seen: set[int] = set()
        here = [node]
        for _ in range(_DEPTH + 1):
            here = list({id(one): one for one in here if id(one) not in seen}.values())
            seen.update(map(id, here))
            yield from here
            here = [other for one in here for other in self._beside(one)]

    def _beside(self, node: dict[str, object]) -> list[dict[str, object]]:
        """Return the schemas that apply to the same value: the target of a `$ref` and the members of `allOf`."""
        found: list[object] = []
        reference = node.get("$ref")
        if isinstance(reference, str):
            found.append(find(self.root, pointer_of(reference[1:]), None) if reference.startswith("#") else None)
        members = node.get("allOf")
        if is_list(members) and (self.siblings or reference is None):
            found += members
        return [other for other in found if is_object(other)]


def _required(node: dict[str, object]) -> Iterator[str]:
    """Yield the names that a schema requires, here or in a member of `allOf` that is written out."""
    names = node.get("required")
    if is_list(names):
        yield from (name for name in names if isinstance(name, str))
    members = node.get("allOf")
    if is_list(members):
        for member in members:
            if is_object(member):
                yield from _required(member)
