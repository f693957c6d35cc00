"""Answers that need not be asked for again: exact distributions, and counts of many draws."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from theodolite.core.inquiry import Query, Reply, Role

__all__ = ("ENOUGH", "Reuse")

ENOUGH = 200
"""Draws after which counts answer. Our choice.

With no breach among them the bound of a session of 20 probes is 0.052: what drift must exceed to be seen.
"""

# Distributions and counts that are held. Our choice: some hundred bytes each; a library has 23 probes with a twin, and
# an exact one is asked in six orders.
_MOST = 4_096

_K = TypeVar("_K")
_V = TypeVar("_V")

_Choice = tuple[tuple[str, float], ...]


class _Counted(Struct, gc=False):
    """How many draws were counted of questions of one name, and how often each outcome came."""

    draws: int = 0
    outcomes: dict[str, int] = {}


class Reuse:
    """What the sessions of a Monitor were answered by models. Safe for several threads, and bounded.

    What nobody asked for or added to for longest goes first: counts that still answer stay, and need no new draws.

    A question with options whose answer is exact is the same question for every session that puts it: its distribution
    is kept by all that the model is shown. Draws are never used twice. Those of questions of one name (`Query.reuse`)
    are counted, by the outcomes that their asker sees in them; at 200 the counts close and answer, and the asker bets
    against a bound on the rate, since all who use them share one error. A bound that is looked at while the counts grow
    would hold less often than it says. State: 4,096 of each. A new process begins
    anew.
    """

    def __init__(self, *, enough: int = ENOUGH, most: int = _MOST) -> None:
        self._enough = enough
        self._most = most
        self._exact: OrderedDict[bytes, tuple[str, _Choice]] = OrderedDict()
        self._counts: OrderedDict[tuple[str, str], _Counted] = OrderedDict()
        self._lock = threading.Lock()
        self.hits = 0
        self.misses = 0

    def known(self, query: Query, model: str) -> Reply | None:
        """Return the answer to a query that this model need not be asked for; None where it must be."""
        with self._lock:
            reply = self._exactly(query, model) if query.options else self._counted(query, model)
            if query.options or query.reuse:
                self.hits += reply is not None
                self.misses += reply is None
        return reply

    def _exactly(self, query: Query, model: str) -> Reply | None:
        kept = _touched(self._exact, _digest(query, model))
        return None if kept is None else Reply(query=query, model=kept[0], choice=kept[1], exact=True, reused=True)

    def _counted(self, query: Query, model: str) -> Reply | None:
        counted = _touched(self._counts, (query.reuse, model)) if query.reuse else None
        if counted is None or counted.draws < self._enough:
            return None
        counts = (("draws", counted.draws), *sorted(counted.outcomes.items()))
        return Reply(query=query, model=model, counts=counts, reused=True)

    def learn(self, reply: Reply, model: str, tally: Callable[[Reply], Mapping[str, int]] | None) -> None:
        """Keep what a model answered, so far as it may be used again. `tally` counts the outcomes among its draws."""
        query = reply.query
        if reply.reused:
            return
        with self._lock:
            if query.options and reply.exact:
                _put(self._exact, _digest(query, model), (reply.model, reply.choice), self._most)
            elif query.reuse and reply.draws and tally is not None:
                counted = self._counts.get((query.reuse, model), _Counted())
                if counted.draws >= self._enough:
                    return
                outcomes = dict(counted.outcomes)
                for outcome, count in tally(reply).items():
                    outcomes[outcome] = outcomes.get(outcome, 0) + count
                kept = _Counted(counted.draws + len(reply.draws), outcomes)
                _put(self._counts, (query.reuse, model), kept, self._most)


def _touched(kept: OrderedDict[_K, _V], key: _K) -> _V | None:
    if key in kept:
        kept.move_to_end(key)
    return kept.get(key)


def _put(kept: OrderedDict[_K, _V], key: _K, value: _V, most: int) -> None:
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > most:
        kept.popitem(last=False)


def _digest(query: Query, model: str) -> bytes:
    """Return what stands for all that a model is shown: the role, the canary and the number of draws are not."""
    shown = replace(query, role=Role.SUBJECT, canary="", samples=1, reuse="")
    return hashlib.blake2b(msgspec.json.encode((model, shown)), digest_size=20).digest()
