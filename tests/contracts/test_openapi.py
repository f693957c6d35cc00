from __future__ import annotations

import copy
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema_rs import Registry, validator_for

from theodolite.contracts import read
from theodolite.contracts.document import find, is_object, pointer_of
from theodolite.core.contract import Contract, Contracts, Location, Part
from theodolite.core.errors import ConfigError

VERSIONS = ("3.0.3", "3.1.0", "3.2.0")
NEWER = VERSIONS[1:]
every_version = pytest.mark.parametrize("version", VERSIONS)
newer_versions = pytest.mark.parametrize("version", NEWER)


def contract(contracts: Contracts, name: str) -> Contract:
    found = contracts.find(name)
    assert found is not None
    return found


def parts(contracts: Contracts, name: str, location: Location) -> list[Part]:
    of = contract(contracts, name)
    return [part for part in (*of.parts, *of.results) if part.location is location]


def accepts(contracts: Contracts, part: Part, value: object) -> bool:
    registry = Registry([(uri, held) for uri, held in contracts.documents.items() if is_object(held)])
    if isinstance(part.schema, bool):
        return part.schema
    return validator_for(dict(part.schema), registry=registry, offline=True).is_valid(value)


def described(schema: object, *more: Mapping[str, object], version: str = "3.0.3") -> dict[str, object]:
    """Return a document with one operation, `put`, that takes and returns the schema."""
    content: dict[str, object] = {"application/json": {"schema": schema}}
    operation = {
        "operationId": "put",
        "requestBody": {"required": True, "content": content},
        "responses": {"200": {"description": "", "content": content}},
    }
    return {"openapi": version, "info": {"title": "", "version": ""}, "paths": {"/x": {"put": operation}}} | {
        key: value for entry in more for key, value in entry.items()
    }


def takes(document: Mapping[str, object], value: object, location: Location = Location.BODY) -> bool:
    contracts = read(document)
    return accepts(contracts, parts(contracts, "put", location)[0], value)


def components(**schemas: object) -> dict[str, object]:
    return {"components": {"schemas": schemas}}


# ---- what changes from 3.0


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "string", "nullable": True}, [None, "a"], [1]),
        ({"type": "string", "nullable": False}, ["a"], [None]),
        ({"nullable": True}, [None, 1, "a"], []),
        ({"type": "string", "nullable": True, "enum": ["a", None]}, [None, "a"], ["b", 1]),
        ({"type": "string", "nullable": True, "enum": ["a"]}, ["a"], [None, "b"]),
        ({"minimum": 3, "exclusiveMinimum": True}, [4, 3.5], [3, 2]),
        ({"minimum": 3, "exclusiveMinimum": False}, [3], [2]),
        ({"maximum": 3, "exclusiveMaximum": True}, [2], [3]),
        ({"exclusiveMaximum": True}, [10**9], []),
        ({"type": "integer", "const": 1}, [1, 2], ["1"]),
        ({"type": "object", "patternProperties": {"^a": {"type": "string"}}}, [{"ab": 1}], [1]),
        ({"additionalProperties": False, "properties": {"a": {}}}, [{"a": 1}], [{"b": 1}]),
        ({"additionalProperties": {"type": "string", "nullable": True}}, [{"a": None}], [{"b": 1}]),
        ({"not": {"type": "string", "nullable": True}}, [1], [None, "a"]),
        ({"type": "array", "items": {"type": "integer", "nullable": True}}, [[1, None]], [["a"]]),
        ({"oneOf": [{"type": "string", "nullable": True}, {"type": "integer"}]}, ["a", 1, None], [1.5]),
    ],
)
def test_a_schema_of_3_0_means_what_3_0_says(schema: object, good: list[object], bad: list[object]) -> None:
    document = described(schema)
    assert [value for value in good if not takes(document, value)] == []
    assert [value for value in bad if takes(document, value)] == []


def test_nullable_is_nothing_in_3_1() -> None:
    assert not takes(described({"type": "string", "nullable": True}, version="3.1.0"), None)


