"""`theodolite store export`."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import Result

from theodolite.cli.moments import first_moment, last_moment
from theodolite.core.errors import ConfigError

Run = Callable[..., Result]


@pytest.fixture
def store(theodolite: Run, recordings: Path, home: Path) -> Path:
    assert theodolite("scan", recordings, "--store", "evidence.db").exit_code == 1
    return home / "evidence.db"


@pytest.fixture
def key(home: Path) -> Path:
    (home / "key").write_text("k" * 32, encoding="utf-8")
    return home / "key"


@pytest.fixture
def sealed(theodolite: Run, recordings: Path, home: Path, key: Path) -> Path:
    text = f'[store]\npath = "sealed.db"\nprofile = "encrypted"\nkey_file = "{key.name}"\n'
    (home / "theodolite.toml").write_text(text, encoding="utf-8")
    assert theodolite("scan", recordings).exit_code == 1
    return home / "sealed.db"


def rows(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def test_it_is_a_record_a_line_with_its_payload(theodolite: Run, store: Path) -> None:
    done = theodolite("store", "export", store)
    assert done.exit_code == 0
    found = rows(done.stdout)
    with closing(sqlite3.connect(store)) as connection:
        kept = connection.execute("SELECT session, n, hash, payload FROM records ORDER BY session, n").fetchall()
    assert [(row["session"], row["n"], row["hash"], row["payload"]) for row in found] == [
        (session, n, digest, json.loads(payload)) for session, n, digest, payload in kept
    ]
    assert done.stdout.isascii()


def test_a_session_a_time_and_a_file_are_chosen(theodolite: Run, store: Path, home: Path) -> None:
    everything = rows(theodolite("store", "export", store).stdout)
    two = rows(theodolite("store", "export", store, "--session", "hijacked", "--session", "blind").stdout)
    assert {row["session"] for row in two} == {"hijacked", "blind"}
    assert (
        rows(theodolite("store", "export", store, "--since", "2000-01-01", "--until", "2200-01-01").stdout)
        == everything
    )
    assert rows(theodolite("store", "export", store, "--since", "2200-01-01").stdout) == []
    assert theodolite("store", "export", store, "--output", "records.jsonl").exit_code == 0
    assert rows((home / "records.jsonl").read_text(encoding="utf-8")) == everything
    if os.name == "posix":
        assert (home / "records.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_date_alone_lasts_from_its_first_moment_to_its_last() -> None:
    assert first_moment("2026-01-31") == first_moment("2026-01-31T00:00Z") == first_moment("2026-01-31T01:00+01:00")
    assert first_moment("2026-01-31T23:59:59.999") < last_moment("2026-01-31") < first_moment("2026-02-01")
    assert first_moment("9999-12-31") < last_moment("9999-12-31")
    assert last_moment("2026-01-31T12:00") == first_moment("2026-01-31T12:00")
    for text in ("", "yesterday", "2026-02-30", "9999-12-31T24:00"):
        with pytest.raises(ConfigError, match="is no time: give a date such as"):
            first_moment(text)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--session", "nobody"), "holds no session 'nobody'"),
        (("--since", "yesterday"), "is no time"),
        (("--unseal",), "--unseal needs --key-file"),
        (("--key-file", "key"), "--key-file is for --bundle and for --unseal"),
        (("--calibration", "x"), "give --bundle"),
        (("--bundle", "b.zip", "--output", "o"), "export once with each"),
        (("--bundle", "b.zip", "--until", "2026-01-01"), "a chain with gaps proves nothing"),
        (("--bundle", "b.zip", "--unseal", "--key-file", "key"), "leave --unseal out"),
        (("--bundle", "b.zip", "--calibration", "nowhere"), "nowhere cannot be read"),
        (("--output", "there"), "name a new file"),
        (("--bundle", "there"), "name a new file"),
        (("--output", "no/such/folder"), "cannot be written"),
    ],
)
def test_what_cannot_be_asked_for_is_2_and_leaves_nothing(
    theodolite: Run, store: Path, home: Path, key: Path, *, options: tuple[str, ...], says: str
) -> None:
    (home / "there").write_text("kept", encoding="utf-8")
    before = _files(home)
    done = theodolite("store", "export", store, *options)
    assert (done.exit_code, says in done.stderr) == (2, True), done.stderr
    assert _files(home) == before
    assert (home / "there").read_text(encoding="utf-8") == "kept"
    assert key.exists()


def _files(home: Path) -> list[str]:
    """Return the names of all files but those that SQLite puts beside a store."""
    return sorted(path.name for path in home.iterdir() if not path.name.startswith("evidence.db-"))


def test_a_payload_that_was_changed_makes_no_lines_of_its_own(theodolite: Run, store: Path) -> None:
    with closing(sqlite3.connect(store)) as connection, connection:
        for n, payload in enumerate((b'{"a":\n1}', b'"\xff"', b'{}\n{"session":"forged"}', b"\x1b[2J", b"[" * 5_000)):
            connection.execute("UPDATE records SET payload = ? WHERE session = 'hijacked' AND n = ?", (payload, n))
    done = theodolite("store", "export", store, "--session", "hijacked")
    found = [row["payload"] for row in rows(done.stdout)][:5]
    assert found[:3] == [{"a": 1}, {"base64": "Iv8i"}, {"base64": "e30KeyJzZXNzaW9uIjoiZm9yZ2VkIn0="}]
    assert "\x1b" not in done.stdout


def test_sealed_payloads_are_opened_with_their_key_alone(theodolite: Run, sealed: Path, key: Path, home: Path) -> None:
    (home / "other").write_text("o" * 32, encoding="utf-8")
    shut = theodolite("store", "export", sealed)
    opened = theodolite("store", "export", sealed, "--unseal", "--key-file", key)
    assert (shut.exit_code, opened.exit_code) == (0, 0)
    assert "transfer" not in shut.stdout
    assert "transfer" in opened.stdout
    assert "fusion.call" in shut.stdout  # codes are what records are found by
    assert all("sealed" in str(row["payload"]) for row in rows(shut.stdout))
    wrong = theodolite("store", "export", sealed, "--unseal", "--key-file", "other", "--output", "opened.jsonl")
    assert (wrong.exit_code, "is sealed with the key" in wrong.stderr) == (2, True)
    assert not (home / "opened.jsonl").exists()


def test_a_sealed_store_verifies_with_and_without_its_key(theodolite: Run, sealed: Path, key: Path) -> None:
    assert theodolite("store", "verify", sealed).exit_code == 0
    assert theodolite("store", "verify", sealed, "--key-file", key).exit_code == 0
    content = b"".join(path.read_bytes() for path in sealed.parent.glob("sealed.db*"))
    assert b"transfer" not in content


def test_the_bundle_verifies_without_this_package(theodolite: Run, sealed: Path, home: Path, key: Path) -> None:
    (home / "fitted.json").write_text('{"id":"c-1"}', encoding="utf-8")
    options = ("--bundle", "evidence.zip", "--key-file", key, "--calibration", "fitted.json")
    assert theodolite("store", "export", sealed, *options).exit_code == 0
    with zipfile.ZipFile(home / "evidence.zip") as archive:
        archive.extractall(home / "unpacked")
    manifest = json.loads((home / "unpacked" / "manifest.json").read_bytes())
    assert manifest["about"]["profile"] == "encrypted"
    assert manifest["about"].keys() == {"theodolite", "python", "profile", "redactor"}
    assert "fusion" in manifest["detectors"]
    assert (home / "unpacked" / "calibration.json").read_text(encoding="utf-8") == '{"id":"c-1"}'
    command = [sys.executable, "-I", "-S", "verify.py", "--key-file", str(key)]
    done = subprocess.run(command, cwd=home / "unpacked", capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, "intact" in done.stdout) == (0, True), done.stdout


def test_the_same_store_gives_the_same_bundle(theodolite: Run, store: Path, home: Path) -> None:
    for name in ("one.zip", "two.zip"):
        assert theodolite("store", "export", store, "--bundle", name).exit_code == 0
    assert (home / "one.zip").read_bytes() == (home / "two.zip").read_bytes()


def test_of_a_store_that_is_not_intact_there_is_a_bundle_and_it_is_1(theodolite: Run, store: Path, home: Path) -> None:
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("UPDATE records SET payload = x'7b7d' WHERE session = 'hijacked' AND n < 2")
    done = theodolite("store", "export", store, "--bundle", "evidence.zip")
    assert done.exit_code == 1
    told = "the store is not intact, and the bundle shows it: session hijacked: the payload was changed, and 1 more"
    assert told in done.stderr
    assert zipfile.is_zipfile(home / "evidence.zip")


@pytest.mark.parametrize("options", [(), ("--bundle", "b.zip")])
def test_exporting_leaves_every_byte_of_the_file(theodolite: Run, store: Path, options: tuple[str, ...]) -> None:
    content, at = store.read_bytes(), store.stat().st_mtime_ns
    assert theodolite("store", "export", store, *options).exit_code == 0
    assert (store.read_bytes(), store.stat().st_mtime_ns) == (content, at)
