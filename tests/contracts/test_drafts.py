"""The graded difference of schemas in every draft, with anchors and names: sound against an independent engine."""

from __future__ import annotations

from importlib import import_module

import pytest
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st

from theodolite.contracts import read
from theodolite.contracts.dialects import Draft
from theodolite.contracts.difference import Change, Grade, difference, worst
from theodolite.contracts.document import is_list, is_object, tokens
from theodolite.core.contract import Contracts
from theodolite.core.errors import ConfigError
from theodolite.detectors.payload.engine import Checker

JSONSCHEMA = import_module("jsonschema")  # it has no types
VALIDATORS = {
    Draft.DRAFT_4: JSONSCHEMA.Draft4Validator,
    Draft.DRAFT_6: JSONSCHEMA.Draft6Validator,
    Draft.DRAFT_7: JSONSCHEMA.Draft7Validator,
    Draft.DRAFT_2019: JSONSCHEMA.Draft201909Validator,
    Draft.DRAFT_2020: JSONSCHEMA.Draft202012Validator,
}
OLD = [Draft.DRAFT_4, Draft.DRAFT_6, Draft.DRAFT_7]
D4, D7, D2019, D2020 = (one.uri for one in (Draft.DRAFT_4, Draft.DRAFT_7, Draft.DRAFT_2019, Draft.DRAFT_2020))
TEXT: dict[str, object] = {"type": "string"}
NUMBER: dict[str, object] = {"type": "integer"}
S: dict[str, object] = {"$ref": "#/definitions/s"}
DEFINED: dict[str, object] = {"definitions": {"s": TEXT}}


def tool(schema: dict[str, object]) -> Contracts:
    return read([{"name": "t", "inputSchema": schema}])


def changes(old: dict[str, object], new: dict[str, object]) -> tuple[Change, ...]:
    return difference(tool(old), tool(new))


def named(where: str, inside: dict[str, object]) -> dict[str, object]:
    return {"properties": {"a": {"$ref": where}}, "$defs": {"x": inside}}


RESOURCE = "https://x.test/m"


def embedded(kind: dict[str, object]) -> dict[str, object]:
    inner = {"$id": RESOURCE, "$ref": "#/$defs/y", "$defs": {"y": kind}}
    return {"properties": {"a": {"$ref": RESOURCE}}, "$defs": {"x": inner, "y": TEXT}}


