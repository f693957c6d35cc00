"""Appends to a store until it is killed, and tells on standard output each record that was acknowledged."""

from __future__ import annotations

import os
import sys
import threading

from msgspec import Raw

from theodolite.core.store import Entry, Kind, Record
from theodolite.stores.sqlite import SQLiteStore

WAITING, BATCH = 3, 20


def entry(session: str, n: int) -> Entry:
    payload = Raw(f'{{"n":{n},"text":"{"x" * (n % 700)}"}}'.encode())
    return Entry(
        session=session, at=float(n), kind=Kind.DECISION, payload=payload, codes=("a.b",) if n % 7 == 0 else ()
    )


def tell(records: list[Record]) -> None:
    # One write of at most PIPE_BUF bytes: the lines of several threads do not mix, and none is cut by the kill.
    os.write(1, "".join(f"{record.session} {record.n} {record.hash}\n" for record in records).encode())


def wait_for_each(store: SQLiteStore, session: str) -> None:
    for n in range(10**9):
        tell([store.append(entry(session, n), durable=True)])


def flush_often(store: SQLiteStore, session: str) -> None:
    for n in range(0, 10**9, BATCH):
        records = [store.append(entry(f"{session}-{place % 3}", n + place)) for place in range(BATCH)]
        store.flush()
        tell(records)


def main(path: str, key: str, name: str) -> None:
    store = SQLiteStore(path, key=key.encode() or None, linger=0.002)
    for number in range(WAITING):
        threading.Thread(target=wait_for_each, args=(store, f"{name}-wait-{number}"), daemon=True).start()
    flush_often(store, f"{name}-flush")


if __name__ == "__main__":
    main(*sys.argv[1:])
