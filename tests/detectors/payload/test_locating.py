"""Unions of trees whose branches overlap: what is wrong is listed in time, and where it is, however deep that is."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema_rs import validator_for

from theodolite.contracts import read
from theodolite.core.contract import Divergence, Kind
from theodolite.detectors.payload.engine import Checker
from theodolite.detectors.payload.repair import plan

TREE: dict[str, object] = {"$ref": "#/$defs/tree"}
GROUP = {"type": "object", "properties": {"and": {"type": "array", "items": TREE}, "not": TREE, "or": TREE}}
TREES: dict[str, dict[str, object]] = {
    "filters": {
        "oneOf": [
            {**GROUP, "required": ["and"], "additionalProperties": False},
            {**GROUP, "required": ["and"], "maxProperties": 3},
            {"type": "object", "properties": {"field": {"type": "integer"}}, "required": ["field"]},
        ]
    },
    "any": {"anyOf": [{**GROUP, "required": ["and"]}, {**GROUP, "minProperties": 1}, {"type": "integer"}]},
    "all": {"allOf": [{"anyOf": [{"type": "integer"}, {**GROUP, "allOf": [GROUP]}]}, {"not": {"const": 3}}]},
    "condition": {"if": GROUP, "then": {**GROUP, "type": ["object", "integer"]}, "else": {"type": "integer"}},
    "three": {"anyOf": [GROUP, {**GROUP, "minProperties": 1}, {**GROUP, "maxProperties": 9}, {"type": "integer"}]},
}
NAMED: dict[str, Callable[[dict[str, object]], dict[str, object]]] = {
    "pointer": lambda tree: {"$defs": {"tree": tree}, "properties": {"a": TREE}},
    "root": lambda tree: {"$defs": {"tree": tree}, "$ref": "#/$defs/tree"},
}


def published(tree: dict[str, object], how: str = "pointer") -> Checker:
    return Checker(read([{"name": "t", "inputSchema": NAMED[how](tree)}]))


def nested(levels: int, leaf: object) -> dict[str, object]:
    value: dict[str, object] = {"and": [leaf]}
    for _ in range(levels - 1):
        value = {"and": [value]}
    return value


def timed(call: Callable[[], tuple[Divergence, ...]]) -> tuple[Divergence, ...]:
    start = time.process_time()
    found = call()
    took = time.process_time() - start
    if took > 1.0:
        pytest.fail(f"it took {took:.2f} s", pytrace=False)
    return found


@pytest.mark.parametrize("levels", [3, 14, 40])
@pytest.mark.parametrize("leaf", ["x", {"and": "x"}, {"field": "x"}, None])
@pytest.mark.parametrize("how", NAMED)
@pytest.mark.parametrize("tree", TREES)
def test_a_fault_deep_within_is_told_in_time(tree: str, how: str, leaf: object, levels: int) -> None:
    guard = published(TREES[tree], how)
    value: dict[str, object] = nested(levels, leaf)
    whole = {"a": value} if how == "pointer" else value
    found = timed(lambda: guard.check("t", whole))
    assert any(one.denies for one in found) is not validator_for(NAMED[how](TREES[tree])).is_valid(whole)
    timed(lambda: guard.observe("t", whole))
    plan(guard.contracts.contracts["t"], guard.contracts.documents, whole, lambda _: False)
    timed(lambda: guard.check("t", {"a": json.dumps(value), "and": [json.dumps(value)]}))


def test_it_is_told_where_the_fault_is() -> None:
    found = published(TREES["filters"]).check("t", {"a": nested(30, {"field": "x"})})
    assert [one.pointer.startswith("/a" + "/and/0" * 20) for one in found if one.denies] == [True]
    assert found[0].kind in {Kind.TYPE_MISMATCH, Kind.UNION_NO_MATCH}


@settings(max_examples=200, deadline=None)
@given(
    st.recursive(
        st.sampled_from([1, "x", None, {"field": 1}, {"field": "x"}]),
        lambda inner: st.fixed_dictionaries(
            {}, optional={"and": st.lists(inner, max_size=2), "not": inner, "or": inner}
        ),
        max_leaves=12,
    ),
    st.sampled_from(sorted(TREES)),
)
def test_what_is_refused_has_a_finding_that_denies_and_nothing_else_has(value: object, tree: str) -> None:
    found = published(TREES[tree], "root").check("t", value)
    assert any(one.denies for one in found) is not validator_for(NAMED["root"](TREES[tree])).is_valid(value)


def test_a_filter_of_a_published_kind_is_told_in_little_memory() -> None:
    def group(op: str) -> dict[str, object]:
        items = {"type": "array", "items": {"$ref": "#/$defs/F"}}
        return {
            "type": "object",
            "properties": {"op": {"const": op}, "items": items},
            "required": ["op", "items"],
        }

    leaf = {
        "type": "object",
        "properties": {
            "op": {"enum": ["eq", "ne"]},
            "field": {"type": "string"},
            "value": {"type": ["string", "number"]},
        },
        "required": ["op", "field", "value"],
    }
    schema = {
        "type": "object",
        "properties": {"filter": {"$ref": "#/$defs/F"}},
        "$defs": {"F": {"oneOf": [group("and"), group("or"), group("not"), leaf]}},
    }
    guard = Checker(read([{"name": "t", "inputSchema": schema}]))
    for levels in (1, 5, 9, 14, 40):
        value: dict[str, object] = {"op": "eq", "field": "a", "value": {"x": 1}}
        for _ in range(levels):
            value = {"op": "and", "items": [value]}
        whole = {"filter": value}
        found = timed(partial(guard.check, "t", whole))
        assert [one.pointer for one in found] == ["/filter" + "/items/0" * levels + "/value"]


def test_many_values_with_many_branches_are_told_in_time() -> None:
    branches = [{"type": "object", "required": [f"k{n}"]} for n in range(100)]
    schema = {"properties": {"a": {"items": {"items": {"anyOf": branches}}}}}
    guard = Checker(read([{"name": "t", "inputSchema": schema}]))
    value: dict[str, object] = {"a": [[{}] * 400 for _ in range(400)]}
    assert timed(lambda: guard.check("t", value))[0].pointer == "/a/0/0"


def test_the_place_of_a_schema_is_never_cut_short() -> None:
    """A name longer than a pointer that is shown: what is compiled has to lead there all the same."""
    long = "n" * 700
    tree = {"$ref": f"#/$defs/{long}"}
    group = {"type": "object", "properties": {"and": {"type": "array", "items": tree}}, "required": ["and"]}
    union = {"anyOf": [group, {**group, "minProperties": 1}, {**group, "maxProperties": 9}, {"type": "integer"}]}
    guard = Checker(read([{"name": "t", "inputSchema": {"$defs": {long: union}, "properties": {"a": tree}}}]))
    found = timed(lambda: guard.check("t", {"a": nested(30, "x")}))
    assert [one.denies for one in found] == [True]
    assert found[0].pointer.startswith("/a" + "/and/0" * 20)
