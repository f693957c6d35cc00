"""JSON Schemas of any draft, alone or in OpenAPI 3.1 and 3.2: kept as they are, and ready for the engine."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urljoin

from msgspec import Struct

from theodolite.contracts.dialects import Draft, Holds, draft_of, holds, identifier, is_openapi, metaschemas
from theodolite.contracts.direction import Marks
from theodolite.contracts.document import encoded, find, fragment, is_list, is_object, pointer_of, show, word
from theodolite.contracts.registry import Path, Registry, fail, pointer_to, refuse_remote
from theodolite.core.contract import Schema
from theodolite.core.text import brief

__all__ = ("Documents", "Schemas")

# Further documents, by absolute address.
Documents = Mapping[str, object]


# What relative `$id`s are joined to where a document has no address of its own: one that nobody can have (RFC 6761).
_NOWHERE = "https://theodolite.invalid/"
_ANCHORS = {"$anchor": Draft.DRAFT_2019, "$dynamicAnchor": Draft.DRAFT_2020}
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
# Lists of names, and an object of them.
_LISTS = frozenset({"required", "type"})
_DEPENDING = "dependentRequired"


class _Resource(Struct, frozen=True, kw_only=True):
    """What the references and anchors of a schema are relative to: a document, or a schema with a name of its own.

    `uri` is where the registry has it, `base` what relative references are joined to, `start` the pointer to it.
    """

    uri: str
    base: str
    node: dict[str, object]
    draft: Draft
    start: str = ""
    named: bool = False


class Schemas(Registry):
    """The registry of a document whose schemas are JSON Schemas: OpenAPI 3.1, 3.2, or one schema alone (`alone`).

    The engine knows them all by itself, so that little changes: a `$ref` that is no URI ("#/$defs/Map<a>") is encoded;
    an address relative to a document without one becomes absolute; what may not be sent in this direction is not
    `required`; a name that stands in a list twice counts once, and is named in `gaps`. A schema within an OpenAPI
    document that has an `$id`, or a `$schema` of another draft, becomes a document of its own, with a `$ref` in its old
    place. Anchors are shown to the engine under `$defs` of the root.

    `origin` is the pointer of a schema that is alone, `address` the document's own name, and `known` are further
    documents that `$ref`s may lead to. Raises ConfigError for a `$ref` to anything else, for one through the inside of
    a schema that has an `$id` (draft 2020-12, section 9.2.1, leaves that undefined), and for an anchor given twice.
    Limits: within a schema that has an `$id` directions do not count.
    """

    def __init__(
        self,
        root: dict[str, object],
        uri: str,
        marks: Marks,
        *,
        draft: Draft = Draft.DRAFT_2020,
        address: str = "",
        known: Documents | None = None,
        alone: bool = False,
        origin: str = "",
    ) -> None:
        super().__init__(root, uri)
        base = urljoin(f"{_NOWHERE}{uri.removeprefix('urn:theodolite:').replace(':', '/')}/", address)
        self._document = _Resource(uri=uri, base=base, node=root, draft=draft)
        self._here = self._document
        self._table = holds(draft)
        self._marks = marks
        self._alone = alone
        self._origin = origin
        self._address = base if address else ""
        self._others = {name.removesuffix("#"): entry for name, entry in (known or {}).items()}
        # The engine starts in 2020-12, and in the draft of a schema that is alone.
        self._starts_in = Draft.DRAFT_2020
        self._resources: dict[str, object] = {uri: root}
        self._inner: dict[str, object] = {}
        self._starts: list[str] = []
        self._start = ""
        self._anchors: dict[tuple[str, str], str] = {}
        self._roots: dict[str, None] = {}
        self._outward: list[tuple[str, str, Path]] = []

    def add(self, pointer: str) -> Schema:
        """Normalize the schema at that pointer, and return the schema that refers to it. Once for each pointer."""
        self._start = pointer
        return super().add(pointer)

    def whole(self) -> Schema:
        """Normalize the document as one schema, and return the schema that refers to it."""
        kept = self._normal(self.root, (None, self._origin))
        self.kept = kept if is_object(kept) else {}
        return {"$ref": self.uri}

    def finish(self) -> dict[str, object]:
        """Follow all `$ref`s, and return the documents of the registry by URI."""
        documents = super().finish()
        known = metaschemas(self._starts_in) | self._others.keys()
        for uri, rest, at in self._outward:
            if uri in self._resources:
                self._within(uri, rest, at)
            elif uri not in known:
                refuse_remote(at, uri)
        if self._roots:
            shown = {f"theodolite:{index}": find(self.kept, start) for index, start in enumerate(self._roots)}
            below = self.kept.get("$defs")
            self.kept["$defs"] = {**(below if is_object(below) else {}), **shown}
        if self._document.draft is not Draft.DRAFT_2020 and not self._alone:
            self.kept["$schema"] = self._document.draft.uri
        return {**documents, **self._inner}

    def _normal(self, node: object, at: Path) -> object:
        if isinstance(node, bool):
            return node
        if not is_object(node):
            fail(at, f"a schema is an object or a boolean, and this is {word(node)}")
        self._visited.add(id(node))
        if "$id" in node or "$schema" in node or "id" in node:
            return self._resource(node, at)
        return self._schema(node, at)

    def _schema(self, node: dict[str, object], at: Path) -> dict[str, object]:
        changes: dict[str, object] = {}
        table = self._table
        for key, value in node.items():
            what = table.get(key)
            if what is not None:
                new = self._held(value, (at, key), what)
            elif key in _REFERENCES:
                new = self._reference(value, (at, key))
            elif key in _LISTS and is_list(value):
                new = self._unique(value, (at, key))
            elif key == _DEPENDING and is_object(value):
                new = self._named_lists(value, (at, key))
            else:
                since = _ANCHORS.get(key)
                if since is not None and isinstance(value, str) and self._here.draft >= since:
                    self._anchor(value, at)
                continue
            if new is not value:
                changes[key] = new
        if not self._here.named:
            self._marks.apply(node, changes)
        return {**node, **changes} if changes else node

    def _held(self, value: object, at: Path, what: Holds) -> object:
        if what is Holds.SCHEMA or (what is Holds.EITHER and not is_list(value)):
            return self._normal(value, at)
        if what is Holds.LIST or what is Holds.EITHER:
            if not is_list(value):
                fail(at, f"this is {what.value}, not {word(value)}")
            new = [self._normal(entry, (at, index)) for index, entry in enumerate(value)]
            return value if all(one is other for one, other in zip(new, value, strict=True)) else new
        if not is_object(value):
            fail(at, f"this is {what.value}, not {word(value)}")
        changed: dict[str, object] = {}
        for name, entry in value.items():
            names = what is Holds.MIXED and is_list(entry)
            below = self._unique(entry, (at, name)) if names and is_list(entry) else self._normal(entry, (at, name))
            if below is not entry:
                changed[name] = below
        return {**value, **changed} if changed else value

    def _named_lists(self, value: dict[str, object], at: Path) -> dict[str, object]:
        new = {name: self._unique(entry, (at, name)) if is_list(entry) else entry for name, entry in value.items()}
        return new if any(new[name] is not entry for name, entry in value.items()) else value

    def _resource(self, node: dict[str, object], at: Path) -> dict[str, object]:
        """Normalize a schema that may have a name or draft of its own."""
        outer, whole = self._here, self._alone and at[0] is None
        draft = self._draft(node, at) if whole or not self._alone or identifier(outer.draft) in node else outer.draft
        name = self._name(node, draft, at)
        if not name and not whole and (self._alone or outer is not self._document or draft is outer.draft):
            # Without a name it is no resource, and has no draft of its own (2020-12, core, 8.1.1).
            return _without_draft(self._with(node, at, outer))
        uri = name or (self.uri if whole else f"{self.uri}:{len(self._inner)}")
        start = pointer_to(at)
        here = _Resource(uri=uri, base=name or outer.base, node=node, draft=draft, start=start, named=bool(name))
        self._resources[uri] = node
        if whole:
            self._starts_in = draft
        new = self._with(node, at, here)
        if name and str(new[identifier(draft)]).partition("#")[0] != name:
            new = {**new, identifier(draft): name}
        if whole:
            self.uri = uri
        if self._alone or outer is not self._document:
            return new
        if draft is not Draft.DRAFT_2020:
            new = {**new, "$schema": draft.uri}
        self._inner[uri] = new
        self._starts.append(start)
        return {"$ref": uri}

    def _with(self, node: dict[str, object], at: Path, here: _Resource) -> dict[str, object]:
        """Normalize a schema as part of a resource."""
        outer, table = self._here, self._table
        self._here, self._table = here, holds(here.draft)
        new = self._schema(node, at)
        self._here, self._table = outer, table
        # The engine does not know this dialect, which checks what 2020-12 checks.
        return _without_draft(new) if is_openapi(new.get("$schema")) else new

    def _draft(self, node: dict[str, object], at: Path) -> Draft:
        """Return the draft that a schema is written in: that of its `$schema`, or that of what it stands in."""
        named = node.get("$schema")
        if not isinstance(named, str):
            return self._here.draft
        other = self._others.get(named.removesuffix("#"))
        if is_object(other):
            below = other.get("$schema")
            return (draft_of(below) if isinstance(below, str) else None) or self._here.draft
        draft = draft_of(named)
        if draft is None:
            fail((at, "$schema"), f"{brief(named)} is no draft that can be checked: 4, 6, 7, 2019-09 and 2020-12 can")
        return draft

    def _name(self, node: dict[str, object], draft: Draft, at: Path) -> str:
        """Return the absolute name that a schema gives itself, or none. Older drafts give anchors the same way."""
        text = node.get(identifier(draft))
        old = draft <= Draft.DRAFT_7
        if not isinstance(text, str) or (old and "$ref" in node):
            return ""
        if text.startswith("#") and (old or text == "#"):
            if len(text) > 1:
                self._anchor(text[1:], at)
            return ""
        name, _, rest = self._join(text, at).partition("#")
        if rest:
            fail((at, identifier(draft)), "an address has no fragment: give an anchor apart from it")
        return name

    def _join(self, text: str, at: Path) -> str:
        try:
            return urljoin(self._here.base, text)
        except ValueError:
            fail(at, f"{brief(text)} is no address: correct it")

    def _anchor(self, name: str, at: Path) -> None:
        pointer = pointer_to(at)
        other = self._anchors.setdefault((self._here.uri, name), pointer)
        if other != pointer:
            fail(at, f"the anchor {brief(name)} is that of {show(other)} too: make them unique")
        if self._here is self._document and not self._alone:
            self._roots[self._start] = None

    def _reference(self, text: object, at: Path) -> str:
        if not isinstance(text, str):
            fail(at, f"a reference is text, and this is {word(text)}")
        here = self._here
        address, _, rest = self._join(text, at).partition("#") if not text.startswith("#") else ("", "", text[1:])
        if address and (not self._address or address != self._address):
            self._outward.append((address, rest, at))
            new = f"{address}#{encoded(rest)}" if rest else address
            return text if new == text.removesuffix("#") else new
        document = bool(address) or here is self._document or (not here.named and not self._alone)
        if rest.startswith("/"):
            return self._local(pointer_of(rest), f"#{encoded(rest)}", at, document=document)
        if rest:
            self._outward.append((here.uri, rest, at))
        elif document and not self._alone:
            fail(at, "this $ref leads to the document as a whole, which is no schema")
        return text if text.startswith("#") else f"{self.uri}#{rest}"

    def _local(self, pointer: str, text: str, at: Path, *, document: bool) -> str:
        """Return a reference to a pointer, as it must read where it stands."""
        here = self._here
        if document and not self._alone:
            if here is self._document:
                self._aim(pointer, at)
                return text
            if pointer == here.start or pointer.startswith(f"{here.start}/"):
                return f"#{fragment(pointer.removeprefix(here.start))}"
            self._aim(pointer, at)
            return f"{self.uri}{text}"
        self._outward.append((here.uri, text[1:], at))
        return text

    def _within(self, uri: str, rest: str, at: Path) -> None:
        """Check the fragment of a reference to a resource of this document."""
        if rest.startswith("/"):
            if find(self._resources[uri], pointer_of(rest), None) is None:
                fail(at, f"the reference to {show(pointer_of(rest))} leads nowhere: add what it names, or correct it")
        elif rest and (uri, rest) not in self._anchors:
            fail(at, f"the reference to the anchor {brief(rest)} leads nowhere: add what it names, or correct it")

    def _through(self, pointer: str, at: Path) -> None:
        for start in self._starts:
            if pointer.startswith(f"{start}/"):
                fail(at, f"this $ref leads into {show(start)}, which has a name of its own: refer to it by that name")

    def _follow(self, pointer: str, at: Path) -> None:
        self._through(pointer, at)
        super()._follow(pointer, at)


def _without_draft(node: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in node.items() if key != "$schema"} if "$schema" in node else node
