"""Records in memory: for tests, for scans of recorded sessions, and for whoever keeps nothing."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from theodolite.core.errors import StoreError
from theodolite.core.store import (
    SALT_BYTES,
    Entry,
    Head,
    Kind,
    Record,
    Registry,
    seal_erasure,
    seal_head,
    seal_record,
    seal_registry,
)

__all__ = ("MemoryStore",)

# Bytes of a key that nobody can guess: those of the hash that it keys, RFC 2104, section 3.
_KEY = 32


class _Chain(Struct):
    records: list[Record]
    position: int
    before: str


def _salt() -> str:
    return os.urandom(SALT_BYTES).hex()


class MemoryStore:
    """A store that lives and dies with its object; what it calls durable survives nothing.

    State: every record, without a bound. `append` costs two SHA-256 and one lock; heads are sealed when they are asked
    for. `key` seals heads and the registry (HMAC-SHA256); `salts` makes the salt of each payload (16 bytes in hex),
    `clock` the time of an erasure. Closing it changes nothing. Safe to call from several threads.

    Raises StoreError for a key under 32 bytes.

    >>> from msgspec import Raw
    >>> from theodolite.core.store import Kind
    >>> store = MemoryStore()
    >>> entry = Entry(session="s-1", at=0.0, kind=Kind.DECISION, payload=Raw(b"{}"), codes=("payload.type",))
    >>> record = store.append(entry)
    >>> list(store.read(code="payload.type")) == [record]
    True
    """

    def __init__(
        self,
        key: bytes | None = None,
        salts: Callable[[], str] | None = None,
        clock: Callable[[], float] = time.time,  # noqa: TID251 - the default of an injected clock
    ) -> None:
        if key is not None and len(key) < _KEY:
            wrong = f"has {len(key)} bytes" if key else "is empty"
            raise StoreError(f"the key {wrong}: give at least {_KEY} random bytes, or None to keep an unsealed store")
        self._key = key
        self._salts = _salt if salts is None else salts
        self._clock = clock
        self._chains: dict[str, _Chain] = {}
        self._link = ""
        self._lock = threading.Lock()

    def append(self, entry: Entry, *, durable: bool = False) -> Record:  # noqa: ARG002 - nothing here is more durable
        """Seal and keep an entry. Raises StoreError where the entry cannot be sealed."""
        salt = self._salts()
        with self._lock:
            chain = self._chains.get(entry.session)
            if chain is None:
                return self._begin(entry, salt)
            records = chain.records
            record = seal_record(entry, n=len(records), previous=records[-1].hash, salt=salt)
            records.append(record)
            return record

    def _begin(self, entry: Entry, salt: str) -> Record:
        record = seal_record(entry, n=0, previous="", salt=salt)
        position, before = len(self._chains), self._link
        self._link = seal_head(record, position=position, before=before, key=None).link
        self._chains[entry.session] = _Chain([record], position, before)
        return record

    def read(
        self,
        *,
        session: str | None = None,
        since: float | None = None,
        until: float | None = None,
        code: str | None = None,
    ) -> Iterator[Record]:
        """Yield the records that fit, by session and n, as they were at the call."""
        with self._lock:
            names = sorted(self._chains) if session is None else [session] * (session in self._chains)
            # Copies of the lists: an erasure meanwhile must not show without its record.
            chains = [self._chains[name].records.copy() for name in names]
        return (
            record
            for records in chains
            for record in records
            if (since is None or since <= record.at)
            and (until is None or record.at <= until)
            and (code is None or code in record.codes)
        )

    def head(self, session: str) -> Head | None:
        """Return the head of a session, or None when nothing was kept of it."""
        with self._lock:
            chain = self._chains.get(session)
            if chain is None:
                return None
            return seal_head(chain.records[-1], position=chain.position, before=chain.before, key=self._key)

    def heads(self) -> Iterator[Head]:
        """Yield the heads of all sessions by position, as they are now."""
        with self._lock:
            ends = [(chain.records[-1], chain.position, chain.before) for chain in self._chains.values()]
        return (seal_head(last, position=position, before=before, key=self._key) for last, position, before in ends)

    def registry(self) -> Registry:
        """Return the registry of sessions."""
        with self._lock:
            return seal_registry(count=len(self._chains), link=self._link, key=self._key)

    def flush(self) -> None:
        """Do nothing: a record is kept when `append` returns."""

    def ready(self) -> None:
        """Do nothing: no append to memory is waited for."""

    def erase(self, session: str, *, reason: str = "") -> int:
        """Take away the payloads of a session and return how many; its chain stays, and goes on with the erasure."""
        with self._lock:
            chain = self._chains.get(session)
            records = [] if chain is None else chain.records
            full = [record.n for record in records if record.payload is not None and record.kind is not Kind.ERASURE]
            if full:
                n, previous = len(records), records[-1].hash
                now, salt = self._clock(), self._salts()
                made = seal_erasure(
                    session, at=now, payloads=len(full), n=n, previous=previous, salt=salt, reason=reason
                )
                for place in full:
                    records[place] = replace(records[place], payload=None, salt=None)
                records.append(made)
            return len(full)

    def close(self) -> None:
        """Do nothing: there is no file and no thread, and what was kept can still be read."""
