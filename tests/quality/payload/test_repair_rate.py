"""How often a body of a published document that has one fault is offered a plan, and gets back what it was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from msgspec.structs import replace
from tests.quality.payload.bodies import Fill, Unsatisfiable, write
from tests.quality.payload.mutations import Fault, mutations, sampled
from tests.quality.payload.published import FILES, FOLDER, read

from theodolite.contracts import read as contracts_of
from theodolite.contracts.document import is_object
from theodolite.core.contract import Location
from theodolite.detectors.payload.engine import Checker
from theodolite.detectors.payload.repair import apply, plan

pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not FOLDER.is_dir(), reason="the published documents of ../shared/data/openapi are absent"),
]
# One operation in so many, and faults of each.
EVERY, MOST = {"github-rest-api.min.json": 12, "kubernetes-1.13-swagger2.json": 24}, 12
TYPO = "typo"


def misspelt(value: object) -> Iterator[object]:
    """Bodies in which two letters of a name at the top are swapped."""
    for name in value if is_object(value) else ():
        wrong = f"{name[:1]}{name[2:3]}{name[1:2]}{name[3:]}"
        if is_object(value) and len(name) > 4 and wrong != name and wrong not in value:
            yield {wrong if key == name else key: one for key, one in value.items()}


def counted(file: str, denied: Counter[str], planned: Counter[str], restored: Counter[str]) -> None:
    document = read(file)
    contracts = contracts_of(document.root)
    checker = Checker(contracts)
    for operation in [one for one in document.operations() if one.bodies][:: EVERY.get(file, 1)]:
        contract = contracts.contracts[operation.name]
        part = next(part for part in contract.parts if part.location is Location.BODY)
        schema = next(body.schema for body in operation.bodies if body.media_type == part.media_type)

        def fits(value: object, name: str = operation.name, media_type: str = part.media_type) -> bool:
            found = checker.check(name, value, location=Location.BODY, media_type=media_type)
            return not any(one.denies for one in found)

        try:
            body = write(document, schema, operation.name, Fill(0.5, 4))
        except Unsatisfiable:
            continue
        faulty = [(fault.fault.value, fault.value) for fault in sampled(list(mutations(body)), MOST, operation.name)]
        alone = replace(contract, parts=(replace(part, location=Location.ARGUMENTS),))
        for kind, value in [*faulty, *[(TYPO, wrong) for wrong in misspelt(body.value)]]:
            if fits(body.value) and not fits(value):
                found = plan(alone, contracts.documents, value, fits)
                denied[kind] += 1
                planned[kind] += found is not None
                restored[kind] += found is not None and apply(found, value) == body.value
                assert found is None or fits(apply(found, value))


def test_slips_are_undone_and_nothing_is_made_up() -> None:
    denied, planned, restored = Counter[str](), Counter[str](), Counter[str]()
    for file in FILES:
        counted(file, denied, planned, restored)
    assert denied[Fault.DOUBLE_ENCODE] >= 100
    assert restored[Fault.DOUBLE_ENCODE] >= 0.95 * denied[Fault.DOUBLE_ENCODE], (denied, restored)
    assert denied[Fault.UNKNOWN] >= 20
    assert restored[Fault.UNKNOWN] == denied[Fault.UNKNOWN]
    assert denied[TYPO] >= 30
    assert restored[TYPO] >= 0.9 * denied[TYPO], (denied, restored)
    # What was left out cannot be known: only a default would fill it.
    assert restored[Fault.DROP] == planned[Fault.DROP] == 0
