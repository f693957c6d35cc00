"""The graded difference of contracts: sound against an independent engine, and not so careful as to be of no use."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from theodolite.contracts.difference import Change, Grade, compare, difference, worst
from theodolite.contracts.document import is_list, is_object
from theodolite.contracts.nodes import is_schema, named
from theodolite.core.contract import Contract, Contracts, Location, Origin, Part, Schema

JSONSCHEMA = import_module("jsonschema")  # it has no types
NAMES = ("a", "b", "c", "d/e")
URI = "urn:doc"


def tool(schema: Schema, documents: Mapping[str, object] | None = None, *, result: Schema | None = None) -> Contracts:
    results = () if result is None else (Part(location=Location.RESULT, schema=result),)
    part = Part(location=Location.ARGUMENTS, schema=schema, required=True)
    contract = Contract(name="t", origin=Origin.MCP, parts=(part,), results=results)
    return Contracts(contracts={"t": contract}, documents=documents or {}, digest="")


def graded(old: Schema, new: Schema, documents: Mapping[str, object] | None = None) -> Grade | None:
    return worst(difference(tool(old, documents), tool(new, documents)))


# -- schemas and values over one small vocabulary, so that they meet --

ATOMS: st.SearchStrategy[object] = st.sampled_from([None, True, False, 0, 1, 1.0, 2, 3, 1.5, "", "a", "bb", "ccc"])
VALUES: st.SearchStrategy[object] = st.recursive(
    ATOMS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)),
    max_leaves=6,
)
TYPES = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])
COUNTS = st.integers(0, 3)
INNER = {
    "items",
    "contains",
    "additionalProperties",
    "propertyNames",
    "unevaluatedProperties",
    "not",
    "if",
    "then",
    "else",
}
REFS = st.sampled_from([{"$ref": f"{URI}#/defs/{name}"} for name in ("tree", "word", "d~1e")])


def _keywords(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    several = st.lists(inner, min_size=1, max_size=3)
    some = st.dictionaries(st.sampled_from(NAMES), inner, min_size=1, max_size=2)
    optional: dict[str, st.SearchStrategy[object]] = {
        "type": st.one_of(TYPES, st.lists(TYPES, min_size=1, max_size=3, unique=True)),
        "enum": st.lists(ATOMS, min_size=1, max_size=3),
        "const": ATOMS,
        "minimum": COUNTS,
        "exclusiveMaximum": COUNTS,
        "multipleOf": st.sampled_from([0.5, 1, 2]),
        "minLength": COUNTS,
        "maxLength": COUNTS,
        "pattern": st.sampled_from(["^a", "b"]),
        "minItems": COUNTS,
        "uniqueItems": st.booleans(),
        "items": inner,
        "prefixItems": several,
        "contains": inner,
        "minProperties": COUNTS,
        "properties": some,
        "required": st.lists(st.sampled_from(NAMES), max_size=2, unique=True),
        "additionalProperties": inner,
        "patternProperties": st.dictionaries(st.sampled_from(["^a", "b"]), inner, min_size=1, max_size=1),
        "propertyNames": inner,
        "unevaluatedProperties": inner,
        "dependentRequired": st.dictionaries(st.sampled_from(NAMES), st.lists(st.sampled_from(NAMES)), max_size=1),
        "dependentSchemas": some,
        "allOf": several,
        "anyOf": several,
        "oneOf": several,
        "not": inner,
        "if": inner,
        "then": inner,
        "else": inner,
    }
    return st.lists(st.sampled_from(sorted(optional)), min_size=1, max_size=4, unique=True).flatmap(
        lambda names: st.fixed_dictionaries({name: optional[name] for name in names})
    )


SCHEMAS: st.SearchStrategy[Schema] = st.recursive(
    st.one_of(st.booleans(), TYPES.map(lambda kind: {"type": kind}), REFS), _keywords, max_leaves=6
)
DEFS: st.SearchStrategy[Mapping[str, object]] = st.fixed_dictionaries(
    {
        "tree": st.just(
            {
                "type": "object",
                "properties": {"a": {"$ref": f"{URI}#/defs/tree"}, "b": {"$ref": f"{URI}#/defs/word"}},
                "required": ["b"],
            }
        ),
        "word": SCHEMAS.filter(lambda schema: "Ref" not in str(schema) and "$ref" not in str(schema)),
        "d/e": st.just({"type": ["string", "null"]}),
    }
).map(lambda defs: {"defs": defs})


@st.composite
def changed(draw: st.DrawFn, schema: Schema) -> Schema:
    """A schema with a keyword of it, at some depth, taken away, put in or replaced."""
    if not is_object(schema) or not schema or draw(st.integers(0, 3)) == 0:
        return draw(SCHEMAS)
    name = draw(st.sampled_from(sorted(schema)))
    inside = schema[name]
    rest = {key: value for key, value in schema.items() if key != name}
    what = draw(st.sampled_from(["gone", "new", "inside", "inside"]))
    if what == "gone":
        return rest
    if what == "new" or not (is_object(inside) or is_list(inside)):
        return {**schema, **named(draw(_keywords(SCHEMAS)))}
    if is_object(inside):
        return {**rest, name: draw(_within(name, inside))}
    if name not in {"anyOf", "oneOf", "allOf", "prefixItems"}:
        return rest
    assert is_list(inside)
    place = draw(st.integers(0, len(inside) - 1))
    return {**rest, name: [*inside[:place], draw(changed(_schema(inside[place]))), *inside[place + 1 :]]}


@st.composite
def _within(draw: st.DrawFn, name: str, inside: dict[str, object]) -> object:
    if name in {"properties", "patternProperties", "dependentSchemas"}:
        inner = draw(st.sampled_from(list(inside)))
        return {**inside, inner: draw(changed(_schema(inside[inner])))}
    return draw(changed(inside)) if name in INNER else inside


def _schema(value: object) -> Schema:
    assert is_schema(value)
    return value


def accepts(schema: Schema, document: Mapping[str, object], value: object) -> bool:
    whole = {"allOf": [schema], "$defs": {"document": {"$id": URI, **document}}}
    return bool(JSONSCHEMA.Draft202012Validator(whole).is_valid(value))


def holds(value: object, names: set[str]) -> bool:
    if is_object(value):
        return bool(value.keys() & names) or any(holds(member, names) for member in value.values())
    return is_list(value) and any(holds(member, names) for member in value)


def declared(changes: tuple[Change, ...]) -> set[str]:
    tokens = {one.pointer.rpartition("/")[2] for one in changes if one.what == "declared now"}
    return {token.replace("~1", "/").replace("~0", "~") for token in tokens}


PAIRS = SCHEMAS.flatmap(lambda old: st.tuples(st.just(old), st.one_of(changed(old), SCHEMAS)))


STRICT: dict[str, object] = {
    "type": "string", "enum": ["a"], "const": 1, "minimum": 2, "exclusiveMaximum": 1, "multipleOf": 2, "minLength": 2,
    "maxLength": 0, "pattern": "b", "minItems": 2, "maxItems": 0, "uniqueItems": True, "items": False,
    "prefixItems": [False], "contains": {"const": 3}, "minProperties": 2, "maxProperties": 0,
    "properties": {"a": False}, "required": ["c"], "additionalProperties": False,
    "patternProperties": {"a": False}, "propertyNames": False, "unevaluatedProperties": False,
    "unevaluatedItems": False, "dependentRequired": {"a": ["c"]},
    "dependentSchemas": {"a": False}, "allOf": [False], "anyOf": [{"type": "null"}], "oneOf": [{"type": "null"}],
    "not": {"type": "object"}, "if": True, "then": False, "else": False,
}  # fmt: skip
LOOSE: dict[str, object] = {
    **STRICT, "type": ["string", "number", "object", "array"], "enum": [1, "a", {"a": 1}, [1]], "items": True,
    "prefixItems": [True], "contains": True, "properties": {"a": True}, "additionalProperties": True,
    "patternProperties": {"a": True}, "propertyNames": True, "allOf": [True], "anyOf": [True], "oneOf": [True],
    "not": {"type": "null"}, "then": True, "else": True, "minimum": 0, "minLength": 1, "maxLength": 5, "minItems": 1,
    "maxItems": 2, "minProperties": 1, "maxProperties": 2, "required": ["a"], "dependentSchemas": {"a": True},
}  # fmt: skip
SOME: list[object] = [1, "a", "bb", 3, [1], [1, 1], [3], {"a": 1}, {"a": 1, "c": 1}, {"b": 1}, {}, [], None, True]


@pytest.mark.parametrize("added", STRICT)
@pytest.mark.parametrize("beside", LOOSE)
def test_each_keyword_that_refuses_more_is_breaking_whatever_stands_beside_it(added: str, beside: str) -> None:
    """Beside another one, and with a strict value instead of a loose one of its own."""
    old: dict[str, object] = {beside: LOOSE[beside]}
    new = {**old, added: STRICT[added]}
    both = JSONSCHEMA.Draft202012Validator(old), JSONSCHEMA.Draft202012Validator(new)
    names = declared(difference(tool(old), tool(new)))
    lost = [one for one in SOME if not holds(one, names) and both[0].is_valid(one) and not both[1].is_valid(one)]
    if lost:
        assert graded(old, new) is Grade.BREAKING, lost


@settings(max_examples=120, deadline=None)
@given(PAIRS, DEFS, st.lists(VALUES, min_size=1, max_size=12))
def test_no_widening_refuses_what_the_old_contract_accepts(
    pair: tuple[Schema, Schema], document: Mapping[str, object], values: list[object]
) -> None:
    old, new = pair
    changes = difference(tool(old, {URI: document}), tool(new, {URI: document}))
    assume(worst(changes) is not Grade.BREAKING)
    names = declared(changes)
    for value in values:
        if not holds(value, names) and accepts(old, document, value):
            assert accepts(new, document, value), (value, changes)


@settings(max_examples=120, deadline=None)
@given(PAIRS, DEFS, st.lists(VALUES, min_size=1, max_size=12))
def test_no_widening_of_a_result_lets_through_what_the_old_contract_does_not_describe(
    pair: tuple[Schema, Schema], document: Mapping[str, object], values: list[object]
) -> None:
    old, new = pair
    documents = {URI: document}
    changes = difference(tool({}, documents, result=old), tool({}, documents, result=new))
    assume(worst(changes) is not Grade.BREAKING)
    for value in values:
        if accepts(new, document, value):
            assert accepts(old, document, value), (value, changes)


@settings(max_examples=200, deadline=None)
@given(SCHEMAS, DEFS)
def test_a_contract_does_not_differ_from_a_copy_of_itself(schema: Schema, document: Mapping[str, object]) -> None:
    import copy

    old = tool(schema, {URI: document}, result=schema)
    new = tool(copy.deepcopy(schema), {URI: copy.deepcopy(document)}, result=copy.deepcopy(schema))
    assert difference(old, new) == ()


OBJECT: Mapping[str, object] = {"type": "object", "properties": {"a": {"type": "string"}}}
WORD: Mapping[str, object] = {"type": "string"}


@pytest.mark.parametrize(
    ("old", "new", "grade"),
    [
        (WORD, {"type": ["string", "null"]}, Grade.WIDENING),
        (WORD, {"anyOf": [WORD, {"type": "null"}]}, Grade.WIDENING),
        ({"type": ["string", "null"]}, {"anyOf": [WORD, {"type": "null"}]}, None),
        ({"anyOf": [WORD, {"type": "null"}]}, {"type": ["string", "null"]}, None),
        ({"anyOf": [WORD, {"type": "null"}]}, WORD, Grade.BREAKING),
        ({"type": "integer"}, {"type": "number"}, Grade.WIDENING),
        ({"type": "number"}, {"type": "integer"}, Grade.BREAKING),
        ({"enum": ["x"]}, {"enum": ["x", "y"]}, Grade.WIDENING),
        ({"enum": ["x", "y"]}, {"enum": ["x"]}, Grade.BREAKING),
        ({"const": "x"}, {"enum": ["x", "y"], "type": "string"}, Grade.WIDENING),
        ({"enum": [1]}, {"enum": [True]}, Grade.BREAKING),
        ({"enum": [1]}, {"enum": [1.0]}, None),
        ({"minimum": 1}, {"minimum": 0}, Grade.WIDENING),
        ({"minimum": 0}, {"minimum": 1}, Grade.BREAKING),
        ({"exclusiveMinimum": 0}, {"minimum": 0}, Grade.WIDENING),
        ({"minimum": 0}, {"exclusiveMinimum": 0}, Grade.BREAKING),
        ({"multipleOf": 0.4}, {"multipleOf": 0.1}, Grade.WIDENING),
        ({"multipleOf": 0.1}, {"multipleOf": 0.4}, Grade.BREAKING),
        ({"type": "string"}, {"type": "string", "minimum": 3}, None),
        ({"pattern": "^a"}, {"pattern": "^aa?"}, Grade.BREAKING),
        ({"format": "int32"}, {"format": "int64"}, Grade.WIDENING),
        (OBJECT, {**OBJECT, "required": ["a"]}, Grade.BREAKING),
        ({**OBJECT, "required": ["a"]}, OBJECT, Grade.WIDENING),
        (OBJECT, {"type": "object", "properties": {"a": WORD, "b": WORD}}, Grade.WIDENING),
        ({"type": "object", "properties": {"a": WORD, "b": WORD}}, OBJECT, Grade.BREAKING),
        (OBJECT, {**OBJECT, "additionalProperties": False}, Grade.BREAKING),
        ({**OBJECT, "additionalProperties": False}, OBJECT, Grade.WIDENING),
        (
            {**OBJECT, "additionalProperties": False},
            {"type": "object", "properties": {"a": WORD, "b": WORD}, "additionalProperties": False},
            Grade.WIDENING,
        ),
        ({"additionalProperties": WORD}, {"properties": {"a": {"type": "integer"}}}, Grade.BREAKING),
        ({"items": WORD}, {"items": {"type": ["string", "null"]}}, Grade.WIDENING),
        ({"items": {"type": ["string", "null"]}}, {"items": WORD}, Grade.BREAKING),
        ({"prefixItems": [WORD], "items": False}, {"items": WORD}, Grade.WIDENING),
        ({"allOf": [OBJECT]}, OBJECT, None),
        (OBJECT, {"allOf": [{"type": "object"}, {"properties": {"a": WORD}}]}, None),
        ({"allOf": [OBJECT, {"required": ["a"]}]}, {"allOf": [OBJECT]}, Grade.WIDENING),
        ({"oneOf": [WORD, {"type": "null"}]}, {"oneOf": [WORD, {"type": "null"}, {"type": "array"}]}, Grade.WIDENING),
        ({"oneOf": [WORD, {"type": "number"}]}, {"oneOf": [WORD, {"type": "number"}, {"minimum": 3}]}, Grade.BREAKING),
        ({"not": {"type": ["string", "null"]}}, {"not": WORD}, Grade.WIDENING),
        ({"not": WORD}, {"not": {"type": ["string", "null"]}}, Grade.BREAKING),
        (False, True, Grade.WIDENING),
        (True, False, Grade.BREAKING),
        (WORD, {**WORD, "description": "new"}, Grade.TEXT_ONLY),
        ({**WORD, "default": "x"}, {**WORD, "default": "y"}, Grade.BREAKING),
        (WORD, {**WORD, "default": "y"}, Grade.TEXT_ONLY),
        (WORD, {**WORD, "x-safety": "off"}, Grade.TEXT_ONLY),
        ({"unevaluatedProperties": False}, {}, Grade.WIDENING),
        ({}, {"unevaluatedProperties": False}, Grade.BREAKING),
        ({"$ref": "urn:nowhere#/a"}, {"$ref": "urn:nowhere#/a"}, None),
        ({"$ref": "urn:nowhere#/a"}, {"$ref": "urn:nowhere#/b"}, Grade.BREAKING),
    ],
)
def test_each_kind_of_change_has_its_grade(old: Schema, new: Schema, grade: Grade | None) -> None:
    assert graded(old, new) is grade, difference(tool(old), tool(new))


@pytest.mark.parametrize(
    ("old", "new", "grade"),
    [
        (WORD, {"type": ["string", "null"]}, Grade.BREAKING),
        ({"type": ["string", "null"]}, WORD, Grade.WIDENING),
        ({"enum": ["x"]}, {"enum": ["x", "y"]}, Grade.BREAKING),
        (OBJECT, {"type": "object", "properties": {"a": WORD, "b": WORD}}, Grade.WIDENING),
        ({**OBJECT, "additionalProperties": False}, {**OBJECT, "additionalProperties": True}, Grade.BREAKING),
        ({"type": "object", "properties": {"a": WORD, "b": WORD}}, OBJECT, Grade.BREAKING),
        ({**OBJECT, "required": ["a"]}, OBJECT, Grade.BREAKING),
        (OBJECT, {**OBJECT, "required": ["a"]}, Grade.WIDENING),
    ],
)
def test_what_comes_back_is_graded_the_other_way_round(old: Schema, new: Schema, grade: Grade) -> None:
    changes = difference(tool({}, result=old), tool({}, result=new))
    assert worst(changes) is grade, changes


def _operation(*parts: Part, results: tuple[Part, ...] = (), path: str = "/x") -> Contracts:
    contract = Contract(name="op", origin=Origin.OPENAPI, parts=parts, results=results, method="GET", path=path)
    return Contracts(contracts={"op": contract}, aliases={f"GET {path}": "op"}, digest="")


def _query(name: str, *, required: bool = False, style: str = "form") -> Part:
    return Part(location=Location.QUERY, name=name, schema=WORD, required=required, style=style)


def _body(media_type: str) -> Part:
    return Part(location=Location.BODY, schema=OBJECT, media_type=media_type, required=True)


def _status(status: str) -> Part:
    return Part(location=Location.RESULT, schema=OBJECT, status=status, media_type="application/json")


@pytest.mark.parametrize(
    ("old", "new", "grade"),
    [
        (_operation(), _operation(_query("q")), Grade.WIDENING),
        (_operation(), _operation(_query("q", required=True)), Grade.BREAKING),
        (_operation(_query("q")), _operation(), Grade.BREAKING),
        (_operation(_query("q")), _operation(_query("q", required=True)), Grade.BREAKING),
        (_operation(_query("q", required=True)), _operation(_query("q")), Grade.WIDENING),
        (_operation(_query("q")), _operation(_query("q", style="pipeDelimited")), Grade.BREAKING),
        (_operation(_body("text/a")), _operation(_body("text/a"), _body("text/b")), Grade.WIDENING),
        (_operation(_body("text/a"), _body("text/b")), _operation(_body("text/a")), Grade.BREAKING),
        (_operation(), _operation(_body("text/a")), Grade.BREAKING),
        (_operation(results=(_status("200"),)), _operation(), Grade.BREAKING),
        (_operation(results=(_status("200"),)), _operation(results=(_status("200"), _status("201"))), Grade.BREAKING),
        (_operation(results=(_status("200"),)), _operation(results=(_status("200"), _status("404"))), Grade.WIDENING),
        (_operation(), _operation(results=(_status("200"),)), Grade.WIDENING),
        (_operation(), _operation(path="/y"), Grade.BREAKING),
        (_operation(), Contracts(contracts={}, digest=""), Grade.BREAKING),
        (Contracts(contracts={}, digest=""), _operation(), Grade.WIDENING),
    ],
)
def test_parts_and_results_that_come_and_go(old: Contracts, new: Contracts, grade: Grade) -> None:
    assert worst(difference(old, new)) is grade


def test_a_change_says_where_it_is_and_what_it_was() -> None:
    old = tool({"type": "object", "properties": {"d/e": {"type": "array", "items": {"maximum": 9}}}})
    new = tool({"type": "object", "properties": {"d/e": {"type": "array", "items": {"maximum": 5}}}})
    (change,) = difference(old, new)
    assert (change.contract, change.location, change.pointer) == ("t", Location.ARGUMENTS, "/d~1e/*")
    assert (change.keyword, change.what) == ("maximum", "9 -> 5")


def test_words_of_a_tool_are_told_though_they_decide_nothing() -> None:
    old = Contract(name="t", origin=Origin.MCP, parts=(), annotations={"readOnlyHint": True}, description="reads")
    new = Contract(name="t", origin=Origin.MCP, parts=(), annotations={"readOnlyHint": False}, description="pays")
    assert [(one.grade, one.keyword) for one in compare(old, new, {}, {})] == [
        (Grade.BREAKING, "annotations.readOnlyHint"),
        (Grade.TEXT_ONLY, "description"),
    ]


def test_an_operation_under_another_name_says_what_it_is_called_now() -> None:
    old = _operation()
    renamed = Contract(name="new", origin=Origin.OPENAPI, parts=(), method="GET", path="/x")
    new = Contracts(contracts={"new": renamed}, aliases={"GET /x": "new"}, digest="")
    told = {one.contract: one.what for one in difference(old, new)}
    assert told == {"op": "removed; its path is now called by new", "new": "added"}


def test_what_is_too_deep_to_compare_is_breaking() -> None:
    def nested(levels: int, leaf: Schema) -> Schema:
        schema = leaf
        for _ in range(levels):
            schema = {"type": "object", "properties": {"a": schema}}
        return schema

    assert graded(nested(60, WORD), nested(60, {"type": ["string", "null"]})) is Grade.WIDENING
    assert graded(nested(400, WORD), nested(400, {"type": ["string", "null"]})) is Grade.BREAKING


def test_references_are_followed_and_recursion_ends() -> None:
    root = {"$ref": f"{URI}#/defs/a%20~1"}

    def tree(leaf: Schema) -> Mapping[str, object]:
        return {URI: {"defs": {"a /": {"properties": {"leaf": leaf, "kids": {"items": root}}, "type": "object"}}}}

    old, new = tool(root, tree(WORD)), tool(root, tree({"type": ["string", "null"]}))
    assert [(one.grade, one.pointer) for one in difference(old, new)] == [(Grade.WIDENING, "/leaf")]
    assert [(one.grade, one.pointer) for one in difference(new, old)] == [(Grade.BREAKING, "/leaf")]


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ({"pattern": "a -> b"}, {}, '"a -\\x3e b" -> none'),
        ({"enum": ["a", "a\u200b"]}, {"enum": ["a"]}, '["a","a\\u200b"] -> ["a"]'),
        ({"enum": [f"{n:03}" for n in range(99)]}, {"enum": [f"{n:03}" for n in range(98)]}, None),
    ],
)
def test_both_sides_of_a_change_are_shown_in_the_order_of_time(old: Schema, new: Schema, what: str | None) -> None:
    for before, after in ((old, new), (new, old)):
        (change,) = difference(tool(before), tool(after))
        mine, _, theirs = change.what.partition(" -> ")
        if what is not None:
            assert f"{mine} -> {theirs}" == what if before is old else f"{theirs} -> {mine}" == what
        else:
            assert ('"098"' in mine, '"098"' in theirs) == (before is old, before is new)