def moving(kind: dict[str, object]) -> dict[str, object]:
    tree = {"$id": f"{RESOURCE}/tree", "$dynamicAnchor": "n", "properties": {"kids": {"items": {"$dynamicRef": "#n"}}}}
    return {"$id": f"{RESOURCE}/own", "$dynamicAnchor": "n", "$ref": "tree", "properties": {"v": kind},
            "$defs": {"tree": tree}}  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"$schema": D7, "items": [TEXT]}, {"$schema": D7, "items": [NUMBER]}),
        ({"$schema": D7, "items": [TEXT]}, {"$schema": D7, "items": [TEXT], "additionalItems": False}),
        ({"$schema": D2019, "items": [TEXT]}, {"$schema": D2019, "items": [TEXT], "additionalItems": False}),
        ({"$schema": D7}, {"$schema": D7, "dependencies": {"a": ["b"]}}),
        ({"$schema": D7}, {"$schema": D7, "dependencies": {"a": {"required": ["b"]}}}),
        ({"$schema": D2020}, {"$schema": D2020, "dependencies": {"a": ["b"]}}),
        ({"dependencies": {"a": ["b"]}}, {"dependencies": {"a": ["b", "c"]}}),
        ({"$schema": D4, "minimum": 1}, {"$schema": D4, "minimum": 1, "exclusiveMinimum": True}),
        ({"$schema": D4, "maximum": 1}, {"$schema": D4, "maximum": 1, "exclusiveMaximum": True}),
        (
            {"$schema": D7, "properties": {"a": {**S, "maxLength": 3}}, **DEFINED},
            {"$schema": D7, "properties": {"a": {"allOf": [S, {"maxLength": 3}]}}, **DEFINED},
        ),
        (
            {"$schema": D7, "properties": {"a": {**S, "maxLength": 3}}, **DEFINED},
            {"$schema": D2019, "properties": {"a": {**S, "maxLength": 3}}, **DEFINED},
        ),
        ({"$schema": D7, "minContains": 2, "contains": TEXT}, {"$schema": D2019, "minContains": 2, "contains": TEXT}),
        ({"$schema": D4, "const": 1}, {"$schema": D7, "const": 1}),
        ({"$schema": D7, "format": "uuid"}, {"$schema": D2019, "format": "uuid"}),
        ({"$schema": D2019, "contentEncoding": "base64"}, {"$schema": D7, "contentEncoding": "base64"}),
        ({"$schema": D7, "type": "integer"}, {"$schema": D4, "type": "integer"}),
        ({"contains": TEXT, "minContains": 0}, {"contains": TEXT}),
        ({"contains": TEXT, "minContains": 0}, {"contains": TEXT, "minContains": 1}),
        (named("#q", {"$anchor": "q", **TEXT}), named("#q", {"$anchor": "q", **NUMBER})),
        (named(RESOURCE, {"$id": RESOURCE, **TEXT}), named(RESOURCE, {"$id": RESOURCE, **NUMBER})),
        (embedded(TEXT), embedded(NUMBER)),
        (
            {**named("#q", {"$id": "#q", **TEXT}), "$schema": D7, "definitions": {"x": {"$id": "#q", **TEXT}}},
            {**named("#q", {"$id": "#q", **TEXT}), "$schema": D7, "definitions": {"x": {"$id": "#q", **NUMBER}}},
        ),
        (moving(TEXT), moving(NUMBER)),
        (
            {"$schema": D2019, "$recursiveAnchor": True, "additionalProperties": {"$recursiveRef": "#"}},
            {"$schema": D2019, "$recursiveAnchor": True, "additionalProperties": {"$recursiveRef": "#"},
             "required": ["a"]},
        ),
        ({"$dynamicRef": "#n", "$defs": {"x": {"$dynamicAnchor": "n", **TEXT}}},
         {"$dynamicRef": "#n", "$defs": {"x": {"$dynamicAnchor": "n", **NUMBER}}}),
        ({"not": {"const": {"$ref": "#/$defs/x"}}, "$defs": {"x": {}, "y": {}}},
         {"not": {"const": {"$ref": "#/$defs/y"}}, "$defs": {"x": {}, "y": {}}}),
    ],
)  # fmt: skip
def test_what_refuses_more_is_breaking_in_every_draft(old: dict[str, object], new: dict[str, object]) -> None:
    assert worst(changes(old, new)) is Grade.BREAKING


@pytest.mark.parametrize(
    ("old", "new", "grade", "pointer"),
    [
        ({"$schema": D7, "items": [NUMBER]}, {"$schema": D7, "items": [{"type": "number"}]}, Grade.WIDENING, "/0"),
        ({"$schema": D7, "dependencies": {"a": ["b"]}}, {"$schema": D7}, Grade.WIDENING, "/a"),
        ({"$schema": D7, "items": TEXT}, {"$schema": D7, "items": TEXT, "additionalItems": False}, Grade.TEXT_ONLY, ""),
        ({"$schema": D4, "minimum": 1, "exclusiveMinimum": True}, {"$schema": D4, "minimum": 1}, Grade.WIDENING, ""),
        ({"$schema": D7, **S, **DEFINED}, {"$schema": D7, **S, "maxLength": 3, **DEFINED}, Grade.TEXT_ONLY, ""),
        ({"$schema": D7, "items": [TEXT]}, {"prefixItems": [TEXT]}, None, ""),
        (named("#q", {"$anchor": "q", **NUMBER}), named("#r", {"$anchor": "r", "type": "number"}),
         Grade.WIDENING, "/a"),
        (moving(NUMBER), {**moving(NUMBER), "description": "A tree."}, Grade.TEXT_ONLY, ""),
        (embedded(NUMBER), embedded({"type": "number"}), Grade.WIDENING, "/a"),
    ],
)  # fmt: skip
def test_what_takes_more_is_not_breaking_in_any_draft(
    old: dict[str, object], new: dict[str, object], grade: Grade | None, pointer: str
) -> None:
    told = changes(old, new)
    if "$dynamicAnchor" in old:  # what it leads to depends on the way there
        assert {one.what for one in told if one.grade is Grade.BREAKING} <= {"not compared: what it means is not known"}
        return
    assert [(one.grade, one.pointer) for one in told] == ([(grade, pointer)] if grade else [])


