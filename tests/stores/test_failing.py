"""While its file cannot be written: who is told, what is kept, and how the store goes on."""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from sqlalchemy import Connection, event

from theodolite.core.errors import StoreError
from theodolite.core.store import Entry, Record, verify
from theodolite.stores.memory import MemoryStore
from theodolite.stores.sqlite import SQLiteStore
from theodolite.stores.sqlite.backlog import Backlog
from theodolite.stores.sqlite.commit import Chain, Committer

Entries = Callable[..., Entry]
Texts = Callable[..., list[str]]
Locked = Callable[[Path], AbstractContextManager[None]]

KEY = b"a key that only the operator has"


def chain() -> Chain:
    """Return the end of the chain of a new session."""
    return Chain(-1, "", None, "")


@pytest.fixture
def connection(store: SQLiteStore) -> Iterator[Connection]:
    with store.engine.connect() as connection:
        yield connection


def test_a_locked_file_is_told_to_whoever_waits_and_to_the_next_append(
    file: Path, store: SQLiteStore, entry: Entries, texts: Texts, locked: Locked
) -> None:
    store.append(entry(text="before"), durable=True)
    with locked(file):
        start = time.monotonic()
        with pytest.raises(StoreError, match=r"locked.*wait for it to end.*do not append it twice"):
            store.append(entry(text="taken"), durable=True)
        with pytest.raises(StoreError, match="this one was not taken"):
            store.append(entry(text="refused"))
        store.append(entry(text="queued"))
        with pytest.raises(StoreError, match="locked"):
            store.flush()
        assert time.monotonic() - start < 5
    store.flush()
    assert texts(store) == ["before", "taken", "queued"]
    assert verify(store, KEY).problems == ()


def test_what_nobody_waits_for_is_written_once_the_lock_is_gone(
    file: Path, entry: Entries, texts: Texts, locked: Locked
) -> None:
    with SQLiteStore(file, key=KEY, patience=0.05, linger=0.001) as store:
        with locked(file):
            store.append(entry(text="queued"))
            time.sleep(0.3)
        with SQLiteStore(file, key=KEY) as other:
            until = time.monotonic() + 10
            while texts(other) != ["queued"] and time.monotonic() < until:
                time.sleep(0.05)
            assert texts(other) == ["queued"]


def test_a_lock_shorter_than_patience_is_waited_for(file: Path, entry: Entries, locked: Locked) -> None:
    with SQLiteStore(file, key=KEY, patience=10) as store, ThreadPoolExecutor(1) as pool:
        with locked(file):
            waiting = pool.submit(store.append, entry(), durable=True)
            time.sleep(0.1)
            assert not waiting.done()
        assert waiting.result().n == 0


def test_whoever_waits_is_told_of_nothing_that_is_over(
    file: Path, store: SQLiteStore, entry: Entries, texts: Texts, locked: Locked
) -> None:
    with locked(file), pytest.raises(StoreError, match="locked"):
        store.append(entry(text="taken"), durable=True)
    store.append(entry(text="later"), durable=True)
    assert texts(store) == ["taken", "later"]


def test_whoever_waits_is_not_told_of_a_failure_that_began_before_he_came(
    file: Path, entry: Entries, locked: Locked
) -> None:
    with SQLiteStore(file, key=KEY, patience=1, linger=60) as store, ThreadPoolExecutor(2) as pool:
        with locked(file):
            first = pool.submit(store.append, entry("s-1"), durable=True)
            time.sleep(0.8)
            second = pool.submit(store.append, entry("s-2"), durable=True)
            with pytest.raises(StoreError, match="locked"):
                first.result()
        assert second.result().n == 0


def test_a_full_disk_loses_nothing_that_was_acknowledged(store: SQLiteStore, entry: Entries) -> None:
    pages = [40]

    def limit(connection: Connection) -> None:
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages[0]}").all()

    event.listen(store.engine, "begin", limit)
    acknowledged: list[Record] = []
    told = ""
    while not told:
        try:
            acknowledged.append(store.append(entry(f"s-{len(acknowledged) % 3}", text="x" * 500), durable=True))
        except StoreError as error:
            told = str(error)
    assert "full; free space, then flush" in told
    assert len(acknowledged) > 10
    with pytest.raises(StoreError, match="full"):
        store.append(entry(text="x" * 500))
    with pytest.raises(StoreError, match="full"):
        store.read()
    pages[0] = 1_000_000
    store.flush()
    later = store.append(entry(text="later"), durable=True)
    found = list(store.read())
    assert {record.hash for record in [*acknowledged, later]} < {record.hash for record in found}
    assert len(found) == len(acknowledged) + 2  # the append that failed while it waited was kept, and tried again
    assert verify(store, KEY).problems == ()


