"""`theodolite store verify` and `theodolite store heads`."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import Result

Run = Callable[..., Result]


@pytest.fixture
def store(theodolite: Run, recordings: Path, home: Path) -> Path:
    assert theodolite("scan", recordings, "--store", "evidence.db").exit_code == 1
    return home / "evidence.db"


def _spoil(store: Path, *statements: str) -> None:
    with closing(sqlite3.connect(store)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def test_a_store_that_a_scan_left_is_intact_and_says_what_it_cannot_show(theodolite: Run, store: Path) -> None:
    done = theodolite("store", "verify", store)
    assert done.exit_code == 0
    assert "evidence.db: intact" in done.stdout
    assert "3 sessions, " in done.stdout
    assert "What this could not have shown\n  without the key" in done.stdout


def test_a_changed_record_is_named(theodolite: Run, store: Path) -> None:
    _spoil(store, "UPDATE records SET payload = X'7B7D' WHERE session = 'hijacked' AND n = 1")
    done = theodolite("store", "verify", store)
    assert done.exit_code == 1
    assert "session hijacked, record 1: the payload was changed" in done.stdout


def test_a_removed_record_is_named(theodolite: Run, store: Path) -> None:
    _spoil(store, "DELETE FROM records WHERE session = 'hijacked' AND n = 1")
    done = theodolite("store", "verify", store)
    assert done.exit_code == 1
    assert "session hijacked, record 2: record 1 was expected here" in done.stdout


def test_a_store_that_cannot_be_read_to_its_end_is_damaged_and_no_error(theodolite: Run, store: Path) -> None:
    _spoil(store, "UPDATE records SET kind = 'gossip' WHERE session = 'hijacked' AND n = 1")
    done = theodolite("store", "verify", store)
    assert (done.exit_code, done.stderr) == (1, "")
    assert done.stdout.startswith("damaged: ")
    assert "record 1 of session 'hijacked'" in done.stdout


def test_with_the_key_seals_are_checked(theodolite: Run, recordings: Path, home: Path) -> None:
    (home / "key").write_text("k" * 32, encoding="utf-8")
    (home / "other").write_text("o" * 32, encoding="utf-8")
    (home / "theodolite.toml").write_text('[store]\nkey_file = "key"\n', encoding="utf-8")
    theodolite("scan", recordings, "--store", "evidence.db")
    right = theodolite("store", "verify", "evidence.db", "--key-file", "key")
    wrong = theodolite("store", "verify", "evidence.db", "--key-file", "other")
    assert (right.exit_code, wrong.exit_code) == (0, 1)
    assert "older copies of the head" in right.stdout
    assert "not sealed with this key" in wrong.stdout


@pytest.mark.parametrize("content", [None, b"not a database", b""])
def test_what_is_no_store_is_2_and_stays_as_it_is(theodolite: Run, home: Path, content: bytes | None) -> None:
    file = home / "other.db"
    if content is not None:
        file.write_bytes(content)
    done = theodolite("store", "verify", file)
    assert done.exit_code == 2
    assert done.stderr.startswith("error: ")
    assert file.exists() is (content is not None)
    assert content is None or file.read_bytes() == content


def test_a_key_that_cannot_be_read_is_2(theodolite: Run, store: Path) -> None:
    assert theodolite("store", "verify", store, "--key-file", "nowhere").exit_code == 2


def test_heads_that_are_kept_show_an_older_copy(theodolite: Run, recordings: Path, store: Path, home: Path) -> None:
    older = store.read_bytes()
    theodolite("scan", recordings, "--store", "evidence.db")
    assert theodolite("store", "heads", store, "--output", "heads.jsonl").exit_code == 0
    assert theodolite("store", "verify", store, "--heads", "heads.jsonl").exit_code == 0
    store.write_bytes(older)
    alone, with_heads = (
        theodolite("store", "verify", store),
        theodolite("store", "verify", store, "--heads", "heads.jsonl"),
    )
    assert (alone.exit_code, with_heads.exit_code) == (0, 1)
    assert "the record is gone that a head kept elsewhere names" in with_heads.stdout
    assert len((home / "heads.jsonl").read_text(encoding="utf-8").splitlines()) == 3


def test_heads_are_json_lines_of_names_and_hashes(theodolite: Run, store: Path) -> None:
    done = theodolite("store", "heads", store)
    assert done.exit_code == 0
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [head["position"] for head in found] == [0, 1, 2]
    assert all(set(head) == {"session", "position", "link", "n", "hash", "seal"} for head in found)


def test_heads_that_were_kept_are_not_written_over(theodolite: Run, store: Path, home: Path) -> None:
    (home / "heads.jsonl").write_text("kept", encoding="utf-8")
    done = theodolite("store", "heads", store, "--output", "heads.jsonl")
    assert (done.exit_code, "name a new file" in done.stderr) == (2, True)
    assert (home / "heads.jsonl").read_text(encoding="utf-8") == "kept"


@pytest.mark.parametrize(
    "content", [None, b"\n", b"{}", b"[]", b"\xff", b'{"session":"s\xff"}', b'{"session":1}', b'{"a":' * 99_999]
)
def test_heads_that_cannot_be_read_are_2(theodolite: Run, store: Path, home: Path, content: bytes | None) -> None:
    if content is not None:
        (home / "heads.jsonl").write_bytes(content)
    done = theodolite("store", "verify", store, "--heads", "heads.jsonl")
    assert done.exit_code == 2
    assert "heads.jsonl" in done.stderr
    assert "line 1 is not a head" in done.stderr or "cannot be read" in done.stderr


@pytest.mark.parametrize("command", ["verify", "heads"])
def test_verifying_leaves_every_byte_of_the_file(theodolite: Run, store: Path, command: str) -> None:
    content, at = store.read_bytes(), store.stat().st_mtime_ns
    assert theodolite("store", command, store).exit_code == 0
    assert (store.read_bytes(), store.stat().st_mtime_ns) == (content, at)


def test_no_text_of_a_session_that_redaction_takes_is_in_the_store(
    theodolite: Run, recordings: Path, home: Path
) -> None:
    secret = "sk-ant-api03-q7Zt2Lw9Xc4Vb1Nm8Rk5Pj3Hs6Gd0Fa-y7Ue2Io9Tq4Wz1Lx8Kv5Bn3Mc6Jh0Gp-AA"
    file = recordings / "hijacked.json"
    file.write_text(file.read_text(encoding="utf-8").replace("all invoices", f"all {secret}"), encoding="utf-8")
    done = theodolite("scan", file, "--store", "evidence.db")
    assert done.exit_code == 1
    assert secret not in "".join(done.stdout.split())
    assert "REDACTED" in done.stdout
    kept = b"".join(path.read_bytes() for path in home.glob("evidence.db*"))
    assert secret.encode() not in kept
    assert b"REDACTED" in kept
