"""Scores of sessions in which nothing happens, with laws that are known: what false alarms are counted on.

A session has a latent number v, and each of its readings one of its own, u; all are uniform and independent. A score
grows with u, so that the highest of a session of n readings is that of u ** (1 / n): a calibration set of sessions with
10,000 readings each is drawn at the cost of one with 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ("STREAMS", "Floats", "Rng", "Stream")

Floats = NDArray[np.float64]
Rng = np.random.Generator

# Where the log-odds of u are cut: u is never 0, and may be rounded to 1.
_LEAST = 1e-300
# Steps of the path that rises: after so many readings its score is about one half.
_PACE = 50.0


class Stream(NamedTuple):
    """A law. `continuous`: no two sessions are alike, also to six decimals: the rate of false alarms is known then."""

    readings: Callable[[Rng, int], Floats]
    highest: Callable[[Rng, NDArray[np.int64]], Floats]
    continuous: bool


def _drawn(score: Callable[[Floats, Floats], Floats], *, continuous: bool) -> Stream:
    """Return the law of readings that are alike but for the session's own number."""

    def readings(rng: Rng, length: int) -> Floats:
        return score(np.full(length, rng.random()), rng.random(length))

    def highest(rng: Rng, lengths: NDArray[np.int64]) -> Floats:
        return score(rng.random(len(lengths)), rng.random(len(lengths)) ** (1.0 / lengths))

    return Stream(readings, highest, continuous)


def _log_odds(u: Floats) -> Floats:
    return np.log(np.maximum(u, _LEAST)) - np.log(np.maximum(1.0 - u, 1e-16))


def _score(log_odds: Floats) -> Floats:
    return 1.0 / (1.0 + np.exp(-log_odds))


def _even(_v: Floats, u: Floats) -> Floats:
    return u


def _tied(_v: Floats, u: Floats) -> Floats:
    return np.floor(10.0 * u) / 10.0


def _silent(_v: Floats, u: Floats) -> Floats:
    return np.maximum(0.0, 100.0 * u - 99.0)


def _near_one(_v: Floats, u: Floats) -> Floats:
    return 1.0 - 0.01 * (1.0 - u) ** 2


def _full(_v: Floats, u: Floats) -> Floats:
    return np.where(u > 0.9995, 1.0, 0.9 * u)


def _alike(v: Floats, u: Floats) -> Floats:
    return _score(2.0 * _log_odds(v) + 0.5 * _log_odds(u) - 4.0)


def _path(rng: Rng, length: int) -> Floats:
    """Return how high a Brownian path has come by each whole step, as a score."""
    end = np.cumsum(rng.standard_normal(length))
    begin = np.concatenate(([0.0], end[:-1]))
    # Of a path between two points that are known the highest is known in law: Borodin and Salminen, 2002, 1.1.8.
    bend = np.sqrt((end - begin) ** 2 - 2.0 * np.log(1.0 - rng.random(length)))
    return _risen(np.maximum.accumulate((begin + end + bend) / 2.0))


def _path_end(rng: Rng, lengths: NDArray[np.int64]) -> Floats:
    return _risen(np.sqrt(lengths) * np.abs(rng.standard_normal(len(lengths))))


def _risen(height: Floats) -> Floats:
    risen: Floats = height / (height + math.sqrt(_PACE))
    return risen


STREAMS: Mapping[str, Stream] = {
    "even": _drawn(_even, continuous=True),
    "tied: ten steps": _drawn(_tied, continuous=False),
    "mostly 0": _drawn(_silent, continuous=False),
    "near 1": _drawn(_near_one, continuous=False),
    "some at 1": _drawn(_full, continuous=False),
    "alike within a session": _drawn(_alike, continuous=True),
    "rising": Stream(_path, _path_end, continuous=True),
}
"""Each law by its name."""
