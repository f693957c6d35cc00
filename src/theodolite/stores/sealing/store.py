"""A store that only the operator can read."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Raw
from msgspec.structs import replace

from theodolite.core.store import Entry, Head, Indexed, Problem, Record, Registry, Store
from theodolite.stores.sealing.sealer import Sealer

__all__ = ("SealedStore",)


class SealedStore:
    """Another store, in which the payload of each entry is sealed before it is kept.

    Records come back as they are kept, sealed: their digests are over the sealed payloads, so that whoever verifies,
    bundles or erases them needs no key. `Sealer.opened` gives the payload of one. Session ids, times, kinds, codes and
    reasons of erasures are not sealed: records are found by them. Closing it closes the other store.

    >>> from theodolite.core.store import Kind, verify
    >>> from theodolite.stores.memory import MemoryStore
    >>> sealer = Sealer(bytes(32))
    >>> store = SealedStore(MemoryStore(), sealer)
    >>> record = store.append(Entry(session="s-1", at=0.0, kind=Kind.DECISION, payload=Raw(b'{"a":1}')))
    >>> verify(store).intact, bytes(sealer.opened(record))
    (True, b'{"a":1}')
    """

    def __init__(self, store: Store, sealer: Sealer) -> None:
        self.inner = store
        self._sealer = sealer

    def append(self, entry: Entry, *, durable: bool = False) -> Record:
        """Seal the payload of an entry and keep it."""
        sealed = self._sealer.seal(bytes(entry.payload), entry.session, entry.kind.value)
        return self.inner.append(replace(entry, payload=Raw(sealed)), durable=durable)

    def read(
        self,
        *,
        session: str | None = None,
        since: float | None = None,
        until: float | None = None,
        code: str | None = None,
    ) -> Iterator[Record]:
        """Yield what the other store yields, sealed."""
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

    def strays(self) -> Iterator[Problem]:
        """Yield the other store's problems with its codes, if it keeps them apart."""
        return self.inner.strays() if isinstance(self.inner, Indexed) else iter(())

    def flush(self) -> None:
        """Flush the other store."""
        self.inner.flush()

    def ready(self) -> None:
        """Ask the other store."""
        self.inner.ready()

    def erase(self, session: str, *, reason: str = "") -> int:
        """Erase in the other store: it needs no key to unseal."""
        return self.inner.erase(session, reason=reason)

    def close(self) -> None:
        """Close the other store."""
        self.inner.close()
