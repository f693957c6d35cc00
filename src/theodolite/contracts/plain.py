"""Schemas of any draft in one plain form, that of 2020-12, in which two of them can be compared.

The form holds what decides about a value and what is said in words. References are plain, each to a schema with a
name of its own; no anchors, no addresses. What a draft does not have is kept as words under a name that says so, and
what cannot be put into the form is kept under `NOT_COMPARED`.

Sources: JSON Schema, drafts 4, 6, 7, 2019-09 and 2020-12, validation and core, with the lists of changes in their
appendices; what the engine asserts (formats, contents, `dependencies` in every draft) was measured with
jsonschema-rs 0.60.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from theodolite.contracts.dialects import Draft
from theodolite.contracts.document import is_list, is_object
from theodolite.contracts.nodes import Node
from theodolite.contracts.resolving import Place, Resolver, Slot, opened
from theodolite.core.contract import Schema

__all__ = ("EVALUATED_OTHERWISE", "NOT_COMPARED", "WHOLE_NUMBER", "Forms")

NOT_COMPARED = "not compared"
"""What nothing is known of, as it is written."""

WHOLE_NUMBER = "integer of draft 4"
"""That 1.0 is no integer, as in draft 4 (validation, 5.5.2: a JSON number without a fraction part)."""

EVALUATED_OTHERWISE = "unevaluatedItems of 2019-09"
"""That `contains` evaluates no items, as before 2020-12."""

# The name of a schema in the form, by number: nothing that is published has such an address.
_NAME = "theodolite.form:"
_IGNORED = " (ignored)"
_DROPPED = frozenset(
    {"$id", "$schema", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary", "$defs", "definitions"}
)
# The draft that a keyword that checks came with, and that which had it last.
_SINCE: Mapping[str, Draft] = {
    **dict.fromkeys(("const", "contains", "propertyNames", "contentEncoding", "contentMediaType"), Draft.DRAFT_6),
    **dict.fromkeys(("if", "then", "else"), Draft.DRAFT_7),
    **dict.fromkeys(("minContains", "maxContains", "dependentRequired", "dependentSchemas"), Draft.DRAFT_2019),
    **dict.fromkeys(("unevaluatedProperties", "unevaluatedItems", "contentSchema"), Draft.DRAFT_2019),
    "prefixItems": Draft.DRAFT_2020,
}
_FORMATS: Mapping[str, Draft] = {
    **dict.fromkeys(("uri-reference", "uri-template", "json-pointer"), Draft.DRAFT_6),
    **dict.fromkeys(("idn-hostname", "iri", "iri-reference", "relative-json-pointer"), Draft.DRAFT_7),
    **dict.fromkeys(("duration", "uuid"), Draft.DRAFT_2019),
}
_CONTENTS = ("contentEncoding", "contentMediaType")
# What a draft up to 7 does not look at beside a `$ref`, and 2020-12 does.
_CHECKS = frozenset(
    {
        *("type", "enum", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength"),
        *("maxLength", "pattern", "format", "items", "additionalItems", "minItems", "maxItems", "uniqueItems"),
        *("properties", "patternProperties", "additionalProperties", "required", "minProperties", "maxProperties"),
        *("dependencies", "allOf", "anyOf", "oneOf", "not", "discriminator", "readOnly", *_SINCE),
    }
)
_BOUNDS = (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum"))
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


class Forms:
    """Puts the schemas of one set of documents into the plain form, each once. Linear in what they lead to.

    >>> forms = Forms({})
    >>> old = {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]}
    >>> forms.node(old).schema
    {'prefixItems': [{'type': 'string'}]}
    """

    def __init__(self, documents: Mapping[str, object]) -> None:
        self._resolver = Resolver(documents)
        self._formed: dict[str, object] = {}
        self._nodes: dict[int, Node] = {}
        self._names: dict[tuple[int, str, Draft], str] = {}
        self._waiting: list[tuple[str, Place]] = []

    def node(self, schema: Schema) -> Node:
        """Return a schema of a part in the plain form, with all that it leads to. The same one each time."""
        node = self._nodes.get(id(schema))
        if node is None:
            name = self._name(self._resolver.start(schema))
            while self._waiting:
                named, place = self._waiting.pop()
                self._formed[named] = self._form(place)
            formed = self._formed[name]
            node = Node(formed if is_object(formed) or isinstance(formed, bool) else True, self._formed)
            self._nodes[id(schema)] = node
        return node

    def _name(self, place: Place) -> str:
        key = (id(place.schema), place.base, place.draft)
        name = self._names.get(key)
        if name is None:
            name = self._names[key] = f"{_NAME}{len(self._names)}"
            self._waiting.append((name, place))
        return name

    def _form(self, start: Place) -> object:
        whole: list[object] = [start.schema]
        waiting = [(start, Slot(whole, 0, start.schema))]
        while waiting:
            place, slot = waiting.pop()
            if isinstance(place.schema, bool):
                continue
            renamed = _renamed(self._known(place.schema, place.draft), place.draft)
            copy, slots = opened(renamed, Draft.DRAFT_2020)
            waiting += [(self._resolver.inside(place, one.schema), one) for one in slots]
            self._lead(copy, place)
            slot.put(copy)
        return whole[0]

    @staticmethod
    def _known(node: Mapping[str, object], draft: Draft) -> dict[str, object]:
        """Return what a draft knows of a schema; what it would know elsewhere, or another draft would, as words."""
        alone = draft <= Draft.DRAFT_7 and "$ref" in node
        known: dict[str, object] = {}
        for key, value in node.items():
            if key in _DROPPED or key in _REFERENCES:
                continue
            lost = alone if key in _CHECKS else False
            lost = lost or _SINCE.get(key, Draft.DRAFT_4) > draft
            lost = lost or (key == "additionalItems" and not (draft <= Draft.DRAFT_2019 and is_list(node.get("items"))))
            known[f"{key}{_IGNORED}" if lost else key] = value
        return known

    def _lead(self, copy: dict[str, object], place: Place) -> None:
        """Put the references of a schema into the plain form."""
        if isinstance(place.schema, bool):
            return
        led, lost = list[str](), dict[str, object]()
        for keyword, text in self._references(place.schema, place.draft):
            target = self._target(place, keyword, text)
            if target is not None:
                led.append(self._name(target))
            elif keyword == "$ref" and not self._resolver.known(place, text):
                led.append(self._resolver.absolute(place, text))
            else:
                lost[keyword] = [text, id(self)]  # which is like nothing of another set of documents
        if led:
            copy["$ref"] = led[0]
        if led[1:]:
            own = copy.get("allOf")
            copy["allOf"] = [*(own if is_list(own) else ()), *[{"$ref": one} for one in led[1:]]]
        if lost:
            strange = copy.get(NOT_COMPARED)
            copy[NOT_COMPARED] = {**lost, **(strange if is_object(strange) else {})}

    @staticmethod
    def _references(node: Mapping[str, object], draft: Draft) -> Iterator[tuple[str, str]]:
        for keyword in _REFERENCES:
            wanted = {"$dynamicRef": Draft.DRAFT_2020, "$recursiveRef": Draft.DRAFT_2019}.get(keyword, draft)
            text = node.get(keyword)
            if isinstance(text, str) and draft is wanted:
                yield keyword, text

    def _target(self, place: Place, keyword: str, text: str) -> Place | None:
        """Return what a reference leads to, and None where that depends on the way there, or is not known."""
        target = self._resolver.followed(place, text)
        name = text.partition("#")[2] if keyword == "$dynamicRef" else ""
        if target is None or keyword == "$ref" or (keyword == "$dynamicRef" and (not name or "/" in name)):
            return target
        ways = self._resolver.moving(place, name)
        if not any(one.schema is target.schema for one in ways):
            return target
        return target if len(ways) == 1 else None


def _renamed(node: dict[str, object], draft: Draft) -> dict[str, object]:
    """Put what a draft says in other words than 2020-12 into these."""
    if draft is Draft.DRAFT_4:
        _of_draft_4(node)
    if draft <= Draft.DRAFT_2019 and is_list(node.get("items")):
        node["prefixItems"] = node.pop("items")
        if "additionalItems" in node:
            node["items"] = node.pop("additionalItems")
    if draft <= Draft.DRAFT_7 and is_object(depending := node.get("dependencies")):
        del node["dependencies"]
        names = {name: one for name, one in depending.items() if is_list(one)}
        schemas = {name: one for name, one in depending.items() if not is_list(one)}
        node.update({"dependentRequired": names} if names else {})
        node.update({"dependentSchemas": schemas} if schemas else {})
    if draft is Draft.DRAFT_2019 and "unevaluatedItems" in node:
        node[EVALUATED_OTHERWISE] = True
    kind = node.get("format")
    if isinstance(kind, str) and _FORMATS.get(kind, Draft.DRAFT_4) > draft:
        node["format"] = f"{kind}{_IGNORED}"
    for keyword in _CONTENTS if draft <= Draft.DRAFT_7 else ():
        if isinstance(said := node.get(keyword), str):
            node[keyword] = f"{said} (checked)"
    strange = {key: node.pop(key) for key in ("exclusiveMinimum", "exclusiveMaximum") if _is_flag(node.get(key))}
    if is_list(node.get("items")):
        strange["items"] = node.pop("items")
    return {**node, NOT_COMPARED: strange} if strange else node


def _of_draft_4(node: dict[str, object]) -> None:
    for exclusive, bound in _BOUNDS:
        if _is_flag(node.get(exclusive)) and node.pop(exclusive) is True and bound in node:
            node[exclusive] = node.pop(bound)
    kinds = node.get("type")
    named = kinds if is_list(kinds) else [kinds]
    if "integer" in named and "number" not in named:
        node[WHOLE_NUMBER] = True


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)
