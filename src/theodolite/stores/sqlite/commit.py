"""How groups of sealed records get into the file: all of a group or nothing, and nobody else's session."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import asdict
from sqlalchemy import Connection, Engine, bindparam, insert, update
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import IntegrityError

from theodolite.core.errors import StoreError
from theodolite.core.store import Head, Kind, Record, seal_erasure, seal_head, seal_registry
from theodolite.stores.sqlite.ahead import WriteAheadLog
from theodolite.stores.sqlite.aside import aside
from theodolite.stores.sqlite.rows import head_at, head_of, last_head, last_record, registry
from theodolite.stores.sqlite.schema import (
    CODES,
    HEADS,
    KEEP,
    RECORDS,
    REGISTRY,
    TamperedError,
    begin,
    faults,
    main_file_holds,
)

__all__ = ("Chain", "Committer")

# Ends of chains that are kept in memory, some 1 kB each; the end of a session that comes back later is read again.
_CHAINS: Final = 10_000

_REOPEN: Final = "to go on with it here, open the store again"

# A head moves on only from where this process left it: the whole row is compared.
_ADVANCE: Final = (
    update(HEADS)
    .where(*(column == bindparam(f"old_{column.name}") for column in HEADS.c))
    .values(n=bindparam("new_n"), hash=bindparam("new_hash"), seal=bindparam("new_seal"))
)

# Compiled once: with a statement per group SQLAlchemy spends as long on each row as SQLite does.
_INSERT_RECORDS: Final = str(insert(RECORDS).compile(dialect=sqlite.dialect()))
_INSERT_CODES: Final = str(insert(CODES).compile(dialect=sqlite.dialect()))

# Codes that stood there before their record does are nobody's, and would break its hash.
_CLEAR_CODES: Final = "DELETE FROM codes WHERE session = ? AND n BETWEEN ? AND ?"

# A head, and the link of the session before it.
_Move = tuple[Head, str]


class Chain(Struct):
    """The end of a session's chain: `n` and `hash` as sealed in memory, `head` as it is in the file.

    `before` is the link of the session before it.
    """

    n: int
    hash: str
    head: Head | None
    before: str

    @property
    def written(self) -> int:
        """The number of the newest record in the file, or -1."""
        return -1 if self.head is None else self.head.n


class _ConflictError(Exception):
    """The file is not as this process left it. Never leaves this module."""


class Committer:
    """Writes groups, and knows where each session's chain ends.

    `chain` and `erase` are called under the lock of the backlog, `commit` by its one thread, on `connection`, which is
    that thread's alone. `writing` is held during a commit; who else writes to the file holds it too, so that this
    process never waits for its own locks in the file. `limit` is in seconds, for a read.
    """

    def __init__(self, engine: Engine, connection: Connection, file: Path, key: bytes | None, limit: float) -> None:
        self.writing = threading.Lock()
        self._engine = engine
        self._connection = connection
        self._limit = limit
        self._file = file
        self._key = key
        self._identity = _identity(file)
        self._newest: Record | None = None
        self.ahead = WriteAheadLog(file, self._in_main_file)
        self._chains: dict[str, Chain] = {}
        self._refused: dict[str, StoreError] = {}
        self._untold: dict[str, StoreError] = {}

    def chain(self, session: str) -> Chain:
        """Return the end of a session's chain. Raises StoreError where it cannot be read or must not be continued."""
        self.check(session)
        chain = self._chains.get(session)
        if chain is None:
            if len(self._chains) >= _CHAINS:
                self._chains = {name: kept for name, kept in self._chains.items() if kept.n > kept.written}
            chain = self._chains[session] = aside(partial(self._read, session), within=self._limit)
        return chain

    def _read(self, session: str) -> Chain:
        with faults(self._file), self._engine.connect() as connection:
            connection.exec_driver_sql("BEGIN")
            return self._load(connection, session)

    def check(self, session: str) -> None:
        """Raise the StoreError of a session that was refused."""
        fault = self._refused.get(session)
        if fault is not None:
            self._untold.pop(session, None)
            raise StoreError(str(fault)) from fault

    def check_all(self) -> None:
        """Raise the StoreError of a session that was refused and that nobody was told of, once for each."""
        if self._untold:
            _, fault = self._untold.popitem()
            raise StoreError(str(fault)) from fault

    def _load(self, connection: Connection, session: str) -> Chain:
        # A cut tail or a rewritten head must not be sealed over: the row is checked before the chain goes on.
        head, last = head_of(connection, session), last_record(connection, session)
        before = head_at(connection, head.position - 1) if head is not None and head.position > 0 else None
        chain = Chain(-1, "", head, "" if before is None else before.link)
        expected: Head | None = None
        if last is not None and head is not None:
            chain.n, chain.hash = last.n, last.hash
            expected = seal_head(last, position=head.position, before=chain.before, key=self._key)
        if head != expected or (head is None) != (last is None):
            raise TamperedError(f"session {session!r} does not end where its head says, or was sealed with another key")
        return chain

    def commit(self, group: Sequence[Record]) -> None:
        """Write a group durably. Records of sessions that were refused are left out.

        Raises StoreError, and then nothing was written that a second attempt would not find.
        """
        with self.writing, faults(self._file):
            self._check_place()
            while batch := self._due(group):
                try:
                    self._write(batch)
                except (_ConflictError, IntegrityError) as conflict:
                    self._resolve(batch, conflict)
                else:
                    return

    def erase(self, session: str, *, at: float, salt: str, reason: str) -> int:
        """Take the payloads of a session and append the record of that, in one step; return how many there were.

        Nothing of the session may wait to be written. Raises StoreError.
        """
        gone = update(RECORDS).where(RECORDS.c.session == session, RECORDS.c.kind != Kind.ERASURE.value)
        gone = gone.where(RECORDS.c.payload.is_not(None) | RECORDS.c.salt.is_not(None)).values(payload=None, salt=None)
        with self.writing, faults(self._file), self._engine.connect() as connection:
            self._check_place()
            self._chains.pop(session, None)  # read again when the session goes on, wherever this was interrupted
            begin(connection)
            chain = self._load(connection, session)
            count = connection.execute(gone).rowcount
            if chain.head is None or not count:
                return 0
            n, previous = chain.n + 1, chain.hash
            record = seal_erasure(session, at=at, payloads=count, n=n, previous=previous, salt=salt, reason=reason)
            head = seal_head(record, position=chain.head.position, before=chain.before, key=self._key)
            connection.execute(update(HEADS).where(HEADS.c.session == session).values(**asdict(head)))
            connection.exec_driver_sql(_CLEAR_CODES, (session, n, n))
            connection.exec_driver_sql(_INSERT_RECORDS, _row(record))
            self._finish(connection, record)
        return count

    @contextmanager
    def _alone(self) -> Generator[Connection]:
        """Give the connection of the writing thread, and leave nothing begun on it."""
        try:
            yield self._connection
        finally:
            self._connection.rollback()

    def _check_place(self) -> None:
        if _identity(self._file) != self._identity:
            raise StoreError(f"store {self._file} was moved, removed or replaced: put it back, then flush")
        self.ahead.check()

    def _in_main_file(self) -> bool:
        return self._newest is None or main_file_holds(self._file, self._newest)

    def _finish(self, connection: Connection, newest: Record) -> None:
        connection.commit()
        self.ahead.note()
        self._newest = newest

    def _due(self, group: Sequence[Record]) -> list[Record]:
        due: list[Record] = []
        ends: dict[str, tuple[int, str]] = {}
        for record in group:
            session = record.session
            chain = self._chains.get(session)
            # A chain that is no longer kept has nothing left to be written.
            if chain is None or record.n <= chain.written or session in self._refused:
                continue
            n, last = ends.get(session) or (chain.written, "" if chain.head is None else chain.head.hash)
            if (record.n, record.previous) == (n + 1, last):
                ends[session] = (record.n, record.hash)
                due.append(record)
            else:  # a signal handler that raised between the sealing of a record and its place in the queue
                self._refuse(session, f"session {session!r} has a gap before record {record.n}, {_REOPEN}", 1)
        return due

    def _write(self, batch: Sequence[Record]) -> None:
        ends = {record.session: record for record in batch}
        with self._alone() as connection:
            begin(connection)
            moves = [*self._advance(connection, ends.values()), *self._register(connection, ends.values())]
            connection.exec_driver_sql(_CLEAR_CODES, _spans(batch))
            connection.exec_driver_sql(_INSERT_RECORDS, [_row(record) for record in batch])
            codes = [
                (record.session, record.n, place, code) for record in batch for place, code in enumerate(record.codes)
            ]
            if codes:
                connection.exec_driver_sql(_INSERT_CODES, codes)
            self._finish(connection, batch[-1])
        for head, before in moves:
            chain = self._chains[head.session]
            chain.head, chain.before = head, before

    def _advance(self, connection: Connection, ends: Iterable[Record]) -> list[_Move]:
        moves: list[_Move] = []
        rows: list[dict[str, object]] = []
        for end in ends:
            chain = self._chains[end.session]
            if chain.head is not None:
                head = seal_head(end, position=chain.head.position, before=chain.before, key=self._key)
                moves.append((head, chain.before))
                old = {f"old_{name}": value for name, value in asdict(chain.head).items()}
                rows.append({**old, "new_n": head.n, "new_hash": head.hash, "new_seal": head.seal})
        if rows and connection.execute(_ADVANCE, rows).rowcount != len(rows):
            raise _ConflictError("a head is not where this process left it")
        return moves

    def _register(self, connection: Connection, ends: Iterable[Record]) -> list[_Move]:
        fresh = [end for end in ends if self._chains[end.session].head is None]
        if not fresh:
            return []
        book = registry(connection)
        if (fault := self._registry_fault(connection)) is not None or book is None:
            raise _ConflictError(fault)
        count, link = book.count, book.link
        moves: list[_Move] = []
        for end in fresh:
            head = seal_head(end, position=count, before=link, key=self._key)
            moves.append((head, link))
            count, link = count + 1, head.link
        connection.execute(insert(HEADS), [asdict(head) for head, _ in moves])
        row = asdict(seal_registry(count=count, link=link, key=self._key))
        connection.execute(update(REGISTRY).values(**row))
        return moves

    def _registry_fault(self, connection: Connection) -> str | None:
        book, last = registry(connection), last_head(connection)
        end = (0, "") if last is None else (last.position + 1, last.link)
        if book is None or (book.count, book.link) != end:
            return "its registry does not end with its last session"
        if book != seal_registry(count=book.count, link=book.link, key=self._key):
            return "its registry of sessions was sealed with another key"
        return None

    def _resolve(self, batch: Sequence[Record], conflict: Exception) -> None:
        """Refuse the sessions that keep a batch from the file, and find those that an earlier attempt did write."""
        hashes: dict[str, set[str]] = {}
        for record in batch:
            hashes.setdefault(record.session, set()).add(record.hash)
        with self._alone() as connection:
            connection.exec_driver_sql("BEGIN")
            fault = self._registry_fault(connection)
            resolved = [self._compare(connection, session, own, fault) for session, own in hashes.items()]
        if not any(resolved):
            raise StoreError(f"store {self._file}: a group of records cannot be written: {conflict}") from conflict

    def _compare(self, connection: Connection, session: str, own: set[str], registry_fault: str | None) -> bool:
        chain = self._chains[session]
        try:
            found = self._load(connection, session)
        except TamperedError as fault:
            return self._refuse(session, f"{fault}; {KEEP}", len(own))
        if found.head == chain.head:
            if found.head is not None or registry_fault is None:
                return False
            return self._refuse(session, f"{registry_fault}; {KEEP}", len(own))
        if found.hash not in own:
            return self._refuse(
                session,
                f"session {session!r} has two writers, and record {found.n} is the other's: let one process write a "
                f"session; {_REOPEN}",
                len(own),
            )
        chain.head, chain.before = found.head, found.before
        return True

    def _refuse(self, session: str, why: str, count: int) -> bool:
        self._refused[session] = self._untold[session] = StoreError(
            f"store {self._file}: {why} ({count} unacknowledged records are not kept)"
        )
        return True


def _identity(file: Path) -> tuple[int, int] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _spans(batch: Sequence[Record]) -> list[tuple[object, ...]]:
    """Return the first and the last place of each session in a batch."""
    spans: dict[str, tuple[int, int]] = {}
    for record in batch:
        spans[record.session] = spans.get(record.session, (record.n, 0))[0], record.n
    return [(session, first, last) for session, (first, last) in spans.items()]


def _row(record: Record) -> tuple[object, ...]:
    return (
        record.session,
        record.n,
        record.at,
        record.kind.value,
        None if record.payload is None else bytes(record.payload),
        record.salt,
        record.digest,
        record.previous,
        record.hash,
    )
