"""The coefficients of the fusion: what may raise the score of a call, and what a whole session is weighed against."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from theodolite.calibration.regression import Line, loss, regressed
from theodolite.calibration.table import Rows, Table
from theodolite.calibration.thresholds import held_back
from theodolite.core.assessment import Threshold
from theodolite.detectors.fusion import CALL, SESSION, Part
from theodolite.stats.e_process import Maxima
from theodolite.stats.logistic import logit, probability

__all__ = ("FEWEST_DRIFTED", "parts_of", "put_fused", "put_sessions", "sessions_held_back", "weighed")

FEWEST_DRIFTED = 30
"""Drifted sessions without which no weight is fitted. Our choice: ten for each of some three weights, as is usual."""

# A part counts above what only so many of the clean sessions reach: what is usual says nothing. Our choice.
_USUAL = 0.95
# After the third no call is chosen anew.
_ROUNDS = 4
# Of the odds of the highest call, as what ships was fitted with (`benchmarks/trajectory.py`).
_POWER = 2.0


class _Bag(Struct, frozen=True):
    """The calls of a session, each a row: the log-odds of the base, and how far each part is above what is usual."""

    drifted: bool
    calls: tuple[tuple[float, ...], ...]


def parts_of(table: Table, base: str, codes: Collection[str], rows: Rows) -> dict[str, Part]:
    """Return what raises the score of a call above that of `base`, fitted to these sessions; nothing if it is no use.

    Of a session one does not know which call it was: the highest one is taken, and chosen anew after each fit. Weights
    are 0 or more, and a ridge draws them to 0. They are kept where, fitted to one fold and judged on the others, they
    make the loss less by more than its standard error. Raises MissingExtraError.
    """
    above = {code: _usual(table, code, rows) for code in sorted(codes) if code != base}
    bags = {row: _bag(table, row, base, above) for row in rows if table.front(row)}
    if not above or sum(bag.drifted for bag in bags.values()) < FEWEST_DRIFTED:
        return {}
    if not _useful(table, bags, len(above)):
        return {}
    line = _fitted(list(bags.values()), len(above))
    scale = line.weights[0]
    weights = dict(zip(above, line.weights[1:], strict=True))
    return {
        code: Part(weight=round(weight / scale, 4), above=above[code])
        for code, weight in weights.items()
        if scale > 0.0 and round(weight / scale, 4) > 0.0
    }


def _usual(table: Table, code: str, rows: Rows) -> float:
    scores = table.scores(code)
    clean = sorted(scores[row] for row in rows if table.clean(row))
    return round(logit(clean[min(len(clean) - 1, math.ceil(_USUAL * len(clean)))]), 4) if clean else 0.0


def _bag(table: Table, row: int, base: str, above: Mapping[str, float]) -> _Bag:
    calls = [
        (logit(call.get(base, 0.0)), *[max(0.0, logit(call.get(code, 0.0)) - usual) for code, usual in above.items()])
        for call in table.front(row)
    ]
    return _Bag(not table.clean(row), tuple(calls))


def _fitted(bags: Sequence[_Bag], parts: int) -> Line:
    line = Line(0.0, (1.0, *[0.0] * parts))
    for _ in range(_ROUNDS):
        chosen = [max(bag.calls, key=line.at) for bag in bags]
        line = regressed(chosen, [bag.drifted for bag in bags], prior=(1.0, *[0.0] * parts))
    return line


def _useful(table: Table, bags: Mapping[int, _Bag], parts: int) -> bool:
    """Whether parts make the loss less on sessions that they were not fitted to, by more than chance would."""
    gained: list[float] = []
    folds = sorted({table.fold(row) for row in bags})
    for fold in folds:
        apart = [bag for row, bag in bags.items() if table.fold(row) != fold]
        if len({bag.drifted for bag in apart}) < 2:  # noqa: PLR2004 - two kinds
            continue
        with_parts, alone = _fitted(apart, parts), _fitted([_base(bag) for bag in apart], 0)
        held = [bag for row, bag in bags.items() if table.fold(row) == fold]
        gained += [_loss(alone, _base(bag)) - _loss(with_parts, bag) for bag in held]
    if not gained:
        return False
    mean = math.fsum(gained) / len(gained)
    spread = math.fsum((gain - mean) ** 2 for gain in gained) / max(1, len(gained) - 1)
    return mean > math.sqrt(spread / len(gained))


def _base(bag: _Bag) -> _Bag:
    return _Bag(bag.drifted, tuple({call[:1] for call in bag.calls}))


def _loss(line: Line, bag: _Bag) -> float:
    return loss(line, max(bag.calls, key=line.at), truth=bag.drifted)


def put_fused(table: Table, base: str, parts: Mapping[str, Part]) -> None:
    """Put the fused score of each session into the table; without parts it is that of the base."""
    table.put(CALL, [_fused(table, row, base, parts) for row in range(len(table))])


def _fused(table: Table, row: int, base: str, parts: Mapping[str, Part]) -> float:
    if not parts:
        return table.scores(base)[row]
    heard = [call for call in table.front(row) if base in call]
    return max([_score(call, base, parts) for call in heard], default=0.0)


def _score(call: Mapping[str, float], base: str, parts: Mapping[str, Part]) -> float:
    return probability(logit(call[base]) + sum(part.term(call.get(code, 0.0)) for code, part in parts.items()))


def weighed(table: Table, rows: Rows) -> Maxima:
    """Return what the highest calls of clean sessions weigh, for the e-value of a new one."""
    scores = table.scores(CALL)
    return Maxima.of([logit(scores[row]) for row in rows], _POWER)


def put_sessions(table: Table, maxima: Maxima, process: str) -> None:
    """Put the fused score of whole sessions into the table, as `HijackFusion` makes it: not below what it came to.

    `process` is the code that tells the e-value of the probes, 1 - 1 / e.
    """
    table.put(SESSION, _sessions(table, maxima, process, range(len(table))))


def _sessions(table: Table, maxima: Maxima, process: str, rows: Rows) -> Iterator[float]:
    calls, probes = table.scores(CALL), table.scores(process)
    for row in rows:
        probed = 1.0 / max(1e-300, 1.0 - probes[row])
        own = maxima.e_value(logit(calls[row]))
        e_value = ((own if probed > 1.0 else min(1.0, own)) + probed) / 2
        yield 1.0 - 1.0 / max(1.0, e_value)


def sessions_held_back(table: Table, process: str, rows: Rows, threshold: Threshold) -> Threshold:
    """Return the threshold of whole sessions with what clean ones come to that the weights were made without."""
    above = judged = 0
    for fold in table.folds(rows):
        inside = set(fold)
        apart = [row for row in rows if row not in inside]
        if apart and fold:
            scores = list(_sessions(table, weighed(table, apart), process, fold))
            above += sum(score >= threshold.alert for score in scores)
            judged += len(scores)
    return held_back(replace(threshold, out_of_fold=above, judged=judged))
