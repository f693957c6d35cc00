"""What was erased is gone, from the file as well."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from msgspec import Raw

from theodolite.core.errors import StoreError
from theodolite.core.store import Entry, Kind, verify
from theodolite.stores.sqlite import SQLiteStore

Entries = Callable[..., Entry]

KEY = b"a key that only the operator has"


def test_no_byte_of_an_erased_payload_is_left_in_the_file(file: Path, entry: Entries) -> None:
    secrets = {session: f"secret-of-{session}-".encode() for session in ("s-1", "s-2", "s-3")}
    sizes = (3, 40, 400, 3_000, 30_000)
    with SQLiteStore(file, key=KEY, linger=0.001) as store:
        for n in range(200):
            for session, secret in secrets.items():
                text = secret.decode() * (1 + sizes[n % 5] // 20)
                store.append(entry(session, at=float(n), text=text), durable=n % 50 == 0)
        assert store.erase("s-2") == 200
        left = b"".join(path.read_bytes() for path in file.parent.iterdir())
        assert {session for session, secret in secrets.items() if secret in left} == {"s-1", "s-3"}
        # The other sessions' payloads were moved about meanwhile: their old places must be clean as well.
        assert store.erase("s-3") == 200
        assert store.erase("s-1") == 200
        left = b"".join(path.read_bytes() for path in file.parent.iterdir())
        assert not any(secret in left for secret in secrets.values())
        seen = verify(store, KEY)
    assert (seen.problems, seen.erased) == ((), 600)


def test_no_byte_is_left_of_a_payload_that_was_moved_within_the_file(file: Path) -> None:
    """Small pages, uneven payloads: SQLite's secure_delete alone leaves one of these behind."""
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA page_size = 512")
        connection.execute("VACUUM")
    with SQLiteStore(file, linger=60) as store:
        for n in range(300):
            number = n * 7 % 10
            payload = Raw(f"<secret-{number:02}>".encode() * ((20 + n * 389 % 880) // 11 + 1))
            store.append(Entry(session=f"s-{number:02}", at=float(n), kind=Kind.EVENT, payload=payload))
        for erased in range(10):
            assert store.erase(f"s-{erased:02}") == 30
            left = b"".join(path.read_bytes() for path in file.parent.iterdir())
            found = {number for number in range(10) if f"<secret-{number:02}>".encode() in left}
            assert found == set(range(erased + 1, 10))


def test_erase_counts_each_payload_once_and_the_chain_goes_on(store: SQLiteStore, entry: Entries) -> None:
    store.append(entry())
    assert (store.erase("s-1"), store.erase("s-1"), store.erase("nobody")) == (1, 0, 0)
    record = store.append(entry(), durable=True)
    assert [found.payload is None for found in store.read()] == [True, False, False]
    assert [found.kind is Kind.ERASURE for found in store.read()] == [False, True, False]
    assert record.n == 2
    assert verify(store, KEY).problems == ()


def test_a_reader_in_the_way_is_told_and_erasing_again_helps(file: Path, store: SQLiteStore, entry: Entries) -> None:
    for n in range(1_000):
        store.append(entry(text="secret-" * 100, at=float(n)))
    reading = store.read()
    next(reading)
    with pytest.raises(StoreError, match="end every read of this file and erase again"):
        store.erase("s-1")
    del reading
    assert store.erase("s-1") == 0
    assert not any(b"secret" in path.read_bytes() for path in file.parent.iterdir())


def test_appends_go_on_while_a_session_is_erased(store: SQLiteStore, entry: Entries) -> None:
    for _ in range(50):
        store.append(entry("s-1", text="x" * 1_000))
    with ThreadPoolExecutor(1) as pool:
        erasing = pool.submit(store.erase, "s-1")
        kept = [store.append(entry("s-2"), durable=n % 10 == 0) for n in range(50)]
        assert erasing.result() == 50
    assert list(store.read(session="s-2")) == kept
    assert verify(store, KEY).problems == ()


def test_what_waits_to_be_written_is_erased_too(file: Path, entry: Entries) -> None:
    with SQLiteStore(file, key=KEY, linger=60) as store:
        for _ in range(3):
            store.append(entry(text="secret"))
        assert store.erase("s-1") == 3
        assert not any(b"secret" in path.read_bytes() for path in file.parent.iterdir())
        assert verify(store, KEY).problems == ()


def test_a_session_is_erased_while_it_is_appended_to(store: SQLiteStore, entry: Entries) -> None:
    with ThreadPoolExecutor(1) as pool:
        appending = pool.submit(lambda: [store.append(entry(), durable=n % 10 == 0) for n in range(100)])
        erased = sum(store.erase("s-1") for _ in range(5))
        appending.result()
    erased += store.erase("s-1")
    assert erased == 100
    seen = verify(store, KEY)
    assert (seen.problems, seen.erased) == ((), 100)


def test_what_another_process_wrote_meanwhile_is_erased_and_its_writer_refused(
    file: Path, store: SQLiteStore, entry: Entries
) -> None:
    store.append(entry(), durable=True)
    with SQLiteStore(file, key=KEY) as other:
        assert other.erase("s-1") == 1
    with pytest.raises(StoreError, match="two writers"):
        store.append(entry(), durable=True)
    assert verify(store, KEY).problems == ()


@pytest.mark.parametrize("key", [None, b"another key"])
def test_nothing_is_erased_without_the_key_that_sealed_it(
    file: Path, store: SQLiteStore, key: bytes | None, entry: Entries
) -> None:
    kept = store.append(entry(), durable=True)
    with SQLiteStore(file, key=key) as other, pytest.raises(StoreError, match="another key"):
        other.erase("s-1")
    assert list(store.read()) == [kept]


def test_a_locked_file_keeps_its_payloads_and_can_be_erased_later(
    file: Path, store: SQLiteStore, entry: Entries
) -> None:
    kept = store.append(entry(), durable=True)
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="locked"):
            store.erase("s-1")
        connection.execute("ROLLBACK")
    assert list(store.read()) == [kept]
    assert store.erase("s-1") == 1
    assert store.append(entry(), durable=True).n == 2
    assert verify(store, KEY).problems == ()


def test_an_erasure_says_why(store: SQLiteStore, entry: Entries) -> None:
    store.append(entry())
    store.erase("s-1", reason="asked for by M\u00fcller \ud800")
    (erasure,) = [record for record in store.read() if record.kind is Kind.ERASURE]
    assert (
        bytes(erasure.payload or b"") == '{"payloads":1,"through":0,"reason":"asked for by Müller \\\\ud800"}'.encode()
    )
    assert verify(store, KEY).problems == ()


def test_several_sessions_are_erased_and_one_that_cannot_be_keeps_none_of_the_others(
    file: Path, store: SQLiteStore, entry: Entries
) -> None:
    for n in range(4):
        store.append(entry(f"s-{n}", text=f"secret-{n}"), durable=True)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE heads SET seal = '' WHERE session = 's-1'")
    with SQLiteStore(file, key=KEY) as other, pytest.raises(StoreError, match=r"'s-1'.*; 3 payloads of other sessions"):
        other.erase_all(["s-0", "s-1", "s-2", "s-3", "nobody"], reason="old")
    left = b"".join(path.read_bytes() for path in file.parent.iterdir())
    assert [n for n in range(4) if b"secret-%d" % n in left] == [1]


def test_a_session_is_idle_when_its_newest_record_but_erasures_is_older(store: SQLiteStore, entry: Entries) -> None:
    for session, at in (("s-1", 1.0), ("s-1", 3.0), ("s-2", 2.0), ("s-3", 9.0)):
        store.append(entry(session, at))
    assert store.idle(3.0) == {"s-2": 1}
    assert store.idle(3.5) == {"s-1": 2, "s-2": 1}
    assert store.erase_all(store.idle(3.5)) == 3
    assert store.idle(3.5) == {}
    store.append(entry("s-2", 2.5))
    assert store.idle(3.5) == {"s-2": 1}  # the time of its erasure does not count, what came behind it does
