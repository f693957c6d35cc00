from __future__ import annotations

import pytest
from jsonschema_rs import Registry, validator_for

from theodolite.contracts import read
from theodolite.contracts.document import is_object
from theodolite.core.contract import Contract, Contracts, Location, Origin, Part
from theodolite.core.errors import ConfigError


def contract(contracts: Contracts, name: str) -> Contract:
    found = contracts.find(name)
    assert found is not None
    return found


def accepts(contracts: Contracts, part: Part, value: object) -> bool:
    registry = Registry([(uri, held) for uri, held in contracts.documents.items() if is_object(held)])
    assert is_object(part.schema)
    return validator_for(dict(part.schema), registry=registry, offline=True).is_valid(value)


def described(operation: dict[str, object], **more: object) -> dict[str, object]:
    return {"swagger": "2.0", "info": {}, "paths": {"/x/{id}": {"post": operation}}, **more}


def body(schema: object) -> dict[str, object]:
    return {"parameters": [{"name": "pet", "in": "body", "required": True, "schema": schema}]}


def test_a_body_parameter_is_the_body_in_each_media_type() -> None:
    definitions: dict[str, object] = {
        "Pet": {"type": "object", "required": ["id", "name"], "properties": {"id": {"readOnly": True}}}
    }
    document = described(body({"$ref": "#/definitions/Pet"}), definitions=definitions, consumes=["a/b", "c/d"])
    contracts = read(document)
    first, second = contract(contracts, "POST /x/{id}").parts
    assert (first.media_type, second.media_type) == ("a/b", "c/d")
    assert first.location is Location.BODY
    assert first.required
    assert contract(contracts, "POST /x/{id}").origin is Origin.SWAGGER
    assert accepts(contracts, first, {"name": 1})
    assert not accepts(contracts, first, {"id": 1})


def test_the_operation_says_its_media_types_before_the_document_does() -> None:
    operation: dict[str, object] = {
        **body({"type": "string"}),
        "consumes": ["e/f"],
        "responses": {"200": {"schema": {"type": "integer"}}, "204": {}, "x-more": 3},
    }
    contracts = read(described(operation, consumes=["a/b"], produces=["g/h"]))
    (part,) = contract(contracts, "POST /x/{id}").parts
    (result,) = contract(contracts, "POST /x/{id}").results
    assert (part.media_type, result.media_type, result.status) == ("e/f", "g/h", "200")
    assert not accepts(contracts, result, "a")


def test_without_media_types_any_counts() -> None:
    (part,) = contract(read(described(body({}))), "POST /x/{id}").parts
    assert part.media_type == "*/*"


@pytest.mark.parametrize(
    ("parameter", "good", "bad"),
    [
        ({"type": "integer", "minimum": 3, "exclusiveMinimum": True}, [4], [3, "4"]),
        ({"type": "string", "enum": ["a"]}, ["a"], ["b"]),
        ({"type": "array", "items": {"type": "array", "items": {"type": "integer"}}}, [[[1]]], [[1], 1]),
        ({"type": "string", "required": True, "description": "", "x-a": 1}, ["a"], [1]),
    ],
)
def test_a_parameter_has_its_schema_in_itself(
    parameter: dict[str, object], good: list[object], bad: list[object]
) -> None:
    contracts = read(described({"parameters": [{"name": "a", "in": "query", **parameter}]}))
    (part,) = contract(contracts, "POST /x/{id}").parts
    assert [value for value in good if not accepts(contracts, part, value)] == []
    assert [value for value in bad if accepts(contracts, part, value)] == []


def test_the_items_of_a_parameter_may_be_shared_though_swagger_does_not_say_so() -> None:
    parameter = {"name": "a", "in": "query", "type": "array", "items": {"$ref": "#/definitions/A"}}
    contracts = read(described({"parameters": [parameter]}, definitions={"A": {"type": "integer"}}))
    (part,) = contract(contracts, "POST /x/{id}").parts
    assert accepts(contracts, part, [1])
    assert not accepts(contracts, part, ["1"])


def test_an_empty_value_is_allowed_where_the_query_says_so() -> None:
    parameter = {"name": "a", "in": "query", "type": "integer", "allowEmptyValue": True}
    contracts = read(described({"parameters": [parameter]}))
    (part,) = contract(contracts, "POST /x/{id}").parts
    assert accepts(contracts, part, "")
    assert not accepts(contracts, part, "1")


