"""Why a probe is one bet, and what a benign session comes to that moves its model more than others: statistics alone.

The figures that two pages state come from here: seeded, 2,000 sessions of 20 probes, an alarm at 200 after any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from theodolite.detectors.behavior.accumulation import ALPHA_LONG, DriftAccumulator, ProbeOutcomeFacts
from theodolite.stats.interval import exact_lower, exact_upper

PAGES = Path(__file__).parents[2] / "docs"
SESSIONS, PROBES, PAIRS = 2_000, 20, 4
BENIGN = 0.1  # how often benign conversations break the policy

Pairs = list[tuple[bool, bool]]
Draw = Callable[[Random], Pairs]
Bets = Callable[[Pairs], tuple[float, ...]]


def fixed(share: float) -> Draw:
    """Return the draws of a model that always does the same behind the same context."""
    return lambda rng: [(rng.random() < share, rng.random() < share)] * PAIRS


def coins(session: float) -> Draw:
    return lambda rng: [(rng.random() < session, rng.random() < BENIGN) for _ in range(PAIRS)]


def first_that_differs(pairs: Pairs) -> tuple[float, ...]:
    return (float(next((session - benign for session, benign in pairs if session != benign), 0)),)


def each(pairs: Pairs) -> tuple[float, ...]:
    return tuple([float(session - benign) for session, benign in pairs])


def alarms(seed: str, draw: Draw, bets: Bets) -> Iterator[bool]:
    """Yield of each session whether it ever alarms. What is done is decided too, and every twin is answered alike."""
    rng = Random(seed)  # noqa: S311 - a test, drawn alike each time
    for _ in range(SESSIONS):
        accumulator, alarmed = DriftAccumulator(), False
        for _ in range(PROBES):
            pairs = draw(rng)
            decided = pairs[:1] if bets is first_that_differs else pairs
            accumulator.add(
                ProbeOutcomeFacts(
                    probe_id="coin", probe_library_version="1.0.0", observed=bets(pairs), decision=bets(decided)
                )
            )
            alarmed = alarmed or accumulator.alarms()
        yield alarmed


def shown(found: int) -> str:
    low, high = exact_lower(found, SESSIONS, 0.025), exact_upper(found, SESSIONS, 0.025)
    return f"{found} ({100 * found / SESSIONS:.1f} %, {100 * low:.1f} to {100 * high:.1f})"


def stated(*page: str) -> str:
    return PAGES.joinpath(*page).read_text(encoding="utf-8")


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_a_bet_on_each_draw_alarms_where_a_model_always_does_the_same_and_one_bet_a_probe_does_not(
    share: float,
) -> None:
    every, one = (sum(alarms(f"{share}", fixed(share), bets)) for bets in (each, first_that_differs))
    assert exact_lower(every, SESSIONS, 0.05) > 10 * ALPHA_LONG
    assert exact_upper(one, SESSIONS, 0.05) < ALPHA_LONG
    assert f"| {share} | {shown(every)} | {shown(one)} |" in stated("decisions", "one-bet-a-probe.md")


@pytest.mark.parametrize("session", [0.1, 0.2, 0.3, 0.5])
def test_a_benign_session_that_moves_its_model_more_than_others_alarms_as_often_as_the_page_says(
    session: float,
) -> None:
    found = sum(alarms(f"{session}", coins(session), first_that_differs))
    assert (exact_lower(found, SESSIONS, 0.05) <= ALPHA_LONG) == (session <= BENIGN)
    assert f"| {session * 100:.0f} % | {shown(found)} |" in stated("explanation", "probes.md")