def test_beside_a_ref_nothing_counts_in_3_0_and_everything_in_3_1() -> None:
    schema: dict[str, object] = {"$ref": "#/components/schemas/Name", "maxLength": 1}
    more = components(Name={"type": "string"})
    assert takes(described(schema, more), "ab")
    assert not takes(described(schema, more, version="3.1.0"), "ab")


def test_a_keyword_of_another_version_is_a_gap_that_says_where() -> None:
    schema = "content/application~1json/schema/const"
    assert {gap.pointer for gap in read(described({"const": 1})).gaps} == {
        f"/paths/~1x/put/requestBody/{schema}",
        f"/paths/~1x/put/responses/200/{schema}",
    }


@every_version
@given(name=st.sampled_from(["nullable", "$ref", "required", "type", "properties", "enum", "readOnly", "$id", "items"]))
def test_a_property_may_have_the_name_of_a_keyword(version: str, name: str) -> None:
    schema: dict[str, object] = {"type": "object", "properties": {name: {"type": "integer"}}, "required": [name]}
    document = described(schema, version=version)
    assert takes(document, {name: 1})
    assert not takes(document, {name: "1"})
    assert not takes(document, {})


@every_version
@given(
    data=st.sampled_from([
        {"nullable": True, "type": "string"}, {"$ref": "#/nowhere"}, {"$id": "::", "required": True},
        [{"exclusiveMinimum": True, "minimum": 1}],
    ])
)  # fmt: skip
def test_data_is_not_rewritten(version: str, data: object) -> None:
    schema: dict[str, object] = {"enum": [data], "default": data, "example": data, "x-more": data}
    document = described(schema, version=version)
    assert takes(document, data)
    assert not takes(document, 1)


# ---- directions


@every_version
def test_what_only_one_side_sends_is_not_required_of_the_other(version: str) -> None:
    schema: dict[str, object] = {
        "type": "object",
        "required": ["id", "secret", "name"],
        "properties": {"id": {"readOnly": True}, "secret": {"writeOnly": True}, "name": {}},
    }
    document = described({"$ref": "#/components/schemas/Pet"}, components(Pet=schema), version=version)
    assert takes(document, {"secret": 1, "name": 1})
    assert not takes(document, {"id": 1, "name": 1})
    assert not takes(document, {"secret": 1, "id": 1})
    assert takes(document, {"id": 1, "name": 1}, Location.RESULT)
    assert not takes(document, {"secret": 1, "name": 1}, Location.RESULT)


@pytest.mark.parametrize(
    "schema",
    [
        {"required": ["id"], "allOf": [{"$ref": "#/components/schemas/Base"}]},
        {"allOf": [{"$ref": "#/components/schemas/Base"}, {"required": ["id"]}]},
        {"allOf": [{"$ref": "#/components/schemas/Base"}, {"allOf": [{"required": ["id"]}]}]},
        {"properties": {"id": {"$ref": "#/components/schemas/Id"}}, "required": ["id"]},
        {"properties": {"id": {"allOf": [{"$ref": "#/components/schemas/Id"}]}}, "required": ["id"]},
        {"properties": {"a": {"properties": {"id": {"readOnly": True}}, "required": ["id"]}}},
    ],
)
def test_a_mark_counts_through_references_and_all_of(schema: object) -> None:
    more = components(Base={"properties": {"id": {"type": "integer", "readOnly": True}}}, Id={"readOnly": True})
    document = described(schema, more)
    assert takes(document, {"a": {}})
    if schema != {"properties": {"a": {"properties": {"id": {"readOnly": True}}, "required": ["id"]}}}:
        assert not takes(document, {}, Location.RESULT)


def test_directions_need_two_documents_only_where_something_is_marked() -> None:
    assert len(read(described({"type": "object"})).documents) == 1
    assert len(read(described({"properties": {"a": {"readOnly": True}}})).documents) == 2


def test_a_loop_of_references_is_no_loop_for_us() -> None:
    tree: dict[str, object] = {
        "required": ["id"],
        "allOf": [{"$ref": "#/components/schemas/Tree"}],
        "properties": {"id": {"readOnly": True}},
    }
    document = described({"type": "integer"}, components(Tree=tree))
    assert takes(document, 1)


