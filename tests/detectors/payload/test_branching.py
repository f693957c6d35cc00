"""How many ways a schema has: few in what is published, no more than end in what is hostile, whoever wrote it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest
from jsonschema_rs import Registry

from theodolite.contracts import read
from theodolite.contracts.document import is_object
from theodolite.core.errors import ConfigError
from theodolite.detectors.payload.branching import MAX_WAYS, Branching
from theodolite.detectors.payload.engine import Checker

EMPTY: dict[str, object] = {}
INTEGER: dict[str, object] = {"type": "integer"}
Twice = Callable[[dict[str, object]], dict[str, object]]
TWICE: dict[str, Twice] = {
    "allOf": lambda ref: {"allOf": [ref, ref]},
    "anyOf": lambda ref: {"anyOf": [ref, ref]},
    "oneOf": lambda ref: {"oneOf": [ref, ref]},
    "beside": lambda ref: {**ref, "allOf": [ref]},
    "conditions": lambda ref: {"if": ref, "then": ref, "else": ref},
    "not": lambda ref: {"not": ref, "allOf": [ref]},
    "unevaluated": lambda ref: {"anyOf": [ref], "unevaluatedProperties": False},
    "uncounted": lambda ref: {"allOf": [ref], "unevaluatedItems": {}},
    "dependencies": lambda ref: {"dependencies": {"x": ref, "y": ref}},
    "dependent": lambda ref: {"dependentSchemas": {"x": ref, "y": ref}},
}
NAMED: dict[str, Callable[[int], tuple[dict[str, object], dict[str, object]]]] = {
    "pointer": lambda n: ({}, {"$ref": f"#/$defs/c{n}"}),
    "anchor": lambda n: ({"$anchor": f"c{n}"}, {"$ref": f"#c{n}"}),
    "dynamic": lambda n: ({"$dynamicAnchor": f"c{n}"}, {"$dynamicRef": f"#c{n}"}),
    "urn": lambda n: ({"$id": f"urn:own:c{n}"}, {"$ref": f"urn:own:c{n}"}),
    "url": lambda n: ({"$id": f"https://example.org/c{n}"}, {"$ref": f"c{n}" if n > 1 else "https://example.org/c1"}),
}


def doubled(levels: int, twice: Twice, named: str = "pointer") -> dict[str, object]:
    """Return a schema that refers to another twice, and so on."""
    defined = {f"c{n}": {**NAMED[named](n)[0], **twice(NAMED[named](n + 1)[1])} for n in range(1, levels)}
    last = {f"c{levels}": {**NAMED[named](levels)[0], **INTEGER}}
    return {"$defs": {**defined, **last}, "properties": {"a": NAMED[named](1)[1]}}


def counted(schema: dict[str, object]) -> Branching:
    return Branching(Registry([("urn:t", schema)]), {"urn:t": schema})


def refused(schema: object) -> None:
    start = time.process_time()
    with pytest.raises(ConfigError, match=r"more than 10,000 schemas against one value") as caught:
        Checker(read([{"name": "t", "inputSchema": schema}]))
    assert time.process_time() - start < 3.0
    assert "/0/inputSchema" in str(caught.value)


@pytest.mark.parametrize("named", NAMED)
@pytest.mark.parametrize("twice", TWICE)
def test_ways_that_double_with_each_reference_are_refused(twice: str, named: str) -> None:
    refused(doubled(60, TWICE[twice], named))


@pytest.mark.parametrize("draft", ["draft-04", "draft-06", "draft-07"])
def test_ways_that_double_are_refused_in_older_drafts(draft: str) -> None:
    defined: dict[str, object] = {
        f"d{n}": {"dependencies": {"a": {"$ref": f"#/definitions/d{n + 1}"}, "b": {"$ref": f"#/definitions/d{n + 1}"}}}
        for n in range(60)
    }
    address = {"$schema": f"http://json-schema.org/{draft}/schema#"}
    whole: dict[str, object] = {**defined, "d60": EMPTY}
    refused({**address, "definitions": whole, "allOf": [{"$ref": "#/definitions/d0"}]})
    doubled_too: dict[str, object] = {
        f"d{n}": {"allOf": [{"$ref": f"#/definitions/d{n + 1}"}, {"$ref": f"#/definitions/d{n + 1}"}]}
        for n in range(60)
    }
    name = "id" if draft == "draft-04" else "$id"
    definitions: dict[str, object] = {**doubled_too, "d60": EMPTY}
    inner = {name: "http://x/inner", "definitions": definitions, "allOf": [{"$ref": "#/definitions/d0"}]}
    refused({**address, name: "http://x/root", "allOf": [inner]})


def test_ways_through_dynamic_references_are_counted_by_all_that_they_may_lead_to() -> None:
    inner: dict[str, object] = {"$id": "https://x/inner"}
    defined: dict[str, object] = {}
    for n in range(60):
        defined[f"d{n}"] = {"$dynamicRef": f"#n{n}"}
        defined[f"s{n}"] = {"$dynamicAnchor": f"n{n}"}
    inner["$defs"] = {**defined, "d60": {}}
    outer = {
        f"n{n}": {"$dynamicAnchor": f"n{n}", "allOf": [{"$ref": f"https://x/inner#/$defs/d{n + 1}"}] * 2}
        for n in range(60)
    }
    refused({"$id": "https://x/root", "$defs": {**outer, "inner": inner}, "$ref": "https://x/inner#/$defs/d0"})


def test_a_long_chain_at_each_level_of_a_value_is_refused_since_it_would_end_the_process() -> None:
    defined: dict[str, object] = {
        f"d{n}": {"minProperties": 0, "allOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"maxProperties": 8}]}
        for n in range(1_000)
    }
    last = {"type": "object", "properties": {"c": {"$ref": "#/$defs/d0"}}}
    refused({"$defs": {**defined, "d1000": last}, "$ref": "#/$defs/d0"})


def test_a_chain_at_each_level_that_is_not_refused_fits_a_small_stack() -> None:
    defined: dict[str, object] = {
        f"d{n}": {"minProperties": 0, "allOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"maxProperties": 8}]} for n in range(18)
    }
    last = {"type": "object", "properties": {"c": {"$ref": "#/$defs/d0"}}}
    guard = Checker(read([{"name": "t", "inputSchema": {"$defs": {**defined, "d18": last}, "$ref": "#/$defs/d0"}}]))
    value: dict[str, object] = {}
    for _ in range(97):
        value = {"c": value}
    found: list[object] = []
    threading.stack_size(1 << 19)
    try:
        thread = threading.Thread(target=lambda: found.append(guard.check("t", value)))
        thread.start()
        thread.join()
    finally:
        threading.stack_size(0)
    assert found == [()]


def test_it_is_refused_wherever_it_stands_in_what_is_sent_and_what_comes_back() -> None:
    inner = doubled(60, TWICE["allOf"])
    for keyword in ("properties", "patternProperties"):
        refused({"$defs": inner["$defs"], keyword: {"x": {"items": {"$ref": "#/$defs/c1"}}}})
    with pytest.raises(ConfigError, match="more than 10,000"):
        Checker(read([{"name": "t", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object", **inner}}]))


@pytest.mark.parametrize("each", [5, 9, 20])
def test_ways_through_schemas_that_all_lead_to_each_other_are_refused_or_end(each: int) -> None:
    names = [f"c{n}" for n in range(each)]
    defined = {name: {"anyOf": [{"$ref": f"#/$defs/{other}"} for other in names if other != name]} for name in names}
    schema = {"$defs": defined, "properties": {"a": {"$ref": "#/$defs/c0"}}}
    if each > 5:
        refused(schema)
    else:
        start = time.process_time()
        Checker(read([{"name": "t", "inputSchema": schema}])).check("t", {"a": 1})
        assert time.process_time() - start < 1.0


def test_the_limit_is_counted_exactly() -> None:
    """Here a place has one way for itself, and one for each of its members."""
    most: dict[str, object] = {"anyOf": [INTEGER] * (MAX_WAYS - 1)}
    assert not counted(most).excessive(most)
    more: dict[str, object] = {"anyOf": [INTEGER] * MAX_WAYS}
    assert counted(more).excessive(more)


def test_ways_to_other_places_of_a_value_do_not_count() -> None:
    fields: dict[str, object] = {f"f{n}": {"$ref": "#/$defs/c"} for n in range(100)}
    defined: dict[str, object] = {
        "c": {"properties": {f"g{n}": {"$ref": "#/$defs/d"} for n in range(100)}},
        "d": {"anyOf": [INTEGER] * 100},
    }
    schema: dict[str, object] = {"$defs": defined, "properties": fields}
    assert not counted(schema).excessive({"$ref": "urn:t"})


def test_a_tree_that_leads_back_to_itself_is_taken() -> None:
    branch = {"type": "object", "properties": {"left": {"$ref": "#/$defs/tree"}, "right": {"$ref": "#/$defs/tree"}}}
    schema: dict[str, object] = {
        "$defs": {"tree": {"oneOf": [branch, INTEGER, {"$ref": "#/$defs/tree"}]}},
        "$ref": "#/$defs/tree",
    }
    assert not counted(schema).excessive({"$ref": "urn:t"})


def test_what_is_no_schema_is_left_to_who_compiles_it() -> None:
    odd: list[object] = [
        {"allOf": 3},
        {"anyOf": [None, 3]},
        {"$ref": 3},
        {"$ref": "#/nowhere"},
        {"not": []},
        {"$id": 3},
    ]
    for schema in odd:
        assert is_object(schema)
        assert not Branching(Registry([]), {}).excessive(schema)


@pytest.mark.parametrize("key", ["default", "const", "examples", "x-own"])
@pytest.mark.parametrize("value", [{"$id": "http://["}, {"allOf": [EMPTY] * (MAX_WAYS + 1)}, {"$ref": "http://["}])
def test_data_within_a_schema_is_no_schema(key: str, value: object) -> None:
    schema: dict[str, object] = {"type": "object", key: [value] if key == "examples" else value}
    Checker(read([{"name": "t", "inputSchema": schema}])).check("t", {})
    assert not Branching(Registry([]), {}).excessive({"$id": "http://[", "items": {"$id": "http://["}})


def test_many_groups_that_lead_back_to_themselves_end() -> None:
    defined: dict[str, object] = {}
    for group in range(200):
        names = [f"g{group}_{n}" for n in range(5)]
        for name in names:
            others = [{"$ref": f"#/$defs/{other}"} for other in names if other != name]
            defined[name] = {"anyOf": [*others, {"type": "object"}]}
    fields = {name: {"$ref": f"#/$defs/{name}"} for name in defined}
    start = time.process_time()
    counted({"$defs": defined}).excessive({"$defs": defined, "properties": fields, "$id": "urn:t"})
    assert time.process_time() - start < 5.0


def test_the_discriminated_parent_and_child_of_published_documents_are_taken() -> None:
    pet = {"oneOf": [{"$ref": f"#/$defs/pet{n}"} for n in range(100)], "properties": {"kind": {"type": "string"}}}
    pets = {f"pet{n}": {"allOf": [{"$ref": "#/$defs/pet"}, {"properties": {f"a{n}": EMPTY}}]} for n in range(100)}
    schema: dict[str, object] = {"$defs": {"pet": pet, **pets}, "$ref": "#/$defs/pet"}
    assert not counted(schema).excessive({"$ref": "urn:t"})
