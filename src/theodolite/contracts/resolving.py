"""Where the references of schemas lead, whatever draft they are written in: by pointer, anchor or name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple
from urllib.parse import urljoin

from theodolite.contracts.dialects import Draft, Holds, draft_of, holds, identifier
from theodolite.contracts.document import is_list, is_object, pointer_of, step, tokens
from theodolite.contracts.nodes import is_schema
from theodolite.core.contract import Schema

__all__ = ("Place", "Resolver", "Slot", "opened")

# The name of a schema that stands in no document, by number: nothing that is published has such an address.
_ALONE = "theodolite.part:"


class Place(NamedTuple):
    """A schema, the document that it stands in, the address that its references are joined to, and its draft."""

    schema: Schema
    document: str
    base: str
    draft: Draft


class Slot(NamedTuple):
    """A schema below another one, and where a copy of the other one holds it."""

    holder: dict[str, object] | list[object]
    key: str | int
    schema: Schema

    def put(self, schema: object) -> None:
        """Put another schema in its place."""
        holder = self.holder
        if isinstance(holder, dict):
            holder[str(self.key)] = schema
        else:
            holder[int(self.key)] = schema


def opened(node: Mapping[str, object], draft: Draft) -> tuple[dict[str, object], list[Slot]]:
    """Return a copy of a schema, in which what holds other schemas is copied too, and these by the order of names.

    Linear in its keywords.

    Data is no schema, whatever it looks like: that of `const`, `enum`, `default`, `examples` and of unknown keywords.

    >>> node = {"items": {"type": "string"}, "const": {"$ref": "#"}}
    >>> [slot.schema for slot in opened(node, Draft.DRAFT_2020)[1]]
    [{'type': 'string'}]
    """
    copy, slots, table = dict(node), list[Slot](), holds(draft)
    for key in sorted(node.keys() & table.keys()):
        what, value = table[key], node[key]
        if is_schema(value) and what in {Holds.SCHEMA, Holds.EITHER}:
            slots.append(Slot(copy, key, value))
        elif is_list(value) and what in {Holds.LIST, Holds.EITHER}:
            several = copy[key] = list(value)
            slots += [Slot(several, place, one) for place, one in enumerate(value) if is_schema(one)]
        elif is_object(value) and what in {Holds.MAP, Holds.MIXED}:
            named = copy[key] = dict(value)
            slots += [Slot(named, name, one) for name, one in sorted(value.items()) if is_schema(one)]
    return copy, slots


class Resolver:
    """Follows references within documents, by their address, as the engine does; nothing is fetched.

    Source: JSON Schema 2020-12, core, sections 8.2 and 9; for older drafts their sections on `id` and `$id`. A
    document is looked through for names and anchors when the first one is asked for.
    """

    def __init__(self, documents: Mapping[str, object]) -> None:
        self._documents = {uri.removesuffix("#"): document for uri, document in documents.items()}
        self._roots: dict[str, Place] = {}
        self._alone: dict[int, Place] = {}
        self._named: dict[str, Place] = {}
        self._anchors: dict[tuple[str, str], Place] = {}
        self._moving: dict[str, dict[str, list[Place]]] = {}
        self._leads: dict[str, set[str]] | None = None

    def start(self, schema: Schema) -> Place:
        """Return the place of a schema that stands in no document."""
        place = self._alone.get(id(schema))
        if place is None:
            uri = f"{_ALONE}{len(self._alone)}"
            self._documents[uri] = schema
            self._leads = None
            place = self._alone[id(schema)] = self._root(uri, schema)
        return place

    def inside(self, place: Place, schema: Schema) -> Place:
        """Return the place of a schema that stands inside another one."""
        if isinstance(schema, bool) or ("$id" not in schema and "id" not in schema):
            return Place(schema, place.document, place.base, place.draft)
        inner = _name(schema, place.draft)
        if not inner:
            return Place(schema, place.document, place.base, place.draft)
        draft = self._draft(schema, place.draft)
        return Place(schema, place.document, _join(place.base, inner), draft)

    def absolute(self, place: Place, reference: str) -> str:
        """Return a reference with the address that it is relative to."""
        address, mark, fragment = reference.partition("#")
        return f"{_join(place.base, address) if address else place.base}{mark if fragment else ''}{fragment}"

    def followed(self, place: Place, reference: str) -> Place | None:
        """Return what a reference at that place leads to; None where it leads nowhere, or to what is no schema."""
        return self.absolutely(self.absolute(place, reference))

    def absolutely(self, reference: str) -> Place | None:
        """Return what an absolute reference leads to; None where it leads nowhere, or to what is no schema."""
        address, _, fragment = reference.partition("#")
        resource = self.resource(address)
        if resource is None:
            return None
        text = pointer_of(fragment)
        if not text:
            return resource
        if text.startswith("/"):
            return self._walked(resource, text)
        self._look(resource.document)
        return self._anchors.get((resource.base, text))

    def known(self, place: Place, reference: str) -> bool:
        """Whether a reference leads into one of the documents, to a place or not."""
        return self.resource(self.absolute(place, reference).partition("#")[0]) is not None

    def moving(self, place: Place, name: str) -> list[Place]:
        """Return all that a dynamic reference may lead to: each anchor of that name that may be on the way there.

        The name is empty for `$recursiveAnchor` (2019-09).
        """
        found: list[Place] = []
        for document in self._before(place.document):
            found += self.moved(document, name)
        return found

    def moved(self, document: str, name: str) -> list[Place]:
        """Return the dynamic anchors of that name in a document."""
        self._look(document)
        return self._moving.get(document, {}).get(name, [])

    def resource(self, address: str) -> Place | None:
        """Return the document, or the schema within one, that has an address."""
        if address in self._documents and (root := self._rooted(address)) is not None:
            return root
        if address not in self._named:
            for document in [*self._documents]:
                self._look(document)
        return self._named.get(address)

    def _rooted(self, uri: str) -> Place | None:
        document = self._documents[uri]
        return self._root(uri, document) if is_schema(document) else None

    def _root(self, uri: str, document: Schema) -> Place:
        place = self._roots.get(uri)
        if place is None:
            draft = Draft.DRAFT_2020 if isinstance(document, bool) else self._draft(document, Draft.DRAFT_2020)
            name = "" if isinstance(document, bool) else _name(document, draft)
            place = self._roots[uri] = Place(document, uri, _join(uri, name) if name else uri, draft)
            self._named.setdefault(place.base, place)
        return place

    def _draft(self, schema: Mapping[str, object], outer: Draft) -> Draft:
        named = schema.get("$schema")
        if not isinstance(named, str):
            return outer
        other = self._documents.get(named.removesuffix("#"))
        if is_object(other) and isinstance(below := other.get("$schema"), str):
            named = below
        return draft_of(named) or outer

    def _walked(self, place: Place, pointer: str) -> Place | None:
        here, node = place, _as_found(place.schema)
        for token in tokens(pointer):
            node = step(node, token)
            if is_object(node):
                here = self.inside(here, node)
        return Place(node, here.document, here.base, here.draft) if is_schema(node) else None

    def _look(self, document: str) -> None:
        """Find the names and anchors of a document."""
        if document in self._moving or document not in self._documents:
            return
        moving = self._moving[document] = dict[str, list[Place]]()
        root = self._rooted(document)
        waiting = [root] if root is not None else []
        while waiting:
            place = waiting.pop()
            node = place.schema
            if isinstance(node, bool):
                continue
            if _name(node, place.draft):
                self._named.setdefault(place.base, place)
            for name, dynamic in _anchors(node, place.draft):
                self._anchors.setdefault((place.base, name), place)
                if dynamic:
                    moving.setdefault(name, []).append(place)
            if place.draft is Draft.DRAFT_2019 and node.get("$recursiveAnchor") is True:
                moving.setdefault("", []).append(place)
            waiting += [self.inside(place, slot.schema) for slot in reversed(opened(node, place.draft)[1])]

    def _before(self, document: str) -> set[str]:
        """Return the documents from which references lead to one, in the end, and that one."""
        if self._leads is None:
            self._leads = {}
            for one in [*self._documents]:
                for text in _references(self._documents[one]):
                    address = _join(one, text.partition("#")[0])
                    target = self.resource(address)
                    if target is not None:
                        self._leads.setdefault(target.document, set()).add(one)
        found, waiting = {document}, [document]
        while waiting:
            new = self._leads.get(waiting.pop(), set()) - found
            found |= new
            waiting += new
        return found


def _as_found(schema: Schema) -> object:
    """Return a schema as what it may turn out to be below: anything."""
    return schema


def _join(base: str, address: str) -> str:
    try:
        return urljoin(base, address) if address else base
    except ValueError:
        return address


def _name(node: Mapping[str, object], draft: Draft) -> str:
    """Return the address that a schema gives itself, without a fragment, or none."""
    text = node.get(identifier(draft))
    if not isinstance(text, str) or (draft <= Draft.DRAFT_7 and "$ref" in node):
        return ""
    return text.partition("#")[0]


def _anchors(node: Mapping[str, object], draft: Draft) -> Iterator[tuple[str, bool]]:
    """Yield the anchors of a schema, and whether dynamic references may lead to them."""
    text = node.get(identifier(draft))
    if draft <= Draft.DRAFT_7:
        if isinstance(text, str) and text.startswith("#") and len(text) > 1 and "$ref" not in node:
            yield text[1:], False
        return
    if isinstance(name := node.get("$anchor"), str):
        yield name, False
    if draft is Draft.DRAFT_2020 and isinstance(name := node.get("$dynamicAnchor"), str):
        yield name, True


def _references(document: object) -> Iterator[str]:
    """Yield all that may be a reference in a document: rather too many."""
    waiting = [document]
    while waiting:
        node = waiting.pop()
        if is_object(node):
            waiting += node.values()
            yield from [text for key, text in node.items() if key in {"$ref", "$dynamicRef"} and isinstance(text, str)]
        elif is_list(node):
            waiting += node
