"""What differs between two artefacts."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from theodolite.core.assessment import Assessment, Share
from theodolite.core.calibration import Band, Calibration, Dataset
from theodolite.core.gate import Reason
from theodolite.core.reading import Status
from theodolite.reports.calibration.difference import Change, Matter, blocks, differences
from theodolite.reports.layout import plain
from theodolite.reports.limits import PARTS

Made = Callable[..., Calibration]
Measured = Callable[..., Assessment]


def _text(before: Calibration, after: Calibration) -> str:
    return " ".join("".join(plain(blocks(differences(before, after)))).split())


def _said(before: Calibration, after: Calibration) -> list[tuple[Matter, str, str, object, object, str]]:
    return [
        (one.about, one.name, one.detail, one.before, one.after, one.effect)
        for one in differences(before, after).changes
    ]


def test_two_that_say_the_same_do_not_differ(artefact: Made) -> None:
    made = artefact()
    assert differences(made, artefact()).changes == ()
    assert differences(made, replace(made, agents=made.agents[::-1], models=made.models[::-1], digest="")).changes == ()
    assert _text(made, made) == "bank-2026-11 -> bank-2026-11: they say the same"


CHANGED: tuple[tuple[str, object], ...] = (
    ("id", "bank-2026-12"),
    ("status", Status.REFERENCE),
    ("alpha", 0.01),
    ("date", "2026-12-01"),
    ("library", "0.4.0"),
    ("probes", "8"),
    ("dataset", Dataset(name="other")),
    ("versions", {"fusion": "2", "behavior": "2"}),
    ("bands", {}),
    ("agents", ("bank-assistant", "another")),
    ("models", ("m-2",)),
    ("thresholds", {}),
    ("rests", {"fusion.call": ("hijack",)}),
    ("coefficients", {}),
    ("population", None),
    ("assessments", ()),
    ("warnings", ()),
    ("gates", {}),
)


@pytest.mark.parametrize(("field", "value"), CHANGED, ids=[name for name, _ in CHANGED])
def test_no_field_of_an_artefact_changes_unseen(artefact: Made, field: str, value: object) -> None:
    made = artefact()
    changed = replace(made, **{field: value})
    there, back = differences(made, changed).changes, differences(changed, made).changes
    assert there
    assert sorted([(one.name, one.detail, repr(one.before), repr(one.after)) for one in there]) == sorted(
        [(one.name, one.detail, repr(one.after), repr(one.before)) for one in back]
    )
    assert " ".join([*map(str, (made.id, "->", changed.id))]) in _text(made, changed)


def test_every_field_but_the_digest_is_tried_above() -> None:
    assert {name for name, _ in CHANGED} == set(Calibration.__struct_fields__) - {"schema", "digest"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab/~", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab/~", max_size=2), inner, max_size=3),
    max_leaves=8,
)
TABLES = st.dictionaries(st.sampled_from(["behavior", "fusion"]), st.dictionaries(st.text("ab/~", max_size=2), JSON))


@settings(deadline=None)
@given(TABLES, TABLES)
@example({"fusion": {"a": 1}}, {"fusion": {"a": True}})
@example({"fusion": {"a": None}}, {"fusion": {}})
@example({"fusion": {"a": []}}, {"fusion": {"a": {}}})
@example({"fusion": {"a/b": 1}}, {"fusion": {"a": {"b": 1}}})
def test_coefficients_differ_exactly_where_their_json_does(
    bare: Calibration, one: dict[str, dict[str, object]], other: dict[str, dict[str, object]]
) -> None:
    found = differences(replace(bare, coefficients=one), replace(bare, coefficients=other)).changes
    same = msgspec.json.encode(one, order="sorted") == msgspec.json.encode(other, order="sorted")
    assert bool(found) is not same


@pytest.mark.parametrize(
    ("band", "detail", "effect"),
    [
        (Band(alert=0.8, strong=0.98, width=0.05), "alert", "alarms earlier"),
        (Band(alert=0.95, strong=0.98, width=0.05), "alert", "alarms later"),
        (Band(alert=0.91, strong=0.95, width=0.05), "strong", "is strong earlier"),
        (Band(alert=0.91, strong=0.99, width=0.05), "strong", "is strong later"),
        (Band(alert=0.91, width=0.05), "strong", "is never strong any more"),
        (Band(alert=0.91, strong=0.98, width=0.1), "width", "a second opinion is asked for more often"),
        (Band(alert=0.91, strong=0.98, width=0.05, acts=False), "acts", "its alarms act no more"),
        (Band(alert=0.91, strong=0.98, width=0.05, finds=False), "finds", "its alarms are no findings any more"),
    ],
)
def test_what_a_changed_threshold_means_is_said_in_words(artefact: Made, band: Band, detail: str, effect: str) -> None:
    made = artefact()
    changed = replace(made, bands={**made.bands, "fusion.call": band})
    [found] = differences(made, changed).changes
    assert (found.about, found.name, found.detail, found.effect) == (Matter.THRESHOLDS, "fusion.call", detail, effect)
    assert effect in _text(made, changed)


def test_a_code_that_is_gone_is_graded_by_its_detector(artefact: Made) -> None:
    made = artefact()
    gone = replace(made, bands={code: band for code, band in made.bands.items() if code != "fusion.call"})
    assert (Matter.THRESHOLDS, "fusion.call", "alert", 0.91, None, "is graded by its detector's own from now on") in (
        _said(made, gone)
    )
    assert (Matter.THRESHOLDS, "fusion.call", "alert", None, 0.91, "is graded by the artefact from now on") in (
        _said(gone, made)
    )


def test_a_rate_that_held_back_folds_do_not_confirm_any_more_is_said(artefact: Made) -> None:
    made = artefact()
    worse = replace(made.thresholds["fusion.call"], low=0.2)
    text = _text(made, replace(made, thresholds={**made.thresholds, "fusion.call": worse}))
    assert "fusion.call confirmed yes no its rate is not confirmed any more" in text


def test_rates_stand_side_by_side_and_say_whether_they_are_told_apart(
    artefact: Made, assessment: Measured, share: Callable[[int, int], Share]
) -> None:
    made = artefact()
    measured = assessment()
    more = replace(measured.whole, false_alarms=share(90, 412), found=share(31, 37))
    text = _text(made, replace(made, assessments=(replace(measured, whole=more), made.assessments[1])))
    assert "Rates, with intervals of 95 %" in text
    assert (
        "fusion.call false alarms 3 of 412 (0.15 to 2.1 %) 90 of 412 (17.9 to 26.2 %) more, and the intervals are apart"
    ) in text
    assert "fusion.call found 30 of 37 (64.8 to 92.0 %) 31 of 37 (68.0 to 93.8 %) the intervals overlap" in text
    assert "different sessions" not in text
    other = replace(made, dataset=Dataset(name="other"), assessments=())
    assert "They were measured on different sessions, which alone can make rates differ." in _text(made, other)


def test_agents_models_and_warnings_are_gained_or_lost(artefact: Made) -> None:
    made = artefact()
    changed = replace(made, agents=("b",), warnings=("too few",))
    assert [one for one in _said(made, changed) if one[0] is not Matter.WARNINGS] == [
        (Matter.COVERED, "bank-assistant", "agent", True, None, "lost"),
        (Matter.COVERED, "b", "agent", None, True, "gained"),
    ]
    text = _text(made, changed)
    assert "lost: suite: s000 has 8 clean sessions" in text
    assert "gained: too few" in text


def test_a_gate_that_is_not_passed_any_more_is_a_difference(artefact: Made) -> None:
    made = artefact()
    failed = replace(made.gates["m-2"], passed=False, reasons=(Reason.FLAT,))
    text = _text(made, replace(made, gates={"m-2": failed}))
    assert "Models that were measured what before after which means m-2 passed yes no" in text


def test_a_difference_of_one_digit_far_behind_the_point_is_shown(artefact: Made) -> None:
    made = artefact()
    near = Band(alert=0.91 + 1e-12, strong=0.98, width=0.05)
    text = _text(made, replace(made, bands={**made.bands, "fusion.call": near}))
    assert "fusion.call alert 0.91 0.910000000001 alarms later" in text


def test_of_very_many_differences_the_first_are_told_and_the_document_has_all(artefact: Made) -> None:
    made = artefact()
    many = replace(made, versions={f"d{number}": "1" for number in range(3 * PARTS)})
    found = differences(made, many)
    assert len(found.changes) == 3 * PARTS + 2
    assert "... and 102 more differences: --format json has all" in _text(made, many)
    document = msgspec.json.decode(msgspec.json.encode(found))
    assert [document["before"], document["after"], len(document["changes"])] == [made.id, many.id, 3 * PARTS + 2]


def test_two_measurements_of_one_code_are_both_compared(artefact: Made, assessment: Measured) -> None:
    twice = artefact(assessments=(assessment(), assessment(auc=0.5)))
    again = artefact(assessments=(assessment(), assessment(auc=0.6)))
    [found] = differences(twice, again).changes
    assert found == Change(about=Matter.RATES, name="fusion.call (2)", detail="AUC", before=0.5, after=0.6)
