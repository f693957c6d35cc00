"""Sessions that are put probes which show nothing but chance: how many ever alarm, and how late a shift is found.

Each probe brings a draw of each kind, whose mean, given all before it, is 0. It goes through the accumulator of the
detector, whose bets begin anew every hundred draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from random import Random
from typing import NamedTuple

from theodolite.detectors.behavior.accumulation import ALPHA_LONG, DriftAccumulator, ProbeOutcomeFacts
from theodolite.stats.betting import FRACTIONS, Odds
from theodolite.stats.e_process import Maxima
from theodolite.stats.restarting import delay

__all__ = ("ALPHAS", "NULLS", "Delay", "delays", "reached")

ALPHAS = (0.1, 0.05, 0.01, ALPHA_LONG)
"""An alarm at 1 / alpha; the last is what the detector alarms at where no artefact says otherwise."""

# References that decisions are held against which are read from probabilities: the least that a gate takes.
_REFERENCES = 30


@cache
def facts(seen: float, decided: float, *, cached: bool = False, most: float | None = None) -> ProbeOutcomeFacts:
    """Return what a probe brings: a draw of what was seen, one of what was decided."""
    return ProbeOutcomeFacts(
        probe_id="p",
        probe_library_version="1.0.0",
        observed=(seen,),
        decision=(decided,),
        decision_maximum=most,
        cached=cached,
    )


Null = Callable[[Random, int], Iterator[DriftAccumulator]]
"""Yields the accumulator of a session after each of so many probes."""


def _of(draw: Callable[[Random, DriftAccumulator], ProbeOutcomeFacts]) -> Null:
    def told(rng: Random, length: int) -> Iterator[DriftAccumulator]:
        one = DriftAccumulator()
        for _ in range(length):
            one.add(draw(rng, one))
            yield one

    return told


def _sign(rng: Random) -> float:
    return 1.0 if rng.random() < 0.5 else -1.0


def _always(rng: Random, _: DriftAccumulator) -> ProbeOutcomeFacts:
    return facts(_sign(rng), _sign(rng))


def _one_coin(rng: Random, _: DriftAccumulator) -> ProbeOutcomeFacts:
    sign = _sign(rng)
    return facts(sign, sign)


def _seldom(rng: Random, _: DriftAccumulator) -> ProbeOutcomeFacts:
    seen, decided = [_sign(rng) if rng.random() < 0.1 else 0.0 for _ in range(2)]
    return facts(seen, decided)


def _lopsided(rng: Random, _: DriftAccumulator) -> ProbeOutcomeFacts:
    seen, decided = [1.0 if rng.random() < 0.1 else -1.0 / 9.0 for _ in range(2)]
    return facts(seen, decided)


def _by_the_past(rng: Random, one: DriftAccumulator) -> ProbeOutcomeFacts:
    size = 1.0 if one.e_value < 1.0 else 0.25
    return facts(size * _sign(rng), size * _sign(rng))


_SELDOM = Odds(upper=0.05)
_BESIDE = Odds(upper=0.1, lower=0.9)


def _counts(rng: Random, _: DriftAccumulator) -> ProbeOutcomeFacts:
    seen = _SELDOM.bet(did=rng.random() < _SELDOM.upper)
    decided = _BESIDE.beside(did=rng.random() < _BESIDE.upper, twin=rng.random() < _BESIDE.lower)
    return facts(seen, decided, cached=True)


def _exact(rng: Random, length: int) -> Iterator[DriftAccumulator]:
    references = Maxima.of([rng.gauss(0.0, 1.0) for _ in range(_REFERENCES)])
    decided = rng.gauss(0.0, 1.0)
    one = DriftAccumulator(exact=True)
    for number in range(length):
        # The session as a whole is as one of the references: what it has decided so far is not above that.
        so_far = references.e_value(decided - 3.0 / (1 + number))
        one.add(
            ProbeOutcomeFacts(
                probe_id="p",
                probe_library_version="1.0.0",
                observed=(_sign(rng),),
                decision_maximum=so_far,
            )
        )
        yield one


NULLS: Mapping[str, Null] = {
    "1 or -1, each as often": _of(_always),
    "the same coin for both": _of(_one_coin),
    "1 or -1 in a tenth of the probes": _of(_seldom),
    "1 in a tenth, else -1/9": _of(_lopsided),
    "bold while behind": _of(_by_the_past),
    "against counts": _of(_counts),
    "read from probabilities": _exact,
}
"""Kinds of draws with a mean of 0, by their names."""


def reached(null: str, sessions: int, length: int | None = None) -> Mapping[float, int]:
    """Return how many of so many sessions alarm at any time, by alpha; each of `length` probes, or of 1 to 100."""
    rng = Random(f"{null} {length}")
    told = dict.fromkeys(ALPHAS, 0)
    for _ in range(sessions):
        highest = max(one.evidence for one in NULLS[null](rng, length or rng.randint(1, 100)))
        for alpha in ALPHAS:
            told[alpha] += highest * alpha >= 1.0
    return told


class Delay(NamedTuple):
    """After how many probes a shift was found on average, and after how many it is by the formula."""

    measured: float
    stated: float

    @property
    def ratio(self) -> float:
        """The one over the other."""
        return self.measured / self.stated


def delays(clean: int, sure: float, runs: int, *, both: bool) -> Delay:
    """Return how late a shift is found that comes after so many probes that showed nothing but chance.

    From then on a draw is 1 with a chance of `sure`, and else -1: those of what was seen, or of both kinds. While one
    kind is silent the mean of both has to be won by the other alone.
    """
    rng = Random(f"{clean} {sure} {both}")
    found: list[int] = []
    for _ in range(runs):
        one = DriftAccumulator()
        for _ in range(clean):
            one.add(_drawn(rng, 0.5, both=both))
        count = 0
        while not one.alarms() and count < 1_000:
            one.add(_drawn(rng, sure, both=both))
            count += 1
        found.append(count)
    growth = max(sure * math.log1p(share) + (1.0 - sure) * math.log1p(-share) for share in FRACTIONS)
    stated = delay(growth, ALPHA_LONG if both else ALPHA_LONG / 2, clean)
    return Delay(math.fsum(found) / runs, stated)


@cache
def _silent(seen: float) -> ProbeOutcomeFacts:
    return ProbeOutcomeFacts(probe_id="p", probe_library_version="1.0.0", observed=(seen,))


def _drawn(rng: Random, sure: float, *, both: bool) -> ProbeOutcomeFacts:
    seen, decided = [1.0 if rng.random() < sure else -1.0 for _ in range(2)]
    return facts(seen, decided) if both else _silent(seen)