def test_several_threads_that_wait_are_all_told(file: Path, store: SQLiteStore, entry: Entries, locked: Locked) -> None:
    def work(number: int) -> str:
        try:
            store.append(entry(f"s-{number}"), durable=True)
        except StoreError as error:
            return str(error)
        return ""

    with locked(file), ThreadPoolExecutor(4) as pool:
        assert all("locked" in told for told in pool.map(work, range(4)))
    store.flush()
    assert sorted(record.session for record in store.read()) == ["s-0", "s-1", "s-2", "s-3"]


def test_memory_is_bounded_while_the_file_cannot_be_written(file: Path, entry: Entries, locked: Locked) -> None:
    with SQLiteStore(file, key=KEY, patience=0.5, room=20_000) as store:
        taken = 0
        with locked(file):
            start = time.monotonic()
            for _ in range(40):
                try:
                    store.append(entry(text="x" * 1_000))
                except StoreError:
                    continue
                taken += 1
            assert time.monotonic() - start < 5  # whoever meets a failing store with no room is told at once
        assert 5 < taken < 20
        store.flush()
        assert len(list(store.read())) == taken
        assert verify(store, KEY).problems == ()


def test_a_full_queue_makes_append_wait_and_loses_nothing(file: Path, entry: Entries) -> None:
    with SQLiteStore(file, key=KEY, room=20_000) as store:
        kept = [store.append(entry(text="x" * 1_000)) for _ in range(500)]
        assert list(store.read()) == kept


def test_an_entry_larger_than_the_queue_is_taken(file: Path, entry: Entries) -> None:
    with SQLiteStore(file, room=2_000) as store:
        kept = [store.append(entry(text="x" * 5_000)) for _ in range(3)]
        assert list(store.read()) == kept


def test_a_file_that_was_moved_away_is_told_and_written_once_it_is_back(
    file: Path, store: SQLiteStore, entry: Entries, texts: Texts
) -> None:
    store.append(entry(text="before"), durable=True)
    elsewhere = file.with_name("elsewhere.db")
    file.rename(elsewhere)
    with pytest.raises(StoreError, match="moved, removed or replaced"):
        store.append(entry(text="taken"), durable=True)
    elsewhere.rename(file)
    store.flush()
    assert texts(store) == ["before", "taken"]


def test_a_file_that_was_moved_away_is_not_made_anew(file: Path, store: SQLiteStore, entry: Entries) -> None:
    store.append(entry(), durable=True)
    file.rename(file.with_name("elsewhere.db"))
    with pytest.raises(StoreError, match="unable to open"):
        list(store.read())
    assert not file.exists()


def test_closing_while_the_file_is_locked_says_how_many_records_are_gone(
    file: Path, entry: Entries, locked: Locked
) -> None:
    store = SQLiteStore(file, key=KEY, patience=0.05)
    store.append(entry(), durable=True)
    with locked(file):
        store.append(entry())
        store.append(entry())
        with pytest.raises(StoreError, match="2 records are not kept"):
            store.close()
    store.close()
    with SQLiteStore(file, key=KEY) as again:
        assert len(list(again.read())) == 1


def test_an_io_error_loses_nothing_that_was_acknowledged(file: Path) -> None:
    """The system refuses writes beyond a size of file, first of the WAL and then not at all."""
    subprocess.run([sys.executable, str(Path(__file__).with_name("limited.py")), str(file)], check=True, timeout=60)


def test_an_attempt_that_did_reach_the_file_is_not_taken_for_another_writer(
    file: Path, store: SQLiteStore, connection: Connection, entry: Entries
) -> None:
    store.append(entry(), durable=True)
    committer = Committer(store.engine, connection, file, KEY, limit=60.0)
    chain, fresh = committer.chain("s-1"), committer.chain("s-2")
    before, group = (chain.head, fresh.head), [store.append(entry("s-1")), store.append(entry("s-2"))]
    store.flush()
    # As after a commit that was done and then raised: this committer believes that it has not happened.
    assert (chain.head, fresh.head) == before
    committer.commit(group)
    assert (chain.head, fresh.head) == (store.head("s-1"), store.head("s-2"))
    for name in ("s-1", "s-2"):
        committer.check(name)
    assert verify(store, KEY).problems == ()


