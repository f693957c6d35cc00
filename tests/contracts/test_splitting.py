from __future__ import annotations

from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from theodolite.contracts import Split, read, split
from theodolite.contracts.document import find
from theodolite.core.arguments import is_mapping
from theodolite.core.contract import Contract, Location

WORDS = ("path", "query", "header", "cookie", "body")


def operation(*parameters: str, body: object = None, required: bool = False) -> Contract:
    """Return the contract of an operation with parameters like "path id" and a body that declares these fields."""
    node: dict[str, object] = {
        "operationId": "op",
        "parameters": [
            {"name": name, "in": place, "schema": {}}
            for place, _, name in (parameter.partition(" ") for parameter in parameters)
        ],
    }
    if body is not None:
        node["requestBody"] = {"required": required, "content": {"application/json": {"schema": body}}}
    found = read({"openapi": "3.0.3", "paths": {"/a": {"post": node}}}).find("op")
    assert found is not None
    return found


def fields(*names: str) -> dict[str, object]:
    return {"type": "object", "properties": {name: {} for name in names}}


def told(found: Split) -> dict[str, object]:
    return {f"{given.part.location} {given.part.name}": given.value for given in found.given}


def test_a_tool_gets_its_arguments_as_they_are() -> None:
    contract = read([{"name": "t", "inputSchema": {"type": "object"}}]).contracts["t"]
    for arguments in ({"path": {"a": 1}}, [1], None, "x"):
        (given_,) = split(contract, arguments).given
        assert (given_.value, given_.pointer) == (arguments, "")


def test_flat_names_go_to_their_parameters_and_the_rest_to_the_body() -> None:
    contract = operation("path id", "query page", "header X-Trace", body=fields("name"))
    found = split(contract, {"id": 1, "x-trace": "t", "name": "Rex", "more": 2})
    assert told(found) == {"path id": 1, "header X-Trace": "t"}
    assert found.body == {"name": "Rex", "more": 2}
    assert [part.name for part in found.absent] == ["page"]
    assert found.unknown == ()
    assert [given_.pointer for given_ in found.given] == ["/id", "/x-trace"]
    assert found.where("/name/0") == "/name/0"


def test_names_of_parameters_other_than_headers_have_a_case() -> None:
    found = split(operation("query Id"), {"id": 1})
    assert (found.given, found.unknown) == ((), ("/id",))


def test_a_name_of_path_and_body_goes_to_the_path() -> None:
    contract = operation("path id", body=fields("id", "name"))
    found = split(contract, {"id": 1, "name": "Rex"})
    assert (told(found), found.body) == ({"path id": 1}, {"name": "Rex"})


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        ({"id": 1, "body.id": 2}, "/body.id"),
        ({"id": 1, "id__body": 2}, "/id__body"),
        ({"path.id": 1, "id": 2}, "/id"),
        ({"id__path": 1, "id": 2}, "/id"),
        ({"path": {"id": 1}, "id": 2}, "/id"),
        ({"id": 1, "body": {"id": 2}}, "/body/id"),
        ({"path": {"id": 1}, "body": {"id": 2}}, "/body/id"),
    ],
)
def test_the_body_s_own_is_given_by_its_place_or_beside_the_path_s(arguments: dict[str, object], where: str) -> None:
    found = split(operation("path id", body=fields("id")), arguments)
    assert (told(found), found.body, found.unknown) == ({"path id": 1}, {"id": 2}, ())
    assert found.where("/id") == where


def test_a_name_of_two_places_goes_to_the_first_that_has_none() -> None:
    contract = operation("query id", "path id")
    assert told(split(contract, {"id": 1})) == {"path id": 1}
    assert told(split(contract, {"path.id": 1, "id": 2})) == {"path id": 1, "query id": 2}
    assert told(split(contract, {"query": {"id": 1}, "id": 2})) == {"query id": 1, "path id": 2}


def test_what_is_given_twice_is_told_the_second_time() -> None:
    found = split(operation("path id"), {"path": {"id": 1}, "path.id": 2, "id": 3})
    assert (told(found), found.unknown, found.twice) == ({"path id": 1}, (), ("/path.id", "/id"))
    found = split(operation(body=fields("a")), {"a": 1, "body.a": 2})
    assert (found.body, found.unknown, found.twice, found.where("/a")) == ({"a": 2}, (), ("/a",), "/body.a")


def test_an_entry_of_a_group_that_no_parameter_has_is_unknown() -> None:
    found = split(operation("query page"), {"query": {"page": 1, "pgae": 2}})
    assert (told(found), found.unknown) == ({"query page": 1}, ("/query/pgae",))


def test_a_parameter_may_have_the_name_of_a_place() -> None:
    contract = operation("path path", body=fields("query"))
    found = split(contract, {"path": "a/b", "query": {"select": 1}})
    assert (told(found), found.body) == ({"path path": "a/b"}, {"query": {"select": 1}})
    assert told(split(contract, {"path": {"path": "a/b"}})) == {"path path": "a/b"}
    assert told(split(contract, {"path": {"a": "b"}})) == {"path path": {"a": "b"}}


def test_a_field_may_be_called_body() -> None:
    contract = operation("path id", body=fields("title", "body"))
    assert split(contract, {"id": 1, "title": "t", "body": "b"}).body == {"title": "t", "body": "b"}
    assert split(contract, {"id": 1, "body": "b"}).body == {"body": "b"}
    assert split(contract, {"id": 1, "title": "t", "body": {"x": 1}}).body == {"title": "t", "body": {"x": 1}}
    whole = split(contract, {"id": 1, "body": {"title": "t", "body": "b"}})
    assert (whole.body, whole.where("/title")) == ({"title": "t", "body": "b"}, "/body/title")


