"""A store that counts."""

from __future__ import annotations

from theodolite.core.store import Entry, Record
from theodolite.stores.memory import MemoryStore

__all__ = ("CountingStore",)


class CountingStore(MemoryStore):
    """Keeps records in memory, and counts what was appended since it was made."""

    appended = 0

    def append(self, entry: Entry, *, durable: bool = False) -> Record:
        """Keep an entry and count it."""
        record = super().append(entry, durable=durable)
        self.appended += 1
        return record
