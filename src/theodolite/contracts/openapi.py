"""OpenAPI 3.0, 3.1 and 3.2."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping

from theodolite.contracts.dialects import Draft, draft_of
from theodolite.contracts.direction import Direction, Marks, directions
from theodolite.contracts.document import child, is_object, word
from theodolite.contracts.fields import declared
from theodolite.contracts.legacy import LegacySchemas
from theodolite.contracts.operations import Operations, Parameter, Place, text_of
from theodolite.contracts.registry import Registry, fail, registry_uris
from theodolite.contracts.schema import Documents, Schemas
from theodolite.core.contract import Contracts, Location, Part, Schema

__all__ = ("NewerOperations", "NewestOperations", "OpenAPIOperations", "read_openapi")

# Parameters of these names are ignored in a header (OpenAPI 3.0.4, Parameter Object): they are described elsewhere.
_NO_PARAMETERS = frozenset({"accept", "content-type", "authorization"})
_NO_SCHEMA = "this media type has no schema"
_STYLES = {Location.QUERY: "form", Location.COOKIE: "form", Location.PATH: "simple", Location.HEADER: "simple"}


class OpenAPIOperations(Operations):
    """The operations of an OpenAPI 3 document: its paths, and its webhooks."""

    locations: Mapping[str, Location] = {
        "path": Location.PATH,
        "query": Location.QUERY,
        "header": Location.HEADER,
        "cookie": Location.COOKIE,
    }

    def parts(self, operation: Place, parameters: tuple[Parameter, ...], name: str) -> Iterator[Part]:
        """Yield the parameters, then the body in each of its media types."""
        if "callbacks" in operation.node:
            self.gap(child(operation.pointer, "callbacks"), "callbacks are calls of the other side", name)
        for parameter in parameters:
            if parameter.location is not Location.HEADER or parameter.name.lower() not in _NO_PARAMETERS:
                yield self._parameter_part(parameter, name)
        if "requestBody" in operation.node:
            body = self.at(operation.node["requestBody"], child(operation.pointer, "requestBody"))
            required = body.node.get("required") is True
            for media_type, schema, pointer in self._content(body, self.request, name):
                yield Part(
                    location=Location.BODY,
                    schema=schema,
                    required=required,
                    media_type=media_type,
                    pointer=pointer,
                    description=text_of(body.node, "description"),
                )

    def results(self, operation: Place, name: str) -> Iterator[Part]:
        """Yield each response in each of its media types."""
        for status, response in self.below(operation, "responses"):
            for media_type, schema, pointer in self._content(response, self.response, name):
                yield Part(
                    location=Location.RESULT,
                    schema=schema,
                    media_type=media_type,
                    status=status,
                    pointer=pointer,
                    description=text_of(response.node, "description"),
                )

    def fields(self, operation: Place, parameters: tuple[Parameter, ...]) -> frozenset[str]:
        """Return the names that the body declares at its top, in any of its media types."""
        del parameters
        if "requestBody" not in operation.node:
            return frozenset()
        body = self.at(operation.node["requestBody"], child(operation.pointer, "requestBody"))
        return frozenset[str]().union(
            *(declared(self.root, place.node.get("schema")) for _, place in self.below(body, "content"))
        )

    def rest(self) -> None:
        """Add what stands in the components, used or not."""
        node = self.root.get("components")
        if not is_object(node):
            return
        components = Place(node, "/components")
        schemas = node.get("schemas", {})
        if not is_object(schemas):
            fail((None, "/components/schemas"), f"this must be an object, and it is {word(schemas)}")
        for name in schemas:
            self.response.add(child("/components/schemas", name))
        for key in ("parameters", "headers", "requestBodies", "responses"):
            for _, place in self.below(components, key):
                if "schema" in place.node:
                    self.response.add(child(place.pointer, "schema"))
                for _ in self._content(place, self.response, ""):
                    pass

    def _parameter_part(self, parameter: Parameter, contract: str) -> Part:
        node, pointer = parameter.place.node, parameter.place.pointer
        schema: Schema = True
        media_type = ""
        if "schema" in node:
            schema = self.request.add(child(pointer, "schema"))
        elif contents := list(self._content(parameter.place, self.request, contract)):
            media_type, schema, _ = contents[0]
        else:
            self.gap(pointer, "the parameter has no schema", contract)
        if node.get("allowEmptyValue") is True and parameter.location is Location.QUERY:
            schema = {"anyOf": [schema, {"const": ""}]}
        if text_of(node, "in") == "querystring":
            self.gap(pointer, "the query as a whole is checked under the name of its parameter", contract)
        style = text_of(node, "style") or _STYLES[parameter.location]
        explode = node.get("explode", style == "form")
        return Part(
            location=parameter.location,
            schema=schema,
            name=parameter.name,
            required=parameter.required,
            media_type=media_type,
            style=style,
            explode=explode is True,
            pointer=pointer,
            description=text_of(node, "description"),
        )

    def _content(self, place: Place, registry: Registry, contract: str) -> Iterator[tuple[str, Schema, str]]:
        """Yield the media types of a body, response or parameter, with schema and pointer."""
        for media_type, entry in self.below(place, "content"):
            if "schema" in entry.node:
                pointer = child(entry.pointer, "schema")
                yield media_type, registry.add(pointer), pointer
            else:
                reason = "the items of a stream are not checked" if "itemSchema" in entry.node else _NO_SCHEMA
                self.gap(entry.pointer, reason, contract)
                yield media_type, True, entry.pointer


class NewerOperations(OpenAPIOperations):
    """The operations of an OpenAPI 3.1 document, whose webhooks are operations too."""

    def read(self) -> Contracts:
        """Return all contracts of the document. Raises ConfigError for what cannot be one, with its pointer."""
        for name, _ in self.below(Place(self.root, ""), "webhooks"):
            self.path_item(name, child("/webhooks", name))
        return super().read()


class NewestOperations(NewerOperations):
    """The operations of an OpenAPI 3.2 document: any method, `$self`, and query strings as a whole."""

    methods = (*OpenAPIOperations.methods, "query")
    locations: Mapping[str, Location] = {**OpenAPIOperations.locations, "querystring": Location.QUERY}

    def local(self, reference: str, pointer: str) -> str:
        """Return the pointer that a `$ref` means, which may give the document's own address."""
        address = text_of(self.root, "$self")
        if address and reference.startswith(f"{address}#"):
            reference = reference.removeprefix(address)
        return super().local(reference, pointer)

    def operations(self, item: Place) -> Iterator[tuple[str, Place]]:
        """Yield the operations of a path item, by method; of additional ones in the case that is written."""
        yield from super().operations(item)
        yield from self.below(item, "additionalOperations")