@pytest.mark.parametrize("body", [[1, 2], "text", 3, None, {"a": 1}])
def test_a_body_of_any_type_comes_under_body(body: object) -> None:
    found = split(operation("path id", body={}), {"id": 1, "body": body, "more": 2})
    assert (found.body, found.where("/0"), found.unknown) == (body, "/body/0", ("/more",))


def test_arguments_that_are_no_object_are_the_body() -> None:
    found = split(operation(body={"type": "array"}), [1])
    assert (found.body, found.where("/0")) == ([1], "/0")
    assert split(operation("path id"), [1]).unknown == ("",)


def test_a_required_body_of_which_nothing_is_given_is_empty() -> None:
    assert split(operation(body={}, required=True), {}).body == {}
    assert split(operation(body={}), {}).body is UNSET
    assert split(operation(body={}, required=True), None).body is UNSET


def test_without_a_body_what_is_left_belongs_to_nothing() -> None:
    found = split(operation("path id"), {"id": 1, "a/b": 2, 3: 4})
    assert found.unknown == ("/a~1b", "/3")
    assert found.body is UNSET


def test_a_name_with_a_dot_may_be_a_name() -> None:
    contract = operation("query path.id", "path id", body=fields("body.x", "y"))
    found = split(contract, {"path.id": 1, "body.x": 2, "body.y": 3})
    assert told(found) == {"query path.id": 1}
    assert found.body == {"body.x": 2, "y": 3}


def test_fields_are_found_behind_references_and_in_every_branch() -> None:
    schemas: dict[str, object] = {
        "A": {"allOf": [{"$ref": "#/components/schemas/B"}, {"anyOf": [{"properties": {"c": {}}}]}]},
        "B": {"properties": {"b": {}}, "oneOf": [{"$ref": "#/components/schemas/A"}]},
    }
    content: dict[str, object] = {
        "a/b": {"schema": {"$ref": "#/components/schemas/A"}},
        "c/d": {"schema": {"properties": {"d": {}}}},
    }
    document: dict[str, object] = {
        "openapi": "3.0.3",
        "paths": {"/a": {"post": {"requestBody": {"content": content}}}},
        "components": {"schemas": schemas},
    }
    found = read(document).find("POST /a")
    assert found is not None
    assert found.fields == {"b", "c", "d"}


names = st.sampled_from(
    ["id", "a", "A", "x-h", "X-H", "path", "query", "body", "path.id", "body.a", "a__query", "b/c", "~"]
)
values = st.recursive(st.integers(), lambda inner: st.dictionaries(names, inner, max_size=3), max_leaves=4)
parameters = st.lists(
    st.sampled_from(["path id", "query id", "query a", "header X-H", "path path", "cookie a", "query body"]),
    unique=True,
)


@given(
    arguments=st.dictionaries(names, values, max_size=6),
    parameters=parameters,
    declared=st.none() | st.lists(names, max_size=3, unique=True),
    required=st.booleans(),
)
def test_every_argument_goes_to_one_place_and_can_be_found_again(
    arguments: dict[str, object], parameters: list[str], declared: list[str] | None, *, required: bool
) -> None:
    body = None if declared is None else fields(*declared)
    contract = operation(*parameters, body=body, required=required)
    before = repr(arguments)
    found = split(contract, arguments)
    assert repr(arguments) == before
    places = [given_.pointer for given_ in found.given] + [*found.unknown, *found.twice]
    if found.body is not UNSET:
        assert found.base == "/body" or is_mapping(found.body)
        places += [found.base] if found.base else [found.where(_pointer(name)) for name in _keys(found.body)]
        for name in _keys(found.body):
            assert find(arguments, found.where(_pointer(name))) == find(found.body, _pointer(name))
    assert len(places) == len(set(places))
    # What is not named itself is named by all that it holds.
    entries = {
        place
        for name, value in arguments.items()
        for place in (
            [_pointer(name)] if _pointer(name) in places else [_pointer(name) + _pointer(key) for key in _keys(value)]
        )
    }
    assert entries == set(places)
    for given_ in found.given:
        assert find(arguments, given_.pointer) == given_.value
    told_parts = [given_.part for given_ in found.given] + list(found.absent)
    assert sorted((part.location, part.name) for part in told_parts) == sorted(
        (part.location, part.name) for part in contract.parts if part.location is not Location.BODY
    )


@given(
    arguments=st.dictionaries(names | st.integers(), values, max_size=6),
    parameters=parameters,
    declared=st.none() | st.lists(names, max_size=3, unique=True),
    required=st.booleans(),
)
def test_the_fast_way_splits_as_the_rules_do(
    arguments: dict[object, object], parameters: list[str], declared: list[str] | None, *, required: bool
) -> None:
    body = None if declared is None else fields(*declared)
    contract = operation(*parameters, body=body, required=required)
    fast = split(contract, arguments)
    slow = split(contract, MappingProxyType(arguments))
    assert set(map(repr, fast.given)) == set(map(repr, slow.given))
    assert (fast.absent, fast.body, set(fast.unknown)) == (slow.absent, slow.body, set(slow.unknown))
    assert set(fast.twice) == set(slow.twice)
    assert (fast.base, fast.moved) == (slow.base, slow.moved)


def _keys(value: object) -> list[str]:
    return [str(key) for key in value] if is_mapping(value) else []


def _pointer(name: str) -> str:
    return "/" + name.replace("~", "~0").replace("/", "~1")
