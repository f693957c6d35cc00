"""Ctrl-C at a chosen moment of some work: what a test needs to try them all."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

__all__ = ("Interrupts",)


class Interrupts:
    """Interrupts work at one of the moments at which CPython looks for signals.

    Those are, among others, the beginning of each function and the end of each call into C. `counts` says, by the file
    of its code, whether a moment is one of those that are tried.

    >>> Interrupts(lambda file: True).count(lambda: len("two calls: the lambda, and into C"))
    2
    """

    def __init__(self, counts: Callable[[str], bool]) -> None:
        self._counts = counts

    def at(self, moment: int, work: Callable[[], object]) -> bool | None:
        """Do some work, interrupted at that moment, the first being 1; return whether the interrupt came through.

        None where the work was done before, False where it reached nobody, as in a generator that is being collected.
        """
        try:
            passed = self._profiled(work, moment)
        except KeyboardInterrupt:
            return True
        return None if passed < moment else False

    def count(self, work: Callable[[], object]) -> int:
        """Do some work, and return how many moments there were in it."""
        return self._profiled(work, 0)

    def _profiled(self, work: Callable[[], object], moment: int) -> int:
        """Return how many moments passed in some work. Raises KeyboardInterrupt at that one, if it is reached."""
        passed = 0

        def profile(frame: FrameType, what: str, _: object) -> None:
            nonlocal passed
            file = frame.f_code.co_filename
            # To take the profiler away is a call too, and our own.
            if what in {"call", "c_return"} and file != __file__ and self._counts(file):
                passed += 1
                if passed == moment:
                    raise KeyboardInterrupt

        before = sys.getprofile()
        sys.setprofile(profile)
        try:
            work()
        finally:
            sys.setprofile(before)
        return passed