def test_nobody_is_told_of_a_failure_that_a_later_attempt_made_good(entry: Entries) -> None:
    """Between a failure and the moment when whoever waits gets to look, his record may have been written."""
    backlog = Backlog(room=10_000, linger=0.0, retry=0.0, limit=60.0)
    record, attempts = MemoryStore().append(entry()), itertools.count()

    def fail_every_other_time(_: tuple[Record, ...]) -> None:
        if next(attempts) % 2 == 0:
            raise StoreError("locked")

    def work(_: int) -> list[str]:
        told: list[str] = []
        for _ in range(100):
            try:
                with backlog.lock:
                    assert backlog.admit(1, backlog.turn(), waits=True) is None
                    backlog.put(record, 1, chain())
                backlog.wait()
            except StoreError as error:
                told.append(str(error))
        return told

    with ThreadPoolExecutor(5) as pool:
        working = pool.submit(backlog.work, fail_every_other_time)
        told = [error for errors in pool.map(work, range(4)) for error in errors]
        backlog.stop()
        working.result()
    assert {error[:6] for error in told} <= {"locked"}


def test_a_gap_in_memory_does_not_get_into_the_file(
    file: Path, store: SQLiteStore, connection: Connection, entry: Entries
) -> None:
    committer, memory = Committer(store.engine, connection, file, KEY, limit=60.0), MemoryStore()
    group = [memory.append(entry(name)) for name in ("s-1", "s-2", "s-1", "s-1", "s-1", "s-2")]
    for name in ("s-1", "s-2"):
        committer.chain(name).n = 9
    del group[3]
    committer.commit(group)
    assert [(record.session, record.n) for record in store.read()] == [("s-1", 0), ("s-1", 1), ("s-2", 0), ("s-2", 1)]
    with pytest.raises(StoreError, match="gap before record 3, to go on with it here, open the store again"):
        committer.check("s-1")
    committer.check("s-2")
    assert verify(store, KEY).problems == ()


@pytest.fixture
def restless() -> Iterator[None]:
    """Let threads take turns far more often than they would."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("restless")
def test_what_is_admitted_while_the_work_ends_is_written_or_refused(entry: Entries) -> None:
    for _ in range(100):
        backlog = Backlog(room=1, linger=0.0, retry=1.0, limit=60.0)
        record, taken, written = MemoryStore().append(entry()), [0], [0]

        def write(group: tuple[Record, ...], written: list[int] = written) -> None:
            written[0] += len(group)

        def fill(backlog: Backlog = backlog, record: Record = record, taken: list[int] = taken) -> None:
            while True:
                turn = backlog.turn()
                with backlog.lock:
                    try:
                        gate = backlog.admit(1, turn, waits=False)
                    except StoreError:
                        return
                    if gate is None:
                        backlog.put(record, 1, chain())
                        taken[0] += 1
                if gate is not None:
                    turn.wait(gate)

        with ThreadPoolExecutor(2) as pool:
            ending = [pool.submit(backlog.work, write), pool.submit(fill)]
            time.sleep(0.002)
            backlog.stop()
        for each in ending:
            each.result()
        assert (taken, backlog.left) == (written, 0)


def test_a_writing_thread_that_dies_leaves_nobody_waiting(entry: Entries) -> None:
    backlog = Backlog(room=10_000, linger=0.0, retry=1.0, limit=60.0)
    record = MemoryStore().append(entry())

    def fail(_: tuple[Record, ...]) -> None:
        raise RuntimeError("a defect")

    def work() -> None:
        with pytest.raises(RuntimeError, match="a defect"):
            backlog.work(fail)

    thread = threading.Thread(target=work)
    backlog.put(record, 1, chain())
    thread.start()
    with pytest.raises(StoreError, match="its writing thread has died"):
        backlog.wait()
    with pytest.raises(StoreError, match="its writing thread has died"):
        backlog.admit(1, backlog.turn(), waits=False)
    thread.join()


def test_ready_tells_that_writing_behind_fails_until_it_succeeds(file: Path, entry: Entries, locked: Locked) -> None:
    with SQLiteStore(file, key=KEY, patience=0.02, linger=0.001) as store:
        store.ready()
        with locked(file):
            store.append(entry(text="taken"))  # written behind: whoever appended is told nothing
            until = time.monotonic() + 10
            told = ""
            while not told and time.monotonic() < until:
                try:
                    store.ready()
                except StoreError as error:
                    told = str(error)
            assert "locked; wait for it to end" in told
            assert "records that wait in memory: 1" in told
            for _ in range(3):  # told to everybody who asks, and asking takes nothing and writes nothing
                with pytest.raises(StoreError, match="locked"):
                    store.ready()
        store.flush()
        store.ready()
        assert len(list(store.read())) == 1
    with pytest.raises(StoreError, match="is closed"):
        store.ready()


def test_ready_tells_that_the_writing_thread_has_died() -> None:
    backlog = Backlog(room=10_000, linger=0.0, retry=1.0, limit=60.0)
    backlog.ready()
    backlog.stop()
    backlog.work(lambda _: None)
    with pytest.raises(StoreError, match="its writing thread has died"):
        backlog.ready()