# ---- operations


def test_an_operation_has_the_name_it_gives_itself_and_that_of_its_method_and_path() -> None:
    document: dict[str, object] = {
        "openapi": "3.0.3",
        "paths": {"/a/{b}": {"get": {"operationId": "readA"}, "post": {}, "x-other": {"operationId": "no"}}, "x-y": {}},
    }
    contracts = read(document)
    assert set(contracts.contracts) == {"readA", "POST /a/{b}"}
    assert contract(contracts, "GET /a/{b}").name == "readA"
    assert contract(contracts, "readA").pointer == "/paths/~1a~1{b}/get"


def test_an_operation_replaces_the_parameters_of_its_path_by_name_and_place() -> None:
    document: dict[str, object] = {
        "openapi": "3.0.3",
        "paths": {
            "/a/{id}": {
                "parameters": [
                    {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}},
                    {"name": "X-Trace", "in": "header", "schema": {"type": "string"}},
                    {"$ref": "#/components/parameters/page"},
                ],
                "get": {
                    "operationId": "get",
                    "parameters": [
                        {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}},
                        {"name": "id", "in": "query", "schema": {"type": "boolean"}},
                        {"name": "x-trace", "in": "header", "required": True, "schema": {"type": "integer"}},
                    ],
                },
            }
        },
        "components": {"parameters": {"page": {"name": "page", "in": "query", "schema": {"minimum": 1}}}},
    }
    contracts = read(document)
    found = {(part.location, part.name): part for part in contract(contracts, "get").parts}
    assert set(found) == {
        (Location.PATH, "id"), (Location.QUERY, "id"), (Location.HEADER, "x-trace"), (Location.QUERY, "page"),
    }  # fmt: skip
    assert accepts(contracts, found[Location.PATH, "id"], 1)
    assert not accepts(contracts, found[Location.PATH, "id"], "a")
    assert not accepts(contracts, found[Location.QUERY, "page"], 0)
    assert found[Location.HEADER, "x-trace"].required
    assert found[Location.QUERY, "page"].pointer == "/components/parameters/page"


def test_a_parameter_may_be_described_by_its_content() -> None:
    parameter: dict[str, object] = {
        "name": "filter",
        "in": "query",
        "content": {"application/json": {"schema": {"type": "object", "required": ["a"]}}},
    }
    contracts = read({"openapi": "3.0.3", "paths": {"/a": {"get": {"operationId": "put", "parameters": [parameter]}}}})
    (part,) = contract(contracts, "put").parts
    assert part.media_type == "application/json"
    assert accepts(contracts, part, {"a": 1})
    assert not accepts(contracts, part, {})


def test_headers_that_are_described_elsewhere_are_no_parameters() -> None:
    parameters: list[object] = [
        {"name": name, "in": "header", "schema": {}} for name in ("Accept", "content-type", "Authorization")
    ]
    contracts = read({"openapi": "3.0.3", "paths": {"/a": {"get": {"parameters": parameters}}}})
    assert contract(contracts, "GET /a").parts == ()


@pytest.mark.parametrize(
    ("place", "more", "style", "explode"),
    [
        ("query", {}, "form", True),
        ("path", {}, "simple", False),
        ("header", {}, "simple", False),
        ("cookie", {}, "form", True),
        ("query", {"style": "deepObject", "explode": True}, "deepObject", True),
        ("query", {"style": "pipeDelimited"}, "pipeDelimited", False),
        ("query", {"explode": False}, "form", False),
    ],
)
def test_styles_have_the_defaults_of_the_specification(
    place: str, more: dict[str, object], style: str, *, explode: bool
) -> None:
    parameter: dict[str, object] = {"name": "a", "in": place, "schema": {}, **more}
    contracts = read({"openapi": "3.0.3", "paths": {"/{a}": {"get": {"parameters": [parameter]}}}})
    (part,) = contract(contracts, "GET /{a}").parts
    assert (part.style, part.explode) == (style, explode)


