"""One session has one writer, and what was tampered with is not sealed over."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from theodolite.core.errors import StoreError
from theodolite.core.store import Entry, verify
from theodolite.stores.sqlite import SQLiteStore

Entries = Callable[..., Entry]
Texts = Callable[..., list[str]]
Change = Callable[..., None]

KEY = b"a key that only the operator has"


def test_the_later_of_two_writers_to_a_session_is_refused(file: Path, store: SQLiteStore, entry: Entries) -> None:
    first = store.append(entry(text="first"), durable=True)
    with SQLiteStore(file, key=KEY) as other:
        second = other.append(entry(text="second"), durable=True)
        with pytest.raises(StoreError, match="session 's-1' has two writers, and record 1 is the other's"):
            store.append(entry(text="third"), durable=True)
        with pytest.raises(StoreError, match="two writers"):
            store.append(entry(text="fourth"))
        fifth = other.append(entry(text="fifth"), durable=True)
    assert list(store.read()) == [first, second, fifth]
    assert verify(store, KEY).problems == ()


def test_two_writers_to_a_new_session_make_one_chain(
    file: Path, store: SQLiteStore, entry: Entries, texts: Texts
) -> None:
    with SQLiteStore(file, key=KEY) as other:
        store.append(entry(text="queued"))
        other.append(entry(text="first"), durable=True)
        with pytest.raises(StoreError, match="two writers"):
            store.flush()
        store.flush()
        assert texts(store) == ["first"]


def test_other_sessions_of_the_same_group_are_written(file: Path, entry: Entries, texts: Texts) -> None:
    with SQLiteStore(file, key=KEY, linger=60) as store:  # so that what is flushed is one group
        store.append(entry("s-1"), durable=True)
        with SQLiteStore(file, key=KEY) as other:
            other.append(entry("s-1"), durable=True)
        store.append(entry("s-2", text="before"))
        store.append(entry("s-1", text="refused"))
        store.append(entry("s-2", text="after"))
        with pytest.raises(StoreError, match="1 unacknowledged"):
            store.flush()
        assert texts(store, "s-2") == ["before", "after"]
        assert len(texts(store, "s-1")) == 2
        assert verify(store, KEY).problems == ()


def test_a_refused_session_goes_on_in_a_store_opened_again(file: Path, entry: Entries) -> None:
    with SQLiteStore(file) as store, SQLiteStore(file) as other:
        for writer in (store, other):
            writer.append(entry(), durable=True)
        with pytest.raises(StoreError, match="two writers"):
            store.append(entry(), durable=True)
    with SQLiteStore(file) as store:
        assert store.append(entry(), durable=True).n == 2


def test_two_processes_write_to_one_file(file: Path) -> None:
    code = (
        "import sys\n"
        "from msgspec import Raw\n"
        "from theodolite.core.store import Entry, Kind\n"
        "from theodolite.stores.sqlite import SQLiteStore\n"
        "with SQLiteStore(sys.argv[1], key=sys.argv[2].encode(), linger=0.001) as store:\n"
        "    for n in range(300):\n"
        "        given = Entry(session=f'{sys.argv[3]}-{n % 40}', at=1.0, kind=Kind.EVENT, payload=Raw(b'{}'))\n"
        "        store.append(given, durable=n % 3 == 0)\n"
    )
    run = [sys.executable, "-c", code, str(file), KEY.decode()]
    children = [subprocess.Popen([*run, name]) for name in ("one", "two")]
    assert [child.wait(timeout=60) for child in children] == [0, 0]
    with SQLiteStore(file, key=KEY) as store:
        seen = verify(store, KEY)
    assert (seen.problems, seen.sessions, seen.records) == ((), 80, 600)


CUT = "UPDATE heads SET n = 0, hash = (SELECT hash FROM records WHERE session = 's-1' AND n = 0)"


@pytest.fixture
def kept(file: Path, entry: Entries) -> Path:
    with SQLiteStore(file, key=KEY) as store:
        for _ in range(3):
            store.append(entry("s-1"))
    return file


@pytest.mark.parametrize(
    "statements",
    [
        ("DELETE FROM records WHERE n = 2",),
        ("DELETE FROM records WHERE n > 0", CUT),
        ("DELETE FROM heads",),
        ("DELETE FROM records",),
        ("UPDATE heads SET seal = ''",),
    ],
)
def test_a_session_that_does_not_end_where_it_was_sealed_is_not_continued(
    kept: Path, statements: tuple[str, ...], entry: Entries, change: Change
) -> None:
    change(kept, *statements)
    with SQLiteStore(kept, key=KEY) as store:
        before = list(store.heads())
        with pytest.raises(StoreError, match="session 's-1' does not end where its head says"):
            store.append(entry("s-1"))
        assert list(store.heads()) == before


@pytest.mark.parametrize(
    "statements",
    [
        ("UPDATE registry SET count = 7",),
        ("DELETE FROM registry",),
        ("UPDATE registry SET seal = ''",),
        ("DELETE FROM records", "DELETE FROM heads"),
        ("DELETE FROM records", "DELETE FROM heads", "UPDATE registry SET count = 0, link = ''"),
    ],
)
def test_no_session_is_added_to_a_registry_that_was_changed(
    kept: Path, statements: tuple[str, ...], entry: Entries, change: Change
) -> None:
    change(kept, *statements)
    with SQLiteStore(kept, key=KEY) as store:
        before = (store.registry(), list(store.heads()))
        with pytest.raises(StoreError, match=r"registry.*verify"):
            store.append(entry("s-9"), durable=True)
        assert (store.registry(), list(store.heads())) == before


@pytest.mark.parametrize("key", [None, b"another key"])
@pytest.mark.parametrize("session", ["s-1", "s-2"])
def test_nothing_is_appended_under_another_key(kept: Path, key: bytes | None, session: str, entry: Entries) -> None:
    with SQLiteStore(kept, key=key) as store:
        with pytest.raises(StoreError, match="another key"):
            store.append(entry(session), durable=True)
        assert len(list(store.read())) == 3
        assert verify(store, KEY).intact


def test_a_change_while_the_store_is_open_is_not_sealed_over(
    file: Path, store: SQLiteStore, entry: Entries, change: Change
) -> None:
    for _ in range(3):
        store.append(entry("s-1"))
    store.flush()
    change(file, "DELETE FROM records WHERE n > 0", CUT)
    with pytest.raises(StoreError, match="does not end where its head says"):
        store.append(entry("s-1"), durable=True)
    assert not verify(store, KEY).intact


def test_a_row_in_the_way_refuses_its_session_alone(
    file: Path, store: SQLiteStore, entry: Entries, change: Change
) -> None:
    store.append(entry("s-1"), durable=True)
    change(file, "INSERT INTO records VALUES ('s-1', 1, 1.0, 'event', x'', '', '', '', '')")
    with pytest.raises(StoreError, match="does not end where its head says"):
        store.append(entry("s-1"), durable=True)
    store.append(entry("s-2"), durable=True)


def book(store: SQLiteStore) -> list[object]:
    return [store.registry()]


@pytest.mark.parametrize(
    ("statement", "read"),
    [
        ("UPDATE records SET kind = 'nonsense'", SQLiteStore.read),
        ("UPDATE records SET payload = 5", SQLiteStore.read),
        ("UPDATE heads SET position = 'x'", SQLiteStore.heads),
        ("UPDATE registry SET count = x'00'", book),
    ],
)
def test_a_cell_of_a_foreign_type_is_a_store_error(
    kept: Path, statement: str, read: Callable[[SQLiteStore], Iterable[object]], change: Change
) -> None:
    change(kept, statement)
    with (
        SQLiteStore(kept, key=KEY) as store,
        pytest.raises(StoreError, match="keep the file as it is"),
    ):
        list(read(store))
