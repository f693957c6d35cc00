"""A redactor that cannot fail, and that knows what of a probe no redactor of others does."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Collection
from functools import lru_cache

from theodolite.core.reading import Failure
from theodolite.core.redaction import DenyAll, Redacted, Redactor
from theodolite.detectors.behavior.disclosure import Planted
from theodolite.runtime.answers import attempted
from theodolite.runtime.confidential import Confidential

__all__ = ("GuardedRedactor",)

_TOLD = "[REDACTED:CANARY]"


class _Faults(threading.local):
    """The first fault on this thread since it was watched."""

    def __init__(self) -> None:
        self.first: list[Failure] = []


class GuardedRedactor:
    """Another redactor, whose faults are noted: where it raises, or answers with no text, nothing passes (`DenyAll`).

    All that is kept or shown of a session passes here, once. What is `confidential` is hidden before the other redactor
    looks. A text that still tells one of its `secrets` then, disguised in a way that is counted as a disclosure, is
    hidden whole: where in it that stands, nobody knows.

    >>> class Broken(DenyAll):
    ...     def text(self, value, secrets=()):
    ...         raise LookupError("no rules")
    >>> redactor = GuardedRedactor(Broken())
    >>> faults = redactor.watch()
    >>> redactor.text("call me"), faults[0].detail
    ('[REDACTED:TEXT]', 'LookupError: no rules')
    """

    def __init__(self, inner: Redactor, confidential: Confidential | None = None) -> None:
        self.name = inner.name
        self.version = inner.version
        self._inner = inner
        self._confidential = confidential or Confidential(())
        self._denying = DenyAll()
        self._faults = _Faults()

    def watch(self) -> list[Failure]:
        """Return a list that the first fault from now on, on this thread, will be put into."""
        self._faults.first = []
        return self._faults.first

    def text(self, value: str, secrets: Collection[str] = ()) -> Redacted:
        """Return what the other redactor leaves of a text, or a placeholder."""
        passed = self._attempted(lambda: self._passed(value, tuple(secrets)))
        return self._denying.text(value) if passed is None else passed

    def _passed(self, value: str, secrets: tuple[str, ...]) -> Redacted:
        passed = _text(self._inner.text(self._confidential.hidden(value), secrets))
        return Redacted(_without(passed, _planted(secrets))) if secrets else passed

    def concealed(self, value: str, secrets: tuple[str, ...]) -> str:
        """Return a text without what is confidential and without these canaries, and otherwise as it is.

        Where that fails, nothing of it.
        """
        passed = self._attempted(lambda: Redacted(self._concealed(value, secrets)))
        return self._denying.text(value) if passed is None else passed

    def _concealed(self, value: str, secrets: tuple[str, ...]) -> str:
        hidden = self._confidential.hidden(value)
        for secret in secrets:
            hidden = re.sub(re.escape(secret), _TOLD, hidden, flags=re.IGNORECASE)
        return _without(hidden, _planted(secrets))

    def field(self, name: str, value: str) -> Redacted:
        """Return what the other redactor makes of a categorical value, or a placeholder."""
        passed = self._attempted(lambda: _text(self._inner.field(name, self._confidential.hidden(value))))
        return self._denying.field(name, value) if passed is None else passed

    def _attempted(self, work: Callable[[], Redacted]) -> Redacted | None:
        passed = attempted(work, "redactor", self.version)
        if not isinstance(passed, Failure):
            return passed
        if not self._faults.first:
            self._faults.first.append(passed)
        return None


def _text(passed: object) -> Redacted:
    if not isinstance(passed, str):
        raise TypeError(f"the redactor gave {type(passed).__name__}, not text")
    return Redacted(passed)


# The sessions whose answers and calls are looked at by turns. Our choice.
@lru_cache(maxsize=256)
def _planted(secrets: tuple[str, ...]) -> Planted:
    return Planted(secrets)


def _without(text: str, planted: Planted) -> str:
    """Return a text that tells no canary: this one, a mark, or nothing, where the mark would tell one."""
    return next((kept for kept in (text, _TOLD) if not planted.told_in(kept)), "")
