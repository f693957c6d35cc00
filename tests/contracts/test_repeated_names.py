"""Names that stand twice where once is meant, and operations that have one name: what servers publish all the same."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from theodolite.contracts import read
from theodolite.contracts.lint import Flaw, Severity, lint
from theodolite.core.contract import Contracts, Kind
from theodolite.core.errors import ConfigError
from theodolite.detectors.payload.engine import Checker

TWICE: dict[str, object] = {
    "type": "object",
    "required": ["a", "b", "a"],
    "properties": {"a": {"type": ["string"] * 2}},
}
DRAFTS = (
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
)
PLACES = {"/required", "/properties/a/type"}


def told(contracts: Contracts, start: str) -> set[str]:
    notes = [note for note in lint(contracts).notes if note.flaw is Flaw.REPEATED_NAME]
    assert all(note.what.startswith("a name stands in this list twice") for note in notes)
    return {note.pointer.removeprefix(start) for note in notes}


def held(contracts: Contracts, name: str) -> None:
    checker = Checker(contracts)
    assert checker.check(name, {"a": "x", "b": 1}) == ()
    assert [(one.kind, one.pointer) for one in checker.check(name, {"a": "x"})] == [(Kind.MISSING_REQUIRED, "/b")]
    assert [(one.kind, one.pointer) for one in checker.check(name, {"b": 1})] == [(Kind.MISSING_REQUIRED, "/a")]


@pytest.mark.parametrize("draft", DRAFTS)
@pytest.mark.parametrize("key", ["inputSchema", "parameters", "input_schema"])
def test_a_tool_with_a_name_twice_is_read_and_it_is_told(key: str, draft: str) -> None:
    contracts = read([{"name": "t", key: {"$schema": draft, **TWICE}}])
    assert told(contracts, f"/0/{key}") == PLACES
    assert {gap.contract for gap in contracts.gaps} == {"t"}
    held(contracts, "t")


def test_a_schema_alone_with_a_name_twice_is_read_and_it_is_told() -> None:
    contracts = read(TWICE)
    assert told(contracts, "") == PLACES
    held(contracts, "schema")


@pytest.mark.parametrize("version", ["3.0.3", "3.1.0", "3.2.0"])
def test_a_body_with_a_name_twice_is_read_and_it_is_told(version: str) -> None:
    schema = TWICE if version != "3.0.3" else {**TWICE, "properties": {"a": {"type": "string"}}}
    body = {"content": {"application/json": {"schema": schema}}}
    contracts = read({"openapi": version, "paths": {"/a": {"put": {"operationId": "t", "requestBody": body}}}})
    places = PLACES if version != "3.0.3" else {"/required"}
    assert told(contracts, "/paths/~1a/put/requestBody/content/application~1json/schema") == places
    held(contracts, "t")
    assert (lint(contracts).checked, lint(contracts).partly) == (1, 0)


@pytest.mark.parametrize(
    ("draft", "keyword"), [(DRAFTS[0], "dependencies"), (DRAFTS[2], "dependencies"), (DRAFTS[4], "dependentRequired")]
)
def test_names_that_depend_on_another_count_once_too(draft: str, keyword: str) -> None:
    schema = {"$schema": draft, "type": "object", keyword: {"a": ["b", "b"], "c": ["d"]}}
    contracts = read([{"name": "t", "inputSchema": schema}])
    assert told(contracts, "/0/inputSchema") == {f"/{keyword}/a"}
    checker = Checker(contracts)
    assert checker.check("t", {"a": 1, "b": 1}) == ()
    assert [one.kind for one in checker.check("t", {"a": 1})] == [Kind.DEPENDENCY_MISSING]


def test_what_looks_like_such_a_list_and_is_data_or_a_property_stays_as_it_is() -> None:
    data = {"required": ["a", "a"]}
    schema = {"type": "object", "properties": {"required": {"const": data}, "type": {"enum": [data]}}}
    contracts = read([{"name": "t", "inputSchema": schema}])
    assert not contracts.gaps
    checker = Checker(contracts)
    assert checker.check("t", {"required": data, "type": data}) == ()
    assert [one.pointer for one in checker.check("t", {"required": {"required": ["a"]}})] == ["/required"]


def test_a_repeated_name_is_a_warning_and_no_lack_of_a_check() -> None:
    assert Flaw.REPEATED_NAME.severity is Severity.WARNING


def operations(names: Iterable[str]) -> dict[str, object]:
    return {
        "openapi": "3.0.3",
        "paths": {f"/{place}": {"get": {"operationId": name}} for place, name in enumerate(names)},
    }


def test_an_operation_id_that_is_there_twice_is_an_error_with_both_places_and_what_to_do() -> None:
    with pytest.raises(ConfigError, match="rename or remove one of them") as caught:
        read(operations("xyx"))
    assert str(caught.value).startswith("/paths/~12/get: the operationId 'x' is that of /paths/~10/get too")


def test_a_tool_that_is_there_twice_is_an_error_with_both_places_and_what_to_do() -> None:
    with pytest.raises(ConfigError, match="rename or remove one of them") as caught:
        read([{"name": "x", "parameters": TWICE}, {"name": "x", "parameters": TWICE}])
    assert str(caught.value).startswith("/1: the name 'x' is that of /0 too")
