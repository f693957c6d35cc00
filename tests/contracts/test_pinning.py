"""Pins: what was agreed to, kept, checked, and compared with what is published now."""

from __future__ import annotations

import copy
from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from theodolite.contracts.difference import Grade, worst
from theodolite.contracts.pinning import FORM, Pinned, Pins, pinned, read, verify, write
from theodolite.contracts.sealing import seal
from theodolite.core.contract import Contract, Contracts, Location, Origin, Part, Schema
from theodolite.core.errors import ConfigError

TREE: Mapping[str, object] = {
    "type": "object",
    "properties": {"kids": {"items": {"$ref": "urn:d#/defs/tree"}}, "leaf": {"$ref": "urn:d#/defs/tree/allOf/0"}},
    "allOf": [{"required": ["kids"]}],
}


ANY: Schema = True
NOTHING: Schema = False


def tool(schema: Schema, name: str = "t", description: str = "", **annotations: object) -> Contracts:
    part = Part(location=Location.ARGUMENTS, schema=schema)
    contract = Contract(
        name=name, origin=Origin.MCP, parts=(part,), description=description, annotations=dict(annotations)
    )
    return Contracts(contracts={name: contract}, documents={"urn:d": {"defs": {"tree": TREE}}}, digest="")


SCHEMAS: st.SearchStrategy[Schema] = st.sampled_from(
    [
        {"$ref": "urn:d#/defs/tree"},
        {"type": "object", "properties": {"a": {"$ref": "urn:d#/defs/tree"}}},
        {"type": "string"},
        {"enum": [1.0, "é", None]},
        True,
    ]
)


@given(SCHEMAS, st.text(max_size=5))
def test_what_was_pinned_and_kept_in_a_file_has_not_changed(schema: Schema, words: str) -> None:
    published = tool(schema, description=words, readOnlyHint=True)
    kept = read(write(Pins(sources={"f.json": pinned(published)})), "pins.json")
    assert verify(kept.sources["f.json"], published) == ()


@given(SCHEMAS)
def test_what_the_file_holds_is_enough_to_grade_a_change(schema: Schema) -> None:
    kept = read(write(Pins(sources={"f": pinned(tool(schema))})), "pins.json").sources["f"]
    changed = tool({"allOf": [schema, {"required": ["new"], "type": "object"}]})
    assert worst(verify(kept, changed)) is Grade.BREAKING


@pytest.mark.parametrize(
    ("changed", "grade", "keyword"),
    [
        (tool(ANY, description="pays"), Grade.TEXT_ONLY, "description"),
        (tool(ANY, description="reads", destructiveHint=True), Grade.TEXT_ONLY, "annotations"),
        (tool(NOTHING, description="reads"), Grade.BREAKING, ""),
        (tool({}, description="reads"), Grade.TEXT_ONLY, ""),
    ],
)
def test_a_tool_that_is_published_anew_is_graded(changed: Contracts, grade: Grade, keyword: str) -> None:
    (change,) = verify(pinned(tool(ANY, description="reads")), changed)
    assert (change.grade, change.keyword) == (grade, keyword)


def test_what_comes_and_goes_is_told() -> None:
    changes = verify(pinned(tool(ANY, name="a")), tool(ANY, name="b"))
    assert [(one.contract, one.grade) for one in changes] == [("a", Grade.BREAKING), ("b", Grade.WIDENING)]


def test_the_hash_is_of_what_was_agreed_not_of_where_it_stands() -> None:
    one = tool({"$ref": "urn:d#/defs/tree"})
    moved = copy.deepcopy(TREE)
    text = msgspec.json.encode(moved).replace(b"urn:d#/defs/tree", b"urn:e#/x~1y")
    other = Contracts(
        contracts={"t": tool({"$ref": "urn:e#/x~1y"}).contracts["t"]},
        documents={"urn:e": {"x/y": msgspec.json.decode(text)}},
        digest="",
    )
    assert seal(one.contracts["t"], one.documents) == seal(other.contracts["t"], other.documents)


def _broken(data: bytes) -> bytes:
    return data.replace(b'"type": "string"', b'"type": "number"')


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "no file of pins"),
        (b"[]", "no file of pins"),
        (b"{}", "no file of pins"),
        (b"[" * 100_000, "no file of pins"),
        (b'{"theodolite_pins": 2}', "pins of form 2; this version reads form 1"),
        (b'{"theodolite_pins": 1, "more": 1}', "no file of pins: a key that is not known"),
        (_broken(write(Pins(sources={"f": pinned(tool({"type": "string"}))}))), "does not fit its hash"),
    ],
)
def test_a_file_that_is_none_or_was_changed_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(ConfigError, match=r"^pins\.json: ") as refused:
        read(data, "pins.json")
    assert message in str(refused.value)


def test_the_file_is_written_the_same_each_time() -> None:
    pins = Pins(sources={"b": pinned(tool(ANY)), "a": Pinned(pins={})})
    assert write(pins) == write(Pins(sources={"a": pins.sources["a"], "b": pins.sources["b"]}))
    assert msgspec.json.decode(write(pins))["theodolite_pins"] == FORM
