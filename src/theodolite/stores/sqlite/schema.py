"""The tables of a store, and the opening of a file that holds them.

`records` holds each record but its codes, which stand in `codes` alone: they are found by an index there and put back
into the record from there, so that a code taken out to hide a finding breaks the hash of its record. `heads` and
`registry` are what core's `verify` checks the records against.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from msgspec.structs import asdict
from sqlalchemy import (
    CheckConstraint,
    Column,
    Connection,
    Engine,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    create_engine,
    insert,
    inspect,
    select,
)
from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from theodolite.core.errors import StoreError
from theodolite.core.store import Record, seal_registry

__all__ = (
    "CODES",
    "HEADS",
    "KEEP",
    "RECORDS",
    "REGISTRY",
    "TamperedError",
    "begin",
    "faults",
    "locate",
    "main_file_holds",
    "open_engine",
    "open_to_read",
)

# The number of this layout. A change of it needs a migration; until there is one, other numbers are refused.
VERSION: Final = 1

KEEP: Final = "run `theodolite store verify`, keep the file as it is, and go on in another one"

# Seconds between two looks at a lock that nobody says is free.
_POLL: Final = 0.01

_METADATA = MetaData()

RECORDS = Table(
    "records",
    _METADATA,
    Column("session", Text, primary_key=True),
    Column("n", Integer, primary_key=True, autoincrement=False),
    Column("at", Float, nullable=False),
    Column("kind", Text, nullable=False),
    Column("payload", LargeBinary),
    Column("salt", Text),
    Column("digest", Text, nullable=False),
    Column("previous", Text, nullable=False),
    Column("hash", Text, nullable=False),
    Index("records_at", "at", "session", "n"),
)

CODES = Table(
    "codes",
    _METADATA,
    Column("session", Text, primary_key=True),
    Column("n", Integer, primary_key=True, autoincrement=False),
    Column("place", Integer, primary_key=True, autoincrement=False),
    Column("code", Text, nullable=False),
    Index("codes_code", "code", "session", "n"),
    sqlite_with_rowid=False,
)

HEADS = Table(
    "heads",
    _METADATA,
    Column("session", Text, primary_key=True),
    Column("position", Integer, nullable=False, unique=True),
    Column("link", Text, nullable=False),
    Column("n", Integer, nullable=False),
    Column("hash", Text, nullable=False),
    Column("seal", Text, nullable=False),
)

REGISTRY = Table(
    "registry",
    _METADATA,
    Column("id", Integer, CheckConstraint("id = 1"), primary_key=True, autoincrement=False),
    Column("count", Integer, nullable=False),
    Column("link", Text, nullable=False),
    Column("seal", Text, nullable=False),
)

_SCHEMA = Table("schema", _METADATA, Column("version", Integer, primary_key=True, autoincrement=False))

# What the low byte of SQLite's result code means for whoever has to mend it.
_ADVICE: Final = {
    sqlite3.SQLITE_FULL: "free space, then flush",
    sqlite3.SQLITE_BUSY: "another connection holds the file locked; wait for it to end, then flush",
    sqlite3.SQLITE_READONLY: "make the file and its directory writable",
    sqlite3.SQLITE_CANTOPEN: "make the file and its directory writable, and leave the file in its place",
    sqlite3.SQLITE_NOTADB: "name another file",
    sqlite3.SQLITE_CORRUPT: "the file is damaged: keep it as it is and go on in another one",
    sqlite3.SQLITE_IOERR: "look for a fault of the disk, then flush",
}


class TamperedError(Exception):
    """The file holds what this package would not have written. Leaves it as a StoreError, by `faults`."""


def _result_code(error: SQLAlchemyError) -> int:
    """Return the primary SQLite result code of an error, or 0 where it did not come from SQLite."""
    cause = error.orig if isinstance(error, DBAPIError) else None
    return int(getattr(cause, "sqlite_errorcode", 0)) & 0xFF


@contextmanager
def faults(file: Path) -> Generator[None]:
    """Turn what the file gives rise to inside into a StoreError that names it and what to do next.

    What a signal handler raised comes out as it is, also where SQLAlchemy found its transaction half closed by it.
    """
    try:
        yield
    except SQLAlchemyError as error:
        what = error.orig if isinstance(error, DBAPIError) else error
        advice = _ADVICE.get(_result_code(error), "run `theodolite store verify` on it")
        raise StoreError(f"store {file}: {what}; {advice}") from error
    except TamperedError as error:
        raise StoreError(f"store {file}: {error}; {KEEP}") from error
    except AssertionError as error:
        stop = error.__context__
        if stop is None or isinstance(stop, Exception):
            raise
        raise stop from None
    except UnicodeEncodeError as error:
        raise StoreError(f"store {file}: no file can hold a lone surrogate: {error}; spell it out") from error


def locate(path: str | os.PathLike[str], *, create: bool) -> Path:
    """Return the absolute file of a store, made empty and private (mode 0600) where there was none.

    The path is taken literally, as a local file. Raises StoreError.
    """
    name = os.fspath(path)
    if name in {"", ":memory:"}:
        raise StoreError(f"store {name!r} is not a file: give a path, or use MemoryStore")
    if "\0" in name:
        raise StoreError(f"store {name!r}: no file has a name with NUL in it")
    if name.startswith(("//", "\\\\")):
        raise StoreError(f"store {name!r} is a network path, where SQLite's locks do not hold: use a local file")
    file = Path(name).absolute()
    if file.is_dir():
        raise StoreError(f"store {file} is a directory: name a file in it")
    if not file.parent.is_dir():
        raise StoreError(f"store {file}: its directory does not exist; create it first")
    if not file.exists():
        if not create:
            raise StoreError(f"store {file} does not exist: check the path")
        _make(file)
    return file


def _make(file: Path) -> None:
    try:
        os.close(os.open(file, os.O_CREAT | os.O_RDWR, 0o600))
        # A file is durable only when its name is.
        if os.name == "posix":
            directory = os.open(file.parent, os.O_RDONLY)
            os.fsync(directory)
            os.close(directory)
    except OSError as error:
        raise StoreError(f"store {file} cannot be created: {error.strerror}; make its directory writable") from error


def open_engine(file: Path, *, key: bytes | None, create: bool, patience: float) -> tuple[Engine, Connection]:
    """Return an engine on an existing file with the tables in it, and a connection. Raises StoreError.

    With `create` an empty file gets the tables, and a registry that is sealed with `key`. `patience` is in seconds.
    SQLite removes the WAL when the last connection to the file is closed: this one is to live as long as the store.
    """
    engine = _engine(file, "mode=rw", patience)
    with faults(file):
        connection = engine.connect()
        try:
            if create:
                _make_tables(connection, file, key, patience)
            _check_tables(connection, file)
            _write_ahead(connection, file, patience)
            connection.scalars(select(_SCHEMA)).all()  # it takes hold of the WAL when it first reads with one
            connection.rollback()
        except BaseException:
            connection.close()
            raise
    return engine, connection


def open_to_read(file: Path, *, patience: float) -> Engine:
    """Return an engine on an existing file with the tables in it, that cannot write. Raises StoreError."""
    engine = _engine(file, "mode=ro", patience)
    try:
        with faults(file):
            if not _shares(engine):
                engine.dispose()
                engine = _engine(file, _alone(file), patience)
            with engine.connect() as connection:
                _check_tables(connection, file)
                _check_indexes(connection, file)
    except StoreError:
        engine.dispose()
        raise
    return engine


def _shares(engine: Engine) -> bool:
    """Tell whether SQLite can read the file beside others: for that it needs a WAL, or a place to make one."""
    try:
        with engine.connect() as connection:
            inspect(connection).get_table_names()
    except OperationalError as error:
        if _result_code(error) not in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}:
            raise
        return False
    return True


def _check_indexes(connection: Connection, file: Path) -> None:
    """Raise StoreError where an index leaves out what its table holds: a search by code would not find it."""
    told = connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar_one()
    if told != "ok":
        raise StoreError(f"store {file} is damaged or was changed: {told}; {KEEP}")


def _alone(file: Path) -> str:
    """Return the options with which SQLite reads the file as if nobody could write to it, without a look at its WAL."""
    wal = file.with_name(f"{file.name}-wal")
    try:
        file.open("rb").close()
        waiting = wal.stat().st_size if wal.exists() else 0
    except OSError as error:
        raise StoreError(f"store {file} cannot be read: {error.strerror}; ask for the right to read it") from error
    if waiting:
        raise StoreError(
            f"store {file}: records wait in {wal.name}, and SQLite cannot read them where it may not write: copy both "
            "files to a directory of your own, and read the copy"
        )
    return "mode=ro&immutable=1"


def main_file_holds(file: Path, record: Record) -> bool:
    """Tell whether a record stands in the file itself, and not in its WAL alone."""
    query = select(RECORDS.c.hash).where(RECORDS.c.session == record.session, RECORDS.c.n == record.n)
    try:
        with _engine(file, "mode=ro&immutable=1", patience=0.0).connect() as connection:
            return connection.scalars(query).first() == record.hash
    except SQLAlchemyError:  # of a new store the tables themselves may be in the WAL
        return False


def _engine(file: Path, options: str, patience: float) -> Engine:
    # A connection for each use. A pool has a lock, which a signal handler that raises may leave taken in one thread, so
    # that no other gets further; and the connection of a read that was left unfinished would wait in it.
    return create_engine("sqlite://", creator=partial(_connect, file, options, patience), poolclass=NullPool)


def _connect(file: Path, options: str, patience: float) -> sqlite3.Connection:
    # Only as a URI can SQLite be told not to create the file; every character of the path is quoted in it.
    connection = sqlite3.connect(
        f"{file.as_uri()}?{options}", uri=True, timeout=patience, isolation_level=None, check_same_thread=False
    )
    # FULL: a commit is on the disk, not only with the system, before it is acknowledged, so that it survives a loss of
    # power as it does the death of the process. fullfsync: on macOS nothing less empties the cache of the disk.
    try:
        for pragma in ("synchronous = FULL", "fullfsync = ON", "secure_delete = ON"):
            connection.execute(f"PRAGMA {pragma}")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def begin(connection: Connection) -> None:
    """Begin a transaction that may write, alone among all connections to the file."""
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _make_tables(connection: Connection, file: Path, key: bytes | None, patience: float) -> None:
    if inspect(connection).get_table_names():
        return
    _write_ahead(connection, file, patience)
    begin(connection)
    if not inspect(connection).get_table_names():
        _METADATA.create_all(connection)
        connection.execute(insert(_SCHEMA).values(version=VERSION))
        # Sealed from the start, so that a store that was emptied does not pass for a new one.
        connection.execute(insert(REGISTRY).values(id=1, **asdict(seal_registry(count=0, link="", key=key))))
    connection.commit()


def _objects(connection: Connection) -> set[str]:
    """Return what the file holds besides rows: a trigger or a view could keep records away from who looks for them."""
    rows = connection.exec_driver_sql("SELECT type, name FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'").all()
    return {f"the {kind} {name}" for kind, name in rows}


_OBJECTS: Final = frozenset(
    {f"the table {table.name}" for table in _METADATA.sorted_tables}
    | {f"the index {index.name}" for table in _METADATA.sorted_tables for index in table.indexes}
)


def _check_tables(connection: Connection, file: Path) -> None:
    tables = inspect(connection).get_table_names()
    if not tables:
        raise StoreError(f"store {file} is empty, and no store: was it copied while it was being made?")
    if _SCHEMA.name not in tables:
        raise StoreError(f"store {file} is a database of something else: name another file")
    strange = sorted(_objects(connection) - _OBJECTS)
    if strange:
        raise StoreError(f"store {file} holds {', '.join(strange)}, which this package never makes: {KEEP}")
    found = connection.scalars(select(_SCHEMA.c.version)).all()
    if found != [VERSION]:
        raise StoreError(f"store {file} has schema version {found}, this release knows {VERSION}: open it with its own")


def _write_ahead(connection: Connection, file: Path, patience: float) -> None:
    # SQLite does not wait for a lock to change this setting, so that two who make one file at once would meet here.
    until = time.monotonic() + patience
    mode = _set_write_ahead(connection)
    while mode is None and time.monotonic() < until:
        time.sleep(_POLL)
        mode = _set_write_ahead(connection)
    if mode != "wal":
        raise StoreError(
            f"store {file} cannot be put in WAL mode: end whatever else has it open, or move it to a local disk"
        )


def _set_write_ahead(connection: Connection) -> str | None:
    try:
        return str(connection.exec_driver_sql("PRAGMA journal_mode = WAL").scalar_one())
    except OperationalError as error:
        if _result_code(error) != sqlite3.SQLITE_BUSY:
            raise
        connection.rollback()
        return None
