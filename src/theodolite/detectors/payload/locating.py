"""Where in a value to list what is wrong, where the engine would not end if it listed it of the whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jsonschema_rs import Validator
from msgspec import Struct

from theodolite.contracts.document import child, encoded
from theodolite.contracts.nodes import Node
from theodolite.core.arguments import is_mapping, is_sequence
from theodolite.core.contract import Schema
from theodolite.detectors.payload.compiling import Compiler
from theodolite.detectors.payload.kinds import Path
from theodolite.detectors.payload.places import Places

__all__ = ("Locating", "Spot")


class Spot(Struct, frozen=True):
    """A place that all refuses which is declared of it, and a validator of that; none if even that is too much."""

    path: Path
    value: object
    schema: Schema
    validator: Validator | None


class Locating:
    """Finds the place of a fault by whether values are accepted, which the engine says in linear time.

    It lists what is wrong by going each way anew: with a union of trees whose branches overlap, such as of filters that
    hold filters, its time doubles with each level of the value.
    """

    def __init__(self, compiler: Compiler, places: Places) -> None:
        self._compiler = compiler
        self._places = places
        self._pointers: dict[str, dict[int, str]] = {}

    def spot(self, schema: Schema, value: object) -> Spot | None:
        """Return where to list what is wrong with a value that is refused; None where the whole can be listed."""
        if self.lists(schema, value):
            return None
        nodes: tuple[Node, ...] = (Node(schema, self._compiler.documents),)
        path: Path = ()
        while (step := self._refused(nodes, value)) is not None:
            key, nodes, value, schema = step
            path = (*path, key)
            if self.lists(schema, value):
                return Spot(path, value, schema, self._compiler.compile_own(schema))
        return Spot(path, value, schema, None)

    def lists(self, schema: Schema, value: object) -> bool:
        """Whether the engine lists what is wrong with a value in time."""
        return not self._compiler.branching.doubles(schema, value)

    def _refused(
        self, nodes: tuple[Node, ...], value: object
    ) -> tuple[str | int, tuple[Node, ...], object, Schema] | None:
        """Return the first part of a value that nothing accepts which is declared of it."""
        for key, below, item in self._places.table(nodes).below(value):
            apart = _apart(below)
            schemas = [one for node in apart if (one := self._named(node)) is not None]
            if len(schemas) < len(apart):
                continue
            whole: Schema = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
            if not self._compiler.compile_own(whole).is_valid(item):
                return key, below, item, whole
        return None

    def _named(self, node: Node) -> Schema | None:
        """Return a schema that refers to one where it stands, so that its own references lead on from there."""
        if not node.base or isinstance(node.schema, bool):
            return node.schema
        if node.base not in self._pointers:
            self._pointers[node.base] = {id(one): where for where, one in _objects(node.documents[node.base])}
        where = self._pointers[node.base].get(id(node.schema))
        return None if where is None else {"$ref": f"{node.base}#{encoded(where)}"}


def _apart(nodes: tuple[Node, ...]) -> list[Node]:
    """Return schemas without those that say the same as one before: branches of a union often share what is inside."""
    found: list[Node] = []
    for node in nodes:
        if not any(node.base == other.base and node.schema == other.schema for other in found):
            found.append(node)
    return found


def _objects(document: object) -> Iterator[tuple[str, Mapping[object, object]]]:
    waiting: list[tuple[str, object]] = [("", document)]
    while waiting:
        where, one = waiting.pop()
        if is_mapping(one):
            yield where, one
            waiting.extend((child(where, str(key)), item) for key, item in one.items())
        elif is_sequence(one):
            waiting.extend((child(where, place), item) for place, item in enumerate(one))
