"""How often a fleet is told to calibrate anew though its sessions are as they were; how soon where they are not.

The clean sessions of the calibration set, 100 of them, are drawn anew for each fleet: the promise is over both. What a
session is is its highest score, by the counts that `calibrate` makes.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from statistics import median

import pytest

from theodolite.calibration.fit import population
from theodolite.core.calibration import Calibration, Dataset
from theodolite.core.reading import Status
from theodolite.runtime.population import ALPHA, PopulationWatch
from theodolite.stats.change import Rise
from theodolite.stats.interval import exact_lower
from theodolite.stats.shift import Shift
from theodolite.testing.fakes import ScriptedDetector

Drawn = Callable[[Random], float]
Note = Callable[[str, int, int], None]

CLEAN, SESSIONS, SHORT, MANY = 100, 5_000, 100, 2_000
CODE = "scripted.scripted"


def even(dice: Random) -> float:
    return dice.random()


def lumped(dice: Random) -> float:
    """Return 0 for half of the sessions, and one of a few scores for the others."""
    return dice.choice((0.0, 0.0, 0.0, 0.0, 0.0, 0.1, 0.2, 0.3, 0.5, 0.9))


def edged(dice: Random) -> float:
    """Return one score in a tenth of the sessions: `high` is sometimes that one, and sometimes one below it."""
    return 0.9 if dice.random() < 0.1 else dice.choice((0.1, 0.2, 0.3))


LAWS: dict[str, Drawn] = {"even": even, "lumped": lumped, "edged": edged}


def fleet(dice: Random, drawn: Drawn, *, clean: int = CLEAN) -> PopulationWatch:
    """Return the watch of an artefact that was fitted to clean sessions so drawn."""
    artefact = Calibration(
        schema=1,
        id="c",
        status=Status.REFERENCE,
        alpha=0.01,
        date="",
        dataset=Dataset(name=""),
        versions={"scripted": "1"},
        bands={},
        population=population(CODE, [drawn(dice) for _ in range(clean)]),
    )
    watch = PopulationWatch.of(artefact, [ScriptedDetector(script={})])
    assert watch is not None
    return watch


def alarms(watch: PopulationWatch, dice: Random, drawn: Drawn, sessions: int) -> bool:
    """Whether it is ever told among so many sessions."""
    return any(watch.take("", (), drawn(dice)) for _ in range(sessions))


def share(law: str, fleets: int) -> int:
    dice = Random(f"population {law}")  # noqa: S311 - a simulation
    return sum(alarms(fleet(dice, LAWS[law]), dice, LAWS[law], SESSIONS) for _ in range(fleets))


@pytest.mark.parametrize("law", LAWS)
def test_as_long_as_sessions_are_as_they_were_hardly_a_fleet_is_told(law: str) -> None:
    assert exact_lower(share(law, SHORT), SHORT, 0.05) <= ALPHA


def test_without_bounds_on_the_shares_of_a_hundred_sessions_more_would_be_told() -> None:
    """What the bounds are for: by the bare shares chance in the calibration set is taken for a shift."""
    told = 0
    dice = Random("bare")  # noqa: S311 - a simulation
    for _ in range(40):
        clean = population(CODE, [even(dice) for _ in range(CLEAN)])
        assert clean is not None
        bare = Shift(
            high=clean.high,
            low=clean.low,
            bar=2 / ALPHA,
            above=Rise(upper=clean.over / clean.n),
            below=Rise(upper=clean.under / clean.n),
        )
        told += any(bare.update(even(dice)) for _ in range(SESSIONS))
    assert exact_lower(told, 40, 0.05) > ALPHA


@pytest.mark.evidence
@pytest.mark.parametrize("law", LAWS)
def test_of_many_fleets_at_most_alpha_are_told(law: str, measured: Note) -> None:
    told = share(law, MANY)
    measured(f"told though nothing had changed, {law}, {SESSIONS:,} sessions", told, MANY)
    assert exact_lower(told, MANY, 0.05) <= ALPHA


# Sessions within which nine of ten fleets are told, for a shift of so many standard deviations of a normal law after so
# many sessions without any, with 100 clean sessions in the calibration set.
WITHIN = {(3.0, 0): 15, (3.0, 1_000): 30, (2.0, 0): 40, (2.0, 1_000): 70, (-2.0, 0): 40, (-2.0, 1_000): 80}


@pytest.mark.parametrize(("moved", "before"), WITHIN)
def test_a_shift_of_all_scores_is_found_within_these_sessions(moved: float, before: int) -> None:
    dice = Random(f"shift {moved} {before}")  # noqa: S311 - a simulation
    taken: list[int] = []
    for _ in range(40):
        watch = fleet(dice, lambda dice: dice.gauss(0.0, 1.0))
        for _ in range(before):
            watch.take("", (), dice.gauss(0.0, 1.0))
        limit = 20 * WITHIN[moved, before]
        until = (n for n in range(1, limit) if watch.take("", (), dice.gauss(moved, 1.0)))
        taken.append(next(until, limit))
    assert sorted(taken)[36] <= WITHIN[moved, before]
    assert median(taken) < WITHIN[moved, before]
