"""A place in a schema, with the documents that its references lead into; what may stand there, by type."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeGuard

from theodolite.contracts.document import find, is_list, is_object, pointer_of
from theodolite.core.contract import Schema

__all__ = (
    "EVERY_TYPE",
    "Node",
    "expand",
    "is_schema",
    "named",
    "type_of",
    "types_of",
)

EVERY_TYPE = frozenset({"null", "boolean", "object", "array", "string", "integer", "fraction"})
"""The types of JSON Schema without overlap: a number is an `integer` or a `fraction`."""

# No union of unions is looked into deeper (our choice).
_UNIONS = 6
_EMPTY: Mapping[str, object] = {}


class Node(NamedTuple):
    """A schema, all documents by URI, and the URI of the document that the schema stands in."""

    schema: Schema
    documents: Mapping[str, object] = _EMPTY
    base: str = ""

    @property
    def keywords(self) -> Mapping[str, object]:
        """The keywords; none where the schema is a boolean."""
        return _EMPTY if isinstance(self.schema, bool) else self.schema

    def child(self, schema: object) -> Node:
        """Return a schema that stands inside this one; what is none allows everything, as an absent one does."""
        return Node(schema if is_schema(schema) else True, self.documents, self.base)

    def followed(self) -> Node | None:
        """Return what `$ref` leads to, and None where it is absent or leads nowhere that is known.

        The fragment is a JSON Pointer, percent-encoded (RFC 6901, section 6). Limits: anchors are not looked for.
        """
        reference = self.keywords.get("$ref")
        if not isinstance(reference, str):
            return None
        uri, _, fragment = reference.partition("#")
        uri = uri or self.base
        if uri not in self.documents or (fragment and not fragment.startswith("/")):
            return None
        found = find(self.documents[uri], pointer_of(fragment), None)
        return Node(found, self.documents, uri) if is_schema(found) else None


def is_schema(value: object) -> TypeGuard[Schema]:
    """Whether a value has the form of a schema."""
    return isinstance(value, bool) or is_object(value)


def named(value: object) -> Mapping[str, object]:
    """Return a value that has to be an object, or none where it is something else."""
    return value if is_object(value) else _EMPTY


def type_of(value: object) -> str:
    """Return the type of a value of JSON, a `fraction` where it is a number with one."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    if isinstance(value, int | float):
        return "integer" if isinstance(value, int) or value.is_integer() else "fraction"
    if isinstance(value, str):
        return "string"
    return "object" if is_object(value) else "array"


def expand(node: Node, known: Container[int] = ()) -> tuple[Node, ...]:
    """Return all that a value must satisfy at a place: the schema, what it refers to, each member of `allOf`, in turn.

    Of each that is returned `$ref` and `allOf` are done with, except a `$ref` that leads nowhere. `known` are the ids
    of schemas that were returned before, with all that they lead to. Linear.
    """
    found: dict[int, Node] = {}
    waiting = [node]
    while waiting:
        here = waiting.pop()
        if id(here.schema) in found or id(here.schema) in known:
            continue
        found[id(here.schema)] = here
        following = here.followed()
        together = here.keywords.get("allOf")
        members = [here.child(member) for member in together] if is_list(together) else []
        waiting.extend([*reversed(members), *([following] if following else [])])
    return tuple(found.values())


_Known = dict[tuple[int, int], frozenset[str]]


def types_of(nodes: Iterable[Node]) -> frozenset[str]:
    """Return the types that a value may have which satisfies all of them; never too few.

    Of unions within unions six levels are looked into, and each schema once for each level: linear for each.
    """
    return _types(nodes, _UNIONS, {})


def _types(nodes: Iterable[Node], depth: int, known: _Known) -> frozenset[str]:
    types = EVERY_TYPE
    for node in nodes:
        key = (id(node.schema), depth)
        if key not in known:
            known[key] = _own(node, depth, known)
        types &= known[key]
    return types


def _own(node: Node, depth: int, known: _Known) -> frozenset[str]:
    if isinstance(node.schema, bool):
        return EVERY_TYPE if node.schema else frozenset()
    types = EVERY_TYPE
    said = node.schema.get("type")
    if isinstance(said, str) or is_list(said):
        types = frozenset(_split([said] if isinstance(said, str) else said))
    for values in _listed(node.schema):
        types &= {type_of(value) for value in values}
    for keyword in ("anyOf", "oneOf") if depth else ():
        branches = node.schema.get(keyword)
        if is_list(branches):
            found = [_types(expand(node.child(branch)), depth - 1, known) for branch in branches]
            types &= frozenset().union(*found)
    return types


def _listed(keywords: Mapping[str, object]) -> Iterator[Sequence[object]]:
    if "const" in keywords:
        yield [keywords["const"]]
    if is_list(values := keywords.get("enum")):
        yield values


def _split(types: Iterable[object]) -> Iterator[str]:
    for kind in types:
        if kind == "number":
            yield from ("integer", "fraction")
        elif isinstance(kind, str):
            yield kind
