"""Contracts that the settings name: read from files beside them, and made one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from theodolite.config.contracts import merged
from theodolite.config.settings import read_settings
from theodolite.config.wiring import load, wire
from theodolite.contracts import read
from theodolite.core.contract import Contracts
from theodolite.core.errors import ConfigError
from theodolite.core.event import ToolCallProposed

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
TOOLS = json.dumps([{"name": "count", "inputSchema": SCHEMA}])
API = """
openapi: 3.1.0
info: {title: shop, version: '1'}
paths:
  /orders:
    get: {operationId: listOrders, parameters: [{name: page, in: query, schema: {type: integer}}]}
"""


def settings(folder: Path, files: dict[str, str], named: list[str] | None = None) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    path = folder / "theodolite.toml"
    listed = json.dumps(list(files) if named is None else named)
    path.write_text(f"plugins = false\n[detectors.payload]\ncontracts = {listed}\n", encoding="utf-8")
    return path


def refused(path: Path, tool: str, **arguments: object) -> bool:
    with load(path) as monitor, monitor.session("s-1") as session:
        return not session.observe(ToolCallProposed(tool=tool, arguments=arguments)).allowed


def test_calls_are_held_against_all_files_beside_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = settings(tmp_path, {"tools.json": TOOLS, "sub/api.yaml": API})
    monkeypatch.chdir("/")
    assert refused(path, "count", n="3")
    assert not refused(path, "count", n=3)
    assert refused(path, "listOrders", page="a")
    assert refused(path, "GET /orders", page="a")
    assert not refused(path, "listOrders", page=2)
    assert refused(path, "unheard_of")


def test_without_files_only_what_a_session_declares_counts(tmp_path: Path) -> None:
    assert not refused(settings(tmp_path, {}), "count", n="3")


def test_a_plain_schema_is_that_of_the_tool_which_its_file_is_named_after(tmp_path: Path) -> None:
    path = settings(tmp_path, {"count.json": json.dumps(SCHEMA)})
    assert refused(path, "count", n="3")


@pytest.mark.parametrize(
    ("files", "named", "told"),
    [
        ({}, ["gone.json"], "detectors.payload.contracts: .*gone.json cannot be read"),
        ({"bad.json": "{"}, None, "detectors.payload.contracts: .*bad.json: line 1: it is no JSON"),
        ({"other.json": '{"a": 1}'}, None, "detectors.payload.contracts: .*other.json: this object is no contract"),
        (
            {"tools.json": '[{"name": "a", "inputSchema": {"type": "strng"}}]'},
            None,
            "detectors.payload.contracts: .*tools.json: .*/0/inputSchema",
        ),
        (
            {"fine.json": TOOLS, "wrong.json": '[{"name": "a", "inputSchema": {"pattern": "("}}]'},
            None,
            "detectors.payload.contracts: .*wrong.json: .*/0/inputSchema",
        ),
        ({"a.json": TOOLS, "b.json": TOOLS}, None, "'count' is in .*a.json and in .*b.json"),
        ({"a.json": TOOLS}, ["a.json", "a.json"], "names .*a.json twice"),
    ],
)
def test_what_is_wrong_with_a_file_is_told_with_its_name(
    tmp_path: Path, files: dict[str, str], named: list[str] | None, told: str
) -> None:
    with pytest.raises(ConfigError, match=told):
        wire(read_settings(settings(tmp_path, files, named)))


@pytest.mark.parametrize("value", ['"tools.json"', "[1]", "true"])
def test_contracts_are_a_list_of_names(tmp_path: Path, value: str) -> None:
    path = tmp_path / "theodolite.toml"
    path.write_text(f"plugins = false\n[detectors.payload]\ncontracts = {value}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"detectors\.payload\.contracts"):
        load(path)


def one(names: list[str]) -> Contracts:
    return read([{"name": name, "inputSchema": {"title": name}} for name in names])


@given(st.lists(st.lists(st.sampled_from("abcdef"), unique=True), min_size=1, max_size=3))
def test_each_name_is_found_after_a_merge_or_it_is_refused(lists: list[list[str]]) -> None:
    sources = {f"{place}.json": one(names) for place, names in enumerate(lists)}
    every = [name for names in lists for name in names]
    if len(set(every)) < len(every):
        with pytest.raises(ConfigError, match="cannot say which"):
            merged(sources)
        return
    whole = merged(sources)
    assert set(whole.contracts) == set(every)
    for source in sources.values():
        for name, contract in source.contracts.items():
            assert whole.find(name) == contract
        assert source.documents.items() <= whole.documents.items()


def test_a_tool_without_a_schema_may_be_in_two_files() -> None:
    bash = read([{"type": "bash_20250124", "name": "bash"}])
    assert set(merged({"a.json": bash, "b.json": bash}).contracts) == {"bash"}


def test_a_path_that_two_files_have_is_a_gap_and_no_guess() -> None:
    other = json.loads(json.dumps(read_api("listThem")))
    whole = merged({"a.yaml": read(read_api("listOrders")), "b.yaml": read(other)})
    assert set(whole.contracts) == {"listOrders", "listThem"}
    assert whole.find("GET /orders") is None
    assert [gap.contract for gap in whole.gaps] == ["GET /orders"]


def read_api(name: str) -> dict[str, object]:
    return {
        "openapi": "3.1.0",
        "info": {"title": "shop", "version": "1"},
        "paths": {"/orders": {"get": {"operationId": name}}},
    }
