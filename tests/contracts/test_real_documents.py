"""Differences, lint and pins of published documents: nothing differs from itself, and seeded changes are graded."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from theodolite.contracts import read
from theodolite.contracts.difference import Grade, difference, worst
from theodolite.contracts.digest import canonical
from theodolite.contracts.document import find, is_object
from theodolite.contracts.lint import lint
from theodolite.contracts.pinning import Pins, pinned, verify, write
from theodolite.contracts.pinning import read as read_pins
from theodolite.core.contract import Contracts
from theodolite.readers.specification import content, parse

SHARED = Path(__file__).parents[3] / "shared" / "data" / "openapi"
DOCUMENTS = (
    "airflow-2.10.5-v1.yaml",
    "github-rest-api.min.json",
    "jupyter-server-2.21.1-swagger2.yaml",
    "kubernetes-1.13-swagger2.json",
    "notion-openapi.json",
)
pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not SHARED.is_dir(), reason="the published documents of ../shared/data are absent"),
]


@cache
def published(name: str) -> object:
    return parse(content(SHARED / name), name=name).document


@cache
def contracts(name: str) -> Contracts:
    return read(published(name))


def changed(name: str, pointer: str, change: Callable[[dict[str, object]], None]) -> Contracts:
    document = copy.deepcopy(published(name))
    place = find(document, pointer)
    assert is_object(place)
    change(place)
    return read(document)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_does_not_differ_from_itself(name: str) -> None:
    again = read(copy.deepcopy(published(name)))
    assert difference(contracts(name), again) == ()
    kept = read_pins(write(Pins(sources={name: pinned(contracts(name))})), "pins.json")
    assert verify(kept.sources[name], again) == ()


@pytest.mark.parametrize(
    "name", ["notion-openapi.json", "airflow-2.10.5-v1.yaml", "jupyter-server-2.21.1-swagger2.yaml"]
)
def test_nothing_differs_where_each_contract_is_compared_word_by_word(name: str) -> None:
    # Without the hashes, which say so before anything is compared.
    from theodolite.contracts.difference import Memory, compare

    old, again, memory = contracts(name), read(copy.deepcopy(published(name))), Memory()
    for called, contract in old.contracts.items():
        assert compare(contract, again.contracts[called], old.documents, again.documents, memory) == ()


def edit(**keys: object) -> Callable[[dict[str, object]], None]:
    return lambda place: place.update(keys)


def unname(place: dict[str, object]) -> None:
    del place["name"]


NOTION, AIRFLOW, JUPYTER = DOCUMENTS[4], DOCUMENTS[0], DOCUMENTS[2]
TEXT = "/components/schemas/richTextRequest"
DAG = "/components/schemas/DAG/properties"


@pytest.mark.parametrize(
    ("name", "pointer", "change", "grade", "least"),
    [
        (NOTION, TEXT, edit(required=["new"]), Grade.BREAKING, 1),
        (NOTION, TEXT, edit(description="x"), Grade.TEXT_ONLY, 1),
        (AIRFLOW, f"{DAG}/is_paused", edit(type="string"), Grade.BREAKING, 3),
        (AIRFLOW, DAG, edit(new={"type": "string"}), Grade.WIDENING, 3),
        (JUPYTER, "/definitions/Session/properties", unname, Grade.BREAKING, 1),
    ],
)
def test_a_seeded_change_of_a_component_is_graded_wherever_it_is_used(
    name: str, pointer: str, change: Callable[[dict[str, object]], None], grade: Grade, least: int
) -> None:
    changes = difference(contracts(name), changed(name, pointer, change))
    assert worst(changes) is grade, changes
    assert len({one.contract for one in changes}) >= least


@pytest.mark.parametrize("name", DOCUMENTS)
def test_lint_counts_every_operation_and_says_why_one_is_not_checked(name: str) -> None:
    told = lint(contracts(name))
    assert told.operations == len(contracts(name).contracts)
    assert told.checked == told.operations
    assert 0 < told.typed <= told.fields
    assert len({canonical([note.flaw, note.contract, note.location, note.pointer]) for note in told.notes}) == len(
        told.notes
    )
