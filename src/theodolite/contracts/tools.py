"""Tools as MCP, OpenAI and Anthropic declare them, and plain JSON Schemas."""

from __future__ import annotations

import re

from msgspec import Struct
from msgspec.structs import replace

from theodolite.contracts.digest import fingerprint
from theodolite.contracts.direction import Marks
from theodolite.contracts.document import child, find, is_list, is_object, show, word
from theodolite.contracts.operations import text_of
from theodolite.contracts.registry import fail
from theodolite.contracts.schema import Documents, Schemas
from theodolite.core.contract import Contract, Contracts, Gap, Location, Origin, Part, Schema
from theodolite.core.errors import ConfigError
from theodolite.core.text import brief

__all__ = ("BUILT_IN", "is_tool", "read_schema", "read_tools", "tool_list")

BUILT_IN = "a tool of the provider's own, declared without a schema: its calls are not checked"
"""The reason of a gap that is nobody's fault: what the provider knows of its own tool is published nowhere."""

_NO_SCHEMA = "the tool is declared without a schema: its calls are not checked"
# A tool needs no more to be called; what else stands beside (icons, `_meta`, cache marks) is no part of the agreement.
_AGREED = ("name", "title", "description", "annotations")
_ASIDE = frozenset({"_meta", "cache_control", "icons"})
# Types of tools that whoever declares them runs; any other is of a tool that the provider has.
_OURS = frozenset({"", "custom", "function"})
# How Anthropic calls its own tools: anything else with a name and a type may be a package, or whatever.
_DATED = re.compile(r"_\d{8}$")


class _Declaration(Struct, frozen=True, kw_only=True):
    """One tool as it was declared. `arguments` is the key of its schema, and empty where it says none.

    `unread` says why nothing is known of its calls; `more` is then all else that was published of it.
    """

    name: str
    origin: Origin
    node: dict[str, object]
    pointer: str
    arguments: str = ""
    unread: str = ""
    more: dict[str, object] = {}


def tool_list(root: object) -> tuple[list[object], str] | None:
    """Return the array of tools that a document is or holds, and the pointer to it, or None.

    An array itself; `tools` of a listing or of a request; `result.tools` of what an MCP server answers; `functions`.
    """
    if is_list(root):
        return root, ""
    for pointer in ("/tools", "/result/tools", "/functions"):
        found = find(root, pointer, None)
        if is_list(found):
            return found, pointer
    return None


def is_tool(root: object) -> bool:
    """Whether a document is one tool."""
    if not is_object(root):
        return False
    if is_object(root.get("function")):
        return True
    kind = text_of(root, "type")
    ours = kind in _OURS - {""} or _DATED.search(kind) is not None
    return isinstance(root.get("name"), str) and (ours or bool(_KEYS.keys() & root))


def read_tools(tools: list[tuple[object, str]], known: Documents) -> Contracts:
    """Return the contracts of tools, each given with the pointer to it.

    Raises ConfigError for what is no tool, for a name given twice, and for what is wrong with a schema.
    """
    found = _told_apart([_declaration(node, pointer) for node, pointer in tools])
    gaps = [Gap(contract=entry.name, pointer=entry.pointer, reason=entry.unread) for entry in found if entry.unread]
    digest = fingerprint(sorted(fingerprint(_agreed(entry)) for entry in found))
    contracts: dict[str, Contract] = {}
    read = _Schemas(known)
    for index, entry in enumerate(found):
        other = contracts.get(entry.name)
        if other is not None:
            raise ConfigError(
                f"{show(entry.pointer)}: the name {brief(entry.name)} is that of {show(other.pointer)} too, and a call "
                "cannot say which is meant: rename or remove one of them"
            )
        uri = f"urn:theodolite:{digest}:{index}"
        contracts[entry.name] = _contract(entry, uri, read)
    return Contracts(
        contracts=contracts, digest=digest, documents={**known, **read.documents}, gaps=(*gaps, *read.gaps)
    )


def read_schema(schema: dict[str, object], name: str, known: Documents) -> Contracts:
    """Return the one contract of a plain schema: what the arguments as a whole must be."""
    digest = fingerprint(schema)
    read = _Schemas(known)
    whole = read.schema(schema, f"urn:theodolite:{digest}", "", name)
    part = Part(location=Location.ARGUMENTS, schema=whole, required=True)
    title, description = text_of(schema, "title"), text_of(schema, "description")
    contract = Contract(name=name, origin=Origin.SCHEMA, parts=(part,), title=title, description=description)
    return Contracts(
        contracts={name: contract}, digest=digest, documents={**known, **read.documents}, gaps=tuple(read.gaps)
    )


