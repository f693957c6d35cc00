"""The one-sided cumulative sum: small changes that last, found early."""

from __future__ import annotations

from msgspec import Struct

__all__ = ("Cusum",)


class Cusum(Struct, kw_only=True):
    """What has added up above an allowance since it was last nothing.

    `allowance` is what a step may show in ordinary times: half-way between its mean there and the mean of the change
    that is looked for. State: one number. Cost: O(1). Source: E. S. Page, Continuous inspection schemes, Biometrika 41,
    1954.

    >>> cusum = Cusum(allowance=0.5)
    >>> [cusum.update(step) for step in (0.25, 1.0, 1.0, 0.0)]
    [0.0, 0.5, 1.0, 0.5]
    """

    allowance: float
    value: float = 0.0

    def update(self, step: float) -> float:
        """Take one step; return the sum, never below 0."""
        self.value = max(0.0, self.value + step - self.allowance)
        return self.value

    def reset(self) -> None:
        """Begin anew, as after a change that was announced."""
        self.value = 0.0
