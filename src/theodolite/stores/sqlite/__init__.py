"""Records in a SQLite file, through SQLAlchemy Core.

`schema` has the tables and opens the file, `rows` and `readonly` read it, `commit` writes groups to it, `backlog` is
the queue before it. Importing this package imports SQLAlchemy.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Final, Self

from sqlalchemy import Connection

from theodolite.core.errors import StoreError
from theodolite.core.store import SALT_BYTES, Entry, Head, Problem, ReadableStore, Record, Registry, seal_record
from theodolite.stores.sqlite.backlog import Backlog
from theodolite.stores.sqlite.commit import Committer
from theodolite.stores.sqlite.readonly import Readable, ReadOnlySQLiteStore
from theodolite.stores.sqlite.schema import faults, locate, open_engine

__all__ = ("ReadOnlySQLiteStore", "SQLiteStore")

# What a sealed record takes in memory beside its payload, session and codes.
_RECORD_BYTES: Final = 1024

# Half of SQLite's own limit for a row, which a group that is too large would meet again at every attempt.
_LARGEST: Final = 500_000_000

# Seconds beyond `patience` in which a group has to be written. Our choice: a disk that writes half a megabyte a second,
# which is a slow one, takes as long for all that may wait in memory.
_ANSWER: Final = 30.0

# Seconds until a group that failed is tried again where nobody asks for it.
_RETRY: Final = 1.0


class SQLiteStore(Readable):
    """A store in one local SQLite file (WAL), written behind by one thread, in groups.

    Durable is what `append(durable=True)` or `flush` acknowledged: it is synced to the disk (`synchronous = FULL`), so
    that it survives kill -9 and a loss of power, as far as the disk keeps its word. The rest follows within `linger`
    seconds and may be lost with the process. `room` bounds the bytes that wait: then `append` waits as well.

    No call waits for the writing thread longer than `patience` and 30 seconds, and `close` not longer than twice that:
    a StoreError then says that the disk does not answer, and how many records are in memory alone. A signal handler may
    raise at any moment, as Ctrl-C does: an append that is interrupted took its entry or did not, and the store goes on.

    A commit that fails (disk full, file locked for longer than `patience` seconds, I/O error) is a StoreError to all
    who wait for it and to the next append that does not wait, which takes nothing. What had been taken stays in memory,
    in its place in the chain, and is tried again: when somebody waits, after a StoreError, and every second. So a
    durable append that raises is to be left alone; an append that does not wait may be repeated.

    Several processes may write to one file, but each session has one writer: of two, the one who commits later gets a
    StoreError, by `flush` at the latest, and what he had not written of that session is refused. So is a session, or a
    new one, where the head or the registry is not as it was sealed: tampering is not sealed over. `key` seals both.

    `read` holds one snapshot of the file until it is exhausted or closed; it blocks nobody, but the WAL cannot shrink
    meanwhile. `erase` rewrites the whole file. Reads flush first. To read alone there is `ReadOnlySQLiteStore`.

    The path is taken literally; the file is made with mode 0600. With `create` False a missing or an empty file is a
    StoreError. `salts` makes the salt of each payload (16 bytes in hex), `clock` the time of an erasure. Not usable in
    a forked child. A store that was never closed is closed, as far as that goes, when it is collected or the
    interpreter ends. `engine` is for queries of one's own, which see what was flushed; only the store may write.

    >>> import tempfile
    >>> from msgspec import Raw
    >>> from theodolite.core.store import Kind, verify
    >>> entry = Entry(session="s-1", at=0.0, kind=Kind.DECISION, payload=Raw(b"{}"), codes=("payload.type",))
    >>> with tempfile.TemporaryDirectory() as place, SQLiteStore(f"{place}/records.db", key=bytes(32)) as store:
    ...     record = store.append(entry, durable=True)
    ...     list(store.read(code="payload.type")) == [record], verify(store, bytes(32)).intact
    (True, True)
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        key: bytes | None = None,
        salts: Callable[[], str] | None = None,
        clock: Callable[[], float] = time.time,  # noqa: TID251 - the default of an injected clock
        create: bool = True,
        patience: float = 5.0,
        linger: float = 0.05,
        room: int = 16 * 1024 * 1024,
    ) -> None:
        if key == b"":
            raise StoreError("the key is empty: give at least 32 random bytes, or None to keep an unsealed store")
        file = locate(path, create=create)
        engine, connection = open_engine(file, key=key, create=create, patience=patience)
        super().__init__(file, engine)
        self._salts = _salt if salts is None else salts
        self._clock = clock
        self._backlog = Backlog(room=room, linger=linger, retry=_RETRY, limit=patience + _ANSWER)
        self._committer = Committer(engine, connection, self._file, key, self._backlog.limit)
        self._process = os.getpid()
        # The thread must not keep the store alive, or nobody would ever see that it was forgotten.
        thread = threading.Thread(
            target=self._backlog.work, args=(self._committer.commit,), name="theodolite-store", daemon=True
        )
        thread.start()
        self._close = weakref.finalize(self, _close, self._process, connection, self._backlog, self._committer, thread)

    def append(self, entry: Entry, *, durable: bool = False) -> Record:
        """Seal an entry and queue it, or with `durable` wait until it is on the disk. Raises StoreError.

        Costs sealing (two SHA-256) and a lock; the first entry of a session also a few indexed reads, in a thread and
        on a connection of their own (some 1 ms in all).
        """
        self._check_usable()
        size = _RECORD_BYTES + len(bytes(entry.payload)) + len(entry.session) + sum(map(len, entry.codes))
        if size > _LARGEST:
            raise StoreError(f"store {self._file}: an entry of {size} bytes is more than a row can hold: cut it")
        record = self._queue(entry, size, self._salts(), durable=durable)
        if durable:
            self._backlog.wait()
            with self._backlog.lock:
                self._committer.check(entry.session)
        return record

    def _queue(self, entry: Entry, size: int, salt: str, *, durable: bool) -> Record:
        turn = self._backlog.turn()
        while True:
            with self._backlog.lock:
                gate = self._backlog.admit(size, turn, waits=durable)
                if gate is None:
                    chain = self._committer.chain(entry.session)
                    record = seal_record(entry, n=chain.n + 1, previous=chain.hash, salt=salt)
                    self._backlog.put(record, size, chain)
                    return record
            turn.wait(gate)

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
        self.flush()
        return super().read(session=session, since=since, until=until, code=code)

    def head(self, session: str) -> Head | None:
        """Return the head of a session, or None when nothing was kept of it. Raises StoreError."""
        self.flush()
        return super().head(session)

    def heads(self) -> Iterator[Head]:
        """Yield the heads of all sessions by position. Raises StoreError."""
        self.flush()
        return super().heads()

    def registry(self) -> Registry | None:
        """Return the registry of sessions, or None when it is gone. Raises StoreError."""
        self.flush()
        return super().registry()

    def strays(self) -> Iterator[Problem]:
        """Yield a problem for each record that is not there and has codes. Raises StoreError."""
        self.flush()
        return super().strays()

    def idle(self, before: float) -> dict[str, int]:
        """Return the sessions whose newest record is older, with how many payloads each has left. Raises StoreError."""
        self.flush()
        return super().idle(before)

    @contextmanager
    def still(self) -> Generator[ReadableStore]:
        """Give the store as it is at this moment, whoever writes to it meanwhile. Raises StoreError."""
        self.flush()
        with super().still() as held:
            yield held

    def flush(self) -> None:
        """Return when all that was appended before is on the disk.

        Raises StoreError when it cannot be written now, or, once, when records were refused since the last call.
        """
        self._check_usable()
        self._backlog.wait()
        with self._backlog.lock:
            self._committer.check_all()

    def ready(self) -> None:
        """Raise the StoreError that the newest attempt to write met, until one succeeds; waits for nothing."""
        self._check_usable()
        self._backlog.ready()

    def erase(self, session: str, *, reason: str = "") -> int:
        """Take away the payloads of a session for good and return how many; its chain goes on with a record of that.

        The file is then rewritten (VACUUM) and its WAL cut, so that no byte of them is left in either: this takes as
        long as copying the file, and needs as much space again. Where that part fails the payloads can no longer be
        read, but bytes of them may be left: erase again. Raises StoreError, also for a session that does not end as it
        was sealed, of which nothing is taken.
        """
        return self.erase_all((session,), reason=reason)

    def erase_all(self, sessions: Iterable[str], *, reason: str = "") -> int:
        """Erase several sessions, rewrite the file once, and return how many payloads were taken.

        One that cannot be erased keeps none of the others. Raises StoreError for it when all else is done.
        """
        self.flush()
        emptied, refused = 0, list[StoreError]()
        for session in sessions:
            try:
                emptied += self._take(session, reason)
            except StoreError as fault:
                refused.append(fault)
        self._rewrite(emptied)
        if refused:
            more = f" (and {len(refused) - 1} more sessions)" * (len(refused) > 1)
            raise StoreError(f"{refused[0]}{more}; {emptied} payloads of other sessions are erased") from refused[0]
        return emptied

    def _take(self, session: str, reason: str) -> int:
        while True:
            with self._backlog.lock:
                chain = self._committer.chain(session)
                if chain.n <= chain.written:
                    return self._committer.erase(session, at=self._clock(), salt=self._salts(), reason=reason)
            self._backlog.wait()

    def _rewrite(self, emptied: int) -> None:
        with self._committer.writing, faults(self._file), self.engine.connect() as connection:
            connection.exec_driver_sql("VACUUM")
            blocked = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()[0]
            self._committer.ahead.emptied()
        if blocked:
            raise StoreError(
                f"store {self._file}: {emptied} payloads are erased, but a reader keeps older pages in the WAL: end "
                "every read of this file and erase again"
            )

    def close(self) -> None:
        """Flush, stop the thread and let go of the file, also where flushing fails.

        Raises StoreError, which says how many records are not kept.
        """
        if self._close.alive:
            self._check_usable()
            self._close()

    def _check_usable(self) -> None:
        if os.getpid() != self._process:
            raise StoreError(f"store {self._file} was opened in another process: open it in this one, after the fork")
        if not self._close.alive:
            raise StoreError(f"store {self._file} is closed: open it again")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _close(
    process: int, connection: Connection, backlog: Backlog, committer: Committer, thread: threading.Thread
) -> None:
    if os.getpid() != process:
        return
    try:
        backlog.wait()
        with backlog.lock:
            committer.check_all()
    except StoreError as error:
        raise StoreError(f"{error}; the store was closed, and {backlog.left} records are not kept") from error
    finally:
        backlog.stop()
        thread.join(backlog.limit)
        if not thread.is_alive():
            connection.close()  # SQLite checkpoints and removes the WAL when the last connection to the file is closed


def _salt() -> str:
    return os.urandom(SALT_BYTES).hex()
