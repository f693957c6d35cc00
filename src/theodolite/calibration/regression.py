"""Logistic regression with weights that keep their sign and stay near what they were: for coefficients of a score."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from theodolite.core.errors import MissingExtraError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ("RIDGE", "Line", "loss", "regressed")

RIDGE = 0.01
"""Of the squared distance of the weights from where they began, in units of the mean loss.

Ten times as much or a tenth of it moves the weights of the recorded AgentDojo sessions by less than 0.1. Our choice.
"""

# Decimals of what is kept: the last bits of an optimum depend on the machine.
_DECIMALS = 4


class Line(Struct, frozen=True, gc=False):
    """Log-odds: a bias, and a weight for each number."""

    bias: float
    weights: tuple[float, ...]

    def at(self, row: Sequence[float]) -> float:
        """Return the log-odds of a row."""
        return self.bias + sum(weight * value for weight, value in zip(self.weights, row, strict=True))


def regressed(rows: Sequence[Sequence[float]], truths: Sequence[bool], *, prior: Sequence[float]) -> Line:
    """Return the line of the least loss with weights of 0 or more, each kind of session weighing alike.

    `prior` are the weights to which the ridge draws. Needs rows of both kinds. Cost: some hundred passes over the rows.
    Raises ValueError where one kind is missing, and MissingExtraError without the extra `calibrate`.
    Source: L-BFGS-B, Byrd, Lu, Nocedal and Zhu 1995, as scipy has it.
    """
    if len(set(truths)) < 2:  # noqa: PLR2004 - two kinds
        raise ValueError("a score is fitted to rows of both kinds")
    try:
        import numpy as np  # noqa: PLC0415 - an extra, and slow to import
        from scipy.optimize import minimize  # noqa: PLC0415 - as above
    except ImportError as error:
        raise MissingExtraError(extra="calibrate", needed_for="coefficients that are fitted") from error
    x = np.asarray(rows, dtype=float).reshape(len(rows), len(prior))
    y = np.asarray(truths, dtype=float)
    mass = np.where(y > 0, 0.5 / max(1.0, y.sum()), 0.5 / max(1.0, (1 - y).sum()))
    start = np.asarray(prior, dtype=float)

    def cost(theta: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        z = theta[0] + x @ theta[1:]
        apart = theta[1:] - start
        p = 1.0 / (1.0 + np.exp(-np.clip(z, -500.0, 500.0)))
        value = float(mass @ (np.logaddexp(0.0, z) - y * z) + RIDGE / 2 * apart @ apart)
        slope = mass * (p - y)
        return value, np.concatenate(([slope.sum()], slope @ x + RIDGE * apart))

    bounds = [(None, None), *[(0.0, None)] * len(prior)]
    found = minimize(cost, np.concatenate(([0.0], start)), jac=True, method="L-BFGS-B", bounds=bounds)
    bias, *weights = [round(float(value), _DECIMALS) + 0.0 for value in found.x]
    return Line(bias, tuple(weights))


def loss(line: Line, row: Sequence[float], *, truth: bool) -> float:
    """Return the loss of one row: minus the logarithm of the chance that the line gives to what is true."""
    z = line.at(row) if truth else -line.at(row)
    return max(0.0, -z) + math.log1p(math.exp(-abs(z)))
