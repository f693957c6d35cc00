"""How often a session without drift alarms by its probes, and how often one with drift does: the statistics alone.

Arms are coins. A draw of a probe is whether the session's copy and the shadow did what is forbidden, and where
decisions are read, whether they did what its twin asks. What a probe brings, the bounds that it is bet against and what
that is worth are the code's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import NamedTuple

import pytest

from theodolite.detectors.behavior.accumulation import DriftAccumulator, ProbeOutcomeFacts
from theodolite.detectors.behavior.bets import BREACHED, COMPLIED, beside_counts, paired, share_of
from theodolite.detectors.behavior.probe import ProbeType
from theodolite.runtime.reuse import ENOUGH
from theodolite.stats.betting import Betting
from theodolite.stats.interval import exact_lower

Note = Callable[[str, int, int], None]

PROBES, PAIRS, SETS, FLEETS = 20, 4, 23, 12  # as many sets of counts as the shipped library has templates
RATES = (0.0, 0.01, 0.1, 0.5)
ALPHAS = (0.05, 0.01)
FULL, HALF = (1.0, 0.0), (0.5, 0.05)
TWIN = 0.95  # how often either arm does what the policy plainly allows


class Read(NamedTuple):
    """What is read of a probe: what was observed, what was decided beside a twin, or both of the same draws."""

    observed: bool
    decision: bool
    cached: bool = False


class Coin(NamedTuple):
    """One answer: who does what is asked does it in deed and in word."""

    did: bool

    @property
    def breach(self) -> bool:
        return self.did

    @property
    def complied(self) -> bool:
        return self.did


class Counts(NamedTuple):
    """What stands for the draws of a shadow, of a probe and of its twin, and how surely."""

    probe: Mapping[str, int]
    twin: Mapping[str, int]
    bound: float


READS = {
    "observed": Read(observed=True, decision=False),
    "decision": Read(observed=False, decision=True),
    "both": Read(observed=True, decision=True),
    "observed, cached": Read(observed=True, decision=False, cached=True),
    "decision, cached": Read(observed=False, decision=True, cached=True),
    "both, cached": Read(observed=True, decision=True, cached=True),
}


def session(rng: Random, read: Read, rates: tuple[float, float], against: Sequence[Counts]) -> float:
    """Return the highest evidence of a session after any of its probes: it alarms where that times alpha is 1."""
    accumulator, highest = DriftAccumulator(), 0.0
    for _ in range(PROBES):
        accumulator.add(probe(rng, read, rates, rng.choice(against) if read.cached else None))
        highest = max(highest, accumulator.evidence)
    return highest


def probe(rng: Random, read: Read, rates: tuple[float, float], against: Counts | None) -> ProbeOutcomeFacts:
    def drawn(rate: float, count: int) -> list[Coin]:
        return [Coin(rng.random() < rate) for _ in range(count)]

    subject, (twin,) = drawn(rates[0], PAIRS), drawn(TWIN, 1)
    if against is None:
        shadow, (shadow_twin,) = drawn(rates[1], PAIRS), drawn(TWIN, 1)
        bets = paired(subject, shadow, (twin, shadow_twin) if read.decision else None)
    else:
        given = twin if read.decision else None
        bets = beside_counts(subject, given, against.probe, against.twin, bound=against.bound)
    return ProbeOutcomeFacts(
        probe_id="coin",
        probe_type=ProbeType.DATA_DISCLOSURE,
        probe_library_version="1.0.0",
        observed=(bets.observed,) if read.observed else (),
        decision=() if bets.decision is None else (bets.decision,),
        cached=against is not None,
    )


def fleet(rng: Random, rate: float, alpha: float) -> list[Counts]:
    """Return what all sessions of a fleet bet against: for each template the counts of its shadow, and of its twin."""

    def counted(rate: float) -> Mapping[str, int]:
        did = sum(rng.random() < rate for _ in range(ENOUGH))
        return {"draws": ENOUGH, BREACHED: did, COMPLIED: did}

    return [Counts(counted(rate), counted(TWIN), share_of(PROBES, alpha)) for _ in range(SETS)]


def alarms(seed: str, read: Read, rates: tuple[float, float], alpha: float, sizes: Sequence[int]) -> Iterator[int]:
    """Yield how many sessions of each fleet alarm, of so many."""
    rng = Random(seed)  # noqa: S311 - a test, drawn alike each time
    for size in sizes:
        against = fleet(rng, rates[1], alpha) if read.cached else []
        yield sum(session(rng, read, rates, against) * alpha >= 1.0 for _ in range(size))


def fleets(name: str, size: int, count: int) -> list[int]:
    """Return the sizes of the fleets that a cell needs: one where nothing is counted for a whole fleet."""
    return [size] * count if READS[name].cached else [size]


def held(name: str, rate: float, alpha: float, sizes: Sequence[int], note: Note) -> None:
    counts = list(alarms(f"{name} {rate}", READS[name], (rate, rate), alpha, sizes))
    note(f"alarms at alpha {alpha}", sum(counts), sum(sizes))
    if len(sizes) > 1:
        note("of which in the worst fleet", max(counts), sizes[0])
    assert exact_lower(sum(counts), sum(sizes), 0.05) <= alpha, counts
    assert exact_lower(max(counts), sizes[0], 0.05 / len(sizes)) <= alpha, counts


def powerful(name: str, rates: tuple[float, float], least: float, size: int, note: Note) -> None:
    # A fleet for each tenth of the sessions: how lucky one set of counts was is not what is asked.
    sizes = [size // 10] * 10
    found = sum(alarms(f"{name} {rates}", READS[name], rates, 0.01, sizes))
    note("found at alpha 0.01", found, size)
    assert found >= least * size, found


@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize("rate", [0.01, 0.5])
def test_alike_arms_alarm_no_more_often_than_alpha_in_short(name: str, rate: float, measured: Note) -> None:
    held(name, rate, 0.05, fleets(name, 50, 3), measured)


@pytest.mark.evidence
@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("alpha", ALPHAS)
def test_alike_arms_alarm_no_more_often_than_alpha(name: str, rate: float, alpha: float, measured: Note) -> None:
    held(name, rate, alpha, fleets(name, 1_000, FLEETS), measured)


# Decisions alone are bet on by one pair of a probe and its twin: within twenty probes they find of half drift 189 of
# 1,000 sessions.
POWER = [(name, FULL, 0.99) for name in READS] + [(name, HALF, 0.80) for name, read in READS.items() if read.observed]


@pytest.mark.parametrize(("name", "rates", "least"), POWER)
def test_drift_alarms_in_short(name: str, rates: tuple[float, float], least: float, measured: Note) -> None:
    powerful(name, rates, least - 0.1, 50, measured)


@pytest.mark.evidence
@pytest.mark.parametrize(("name", "rates", "least"), POWER)
def test_drift_alarms(name: str, rates: tuple[float, float], least: float, measured: Note) -> None:
    powerful(name, rates, least, 1_000, measured)


def _dropped(difference: float, *, explained: bool) -> float:
    return 0.0 if explained else difference


def _lowered(difference: float, *, explained: bool) -> float:
    return min(difference, 0.0) if explained else difference


def explaining(effect: Callable[..., float], rate: float, size: int) -> int:
    """Return how many of so many sessions of three alike arms alarm at 0.01 where the third explains a difference.

    It explains what it does itself and the shadow does not, or the other way round.
    """
    rng = Random(rate)  # noqa: S311 - a test, drawn alike each time
    found = 0
    for _ in range(size):
        betting, highest = Betting(), 0.0
        for _ in range(PROBES * 4):
            subject, shadow, baseline = (rng.random() < rate for _ in range(3))
            highest = max(highest, betting.update(effect(float(subject - shadow), explained=baseline == subject)))
        found += highest >= 100
    return found


def test_leaving_out_what_was_explained_alarms_by_itself_and_lowering_it_does_not() -> None:
    assert exact_lower(explaining(_dropped, 0.2, 200), 200, 0.05) > 0.01
    assert explaining(_lowered, 0.2, 200) == 0
