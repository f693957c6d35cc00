"""Rows of codes that belong to no record: told by `verify`, in nobody's way."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from theodolite.core.errors import StoreError
from theodolite.core.store import Entry, verify
from theodolite.stores.sqlite import ReadOnlySQLiteStore, SQLiteStore

Entries = Callable[..., Entry]
STRAY = "there are codes of this record, and no record"


@pytest.fixture
def kept(file: Path, key: bytes, entry: Entries) -> Path:
    with SQLiteStore(file, key=key) as store:
        for _ in range(3):
            store.append(entry(codes=("a.b",)))
    return file


def lay(file: Path, *places: tuple[object, int, int]) -> None:
    """Put rows of a code behind the store's back: session, n, place."""
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.executemany("INSERT INTO codes VALUES (?, ?, ?, 'z.z')", places)


@pytest.mark.parametrize("place", [("s-1", 3), ("s-1", 17), ("s-1", -1), ("nobody", 0)])
def test_verify_tells_of_codes_without_a_record(kept: Path, key: bytes, place: tuple[str, int]) -> None:
    lay(kept, (*place, 0))
    with ReadOnlySQLiteStore(kept) as evidence:
        problems = verify(evidence, key).problems
        assert [(problem.session, problem.n, problem.what) for problem in problems] == [(*place, STRAY)]
        assert list(evidence.read(code="z.z")) == []
        with evidence.still() as still:
            assert verify(still, key).problems == problems
    with SQLiteStore(kept, key=key) as store:
        assert verify(store, key).problems == problems


@pytest.mark.parametrize("session", ["s-1", "s-2"])
@pytest.mark.parametrize("place", [0, 5])
def test_an_append_is_not_kept_from_its_place(kept: Path, key: bytes, entry: Entries, session: str, place: int) -> None:
    lay(kept, *[(session, n, place) for n in range(3, 6)], ("s-2", 0, place))
    with SQLiteStore(kept, key=key) as store:
        written = [store.append(entry(session, codes=("c.d", "a.b")), durable=True) for _ in range(7)]
        assert list(store.read(session=session))[-7:] == written
        assert list(store.read(code="z.z")) == []
        assert not [problem for problem in verify(store, key).problems if problem.what != STRAY]


def test_an_erasure_is_not_given_codes_that_lay_in_wait(kept: Path, key: bytes, entry: Entries) -> None:
    lay(kept, ("s-1", 3, 0))
    with SQLiteStore(kept, key=key) as store:
        assert store.erase("s-1") == 3
        store.append(entry(), durable=True)
        assert verify(store, key).problems == ()


def test_codes_of_no_readable_place_are_damage(kept: Path, key: bytes) -> None:
    lay(kept, (b"\xff", 3, 0))
    with ReadOnlySQLiteStore(kept) as evidence, pytest.raises(StoreError, match="codes without a record"):
        verify(evidence, key)