def _declaration(node: object, pointer: str) -> _Declaration:
    """Return what one entry declares. The name is empty where a provider's own tool has none."""
    if not is_object(node):
        fail((None, pointer), f"a tool is an object, and this is {word(node)}")
    kind = text_of(node, "type")
    key = "function" if is_object(node.get("function")) else kind
    function = node.get(key)
    inner, where = (function, child(pointer, key)) if is_object(function) else (node, pointer)
    name = inner.get("name")
    if not isinstance(name, str) or not name:
        if kind in _OURS:
            fail((None, where), "a tool has a name, which is text")
        return _unread(node, inner, pointer, "")
    for key, origin in _KEYS.items():
        if key in inner:
            return _Declaration(name=name, origin=origin, node=inner, pointer=where, arguments=key)
    if kind == "function" or "strict" in inner:
        return _Declaration(name=name, origin=Origin.OPENAI, node=inner, pointer=where)
    return _unread(node, inner, pointer, name)


def _unread(node: dict[str, object], inner: dict[str, object], pointer: str, name: str) -> _Declaration:
    kind = text_of(node, "type")
    if inner is node:
        origin = Origin.ANTHROPIC if kind and name else Origin.OPENAI if kind else Origin.MCP
    else:
        origin = Origin.OPENAI
    more = {key: value for key, value in inner.items() if key not in _ASIDE and key not in _AGREED}
    more.pop("outputSchema", None)
    return _Declaration(
        name=name,
        origin=origin,
        node=inner,
        pointer=pointer,
        unread=_NO_SCHEMA if kind in _OURS else BUILT_IN,
        more={**more, "type": kind} if kind else more,
    )


def _told_apart(declared: list[_Declaration]) -> list[_Declaration]:
    """Return the tools, each with a name: one that has none is called by its type, and by its number if need be."""
    taken = {entry.name for entry in declared}
    found: list[_Declaration] = []
    for entry in declared:
        name = entry.name
        if not name:
            kind, label = text_of(entry.more, "type"), text_of(entry.more, "server_label")
            name = first = f"{kind} {label}" if label else kind
            number = 1
            while name in taken:
                number += 1
                name = f"{first} {number}"
            taken.add(name)
        found.append(replace(entry, name=name))
    return found


def _agreed(entry: _Declaration) -> dict[str, object]:
    """Return what of a declaration was agreed on, in one form whatever form it was declared in."""
    agreed = {key: entry.node[key] for key in _AGREED if key in entry.node}
    if entry.unread:
        agreed["more"] = entry.more
    else:
        agreed["arguments"] = entry.node.get(entry.arguments, {})
    if entry.origin is Origin.MCP and "outputSchema" in entry.node:
        agreed["result"] = entry.node["outputSchema"]
    return agreed


class _Schemas:
    """Reads the schemas of one list; holds the documents that they become, and what is to be said of them."""

    def __init__(self, known: Documents) -> None:
        self.documents: dict[str, object] = {}
        self.gaps: list[Gap] = []
        self._known = known

    def schema(self, node: object, uri: str, pointer: str, contract: str) -> Schema:
        """Return the schema that refers to a whole one, which goes into the documents."""
        if isinstance(node, bool):
            return node
        if not is_object(node):
            fail((None, pointer), f"a schema is an object, and this is {word(node)}")
        marks = Marks(root=node, direction=None, siblings=True)
        registry = Schemas(node, uri, marks, known=self._known, alone=True, origin=pointer)
        whole = registry.whole()
        self.documents.update(registry.finish())
        self.gaps.extend(replace(gap, contract=contract) for gap in registry.gaps)
        return whole


def _contract(entry: _Declaration, uri: str, read: _Schemas) -> Contract:
    node = entry.node
    results: tuple[Part, ...] = ()
    if entry.origin is Origin.MCP and node.get("outputSchema") is not None:
        pointer = child(entry.pointer, "outputSchema")
        result = read.schema(node["outputSchema"], f"{uri}:result", pointer, entry.name)
        results = (Part(location=Location.RESULT, schema=result, required=True, pointer=pointer),)
    annotations = node.get("annotations")
    notes = {**annotations} if is_object(annotations) else {}
    if not entry.unread and node.get("strict") is True:
        notes["strict"] = True
    return Contract(
        name=entry.name,
        origin=entry.origin,
        parts=() if entry.unread else (_arguments(entry, uri, read),),
        results=results,
        title=text_of(node, "title") or text_of(notes, "title"),
        description=text_of(node, "description"),
        pointer=entry.pointer,
        annotations={**entry.more, **notes},
    )


def _arguments(entry: _Declaration, uri: str, read: _Schemas) -> Part:
    # "Omitting parameters defines a function with an empty parameter list" (OpenAI's API reference, functions).
    schema: Schema = {"type": "object", "properties": {}}
    pointer = entry.pointer
    if entry.arguments and entry.node[entry.arguments] is not None:
        pointer = child(entry.pointer, entry.arguments)
        schema = read.schema(entry.node[entry.arguments], uri, pointer, entry.name)
    return Part(location=Location.ARGUMENTS, schema=schema, required=True, pointer=pointer)


_KEYS = {"inputSchema": Origin.MCP, "input_schema": Origin.ANTHROPIC, "parameters": Origin.OPENAI}
