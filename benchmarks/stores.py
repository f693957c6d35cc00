"""What keeping a record costs: in memory, sealed, in SQLite written behind, durably; how fast `verify` and exports are.

Usage: python benchmarks/stores.py [--short] [DIRECTORY]. The files are made in DIRECTORY (default: where the
system keeps temporary files), whose disk the durable figures measure. The references are plain `sqlite3` on a file
with the same tables and settings, given rows that are sealed already. Exits with 1 when a budget is exceeded.
"""

from __future__ import annotations

import contextlib
import io
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from msgspec import Raw
from timing import row, spread

from theodolite.cli.exporting import Export, export_records
from theodolite.core.store import Entry, Kind, Record, Store, verify
from theodolite.stores.bundle.verify import main as verify_bundle
from theodolite.stores.memory import MemoryStore
from theodolite.stores.sealing import SealedShelf, SealedStore, Sealer
from theodolite.stores.sqlite import ReadOnlySQLiteStore, SQLiteStore

KEY = bytes(32)
SESSIONS = 20
GROUP = 1_000
PAYLOAD = 1_000
INSERT = "INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
HEAD = "INSERT OR REPLACE INTO heads VALUES (?, ?, '', ?, ?, '')"


def entries(count: int) -> Iterator[Entry]:
    """Yield entries of some 1 kB, in turns from several sessions; every tenth has a code."""
    for n in range(count):
        payload = Raw(b'{"decision":%d,"text":"%s"}' % (n, b"x" * (PAYLOAD - 30)))
        codes = ("margin.unexplained",) if n % 10 == 0 else ()
        yield Entry(session=f"s-{n % SESSIONS}", at=float(n), kind=Kind.DECISION, payload=payload, codes=codes)


def per_record(count: int, work: Callable[[], object]) -> float:
    """Return the wall time of some work, in microseconds per record."""
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) / count * 1e6


def insert(file: Path, records: Sequence[Record], group: int) -> None:
    """Insert sealed records as the store does, by plain `sqlite3`, in groups of a fixed size."""
    SQLiteStore(file).close()
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = FULL")
        for start in range(0, len(records), group):
            some = records[start : start + group]
            ends = {record.session: record for record in some}
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(
                HEAD, [(name, int(name[2:]), record.n, record.hash) for name, record in ends.items()]
            )
            connection.executemany(INSERT, [columns(record) for record in some])
            connection.executemany(
                "INSERT INTO codes VALUES (?, ?, ?, ?)",
                [(record.session, record.n, place, code) for record in some for place, code in enumerate(record.codes)],
            )
            connection.execute("COMMIT")


def columns(record: Record) -> tuple[object, ...]:
    """Return a record as a row."""
    payload = bytes(record.payload or b"")
    return (
        *(record.session, record.n, record.at, record.kind.value, payload, record.salt),
        *(record.digest, record.previous, record.hash),
    )


def memory(count: int) -> tuple[bool, list[Record]]:
    """Print what `append` costs in memory; return whether that is within budget, and the records."""
    met = True
    stores = {"": MemoryStore(), " with a key": MemoryStore(KEY)}
    for name, store in stores.items():
        figures = spread(store.append, list(entries(count)))
        met &= row(f"MemoryStore{name}: append, median", figures.median, "us", budget=6.0)
        row(f"MemoryStore{name}: append, p99", figures.p99, "us")
    return met, sorted(stores[""].read(), key=lambda record: record.at)


def sealed(count: int) -> None:
    """Print what sealing adds to an append, beside the cipher alone on the same payloads."""
    given = list(entries(count))
    cipher, nonce = AESGCM(KEY), bytes(12)
    payloads = [bytes(entry.payload) for entry in given]
    raw = per_record(count, lambda: [cipher.encrypt(nonce, payload, None) for payload in payloads])
    row("reference: AES-256-GCM alone, 1 kB", raw, "us a record")
    plain = spread(MemoryStore(KEY).append, given)
    figures = spread(SealedStore(MemoryStore(KEY), Sealer(KEY)).append, given)
    row("SealedStore in memory: append, median", figures.median, "us", ratio=figures.median / plain.median)


