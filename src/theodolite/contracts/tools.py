"""Tools as MCP, OpenAI and Anthropic declare them, and plain JSON Schemas."""

from __future__ import annotations

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

__all__ = ("is_tool", "read_schema", "read_tools", "tool_list")

# A tool needs no more to be called; what else stands beside (icons, `_meta`, cache marks) is no part of the agreement.
_AGREED = ("name", "title", "description", "annotations")


class _Declaration(Struct, frozen=True, kw_only=True):
    """One tool as it was declared. `arguments` is the key of its schema, and empty where it says none."""

    name: str
    origin: Origin
    node: dict[str, object]
    pointer: str
    arguments: str = ""


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
    return isinstance(root.get("name"), str) and (root.get("type") == "function" or bool(_KEYS.keys() & root))


def read_tools(tools: list[tuple[object, str]], known: Documents) -> Contracts:
    """Return the contracts of tools, each given with the pointer to it.

    Raises ConfigError for what is no tool, for a name given twice, and for what is wrong with a schema.
    """
    declared = [_declaration(node, pointer) for node, pointer in tools]
    found = [entry for entry in declared if isinstance(entry, _Declaration)]
    gaps = [entry for entry in declared if isinstance(entry, Gap)]
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


def _declaration(node: object, pointer: str) -> _Declaration | Gap:
    """Return what one entry declares, or why it cannot be checked."""
    if not is_object(node):
        fail((None, pointer), f"a tool is an object, and this is {word(node)}")
    function = node.get("function")
    inner, where = (function, child(pointer, "function")) if is_object(function) else (node, pointer)
    name, kind = inner.get("name"), text_of(node, "type")
    if not isinstance(name, str) or not name:
        if kind in {"", "function"}:
            fail((None, where), "a tool has a name, which is text")
        return Gap(contract=kind, pointer=pointer, reason="a tool of the provider's own, declared without a schema")
    for key, origin in _KEYS.items():
        if key in inner:
            return _Declaration(name=name, origin=origin, node=inner, pointer=where, arguments=key)
    if kind == "function" or "strict" in inner:
        return _Declaration(name=name, origin=Origin.OPENAI, node=inner, pointer=where)
    return Gap(contract=name, pointer=pointer, reason="the tool is declared without a schema")


def _agreed(entry: _Declaration) -> dict[str, object]:
    """Return what of a declaration was agreed on, in one form whatever form it was declared in."""
    agreed = {key: entry.node[key] for key in _AGREED if key in entry.node}
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
    schema: Schema = {"type": "object", "properties": {}}  # a function that is declared without parameters has none
    pointer = entry.pointer
    if entry.arguments and node[entry.arguments] is not None:
        pointer = child(entry.pointer, entry.arguments)
        schema = read.schema(node[entry.arguments], uri, pointer, entry.name)
    arguments = Part(location=Location.ARGUMENTS, schema=schema, required=True, pointer=pointer)
    results: tuple[Part, ...] = ()
    if entry.origin is Origin.MCP and node.get("outputSchema") is not None:
        pointer = child(entry.pointer, "outputSchema")
        result = read.schema(node["outputSchema"], f"{uri}:result", pointer, entry.name)
        results = (Part(location=Location.RESULT, schema=result, required=True, pointer=pointer),)
    annotations = node.get("annotations")
    notes = annotations if is_object(annotations) else {}
    return Contract(
        name=entry.name,
        origin=entry.origin,
        parts=(arguments,),
        results=results,
        title=text_of(node, "title") or text_of(notes, "title"),
        description=text_of(node, "description"),
        pointer=entry.pointer,
        annotations={**notes, "strict": True} if node.get("strict") is True else notes,
    )


_KEYS = {"inputSchema": Origin.MCP, "input_schema": Origin.ANTHROPIC, "parameters": Origin.OPENAI}