# -- random schemas of one draft, and values, over one small vocabulary --

NAMES = ("a", "b", "c")
ATOMS: st.SearchStrategy[object] = st.sampled_from([None, True, 0, 1, 2, 3, 1.5, "", "a", "bb"])
VALUES: st.SearchStrategy[object] = st.recursive(
    ATOMS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)),
    max_leaves=6,
)
TYPES = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])
COUNTS = st.integers(0, 3)
Some = st.SearchStrategy[dict[str, object]]


def keywords(draft: Draft, inner: Some) -> Some:
    some = st.dictionaries(st.sampled_from(NAMES), inner, min_size=1, max_size=2)
    several = st.lists(inner, min_size=1, max_size=2)
    listed = st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True)
    known: dict[str, st.SearchStrategy[object]] = {
        "type": TYPES, "enum": st.lists(ATOMS, min_size=1, max_size=3, unique_by=repr), "minLength": COUNTS,
        "minItems": COUNTS, "properties": some, "required": listed, "additionalProperties": inner, "allOf": several,
        "anyOf": several, "not": inner, "minimum": COUNTS,
    }  # fmt: skip
    # dependencies: left out since 2019-09, where the other engine does not know it
    if draft <= Draft.DRAFT_7:
        known["dependencies"] = st.dictionaries(
            st.sampled_from(NAMES), st.one_of(listed, inner), min_size=1, max_size=1
        )
    if draft <= Draft.DRAFT_2019:
        known |= {"items": st.one_of(inner, several), "additionalItems": inner}
    else:
        known |= {"items": inner, "prefixItems": several}
    if draft > Draft.DRAFT_4:
        known |= {"const": ATOMS, "contains": inner, "propertyNames": inner, "exclusiveMinimum": COUNTS}
    if draft > Draft.DRAFT_6:
        known |= {"if": inner, "then": inner, "else": inner}
    if draft > Draft.DRAFT_7:
        known |= {
            "minContains": COUNTS,
            "maxContains": COUNTS,
            "dependentRequired": st.fixed_dictionaries({"a": listed}),
        }
        known |= {"dependentSchemas": some, "unevaluatedProperties": inner, "unevaluatedItems": inner}
    chosen = st.lists(st.sampled_from(sorted(known)), min_size=1, max_size=4, unique=True).flatmap(
        lambda names: st.fixed_dictionaries({name: known[name] for name in names})
    )
    return chosen.map(_flagged) if draft is Draft.DRAFT_4 else chosen


def _flagged(schema: dict[str, object]) -> dict[str, object]:
    return {**schema, "exclusiveMinimum": schema["minimum"] in {1, 3}} if "minimum" in schema else schema


def references(draft: Draft) -> Some:
    own = ["#/definitions/s", "#/definitions/n", "#"]
    own += {Draft.DRAFT_2019: ["#q", "urn:x:m#/definitions/y", "urn:x:m"], Draft.DRAFT_4: []}.get(draft, ["urn:x:m"])
    limits: list[dict[str, object]] = [{}, {"maxLength": 1}, {"required": ["a"]}, {"minimum": 2}]
    beside = st.sampled_from(limits)
    return st.tuples(st.sampled_from(own[:2] + own[3:]), beside).map(lambda pair: {"$ref": pair[0], **pair[1]})


