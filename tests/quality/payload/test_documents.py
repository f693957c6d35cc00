"""Five documents as published: what the oracle rejects is denied, what it allows is not, save for a short list."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from tests.quality.payload.comparison import Comparison
from tests.quality.payload.differences import explained
from tests.quality.payload.mutations import Fault
from tests.quality.payload.published import FILES, FOLDER, read

from theodolite.contracts import read as contracts_of
from theodolite.core.contract import Location
from theodolite.detectors.payload.engine import Checker

Note = Callable[[str, int, int], None]

pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not FOLDER.is_dir(), reason="the published documents of ../shared/data/openapi are absent"),
]
every_document = pytest.mark.parametrize("file", FILES)
# Which entries of the list of differences each document needs.
REASONS = {
    "airflow-2.10.5-v1.yaml": {"1.0 is an integer", "what is read-only was sent"},
    "github-rest-api.min.json": {
        "1.0 is an integer",
        "a line feed after what a pattern ends with",
        "a parameter whose schema is marked read-only",
    },
    "jupyter-server-2.21.1-swagger2.yaml": {"1.0 is an integer"},
    "kubernetes-1.13-swagger2.json": {"1.0 is an integer"},
    "notion-openapi.json": set[str](),
}
# One operation in so many is looked at in the short form, each with so many faults: under a minute for all documents.
EVERY, MOST = {"github-rest-api.min.json": 8, "kubernetes-1.13-swagger2.json": 10}, 40


def unexplained(comparison: Comparison, every: int) -> tuple[list[str], Counter[str]]:
    """Return where guard and oracle differ for no listed reason, and how often each reason was the reason."""
    unlisted: list[str] = []
    reasons: Counter[str] = Counter()
    for case in comparison.cases(list(comparison.document.operations())[::every]):
        if case.allowed == case.denied:
            reason = explained(case)
            if reason is None:
                unlisted.append(case.told())
            else:
                reasons[reason.name] += 1
                comparison.excuse(case)
    return unlisted, reasons


@every_document
def test_every_operation_and_body_is_loaded(file: str) -> None:
    """Two of these documents are refused by openapi-spec-validator: an address that is empty, a type `file`."""
    document = read(file)
    contracts = contracts_of(document.root)
    Checker(contracts)
    operations = list(document.operations())
    assert contracts.contracts.keys() == {operation.name for operation in operations}
    assert len(operations) == len(contracts.contracts)
    for operation in operations:
        contract = contracts.contracts[operation.name]
        bodies = [part for part in contract.parts if part.location is Location.BODY]
        assert {body.media_type for body in operation.bodies} <= {part.media_type for part in bodies}
        parameters = {(part.location.value, part.name, part.required) for part in contract.parts if part.name}
        assert parameters == {
            (one.location, one.name, one.required or one.location == "path") for one in operation.parameters
        }


@every_document
def test_a_sample_of_faults_is_denied_and_nothing_valid_is(file: str) -> None:
    comparison = Comparison(read(file), most=MOST)
    unlisted, _ = unexplained(comparison, EVERY.get(file, 1))
    assert not unlisted, f"{len(unlisted)}, such as " + "\n".join(unlisted[:20])
    tally = comparison.tally
    assert not tally.without, "no value could be written that the oracle allows"
    faults = {fault for _, fault, _ in tally.rejected}
    assert faults >= {Fault.DROP, Fault.TYPE, Fault.VALUE, Fault.NULL, Fault.DOUBLE_ENCODE}
    assert any(depth > 1 for _, _, depth in tally.rejected), "nothing nested was rejected"
    assert min(tally.valid, sum(tally.allowed.values())) > 20


@pytest.mark.evidence
@every_document
def test_every_fault_is_denied_and_nothing_valid_is(file: str, measured: Note) -> None:
    """All operations; all mutations of four bodies for each schema, a few for each further operation that has it."""
    comparison = Comparison(read(file), most=10**9)
    unlisted, reasons = unexplained(comparison, 1)
    _report(comparison, reasons, measured)
    assert not unlisted, f"{len(unlisted)}, such as " + "\n".join(unlisted[:20])
    assert reasons.keys() == REASONS[file], "the closed list of this document"


def _report(comparison: Comparison, reasons: Counter[str], measured: Note) -> None:
    """Note what was measured: of what the oracle rejects, rightly but for the listed reasons, how much was denied."""
    tally, name = comparison.tally, comparison.document.name
    rejected, caught = tally.rejected, tally.caught
    written = tally.operations - len(tally.without)
    measured(f"{name}: operations whose values could all be written", written, tally.operations)
    measured(f"{name}: false alarms, of calls that are allowed", tally.alarms, tally.valid + tally.allowed.total())
    measured(f"{name}: mutations that are rightly rejected", rejected.total(), tally.planted)
    for reason, count in reasons.items():
        measured(f"{name}: calls in which the oracle is wrong, {reason}", count, tally.planted + tally.valid)
    for place in sorted({key[0] for key in rejected}):
        for column in (1, 2):
            for kind in dict.fromkeys(key[column] for key in sorted(rejected) if key[0] == place):
                keys = [key for key in rejected if (key[0], key[column]) == (place, kind)]
                told = f"depth {kind}{' and more' * (kind == 5)}" if column == 2 else f"{kind}"
                if count := sum(rejected[key] for key in keys):
                    measured(f"{name}: {place}, {told}", sum(caught[key] for key in keys), count)
    for fault, count in tally.named.items():
        measured(f"{name}: told by the kind that was planted, {fault}", count, tally.denied[fault])
    measured(f"{name}: told at the place of the fault", tally.located, tally.denied.total())
