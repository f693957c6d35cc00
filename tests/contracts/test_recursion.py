"""Schemas that lead back to themselves in many ways: what is shown of them is true, and is shown in time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from theodolite.contracts import read
from theodolite.contracts.difference import Grade, difference, worst
from theodolite.contracts.inclusion import Inclusion, Why
from theodolite.contracts.nodes import Node
from theodolite.core.contract import Schema

JSONSCHEMA = import_module("jsonschema")  # it has no types
NAMES: tuple[str, ...] = ("a", "b", "c", "d")
REFS: st.SearchStrategy[Mapping[str, object]] = st.sampled_from([{"$ref": f"#/$defs/{name}"} for name in NAMES])
LEAVES: st.SearchStrategy[Mapping[str, object]] = st.sampled_from(
    [{"type": "integer"}, {"type": "string"}, {"type": "null"}, {"enum": [1, "x"]}, {"minimum": 2}]
)


def union(keyword: str) -> Callable[[Sequence[Mapping[str, object]]], Mapping[str, object]]:
    return lambda several: {keyword: several}


def object_of(v: Mapping[str, object], n: Mapping[str, object], more: Mapping[str, object]) -> Mapping[str, object]:
    return {"type": "object", "properties": {"v": v, "n": n}, **more}


# A definition has its references below a name, so that what it means is well-founded.
HERE: st.SearchStrategy[Mapping[str, object]] = st.one_of(REFS, LEAVES)
BELOW: st.SearchStrategy[Mapping[str, object]] = st.one_of(
    HERE, st.lists(HERE, min_size=1, max_size=2).map(union("anyOf"))
)
MORE: list[Mapping[str, object]] = [{}, {"required": ["v"]}, {"required": ["n", "v"]}, {"additionalProperties": False}]
OBJECTS: st.SearchStrategy[Mapping[str, object]] = st.builds(object_of, BELOW, BELOW, st.sampled_from(MORE))
PLAIN: st.SearchStrategy[Mapping[str, object]] = st.one_of(OBJECTS, LEAVES)
DEFINED: st.SearchStrategy[Mapping[str, object]] = st.one_of(
    PLAIN,
    st.lists(PLAIN, min_size=2, max_size=3).map(union("anyOf")),
    st.lists(OBJECTS, min_size=2, max_size=2).map(union("allOf")),
)
EACH: dict[str, st.SearchStrategy[Mapping[str, object]]] = dict.fromkeys(NAMES, DEFINED)
DOCUMENTS: st.SearchStrategy[Mapping[str, Mapping[str, object]]] = st.fixed_dictionaries(EACH)
ATOMS: st.SearchStrategy[object] = st.sampled_from([None, 1, 2, 1.5, "x", "y", True])


def nested(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.dictionaries(st.sampled_from(["v", "n", "z"]), inner, max_size=3)


VALUES: st.SearchStrategy[object] = st.recursive(ATOMS, nested, max_leaves=8)


def node(defined: Mapping[str, object]) -> Node:
    # Schemas are told apart by what they are in memory, and two documents share nothing.
    document: dict[str, object] = {"$ref": "#/$defs/a", "$defs": unshared(defined)}
    return Node(document, {"urn:d": document}, "urn:d")


def unshared(defined: Mapping[str, object]) -> object:
    return msgspec.json.decode(msgspec.json.encode(defined))


def accepts(defined: Mapping[str, object], value: object) -> bool:
    validator = JSONSCHEMA.Draft202012Validator({"$ref": "#/$defs/a", "$defs": defined})
    return bool(validator.is_valid(value))


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Mapping[str, object], Mapping[str, object]]:
    """Return definitions, and others that differ in one, so that much is shown and something is not."""
    old = draw(DOCUMENTS)
    return old, {**old, draw(st.sampled_from(NAMES)): draw(DEFINED)}


@settings(max_examples=300)
@given(pair=pairs(), values=st.lists(VALUES, min_size=8, max_size=8))
def test_what_is_shown_of_recursive_schemas_is_true(
    pair: tuple[Mapping[str, object], Mapping[str, object]], values: list[object]
) -> None:
    old, new = pair
    for one, other in ((old, new), (new, old)):
        missed = Inclusion().missed(node(one), node(other))
        if all(found.why is Why.DECLARED for found in missed):
            for value in values:
                # Both declare the same names, or a name is told: then a value that has it is not spoken of.
                assert missed or not accepts(one, value) or accepts(other, value)


@given(DOCUMENTS)
def test_recursive_schemas_accept_what_they_accept(defined: Mapping[str, Mapping[str, object]]) -> None:
    missed = Inclusion().missed(node(defined), node(defined))
    assert all(found.why is Why.DECLARED for found in missed)


def branching(count: int, kind: str, keyword: str) -> Schema:
    defined: dict[str, object] = {
        f"b{place}": {
            "type": "object",
            "required": ["kind"],
            "properties": {
                "kind": {"const": place},
                "v": {"type": kind if place == count - 1 else "integer"},
                f"f{place}": {"$ref": "#/$defs/any"},
                "next": {"$ref": f"#/$defs/b{(place + 1) % count}"},
                "any": {"$ref": "#/$defs/any"},
            },
        }
        for place in range(count)
    }
    defined["any"] = {keyword: [{"$ref": f"#/$defs/b{place}"} for place in range(count)]}
    return {"type": "object", "properties": {"root": {"$ref": "#/$defs/any"}}, "$defs": defined}


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
def test_a_union_of_many_branches_that_lead_back_to_it_is_compared_in_time(keyword: str) -> None:
    old, new = (read(branching(20, kind, keyword)) for kind in ("integer", "string"))
    start = time.perf_counter()
    changes = difference(old, new)
    assert time.perf_counter() - start < 20
    assert worst(changes) is Grade.BREAKING
    assert len(changes) <= 1_000
    assert not [one for one in changes if "too large" in one.what]


def test_what_rests_on_a_pair_that_fails_is_not_taken_for_shown() -> None:
    def document(kind: str) -> Mapping[str, Mapping[str, object]]:
        return {
            "a": {"properties": {"x": {"$ref": "#/$defs/d"}, "y": {"$ref": "#/$defs/e"}}},
            "d": {"properties": {"n": {"$ref": "#/$defs/e"}, "z": {"type": kind}}},
            "e": {"properties": {"m": {"$ref": "#/$defs/d"}, "k": {"$ref": "#/$defs/f"}}},
            "f": {"properties": {"m": {"$ref": "#/$defs/e"}}},
        }

    missed = Inclusion().missed(node(document("integer")), node(document("string")))
    assert {one.pointer for one in missed} >= {"/x/z", "/y/m/z"}
