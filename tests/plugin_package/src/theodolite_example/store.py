"""A store that counts."""

from __future__ import annotations

from pathlib import Path

from theodolite.core.store import Entry, Record
from theodolite.stores.memory import MemoryStore

__all__ = ("CountingStore",)


class CountingStore(MemoryStore):
    """Keeps records in memory, whatever the path, and counts what was appended since it was made."""

    def __init__(self, path: Path | None = None, *, key: bytes | None = None) -> None:
        super().__init__(key)
        self.path = path
        self.appended = 0

    def append(self, entry: Entry, *, durable: bool = False) -> Record:
        """Keep an entry and count it."""
        record = super().append(entry, durable=durable)
        self.appended += 1
        return record
