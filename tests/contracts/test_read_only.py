"""What a server alone may set: Swagger 2.0 says that it MUST NOT be sent, OpenAPI 3 that it SHOULD NOT."""

from __future__ import annotations

import json

import pytest

from theodolite.contracts import read
from theodolite.contracts.document import is_object
from theodolite.core.contract import Contracts, Kind
from theodolite.detectors.payload.engine import Checker
from theodolite.detectors.payload.repair import Op, Plan, Step, plan

PET: dict[str, object] = {
    "type": "object",
    "required": ["id", "name"],
    "properties": {"id": {"type": "integer", "readOnly": True}, "name": {"type": "string"}, "kid": {"$ref": "#/P"}},
}
WAYS: dict[str, dict[str, object]] = {
    "itself": PET,
    "referred to": {**PET, "properties": {"id": {"$ref": "#/Id"}, "name": {}, "kid": {"$ref": "#/P"}}},
    "member": {"allOf": [PET, {"properties": {"age": {}}}]},
    "in two members": {
        "allOf": [
            {"properties": {"id": {"allOf": [{"$ref": "#/Id"}]}, "kid": {"$ref": "#/P"}}},
            {"properties": {"name": {}}},
        ]
    },
}
SENT = {"id": 1, "name": "Rex"}


def document(version: str, schema: object) -> Contracts:
    place = "definitions" if version == "2.0" else "components/schemas"
    defined = {"P": schema, "Id": {"type": "integer", "readOnly": True}}
    text = json.dumps({"P": defined["P"], "Id": defined["Id"]}).replace('"#/', f'"#/{place}/')
    schemas: object = json.loads(text)
    reference = {"$ref": f"#/{place}/P"}
    answers: dict[str, object] = {"200": {"description": "", "schema": reference}}
    if version == "2.0":
        put: dict[str, object] = {"parameters": [{"name": "pet", "in": "body", "required": True, "schema": reference}]}
        root: dict[str, object] = {"swagger": version, "definitions": schemas}
    else:
        content = {"application/json": {"schema": reference}}
        put = {"requestBody": {"content": content, "required": True}}
        answers = {"200": {"description": "", "content": content}}
        root = {"openapi": version, "components": {"schemas": schemas}}
    return read({**root, "paths": {"/p": {"put": {"operationId": "set", **put, "responses": answers}}}})


@pytest.mark.parametrize("way", WAYS)
def test_swagger_denies_what_is_read_only_wherever_it_stands_and_takes_it_back(way: str) -> None:
    checker = Checker(document("2.0", WAYS[way]))
    deep = {"name": "Ada", "kid": {"name": "Bo", "kid": SENT}}
    for value, where in ((SENT, "/id"), ({**SENT, "id": "x"}, "/id"), (deep, "/kid/kid/id")):
        found = [one for one in checker.check("set", value) if one.denies]
        assert Kind.READ_ONLY_SENT in {one.kind for one in found}
        assert {one.pointer for one in found} == {where}
    assert checker.check("set", {"name": "Rex"}) == ()
    assert checker.check_result("set", SENT, status="200") == ()
    assert not checker.observe("set", SENT)


@pytest.mark.parametrize("version", ["3.0.3", "3.1.0"])
@pytest.mark.parametrize("way", WAYS)
def test_openapi_tells_of_what_is_read_only_and_denies_nothing(way: str, version: str) -> None:
    checker = Checker(document(version, WAYS[way]))
    assert checker.check("set", SENT) == ()
    assert [(one.kind, one.pointer, one.denies) for one in checker.observe("set", SENT)] == [
        (Kind.READ_ONLY_SENT, "/id", False)
    ]


def test_what_was_read_and_is_sent_back_is_repaired_by_leaving_out_what_is_read_only() -> None:
    contracts = document("2.0", PET)
    checker = Checker(contracts)
    offered = plan(
        contracts.contracts["set"],
        contracts.documents,
        {**SENT, "kid": SENT},
        lambda one: not any(found.denies for found in checker.check("set", one)),
    )
    assert offered == Plan((Step(Op.DROP, "/id"), Step(Op.DROP, "/kid/id")))


def test_what_refers_to_the_schema_of_such_a_property_finds_it_as_it_was() -> None:
    """Read-only is relevant only for properties (Swagger 2.0, Schema Object)."""
    schema = {"type": "object", "properties": {"ids": {"type": "array", "items": {"$ref": "#/Id"}}}}
    checker = Checker(document("2.0", schema))
    assert checker.check("set", {"ids": [1]}) == ()
    assert [one.kind for one in checker.check("set", {"ids": ["x"]})] == [Kind.TYPE_MISMATCH]


def test_the_published_schema_is_left_as_it_is_beside_what_is_forbidden() -> None:
    contracts = document("2.0", PET)
    request = contracts.documents[f"urn:theodolite:{contracts.digest}"]
    assert is_object(request)
    assert is_object(definitions := request["definitions"])
    assert is_object(kept := definitions["P"])
    assert is_object(properties := kept["properties"])
    assert properties["id"] == {"type": "integer", "readOnly": True}
    assert kept["allOf"] == [{"properties": {"id": {"readOnly": True, "not": {"readOnly": True}}}}]
