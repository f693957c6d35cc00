"""A redactor that cannot fail."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection

from theodolite.core.reading import Failure
from theodolite.core.redaction import DenyAll, Redacted, Redactor
from theodolite.runtime.answers import attempted

__all__ = ("GuardedRedactor",)


class _Faults(threading.local):
    """The first fault on this thread since it was watched."""

    def __init__(self) -> None:
        self.first: list[Failure] = []


class GuardedRedactor:
    """Another redactor, whose faults are noted: where it raises, or answers with no text, nothing passes (`DenyAll`).

    >>> class Broken(DenyAll):
    ...     def text(self, value, secrets=()):
    ...         raise LookupError("no rules")
    >>> redactor = GuardedRedactor(Broken())
    >>> faults = redactor.watch()
    >>> redactor.text("call me"), faults[0].detail
    ('[REDACTED:TEXT]', 'LookupError: no rules')
    """

    def __init__(self, inner: Redactor) -> None:
        self.name = inner.name
        self.version = inner.version
        self._inner = inner
        self._denying = DenyAll()
        self._faults = _Faults()

    def watch(self) -> list[Failure]:
        """Return a list that the first fault from now on, on this thread, will be put into."""
        self._faults.first = []
        return self._faults.first

    def text(self, value: str, secrets: Collection[str] = ()) -> Redacted:
        """Return what the other redactor leaves of a text, or a placeholder."""
        passed = self._attempted(lambda: self._inner.text(value, secrets))
        return self._denying.text(value) if passed is None else passed

    def field(self, name: str, value: str) -> Redacted:
        """Return what the other redactor makes of a categorical value, or a placeholder."""
        passed = self._attempted(lambda: self._inner.field(name, value))
        return self._denying.field(name, value) if passed is None else passed

    def _attempted(self, work: Callable[[], Redacted]) -> Redacted | None:
        passed = attempted(lambda: _text(work()), "redactor", self.version)
        if not isinstance(passed, Failure):
            return passed
        if not self._faults.first:
            self._faults.first.append(passed)
        return None


def _text(passed: object) -> Redacted:
    if not isinstance(passed, str):
        raise TypeError(f"the redactor gave {type(passed).__name__}, not text")
    return Redacted(passed)
