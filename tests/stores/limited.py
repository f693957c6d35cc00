"""Fills a store until the system refuses to let its files grow, lets them grow again, and checks what was kept."""

from __future__ import annotations

import resource
import sys

from msgspec import Raw

from theodolite.core.errors import StoreError
from theodolite.core.store import Entry, Kind, Record, verify
from theodolite.stores.sqlite import SQLiteStore

KEY = b"a key that only the operator has"


def entry(n: int) -> Entry:
    return Entry(session=f"s-{n % 3}", at=float(n), kind=Kind.EVENT, payload=Raw(b'"%s"' % (b"x" * 1_000)))


def main(path: str) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with SQLiteStore(path, key=KEY, patience=0.2) as store:
        acknowledged: list[Record] = [store.append(entry(0), durable=True)]
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))
        told = ""
        while not told:
            try:
                acknowledged.append(store.append(entry(len(acknowledged)), durable=True))
            except StoreError as error:
                told = str(error)
        assert "then flush" in told, told
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        store.flush()
        acknowledged.append(store.append(entry(1), durable=True))
        assert {record.hash for record in acknowledged} < {record.hash for record in store.read()}
        assert verify(store, KEY).problems == ()


if __name__ == "__main__":
    main(sys.argv[1])