def schemas(draft: Draft) -> Some:
    leaves = st.one_of(TYPES.map(lambda kind: dict[str, object](type=kind)), references(draft))
    return st.recursive(leaves, lambda inner: keywords(draft, inner), max_leaves=5)


@st.composite
def pairs(draw: st.DrawFn, before: Draft, after: Draft) -> tuple[dict[str, object], dict[str, object]]:
    """Two schemas, the new one mostly the old one with a keyword changed; what their references lead to differs too."""
    old = draw(schemas(before))
    new = draw(st.one_of(schemas(after), st.just(old), changed(old, after)))
    return draw(whole(old, before)), draw(whole(new, after))


@st.composite
def changed(draw: st.DrawFn, old: dict[str, object], draft: Draft) -> dict[str, object]:
    name = draw(st.sampled_from(sorted(old)))
    rest = {key: value for key, value in old.items() if key != name}
    inside = old[name]
    if is_list(inside) and is_object(inside[0]):
        return {**rest, name: [draw(changed(inside[0], draft)), *inside[1:]]}
    return draw(st.sampled_from([rest, {**old, **draw(keywords(draft, schemas(draft)))}]))


@st.composite
def whole(draw: st.DrawFn, schema: dict[str, object], draft: Draft) -> dict[str, object]:
    kinds = draw(st.tuples(TYPES, TYPES, TYPES, TYPES))
    resource = {
        "$id": "urn:x:m",
        "definitions": {"y": {"type": kinds[0]}},
        "properties": {"a": {"$ref": "#/definitions/y"}},
    }
    given: dict[str, object] = {"s": {"type": kinds[1]}, "n": {"items": {"$ref": "#/definitions/s"}, "maxItems": 1}}
    given |= {"m": resource} if draft > Draft.DRAFT_4 else {}
    given |= {"q": {"$anchor": "q", "type": kinds[2]}} if draft is Draft.DRAFT_2019 else {}
    return {"$schema": draft.uri, "allOf": [schema], "definitions": given}


def declared(found: tuple[Change, ...]) -> set[str]:
    return {tokens(one.pointer)[-1] for one in found if one.what == "declared now"}


def holds(value: object, names: set[str]) -> bool:
    if is_object(value):
        return bool(value.keys() & names) or any(holds(member, names) for member in value.values())
    return is_list(value) and any(holds(member, names) for member in value)


@pytest.mark.parametrize("draft", [*Draft])
@settings(max_examples=100, deadline=None)
@given(data=st.data(), values=st.lists(VALUES, min_size=1, max_size=10))
def test_no_widening_refuses_what_the_old_schema_accepts(
    draft: Draft, data: st.DataObject, values: list[object]
) -> None:
    old, new = data.draw(pairs(draft, draft))
    found = changes(old, new)
    assume(worst(found) is not Grade.BREAKING)
    before, after = VALIDATORS[draft](old), VALIDATORS[draft](new)
    for value in values:
        if not holds(value, declared(found)) and before.is_valid(value):
            assert after.is_valid(value), (value, found)


@settings(max_examples=150, deadline=None)
@given(
    data=st.data(), drafts=st.tuples(*[st.sampled_from([*Draft])] * 2), values=st.lists(VALUES, min_size=1, max_size=10)
)
def test_nor_does_a_change_of_the_draft(data: st.DataObject, drafts: tuple[Draft, Draft], values: list[object]) -> None:
    old, new = data.draw(pairs(*drafts))
    try:
        before, after = Checker(tool(old)), Checker(tool(new))
    except ConfigError:  # a keyword that the other draft has in another form
        reject()
    found = changes(old, new)
    assume(worst(found) is not Grade.BREAKING)
    for value in values:
        if not holds(value, declared(found)) and before.accepts("t", value):
            assert after.accepts("t", value), (value, found)