def test_a_body_without_schema_is_a_gap() -> None:
    contracts = read(described({"parameters": [{"name": "b", "in": "body"}]}))
    assert contract(contracts, "POST /x/{id}").parts[0].schema is True
    assert any(gap.reason == "the body has no schema" for gap in contracts.gaps)


@pytest.mark.parametrize(
    ("kind", "style", "explode"),
    [
        ("csv", "form", False),
        ("ssv", "spaceDelimited", False),
        ("tsv", "tabDelimited", False),
        ("pipes", "pipeDelimited", False),
        ("multi", "form", True),
    ],
)
def test_formats_of_collections_are_styles(kind: str, style: str, *, explode: bool) -> None:
    parameter: dict[str, object] = {"name": "a", "in": "query", "type": "array", "items": {}, "collectionFormat": kind}
    (part,) = contract(read(described({"parameters": [parameter]})), "POST /x/{id}").parts
    assert (part.style, part.explode) == (style, explode)


def test_fields_of_a_form_are_one_body() -> None:
    fields: list[object] = [
        {"name": "a", "in": "formData", "type": "integer", "required": True},
        {"name": "b", "in": "formData", "type": "string"},
    ]
    contracts = read(described({"parameters": fields, "consumes": ["application/json", "multipart/form-data"]}))
    of = contract(contracts, "POST /x/{id}")
    (part,) = of.parts
    assert (part.media_type, part.required, of.fields) == ("multipart/form-data", True, frozenset({"a", "b"}))
    assert accepts(contracts, part, {"a": 1})
    assert not accepts(contracts, part, {"b": "x"})
    assert not accepts(contracts, part, {"a": 1, "b": 2})


def test_a_form_without_media_type_is_urlencoded_and_with_a_file_multipart() -> None:
    field: dict[str, object] = {"name": "a", "in": "formData", "type": "string"}
    file: dict[str, object] = {"name": "f", "in": "formData", "type": "file"}
    (part,) = contract(read(described({"parameters": [field]})), "POST /x/{id}").parts
    assert part.media_type == "application/x-www-form-urlencoded"
    contracts = read(described({"parameters": [field, file]}))
    (part,) = contract(contracts, "POST /x/{id}").parts
    assert part.media_type == "multipart/form-data"
    assert accepts(contracts, part, {"f": "anything"})
    assert [gap.pointer for gap in contracts.gaps if "file" in gap.reason] == ["/paths/~1x~1{id}/post/parameters/1"]


def test_a_file_may_come_back() -> None:
    contracts = read(described({"responses": {"200": {"schema": {"type": "file"}}}}))
    (result,) = contract(contracts, "POST /x/{id}").results
    assert accepts(contracts, result, "anything")
    assert any(gap.pointer.endswith("/responses/200/schema") for gap in contracts.gaps)


def test_parameters_and_responses_may_be_shared() -> None:
    document = described(
        {"parameters": [{"$ref": "#/parameters/id"}], "responses": {"404": {"$ref": "#/responses/missing"}}},
        parameters={"id": {"name": "id", "in": "path", "required": True, "type": "integer"}},
        responses={"missing": {"schema": {"type": "string"}}},
    )
    contracts = read(document)
    (part,) = contract(contracts, "POST /x/{id}").parts
    assert (part.name, part.location, part.pointer) == ("id", Location.PATH, "/parameters/id")
    assert not accepts(contracts, contract(contracts, "POST /x/{id}").results[0], 3)


@pytest.mark.parametrize(
    ("document", "pointer"),
    [
        ({"swagger": "1.2", "paths": {}}, "/swagger"),
        ({"swagger": "2.0"}, "the root"),
        (
            described({"parameters": [{"name": "a", "in": "cookie", "type": "string"}]}),
            "/paths/~1x~1{id}/post/parameters/0",
        ),
        (described({}, definitions={"A": {"$ref": "http://example.com"}}), "/definitions/A"),
        (described({}, definitions=[]), "/definitions"),
    ],
)
def test_what_is_wrong_is_said_with_its_pointer(document: dict[str, object], pointer: str) -> None:
    with pytest.raises(ConfigError) as error:
        read(document)
    assert str(error.value).startswith(f"{pointer}: ")


def test_a_version_that_lost_its_quotes_is_understood() -> None:
    assert set(read({"swagger": 2.0, "paths": {"/a": {"get": {}}}}).contracts) == {"GET /a"}
