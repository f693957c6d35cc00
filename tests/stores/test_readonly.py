"""A file that is only to be read: what that needs, and what it leaves."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from msgspec import Raw

from theodolite.core.errors import StoreError
from theodolite.core.store import Entry, Kind, verify
from theodolite.stores.sqlite import ReadOnlySQLiteStore, SQLiteStore

KEY = b"a key that only the operator has"
# The user whom systems keep for those who own nothing.
NOBODY = 65534

posix = pytest.mark.skipif(os.name != "posix", reason="the system has no such write bits")


def entry(session: str = "s-1") -> Entry:
    return Entry(session=session, at=1.0, kind=Kind.DECISION, payload=Raw(b"{}"), codes=("a.b",))


@pytest.fixture
def medium() -> Iterator[Path]:
    """A directory that everybody can get to, and that is writable again at the end."""
    with tempfile.TemporaryDirectory() as place:
        yield Path(place)
        Path(place).chmod(0o700)


@contextmanager
def read_only(place: Path) -> Generator[None]:
    """Take all write bits, and with them the rights of the superuser, whom they do not bind."""
    for path in place.iterdir():
        path.chmod(0o444)
    place.chmod(0o555)
    user = os.geteuid()
    if user == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)


def make(file: Path) -> Path:
    with SQLiteStore(file, key=KEY) as store:
        for n in range(6):
            store.append(entry(f"s-{n % 2}"))
    return file


def copy_with_its_wal(file: Path, place: Path) -> Path:
    """Copy a store while it is open, so that records wait in the WAL of the copy."""
    with SQLiteStore(file, key=KEY) as store:
        store.append(entry(), durable=True)
        for path in (file, file.with_name(f"{file.name}-wal")):
            shutil.copyfile(path, place / path.name)
    return place / file.name


def test_it_reads_what_the_store_reads_and_starts_no_thread(tmp_path: Path) -> None:
    file = make(tmp_path / "records.db")
    with SQLiteStore(file, key=KEY) as store:
        threads = threading.active_count()
        with ReadOnlySQLiteStore(file) as kept:
            assert threading.active_count() == threads
            assert list(kept.read(code="a.b")) == list(store.read())
            assert list(kept.heads()) == list(store.heads())
            assert (kept.registry(), kept.head("s-1")) == (store.registry(), store.head("s-1"))
            later = store.append(entry("s-0"), durable=True)
            assert list(kept.read(session="s-0"))[-1] == later


def test_the_file_is_not_changed_and_cannot_be(tmp_path: Path) -> None:
    file = make(tmp_path / "records.db")
    content, at = file.read_bytes(), file.stat().st_mtime_ns
    with ReadOnlySQLiteStore(file) as kept:
        assert verify(kept, KEY).intact
        with kept.engine.connect() as connection, pytest.raises(Exception, match="readonly"):
            connection.exec_driver_sql("DELETE FROM records")
    assert (file.read_bytes(), file.stat().st_mtime_ns) == (content, at)
    SQLiteStore(file, key=KEY, create=False).close()
    assert list(tmp_path.iterdir()) == [file]


@posix
def test_a_copy_on_a_read_only_medium_is_verified(medium: Path) -> None:
    file = make(medium / "records.db")
    content = file.read_bytes()
    with read_only(medium), ReadOnlySQLiteStore(file) as kept:
        seen = verify(kept, KEY)
        assert (seen.problems, seen.records) == ((), 6)
    assert [path.read_bytes() for path in medium.iterdir()] == [content]


@posix
def test_a_file_without_write_bits_is_verified_with_its_wal(medium: Path, tmp_path: Path) -> None:
    file = copy_with_its_wal(make(tmp_path / "records.db"), medium)
    for path in medium.iterdir():
        path.chmod(0o444)
    with ReadOnlySQLiteStore(file) as kept:
        seen = verify(kept, KEY)
    assert (seen.problems, seen.records) == ((), 7)


@posix
def test_records_in_a_wal_on_a_read_only_medium_are_not_passed_over(medium: Path, tmp_path: Path) -> None:
    file = copy_with_its_wal(make(tmp_path / "records.db"), medium)
    with read_only(medium), pytest.raises(StoreError, match=r"wait in records.db-wal.*copy both files"):
        ReadOnlySQLiteStore(file)


@posix
def test_an_empty_wal_on_a_read_only_medium_is_no_hindrance(medium: Path) -> None:
    file = make(medium / "records.db")
    file.with_name("records.db-wal").touch()
    with read_only(medium), ReadOnlySQLiteStore(file) as kept:
        assert verify(kept, KEY).intact


@posix
def test_a_file_that_must_not_be_read_is_a_store_error(medium: Path) -> None:
    file = make(medium / "records.db")
    with read_only(medium):
        pass
    file.chmod(0o000)
    user = os.geteuid()
    if user == 0:
        os.seteuid(NOBODY)
    try:
        with pytest.raises(StoreError, match="Permission denied; ask for the right"):
            ReadOnlySQLiteStore(file)
    finally:
        os.seteuid(user)


@pytest.mark.parametrize(
    ("content", "reason"),
    [(None, "does not exist"), (b"", "is empty, and no store"), (b"not a database" * 99, "name another file")],
)
def test_what_is_no_store_is_refused_and_left_alone(tmp_path: Path, content: bytes | None, reason: str) -> None:
    file = tmp_path / "records.db"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(StoreError, match=reason):
        ReadOnlySQLiteStore(file)
    assert [path.read_bytes() for path in tmp_path.iterdir()] == ([] if content is None else [content])


def test_the_database_of_something_else_is_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other.db")) as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
    with pytest.raises(StoreError, match="a database of something else"):
        ReadOnlySQLiteStore(tmp_path / "other.db")
