"""What other sessions say of the rates of an artefact."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import pytest
from msgspec.structs import replace

from theodolite.core.assessment import Assessment, Share, Verdict, Verified
from theodolite.core.calibration import Calibration
from theodolite.core.reading import Status
from theodolite.reports.calibration.verification import Verification, verdict_blocks, verification
from theodolite.reports.layout import plain
from theodolite.reports.words import CALIBRATE

Made = Callable[..., Calibration]
Found = Callable[..., Verified]


@pytest.fixture
def found(assessment: Callable[..., Assessment], share: Callable[[int, int], Share]) -> Found:
    """Return a function that makes what was found of a code on other sessions."""

    def make(verdict: Verdict, alarms: int, clean: int, code: str = "fusion.call", slices: int = 0) -> Verified:
        measured = assessment(code, slices=slices)
        whole = replace(measured.whole, false_alarms=share(alarms, clean))
        return Verified(code=code, alpha=0.025, assessment=replace(measured, whole=whole), verdict=verdict)

    return make


def _text(artefact: Calibration, found: Sequence[Verified]) -> str:
    return " ".join("".join(plain(verdict_blocks(artefact, found))).split())


def test_a_rate_that_is_borne_out_is_told_beside_that_of_the_artefact(artefact: Made, found: Found) -> None:
    text = _text(artefact(), [found(Verdict.HELD, 5, 400)])
    assert text.startswith("bank-2026-11: not refuted")
    assert "fusion.call: not refuted: 5 of 400 (95 %: 0.41 to 2.9 %) clean sessions alarm, and alpha is 2.5 %" in text
    assert "Rates, with intervals of 95 %" in text
    assert "in its own data 3 of 412 (0.15 to 2.1 %)" in text
    assert "not looked at: fusion.session, margin.untrusted" in text
    assert CALIBRATE not in text


def test_a_refuted_rate_comes_first_and_says_what_to_do(artefact: Made, found: Found) -> None:
    some = [found(Verdict.HELD, 0, 400, "margin.untrusted"), found(Verdict.REFUTED, 40, 400)]
    text = _text(artefact(), some)
    assert text.startswith("bank-2026-11: refuted for 1 of 2 fusion.call: refuted: 40 of 400 (95 %: 7.2 to 13.4 %)")
    assert "Calibrate anew with sessions like these" in text
    assert CALIBRATE in _text(artefact(status=Status.REFERENCE), some)


def test_too_few_sessions_refute_nothing_and_say_how_many_are_missing(artefact: Made, found: Found) -> None:
    text = _text(artefact(), [found(Verdict.TOO_FEW, 0, 10), found(Verdict.TOO_FEW, 0, 0, "fusion.session")])
    assert text.startswith("bank-2026-11: not refuted, but for 2 of 2 the sessions are too few")
    assert "fusion.call: too few sessions: 0 of 10 (95 %: 0 to 30.8 %) clean sessions alarm; 29 more are needed" in text
    assert "fusion.session: too few sessions: there is no clean session; 39 more are needed" in text


def test_nothing_found_is_not_borne_out(artefact: Made) -> None:
    assert _text(artefact(), []).startswith("bank-2026-11: no code was looked at")


def test_slices_are_told_where_there_are_any(artefact: Made, found: Found) -> None:
    assert "Slices of fusion.call" in _text(artefact(), [found(Verdict.HELD, 0, 400, slices=2)])
    assert "Slices of fusion.call" not in _text(artefact(), [found(Verdict.HELD, 0, 400)])


def test_the_document_has_all_and_is_read_back(artefact: Made, found: Found) -> None:
    document = verification(artefact(), [found(Verdict.REFUTED, 40, 400)])
    assert document.unverified == ("fusion.session", "margin.untrusted")
    assert msgspec.json.decode(msgspec.json.encode(document), type=Verification) == document
