"""A clean session alarms at any time with a probability of at most alpha: counted, with calibration sets drawn anew.

Laws are known and seeds are what is asked: none was chosen. A lower 95 % bound is above a rate that is alpha to the
last bit in one of twenty runs; the numbers of clean sessions are drawn, and of most of them a threshold promises less.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from clean_bets import ALPHAS, NULLS, delays, reached
from clean_fusions import SCENES, blocks
from clean_sessions import BOTH, CODES, MIXES, SHORT, Alarms, alarms, share, together
from clean_streams import STREAMS

from theodolite.stats.interval import clopper_pearson, exact_lower

Note = Callable[[str, int, int], None]

OF_CODES = (0.1, 0.05, 0.01)
LONG = 10_000
BEFORE = (0, 1_000, LONG)


def over_mixes(alpha: float, each: int, length: int | None = None) -> Alarms:
    return together(alarms(alpha, mix, each, length=length) for mix in range(MIXES))


def held(alpha: float, found: Alarms, note: Note) -> None:
    assert {"fusion.call", "fusion.session", BOTH, *CODES} <= set(found.alarmed)
    for code, k in found.alarmed.items():
        note(f"{code} at {share(code, alpha):g}", k, found.sessions)
    bounds = {code: exact_lower(k, found.sessions, 0.05) for code, k in found.alarmed.items()}
    assert {code: bound for code, bound in bounds.items() if bound > share(code, alpha)} == {}


def alarm_as_often_as_they_have_to(found: Alarms) -> None:
    """Where no two sessions are alike the rate is not only bounded: a threshold that is too high is seen as well."""
    for code, (n, k, due) in found.known.items():
        low, high = clopper_pearson(k, n, 0.001)
        assert low <= due / n <= high, (code, k, n, due)


@pytest.mark.parametrize(("alpha", "each"), [(0.1, 60), (0.05, 40), (0.01, 20)])
def test_no_code_alarms_in_more_than_a_share_alpha_of_clean_sessions_in_short(
    alpha: float, each: int, measured: Note
) -> None:
    found = over_mixes(alpha, each)
    held(alpha, found, measured)
    alarm_as_often_as_they_have_to(found)


def test_nor_in_long_sessions_in_short(measured: Note) -> None:
    held(0.1, over_mixes(0.1, 2, LONG), measured)


def test_thresholds_for_twice_alpha_would_be_seen() -> None:
    found = over_mixes(0.2, 60)
    assert exact_lower(found.alarmed["hijack.call"], found.sessions, 0.05) > 0.1


@pytest.mark.evidence
@pytest.mark.parametrize("alpha", OF_CODES)
def test_no_code_alarms_in_more_than_a_share_alpha_of_clean_sessions(alpha: float, measured: Note) -> None:
    found = over_mixes(alpha, 2_858)
    held(alpha, found, measured)
    alarm_as_often_as_they_have_to(found)


@pytest.mark.evidence
@pytest.mark.parametrize("alpha", OF_CODES)
def test_nor_in_long_sessions(alpha: float, measured: Note) -> None:
    held(alpha, over_mixes(alpha, 143, LONG), measured)


@pytest.mark.slow
@pytest.mark.parametrize("scene", SCENES)
def test_nor_do_fusions_whose_coefficients_were_fitted_in_short(scene: str) -> None:
    found = blocks(0.1, scene, 6, 50)
    assert any(found.kept)
    assert found.lower <= 0.05


@pytest.mark.evidence
@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("alpha", OF_CODES)
def test_nor_do_fusions_whose_coefficients_were_fitted(alpha: float, scene: str, measured: Note) -> None:
    found = blocks(alpha, scene, 200, 100)
    measured(f"fusion.call at {alpha / 2:g}", round(found.rate * found.sessions), found.sessions)
    measured("fits that kept a part", sum(found.kept), len(found.kept))
    assert found.lower <= alpha / 2


def bets_held(null: str, sessions: int, length: int | None, note: Note) -> None:
    for alpha, k in reached(null, sessions, length).items():
        note(f"{null} at {alpha:g}", k, sessions)
        assert exact_lower(k, sessions, 0.05) <= alpha


@pytest.mark.parametrize("null", NULLS)
def test_probes_that_show_nothing_but_chance_alarm_no_more_often_in_short(null: str, measured: Note) -> None:
    bets_held(null, 1_000, None, measured)
    bets_held(null, 2, LONG, measured)


@pytest.mark.evidence
@pytest.mark.parametrize("null", NULLS)
@pytest.mark.parametrize(("sessions", "length"), [(20_000, None), (1_000, LONG)])
def test_probes_that_show_nothing_but_chance_alarm_no_more_often(
    null: str, sessions: int, length: int | None, measured: Note
) -> None:
    bets_held(null, sessions, length, measured)


def test_draws_with_a_mean_above_zero_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def rather_one(rng: Random) -> float:
        return 1.0 if rng.random() < 0.7 else -1.0

    monkeypatch.setattr("clean_bets._sign", rather_one)
    found = reached("the same coin for both", 500)
    assert all(exact_lower(found[alpha], 500, 0.05) > alpha for alpha in ALPHAS)


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("clean", BEFORE)
def test_a_full_shift_is_found_as_late_as_is_stated(clean: int, *, both: bool) -> None:
    assert delays(clean, 1.0, 10, both=both).ratio == pytest.approx(1.0, abs=0.2)


@pytest.mark.slow
@pytest.mark.parametrize(("clean", "shifts"), [(0, 200), (1_000, 100), (LONG, 40)])
def test_one_that_is_not_full_is_too_and_two_at_once_are_found_no_later(clean: int, shifts: int) -> None:
    assert delays(clean, 0.9, shifts, both=False).ratio == pytest.approx(1.0, abs=0.2)
    assert delays(clean, 0.9, shifts, both=True).ratio <= 1.2


@pytest.mark.parametrize("law", STREAMS)
def test_the_highest_of_a_session_is_drawn_as_its_readings_are(law: str) -> None:
    """Calibration sets are drawn by the one, sessions that are judged by the other: they are to be exchangeable."""
    rng = np.random.default_rng(3)
    lengths = rng.integers(*SHORT, 4_000, endpoint=True)
    drawn = np.array([STREAMS[law].readings(rng, int(length)).max() for length in lengths])
    highest = STREAMS[law].highest(rng, lengths)
    at = np.unique(np.concatenate((drawn, highest)))
    shares = [np.searchsorted(np.sort(one), at, side="right") / len(one) for one in (drawn, highest)]
    # The two-sample test of Kolmogorov and Smirnov at 1 in 1,000; ties only make it more lenient.
    assert np.abs(shares[0] - shares[1]).max() <= 1.95 * np.sqrt(2 / 4_000)
