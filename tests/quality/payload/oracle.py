"""What others say of a value: python-jsonschema and openapi-schema-validator, on documents as they were published."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from typing import Protocol
from urllib.parse import quote

from tests.quality.payload.published import Document, Json

__all__ = ("Oracle",)


class _Judge(Protocol):
    def is_valid(self, instance: Json) -> bool: ...


# What these make has no types, or none that two checkers agree on.
_JSONSCHEMA, _OPENAPI = import_module("jsonschema"), import_module("openapi_schema_validator")
_REFERENCING, _DRAFTS = import_module("referencing"), import_module("referencing.jsonschema")
_VALIDATORS: Mapping[str, Callable[..., _Judge]] = {
    "2.0": _OPENAPI.OAS30WriteValidator,
    "3.0": _OPENAPI.OAS30WriteValidator,
    "3.1": _OPENAPI.OAS31Validator,
    "3.2": _OPENAPI.OAS32Validator,
}


class Oracle:
    """Judges values by the schemas of one document, which are given to the validators unchanged.

    Swagger 2.0 and OpenAPI 3.0 are judged by the validator of OpenAPI 3.0 for requests: both have the rules of JSON
    Schema up to draft 4 (Swagger 2.0 without `nullable`, which no judged document of it has). OpenAPI 3.1 and 3.2 are
    judged by JSON Schema 2020-12. `$ref`s are resolved in the document; nothing is fetched. Formats say nothing.
    """

    def __init__(self, document: Document) -> None:
        self.document = document
        # Opaque: a document of OpenAPI is no schema, and what looks like an `id` in it is none.
        kind = _REFERENCING.Specification.OPAQUE if document.legacy else _DRAFTS.DRAFT202012
        if not document.dialect and isinstance(draft := document.root.get("$schema"), str):
            kind = _DRAFTS.specification_with(draft)
        resources = [(uri, _DRAFTS.DRAFT202012.create_resource(node)) for uri, node in document.named.items()]
        root = _referring(document.root, document.named.keys()) if document.named else document.root
        resources.append((document.uri, kind.create_resource(root)))
        self._registry: object = _REFERENCING.Registry().with_resources(resources).crawl()
        self._judges: dict[str, _Judge] = {}
        self._said: dict[tuple[str, str], bool] = {}
        self.asked = 0

    def allows(self, value: Json, *, pointer: str = "", schema: Json = None) -> bool:
        """Whether the schema at a pointer, or one that stands nowhere, allows a value. Asks each question once."""
        key = pointer or json.dumps(schema)
        question = key, json.dumps(value)
        if question not in self._said:
            self.asked += 1
            self._said[question] = self._judge(key, pointer, schema).is_valid(value)
        return self._said[question]

    def _judge(self, key: str, pointer: str, schema: Json) -> _Judge:
        if key not in self._judges:
            entry = {"$ref": f"{self.document.uri}#{quote(pointer, safe='/~')}"} if pointer else schema
            validator = _VALIDATORS.get(self.document.dialect) or _JSONSCHEMA.validators.validator_for(schema)
            self._judges[key] = validator(entry, registry=self._registry)
        return self._judges[key]


def _referring(node: Json, names: Collection[str]) -> Json:
    """Return a document in which schemas with a name of their own are referred to by it.

    That means the same (JSON Schema 2020-12, core, 9.3.1), and `referencing` does not know where OpenAPI has schemas:
    led to one by a pointer, it goes on as if that had no name.
    """
    if isinstance(node, list):
        return [_referring(entry, names) for entry in node]
    if not isinstance(node, dict):
        return node
    if (name := node.get("$id")) in names:
        return {"$ref": name}
    return {key: _referring(entry, names) for key, entry in node.items()}
