"""Documents of our own, with what the published ones lack: OpenAPI 3.2, schemas with names, forms, cookies, tools."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest
from tests.quality.payload.comparison import Case, Comparison
from tests.quality.payload.differences import explained
from tests.quality.payload.mutations import Fault
from tests.quality.payload.published import Document, Json, read

from theodolite.contracts import read as contracts_of
from theodolite.core.contract import Divergence, Kind, Location
from theodolite.detectors.payload.engine import Checker

FOLDER = Path(__file__).parent / "documents"
HEADER, FRACTION, READ_ONLY, LINE = (
    "a header that is described elsewhere",
    "1.0 is an integer",
    "what is read-only was sent",
    "a line feed after what a pattern ends with",
)
# Which entries of the list of differences each document needs.
REASONS = {
    "newest.yaml": {LINE},
    "dynamic.yaml": set[str](),
    "legacy.yaml": {HEADER, FRACTION, READ_ONLY, LINE},
    "swagger.yaml": {FRACTION, LINE},
    "references.yaml": {FRACTION, READ_ONLY},
}
TOOLS = ("closed", "recursive", "composed", "listed", "draft_seven", "weather", "add", "note")


class Deaf:
    """Finds nothing."""

    def check(
        self, name: str, arguments: object, *, location: Location | None = None, media_type: str = ""
    ) -> tuple[Divergence, ...]:
        del name, arguments, location, media_type
        return ()


class Wary:
    """Denies everything."""

    def check(
        self, name: str, arguments: object, *, location: Location | None = None, media_type: str = ""
    ) -> tuple[Divergence, ...]:
        del name, arguments, location, media_type
        return (Divergence(kind=Kind.FORBIDDEN, pointer=""),)


class Shallow:
    """Looks at the top of bodies alone: what is below counts only where the guard finds nothing at the top."""

    def __init__(self, checker: Checker) -> None:
        self.checker = checker

    def check(
        self, name: str, arguments: object, *, location: Location | None = None, media_type: str = ""
    ) -> tuple[Divergence, ...]:
        found = self.checker.check(name, arguments, location=location, media_type=media_type)
        return tuple([one for one in found if one.pointer.count("/") < 3])


def differing(cases: Iterable[Case]) -> tuple[list[str], set[str]]:
    """Return where guard and oracle differ for no listed reason, and the reasons that were needed."""
    parting = [(case, explained(case)) for case in cases if case.allowed == case.denied]
    return [case.told() for case, why in parting if why is None], {why.name for _, why in parting if why is not None}


@pytest.mark.parametrize("file", REASONS)
def test_every_fault_is_denied_and_nothing_valid_is(file: str) -> None:
    document = read(file, FOLDER)
    comparison = Comparison(document, most=10**9)
    unlisted, reasons = differing(comparison.cases(document.operations()))
    assert not unlisted, "\n".join(unlisted[:20])
    assert reasons == REASONS[file]
    tally = comparison.tally
    assert not tally.without
    assert {fault for place, fault, depth in tally.rejected if place == "body" and depth > 1} >= {
        Fault.TYPE, Fault.NULL, Fault.DOUBLE_ENCODE
    }  # fmt: skip
    assert tally.allowed.total() > 50


@pytest.mark.parametrize("name", TOOLS)
def test_every_fault_in_the_arguments_of_a_tool_is_denied(name: str) -> None:
    comparison = Comparison(Document(name, tools()[name]), most=10**9, guard=Checker(contracts_of(listed())))
    unlisted, reasons = differing(comparison.cases_of_schema(name))
    assert not unlisted, "\n".join(unlisted[:20])
    assert not reasons
    assert not comparison.tally.without
    assert (
        min(comparison.tally.valid, comparison.tally.rejected.total() // 20, comparison.tally.allowed.total() // 5) > 2
    )


def tools() -> dict[str, dict[str, Json]]:
    """Return what the tools of both lists take, by name."""
    found: dict[str, dict[str, Json]] = {}
    for entry in listed():
        tool = entry.get("function", entry)
        assert isinstance(tool, dict)
        schema = next(tool[key] for key in ("inputSchema", "parameters", "input_schema") if key in tool)
        assert isinstance(schema, dict)
        found[str(tool["name"])] = schema
    return found


def listed() -> list[dict[str, Json]]:
    """Return the tools of both lists as they are published."""
    mcp: dict[str, list[dict[str, Json]]] = json.loads((FOLDER / "tools.json").read_text(encoding="utf-8"))
    functions: list[dict[str, Json]] = json.loads((FOLDER / "functions.json").read_text(encoding="utf-8"))
    return [*mcp["tools"], *functions]


def test_a_guard_that_is_deaf_misses_everything_that_the_oracle_rejects() -> None:
    document = read("legacy.yaml", FOLDER)
    comparison = Comparison(document, most=10**9, guard=Deaf())
    missed = sum(case.allowed == case.denied for case in comparison.cases(document.operations()))
    assert missed == comparison.tally.rejected.total() > 500
    assert comparison.tally.caught.total() == 0


def test_a_guard_that_denies_all_raises_as_many_false_alarms_as_there_are_calls_that_the_oracle_allows() -> None:
    document = read("legacy.yaml", FOLDER)
    comparison = Comparison(document, most=10**9, guard=Wary())
    alarms = sum(case.allowed == case.denied for case in comparison.cases(document.operations()))
    assert alarms == comparison.tally.allowed.total() + comparison.tally.valid > 100


def test_a_guard_that_looks_at_the_top_alone_is_found_out_below_it() -> None:
    document = read("swagger.yaml", FOLDER)
    comparison = Comparison(document, most=10**9, guard=Shallow(Checker(contracts_of(document.root))))
    missed, _ = differing(comparison.cases(document.operations()))
    tally = comparison.tally
    deep = [key for key in tally.rejected if key[0] == "body" and key[2] > 2]
    assert len(missed) >= sum(tally.rejected[key] for key in deep) > 100
    assert not sum(tally.caught[key] for key in deep)
    assert tally.caught.total() > 300


def test_what_swagger_says_must_not_be_sent_is_denied() -> None:
    """Swagger 2.0, Schema Object, readOnly: it MUST NOT be sent as part of the request. OpenAPI 3: it SHOULD NOT."""
    schema = {"type": "object", "properties": {"id": {"type": "integer", "readOnly": True}}}
    parameters = [{"name": "body", "in": "body", "schema": schema}]
    paths = {"/a": {"post": {"operationId": "a", "parameters": parameters}}}
    checker = Checker(contracts_of({"swagger": "2.0", "paths": paths}))
    assert [one.kind for one in checker.check("a", {"id": 3}) if one.denies] == [Kind.READ_ONLY_SENT]


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"additionalProperties": False}},
        {"properties": {"additionalProperties": {"$ref": "#/additionalProperties"}}, "additionalProperties": False},
    ],
)
def test_a_property_that_is_forbidden_is_denied_whatever_its_name(schema: dict[str, object]) -> None:
    checker = Checker(contracts_of([{"name": "a", "inputSchema": schema}]))
    assert any(one.denies for one in checker.check("a", {"additionalProperties": 1}))


@pytest.mark.parametrize("version", ["3.0.3", "3.1.0"])
def test_a_name_that_is_required_twice_is_there_when_it_is_there_once(version: str) -> None:
    """No list of names should have one twice (JSON Schema, required), and documents have it all the same."""
    schema = {
        "type": "object",
        "required": ["a", "a"],
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    }
    content = {"application/json": {"schema": schema}}
    paths = {"/a": {"post": {"operationId": "a", "requestBody": {"content": content}}}}
    checker = Checker(contracts_of({"openapi": version, "paths": paths}))
    assert not checker.check("a", {"a": 1, "b": 2})


def test_a_body_that_is_missing_what_is_required_is_denied_though_it_is_required_twice() -> None:
    schema = {"type": "object", "required": ["a", "a"], "properties": {"a": {"type": "integer"}}}
    content = {"application/json": {"schema": schema}}
    paths = {"/a": {"post": {"operationId": "a", "requestBody": {"content": content}}}}
    checker = Checker(contracts_of({"openapi": "3.0.3", "paths": paths}))
    assert [one.kind for one in checker.check("a", {"b": 1})] == [Kind.MISSING_REQUIRED]
