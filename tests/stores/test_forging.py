"""What somebody forges who can write the file and knows how it is made: found with the key, or with no more than it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from msgspec import Raw

from theodolite.core.errors import StoreError
from theodolite.core.store import Entry, Head, Kind, Record, Verification, seal_erasure, seal_head, seal_record, verify
from theodolite.stores.memory import MemoryStore
from theodolite.stores.sqlite import ReadOnlySQLiteStore, SQLiteStore

KEY = b"a key that only the operator has"
FORGED = "UPDATE records SET payload = x'7b22666f72676564223a317d'"


def entry(session: str = "s-1", at: float = 1.0) -> Entry:
    return Entry(session=session, at=at, kind=Kind.DECISION, payload=Raw(b'{"text":"true"}'), codes=("a.b",))


@pytest.fixture(params=[KEY, None], ids=["keyed", "unkeyed"])
def key(request: pytest.FixtureRequest) -> bytes | None:
    found: bytes | None = request.param
    return found


@pytest.fixture
def file(tmp_path: Path, key: bytes | None) -> Path:
    with SQLiteStore(tmp_path / "records.db", key=key) as store:
        for n in range(4):
            for session in ("s-1", "s-2"):
                store.append(entry(session, float(n)))
    return tmp_path / "records.db"


def tamper(file: Path, *statements: str) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def look(file: Path, key: bytes | None) -> Verification:
    with ReadOnlySQLiteStore(file) as kept:
        return verify(kept, key)


def found(file: Path, key: bytes | None) -> list[tuple[str, int | None]]:
    return [(problem.session, problem.n) for problem in look(file, key).problems]


def test_a_forged_payload_without_its_salt_does_not_pass_for_an_erased_one(file: Path, key: bytes | None) -> None:
    tamper(file, f"{FORGED}, salt = NULL WHERE session = 's-1' AND n = 2")
    seen = look(file, key)
    assert [(problem.session, problem.n) for problem in seen.problems] == [("s-1", 2)]
    assert seen.erased == 0


def test_a_salt_without_its_payload_is_no_erasure(file: Path, key: bytes | None) -> None:
    tamper(file, "UPDATE records SET payload = NULL WHERE session = 's-1' AND n = 2")
    assert found(file, key) == [("s-1", 2)]


def test_a_record_tells_whether_its_payload_holds(file: Path) -> None:
    tamper(
        file,
        f"{FORGED} WHERE n = 0",
        f"{FORGED}, salt = NULL WHERE n = 1",
        "UPDATE records SET payload = NULL, salt = NULL WHERE n = 2",
    )
    with ReadOnlySQLiteStore(file) as kept:
        assert [record.holds for record in kept.read(session="s-1")] == [False, False, False, True]


@pytest.mark.parametrize(
    "shift",
    [
        "salt = lower(salt || hex(substr(payload, 1, 8))), payload = substr(payload, 9)",
        "salt = lower(salt || hex(payload)), payload = x''",
        "payload = CAST(x'5a' || payload AS BLOB), salt = substr(salt, 1, 30)",
    ],
)
def test_what_moves_between_salt_and_payload_is_found(tmp_path: Path, shift: str) -> None:
    file = tmp_path / "records.db"
    with SQLiteStore(file, key=KEY, salts=lambda: "5a" * 16) as store:
        store.append(entry())
    tamper(file, f"UPDATE records SET {shift}")  # noqa: S608 - our own
    assert found(file, KEY) == [("s-1", 0)]


EVERY_ROW = [f"DELETE FROM {table}" for table in ("records", "codes", "heads", "registry")]  # noqa: S608 - our own


def test_a_store_that_was_emptied_is_no_new_one(file: Path, key: bytes | None) -> None:
    tamper(file, *EVERY_ROW)
    assert [problem.what for problem in look(file, key).problems] == ["the registry of sessions is gone"]


def test_a_store_emptied_to_fit_is_found_with_the_key_alone(file: Path, key: bytes | None) -> None:
    tamper(file, *EVERY_ROW, "INSERT INTO registry VALUES (1, 0, '', '')")
    seen = look(file, key)
    assert seen.intact is (key is None)
    assert any("emptied" in limit for limit in seen.unshown) is (key is None)


def test_a_store_made_anew_in_its_place_is_found_with_the_key_alone(file: Path, key: bytes | None) -> None:
    file.unlink()
    SQLiteStore(file).close()
    assert look(file, key).intact is (key is None)


@pytest.mark.parametrize("where", ["TRUE", "session = 's-1'", "session = 's-1' AND n = 2"])
def test_payloads_taken_without_an_erasure_are_found(file: Path, key: bytes | None, where: str) -> None:
    tamper(file, f"UPDATE records SET payload = NULL, salt = NULL WHERE {where}")  # noqa: S608 - our own
    assert found(file, key) == [("s-1", 3), ("s-2", 3)][: 2 if where == "TRUE" else 1]


def test_payloads_taken_behind_an_erasure_are_found(file: Path, key: bytes | None) -> None:
    with SQLiteStore(file, key=key) as store:
        store.erase("s-1")
        for _ in range(3):
            store.append(entry())
    tamper(file, "UPDATE records SET payload = NULL, salt = NULL WHERE session = 's-1' AND n = 6")
    assert found(file, key) == [("s-1", 7)]


def test_a_payload_taken_before_an_erasure_is_not_covered_by_it(file: Path, key: bytes | None) -> None:
    tamper(file, "UPDATE records SET payload = NULL, salt = NULL WHERE session = 's-1' AND n = 1")
    with SQLiteStore(file, key=key) as store:
        assert store.erase("s-1") == 3
    assert found(file, key) == [("s-1", 4)]


def test_an_erased_payload_that_is_put_back_is_found(file: Path, key: bytes | None) -> None:
    with SQLiteStore(file, key=key) as store:
        before = next(iter(store.read(session="s-1")))
        store.erase("s-1")
    tamper(
        file,
        f"UPDATE records SET payload = x'{bytes(before.payload or b'').hex()}', salt = '{before.salt}' "  # noqa: S608 - our own
        "WHERE session = 's-1' AND n = 0",
    )
    assert found(file, key) == [("s-1", 4)]


def test_an_erasure_that_is_erased_is_found(file: Path, key: bytes | None) -> None:
    with SQLiteStore(file, key=key) as store:
        store.erase("s-1")
        store.append(entry())
    tamper(file, "UPDATE records SET payload = NULL, salt = NULL WHERE kind = 'erasure'")
    assert found(file, key) == [("s-1", 5)]


def append_behind_its_back(file: Path, record: Record, head: Head) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(
            "INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(record.session, record.n, record.at, record.kind.value, bytes(record.payload or b""), record.salt),
                *(record.digest, record.previous, record.hash),
            ),
        )
        connection.execute(
            "UPDATE heads SET n = ?, hash = ? WHERE session = ?", (record.n, record.hash, record.session)
        )
    assert (head.n, head.session) == (record.n - 1, record.session)


def test_a_forged_erasure_is_found_with_the_key_alone(file: Path, key: bytes | None) -> None:
    with ReadOnlySQLiteStore(file) as kept:
        head = kept.head("s-1")
    assert head is not None
    tamper(file, "UPDATE records SET payload = NULL, salt = NULL WHERE session = 's-1'")
    record = seal_erasure("s-1", at=9.0, payloads=4, n=4, previous=head.hash, salt="5a" * 16)
    append_behind_its_back(file, record, head)
    seen = look(file, key)
    assert [(problem.session, problem.n) for problem in seen.problems] == ([] if key is None else [("s-1", 4)])
    assert any("erased by another hand" in limit for limit in seen.unshown) is (key is None)


@pytest.mark.parametrize(
    "payload", [b"", b"{}", b'{"payloads":3,"through":3}', b'{"payloads":4,"through":3,"by":"me"}']
)
def test_an_erasure_that_counts_otherwise_is_found(file: Path, payload: bytes) -> None:
    with ReadOnlySQLiteStore(file) as kept:
        head = kept.head("s-1")
    assert head is not None
    tamper(file, "UPDATE records SET payload = NULL, salt = NULL WHERE session = 's-1'")
    wrong = Entry(session="s-1", at=9.0, kind=Kind.EVENT, payload=Raw(payload))
    sealed = seal_record(wrong, n=4, previous=head.hash, salt="5a" * 16)
    append_behind_its_back(file, sealed, head)
    tamper(file, "UPDATE records SET kind = 'erasure' WHERE session = 's-1' AND n = 4")
    assert ("s-1", 4) in found(file, None)
    assert any("its erasure says otherwise" in problem.what for problem in look(file, None).problems)


def test_sessions_that_changed_their_heads_are_found(file: Path, key: bytes | None) -> None:
    """The heads of two sessions are swapped, in their places, with links that fit."""
    with ReadOnlySQLiteStore(file) as kept:
        ends = {record.session: record for record in kept.read()}
    first = seal_head(ends["s-2"], position=0, before="", key=None)
    second = seal_head(ends["s-1"], position=1, before=first.link, key=None)
    tamper(
        file,
        "UPDATE heads SET position = -1 WHERE session = 's-1'",
        *(
            f"UPDATE heads SET position = {head.position}, link = '{head.link}' WHERE session = '{head.session}'"  # noqa: S608 - our own
            for head in (first, second)
        ),
        f"UPDATE registry SET link = '{second.link}'",  # noqa: S608 - our own
    )
    assert {session for session, _ in found(file, key)} == (set() if key is None else {"s-1", "s-2", ""})


def test_heads_with_swapped_names_are_found(file: Path, key: bytes | None) -> None:
    tamper(
        file,
        "UPDATE heads SET session = 'x' WHERE session = 's-1'",
        "UPDATE heads SET session = 's-1' WHERE session = 's-2'",
        "UPDATE heads SET session = 's-2' WHERE session = 'x'",
    )
    assert {session for session, _ in found(file, key)} >= {"s-1", "s-2"}


def test_stray_codes_are_found(file: Path, key: bytes | None) -> None:
    """A code of a record that is not there is not read; with its record it breaks that record's hash."""
    tamper(file, "INSERT INTO codes VALUES ('s-1', 4, 5, 'z.z')")
    with ReadOnlySQLiteStore(file) as kept:
        assert list(kept.read(code="z.z")) == []
    tamper(file, "UPDATE codes SET n = 3 WHERE code = 'z.z'")
    assert found(file, key) == [("s-1", 3)]


