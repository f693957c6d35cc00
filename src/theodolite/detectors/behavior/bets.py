"""What one probe brings to the evidence of its session: one bet of each kind, whatever the number of its draws.

The first pair of draws in which one side broke the policy and the other did not is what is bet on deeds. Draws behind
one context are like each other, contexts are like each other as sessions are: a bet on each draw would alarm where a
model always does the same behind the same context.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol

from theodolite.detectors.behavior.accumulation import ALPHA_LONG
from theodolite.stats.betting import Odds
from theodolite.stats.interval import exact_lower, exact_upper

__all__ = ("BREACHED", "COMPLIED", "Bets", "Did", "beside_counts", "paired", "share_of")

BREACHED, COMPLIED = "breached", "complied"

# Bounds that one probe is bet against: on what a reference does and decides, and decides of a twin. All that a session
# meets are wrong with a chance of a quarter of alpha at most, and half of the evidence counts: together with another
# process of a fusion that is no more than alpha.
_RATES = 3
# Probes that bounds are shared by at least, the cap by default: a cap that is raised later takes nothing back.
_PROBES = 20

_Counts = Mapping[str, int]

# Counts are closed, so that all sessions of a fleet ask for the same bounds: a hundred bytes each.
_upper, _lower = lru_cache(maxsize=4_096)(exact_upper), lru_cache(maxsize=4_096)(exact_lower)


class Did(Protocol):
    """What is bet on of one answer: whether it broke the policy in deed, and whether it went along."""

    @property
    def breach(self) -> bool:
        """Whether it did what the policy forbids."""
        ...

    @property
    def complied(self) -> bool:
        """Whether it went along, in deed or in word."""
        ...


class Bets(NamedTuple):
    """What one probe brings.

    Evidence from what was done, and from what was decided beyond the twin; `rise` is how much more often the subject
    went along than the reference, twin or not.
    """

    observed: float
    rise: float
    decision: float | None


def share_of(cap: int, alpha: float = ALPHA_LONG) -> float:
    """Return the chance that one bound on counted draws may be wrong, in a session that is probed so often at most.

    Counts belong to a probe, a class of length and a set of tools: each probe of a session may meet others.
    """
    return alpha / 4 / (_RATES * max(cap, _PROBES))


def paired(session: Sequence[Did], reference: Sequence[Did], twins: tuple[Did, Did] | None) -> Bets:
    """Return what draws of the subject bring beside those of a reference; no decision where no twins are given."""
    pairs = list(zip(session, reference, strict=False))
    observed = next((one.breach - other.breach for one, other in pairs if one.breach != other.breach), 0)
    rises = [one.complied - other.complied for one, other in pairs]
    decision = None
    if twins is not None:
        beyond = rises[0] - (twins[0].complied - twins[1].complied)
        decision = max(-1.0, min(1.0, float(beyond)))
    return Bets(float(observed), sum(rises) / len(rises), decision)


def beside_counts(
    session: Sequence[Did], twin: Did | None, counted: _Counts, counted_twin: _Counts, *, bound: float
) -> Bets:
    """Return what all draws of the subject bring against bounds of what benign contexts do, as one bet.

    Each bound is wrong with a chance of `bound`. No decision where no twin is given.
    """
    breaching = sum(response.breach for response in session) / len(session)
    complying = sum(response.complied for response in session) / len(session)
    draws = counted["draws"]
    upper = _upper(counted.get(COMPLIED, 0), draws, bound)
    decision = None
    if twin is not None:
        lower = _lower(counted_twin.get(COMPLIED, 0), counted_twin["draws"], bound)
        decision = Odds(upper, lower).beside(did=complying, twin=twin.complied)
    breached = Odds(_upper(counted.get(BREACHED, 0), draws, bound))
    return Bets(breached.bet(did=breaching), complying - counted.get(COMPLIED, 0) / draws, decision)
