"""Time that passes only when a test says so."""

from __future__ import annotations

__all__ = ("FakeClock",)


class FakeClock:
    """Shows `now`, in seconds since the epoch, and moves on by `step` each time it is looked at.

    >>> clock = FakeClock(100.0, step=1.0)
    >>> clock(), clock()
    (100.0, 101.0)
    >>> clock.now = 500.0
    >>> clock()
    500.0
    """

    def __init__(self, now: float = 1_000_000.0, *, step: float = 0.0) -> None:
        self.now = now
        self.step = step

    def __call__(self) -> float:
        """Return the time, and let `step` seconds pass."""
        now = self.now
        self.now += self.step
        return now
