"""What `verify` finds in a file that somebody changed behind the store's back, with the key and without."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from theodolite.core.errors import StoreError
from theodolite.core.store import (
    Entry,
    Head,
    Kind,
    Record,
    Registry,
    Verification,
    seal_head,
    seal_record,
    seal_registry,
    verify,
)
from theodolite.stores.memory import MemoryStore
from theodolite.stores.sqlite import ReadOnlySQLiteStore, SQLiteStore

KEY = b"a key that only the operator has"
SESSIONS = ("s-1", "s-2", "s-3")
EACH = 5

Tamper = Callable[[sqlite3.Connection], object]


def entry(session: str, n: int) -> Entry:
    codes = ("a.b", "c.d") if n % 2 else ()
    return Entry(session=session, at=float(n), kind=Kind.DECISION, payload=Raw(f'{{"n":{n}}}'.encode()), codes=codes)


def make(file: Path, key: bytes | None) -> Path:
    with SQLiteStore(file, key=key, salts=lambda: "5a" * 16) as store:
        for n in range(EACH):
            for session in SESSIONS:
                store.append(entry(session, n))
    return file


@pytest.fixture(params=[KEY, None], ids=["keyed", "unkeyed"])
def key(request: pytest.FixtureRequest) -> bytes | None:
    found: bytes | None = request.param
    return found


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[bytes | None, Path]:
    place = tmp_path_factory.mktemp("made")
    return {KEY: make(place / "keyed.db", KEY), None: make(place / "unkeyed.db", None)}


@pytest.fixture
def file(made: dict[bytes | None, Path], key: bytes | None, tmp_path: Path) -> Path:
    return Path(shutil.copyfile(made[key], tmp_path / "records.db"))


@pytest.fixture
def keyed(made: dict[bytes | None, Path], tmp_path: Path) -> Path:
    return Path(shutil.copyfile(made[KEY], tmp_path / "keyed.db"))


def tamper(file: Path, *statements: str) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def look(file: Path, key: bytes | None) -> Verification:
    with ReadOnlySQLiteStore(file) as kept:
        return verify(kept, key)


def found(file: Path, key: bytes | None) -> list[tuple[str, int | None]]:
    return [(problem.session, problem.n) for problem in look(file, key).problems]


def test_a_store_that_nobody_touched_is_intact_and_says_what_it_cannot_show(file: Path, key: bytes | None) -> None:
    seen = look(file, key)
    assert (seen.sessions, seen.records, seen.erased, seen.problems) == (3, 15, 0, ())
    assert any("older copies" in limit for limit in seen.unshown) is (key is not None)
    assert any("without the key" in limit for limit in seen.unshown) is (key is None)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("payload", "x'7b7d'"),
        ("payload", "NULL"),
        ("salt", "NULL"),
        ("salt", "upper(salt)"),
        ("salt", "salt || ' '"),
        ("salt", "'00'"),
        ("salt", "'not hexadecimal'"),
        ("digest", "'00'"),
        ("at", "99.0"),
        ("kind", "'event'"),
        ("previous", "''"),
        ("hash", "'00'"),
    ],
)
def test_a_changed_field_is_found_at_its_record(file: Path, key: bytes | None, column: str, value: str) -> None:
    tamper(file, f"UPDATE records SET {column} = {value} WHERE session = 's-2' AND n = 2")  # noqa: S608 - our own
    assert ("s-2", 2) in found(file, key)
    assert {session for session, _ in found(file, key)} == {"s-2"}


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM codes WHERE session = 's-2' AND n = 3 AND place = 0",
        "UPDATE codes SET code = 'z.z' WHERE session = 's-2' AND n = 3 AND place = 0",
        "UPDATE codes SET place = 5 WHERE session = 's-2' AND n = 3 AND place = 0",
        "INSERT INTO codes (session, n, place, code) VALUES ('s-2', 3, 9, 'z.z')",
    ],
)
def test_a_changed_code_is_found_at_its_record(file: Path, key: bytes | None, statement: str) -> None:
    tamper(file, statement)
    assert found(file, key) == [("s-2", 3)]


def test_a_record_removed_in_the_middle_is_found_at_the_next(file: Path, key: bytes | None) -> None:
    tamper(file, "DELETE FROM records WHERE session = 's-2' AND n = 2")
    assert found(file, key) == [("s-2", 3)]


def test_two_records_in_each_others_place_are_found(file: Path, key: bytes | None) -> None:
    tamper(
        file,
        "UPDATE records SET n = 100 WHERE session = 's-2' AND n = 1",
        "UPDATE records SET n = 1 WHERE session = 's-2' AND n = 2",
        "UPDATE records SET n = 2 WHERE session = 's-2' AND n = 100",
    )
    assert {("s-2", 1), ("s-2", 2)} <= set(found(file, key))


def test_a_record_moved_to_another_session_is_found(file: Path, key: bytes | None) -> None:
    tamper(file, "UPDATE records SET session = 's-4' WHERE session = 's-2' AND n = 4")
    assert {("s-2", 3), ("s-4", 4)} <= set(found(file, key))


def test_a_cut_tail_is_found_by_its_head(file: Path, key: bytes | None) -> None:
    tamper(file, "DELETE FROM records WHERE session = 's-2' AND n = 4")
    assert found(file, key) == [("s-2", 3)]


CUT = (
    "DELETE FROM records WHERE session = 's-2' AND n = 4",
    "UPDATE heads SET n = 3, hash = (SELECT hash FROM records WHERE session = 's-2' AND n = 3) WHERE session = 's-2'",
)


def test_a_cut_tail_whose_head_was_rewritten_is_found_with_the_key_alone(file: Path, key: bytes | None) -> None:
    tamper(file, *CUT)
    assert found(file, key) == ([] if key is None else [("s-2", 3)])
    assert key is not None or any("a cut tail" in limit for limit in look(file, key).unshown)


@pytest.mark.parametrize("session", SESSIONS)
def test_a_removed_session_is_found_once(file: Path, key: bytes | None, session: str) -> None:
    tamper(file, *(f"DELETE FROM {table} WHERE session = '{session}'" for table in ("records", "codes", "heads")))  # noqa: S608 - our own
    problems = look(file, key).problems
    assert "the registry counts 3 sessions, the store has 2" in [problem.what for problem in problems]
    # The next session shows it too, but not every one after that.
    assert len(problems) == (1 if session == "s-3" else 2)


def test_the_records_of_a_session_gone_without_its_head_are_missed(file: Path, key: bytes | None) -> None:
    tamper(file, "DELETE FROM records WHERE session = 's-2'")
    assert found(file, key) == [("s-2", None), ("s-2", 1), ("s-2", 3)]  # their codes are still there


def test_the_head_of_a_session_gone_without_its_records_is_missed(file: Path, key: bytes | None) -> None:
    tamper(file, "DELETE FROM heads WHERE session = 's-2'")
    assert {("s-2", 4), ("s-3", None), ("", None)} == set(found(file, key))


def test_a_registry_that_is_gone_is_missed(file: Path, key: bytes | None) -> None:
    tamper(file, "DELETE FROM registry")
    assert [problem.what for problem in look(file, key).problems] == ["the registry of sessions is gone"]


def test_a_registry_with_another_end_is_found(made: dict[bytes | None, Path], tmp_path: Path) -> None:
    file = Path(shutil.copyfile(made[None], tmp_path / "records.db"))
    tamper(file, "UPDATE registry SET link = '00'")
    assert [problem.what for problem in look(file, None).problems] == [
        "the registry does not end with the last session"
    ]


@pytest.mark.parametrize("table", ["heads", "registry"])
@pytest.mark.parametrize("seal", ["", "00", "é"])
def test_a_rewritten_seal_is_found_with_the_key(keyed: Path, table: str, seal: str) -> None:
    tamper(keyed, f"UPDATE {table} SET seal = '{seal}'")  # noqa: S608 - our own
    assert len(found(keyed, KEY)) == (3 if table == "heads" else 1)


def recompute(file: Path, session: str, first: int) -> None:
    """Change a record and compute anew what can be computed without the key, seals left as they are."""
    with SQLiteStore(file, create=False) as store:
        records = list(store.read(session=session))
        heads = list(store.heads())
    chain = records[:first]
    for record in records[first:]:
        text = Raw(b'{"n":"forged"}') if record.n == first else record.payload
        given = Entry(session=session, at=record.at, kind=record.kind, payload=text or Raw(b""), codes=record.codes)
        chain.append(seal_record(given, n=record.n, previous=chain[-1].hash if chain else "", salt=record.salt or ""))
    with closing(sqlite3.connect(file)) as connection:
        for record in chain[first:]:
            connection.execute(
                "UPDATE records SET payload = ?, digest = ?, previous = ?, hash = ? WHERE session = ? AND n = ?",
                (bytes(record.payload or b""), record.digest, record.previous, record.hash, session, record.n),
            )
        connection.execute("UPDATE heads SET hash = ? WHERE session = ?", (chain[-1].hash, session))
        connection.commit()
    assert len(heads) == len(SESSIONS)


def test_a_chain_computed_anew_without_the_key_is_found_with_it_alone(file: Path, key: bytes | None) -> None:
    recompute(file, "s-2", 2)
    assert found(file, key) == ([] if key is None else [("s-2", 4)])
    assert key is not None or any("computed anew" in limit for limit in look(file, key).unshown)


def test_all_rows_computed_anew_without_the_key_are_found_with_it_alone(file: Path, key: bytes | None) -> None:
    """A session is removed, and every link and the registry are made to fit, as far as that goes without the key."""
    with SQLiteStore(file, create=False) as store:
        ends = {record.session: record for record in store.read()}
    heads: list[Head] = []
    for session in ("s-1", "s-3"):
        before = heads[-1].link if heads else ""
        heads.append(seal_head(ends[session], position=len(heads), before=before, key=None))
    book = seal_registry(count=2, link=heads[-1].link, key=None)
    tamper(file, *(f"DELETE FROM {table} WHERE session = 's-2'" for table in ("records", "codes", "heads")))  # noqa: S608 - our own
    tamper(
        file,
        f"UPDATE heads SET position = 1, link = '{heads[1].link}' WHERE session = 's-3'",  # noqa: S608 - our own
        f"UPDATE registry SET count = 2, link = '{book.link}'",  # noqa: S608 - our own
    )
    assert found(file, key) == ([] if key is None else [("s-3", 4), ("", None)])


def test_older_copies_put_back_are_found_by_heads_kept_elsewhere_alone(keyed: Path) -> None:
    older = keyed.with_name("older.db")
    shutil.copyfile(keyed, older)
    with SQLiteStore(keyed, key=KEY) as store:
        store.append(entry("s-2", 5))
        elsewhere = store.head("s-2")
    shutil.copyfile(older, keyed)
    seen = look(keyed, KEY)
    assert seen.intact
    assert any("older copies" in limit for limit in seen.unshown)
    assert elsewhere is not None
    with ReadOnlySQLiteStore(keyed) as kept:
        problems = verify(kept, KEY, [elsewhere]).problems
    assert [(problem.session, problem.n) for problem in problems] == [("s-2", 5)]


def test_another_key_fits_no_seal(keyed: Path) -> None:
    with SQLiteStore(keyed, create=False) as store:
        assert len(verify(store, b"another key").problems) == len(SESSIONS) + 1


def test_erased_payloads_are_counted_and_are_no_problem(file: Path, key: bytes | None) -> None:
    with SQLiteStore(file, key=key) as store:
        assert store.erase("s-2") == EACH
    seen = look(file, key)
    assert (seen.erased, seen.problems) == (EACH, ())


CELLS = {
    "records": ("session", "n", "at", "kind", "payload", "salt", "digest", "previous", "hash"),
    "codes": ("session", "n", "place", "code"),
    "heads": ("session", "position", "link", "n", "hash", "seal"),
    "registry": ("count", "link", "seal"),
}
VALUES = st.one_of(
    st.none(), st.integers(-3, 100), st.floats(allow_nan=False), st.text(max_size=5), st.binary(max_size=5)
)


def contents(file: Path) -> tuple[list[Record], list[Head], Registry | None] | None:
    with SQLiteStore(file, key=KEY, create=False) as store:
        try:
            return list(store.read()), list(store.heads()), store.registry()
        except StoreError:
            return None


@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_any_one_cell_that_changes_what_can_be_read_is_found(
    made: dict[bytes | None, Path], data: st.DataObject
) -> None:
    table = data.draw(st.sampled_from(sorted(CELLS)), label="table")
    column = data.draw(st.sampled_from(CELLS[table]), label="column")
    value = data.draw(VALUES, label="value")
    sealed = made[KEY]
    file = Path(shutil.copyfile(sealed, sealed.with_name("changed.db")))
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        count = connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608 - our own
        row = data.draw(st.integers(0, count - 1), label="row")
        key = "session, n, place" if table == "codes" else "rowid"
        where = f"({key}) = (SELECT {key} FROM {table} LIMIT 1 OFFSET {row})"  # noqa: S608 - our own
        try:
            connection.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (value,))  # noqa: S608 - our own
        except sqlite3.IntegrityError:
            return
        connection.commit()
    try:
        intact = look(file, KEY).intact
    except StoreError:
        intact = False
    assert intact is (contents(file) == contents(sealed))


def test_a_store_that_is_written_to_meanwhile_is_intact(tmp_path: Path, key: bytes | None) -> None:
    with SQLiteStore(tmp_path / "records.db", key=key, linger=0.001) as store:
        done = threading.Event()

        def work() -> None:
            n = 0
            while not done.is_set():
                store.append(entry("old", n), durable=n % 10 == 0)
                store.append(entry(f"new-{n}", 0))
                n += 1

        thread = threading.Thread(target=work)
        thread.start()
        try:
            problems = [problem for _ in range(20) for problem in verify(store, key).problems]
        finally:
            done.set()
            thread.join()
        assert problems == []
        assert len(list(store.heads())) > 20


class Growing(MemoryStore):
    """A store to which something is appended between any two reads of a verification."""

    def __init__(self, forge: Callable[[Head], Head] = lambda head: head) -> None:
        super().__init__(KEY)
        self.forge = forge
        self.append(entry("s-1", 0))

    def registry(self) -> Registry:
        book = super().registry()
        self.append(entry(f"begun-{len(list(super().heads()))}", 0))
        return book

    def heads(self) -> Iterator[Head]:
        found = list(super().heads())
        self.append(entry(f"begun-{len(found)}", 0))
        return iter(found)

    def read(
        self,
        *,
        session: str | None = None,
        since: float | None = None,
        until: float | None = None,
        code: str | None = None,
    ) -> Iterator[Record]:
        self.append(entry("s-1", 0))
        found = list(super().read(session=session, since=since, until=until, code=code))
        self.append(entry("s-1", 0))
        return iter(found)

    def head(self, session: str) -> Head | None:
        head = super().head(session)
        return None if head is None else self.forge(head)


def test_growth_between_two_reads_is_no_problem() -> None:
    assert verify(Growing(), KEY).problems == ()


def test_a_newer_head_without_its_seal_is_found() -> None:
    problems = verify(Growing(lambda head: replace(head, seal="")), KEY).problems
    assert "its head is not sealed with this key" in {problem.what for problem in problems}


def test_a_record_that_no_newer_head_covers_is_found(file: Path, key: bytes | None) -> None:
    with SQLiteStore(file, create=False) as store:
        last = list(store.read(session="s-2"))[-1]
    added = seal_record(entry("s-2", 5), n=5, previous=last.hash, salt="5a" * 16)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(
            "INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            ("s-2", 5, 5.0, "decision", bytes(added.payload or b""), added.salt, added.digest, last.hash, added.hash),
        )
        connection.executemany("INSERT INTO codes VALUES ('s-2', 5, ?, ?)", enumerate(added.codes))
        connection.commit()
    assert found(file, key) == [("s-2", 5)]