def test_an_empty_value_is_allowed_where_the_query_says_so() -> None:
    parameter: dict[str, object] = {"name": "a", "in": "query", "allowEmptyValue": True, "schema": {"type": "integer"}}
    contracts = read({"openapi": "3.0.3", "paths": {"/a": {"get": {"parameters": [parameter]}}}})
    (part,) = contract(contracts, "GET /a").parts
    assert accepts(contracts, part, "")
    assert accepts(contracts, part, 3)
    assert not accepts(contracts, part, "3")


@every_version
def test_bodies_responses_and_path_items_may_be_references(version: str) -> None:
    content: dict[str, object] = {"application/json": {"schema": {"type": "integer"}}}
    document: dict[str, object] = {
        "openapi": version,
        "paths": {"/a": {"$ref": "#/components/x-items/a"}},
        "components": {
            "x-items": {
                "a": {
                    "post": {
                        "operationId": "put",
                        "requestBody": {"$ref": "#/components/requestBodies/other"},
                        "responses": {"default": {"$ref": "#/components/responses/r"}},
                    }
                }
            },
            "requestBodies": {"other": {"$ref": "#/components/requestBodies/b"}, "b": {"content": content}},
            "responses": {"r": {"description": "", "content": content}},
        },
    }
    assert takes(document, 1)
    assert not takes(document, "1")
    assert not takes(document, "1", Location.RESULT)
    assert contract(read(document), "put").pointer == "/paths/~1a/post"
    assert contract(read(document), "put").results[0].status == "default"


@newer_versions
def test_webhooks_are_operations_and_paths_may_be_absent(version: str) -> None:
    content: dict[str, object] = {"application/json": {"schema": {"type": "integer"}}}
    contracts = read({"openapi": version, "webhooks": {"new": {"post": {"requestBody": {"content": content}}}}})
    assert list(contracts.contracts) == ["POST new"]
    assert contract(read({"openapi": version, "components": {}, "paths": {"/a": {"get": {}}}}), "GET /a").parts == ()
    assert read({"openapi": version, "components": {}}).contracts == {}


def test_3_2_has_query_and_any_other_method() -> None:
    document: dict[str, object] = {
        "openapi": "3.2.0",
        "paths": {
            "/a": {
                "query": {"operationId": "ask"},
                "additionalOperations": {"COPY": {"operationId": "copy"}},
            }
        },
    }
    contracts = read(document)
    assert contract(contracts, "QUERY /a").name == "ask"
    assert contract(contracts, "COPY /a").pointer == "/paths/~1a/additionalOperations/COPY"
    assert read({**document, "openapi": "3.1.0"}).contracts == {}


def test_3_2_may_refer_to_itself_by_its_address() -> None:
    document = described(
        {"$ref": "https://example.com/api#/components/schemas/A"},
        {"$self": "https://example.com/api"},
        components(A={"type": "integer"}),
        version="3.2.0",
    )
    assert takes(document, 1)
    assert not takes(document, "1")


def test_3_2_may_refer_to_other_objects_by_its_address_too() -> None:
    address = "https://example.com/api"
    parameter: dict[str, object] = {"$ref": f"{address}#/components/parameters/q"}
    document: dict[str, object] = {
        "openapi": "3.2.0",
        "$self": address,
        "paths": {"/a": {"get": {"parameters": [parameter]}}},
        "components": {
            "parameters": {
                "q": {"name": "q", "in": "querystring", "content": {"application/json": {"schema": {"type": "object"}}}}
            }
        },
    }
    contracts = read(document)
    (part,) = contract(contracts, "GET /a").parts
    assert (part.location, part.name) == (Location.QUERY, "q")
    assert [gap.pointer for gap in contracts.gaps] == ["/components/parameters/q"]
    with pytest.raises(ConfigError, match=r"^/.self: "):
        read({**document, "$self": f"{address}#a"})
    with pytest.raises(ConfigError, match="leads out of the document"):
        read({**document, "openapi": "3.1.0"})


