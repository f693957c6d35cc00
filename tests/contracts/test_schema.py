"""The official suite of JSON Schema, read as contracts: what is normalized means what it meant."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from jsonschema_rs import Registry, validator_for

from theodolite.contracts import read
from theodolite.contracts.document import is_object

SUITE = Path(__file__).parents[3] / "shared" / "data" / "json-schema-test-suite"
HERE = "http://localhost:1234/"
DRAFTS = {
    "draft4": ("http://json-schema.org/draft-04/schema#", 618),
    "draft6": ("http://json-schema.org/draft-06/schema#", 839),
    "draft7": ("http://json-schema.org/draft-07/schema#", 927),
    "draft2019-09": ("https://json-schema.org/draft/2019-09/schema", 1259),
    "draft2020-12": ("https://json-schema.org/draft/2020-12/schema", 1299),
}

pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not SUITE.is_dir(), reason="the JSON-Schema-Test-Suite of ../shared/data is absent"),
]


def remotes(draft: str) -> Iterator[tuple[str, object]]:
    """Yield the documents that the suite's references lead to: those of the draft, and those of all drafts."""
    for file in sorted((SUITE / "remotes").rglob("*.json")):
        name = file.relative_to(SUITE / "remotes").as_posix()
        first = name.split("/")[0]
        if first == draft or not (first.startswith("draft") or first == "v1"):
            document: object = json.loads(file.read_text())
            yield f"{HERE}{name}", {"$schema": DRAFTS[draft][0], **document} if is_object(document) else document


def cases(draft: str) -> Iterator[tuple[str, object, list[dict[str, object]]]]:
    for file in sorted((SUITE / "tests" / draft).glob("*.json")):
        for group in json.loads(file.read_text()):
            yield f"{file.stem}: {group['description']}", group["schema"], group["tests"]


@pytest.mark.parametrize("draft", DRAFTS)
def test_the_official_suite_passes(draft: str) -> None:
    uri, expected = DRAFTS[draft]
    documents = dict(remotes(draft))
    passed = 0
    wrong: list[str] = []
    for name, schema, tests in cases(draft):
        if not is_object(schema):  # no document, but what a part may be
            passed += sum(test["valid"] is schema for test in tests)
            continue
        contracts = read({"$schema": uri, **schema}, documents=documents)
        (part,) = contracts.contracts["schema"].parts
        assert is_object(part.schema)
        base = str(part.schema["$ref"])
        whole = contracts.documents[base]
        assert is_object(whole)
        registry = Registry([(uri, held) for uri, held in contracts.documents.items() if is_object(held)])
        validator = validator_for(whole, registry=registry, base_uri=base, offline=True)
        for test in tests:
            if validator.is_valid(test["data"]) is test["valid"]:
                passed += 1
            else:
                wrong.append(f"{name}: {test['description']}")
    assert (passed, wrong) == (expected, [])