def shelved(place: Path, count: int) -> None:
    """Print what a session on the shelf costs, with 100 kB of what it knows."""
    shelf, saved = SealedShelf(place / "shelf", Sealer(KEY)), bytes(100_000)
    figures = spread(lambda n: shelf.keep(f"s-{n % SESSIONS}", saved), range(count))
    row("SealedShelf: keep 100 kB, durably, median", figures.median / 1e3, "ms")


def exported(place: Path) -> None:
    """Print how fast records leave a file: as JSON lines, opened, and as a bundle; and how fast that is verified."""
    file = place / "behind.db"
    with ReadOnlySQLiteStore(file) as store:
        count = sum(1 for _ in store.read())
    ways = {
        "jsonl": Export(file=file, output=place / "out.jsonl"),
        "bundle": Export(file=file, bundle=place / "out.zip"),
    }
    for name, asked in ways.items():
        start = time.perf_counter()
        assert export_records(asked) == 0
        row(f"store export, {name}", count / (time.perf_counter() - start), "records/s")
    start = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()):
        assert verify_bundle([str(place / "out.zip")]) == 0
    row("verify.py on the bundle", count / (time.perf_counter() - start), "records/s")


def behind(place: Path, records: Sequence[Record]) -> None:
    """Print what a record costs that is written behind, to the caller and in all."""
    count = len(records)
    given = list(entries(count))
    raw = per_record(count, lambda: insert(place / "raw.db", records, GROUP))
    row(f"reference: sqlite3, {GROUP} rows a commit", raw, "us a record")
    with SQLiteStore(place / "behind.db", key=KEY) as store:
        figures = spread(store.append, given[: count // 10])
        row("SQLiteStore: append, in the caller, median", figures.median, "us", ratio=figures.median / raw)

        def fill() -> None:
            for entry in given:
                store.append(entry)
            store.flush()

        taken = per_record(count, fill)
        row("SQLiteStore: append and flush, grouped", taken, "us a record", ratio=taken / raw)


def durable(place: Path, records: Sequence[Record]) -> None:
    """Print what a record costs that is durable when `append` returns."""
    raw = per_record(len(records), lambda: insert(place / "raw-each.db", records, 1))
    row("reference: sqlite3, one row a commit", raw, "us a record")
    with SQLiteStore(place / "durable.db", key=KEY) as store:

        def fill() -> None:
            for entry in entries(len(records)):
                store.append(entry, durable=True)

        taken = per_record(len(records), fill)
    row("SQLiteStore: append(durable=True), one by one", taken, "us a record", ratio=taken / raw)


def verified(place: Path, records: Sequence[Record]) -> None:
    """Print how fast `verify` is, and what an erasure takes."""
    with closing(sqlite3.connect(place / "raw.db")) as connection:
        query = "SELECT * FROM records ORDER BY session, n"
        raw = per_record(len(records), lambda: list(connection.execute(query)))
    row("reference: sqlite3, SELECT of all rows", raw, "us a record")
    held = MemoryStore(KEY)
    for entry in entries(len(records)):
        held.append(entry)
    with SQLiteStore(place / "behind.db", key=KEY) as store:
        stores: dict[str, Store] = {"MemoryStore": held, "SQLiteStore": store}
        for name, each in stores.items():
            count = sum(1 for _ in each.read())
            start = time.perf_counter()
            assert verify(each, KEY).intact
            taken = (time.perf_counter() - start) / count
            row(f"{name}: verify", 1 / taken, "records/s", ratio=taken * 1e6 / raw)
        size = (place / "behind.db").stat().st_size / 1e6
        start = time.perf_counter()
        store.erase("s-0")
        row(f"SQLiteStore: erase one of {SESSIONS} sessions, {size:.0f} MB", (time.perf_counter() - start) * 1e3, "ms")


def main() -> int:
    """Print all figures; return 1 when a budget is exceeded."""
    count = 5_000 if "--short" in sys.argv else 50_000
    folders = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    with tempfile.TemporaryDirectory(dir=folders[0] if folders else None) as name:
        place = Path(name)
        met, records = memory(count)
        behind(place, records)
        durable(place, records[: count // 50])
        sealed(count // 5)
        shelved(place, count // 250)
        exported(place)
        verified(place, records)
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(main())