def test_what_is_not_checked_is_a_gap() -> None:
    document: dict[str, object] = {
        "openapi": "3.0.3",
        "paths": {
            "/{a}/{b}": {
                "post": {
                    "parameters": [{"name": "b", "in": "path"}, {"name": "c", "in": "path", "schema": {}}],
                    "requestBody": {"content": {"text/plain": {}}},
                    "callbacks": {"done": {}},
                }
            }
        },
    }
    gaps = read(document).gaps
    assert {gap.pointer for gap in gaps} == {
        "/paths/~1{a}~1{b}/post",
        "/paths/~1{a}~1{b}/post/parameters/0",
        "/paths/~1{a}~1{b}/post/requestBody/content/text~1plain",
        "/paths/~1{a}~1{b}/post/callbacks",
    }
    assert {gap.contract for gap in gaps} == {"POST /{a}/{b}"}
    assert len(gaps) == 5


# ---- what is wrong with a document


@every_version
@pytest.mark.parametrize(
    ("reference", "says"),
    [
        ("https://example.com/a.json#/A", "leads out of the document"),
        ("other.yaml#/A", "leads out of the document"),
        ("file:///etc/passwd", "leads out of the document"),
        ("Pet", "leads out of the document"),
        ("#/components/schemas/None", "leads nowhere"),
        ("#/info/title", "no schema"),
        ("#nowhere", "nowhere|begin it with"),
        ("#", "begin it with|no schema"),
        (3, "is text"),
    ],
)
def test_a_reference_that_cannot_be_followed_is_an_error_with_its_pointer(
    version: str, reference: object, says: str
) -> None:
    # Nothing leads to it, and it is an error all the same.
    document = described({}, components(A={"properties": {"a/b": {"$ref": reference}}}), version=version)
    with pytest.raises(ConfigError, match=says) as error:
        read(document)
    assert "/components/schemas/A/properties/a~1b" in str(error.value)


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"/paths": []}, "/paths"),
        ({"/paths/~1x/put": 3}, "/paths/~1x/put"),
        ({"/paths/~1x/put/operationId": 3}, "/paths/~1x/put/operationId"),
        ({"/paths/~1x/put/operationId": ""}, "/paths/~1x/put/operationId"),
        ({"/paths/~1x/put/parameters": {}}, "/paths/~1x/put/parameters"),
        ({"/paths/~1x/put/parameters": [{"in": "query"}]}, "/paths/~1x/put/parameters/0"),
        ({"/paths/~1x/put/parameters": [{"name": "a", "in": "body"}]}, "/paths/~1x/put/parameters/0"),
        ({"/paths/~1x/put/requestBody": {"$ref": "#/a"}}, "/paths/~1x/put/requestBody"),
        ({"/paths/~1x/put/requestBody": {"$ref": "x.json"}}, "/paths/~1x/put/requestBody"),
        ({"/paths/~1x/put/requestBody": {"$ref": "#/paths/~1x/put/requestBody"}}, "/paths/~1x/put/requestBody"),
        ({"/paths/~1x/put/requestBody/content": []}, "/paths/~1x/put/requestBody/content"),
        ({"/paths/~1x/put/responses/200": None}, "/paths/~1x/put/responses/200"),
        ({"/paths/y": {}}, "/paths/y"),
        ({"/components": {"schemas": {"A": 3}}}, "/components/schemas/A"),
        ({"/components": {"schemas": {"A": {"type": "strng"}}}}, "/components/schemas/A/type"),
        ({"/components": {"schemas": {"A": {"properties": []}}}}, "/components/schemas/A/properties"),
        ({"/components": {"schemas": {"A": {"allOf": {}}}}}, "/components/schemas/A/allOf"),
        ({"/components": {"schemas": {"A": {"required": True}}}}, "/components/schemas/A/required"),
        ({"/components": {"schemas": []}}, "/components/schemas"),
        ({"/openapi": "4.0.0"}, "/openapi"),
        ({"/openapi": "3.10.0"}, "/openapi"),
        ({"/openapi": 3}, "/openapi"),
    ],
)
def test_what_is_wrong_with_a_document_is_said_with_its_pointer(change: dict[str, object], pointer: str) -> None:
    document: dict[str, object] = copy.deepcopy(described({}))
    for where, value in change.items():
        above, _, key = where.rpartition("/")
        parent = find(document, above)
        assert isinstance(parent, dict)
        parent[key] = value
    with pytest.raises(ConfigError) as error:
        read(document)
    assert str(error.value).startswith(f"{pointer}: ")


