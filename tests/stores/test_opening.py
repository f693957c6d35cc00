"""What the store in a SQLite file opens and refuses, and how it ends."""

from __future__ import annotations

import gc
import os
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing
from pathlib import Path

import pytest

from theodolite.core.errors import StoreError
from theodolite.core.store import Entry, Record, seal_registry, verify
from theodolite.stores.sqlite import SQLiteStore

Entries = Callable[..., Entry]
Locked = Callable[[Path], AbstractContextManager[None]]

KEY = b"a key that only the operator has"


def test_file_and_wal_can_be_read_by_their_owner_alone(file: Path, store: SQLiteStore, entry: Entries) -> None:
    store.append(entry(), durable=True)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in file.parent.iterdir()}
    assert modes == {"records.db": 0o600, "records.db-wal": 0o600, "records.db-shm": 0o600}


def test_a_commit_is_synced_before_it_is_acknowledged(store: SQLiteStore) -> None:
    with store.engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2  # FULL
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA secure_delete").scalar() == 1


@pytest.mark.parametrize(
    "name", ["file:records.db?mode=memory", "a%41b.db", "a#b?c=d&e.db", "a b\n'.db", "ü\u202e.db", ":memory:.db"]
)
def test_a_path_is_taken_literally(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch, entry: Entries) -> None:
    monkeypatch.chdir(tmp_path)
    with SQLiteStore(name) as store:
        store.append(entry())
    assert os.listdir(tmp_path) == [name]  # noqa: PTH208 - names, not paths, are compared
    with SQLiteStore(tmp_path / name, create=False) as store:
        assert len(list(store.read())) == 1


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("", "not a file"),
        (":memory:", "use MemoryStore"),
        ("a\0b", "NUL"),
        ("//host/share/records.db", "network path"),
        ("\\\\host\\share\\records.db", "network path"),
        ("sqlite:///records.db", "directory does not exist"),
        ("nowhere/records.db", "directory does not exist"),
        (".", "is a directory"),
    ],
)
def test_what_is_no_place_for_a_file_is_refused(
    tmp_path: Path, path: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreError, match=reason):
        SQLiteStore(path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_must_exist_is_not_made(file: Path) -> None:
    with pytest.raises(StoreError, match="does not exist: check the path"):
        SQLiteStore(file, create=False)
    assert not file.exists()


def test_an_empty_file_that_must_be_a_store_is_refused_and_left_alone(file: Path) -> None:
    file.touch()
    with pytest.raises(StoreError, match="is empty, and no store"):
        SQLiteStore(file, create=False)
    assert file.read_bytes() == b""


def test_a_new_store_has_its_registry_sealed(file: Path, entry: Entries) -> None:
    with SQLiteStore(file, key=KEY) as store:
        assert store.registry() == seal_registry(count=0, link="", key=KEY)
        assert verify(store, KEY).intact
    with SQLiteStore(file) as store, pytest.raises(StoreError, match="another key"):
        store.append(entry(), durable=True)


@pytest.mark.parametrize("content", [b"not a database", b"x" * 10_000, b"SQLite format 3\0" + b"\xff" * 5_000])
def test_what_is_not_a_database_is_refused_and_left_alone(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    with pytest.raises(StoreError, match=f"{file.name}: file is not a database; name another file"):
        SQLiteStore(file)
    assert file.read_bytes() == content


def test_the_database_of_something_else_is_refused_and_left_alone(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
    content = file.read_bytes()
    with pytest.raises(StoreError, match="a database of something else"):
        SQLiteStore(file)
    assert file.read_bytes() == content


def test_another_schema_version_is_refused(file: Path) -> None:
    SQLiteStore(file).close()
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE schema SET version = 2")
    with pytest.raises(StoreError, match=r"schema version \[2\], this release knows 1"):
        SQLiteStore(file)


def test_an_empty_file_becomes_a_store(file: Path, entry: Entries) -> None:
    file.touch()
    with SQLiteStore(file) as store:
        store.append(entry(), durable=True)


def test_many_may_open_a_new_file_at_once(file: Path, entry: Entries) -> None:
    def work(number: int) -> Record:
        with SQLiteStore(file, key=KEY) as store:
            return store.append(entry(f"s-{number}"), durable=True)

    with ThreadPoolExecutor(8) as pool:
        kept = list(pool.map(work, range(8)))
    with SQLiteStore(file, key=KEY) as store:
        assert list(store.read()) == kept
        assert verify(store, KEY).intact


def test_a_new_file_that_is_locked_for_less_than_patience_is_waited_for(file: Path, locked: Locked) -> None:
    file.touch()
    with ThreadPoolExecutor(1) as pool:
        with locked(file):
            opening = pool.submit(SQLiteStore, file, patience=10)
            time.sleep(0.2)
            assert not opening.done()
        opening.result().close()


def test_a_new_file_that_is_locked_for_longer_than_patience_is_a_store_error(file: Path, locked: Locked) -> None:
    file.touch()
    with locked(file), pytest.raises(StoreError, match=r"WAL mode|locked"):
        SQLiteStore(file, patience=0.1)


def test_an_empty_key_is_refused(file: Path) -> None:
    with pytest.raises(StoreError, match="the key is empty"):
        SQLiteStore(file, key=b"")


def test_importing_the_package_does_not_import_sqlalchemy() -> None:
    code = "import sys, theodolite, theodolite.stores.memory; sys.exit('sqlalchemy' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_close_writes_what_waits_and_leaves_one_file(file: Path, entry: Entries) -> None:
    with SQLiteStore(file, key=KEY, linger=60) as store:
        record = store.append(entry())
    assert [path.name for path in file.parent.iterdir()] == [file.name]
    with SQLiteStore(file, key=KEY) as store:
        assert list(store.read()) == [record]


def test_a_closed_store_is_a_clear_error(file: Path, entry: Entries) -> None:
    store = SQLiteStore(file)
    store.close()
    store.close()
    for use in (
        lambda: store.append(entry()),
        store.read,
        store.heads,
        store.registry,
        store.flush,
        lambda: store.head("s-1"),
        lambda: store.erase("s-1"),
    ):
        with pytest.raises(StoreError, match="is closed: open it again"):
            use()


def test_no_thread_is_left(file: Path) -> None:
    before = threading.active_count()
    with SQLiteStore(file):
        assert threading.active_count() == before + 1
    assert threading.active_count() == before


def test_appends_that_race_with_close_are_kept_or_refused(file: Path, entry: Entries) -> None:
    store = SQLiteStore(file, key=KEY)

    def work(number: int) -> list[Record]:
        kept: list[Record] = []
        while True:
            try:
                kept.append(store.append(entry(f"s-{number}"), durable=True))
            except StoreError:
                return kept

    with ThreadPoolExecutor(3) as pool:
        working = [pool.submit(work, number) for number in range(3)]
        time.sleep(0.2)
        store.close()
        kept = {record.hash for future in working for record in future.result(timeout=30)}
    with SQLiteStore(file, key=KEY) as store:
        assert kept <= {record.hash for record in store.read()}
        assert verify(store, KEY).problems == ()


def test_a_store_that_is_forgotten_is_closed(file: Path, entry: Entries) -> None:
    before = threading.active_count()
    store = SQLiteStore(file, linger=60)
    store.append(entry())
    del store
    gc.collect()
    assert threading.active_count() == before
    with SQLiteStore(file) as store:
        assert len(list(store.read())) == 1


SCRIPT = (
    "import sys\n"
    "from msgspec import Raw\n"
    "from theodolite.core.store import Entry, Kind\n"
    "from theodolite.stores.sqlite import SQLiteStore\n"
    "store = SQLiteStore(sys.argv[1], linger=60, patience=0.2)\n"
    "store.append(Entry(session='s-1', at=1.0, kind=Kind.EVENT, payload=Raw(b'{}')))\n"
)


def test_the_interpreter_ends_though_nobody_closed_and_what_waited_is_kept(file: Path) -> None:
    subprocess.run([sys.executable, "-c", SCRIPT, str(file)], check=True, timeout=30)
    with SQLiteStore(file) as store:
        assert len(list(store.read())) == 1


def test_the_interpreter_ends_though_nobody_closed_and_the_file_is_locked(file: Path, locked: Locked) -> None:
    SQLiteStore(file).close()
    with locked(file):
        ended = subprocess.run([sys.executable, "-c", SCRIPT, str(file)], check=False, timeout=30, capture_output=True)
    assert b"1 records are not kept" in ended.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_child_is_told_to_open_its_own(file: Path) -> None:
    code = SCRIPT + (
        "import os\n"
        "from theodolite.core.errors import StoreError\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    told = 0\n"
        "    for use in (store.flush, store.read, store.close, lambda: store.erase('s-1')):\n"
        "        try:\n"
        "            use()\n"
        "        except StoreError as error:\n"
        "            told += 'opened in another process' in str(error)\n"
        "    sys.exit(told)\n"
        "_, status = os.waitpid(child, 0)\n"
        "store.close()\n"
        "sys.exit(os.waitstatus_to_exitcode(status))\n"
    )
    # From Python 3.12 on a fork beside a thread is warned of: that is just what a host does that forks.
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code, str(file)]
    ended = subprocess.run(command, check=False, timeout=30, capture_output=True)
    assert (ended.returncode, ended.stderr) == (4, b"")
    with SQLiteStore(file) as store:
        assert len(list(store.read())) == 1