def read_openapi(root: dict[str, object], digest: str, marks: Container[Direction], known: Documents) -> Contracts:
    """Return the contracts of an OpenAPI document. `marks` are the directions that it leaves something out of."""
    version = text_of(root, "openapi")
    kind = next((kind for start, kind in _KINDS.items() if f"{version}.".startswith(start)), None)
    if kind is None:
        fail((None, "/openapi"), "this version cannot be read: 3.0, 3.1 and 3.2 can")
    if "paths" not in root and (kind is OpenAPIOperations or not {"components", "webhooks"} & root.keys()):
        fail((None, ""), "an OpenAPI document has `paths` (since 3.1, or `components`, or `webhooks`)")
    registries = [
        _registry(root, uri, direction, kind, known)
        for direction, uri in zip(directions(marks), registry_uris(digest), strict=False)
    ]
    return kind(root, digest, registries[0], registries[-1]).read()


def _registry(
    root: dict[str, object], uri: str, direction: Direction | None, kind: type[OpenAPIOperations], known: Documents
) -> Registry:
    if kind is OpenAPIOperations:
        return LegacySchemas(root, uri, Marks(root=root, direction=direction, siblings=False))
    dialect = root.get("jsonSchemaDialect")
    draft: Draft | None = Draft.DRAFT_2020
    if isinstance(dialect, str):
        draft = draft_of(dialect)
    if draft is None:
        fail((None, "/jsonSchemaDialect"), "this is no draft that can be checked: 4, 6, 7, 2019-09 and 2020-12 can")
    address = text_of(root, "$self") if kind is NewestOperations else ""
    if "#" in address or "[" in address:
        fail((None, "/$self"), "this is the address of the document, without a fragment")
    marks = Marks(root=root, direction=direction, siblings=True)
    return Schemas(root, uri, marks, draft=draft, address=address, known=known)


_KINDS: Mapping[str, type[OpenAPIOperations]] = {
    "3.0.": OpenAPIOperations,
    "3.1.": NewerOperations,
    "3.2.": NewestOperations,
}
