"""The log beside the file: what is in it alone must not be taken for kept once somebody removed or cut it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from theodolite.core.errors import StoreError
from theodolite.core.store import Entry, verify
from theodolite.stores.sqlite import SQLiteStore

Entries = Callable[..., Entry]

posix = pytest.mark.skipif(os.name != "posix", reason="the system keeps files that are open from being removed")


def log_of(file: Path) -> Path:
    return file.with_name(f"{file.name}-wal")


@posix
@pytest.mark.parametrize("leaves", [None, b"", b"something else"], ids=["removed", "empty", "replaced"])
def test_a_log_that_was_removed_or_replaced_is_told_and_nothing_more_acknowledged(
    file: Path, key: bytes, entry: Entries, leaves: bytes | None
) -> None:
    store = SQLiteStore(file, key=key)
    before = store.append(entry(text="before"), durable=True)
    log_of(file).unlink()
    if leaves is not None:
        log_of(file).write_bytes(leaves)
    for _ in range(2):
        with pytest.raises(StoreError, match=r"-wal was removed or replaced while the store was open.*close the store"):
            store.append(entry(text="lost"), durable=True)
    with pytest.raises(StoreError, match="removed or replaced"):
        store.ready()
    with pytest.raises(StoreError, match="2 records are not kept"):
        store.close()
    if leaves is None:
        # SQLite still had the log that nobody else sees, and wrote it to the file when it let go.
        with SQLiteStore(file, key=key) as again:
            assert list(again.read()) == [before]


@posix
@pytest.mark.parametrize("left", [0, 31, 4_000, 10_000])
def test_a_log_that_was_cut_is_told_and_nothing_more_acknowledged(
    file: Path, key: bytes, entry: Entries, left: int
) -> None:
    store = SQLiteStore(file, key=key)
    for n in range(20):
        store.append(entry(text=f"kept {n}"), durable=True)
    assert log_of(file).stat().st_size > 20_000
    os.truncate(log_of(file), left)
    with pytest.raises(StoreError, match="-wal was cut while the store was open"):
        store.append(entry(text="lost"), durable=True)
    with pytest.raises(StoreError, match="not kept"):
        store.close()


@posix
def test_a_log_cut_while_a_commit_is_written_is_told(file: Path, key: bytes, entry: Entries) -> None:
    """Where all of the log stood in the main file already, only the commit that follows shows what is missing."""
    store = SQLiteStore(file, key=key)
    store.append(entry(text="kept"), durable=True)
    with store.still() as still, store.engine.connect() as connection:
        list(still.read())  # a snapshot, which keeps SQLite from beginning the log anew
        assert connection.exec_driver_sql("PRAGMA wal_checkpoint(PASSIVE)").one()[0] == 0
        os.truncate(log_of(file), 0)
        with pytest.raises(StoreError, match="was cut while a commit was written"):
            store.append(entry(text="lost"), durable=True)
    with pytest.raises(StoreError):
        store.close()


def test_a_log_that_another_process_emptied_rightly_is_no_fault(file: Path, key: bytes, entry: Entries) -> None:
    with SQLiteStore(file, key=key) as store:
        kept = [store.append(entry(text="before"), durable=True)]
        with SQLiteStore(file, key=key) as other:
            other.append(entry("s-2", text="secret"), durable=True)
            assert other.erase("s-2") == 1
        assert log_of(file).stat().st_size == 0
        kept.append(store.append(entry(text="after"), durable=True))
        assert list(store.read(session="s-1")) == kept
        assert verify(store, key).problems == ()


def test_a_log_that_is_begun_anew_is_no_fault(file: Path, key: bytes, entry: Entries) -> None:
    """Beyond a thousand pages SQLite writes the log to the file and begins it anew."""
    with SQLiteStore(file, key=key) as store:
        kept = [store.append(entry(text="x" * 3_000), durable=True) for _ in range(600)]
        assert log_of(file).stat().st_size < 10_000_000
        assert list(store.read()) == kept


@posix
def test_after_a_kill_what_was_acknowledged_before_the_log_was_removed_is_all_that_is_missing(file: Path) -> None:
    """What the store cannot save it does not go on to lose more of: nothing is acknowledged after the removal."""
    script = (
        "import os, signal, sys\n"
        "from msgspec import Raw\n"
        "from theodolite.core.errors import StoreError\n"
        "from theodolite.core.store import Entry, Kind\n"
        "from theodolite.stores.sqlite import SQLiteStore\n"
        "store, told = SQLiteStore(sys.argv[1]), 0\n"
        "for n in range(20):\n"
        "    try:\n"
        "        store.append(Entry(session='s', at=1.0, kind=Kind.EVENT, payload=Raw(b'{}')), durable=True)\n"
        "        told += 1\n"
        "    except StoreError:\n"
        "        pass\n"
        "    if n == 9: os.unlink(sys.argv[1] + '-wal')\n"
        "print(told, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    command = [sys.executable, "-c", script, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "10\n"
