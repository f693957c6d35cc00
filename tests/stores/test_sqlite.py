"""What the store in a SQLite file keeps, and how it is read."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import astuple, replace
from sqlalchemy import event

from theodolite.core.errors import StoreError
from theodolite.core.store import Entry, Kind, Record, verify
from theodolite.stores.memory import MemoryStore
from theodolite.stores.sqlite import SQLiteStore
from theodolite.stores.sqlite.rows import Filter

Entries = Callable[..., Entry]

KEY = b"a key that only the operator has"


hostile = st.sampled_from(
    ["", "a\0b", "a\0c", "ü", "u\u0308", "\U0001f9ed", "'; DROP TABLE records; --", "%", "s" * 5_000, "S-1", "\u202e"]
)
sessions = st.sampled_from(["s-1", "s-2"]) | hostile | st.text(max_size=8)
payloads = st.binary(max_size=50) | st.sampled_from([b"", b"{}", b"\0" * 5_000, "\u2028".encode()])
moments = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, -0.0, 5e-324, 1.7e308])
codes = st.lists(st.sampled_from(["a.b", "c.d", "", "e\0f"]) | st.text(max_size=4), max_size=3).map(tuple)
entries = st.builds(
    Entry,
    session=sessions,
    at=moments,
    kind=st.sampled_from([kind for kind in Kind if kind is not Kind.ERASURE]),
    payload=payloads.map(Raw),
    codes=codes,
)
steps = st.lists(
    st.tuples(st.just("append"), entries, st.booleans())
    | st.sampled_from([("reopen",), ("flush",), ("read",)])
    | st.tuples(st.just("erase"), sessions),
    max_size=20,
)


def as_bytes(records: Iterator[Record]) -> list[tuple[object, ...]]:
    return [
        (*astuple(replace(record, payload=None)), None if record.payload is None else bytes(record.payload))
        for record in records
    ]


@settings(max_examples=30, deadline=None)
@given(steps=steps)
def test_any_run_reads_back_equal_to_memory_and_verifies(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[object, ...]]
) -> None:
    file = tmp_path_factory.mktemp("run") / "records.db"
    memory, store = MemoryStore(KEY, salts=lambda: "5a" * 16, clock=lambda: 7.0), None
    for what, *rest in [("reopen",), *steps]:
        if what == "reopen":
            if store is not None:
                store.close()
            store = SQLiteStore(file, key=KEY, salts=lambda: "5a" * 16, clock=lambda: 7.0)
        assert store is not None
        match rest:
            case [Entry() as given_entry, bool() as durable]:
                assert store.append(given_entry, durable=durable) == memory.append(given_entry)
            case [str() as session]:
                assert store.erase(session) == memory.erase(session)
            case _ if what == "flush":
                store.flush()
            case _:
                assert as_bytes(store.read()) == as_bytes(memory.read())
    assert store is not None
    with store:
        assert as_bytes(store.read()) == as_bytes(memory.read())
        assert list(store.heads()) == list(memory.heads())
        assert store.registry() == memory.registry()
        assert verify(store, KEY).intact


@settings(max_examples=100, deadline=None)
@given(
    session=st.none() | st.sampled_from(["s-1", "s-2", "nobody"]),
    since=st.none() | st.integers(-1, 12).map(float),
    until=st.none() | st.integers(-1, 12).map(float),
    code=st.none() | st.sampled_from(["a.b", "c.d", "nothing"]),
)
def test_read_finds_what_memory_finds(
    both: tuple[SQLiteStore, MemoryStore], session: str, since: float, until: float, code: str
) -> None:
    store, memory = both
    wanted = list(memory.read(session=session, since=since, until=until, code=code))
    assert list(store.read(session=session, since=since, until=until, code=code)) == wanted
    assert [store.head(record.session) for record in wanted] == [memory.head(record.session) for record in wanted]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory, entry: Entries) -> Iterator[tuple[SQLiteStore, MemoryStore]]:
    memory = MemoryStore(KEY, salts=lambda: "5a" * 16)
    file = tmp_path_factory.mktemp("both") / "records.db"
    with SQLiteStore(file, key=KEY, salts=lambda: "5a" * 16) as store:
        for n in range(12):
            given_entry = entry(
                f"s-{n % 3}", at=float(n * 5 % 12), codes=(("a.b",) if n % 2 else ("c.d", "a.b", "a.b"))[: n % 4]
            )
            store.append(given_entry)
            memory.append(given_entry)
        yield store, memory


@pytest.mark.parametrize(("at", "kept"), [(5, 5.0), (-0.0, 0.0), (True, 1.0)])
def test_a_time_that_the_file_writes_otherwise_is_sealed_as_it_comes_back(
    store: SQLiteStore, at: float, kept: float, entry: Entries
) -> None:
    record = store.append(entry(at=at))
    assert repr(record.at) == repr(kept)
    assert verify(store, KEY).problems == ()


def test_a_record_keeps_its_codes_in_order(store: SQLiteStore, entry: Entries) -> None:
    record = store.append(entry(codes=("c.d", "a.b", "c.d")))
    assert [found.codes for found in store.read()] == [("c.d", "a.b", "c.d")]
    assert list(store.read(code="c.d")) == [record]


@pytest.mark.parametrize("wrong", [{"session": "s\ud800"}, {"codes": ("a.b", "\udfff")}, {"at": float("nan")}])
def test_an_entry_that_cannot_be_kept_is_refused_and_leaves_nothing_behind(
    store: SQLiteStore, wrong: dict[str, object], entry: Entries
) -> None:
    for _ in range(2):
        with pytest.raises(StoreError, match=r"surrogate|cannot be kept"):
            store.append(entry(**wrong), durable=True)
    record = store.append(entry(), durable=True)
    assert list(store.read()) == [record]


@pytest.mark.parametrize("name", ["read", "head", "erase"])
def test_asking_for_a_lone_surrogate_is_a_store_error(store: SQLiteStore, name: str) -> None:
    ask = {"read": lambda: list(store.read(code="\ud800")), "head": lambda: store.head("\ud800")}
    with pytest.raises(StoreError, match="lone surrogate"):
        ask.get(name, lambda: store.erase("\ud800"))()


def test_an_entry_that_no_row_can_hold_is_refused(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch, entry: Entries
) -> None:
    monkeypatch.setattr("theodolite.stores.sqlite._LARGEST", 5_000)
    store.append(entry(text="x" * 3_000))
    with pytest.raises(StoreError, match="more than a row can hold"):
        store.append(entry(text="x" * 4_000))


def test_many_more_sessions_than_are_remembered_go_on_where_they_ended(
    file: Path, monkeypatch: pytest.MonkeyPatch, entry: Entries
) -> None:
    monkeypatch.setattr("theodolite.stores.sqlite.commit._CHAINS", 10)
    loads: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        loads.extend([statement] * statement.startswith("SELECT records.session"))

    with SQLiteStore(file, key=KEY, linger=60) as store:
        event.listen(store.engine, "before_cursor_execute", note)
        for n in range(3):
            for number in range(50):
                store.append(entry(f"s-{number}", at=float(n)))
            store.flush()
            store.append(entry(f"another-{n}"))
        assert len(loads) == 3 * 51  # each chain was read again in each round: it had been let go of
        assert verify(store, KEY).problems == ()
        assert [head.n for head in store.heads() if head.session.startswith("s-")] == [2] * 50


def test_threads_make_one_chain_a_session(store: SQLiteStore, entry: Entries) -> None:
    def work(number: int) -> list[Record]:
        kept: list[Record] = []
        for n in range(50):
            kept.append(store.append(entry("shared"), durable=n % 10 == 0))
            kept.append(store.append(entry(f"own-{number}")))
            if n % 20 == number:
                assert {record.hash for record in kept} <= {record.hash for record in store.read()}
        return kept

    with ThreadPoolExecutor(4) as pool:
        kept = {record.hash for records in pool.map(work, range(4)) for record in records}
    assert {record.hash for record in store.read()} == kept
    assert len(kept) == 400
    assert verify(store, KEY).problems == ()


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory, entry: Entries) -> Iterator[SQLiteStore]:
    with SQLiteStore(tmp_path_factory.mktemp("full") / "records.db") as store:
        for n in range(20_000):
            store.append(entry(f"s-{n % 50}", at=float(n), text="x" * 1_000, codes=("a.b",) * (n % 1_000 == 0)))
        store.flush()
        yield store


@pytest.mark.parametrize(
    ("wanted", "index"),
    [
        (Filter(session="s-3"), "sqlite_autoindex_records_1 (session=?)"),
        (Filter(since=5.0, until=6.0), "records_at (at>? AND at<?)"),
        (Filter(since=19_990.0), "records_at (at>? AND at<?)"),
        (Filter(until=3.0), "records_at (at>? AND at<?)"),
        (Filter(code="a.b"), "codes_code (code=?)"),
    ],
)
def test_session_time_and_code_are_found_by_an_index(full: SQLiteStore, wanted: Filter, index: str) -> None:
    asked: list[tuple[str, tuple[object, ...]]] = []

    def note(_connection: object, _cursor: object, statement: str, values: tuple[object, ...], *_: object) -> None:
        asked.append((statement, values))

    event.listen(full.engine, "before_cursor_execute", note)
    found = list(full.read(session=wanted.session, since=wanted.since, until=wanted.until, code=wanted.code))
    assert 0 < len(found) <= 400
    event.remove(full.engine, "before_cursor_execute", note)
    [(statement, values)] = asked
    with full.engine.connect() as connection:
        plan = [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values)]
    assert any(step.startswith("SEARCH") and step.endswith(index) for step in plan)
    assert not any(step.startswith("SCAN records") for step in plan)


@pytest.mark.parametrize("since", [None, 0.0])
def test_a_large_file_is_read_in_little_memory(full: SQLiteStore, since: float | None) -> None:
    full.flush()
    tracemalloc.start()
    try:
        count = sum(1 for _ in full.read(since=since))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 20_000
    assert peak < 4_000_000  # of some 26 MB in the file


def test_a_reader_blocks_no_writer_and_sees_one_moment(store: SQLiteStore, entry: Entries) -> None:
    kept = [store.append(entry(f"s-{n}")) for n in range(1_200)]
    reading = store.read()
    first = next(reading)
    store.append(entry("later"), durable=True)
    assert sorted([first, *reading], key=lambda record: int(record.session[2:])) == kept
    assert len(list(store.read())) == 1_201


def test_a_reader_that_is_dropped_leaves_nothing_open(store: SQLiteStore, entry: Entries) -> None:
    for n in range(10):
        store.append(entry(at=float(n)))
    opened: list[object] = []
    closed: list[object] = []

    def note_opened(connection: object, _: object) -> None:
        opened.append(connection)

    def note_closed(connection: object, _: object) -> None:
        closed.append(connection)

    event.listen(store.engine, "connect", note_opened)
    event.listen(store.engine, "close", note_closed)
    for _ in range(30):
        next(store.read())
    assert len(opened) == 30
    assert closed == opened
