"""A shelf in memory, and one that fails when it is told to."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from theodolite.core.errors import StoreError

__all__ = ("FailingShelf", "MemoryShelf")


class MemoryShelf:
    """Holds sessions in memory, unsealed: it outlives a Monitor, and not its process.

    >>> shelf = MemoryShelf()
    >>> shelf.keep("s-1", b"older")
    >>> shelf.keep("s-1", b"newer")
    >>> list(shelf.held())
    [b'newer']
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[str, bytes] = {}

    def keep(self, session: str, saved: bytes) -> None:
        """Hold a session in place of what was held of it."""
        with self._lock:
            self._held[session] = saved

    def drop(self, session: str) -> None:
        """Hold a session no longer."""
        with self._lock:
            self._held.pop(session, None)

    def held(self) -> Iterator[bytes]:
        """Yield what was held when the first was asked for."""
        with self._lock:
            held = tuple(self._held.values())
        yield from held


class FailingShelf(MemoryShelf):
    """Raises `fault` where it is asked to do what `fails` names: keep, drop, or held, after all that it holds."""

    def __init__(self, *fails: str, fault: Exception | None = None) -> None:
        super().__init__()
        self.fails = set(fails)
        self._fault = fault or StoreError("the shelf is full: give it more room")

    def keep(self, session: str, saved: bytes) -> None:
        """Hold a session, or raise."""
        self._may("keep")
        super().keep(session, saved)

    def drop(self, session: str) -> None:
        """Hold a session no longer, or raise."""
        self._may("drop")
        super().drop(session)

    def held(self) -> Iterator[bytes]:
        """Yield what is held, and raise at the end."""
        yield from super().held()
        self._may("held")

    def _may(self, what: str) -> None:
        if what in self.fails:
            raise self._fault
