from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TypedDict

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from theodolite.core.assessment import Threshold
from theodolite.core.calibration import Band, Calibration, Dataset, grade
from theodolite.core.errors import CalibrationError
from theodolite.core.reading import Cause, Fact, Failure, Level, Reading, Status

# What a person may write by hand, but for its status.
WRITTEN_BY_HAND = """
{
  "schema": 1,
  "id": "acme-billing-2026-11",
  "status": "CALIBRATED",
  "alpha": 0.01,
  "date": "2026-11-29",
  "dataset": {"name": "acme billing sessions", "version": "3", "counts": {"clean": 412}},
  "versions": {"margin": "2"},
  "bands": {"margin.untrusted": {"alert": 0.8, "strong": 0.95, "width": 0.02, "source": "412 clean sessions"}},
  "agents": ["billing"],
  "models": ["m-large", "m-small"]
}
"""

OWN = Band(alert=0.6, strong=0.9, width=0.05, status=Status.REFERENCE, finds=False, source="fitted by us")
BANDS = {"margin.untrusted": OWN}


def artefact(**changes: object) -> Calibration:
    return msgspec.convert({**json.loads(WRITTEN_BY_HAND), **changes}, Calibration)


def reading(score: float = 0.96, *, version: str = "2", models: tuple[str, ...] = ()) -> Reading:
    return Reading(detector="margin", version=version, code="margin.untrusted", score=score, models=models)


def test_an_artefact_is_read() -> None:
    read = Calibration.load(artefact().signed().document(), "acme.json")
    assert read.bands["margin.untrusted"] == Band(alert=0.8, strong=0.95, width=0.02, source="412 clean sessions")
    assert read.dataset == Dataset(name="acme billing sessions", version="3", counts={"clean": 412})
    assert (read.status, read.agents, read.models) == (Status.CALIBRATED, ("billing",), ("m-large", "m-small"))


def test_an_artefact_survives_being_written_and_read() -> None:
    read = artefact().signed()
    assert Calibration.load(read.document(), "again.json") == read
    assert Calibration.load(msgspec.json.encode(read), "again.json") == read


@pytest.mark.parametrize(
    "changed",
    [
        WRITTEN_BY_HAND.encode(),
        artefact().signed().document().replace(b"0.95", b"0.94"),
        replace(artefact().signed(), alpha=0.02).document(),
        replace(artefact(coefficients={"hijack": {"bias": 1.0}}).signed(), coefficients={}).document(),
    ],
)
def test_what_was_written_or_changed_by_hand_is_not_calibrated(changed: bytes) -> None:
    with pytest.raises(CalibrationError, match=r"^acme\.json says that it is CALIBRATED, and `theodolite calibrate`"):
        Calibration.load(changed, "acme.json")
    plain = changed.replace(b'"CALIBRATED"', b'"REFERENCE"')
    assert Calibration.load(plain, "acme.json").status is Status.REFERENCE


def test_the_digest_is_of_what_is_said_and_not_of_how_the_file_is_laid_out() -> None:
    one = artefact(coefficients={"hijack": {"bias": 1.0, "weights": {"a": 1, "b": 2}}}).signed()
    other = artefact(coefficients={"hijack": {"weights": {"b": 2, "a": 1}, "bias": 1.0}}).signed()
    assert one.digest == other.digest
    assert Calibration.load(one.document(), "acme.json") == Calibration.load(one.document(), "acme.json")


@pytest.mark.parametrize(
    ("low", "status"), [(0.001, Status.CALIBRATED), (0.02, Status.REFERENCE), (None, Status.REFERENCE)]
)
def test_a_code_is_calibrated_where_held_back_folds_confirm_its_rate(low: float | None, status: Status) -> None:
    fit = Threshold(alert=0.8, alpha=0.01, n=412, out_of_fold=3, judged=412, low=low or 0.0)
    code = "margin.other" if low is None else "margin.untrusted"
    signal = grade(reading(), BANDS, replace(artefact(), thresholds={code: fit}), **OF_THE_DATASET)
    assert signal.status is status


class Session(TypedDict, total=False):
    agent: str
    models: tuple[str, ...]


OF_THE_DATASET = Session(agent="billing", models=("m-large",))


