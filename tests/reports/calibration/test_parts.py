"""An artefact on a terminal: what it says, in which order, and what it says where it has little."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from theodolite.core.assessment import Assessment, Share, Threshold
from theodolite.core.calibration import Band, Calibration
from theodolite.core.gate import Reason
from theodolite.core.reading import Status
from theodolite.reports.calibration.figures import missing, out_of_fold, percent
from theodolite.reports.calibration.parts import blocks
from theodolite.reports.layout import Block, Heading, Paragraph, Style, plain
from theodolite.reports.limits import PARTS

Made = Callable[..., Calibration]
Measured = Callable[..., Assessment]
COMMAND = "theodolite calibrate SESSIONS --known-good --out calibration.json"


def _text(artefact: Calibration) -> str:
    return " ".join("".join(plain(blocks(artefact))).split())


def _titles(held: Iterable[Block]) -> list[str]:
    return ["".join(span.text for span in block.spans) for block in held if isinstance(block, Heading)]


def test_its_warnings_come_before_every_number(artefact: Made) -> None:
    assert _titles(blocks(artefact())) == [
        "bank-2026-11, fitted on 2026-11-20",
        "What limits what it says",
        "What it rests on",
        "Thresholds",
        "Rates in its data, with intervals of 95 %",
        "Slices of fusion.call, with intervals of 95 %",
        "Where a second opinion is asked for, with intervals of 95 %",
        "Coefficients",
        "The population that is watched",
        "Models that were measured",
    ]
    assert "- suite: s000 has 8 clean sessions, and alpha 2.5 % needs 39" in _text(artefact())


def test_a_calibrated_one_says_for_whom_and_what_it_allows(artefact: Made) -> None:
    text = _text(artefact())
    assert "CALIBRATED: it was fitted on sessions of agent bank-assistant with models gpt-4o-2024-05-13, m-2" in text
    assert "A strong alarm of fusion.call may restrict a session." in text
    assert "Held-back folds do not confirm fusion.session, margin.untrusted: graded as REFERENCE" in text
    assert COMMAND not in text


def test_one_of_which_nothing_may_restrict_says_so(artefact: Made) -> None:
    weak = artefact(bands={"fusion.call": Band(alert=0.91)})
    assert "No alarm may restrict a session" in _text(weak)


def test_a_reference_cannot_restrict_and_the_one_command_is_named(artefact: Made) -> None:
    text = _text(artefact(status=Status.REFERENCE))
    assert "REFERENCE: it grades, and an alarm may ask for review. It cannot restrict a session." in text
    assert f"REFERENCE thresholds do not transfer by themselves: `{COMMAND}` fits them" in text
    assert "agents: bank-assistant" in text


def test_each_threshold_says_what_held_back_folds_found(artefact: Made) -> None:
    text = _text(artefact())
    assert "fusion.call 0.91 0.98 yes 2.5 % 412 9 of 412 (1.0 to 4.1 %) confirmed" in text
    assert "fusion.session 0.995 0.9995 yes 2.5 % 412 40 of 412 (7.0 to 13.0 %) not confirmed: above alpha" in text
    assert "margin.untrusted 0.6 never no not fitted" in text
    assert "margin.untrusted rests on: an estimate of ours" in text


def test_a_threshold_that_a_person_changed_or_that_grades_nothing_is_marked(artefact: Made) -> None:
    fitted = Threshold(alert=0.91, strong=0.98, alpha=0.025, n=412, out_of_fold=0, judged=0, low=0.0)
    made = artefact(
        status=Status.REFERENCE,
        bands={"a.x": Band(alert=0.5), "a.y": Band(alert=0.91, strong=0.98)},
        thresholds={"a.x": fitted, "a.y": fitted, "a.z": fitted},
    )
    text = _text(made)
    assert "set by hand: fitted was 0.91 and 0.98" in text
    assert "none judged not confirmed: no fold was judged" in text
    assert "a.z 0.91 0.98 no 2.5 % 412 none judged not in use: it has no band" in text


def test_rates_have_counts_and_intervals_of_95_percent(artefact: Made) -> None:
    text = _text(artefact())
    assert "Rates in its data, with intervals of 95 %" in text
    assert "fusion.call 0.91 3 of 412 (0.15 to 2.1 %) 30 of 37 (64.8 to 92.0 %)" in text
    assert "0.981" in text
    assert "20 of 449 (2.7 to 6.8 %) 4 of 20 (5.7 to 43.7 %)" in text


def test_a_slice_with_too_few_clean_sessions_says_how_many_are_missing(artefact: Made) -> None:
    text = _text(artefact())
    assert "15 of 16 (69.8 to 99.8 %) too few clean sessions: 31 missing" in text
    assert "Slices of margin.untrusted" not in text, "its alarms do not act"


def test_a_slice_above_alpha_comes_first_and_is_never_what_is_left_out(
    artefact: Made, assessment: Measured, share: Callable[[int, int], Share]
) -> None:
    measured = assessment(slices=3 * PARTS)
    worst = replace(measured.slices[-1], name="suite: worst", false_alarms=share(50, 100))
    text = _text(artefact(assessments=(replace(measured, slices=(*measured.slices, worst)),)))
    assert "suite: worst 50 of 100 (39.8 to 60.2 %)" in text
    assert "above it" in text
    assert "... and 101 more slices: --format json has all" in text


def test_coefficients_are_listed_by_detector_however_deep_they_are(artefact: Made) -> None:
    deep: object = 1
    for _ in range(3):
        deep = {"a": [deep]}
    text = _text(artefact(coefficients={"behavior": {"w": {"x": 0.25, "y": [1, 2, True, None]}, "deep": deep}}))
    assert "behavior name value w/x 0.25 w/y 1, 2, true, null deep/a/0/a/0" in text


def test_the_population_and_the_gates_have_a_line_each(artefact: Made) -> None:
    gate = artefact().gates["m-2"]
    failed = replace(gate, model="m-3", passed=False, reasons=(Reason.FLAT,))
    text = _text(artefact(gates={"m-2": gate, "m-3": failed}))
    assert "sessions at most 41 had a highest score of fusion.call above 0.8, and at most 40 one below 0.1." in text
    assert "m-2 can be measured: 12 pairs by its probabilities, AUC 0.990, gap +4 in log-odds" in text
    assert "m-3 cannot be measured: 12 pairs by its probabilities, AUC 0.990" in text
    assert Reason.FLAT.words in text


def test_what_it_has_not_is_said(bare: Calibration) -> None:
    text = _text(bare)
    assert "thresholds: each code is graded by its detector's own" in text
    assert "rates: how often it alarms without reason was not measured" in text
    assert "models that were measured" in text
    assert "What held-back folds say" not in text
    assert "written: by hand, or it does not say by what; it has no digest" in text


def test_a_change_by_hand_shows(artefact: Made) -> None:
    made = artefact(status=Status.REFERENCE)
    assert "not changed since, by its digest" in _text(made)
    changed = replace(made, alpha=0.5)
    assert "CHANGED since: the digest does not fit" in _text(changed)
    spans = [span for block in blocks(changed) if isinstance(block, Paragraph) for span in block.spans]
    assert any(span.style is Style.WARN and "CHANGED" in span.text for span in spans)


def test_counts_that_are_none_are_told_and_stop_nothing(artefact: Made, assessment: Measured) -> None:
    odd = Share(10**300, -3, -1e308, 1e308)
    whole = replace(assessment().whole, false_alarms=odd, enough=False)
    fitted = Threshold(alert=1e308, alpha=1e-320, n=-4, out_of_fold=5, judged=2, low=-1.0)
    made = artefact(
        assessments=(assessment(whole=whole, slices=0),), thresholds={"fusion.call": fitted}, status=Status.REFERENCE
    )
    assert max(map(len, "".join(plain(blocks(made))).splitlines())) < 250


@given(st.integers(0, 400), st.floats(0.001, 0.5))
def test_what_is_missing_is_what_conformal_thresholds_need(clean: int, alpha: float) -> None:
    needed = clean + missing(alpha, clean)
    assert needed >= clean
    assert 1.0 / (needed + 1) <= alpha * (1 + 1e-6)
    assert needed == clean or 1.0 / needed > alpha


@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_a_larger_share_never_reads_as_a_smaller_one(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert float(percent(low)) <= float(percent(high))


def test_out_of_fold_of_very_many_sessions_has_its_lower_bound() -> None:
    fitted = Threshold(alert=0.5, alpha=0.01, n=1, out_of_fold=10**9, judged=10**12, low=0.0009)
    assert out_of_fold(fitted) == "1,000,000,000 of 1,000,000,000,000 (at least 0.09 %)"