def test_two_operations_of_one_name_are_an_error_with_both_pointers() -> None:
    paths: dict[str, object] = {"/a": {"get": {"operationId": "same"}}, "/b": {"post": {"operationId": "same"}}}
    with pytest.raises(ConfigError, match="'same'") as error:
        read({"openapi": "3.0.3", "paths": paths})
    assert "/paths/~1a/get" in str(error.value)
    assert "/paths/~1b/post" in str(error.value)


def test_a_name_may_not_be_the_method_and_path_of_another() -> None:
    paths: dict[str, object] = {"/a": {"get": {"operationId": "GET /b"}}, "/b": {"get": {"operationId": "x"}}}
    with pytest.raises(ConfigError, match="GET /b"):
        read({"openapi": "3.0.3", "paths": paths})


def test_a_3_0_document_has_paths() -> None:
    with pytest.raises(ConfigError, match="paths"):
        read({"openapi": "3.0.3", "components": {}})


# ---- JSON Schema in 3.1 and 3.2


@newer_versions
def test_anchors_and_dynamic_references_work(version: str) -> None:
    more = components(
        Node={"$dynamicAnchor": "node", "properties": {"next": {"$dynamicRef": "#node"}, "v": {"type": "integer"}}},
        Named={"$anchor": "here", "type": "integer"},
    )
    document = described({"$ref": "#/components/schemas/Node"}, more, version=version)
    assert takes(document, {"next": {"next": {"v": 1}}})
    assert not takes(document, {"next": {"next": {"v": "1"}}})
    assert not takes(described({"$ref": "#here"}, more, version=version), "1")
    with pytest.raises(ConfigError, match="anchor 'away'"):
        read(described({"$ref": "#away"}, more, version=version))


@newer_versions
def test_an_anchor_given_twice_is_an_error_with_both_pointers(version: str) -> None:
    more = components(A={"$anchor": "x"}, B={"items": {"$anchor": "x"}})
    with pytest.raises(ConfigError, match=r"/components/schemas/B/items: .* /components/schemas/A"):
        read(described({}, more, version=version))


@newer_versions
@pytest.mark.parametrize("name", ["https://example.com/named", "named", "urn:example:named"])
def test_a_schema_with_a_name_of_its_own_is_what_its_references_are_relative_to(version: str, name: str) -> None:
    named: dict[str, object] = {
        "$id": name,
        "$defs": {"q": {"type": "string"}},
        "properties": {"y": {"$ref": "#/$defs/q"}},
    }
    more = components(C=named, D={"$ref": "#/components/schemas/C"}, E={"$ref": name})
    for reference in ("C", "D", "E"):
        document = described({"$ref": f"#/components/schemas/{reference}"}, more, version=version)
        assert takes(document, {"y": "a"})
        assert not takes(document, {"y": 1})


@newer_versions
def test_a_reference_into_a_named_schema_goes_by_its_name(version: str) -> None:
    more = components(C={"$id": "https://example.com/c", "$defs": {"q": {"type": "string"}}})
    good = described({"$ref": "https://example.com/c#/$defs/q"}, more, version=version)
    assert takes(good, "a")
    assert not takes(good, 1)
    with pytest.raises(ConfigError, match="name of its own"):
        read(described({"$ref": "#/components/schemas/C/$defs/q"}, more, version=version))


@newer_versions
def test_a_schema_of_another_draft_is_checked_as_of_that_draft(version: str) -> None:
    old: dict[str, object] = {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "minimum": 3,
        "exclusiveMinimum": True,
        "definitions": {"back": {"$ref": "#/components/schemas/New"}, "own": {"$ref": "#/components/schemas/Old"}},
        "properties": {"a": {"$ref": "#/components/schemas/Old/definitions/back"}},
    }
    more = components(Old=old, New={"prefixItems": [{"$ref": "#/components/schemas/Old"}]})
    document = described({"$ref": "#/components/schemas/New"}, more, version=version)
    assert takes(document, [4])
    assert not takes(document, [3])
    document = described({"$ref": "#/components/schemas/Old"}, more, version=version)
    assert takes(document, {"a": [4]})
    assert not takes(document, {"a": [3]})


