"""Entries, a store in a file, and a file that somebody else has locked."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import pytest
from msgspec import Raw

from theodolite.core.store import Entry, Kind
from theodolite.stores.sqlite import SQLiteStore

KEY = b"a key that only the operator has"


def _entry(session: str = "s-1", at: float = 1.0, text: str = "", codes: tuple[str, ...] = ()) -> Entry:
    return Entry(session=session, at=at, kind=Kind.DECISION, payload=Raw(f'{{"text":"{text}"}}'.encode()), codes=codes)


@contextmanager
def _locked(file: Path) -> Generator[None]:
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


def _texts(store: SQLiteStore, session: str = "s-1") -> list[str]:
    return [bytes(record.payload or b"").decode()[9:-2] for record in store.read(session=session)]


def _change(file: Path, *statements: str) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


@pytest.fixture
def key() -> bytes:
    """Return the operator's key, with which `store` seals."""
    return KEY


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "records.db"


@pytest.fixture
def store(file: Path) -> Iterator[SQLiteStore]:
    """Return an open store in `file` that waits for a lock no longer than a test can."""
    with SQLiteStore(file, key=KEY, patience=0.2) as opened:
        yield opened


@pytest.fixture(scope="session")
def entry() -> Callable[..., Entry]:
    """Return what makes a decision with a text: entry(session, at, text, codes)."""
    return _entry


@pytest.fixture(scope="session")
def texts() -> Callable[..., list[str]]:
    """Return what reads the texts of a session back: texts(store, session)."""
    return _texts


@pytest.fixture(scope="session")
def locked() -> Callable[[Path], AbstractContextManager[None]]:
    """Return what holds a file locked: with locked(file)."""
    return _locked


@pytest.fixture(scope="session")
def change() -> Callable[..., None]:
    """Return what changes a file behind the store's back: change(file, *statements)."""
    return _change