@pytest.mark.parametrize(
    ("changes", "session", "said", "status"),
    [
        ({}, OF_THE_DATASET, reading(), Status.CALIBRATED),
        ({}, Session(agent="billing", models=("m-large", "m-small")), reading(), Status.CALIBRATED),
        ({}, Session(agent="billing"), reading(models=("m-small",)), Status.CALIBRATED),
        ({}, Session(agent="support", models=("m-large",)), reading(), Status.STALE),
        ({}, Session(agent="", models=("m-large",)), reading(), Status.STALE),
        ({}, Session(agent="billing", models=("m-other",)), reading(), Status.STALE),
        ({}, Session(agent="billing", models=("m-large", "m-other")), reading(), Status.STALE),
        ({}, Session(agent="billing"), reading(), Status.STALE),
        ({}, OF_THE_DATASET, reading(models=("m-other",)), Status.STALE),
        ({}, OF_THE_DATASET, reading(version="3"), Status.STALE),
        ({"versions": {}}, OF_THE_DATASET, reading(), Status.STALE),
        ({"status": "REFERENCE"}, Session(agent="support"), reading(), Status.REFERENCE),
        ({"status": "REFERENCE", "agents": [], "models": []}, Session(), reading(), Status.REFERENCE),
        ({"status": "REFERENCE"}, OF_THE_DATASET, reading(version="1"), Status.STALE),
        ({"bands": {}}, OF_THE_DATASET, reading(), Status.REFERENCE),
    ],
)
def test_the_status_says_what_the_thresholds_rest_on(
    changes: dict[str, object], session: Session, said: Reading, status: Status
) -> None:
    assert grade(said, BANDS, artefact(**changes), **session).status is status


def test_an_artefact_takes_the_place_of_the_whole_band() -> None:
    signal = grade(reading(0.81), BANDS, artefact(), **OF_THE_DATASET)
    assert (signal.level, signal.ambiguous, signal.finds, signal.calibration) == (
        Level.NOTABLE,
        True,
        True,
        "acme-billing-2026-11",
    )


def test_without_an_artefact_the_detector_s_own_band_grades() -> None:
    signal = grade(reading(0.64), BANDS)
    assert (signal.level, signal.status, signal.ambiguous, signal.acts, signal.finds, signal.calibration) == (
        Level.NOTABLE,
        Status.REFERENCE,
        True,
        True,
        False,
        None,
    )
    assert grade(reading(), {"margin.untrusted": Band(alert=0.5)}).status is Status.UNCALIBRATED


def test_an_exact_code_is_never_recalibrated() -> None:
    exact = {"margin.untrusted": Band(alert=1.0, status=Status.EXACT)}
    signal = grade(reading(0.96), exact, artefact(), **OF_THE_DATASET)
    assert (signal.level, signal.status, signal.calibration) == (Level.CLEAR, Status.EXACT, None)


@given(score=st.floats(0, 1), session=st.sampled_from([OF_THE_DATASET, Session(agent="support")]))
def test_a_surrogate_is_shown_and_never_acts_nor_counts(score: float, session: Session) -> None:
    said = replace(reading(score), surrogate=True)
    signal = grade(said, BANDS, artefact(), **session)
    plain = grade(reading(score), BANDS, artefact(), **session)
    assert (signal.acts, signal.finds) == (False, False)
    assert (signal.level, signal.status, signal.said) == (plain.level, plain.status, said)


@pytest.mark.parametrize("cause", Cause)
def test_a_failure_is_clear_and_does_nothing(cause: Cause) -> None:
    failure = Failure(detector="margin", version="2", cause=cause)
    signal = grade(failure, BANDS, artefact(), **OF_THE_DATASET)
    assert (signal.said, signal.level, signal.status) == (failure, Level.CLEAR, Status.UNCALIBRATED)
    assert (signal.alarmed, signal.acts, signal.finds, signal.ambiguous) == (False, False, False, False)


def test_a_code_without_a_band_is_not_graded() -> None:
    with pytest.raises(KeyError, match=r"margin\.untrusted"):
        grade(reading(), {})


@given(
    thresholds=st.lists(st.floats(0.001, 1), min_size=2, max_size=2).map(sorted),
    scores=st.lists(st.floats(0, 1), min_size=2, max_size=2).map(sorted),
)
def test_a_higher_score_never_gets_a_lower_level(thresholds: list[float], scores: list[float]) -> None:
    alert, strong = thresholds
    order = [Level.CLEAR, Level.NOTABLE, Level.STRONG]
    band = Band(alert=alert, strong=strong)
    low, high = [order.index(band.level(score)) for score in scores]
    assert low <= high
    assert band.level(strong) is Level.STRONG
    assert Band(alert=alert).level(1.0) is Level.NOTABLE


@pytest.mark.parametrize(
    ("score", "level", "ambiguous"),
    [
        (0.0, Level.CLEAR, False),
        (0.43, Level.CLEAR, False),
        (0.4375, Level.CLEAR, True),
        (0.499, Level.CLEAR, True),
        (0.5, Level.NOTABLE, True),
        (0.5625, Level.NOTABLE, True),
        (0.57, Level.NOTABLE, False),
        (0.75, Level.STRONG, False),
    ],
)
def test_levels_and_the_ambiguous_band_are_closed_at_their_thresholds(
    score: float,
    level: Level,
    ambiguous: bool,  # noqa: FBT001 - a column of the table
) -> None:
    band = Band(alert=0.5, strong=0.75, width=0.0625)
    assert (band.level(score), band.ambiguous(score)) == (level, ambiguous)


