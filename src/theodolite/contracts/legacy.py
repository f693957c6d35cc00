"""Schemas of Swagger 2.0 and OpenAPI 3.0: their own dialect becomes JSON Schema 2020-12."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from theodolite.contracts.direction import Marks
from theodolite.contracts.document import encoded, is_list, is_object, pointer_of, word
from theodolite.contracts.registry import Path, Registry, fail, pointer_to, refuse_remote
from theodolite.core.contract import Gap
from theodolite.core.text import brief

__all__ = ("LegacySchemas",)

_TYPES = frozenset({"array", "boolean", "integer", "number", "object", "string", "null", "file"})
_BOUNDS = (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum"))
# Keywords of 2020-12 that these dialects do not have: kept, the engine would obey them.
_FOREIGN = frozenset({
    "const", "contains", "contentEncoding", "contentMediaType", "contentSchema", "dependencies", "dependentRequired",
    "dependentSchemas", "else", "if", "maxContains", "minContains", "patternProperties", "prefixItems", "propertyNames",
    "then", "unevaluatedItems", "unevaluatedProperties",
})  # fmt: skip
_SILENT = frozenset({
    "$anchor", "$comment", "$dynamicAnchor", "$dynamicRef", "$id", "$recursiveAnchor", "$recursiveRef", "$schema",
    "$vocabulary", "additionalItems", "id",
})  # fmt: skip
_NOT_OURS = "the version of OpenAPI that the document is written in does not have this keyword"
_DROPPED = object()


class LegacySchemas(Registry):
    """The registry of a Swagger 2.0 or OpenAPI 3.0 document.

    What changes (OpenAPI 3.0.4, Schema Object): siblings of a `$ref` are ignored; `nullable` beside a `type` lets null
    in, though an `enum` without null still keeps it out; a boolean `exclusiveMinimum` or `exclusiveMaximum` takes the
    number of its bound; `type: file` (Swagger 2.0) is anything; keywords of later drafts say nothing and are named in
    `gaps`; what may not be sent in this direction is not `required` ("the required will take effect on the response
    only"). With `forbids` that may not be there at all. A name that stands in a list twice counts once, and is named in
    `gaps`. Keywords are known by where they stand: a property named "nullable" is a property, and data is not touched.
    """

    def __init__(self, root: dict[str, object], uri: str, marks: Marks, *, forbids: bool = False) -> None:
        super().__init__(root, uri)
        self._marks = marks
        self._forbids = forbids

    def _normal(self, node: object, at: Path) -> object:
        if not is_object(node):
            fail(at, f"a schema is an object, and this is {word(node)}")
        self._visited.add(id(node))
        if "$ref" in node:
            text = self._reference(node["$ref"], at)
            return node if len(node) == 1 and text == node["$ref"] else {"$ref": text}
        changes: dict[str, object] = {}
        for key, value in node.items():
            rule = _RULES.get(key)
            if rule is not None:
                new = rule(self, value, (at, key))
                if new is not value:
                    changes[key] = new
        self._rewrite(node, changes)
        if not changes:
            return node
        return {key: value for key, value in {**node, **changes}.items() if value is not _DROPPED}

    def _rewrite(self, node: dict[str, object], changes: dict[str, object]) -> None:
        for exclusive, bound in _BOUNDS:
            flag = node.get(exclusive)
            if flag is True and bound in node:
                changes[exclusive] = node[bound]
                changes[bound] = _DROPPED
            elif isinstance(flag, bool):
                changes[exclusive] = _DROPPED
        kind = node.get("type")
        if kind == "file":
            changes["type"], changes["format"] = _DROPPED, "binary"
        elif isinstance(kind, str) and node.get("nullable") is True:
            changes["type"] = [kind, "null"]
        self._marks.apply(node, changes)
        if self._forbids:
            self._marks.forbid(node, changes)

    def _reference(self, text: object, at: Path) -> str:
        if not isinstance(text, str):
            fail((at, "$ref"), f"a $ref is text, and this is {word(text)}")
        if not text.startswith("#"):
            refuse_remote(at, text)
        if not text.startswith("#/"):
            fail(at, f"the $ref {brief(text)} names no place of the document: begin it with #/")
        self._aim(pointer_of(text[1:]), at)
        return f"#{encoded(text[1:])}"

    def one(self, value: object, at: Path) -> object:
        """Normalize a schema below another."""
        return self._normal(value, at)

    def one_or_flag(self, value: object, at: Path) -> object:
        """Normalize a schema that may be a boolean."""
        return value if isinstance(value, bool) else self._normal(value, at)

    def each(self, value: object, at: Path) -> object:
        """Normalize the schemas of an array."""
        if not is_list(value):
            fail(at, f"this is an array of schemas, not {word(value)}")
        new = [self._normal(entry, (at, index)) for index, entry in enumerate(value)]
        return value if all(map(_same, new, value)) else new

    def named(self, value: object, at: Path) -> object:
        """Normalize the schemas of an object, whatever their names."""
        if not is_object(value):
            fail(at, f"this is an object of schemas, not {word(value)}")
        changed = False
        new: dict[str, object] = {}
        for name, entry in value.items():
            below = new[name] = self._normal(entry, (at, name))
            changed |= below is not entry
        return new if changed else value

    def kind(self, value: object, at: Path) -> object:
        """Check the name of a type."""
        names = value if is_list(value) else [value]
        for name in names:
            if not isinstance(name, str) or name not in _TYPES:
                fail(at, "this is no type: give array, boolean, integer, number, object or string")
        return self._unique(value, at) if is_list(value) else value

    def names(self, value: object, at: Path) -> object:
        """Check a list of names."""
        if not is_list(value) or not all(isinstance(name, str) for name in value):
            fail(at, "this is an array of names of properties")
        return self._unique(value, at)

    def foreign(self, value: object, at: Path) -> object:
        """Drop a keyword that this dialect does not have, and say so."""
        del value
        self.gaps.append(Gap(contract="", pointer=pointer_to(at), reason=_NOT_OURS))
        return _DROPPED

    def silent(self, value: object, at: Path) -> object:
        """Drop a keyword that this dialect does not have and that checks nothing by itself."""
        del value, at
        return _DROPPED


def _same(one: object, other: object) -> bool:
    return one is other


_RULES: Mapping[str, Callable[[LegacySchemas, object, Path], object]] = {
    "additionalProperties": LegacySchemas.one_or_flag,
    "allOf": LegacySchemas.each,
    "anyOf": LegacySchemas.each,
    "definitions": LegacySchemas.named,
    "items": LegacySchemas.one,
    "not": LegacySchemas.one,
    "oneOf": LegacySchemas.each,
    "properties": LegacySchemas.named,
    "required": LegacySchemas.names,
    "type": LegacySchemas.kind,
    **dict.fromkeys(_FOREIGN, LegacySchemas.foreign),
    **dict.fromkeys(_SILENT, LegacySchemas.silent),
}
