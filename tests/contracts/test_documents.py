"""The real documents, as they were published."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from jsonschema_rs import Registry, validator_for

from theodolite.contracts import read
from theodolite.contracts.document import find, is_list, is_object
from theodolite.core.contract import Contract, Contracts, Location
from theodolite.readers.specification import content, parse

DATA = Path(__file__).parents[3] / "shared" / "data" / "openapi"
# Operations, and those with a body, counted in the documents by other means.
DOCUMENTS = {
    "airflow-2.10.5-v1.yaml": (89, 26),
    "github-rest-api.min.json": (1223, 344),
    "jupyter-server-2.21.1-swagger2.yaml": (32, 7),
    "kubernetes-1.13-swagger2.json": (1014, 401),
    "notion-openapi.json": (24, 11),
}

pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not DATA.is_dir(), reason="the OpenAPI documents of ../shared/data are absent"),
]
every_document = pytest.mark.parametrize("name", DOCUMENTS)


@cache
def document(name: str) -> dict[str, object]:
    found = parse(content(DATA / name), name=name).document
    assert is_object(found)
    return found


@cache
def contracts(name: str) -> Contracts:
    return read(document(name))


def contract(name: str, operation: str) -> Contract:
    found = contracts(name).find(operation)
    assert found is not None
    return found


@every_document
def test_every_operation_is_read(name: str) -> None:
    operations, bodies = DOCUMENTS[name]
    found = contracts(name).contracts.values()
    assert len(found) == operations
    assert sum(any(part.location is Location.BODY for part in of.parts) for of in found) == bodies
    for of in found:
        node = find(document(name), of.pointer)
        assert is_object(node)
        assert contract(name, f"{of.method} {of.path}") is of
        assert node.get("operationId", of.name) == of.name


@every_document
def test_every_parameter_and_response_with_a_schema_is_a_part(name: str) -> None:
    for of in contracts(name).contracts.values():
        path = find(document(name), of.pointer.rpartition("/")[0])
        node = find(document(name), of.pointer)
        assert is_object(path)
        assert is_object(node)
        listed = [entry for place in (path, node) for entry in _list(place.get("parameters"))]
        named = {(_followed(name, entry).get("in"), _followed(name, entry).get("name")) for entry in listed}
        outside = {(place, who) for place, who in named if place not in {"body", "formData"}}
        parts = Counter((part.location.value, part.name) for part in of.parts if part.location is not Location.BODY)
        assert parts == Counter(outside)
        responses = node.get("responses")
        assert is_object(responses)
        with_schema = {
            status
            for status, entry in responses.items()
            if "schema" in _followed(name, entry) or _followed(name, entry).get("content")
        }
        assert {part.status for part in of.results} == with_schema


@every_document
def test_every_schema_is_taken_by_the_engine(name: str) -> None:
    read_once = contracts(name)
    registry = Registry([(uri, held) for uri, held in read_once.documents.items() if is_object(held)])
    seen: set[str] = set()
    for of in read_once.contracts.values():
        for part in (*of.parts, *of.results):
            if is_object(part.schema) and str(part.schema) not in seen:
                seen.add(str(part.schema))
                validator_for(part.schema, registry=registry, offline=True)
    assert len(seen) > len(read_once.contracts)


@every_document
def test_a_pointer_of_a_part_leads_to_what_the_document_says(name: str) -> None:
    for of in contracts(name).contracts.values():
        for part in (*of.parts, *of.results):
            assert find(document(name), part.pointer, None) is not None


def test_what_is_not_checked_is_told() -> None:
    gaps = {name: Counter(gap.reason for gap in contracts(name).gaps) for name in DOCUMENTS}
    assert {name: sum(found.values()) for name, found in gaps.items() if found} == {
        "jupyter-server-2.21.1-swagger2.yaml": 1,
        "notion-openapi.json": 4,
    }


def _list(value: object) -> list[object]:
    return value if is_list(value) else []


def _followed(name: str, node: object) -> dict[str, object]:
    assert is_object(node)
    reference = node.get("$ref")
    return _followed(name, find(document(name), reference[1:])) if isinstance(reference, str) else node
