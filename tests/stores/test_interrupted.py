"""Ctrl-C may come at any moment of an append: the store goes on, has all that it acknowledged, and closes."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import FrameType

import pytest

from theodolite.core.errors import StoreError
from theodolite.core.store import Entry, Record, verify
from theodolite.stores.memory import MemoryStore
from theodolite.stores.sqlite import SQLiteStore
from theodolite.stores.sqlite.backlog import Backlog
from theodolite.stores.sqlite.commit import Chain
from theodolite.testing.interrupts import Interrupts

Entries = Callable[..., Entry]

# A store that is stuck is told long before a test gives up.
BOUND = 2.0

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("theodolite.stores.sqlite._ANSWER", BOUND)


# In whatever package, but for this file.
INTERRUPTS = Interrupts(lambda file: file != __file__)


@pytest.mark.parametrize("durable", [False, True], ids=["behind", "durable"])
@pytest.mark.parametrize("fresh", [True, False], ids=["first", "later"])
def test_a_store_goes_on_wherever_an_append_is_interrupted(
    file: Path, key: bytes, entry: Entries, *, fresh: bool, durable: bool
) -> None:
    """An entry is taken or it is not; of each session the store takes the next one, and it loses none."""
    with SQLiteStore(file, key=key, linger=0.0, patience=0.2) as store:
        kept = [store.append(entry("known"), durable=True)]
        at, seen = 0, 0
        happened: bool | None = False
        while happened is not None:
            at += 1
            session = f"s-{at}" if fresh else "known"
            happened = INTERRUPTS.at(at, partial(store.append, entry(session, text="cut"), durable=durable))
            seen += happened is True
            kept.append(store.append(entry(session, text="after"), durable=at % 7 == 0))
        kept.append(store.append(entry("known"), durable=True))
        assert seen > 20
        records = list(store.read())
        assert {record.hash for record in kept} <= {record.hash for record in records}
        assert len(records) - len(kept) <= at + 1
        assert verify(store, key).problems == ()
        start = time.monotonic()
    assert time.monotonic() - start < BOUND
    with SQLiteStore(file, key=key, create=False) as again:
        assert list(again.read()) == records


def test_a_store_may_be_closed_wherever_an_append_was_interrupted(tmp_path: Path, entry: Entries) -> None:
    """Also while whoever caught the interrupt still holds all that was in the way."""

    def opened(name: str) -> SQLiteStore:
        store = SQLiteStore(tmp_path / name, linger=60.0, patience=0.2)
        store.append(entry("known"), durable=True)
        store.append(entry("known", text="behind"))
        return store

    with opened("whole.db") as store:
        count = INTERRUPTS.count(partial(store.append, entry("s-1")))
    for at in range(1, count + 1, 3):
        store = opened(f"{at}.db")
        left = at

        def profile(_frame: FrameType, what: str, _: object) -> None:
            nonlocal left
            left -= what in {"call", "c_return"}
            if left == 0:
                raise KeyboardInterrupt

        try:
            sys.setprofile(profile)
            store.append(entry("s-1"))
            sys.setprofile(None)
        except KeyboardInterrupt:
            sys.setprofile(None)
            start = time.monotonic()
            store.close()
            assert time.monotonic() - start < BOUND
        else:
            store.close()
        with SQLiteStore(tmp_path / f"{at}.db", create=False) as again:
            assert len(list(again.read(session="known"))) == 2
            assert len(list(again.read(session="s-1"))) <= 1
            assert verify(again).intact


def test_an_interrupted_read_takes_no_log_away(file: Path, key: bytes, entry: Entries) -> None:
    """SQLite removes the log with the last connection; the connection of a read that was interrupted is dropped."""
    log = file.with_name(f"{file.name}-wal")
    with SQLiteStore(file, key=key) as store:
        store.append(entry(text="before"), durable=True)
        before = log.stat().st_ino
        for at in range(1, INTERRUPTS.count(partial(store.head, "s-1"))):
            INTERRUPTS.at(at, partial(store.head, "s-1"))
            assert log.stat().st_ino == before
        store.append(entry(text="after"), durable=True)
        assert verify(store, key).problems == ()


@pytest.fixture
def stuck() -> Iterator[threading.Event]:
    """Return what a disk that does not answer waits for; at the end of the test it answers."""
    answer = threading.Event()
    yield answer
    answer.set()


@pytest.mark.usefixtures("stuck")
def test_nobody_waits_for_a_disk_that_does_not_answer(entry: Entries, stuck: threading.Event) -> None:
    backlog, memory = Backlog(room=1, linger=0.0, retry=1.0, limit=0.1), MemoryStore()

    def never(_: object) -> None:
        stuck.wait()

    thread = threading.Thread(target=backlog.work, args=(never,))
    thread.start()
    backlog.put(memory.append(entry()), 1, Chain(-1, "", None, ""))
    with pytest.raises(
        StoreError, match=r"not answered for 0.1 s, and 1 records are in memory alone.*fault of the disk"
    ):
        backlog.wait()
    turn = backlog.turn()
    gate = backlog.admit(1, turn, waits=False)
    assert gate is not None
    turn.wait(gate)
    with pytest.raises(StoreError, match=r"not answered.*this one was not taken"):
        backlog.admit(1, turn, waits=False)
    stuck.set()
    backlog.wait()
    backlog.stop()
    thread.join()


def test_a_store_whose_disk_does_not_answer_is_closed_in_time_and_says_what_is_not_kept(
    file: Path, entry: Entries, stuck: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(_: object) -> None:
        stuck.wait()

    monkeypatch.setattr("theodolite.stores.sqlite._ANSWER", 0.1)
    store = SQLiteStore(file, patience=0.1)
    kept: list[Record] = [store.append(entry(), durable=True)]
    with monkeypatch.context() as patch:
        patch.setattr("theodolite.stores.sqlite.commit.begin", never)
        store.append(entry())
        with pytest.raises(StoreError, match="has not answered"):
            store.flush()
        store.append(entry())
        start = time.monotonic()
        with pytest.raises(StoreError, match=r"has not answered.*the store was closed, and 2 records are not kept"):
            store.close()
        assert time.monotonic() - start < BOUND
        with SQLiteStore(file, create=False) as again:
            assert list(again.read()) == kept
