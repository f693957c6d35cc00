"""The hash of a contract moves with everything by which a call or result is judged, and with nothing else."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st

from theodolite.contracts import read
from theodolite.contracts.difference import difference
from theodolite.contracts.digest import Fingerprints
from theodolite.contracts.document import is_list, is_object
from theodolite.contracts.pinning import Pins, pinned, verify, write
from theodolite.contracts.pinning import read as kept
from theodolite.core.contract import Contracts
from theodolite.core.errors import ConfigError
from theodolite.detectors.payload.engine import Checker

Document = dict[str, object]
D7 = "http://json-schema.org/draft-07/schema#"


def openapi(body: Document, components: Document, **more: object) -> Document:
    content = {"application/json": {"schema": body}}
    result = {"200": {"description": "", "content": {"application/json": {"schema": body}}}}
    operation = {"operationId": "t", "requestBody": {"content": content, "required": True}, "responses": result}
    return {"openapi": "3.1.0", "paths": {"/t": {"post": operation}}, "components": {"schemas": components}, **more}


def tool(schema: Document) -> Document:
    return {"tools": [{"name": "t", "inputSchema": schema, "outputSchema": schema}]}


def hashed(document: object) -> str:
    contracts = read(document)
    return Fingerprints(contracts.documents).of(contracts.contracts["t"])


NAMED = openapi(
    {"$ref": "https://x.test/m#q"},
    {"M": {"$id": "https://x.test/m", "$defs": {"q": {"$anchor": "q", "type": "string"}}}},
)
DRAFT = openapi({"items": {"$ref": "#/components/schemas/A", "maxLength": 1}}, {"A": {"type": "string"}},
                jsonSchemaDialect=D7)  # fmt: skip
ANCHORED = openapi({"properties": {"a": {"$ref": "#q"}}}, {"A": {"$anchor": "q", "type": "string"}, "B": {}})
DATA = tool({"const": {"$ref": "#/$defs/x"}, "$defs": {"x": {"type": "null"}, "y": {"type": "null"}}})
OLD = tool({
    "$schema": D7,
    "properties": {"a": {"$ref": "#/definitions/x", "maxLength": 3}, "b": {"items": [{"type": "string"}, {}]}},
    "dependencies": {"a": ["b"], "c": {"$ref": "#/definitions/x"}},
    "definitions": {"x": {"type": "string"}, "y": {"$id": "#y", "enum": ["a"]}},
    "additionalProperties": {"$ref": "#y"},
})  # fmt: skip
MOVING = tool({
    "$id": "https://x.test/own", "$dynamicAnchor": "n", "$ref": "tree", "required": ["a"],
    "$defs": {"tree": {"$id": "tree", "$dynamicAnchor": "n", "type": "object",
                       "properties": {"a": {"$dynamicRef": "#n"}}}},
})  # fmt: skip


@pytest.mark.parametrize(
    ("document", "old", "new"),
    [
        (NAMED, '"type":"string"', '"type":"integer"'),
        (DRAFT, f'"jsonSchemaDialect":"{D7}"', '"x-nothing":1'),
        (DRAFT, D7, "https://json-schema.org/draft/2019-09/schema"),
        (ANCHORED, '"type":"string"', '"type":"integer"'),
        (DATA, '"const":{"$ref":"#/$defs/x"}', '"const":{"$ref":"#/$defs/y"}'),
        (OLD, '"enum":["a"]', '"enum":["b"]'),
        (MOVING, '"required":["a"]', '"required":["b"]'),
    ],
)
def test_a_change_far_from_the_contract_moves_its_hash_and_is_told(document: Document, old: str, new: str) -> None:
    text = msgspec.json.encode(document).decode()
    assert old in text
    after = msgspec.json.decode(text.replace(old, new))
    assert hashed(document) != hashed(after)
    assert verify(pinned(read(document)), read(after))
    assert difference(read(document), read(after))


# -- any change at all --

WORDS = ["string", "integer", "null", "#/$defs/x", "#/$defs/y", "a", "b", "q", "#q", "type", "enum", "$ref", "const"]
PLAIN: list[object] = [True, False, None, 0, 1, 3, [], {}, {"type": "integer"}, *WORDS]
LEAVES = st.sampled_from(PLAIN)
VALUES: list[object] = [
    {}, [], "a", "aaaa", 1, None, {"a": "a"}, {"a": "aaaa"}, {"a": 1}, {"a": None}, {"b": ["a", 1]}, {"b": [1]},
    {"a": "x", "b": []}, {"c": "a"}, {"a": {"a": {}}}, {"a": {"b": 1}}, {"b": 1}, ["a"], ["aaaa"], [1],
    {"$ref": "#/$defs/x"}, {"$ref": "#/$defs/y"},
]  # fmt: skip


def places(node: object) -> Iterator[tuple[Document | list[object], str | int]]:
    if is_object(node):
        for key, below in node.items():
            yield node, key
            yield from places(below)
    elif is_list(node):
        for index, below in enumerate(node):
            yield node, index
            yield from places(below)


@st.composite
def mutated(draw: st.DrawFn, document: Document) -> Document:
    new = copy.deepcopy(document)
    for _ in range(draw(st.integers(1, 2))):
        found = [*places(new)]
        assume(found)
        holder, key = draw(st.sampled_from(found))
        value = copy.deepcopy(draw(LEAVES))
        if is_object(holder) and isinstance(key, str):
            what = draw(st.sampled_from(["put", "gone", "named", "more"]))
            if what == "put":
                holder[key] = value
            elif what == "more":
                holder[draw(st.sampled_from(WORDS))] = value
            else:
                below = holder.pop(key)
                if what == "named":
                    holder[draw(st.sampled_from(WORDS))] = below
        elif is_list(holder) and isinstance(key, int):
            holder[key] = value
    return new


def judged(contracts: Contracts) -> list[object]:
    """Return how each value is judged, and how flat arguments and results are."""
    checker = Checker(contracts)
    return [
        (checker.accepts("t", value), checker.accepts("t", {"body": value}), checker.check_result("t", value) == ())
        for value in VALUES
    ]


@pytest.mark.parametrize("document", [NAMED, DRAFT, ANCHORED, DATA, OLD, MOVING])
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_whatever_is_judged_otherwise_has_another_hash(document: Document, data: st.DataObject) -> None:
    before = read(document)
    changed = data.draw(mutated(document))
    try:
        after = read(changed)
        assume("t" in after.contracts)
        found = judged(after)
    except ConfigError:
        reject()
    mine = Fingerprints(before.documents).of(before.contracts["t"])
    theirs = Fingerprints(after.documents).of(after.contracts["t"])
    if found != judged(before):
        assert mine != theirs
    if mine != theirs:
        assert verify(pinned(before), after)
    again = kept(write(Pins(sources={"f": pinned(after)})), "pins.json").sources["f"]
    assert verify(again, after) == ()


@pytest.mark.parametrize("document", [NAMED, DRAFT, ANCHORED, OLD, MOVING])
def test_the_order_of_keys_is_no_change(document: Document) -> None:
    assert hashed(document) == hashed(_turned(document))


def _turned(node: object) -> object:
    if is_object(node):
        return {key: _turned(node[key]) for key in reversed(node)}
    return [_turned(one) for one in node] if is_list(node) else node
