"""What can be read of a store's file, and the opening of it that writes nothing."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from sqlalchemy import Connection, Engine

from theodolite.core.store import Head, Problem, ReadableStore, Record, Registry
from theodolite.stores.sqlite.rows import Filter, head_of, heads, idle, records, registry, strays
from theodolite.stores.sqlite.schema import faults, locate, open_to_read

__all__ = ("ReadOnlySQLiteStore", "Readable")


class Readable:
    """The reads of a file that is open. `read` holds one snapshot of the file until it is exhausted or closed."""

    def __init__(self, file: Path, engine: Engine) -> None:
        self._file = file
        self.engine = engine

    def read(
        self,
        *,
        session: str | None = None,
        since: float | None = None,
        until: float | None = None,
        code: str | None = None,
    ) -> Iterator[Record]:
        """Yield the records that fit, by session and n, `since` and `until` included. Raises StoreError.

        A few hundred are held at once. What is appended after the first was asked for is not among them.
        """
        return self._records(Filter(session=session, since=since, until=until, code=code))

    def _records(self, wanted: Filter) -> Iterator[Record]:
        with faults(self._file), self.engine.connect() as connection:
            yield from records(connection, wanted)

    def head(self, session: str) -> Head | None:
        """Return the head of a session, or None when nothing was kept of it. Raises StoreError."""
        with faults(self._file), self.engine.connect() as connection:
            return head_of(connection, session)

    def heads(self) -> Iterator[Head]:
        """Yield the heads of all sessions by position. Raises StoreError."""
        return self._heads()

    def _heads(self) -> Iterator[Head]:
        with faults(self._file), self.engine.connect() as connection:
            yield from heads(connection)

    def registry(self) -> Registry | None:
        """Return the registry of sessions, or None when it is gone. Raises StoreError."""
        with faults(self._file), self.engine.connect() as connection:
            return registry(connection)

    def strays(self) -> Iterator[Problem]:
        """Yield a problem for each record that is not there and has codes. Raises StoreError."""
        return self._strays()

    def _strays(self) -> Iterator[Problem]:
        with faults(self._file), self.engine.connect() as connection:
            yield from map(_stray, strays(connection))

    def idle(self, before: float) -> dict[str, int]:
        """Return the sessions whose newest record is older, with how many payloads each has left. Raises StoreError.

        `before` is in seconds since the epoch. Records of erasures do not count. Reads every record's place.
        """
        with faults(self._file), self.engine.connect() as connection:
            return idle(connection, before)

    @contextmanager
    def still(self) -> Generator[ReadableStore]:
        """Give the store as it is at this moment, whoever writes to it meanwhile. Raises StoreError."""
        with faults(self._file), self.engine.connect() as connection:
            connection.exec_driver_sql("BEGIN")
            yield _Still(connection)


class _Still:
    """What one transaction sees."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def read(
        self,
        *,
        session: str | None = None,
        since: float | None = None,
        until: float | None = None,
        code: str | None = None,
    ) -> Iterator[Record]:
        return records(self._connection, Filter(session=session, since=since, until=until, code=code))

    def head(self, session: str) -> Head | None:
        return head_of(self._connection, session)

    def heads(self) -> Iterator[Head]:
        return heads(self._connection)

    def registry(self) -> Registry | None:
        return registry(self._connection)

    def strays(self) -> Iterator[Problem]:
        return map(_stray, strays(self._connection))


def _stray(place: tuple[str, int]) -> Problem:
    session, n = place
    return Problem(session=session, n=n, what="there are codes of this record, and no record")


class ReadOnlySQLiteStore(Readable):
    """The records in a SQLite file that is only to be read, by `verify` for one. Never changes the file.

    Somebody else may write to the file meanwhile. Where the directory can be written to, SQLite puts its `-wal` and
    `-shm` beside the file; they stay until the next who writes is done, and may be removed when nobody has it open. On
    a read-only medium the file is read as it is, and nobody must write to it; where a `-wal` there still holds records,
    SQLite can read neither, and opening raises a StoreError that says so.

    Raises StoreError for a file that is missing, empty, or not a store.

    >>> import tempfile
    >>> from theodolite.core.store import verify
    >>> from theodolite.stores.sqlite import SQLiteStore
    >>> with tempfile.TemporaryDirectory() as place:
    ...     SQLiteStore(f"{place}/records.db", key=bytes(32)).close()
    ...     with ReadOnlySQLiteStore(f"{place}/records.db") as evidence:
    ...         verify(evidence, bytes(32)).intact
    True
    """

    def __init__(self, path: str | os.PathLike[str], *, patience: float = 5.0) -> None:
        file = locate(path, create=False)
        super().__init__(file, open_to_read(file, patience=patience))

    def close(self) -> None:
        """Let go of the file."""
        self.engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
