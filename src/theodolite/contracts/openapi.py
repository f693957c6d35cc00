"""OpenAPI 3.0, 3.1 and 3.2."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from theodolite.contracts.direction import Direction, Marks
from theodolite.contracts.document import child, is_object, word
from theodolite.contracts.legacy import LegacySchemas
from theodolite.contracts.operations import Operations, Parameter, Place, text_of
from theodolite.contracts.registry import Registry, fail
from theodolite.core.contract import Contracts, Location, Part, Schema

__all__ = ("OpenAPIOperations",)

# Parameters of these names are ignored in a header (OpenAPI 3.0.4, Parameter Object): they are described elsewhere.
_NO_PARAMETERS = frozenset({"accept", "content-type", "authorization"})
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
        for parameter in parameters:
            if parameter.location is not Location.HEADER or parameter.name.lower() not in _NO_PARAMETERS:
                yield self._parameter_part(parameter, name)
        if "requestBody" in operation.node:
            body = self.at(operation.node["requestBody"], child(operation.pointer, "requestBody"))
            required = body.node.get("required") is True
            for media_type, schema, pointer in self._content(body, self.request, name):
                yield Part(
                    location=Location.BODY, schema=schema, required=required, media_type=media_type, pointer=pointer
                )

    def results(self, operation: Place, name: str) -> Iterator[Part]:
        """Yield each response in each of its media types."""
        for status, response in self.below(operation, "responses"):
            for media_type, schema, pointer in self._content(response, self.response, name):
                yield Part(
                    location=Location.RESULT, schema=schema, media_type=media_type, status=status, pointer=pointer
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
        )

    def _content(self, place: Place, registry: Registry, contract: str) -> Iterator[tuple[str, Schema, str]]:
        """Yield the media types of a body, response or parameter, with schema and pointer."""
        for media_type, entry in self.below(place, "content"):
            if "schema" in entry.node:
                pointer = child(entry.pointer, "schema")
                yield media_type, registry.add(pointer), pointer
            else:
                self.gap(entry.pointer, "this media type has no schema", contract)
                yield media_type, True, entry.pointer


def read_openapi(root: dict[str, object], digest: str) -> Contracts:
    """Return the contracts of an OpenAPI document."""
    uri = f"urn:theodolite:{digest}"
    request = response = LegacySchemas(root, uri, Marks(root=root, direction=None, siblings=False))
    return OpenAPIOperations(root, digest, request, response).read()