def test_a_payload_as_text_is_not_taken_for_the_same_bytes(file: Path, key: bytes | None) -> None:
    tamper(file, "UPDATE records SET payload = 'eyJ0ZXh0IjoidHJ1ZSJ9' WHERE session = 's-1' AND n = 2")
    with pytest.raises(StoreError, match="record 2 of session 's-1'"):
        look(file, key)


def test_a_store_in_memory_under_another_key_is_found_when_it_is_empty() -> None:
    assert verify(MemoryStore(KEY), KEY).intact
    assert [problem.what for problem in verify(MemoryStore(), KEY).problems] == [
        "the registry of sessions is not sealed with this key"
    ]


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER t BEFORE INSERT ON records BEGIN SELECT RAISE(IGNORE); END",
        "CREATE VIEW v AS SELECT * FROM records",
        "CREATE TABLE copies AS SELECT * FROM records",
        "CREATE INDEX extra ON records(hash)",
    ],
)
def test_what_this_package_never_makes_is_refused(file: Path, statement: str) -> None:
    """A trigger that ignores inserts would let an append return and keep nothing."""
    tamper(file, statement)
    with pytest.raises(StoreError, match="which this package never makes"):
        ReadOnlySQLiteStore(file)
    with pytest.raises(StoreError, match="which this package never makes"):
        SQLiteStore(file)
