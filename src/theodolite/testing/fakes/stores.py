"""A store that runs full."""

from __future__ import annotations

from collections.abc import Iterator

from theodolite.core.errors import StoreError
from theodolite.core.store import Entry, Head, Record, Registry, Store

__all__ = ("FullStore",)


class FullStore:
    """Another store with room for `room` more entries: after that, `append` raises StoreError until `room` is raised.

    What was kept stays readable.
    """

    def __init__(self, inner: Store, room: int) -> None:
        self.inner = inner
        self.room = room

    def append(self, entry: Entry, *, durable: bool = False) -> Record:
        """Keep an entry while there is room."""
        if self.room <= 0:
            raise StoreError("the store is full: give it more room")
        self.room -= 1
        return self.inner.append(entry, durable=durable)

    def read(
        self,
        *,
        session: str | None = None,
        since: float | None = None,
        until: float | None = None,
        code: str | None = None,
    ) -> Iterator[Record]:
        """Yield what the other store yields."""
        return self.inner.read(session=session, since=since, until=until, code=code)

    def head(self, session: str) -> Head | None:
        """Return the other store's head."""
        return self.inner.head(session)

    def heads(self) -> Iterator[Head]:
        """Yield the other store's heads."""
        return self.inner.heads()

    def registry(self) -> Registry | None:
        """Return the other store's registry."""
        return self.inner.registry()

    def flush(self) -> None:
        """Flush the other store."""
        self.inner.flush()

    def ready(self) -> None:
        """Raise StoreError while there is no room."""
        if self.room <= 0:
            raise StoreError("the store is full: give it more room")
        self.inner.ready()

    def erase(self, session: str, *, reason: str = "") -> int:
        """Erase in the other store."""
        return self.inner.erase(session, reason=reason)

    def close(self) -> None:
        """Close the other store."""
        self.inner.close()
