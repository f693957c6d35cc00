"""The official JSON-Schema-Test-Suite through the guard's own reading and checking, its remotes as a local registry."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from theodolite.contracts import read
from theodolite.core.arguments import is_mapping, is_sequence
from theodolite.core.contract import Contracts, Divergence
from theodolite.detectors.payload.engine import Checker

SUITE = Path(__file__).parents[3] / "shared" / "data" / "json-schema-test-suite"
REMOTES = "http://localhost:1234/"
# The drafts of the suite at commit 44401e0, what names them in `$schema`, and how many tests each has.
DRAFTS = {
    "draft4": ("http://json-schema.org/draft-04/schema#", 618),
    "draft6": ("http://json-schema.org/draft-06/schema#", 839),
    "draft7": ("http://json-schema.org/draft-07/schema#", 927),
    "draft2019-09": ("https://json-schema.org/draft/2019-09/schema", 1_259),
    "draft2020-12": ("https://json-schema.org/draft/2020-12/schema", 1_299),
}

pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not SUITE.exists(), reason=f"{SUITE} is not there: the suite is not part of the repository"),
]


def loaded(file: Path) -> object:
    document: object = json.loads(file.read_bytes())
    return document


def named(schema: object, draft: str) -> object:
    """Return a schema that says which draft it is in: the suite of the older ones leaves it to the folder."""
    if not is_mapping(schema):
        return schema
    return {"$schema": DRAFTS[draft][0], **schema}


def remotes(draft: str) -> Mapping[str, object]:
    """Return the documents that the suite has on a server, by address: those of all drafts, and those of this one."""
    folder = SUITE / "remotes"
    others = [other for other in DRAFTS if other != draft]
    files = [
        file for file in folder.rglob("*.json") if file.relative_to(folder).parts[0] not in {*others, "draft3", "v1"}
    ]
    return {REMOTES + file.relative_to(folder).as_posix(): named(loaded(file), draft) for file in files}


def groups(draft: str) -> Iterator[tuple[str, Mapping[object, object]]]:
    for file in sorted((SUITE / "tests" / draft).glob("*.json")):
        document = loaded(file)
        assert is_sequence(document)
        for group in document:
            assert is_mapping(group)
            yield f"{file.stem}: {group['description']}", group


def contracts(schema: object, draft: str, documents: Mapping[str, object]) -> Contracts:
    """Return the contract of one schema of the suite: where it is `true` or `false`, that of a tool with it."""
    whole = named(schema, draft)
    if is_mapping(whole):
        return read({str(key): value for key, value in whole.items()}, documents=documents)
    return read([{"name": "schema", "inputSchema": whole}], documents=documents)


@pytest.mark.parametrize("draft", DRAFTS)
def test_the_suite_is_passed_in_full(draft: str) -> None:
    documents = remotes(draft)
    wrong: list[str] = []
    count = 0
    for name, group in groups(draft):
        tests = group["tests"]
        assert is_sequence(tests)
        checker = Checker(contracts(group["schema"], draft, documents))
        for test in tests:
            assert is_mapping(test)
            count += 1
            found = checker.check("schema", test["data"])
            if denies(found) is test["valid"]:
                wrong.append(f"{name}: {test['description']}: {[divergence.kind for divergence in found]}")
    assert wrong == []
    assert count == DRAFTS[draft][1]


def denies(found: tuple[Divergence, ...]) -> bool:
    return any(divergence.denies for divergence in found)