@newer_versions
def test_the_document_may_choose_the_draft(version: str) -> None:
    schema: dict[str, object] = {"items": [{"type": "string"}], "additionalItems": False}
    dialect = "http://json-schema.org/draft-07/schema#"
    document = described(schema, {"jsonSchemaDialect": dialect}, version=version)
    assert takes(document, ["a"])
    assert not takes(document, ["a", "b"])
    beside = {"$ref": "#/components/schemas/A", "maxLength": 1}
    more = components(A={"type": "string"})
    assert takes(described(beside, {"jsonSchemaDialect": dialect}, more, version=version), "ab")
    with pytest.raises(ConfigError, match="/jsonSchemaDialect"):
        read(described(schema, {"jsonSchemaDialect": "https://example.com/mine"}, version=version))


@newer_versions
def test_the_dialect_of_openapi_is_2020_12(version: str) -> None:
    dialect = "https://spec.openapis.org/oas/3.1/dialect/base"
    schema: dict[str, object] = {"$schema": dialect, "prefixItems": [{"type": "string"}]}
    document = described(schema, {"jsonSchemaDialect": dialect}, version=version)
    assert takes(document, ["a"])
    assert not takes(document, [1])


@every_version
def test_a_reference_may_lead_to_a_place_that_holds_no_schemas(version: str) -> None:
    odd: dict[str, object] = {
        "x-parts": {"a b": {"type": "string"}},
        "components": {"schemas": {"A": {"x-in": {"B": {"type": "integer"}}}}},
    }
    assert not takes(described({"$ref": "#/x-parts/a b"}, odd, version=version), 1)
    assert not takes(described({"$ref": "#/x-parts/a%20b"}, odd, version=version), 1)
    document = described({"$ref": "#/components/schemas/A/x-in/B"}, odd, version=version)
    assert takes(document, 1)
    assert not takes(document, "1")


@every_version
def test_a_part_that_is_met_before_its_whole_stays(version: str) -> None:
    schemas = {
        "A": {"x-in": {"B": {"type": "integer"}}, "allOf": [{"x-in": {"C": {"type": "boolean"}}}], "type": "object"},
        "Marked": {"properties": {"m": {"readOnly": True}}},
    }
    schema: dict[str, object] = {
        "type": "object",
        "properties": {
            "b": {"$ref": "#/components/schemas/A/x-in/B"},
            "c": {"$ref": "#/components/schemas/A/allOf/0/x-in/C"},
            "a": {"$ref": "#/components/schemas/A"},
            "t": {"$ref": "#/components/schemas/A/x-in/B"},
        },
    }
    document = described(schema, components(**schemas), version=version)
    for location in (Location.BODY, Location.RESULT):
        assert takes(document, {"a": {}, "b": 1, "c": True, "t": 1}, location)
        for wrong in ({"a": 1}, {"b": "1"}, {"c": 1}, {"t": True}):
            assert not takes(document, wrong, location)


@given(name=st.text(min_size=1, max_size=6).filter(lambda name: not name.startswith("x-")))
def test_any_name_may_stand_in_a_pointer(name: str) -> None:
    path = f"/{name}"
    schema: dict[str, object] = {"type": "object", "properties": {name: {"type": "integer"}}}
    document: dict[str, object] = {
        "openapi": "3.0.3",
        "paths": {path: {"post": {"requestBody": {"content": {name: {"schema": schema}}}}}},
    }
    contracts = read(document)
    (part,) = contract(contracts, f"POST {path}").parts
    assert not accepts(contracts, part, {name: "1"})
    assert accepts(contracts, part, {name: 1})
    assert find(document, part.pointer) == schema
    assert is_object(part.schema)
    uri, _, rest = str(part.schema["$ref"]).partition("#")
    assert find(contracts.documents[uri], pointer_of(rest)) == schema
