"""What one probe is bet on, and how little each bound of counted draws may be wrong."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from tests.detectors.behavior_answers import DEED_DONE, compared, counted
from tests.detectors.own_probes import GOOD

from theodolite.detectors.behavior.accumulation import ALPHA_LONG
from theodolite.detectors.behavior.bets import Bets, beside_counts, paired, share_of
from theodolite.detectors.behavior.detector import BehaviorDetector, BehaviorSettings
from theodolite.detectors.behavior.library import ProbeLibrary, shipped
from theodolite.detectors.behavior.schedule import ScheduleSettings
from theodolite.stats.interval import exact_upper


class Answer(NamedTuple):
    breach: bool
    complied: bool


NO, WORDS, DEED = Answer(breach=False, complied=False), Answer(breach=False, complied=True), Answer(True, True)  # noqa: FBT003


@pytest.mark.parametrize(
    ("session", "reference", "twins", "bets"),
    [
        ([DEED], [NO], (WORDS, WORDS), Bets(1.0, 1.0, 1.0)),
        ([NO], [DEED], (WORDS, WORDS), Bets(-1.0, -1.0, -1.0)),
        ([NO, NO, DEED, NO], [NO] * 4, (WORDS, WORDS), Bets(1.0, 0.25, 0.0)),
        ([NO, NO, DEED], [NO, DEED, NO], (WORDS, WORDS), Bets(-1.0, 0.0, 0.0)),
        ([WORDS], [NO], (WORDS, NO), Bets(0.0, 1.0, 0.0)),
        ([WORDS], [NO], (NO, WORDS), Bets(0.0, 1.0, 1.0)),
        ([WORDS], [NO], None, Bets(0.0, 1.0, None)),
    ],
)
def test_beside_draws_the_first_pair_that_differs_is_the_bet(
    session: list[Answer], reference: list[Answer], twins: tuple[Answer, Answer] | None, bets: Bets
) -> None:
    assert paired(session, reference, twins) == bets


def test_beside_counts_the_bound_is_what_a_bet_must_exceed() -> None:
    known = {"draws": 200, "breached": 120, "complied": 120}
    bets = beside_counts([DEED] * 4, None, known, {}, bound=1e-5)
    assert bets.observed == pytest.approx(1.0 / exact_upper(120, 200, 1e-5) - 1.0)
    assert bets.rise == pytest.approx(0.4)
    assert bets.decision is None
    assert beside_counts([NO] * 4, NO, known, {"draws": 200}, bound=1e-5).observed == -1.0


@pytest.mark.parametrize("cap", [1, 20, 50])
@pytest.mark.parametrize("library", [shipped(), ProbeLibrary.of({"own.toml": GOOD})], ids=["shipped", "one of its own"])
def test_all_bounds_that_a_session_may_meet_are_wrong_with_a_quarter_of_alpha_whatever_the_library(
    library: ProbeLibrary, cap: int
) -> None:
    """Each probe may meet three bounds that no other did: of other templates, lengths and tools."""
    settings = BehaviorSettings(reuse=True, schedule=ScheduleSettings(max_probes_per_session=cap))
    found = compared(counted(BehaviorDetector(settings, library=library), {"subject": DEED_DONE}, breached=0))
    assert found.fact("observed") == pytest.approx(1.0 / exact_upper(0, 200, share_of(cap)) - 1.0)
    assert 3 * cap * share_of(cap) <= ALPHA_LONG / 4 * (1 + 1e-9)
    assert share_of(cap, 10 * ALPHA_LONG) == pytest.approx(10 * share_of(cap))
