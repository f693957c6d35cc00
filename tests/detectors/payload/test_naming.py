"""Which names of a call its contract declares: what is kept of a place has no name that a call made up."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from theodolite.contracts import read
from theodolite.core.contract import Contracts, Divergence, Kind
from theodolite.detectors.payload.drift import ShapeDrift
from theodolite.detectors.payload.engine import Checker
from theodolite.detectors.payload.naming import Naming, meant, nearest

COUNTS: Mapping[str, object] = {"type": "object", "additionalProperties": {"type": "integer"}}


def schema(ref: str) -> Mapping[str, object]:
    tree = {
        "type": "object",
        "properties": {
            "and": {"type": "array", "items": {"$ref": ref}},
            "not": {"$ref": ref},
            "n": {"type": "integer"},
            "m": COUNTS,
        },
        "required": ["n"],
    }
    return {
        "$defs": {"tree": tree},
        "type": "object",
        "properties": {
            "m": COUNTS,
            "tree": {"$ref": ref},
            "closed": {"type": "object", "properties": {"a": {"type": "null"}}, "additionalProperties": False},
            "p": {"type": "object", "patternProperties": {"^x": {"type": "integer"}}},
            "either": {"anyOf": [{"type": "null"}, {"properties": {"b/c": {"type": "integer"}}, "type": "object"}]},
        },
    }


DECLARED = {"m", "tree", "closed", "p", "either", "and", "not", "n", "a", "b/c"}
TOOL = read([{"name": "op", "inputSchema": schema("#/$defs/tree")}])


def operation(**parameters: str) -> Contracts:
    given = [
        {"name": name, "in": place, "required": place == "path", "schema": {"type": "integer"}}
        for name, place in parameters.items()
    ]
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/whole"}}}}
    put = {"operationId": "op", "parameters": given, "requestBody": body}
    shared = {"schemas": {"whole": schema("#/components/schemas/whole/$defs/tree")}}
    paths = {"/{id}": {"put": put}}
    return read({"openapi": "3.1.0", "info": {"title": "", "version": ""}, "paths": paths, "components": shared})


REST = operation(id="path", n="query", **{"X-Key": "header"})
# Long, hostile, like words of the rules or like indices, and sometimes by chance one that is declared.
invented = st.text(max_size=3).map("secret{}".format) | st.sampled_from(
    ["9", "*", "a.b", "body.z", "z__path", "s" * 900]
)
names = invented | st.sampled_from(sorted(DECLARED))
calls = st.recursive(
    st.sampled_from(["text", 1, None, 0.5]),
    lambda inner: st.dictionaries(names, inner, max_size=4) | st.lists(inner, max_size=3),
    max_leaves=12,
)
words = st.sampled_from(["path", "query", "header", "body", "x-key", "X-KEY", "id__path", "path.id", "body.m"])
arguments = st.dictionaries(names | words, calls, max_size=5) | calls


def places(contracts: Contracts, call: object) -> set[str]:
    checker, naming = Checker(contracts), Naming(contracts)
    found = (*checker.check("op", call), *checker.observe("op", call))
    return {naming.place("op", one) for one in found}


@given(arguments, st.sampled_from([TOOL, REST]))
def test_no_name_that_a_call_made_up_stands_in_what_is_kept(call: object, contracts: Contracts) -> None:
    spelled = {one.replace("/", "~1") for one in DECLARED}
    rules = {"*", "path", "query", "header", "body", "id", "n", "X-Key", "id__path", "path.id", "body.m"}
    for place in places(contracts, call):
        assert set(place.split("/")[1:]) <= spelled | rules, place


@given(st.lists(arguments, max_size=4))
def test_what_drift_holds_is_bounded_by_the_contract(some: list[object]) -> None:
    checker, naming, drift = Checker(TOOL), Naming(TOOL), ShapeDrift()
    for call in some:
        found = checker.check("op", call)
        drift.update("op", [Divergence(kind=one.kind, pointer=naming.place("op", one)) for one in found])
    for track in drift.tracks.values():
        assert track.pointer.count("/") <= 7
        names = track.pointer.split("/")[1:]
        assert all(name == "*" or names.count(name) <= 2 for name in names)  # `m` is declared at two places


def test_fresh_names_fill_no_memory() -> None:
    checker, naming, drift = Checker(TOOL), Naming(TOOL), ShapeDrift()
    for call in range(50):
        deep: dict[str, object] = {"n": 1}
        for level in range(call):
            deep = {"n": "x", "not": deep} if level % 2 else {"n": "x", "and": [deep]}
        made = {f"alice{call}-{one}@example.com": "x" for one in range(100)}
        for arguments in ({"m": made}, {"p": {f"x{name}": "" for name in made}}, {"closed": made}, {"tree": deep}):
            found = checker.check("op", arguments)
            drift.update("op", [Divergence(kind=one.kind, pointer=naming.place("op", one)) for one in found])
    assert {(track.pointer, track.kind) for track in drift.tracks.values()} >= {
        ("/m/*", Kind.TYPE_MISMATCH),
        ("/closed/*", Kind.UNKNOWN_FIELD),
    }
    assert len(drift.tracks) <= 12
    assert "alice" not in repr(drift)


@pytest.mark.parametrize(
    ("contracts", "pointer", "kind", "place"),
    [
        (TOOL, "/m/alice@example.com", Kind.TYPE_MISMATCH, "/m/*"),
        (TOOL, "/closed/a", Kind.TYPE_MISMATCH, "/closed/a"),
        (TOOL, "/either/b~1c", Kind.TYPE_MISMATCH, "/either/b~1c"),
        (TOOL, "/tree/and/3/not/and/1/m/bob", Kind.TYPE_MISMATCH, "/tree/and/*/m/*"),
        (TOOL, "/tree/and/3/n", Kind.MISSING_REQUIRED, "/tree/and/*/n"),
        (TOOL, "/bob/and/carol/deep", Kind.TOO_DEEP, "/*"),
        (TOOL, "/bob/n", Kind.MISSING_REQUIRED, "/*/n"),
        (TOOL, f"/bob/{'n' * 500}\N{HORIZONTAL ELLIPSIS}", Kind.MISSING_REQUIRED, "/*"),
        (TOOL, "", Kind.TYPE_MISMATCH, ""),
        (REST, "/id", Kind.TYPE_MISMATCH, "/id"),
        (REST, "/path/id", Kind.TYPE_MISMATCH, "/path/id"),
        (REST, "/path/bob", Kind.UNDECLARED_FIELD, "/path/*"),
        (REST, "/x-KEY", Kind.TYPE_MISMATCH, "/X-Key"),
        (REST, "/header/x-kEY", Kind.TYPE_MISMATCH, "/header/X-Key"),
        (REST, "/X-kEy__header", Kind.TYPE_MISMATCH, "/X-Key__header"),
        (REST, "/body/m/bob", Kind.TYPE_MISMATCH, "/body/m/*"),
        (REST, "/body.m/bob", Kind.TYPE_MISMATCH, "/body.m/*"),
        (REST, "/body.bob", Kind.UNKNOWN_FIELD, "/*"),
        (REST, "/m/bob", Kind.TYPE_MISMATCH, "/m/*"),
        (REST, "/bob", Kind.UNKNOWN_FIELD, "/*"),
    ],
)
def test_declared_names_stay_and_others_do_not(contracts: Contracts, pointer: str, kind: Kind, place: str) -> None:
    assert Naming(contracts).place("op", Divergence(kind=kind, pointer=pointer)) == place


def test_of_an_operation_that_nobody_knows_nothing_is_declared() -> None:
    assert Naming(TOOL).place("other", Divergence(kind=Kind.TYPE_MISMATCH, pointer="/m")) == "/*"


def test_who_names_no_operation_is_told_those_that_are_near() -> None:
    assert meant("opp", TOOL) == "did you mean 'op'?"
    assert meant("createUser", TOOL) == "it has, for instance, 'op'"
    assert meant("op", read([])) == "nor has it any other"
    assert nearest("x" * 10_000, ["a\n"]) == (("a\n",), False)
    assert "\n" not in meant("a", read([{"name": "a\nb", "inputSchema": COUNTS}]))
