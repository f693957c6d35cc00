"""How the numbers of an artefact are written: shares with their interval, scores, and how many sessions are missing."""

from __future__ import annotations

from collections.abc import Iterator

from theodolite.core.assessment import Share, Threshold
from theodolite.reports.escaping import inert
from theodolite.reports.layout import Block, Paragraph, Span, Style, counted
from theodolite.stats.conformal import least
from theodolite.stats.interval import clopper_pearson

__all__ = ("amount", "missing", "more", "number", "out_of_fold", "percent", "rate", "ratio", "share", "whole")

# Below this share a digit more is shown: alpha may be half of one percent.
_SMALL = 0.01
# Alphas that are below this, and counts over it, are no calibration's: an artefact may say anything.
_LEAST, _MOST = 1e-9, 1_000_000
# Characters of a count: what an artefact says may be no count of sessions.
_LONGEST = 20


def number(value: float) -> str:
    """Return a score or a coefficient in at most six significant digits.

    >>> number(0.91), number(2 / 3), number(1e-9)
    ('0.91', '0.666667', '1e-09')
    """
    return f"{value:.6g}"


def amount(count: int) -> str:
    """Return a count, cut off where it is no count of anything."""
    return inert(f"{count:,}", _LONGEST)


def percent(value: float) -> str:
    """Return a share in percent without the sign: one digit after the point, two below one percent.

    >>> percent(0.125), percent(0.0006), percent(0.0)
    ('12.5', '0.06', '0')
    """
    if value == 0.0:
        return "0"
    return f"{100 * value:.1f}" if _SMALL <= value <= 1.0 else f"{100 * value:.2g}"


def whole(value: float) -> str:
    """Return alpha in percent, as it was given.

    >>> whole(0.01), whole(0.005), whole(0.07)
    ('1 %', '0.5 %', '7 %')
    """
    return f"{100 * value:.4g} %"


def share(found: Share) -> str:
    """Return a share as a count with its interval. That it is one of 95 % is said where it stands.

    >>> share(Share(3, 180, 0.003, 0.048)), share(Share(0, 0, 0.0, 1.0))
    ('3 of 180 (0.3 to 4.8 %)', 'none')
    """
    return f"{amount(found.k)} of {amount(found.n)} ({_bounds(found.low, found.high)})" if found.n else "none"


def rate(found: Share) -> str:
    """Return a share in a sentence, with its interval.

    >>> rate(Share(3, 180, 0.003, 0.048))
    '3 of 180 (95 %: 0.3 to 4.8 %)'
    """
    return share(found).replace("(", "(95 %: ", 1)


def ratio(found: Share) -> float | None:
    """Return a share as a number; None where it is none.

    >>> ratio(Share(1, 4, 0.0, 1.0)), ratio(Share(0, 0, 0.0, 1.0)), ratio(Share(-1, 2, 0.0, 1.0))
    (0.25, None, None)
    """
    return found.k / found.n if 0 <= found.k <= found.n > 0 else None


def out_of_fold(threshold: Threshold) -> str:
    """Return the alarms of a threshold in the sessions that it was fitted without.

    Of very many, or of counts that are none, only the lower bound that the artefact has.
    """
    k, n = threshold.out_of_fold, threshold.judged
    if not n:
        return "none judged"
    if not 0 <= k <= n <= _MOST:
        return f"{amount(k)} of {amount(n)} (at least {percent(threshold.low)} %)"
    return f"{k:,} of {n:,} ({_bounds(threshold.low, clopper_pearson(k, n)[1])})"


def missing(alpha: float, clean: int) -> int:
    """Return how many clean sessions more there have to be to say anything of alpha: 1 / alpha - 1 in all.

    For a new session that is exchangeable with n others, alpha below 1 / (n + 1) cannot be promised; 0 where these are
    enough, and where alpha is none.

    >>> missing(0.01, 30), missing(0.01, 99), missing(0.0, 5)
    (69, 0, 0)
    """
    if not _LEAST <= alpha < 1.0:
        return 0
    return max(0, least(alpha) - clean)


def more(count: int, noun: str) -> Iterator[Block]:
    """Yield how many more there are of something than are told, if there are."""
    if count > 0:
        yield Paragraph((Span(f"... and {counted(count, f'more {noun}')}: --format json has all", Style.QUIET),))


def _bounds(low: float, high: float) -> str:
    return f"{percent(low)} to {percent(high)} %"
