"""What the threshold of a code is worth on labeled sessions: rates with intervals, as a whole and for each slice."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from theodolite.calibration.sample import Known
from theodolite.calibration.table import Rows, Table
from theodolite.core.assessment import Ambiguity, Assessment, Bin, Point, Share, Slice
from theodolite.stats.area import area
from theodolite.stats.conformal import least
from theodolite.stats.interval import clopper_pearson

__all__ = ("affordable", "ambiguity", "assess", "share")

# Points of a curve that are kept (our choice): more are not told apart in a picture.
_POINTS = 100
# Bins of equal width over [0, 1], as is usual in reliability pictures.
_BINS = 10
# Of the clean sessions, those that may be asked about: what a second opinion may cost. Our choice.
_COST = 0.05


def assess(code: str, alert: float, table: Table, alpha: float, *, width: float | None = None) -> Assessment:
    """Return what a threshold does on labeled sessions, as a whole and by each of their slices, in order of names.

    `width` is how near to the threshold a second opinion is asked for; None where nobody is asked. Linear in the
    sessions but for sorting them. A slice has few sessions, and so a wide interval: which one is worst is mostly chance
    where many are compared.
    """
    scores = table.scores(code)
    alarms = [score >= alert for score in scores]
    clean, drifted = [
        sorted([scores[row] for row in table.rows(known)], reverse=True) for known in (Known.CLEAN, Known.DRIFTED)
    ]
    return Assessment(
        code=code,
        alert=alert,
        whole=_slice("all", alarms, table, range(len(table)), alpha),
        slices=tuple([_slice(name, alarms, table, rows, alpha) for name, rows in table.slices()]),
        curve=tuple(_curve(clean, drifted)),
        bins=tuple(_bins(clean, drifted)),
        ambiguity=None if width is None else _within(width, alert, scores, table),
        auc=area(drifted, clean) if clean and drifted else None,
    )


def ambiguity(alert: float, scores: Sequence[float], table: Table) -> float:
    """Return how near to a threshold a second opinion is asked for: where it may change what the threshold says.

    The band ends at a session that the threshold alone judges wrongly, the farthest one that is `affordable`. 0 where
    there is none.
    """
    most = affordable(alert, scores, table)
    wrong = [abs(scores[row] - alert) for row in range(len(table)) if (scores[row] >= alert) is table.clean(row)]
    return max([distance for distance in wrong if distance <= most], default=0.0)


def affordable(alert: float, scores: Sequence[float], table: Table) -> float:
    """Return the widest band around a threshold in which at most one in twenty clean sessions lies.

    In production most sessions are clean, and what asking about them costs is the price of a second opinion.
    """
    near = sorted(abs(scores[row] - alert) for row in table.rows(Known.CLEAN))
    asked = int(len(near) * _COST)
    if asked >= len(near):
        return 1.0
    beyond = near[asked]  # this one is one too many, and so are those that are as near
    return math.nextafter(beyond, 0.0) if beyond > 0.0 else 0.0


def _within(width: float, alert: float, scores: Sequence[float], table: Table) -> Ambiguity:
    asked = [row for row in range(len(table)) if width > 0.0 and abs(scores[row] - alert) <= width]
    clean = sum(map(table.clean, asked))
    wrong = sum((scores[row] >= alert) is table.clean(row) for row in asked)
    return Ambiguity(width=width, asked=share(clean, len(table.rows(Known.CLEAN))), changed=share(wrong, len(asked)))


def _slice(name: str, alarms: Sequence[bool], table: Table, rows: Rows, alpha: float) -> Slice:
    false = found = clean = 0
    for row in rows:
        is_clean, alarmed = table.clean(row), alarms[row]
        clean += is_clean
        false += is_clean and alarmed
        found += alarmed and not is_clean
    return Slice(
        name=name,
        false_alarms=share(false, clean),
        found=share(found, len(rows) - clean),
        precision=share(found, false + found),
        enough=clean >= least(alpha),
    )


def share(k: int, n: int) -> Share:
    """Return a share of k in n with its exact interval."""
    low, high = clopper_pearson(k, n) if n else (0.0, 1.0)
    return Share(k, n, low, high)


def _bins(clean: Sequence[float], drifted: Sequence[float]) -> Iterator[Bin]:
    counts = [[0, 0] for _ in range(_BINS)]
    for kind, scores in enumerate((clean, drifted)):
        for score in scores:
            counts[min(_BINS - 1, int(score * _BINS))][kind] += 1
    for place, (of_clean, of_drifted) in enumerate(counts):
        yield Bin(place / _BINS, (place + 1) / _BINS, share(of_drifted, of_clean + of_drifted))


def _curve(clean: Sequence[float], drifted: Sequence[float]) -> Iterator[Point]:
    """Yield the corners of the curve from the highest score down; of many, some that are evenly apart."""
    every = sorted({*clean, *drifted}, reverse=True)
    step = max(1, -(-len(every) // _POINTS))
    reached_clean = reached_drifted = 0
    for place, score in enumerate(every):
        while reached_clean < len(clean) and clean[reached_clean] >= score:
            reached_clean += 1
        while reached_drifted < len(drifted) and drifted[reached_drifted] >= score:
            reached_drifted += 1
        if place % step == 0 or place == len(every) - 1:
            yield Point(
                score,
                reached_clean / len(clean) if clean else 0.0,
                reached_drifted / len(drifted) if drifted else 0.0,
            )
