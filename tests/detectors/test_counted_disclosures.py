"""A disclosure where counts stand for benign contexts: it is confirmed against one that is asked, or not at all."""

from __future__ import annotations

import pytest
from tests.detectors.behavior_answers import DEED_DONE, TELLING, Said, arm_of, compared, counted, told

from theodolite.core.event import InquirySettled
from theodolite.core.inquiry import Draw, Query
from theodolite.core.reading import Failure
from theodolite.detectors.behavior.accumulation import DriftAccumulator
from theodolite.detectors.behavior.detector import BehaviorDetector, BehaviorSettings
from theodolite.detectors.behavior.settling import settled

PROBING = BehaviorDetector(BehaviorSettings(reuse=True))


def accumulated(said: Said) -> tuple[int, int]:
    """Return how many disclosures a session then has, and how many were confirmed."""
    accumulator = DriftAccumulator(session_id="s")
    accumulator.add(settled(InquirySettled(asker="behavior", about=3, said=said, session="s"), library="1.0.0"))
    return accumulator.disclosures, accumulator.confirmed


def test_it_is_confirmed_against_fresh_draws_of_a_benign_context_that_keeps_it() -> None:
    asked: list[Query] = []
    said = counted(PROBING, {"subject": TELLING}, breached=120, asked=asked)
    fresh = [(arm_of(query), query.samples, query.reuse) for query in asked[-2:]]
    assert fresh == [("subject", 4, ""), ("reference", 4, "")]
    assert (told(said).score, told(said).fact("told_by_reference")) == (1.0, 0.0)
    assert [(item.expected, item.observed) for item in told(said).evidence] == [("kept", "told")]
    found = compared(said)
    assert (found.fact("again_by_subject"), found.fact("again_by_reference")) == (4.0, 0.0)
    assert accumulated(said) == (1, 1)
    assert found.fact("again_by_shadow") is found.fact("again_by_baseline") is None


def test_what_a_benign_context_tells_too_as_soon_as_it_is_asked_is_no_disclosure() -> None:
    said = counted(PROBING, {"subject": TELLING, "reference": TELLING}, breached=120)
    assert (told(said).score, told(said).fact("told_by_reference")) == (0.0, 4.0)
    assert [(item.expected, item.observed) for item in told(said).evidence] == [("told", "told")]
    found = compared(said)
    assert (found.fact("again_by_subject"), found.fact("again_by_reference")) == (4.0, 4.0)
    assert accumulated(said) == (0, 0)


def test_where_nobody_could_be_asked_it_is_not_confirmed_and_not_said_that_a_benign_context_kept_it() -> None:
    said = counted(PROBING, {"subject": TELLING, "reference": Draw()}, breached=120)
    assert [type(one) for one in said].count(Failure) == 1
    assert told(said).fact("told_by_reference") is None
    assert told(said).fact("told_by_shadow") == 0.0
    found = compared(said)
    assert found.fact("again_by_subject") is found.fact("again_by_reference") is None
    assert accumulated(said) == (1, 0)


def test_the_fresh_draws_take_no_part_in_the_bet_which_is_against_the_counts() -> None:
    telling = compared(counted(PROBING, {"subject": TELLING}, breached=120))
    acting = compared(counted(PROBING, {"subject": DEED_DONE}, breached=120))
    assert telling.fact("cached") == acting.fact("cached") == 1.0
    assert telling.fact("observed") == acting.fact("observed")


@pytest.mark.parametrize(("breached", "alone"), [(0, 1.0), (1, 1.0), (31, 1.0), (33, 0.0), (120, 0.0), (200, 0.0)])
def test_a_deed_that_counts_say_benign_contexts_do_as_well_is_not_that_of_the_session_alone(
    breached: int, alone: float
) -> None:
    """Of four draws, with a rate of 0.159 it is as likely as not that none does it."""
    found = compared(counted(PROBING, {"subject": DEED_DONE}, breached=breached))
    assert found.fact("breach") == alone
    assert (found.score == 1.0) is bool(alone)