def test_a_band_without_width_is_never_ambiguous() -> None:
    assert not Band(alert=0.5).ambiguous(0.5)


@pytest.mark.parametrize(
    ("make", "fault"),
    [
        (lambda: Band(alert=0.0), "need 0 < alert <= strong <= 1, not alert=0.0, strong=None"),
        (lambda: Band(alert=1.1), "not alert=1.1"),
        (lambda: Band(alert=0.5, strong=0.4), "not alert=0.5, strong=0.4"),
        (lambda: Band(alert=0.5, strong=1.5), "strong=1.5"),
        (lambda: Band(alert=float("nan")), "alert=nan"),
        (lambda: Band(alert=0.5, strong=float("nan")), "strong=nan"),
        (lambda: Band(alert=0.5, width=-0.1), r"width -0.1 is outside \[0, 1\]"),
        (lambda: Band(alert=0.5, width=float("nan")), "width nan"),
        (lambda: Band(alert=0.5, status=Status.CALIBRATED), "by itself, not CALIBRATED"),
        (lambda: Band(alert=0.5, status=Status.STALE), "by itself, not STALE"),
    ],
)
def test_a_band_that_makes_no_sense_cannot_be_made(make: Callable[[], Band], fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        make()


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"schema": 2}, r"\$\.schema"),
        ({"status": "EXACT"}, "an artefact is CALIBRATED or REFERENCE, not EXACT"),
        ({"status": "calibrated"}, r"\$\.status"),
        ({"alpha": 0}, "alpha 0.0 is outside"),
        ({"alpha": 1.0}, "alpha 1.0 is outside"),
        ({"alpha": "low"}, r"\$\.alpha"),
        ({"agents": []}, "must name the agents and models"),
        ({"models": []}, "must name the agents and models"),
        ({"extra": 1}, "unknown field `extra`"),
        ({"dataset": {"name": "d", "vesion": "1"}}, r"unknown field `vesion` - at `\$\.dataset`"),
        ({"bands": {"margin.untrusted": {"alert": 0.5, "storng": 0.9}}}, r"unknown field `storng` - at `\$\.bands"),
        ({"bands": {"margin.untrusted": {"alert": 1.5}}}, r"not alert=1\.5, strong=None - at `\$\.bands"),
        ({"bands": {"margin.untrusted": {"alert": 0.5, "status": "STALE"}}}, r"not STALE - at `\$\.bands"),
        ({"versions": {"margin": 2}}, r"\$\.versions"),
        ({"bands": None}, r"\$\.bands"),
    ],
)
def test_a_fault_in_an_artefact_is_told_with_its_place(changes: dict[str, object], place: str) -> None:
    document = json.dumps({**json.loads(WRITTEN_BY_HAND), **changes}).encode()
    with pytest.raises(CalibrationError, match=r"^acme\.json is not a calibration artefact: .*calibration\.md") as told:
        Calibration.load(document, "acme.json")
    assert re.search(place, str(told.value))


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b'{"id": "\xff"}',
        b"[]",
        b"null",
        b'{"schema": 1, "id": ' + b"[" * 100_000,
        b'{"bands": ' + b'{"a":' * 100_000,
    ],
)
def test_what_is_no_artefact_is_refused_and_nothing_else_is_raised(document: bytes) -> None:
    with pytest.raises(CalibrationError, match=r"^x\.json is not a calibration artefact"):
        Calibration.load(document, "x.json")


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_but_a_calibration_error(document: bytes) -> None:
    with pytest.raises(CalibrationError):
        Calibration.load(document, "x.json")


@pytest.mark.parametrize(
    ("fitted_with", "asked_from", "status"),
    [("1.0.0", "1.0.0", Status.CALIBRATED), ("1.0.0", "1.1.0", Status.STALE), ("", "1.1.0", Status.CALIBRATED)],
)
def test_probes_of_another_library_are_stale(fitted_with: str, asked_from: str, status: Status) -> None:
    said = replace(reading(), facts=(Fact("library", asked_from),))
    assert grade(said, BANDS, artefact(probes=fitted_with), **OF_THE_DATASET).status is status


@pytest.mark.parametrize("depth", [17, 500, 100_000])
def test_coefficients_are_not_nested_without_end(depth: int) -> None:
    nested = b'{"a":' * depth + b"1" + b"}" * depth
    document = (
        artefact(status="REFERENCE").document().replace(b'"agents"', b'"coefficients": ' + nested + b', "agents"')
    )
    with pytest.raises(CalibrationError, match=r"is not a calibration artefact"):
        Calibration.load(document, "deep.json")
