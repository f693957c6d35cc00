"""Documents as they were published: read, and their operations found, without any code of the package."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias
from urllib.parse import unquote

import msgspec

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"

FOLDER = Path(__file__).parents[4] / "shared" / "data" / "openapi"
FILES = (
    "airflow-2.10.5-v1.yaml",
    "github-rest-api.min.json",
    "jupyter-server-2.21.1-swagger2.yaml",
    "kubernetes-1.13-swagger2.json",
    "notion-openapi.json",
)
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
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
        version = root.get("openapi", root.get("swagger"))
        self.dialect = str(version)[:3]
        self.legacy = self.dialect in {"2.0", "3.0"}
        self.uri = f"urn:published:{name}"

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
        """Return what a node is, and where, after every `$ref`."""
        while isinstance(node, dict) and isinstance(reference := node.get("$ref"), str):
            if not reference.startswith("#"):
                raise KeyError(reference)
            pointer = unquote(reference[1:])
            node = self.at(pointer)
        return node, pointer

    def operations(self) -> Iterator[Operation]:
        """Yield all operations below `paths`."""
        for path, entry in members(self.root.get("paths")):
            if not path.startswith("/"):
                continue
            item, pointer = self.followed(entry, f"/paths/{token(path)}")
            for method, operation in members(item):
                if method in METHODS and isinstance(operation, dict) and isinstance(item, dict):
                    yield self._operation(method, path, operation, f"{pointer}/{method}", item)

    def _operation(
        self, method: str, path: str, operation: dict[str, Json], pointer: str, item: dict[str, Json]
    ) -> Operation:
        found: dict[tuple[str, str], tuple[dict[str, Json], str]] = {}
        for holder, where in ((item, pointer.rpartition("/")[0]), (operation, pointer)):
            for index, entry in enumerate(elements(holder.get("parameters"))):
                node, at = self.followed(entry, f"{where}/parameters/{index}")
                if isinstance(node, dict):
                    found[str(node["in"]), str(node["name"])] = node, at
        name = operation.get("operationId")
        return Operation(
            name=name if isinstance(name, str) else f"{method.upper()} {path}",
            method=method,
            path=path,
            bodies=tuple(self._bodies(operation, pointer, found)),
            parameters=tuple(self._parameters(found)),
        )

    def _bodies(
        self, operation: dict[str, Json], pointer: str, found: dict[tuple[str, str], tuple[dict[str, Json], str]]
    ) -> Iterator[Body]:
        for (location, _), (node, at) in found.items():
            if location == "body":
                consumed = elements(operation.get("consumes", self.root.get("consumes")))
                schema = node["schema"]
                where = self.origin(schema, f"{at}/schema")
                yield Body(str([*consumed, ""][0]), node.get("required") is True, where, schema)
        if "requestBody" in operation:
            node_, at = self.followed(operation["requestBody"], f"{pointer}/requestBody")
            if isinstance(node_, dict):
                for media_type, entry in members(node_.get("content")):
                    if isinstance(entry, dict) and "schema" in entry:
                        schema = entry["schema"]
                        where = self.origin(schema, f"{at}/content/{token(media_type)}/schema")
                        yield Body(media_type, node_.get("required") is True, where, schema)

    def _parameters(self, found: dict[tuple[str, str], tuple[dict[str, Json], str]]) -> Iterator[Parameter]:
        for (location, name), (node, at) in found.items():
            required = node.get("required") is True
            if location in {"body", "formData"}:
                continue
            if self.dialect == "2.0":
                schema: Json = {key: value for key, value in node.items() if key in PARAMETER_KEYWORDS}
                yield Parameter(name, location, required, "", schema)
            elif "schema" in node:
                yield Parameter(name, location, required, self.origin(node["schema"], f"{at}/schema"), node["schema"])


def read(file: str) -> Document:
    """Return a document of the shared folder."""
    data = (FOLDER / file).read_bytes()
    root: Json = json.loads(data) if file.endswith(".json") else msgspec.yaml.decode(data)
    assert isinstance(root, dict)
    return Document(file.split("-", maxsplit=1)[0], root)


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
