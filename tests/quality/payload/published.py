"""Documents as they were published: read, and their operations found, without any code of the package."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias
from urllib.parse import unquote

import msgspec

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"

_Placed: TypeAlias = "tuple[dict[str, Json], str]"

FOLDER = Path(__file__).parents[4] / "shared" / "data" / "openapi"
FILES = (
    "airflow-2.10.5-v1.yaml",
    "github-rest-api.min.json",
    "jupyter-server-2.21.1-swagger2.yaml",
    "kubernetes-1.13-swagger2.json",
    "notion-openapi.json",
)
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")
# What a parameter of Swagger 2.0 shares with a schema: its `required` is a flag, and no list of names.
PARAMETER_KEYWORDS = frozenset({
    "type", "format", "items", "default", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "maxLength",
    "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "enum", "multipleOf",
})  # fmt: skip


class Parameter(NamedTuple):
    """A parameter of an operation. `pointer` leads to what its value is checked by."""

    name: str
    location: str
    required: bool
    pointer: str
    schema: Json


class Body(NamedTuple):
    """A body in one media type. `pointer` leads to its schema."""

    media_type: str
    required: bool
    pointer: str
    schema: Json


class Operation(NamedTuple):
    """An operation under the name that it is called by."""

    name: str
    method: str
    path: str
    bodies: tuple[Body, ...]
    parameters: tuple[Parameter, ...]


class Document:
    """A document under a short name, and what stands in it."""

    def __init__(self, name: str, root: dict[str, Json]) -> None:
        self.name = name
        self.root = root
        self.dialect = str(root.get("openapi", root.get("swagger", "")))[:3]
        self.legacy = self.dialect in {"2.0", "3.0"}
        self.uri = str(root.get("$self", f"urn:published:{name}"))
        self.named: dict[str, dict[str, Json]] = {}
        self._targets: dict[str, Json] = {}
        if not self.legacy:
            self._name(root, root)

    def at(self, pointer: str) -> Json:
        """Return what a pointer leads to. Raises KeyError or IndexError."""
        node: Json = self.root
        for token in pointer.split("/")[1:]:
            key = token.replace("~1", "/").replace("~0", "~")
            if isinstance(node, dict):
                node = node[key]
            elif isinstance(node, list):
                node = node[int(key)]
            else:
                raise KeyError(pointer)
        return node

    def origin(self, node: Json, pointer: str) -> str:
        """Return where a schema stands; for one that is no more than a `$ref`, where that leads: many share it."""
        alone = isinstance(node, dict) and node.keys() == {"$ref"}
        return self.followed(node, pointer)[1] if alone else pointer

    def followed(self, node: Json, pointer: str) -> tuple[Json, str]:
        """Return what a node is, and where, after every `$ref`. KeyError: nowhere, or in a circle."""
        seen: set[str] = set()
        while isinstance(node, dict) and isinstance(reference := node.get("$ref"), str):
            if reference in seen:
                raise KeyError(reference)
            seen.add(reference)
            reference = reference.removeprefix(self.uri)
            if reference in self._targets:
                return self._targets[reference], ""
            pointer = unquote(reference[1:])
            node = self.at(pointer)
        return node, pointer

    def _name(self, node: Json, resource: dict[str, Json]) -> None:
        """Note what names lead to: those of schemas with an `$id`, of anchors, and `$ref`s within such schemas.

        The first of a name counts, which is enough where no two schemas of a document give one to different things.
        """
        for entry in node.values() if isinstance(node, dict) else elements(node):
            self._name(entry, resource)
        if not isinstance(node, dict):
            return
        if isinstance(name := node.get("$id"), str):
            self.named[name] = node
            self._targets[name] = node
            self._relative(node, Document("", {**node, "$id": None}))
        for key in ("$anchor", "$dynamicAnchor"):
            if isinstance(anchor := node.get(key), str):
                self._targets[f"#{anchor}"] = node

    def _relative(self, node: Json, resource: Document) -> None:
        for entry in node.values() if isinstance(node, dict) else elements(node):
            self._relative(entry, resource)
        reference = node.get("$ref") if isinstance(node, dict) else None
        if isinstance(reference, str) and reference.startswith("#/"):
            self._targets.setdefault(reference, resource.at(unquote(reference[1:])))

    def operations(self) -> Iterator[Operation]:
        """Yield all operations below `paths`."""
        for path, entry in members(self.root.get("paths")):
            if not path.startswith("/"):
                continue
            item, pointer = self.followed(entry, f"/paths/{token(path)}")
            for where, method, operation in self._methods(item, pointer):
                if isinstance(item, dict) and isinstance(operation, dict):
                    parameters = self._given(((item, pointer), (operation, where)))
                    yield self._operation(method, path, (operation, where), parameters)

    def _methods(self, item: Json, pointer: str) -> Iterator[tuple[str, str, Json]]:
        newest = self.dialect == "3.2"
        for method, operation in members(item):
            if method in METHODS or (newest and method == "query"):
                yield f"{pointer}/{method}", method.upper(), operation
            elif newest and method == "additionalOperations":
                for name, other in members(operation):
                    yield f"{pointer}/{method}/{name}", name, other

    def _given(self, holders: Iterable[_Placed]) -> dict[tuple[str, str], _Placed]:
        """Return the parameters of a path and of its operation, which go before those of the path."""
        found: dict[tuple[str, str], _Placed] = {}
        for holder, where in holders:
            for index, entry in enumerate(elements(holder.get("parameters"))):
                node, at = self.followed(entry, f"{where}/parameters/{index}")
                if isinstance(node, dict):
                    found[str(node["in"]), str(node["name"])] = node, at
        return found

    def _operation(self, method: str, path: str, placed: _Placed, found: dict[tuple[str, str], _Placed]) -> Operation:
        operation, pointer = placed
        name = operation.get("operationId")
        return Operation(
            name=name if isinstance(name, str) else f"{method} {path}",
            method=method,
            path=path,
            bodies=tuple(self._bodies(operation, pointer, found)),
            parameters=tuple(self._parameters(found)),
        )

    def _bodies(
        self, operation: dict[str, Json], pointer: str, found: dict[tuple[str, str], _Placed]
    ) -> Iterator[Body]:
        for (location, _), (node, at) in found.items():
            if location == "body":
                consumed = elements(operation.get("consumes", self.root.get("consumes")))
                schema = node["schema"]
                where = self.origin(schema, f"{at}/schema")
                yield Body(str([*consumed, ""][0]), node.get("required") is True, where, schema)
        if form := {name: node for (location, name), (node, _) in found.items() if location == "formData"}:
            consumed = elements(operation.get("consumes", self.root.get("consumes")))
            files = any(node["type"] == "file" for node in form.values())
            properties: Json = {name: _schema(node) for name, node in form.items()}
            required: Json = [name for name, node in form.items() if node.get("required") is True]
            whole: dict[str, Json] = {"type": "object", "properties": properties}
            if required:
                whole["required"] = required
            yield Body(next((str(one) for one in consumed if one in FORMS), FORMS[files]), bool(required), "", whole)
        if "requestBody" in operation:
            node_, at = self.followed(operation["requestBody"], f"{pointer}/requestBody")
            if isinstance(node_, dict):
                for media_type, entry in members(node_.get("content")):
                    if isinstance(entry, dict) and "schema" in entry:
                        schema = entry["schema"]
                        where = self.origin(schema, f"{at}/content/{token(media_type)}/schema")
                        yield Body(media_type, node_.get("required") is True, where, schema)

    def _parameters(self, found: dict[tuple[str, str], _Placed]) -> Iterator[Parameter]:
        for (location, name), (node, at) in found.items():
            required = node.get("required") is True
            if location in {"body", "formData"}:
                continue
            if self.dialect == "2.0":
                yield Parameter(name, location, required, "", _schema(node))
                continue
            place = location.removesuffix("string")  # that of OpenAPI 3.2 is the query as a whole
            for media_type, entry in members(node.get("content")):
                if isinstance(entry, dict):
                    where = self.origin(entry["schema"], f"{at}/content/{token(media_type)}/schema")
                    yield Parameter(name, place, required, where, entry["schema"])
            if "schema" in node:
                yield Parameter(name, location, required, self.origin(node["schema"], f"{at}/schema"), node["schema"])


def read(file: str, folder: Path = FOLDER) -> Document:
    """Return a document of the shared folder, or of another."""
    data = (folder / file).read_bytes()
    root: Json = json.loads(data) if file.endswith(".json") else msgspec.yaml.decode(data)
    assert isinstance(root, dict)
    return Document(file.split("-", maxsplit=1)[0], root)


def _schema(node: dict[str, Json]) -> Json:
    """Return what a parameter of Swagger 2.0 says of its value. A file is anything."""
    return {key: value for key, value in node.items() if key in PARAMETER_KEYWORDS and (key, value) != ("type", "file")}


def members(node: Json) -> Iterator[tuple[str, Json]]:
    """Yield the members of an object, and nothing of anything else."""
    if isinstance(node, dict):
        yield from node.items()


def elements(node: Json) -> list[Json]:
    """Return the elements of an array, and nothing of anything else."""
    return node if isinstance(node, list) else []


def token(key: str | int) -> str:
    """Return a key as a pointer has it."""
    return str(key).replace("~", "~0").replace("/", "~1")
