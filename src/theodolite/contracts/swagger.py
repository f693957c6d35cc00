"""Swagger 2.0."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping

from theodolite.contracts.direction import Direction, Marks, directions
from theodolite.contracts.document import child, find, is_list, is_object, word
from theodolite.contracts.fields import declared
from theodolite.contracts.legacy import LegacySchemas
from theodolite.contracts.operations import Operations, Parameter, Place, text_of
from theodolite.contracts.registry import FILE, FILE_BACK, fail, registry_uris
from theodolite.core.contract import Contracts, Location, Origin, Part, Schema

__all__ = ("SwaggerOperations", "read_swagger")

# What of a parameter is its schema (Swagger 2.0, Parameter Object), with its words; the rest says where it goes.
_SCHEMA = frozenset({
    "default", "description", "enum", "exclusiveMaximum", "exclusiveMinimum", "format", "items", "maxItems",
    "maxLength", "maximum", "minItems", "minLength", "minimum", "multipleOf", "pattern", "type", "uniqueItems",
})  # fmt: skip
_FORM = "formData"
_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")
# How `collectionFormat` is called since OpenAPI 3; "tsv" has no name there.
_STYLES = {"ssv": "spaceDelimited", "pipes": "pipeDelimited", "tsv": "tabDelimited"}


class SwaggerOperations(Operations):
    """The operations of a Swagger 2.0 document.

    Parameters `in: formData` are together the body, an object. A body has the media types of `consumes`, a result those
    of `produces`, of the operation or else of the document; "*/*" where neither says.
    """

    origin = Origin.SWAGGER
    methods = ("get", "put", "post", "delete", "options", "head", "patch")
    locations: Mapping[str, Location] = {
        "path": Location.PATH,
        "query": Location.QUERY,
        "header": Location.HEADER,
        "body": Location.BODY,
        _FORM: Location.BODY,
    }

    def parts(self, operation: Place, parameters: tuple[Parameter, ...], name: str) -> Iterator[Part]:
        """Yield the parameters, then the body in each of its media types."""
        form = [parameter for parameter in parameters if text_of(parameter.place.node, "in") == _FORM]
        for parameter in parameters:
            if parameter.location is not Location.BODY:
                yield self._parameter_part(parameter)
            elif parameter not in form:
                yield from self._body(operation, parameter, name)
        if form:
            yield from self._form(operation, form, name)

    def results(self, operation: Place, name: str) -> Iterator[Part]:
        """Yield each response in each of its media types."""
        media_types = self._media_types(operation, "produces") or ["*/*"]
        for status, response in self.below(operation, "responses"):
            if "schema" not in response.node:
                continue
            pointer = child(response.pointer, "schema")
            schema = self.response.add(pointer)
            if find(self.root, child(pointer, "type"), None) == "file":
                self.gap(pointer, FILE_BACK, name)
            for media_type in media_types:
                yield Part(
                    location=Location.RESULT,
                    schema=schema,
                    media_type=media_type,
                    status=status,
                    pointer=pointer,
                    description=text_of(response.node, "description"),
                )

    def fields(self, operation: Place, parameters: tuple[Parameter, ...]) -> frozenset[str]:
        """Return the names that the body declares at its top."""
        del operation
        names: frozenset[str] = frozenset()
        for parameter in parameters:
            if text_of(parameter.place.node, "in") == _FORM:
                names |= {parameter.name}
            elif parameter.location is Location.BODY:
                names |= declared(self.root, parameter.place.node.get("schema"))
        return names

    def rest(self) -> None:
        """Add what stands in the definitions, parameters and responses, used or not."""
        definitions = self.root.get("definitions", {})
        if not is_object(definitions):
            fail((None, "/definitions"), f"this must be an object, and it is {word(definitions)}")
        for name in definitions:
            self.response.add(child("/definitions", name))
        for key in ("parameters", "responses"):
            for _, place in self.below(Place(self.root, ""), key):
                if "schema" in place.node:
                    self.response.add(child(place.pointer, "schema"))

    def _parameter_part(self, parameter: Parameter) -> Part:
        node, pointer = parameter.place.node, parameter.place.pointer
        kind = text_of(node, "collectionFormat")
        style = "form" if parameter.location is Location.QUERY else "simple"
        schema = self._schema(parameter)
        if node.get("allowEmptyValue") is True and parameter.location is Location.QUERY:
            schema = {"anyOf": [schema, {"const": ""}]}
        return Part(
            location=parameter.location,
            schema=schema,
            name=parameter.name,
            required=parameter.required,
            style=_STYLES.get(kind, style),
            explode=kind == "multi",
            pointer=pointer,
        )

    def _schema(self, parameter: Parameter) -> Schema:
        node = parameter.place.node
        schema = {key: value for key, value in node.items() if key in _SCHEMA}
        return self.request.add_made(child(parameter.place.pointer, "x-theodolite-schema"), schema)

    def _body(self, operation: Place, parameter: Parameter, name: str) -> Iterator[Part]:
        node, pointer = parameter.place.node, child(parameter.place.pointer, "schema")
        schema: Schema = True
        if "schema" in node:
            schema = self.request.add(pointer)
        else:
            self.gap(parameter.place.pointer, "the body has no schema", name)
        for media_type in self._media_types(operation, "consumes") or ["*/*"]:
            yield Part(
                location=Location.BODY,
                schema=schema,
                required=parameter.required,
                media_type=media_type,
                pointer=pointer,
                description=text_of(node, "description"),
            )

    def _form(self, operation: Place, form: list[Parameter], name: str) -> Iterator[Part]:
        properties = {parameter.name: self._schema(parameter) for parameter in form}
        files = [parameter for parameter in form if parameter.place.node.get("type") == "file"]
        for parameter in files:
            self.gap(parameter.place.pointer, FILE, name)
        required = [parameter.name for parameter in form if parameter.required]
        schema: dict[str, object] = {"type": "object", "properties": properties}
        if required:
            schema["required"] = required
        declared_types = [text for text in self._media_types(operation, "consumes") if text in _FORMS]
        for media_type in declared_types or [_FORMS[bool(files)]]:
            yield Part(
                location=Location.BODY,
                schema=schema,
                required=bool(required),
                media_type=media_type,
                pointer=child(operation.pointer, "parameters"),
            )

    def _media_types(self, operation: Place, key: str) -> list[str]:
        listed = operation.node.get(key, self.root.get(key))
        return [text for text in listed if isinstance(text, str)] if is_list(listed) else []


def read_swagger(root: dict[str, object], digest: str, marks: Container[Direction]) -> Contracts:
    """Return the contracts of a Swagger document. `marks` are the directions that it leaves something out of."""
    if root.get("swagger") not in ("2.0", 2):
        fail((None, "/swagger"), "this version cannot be read: 2.0 can")
    if "paths" not in root:
        fail((None, ""), "a Swagger document has `paths`")
    # "MUST NOT be sent as part of the request" (Schema Object, readOnly); of responses nothing as strict is said.
    registries = [
        LegacySchemas(
            root,
            uri,
            Marks(root=root, direction=way, siblings=False),
            forbids=way is Direction.REQUEST,
        )
        for way, uri in zip(directions(marks), registry_uris(digest), strict=False)
    ]
    return SwaggerOperations(root, digest, registries[0], registries[-1]).read()
