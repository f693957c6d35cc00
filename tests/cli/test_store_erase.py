"""`theodolite store erase` and `theodolite store expire`."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import Result

from theodolite.cli.erasing import Erasing, expire_payloads

Run = Callable[..., Result]

PLANTED = "archive-666"  # stands in the goal, the call and the evidence of the hijacked session


@pytest.fixture
def store(theodolite: Run, recordings: Path, home: Path) -> Path:
    assert theodolite("scan", recordings, "--store", "evidence.db").exit_code == 1
    return home / "evidence.db"


def content(store: Path) -> bytes:
    return b"".join(path.read_bytes() for path in store.parent.glob(f"{store.name}*"))


def erasures(theodolite: Run, store: Path) -> dict[str, object]:
    lines = map(json.loads, theodolite("store", "export", store).stdout.splitlines())
    return {line["session"]: line["payload"].get("reason") for line in lines if line["kind"] == "erasure"}


def test_no_byte_of_a_payload_is_left_and_the_chain_verifies(theodolite: Run, store: Path) -> None:
    assert PLANTED.encode() in content(store)
    done = theodolite("store", "erase", store, "--session", "hijacked", "--reason", "asked for", "--yes")
    assert done.exit_code == 0
    assert "payloads of 1 session; hashes and the reason stay, and the chain verifies" in done.stdout
    assert PLANTED.encode() not in content(store)
    assert erasures(theodolite, store) == {"hijacked": "asked for"}
    seen = theodolite("store", "verify", store)
    assert (seen.exit_code, "erased" in seen.stdout) == (0, True)


def test_several_sessions_are_erased_together_and_again_without_harm(theodolite: Run, store: Path) -> None:
    options = ("--session", "hijacked", "--session", "clean", "--session", "clean", "--reason", "r", "--yes")
    assert "of 2 sessions" in theodolite("store", "erase", store, *options).stdout
    assert theodolite("store", "erase", store, *options).stdout == f"{store}: nothing to erase\n"
    assert erasures(theodolite, store) == {"hijacked": "r", "clean": "r"}
    assert theodolite("store", "verify", store).exit_code == 0


def test_sessions_that_ended_before_a_time_are_erased(theodolite: Run, store: Path) -> None:
    early = theodolite("store", "erase", store, "--before", "2020-01-01", "--reason", "r", "--yes")
    assert early.stdout == f"{store}: nothing to erase\n"
    late = theodolite("store", "erase", store, "--before", "2999-01-01", "--reason", "r", "--yes")
    assert "of 3 sessions" in late.stdout
    assert set(erasures(theodolite, store)) == {"hijacked", "clean", "blind"}


def test_a_store_with_a_key_is_erased_with_it_alone(theodolite: Run, recordings: Path, home: Path) -> None:
    (home / "key").write_text("k" * 32, encoding="utf-8")
    (home / "theodolite.toml").write_text('[store]\npath = "keyed.db"\nkey_file = "key"\n', encoding="utf-8")
    theodolite("scan", recordings)
    (home / "theodolite.toml").rename(home / "away.toml")
    asked = ("store", "erase", "keyed.db", "--session", "hijacked", "--reason", "r", "--yes")
    without, given = theodolite(*asked), theodolite(*asked, "--key-file", "key")
    assert (without.exit_code, given.exit_code) == (2, 0)
    assert "keyed.db is sealed with a key, and what erases must seal: give --key-file" in without.stderr
    assert theodolite("store", "verify", "keyed.db", "--key-file", "key").exit_code == 0


def test_the_settings_that_name_a_store_give_its_key_too(theodolite: Run, recordings: Path, home: Path) -> None:
    (home / "key").write_text("k" * 32, encoding="utf-8")
    (home / "theodolite.toml").write_text('[store]\npath = "keyed.db"\nkey_file = "key"\n', encoding="utf-8")
    theodolite("scan", recordings)
    verified = theodolite("store", "verify", "keyed.db").stdout
    assert verified == theodolite("store", "verify", "keyed.db", "--key-file", "key").stdout
    erased = theodolite("store", "erase", "keyed.db", "--session", "hijacked", "--reason", "r", "--yes")
    assert erased.exit_code == 0, erased.stderr
    Path("other").mkdir()
    (home / "keyed.db").rename("other/keyed.db")
    elsewhere = theodolite("store", "erase", "other/keyed.db", "--session", "clean", "--reason", "r", "--yes")
    assert elsewhere.exit_code == 2


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--reason", "r"), "say what to erase"),
        (("--reason", "r", "--session", "hijacked", "--before", "2999-01-01"), "say what to erase"),
        (("--reason", " ", "--session", "hijacked"), "tells an auditor why"),
        (("--reason", "r", "--session", "nobody"), "there is no session 'nobody'"),
        (("--reason", "r", "--before", "soon"), "is no time"),
        (("--session", "hijacked"), "--reason"),
    ],
)
def test_what_cannot_be_asked_for_is_2_and_erases_nothing(
    theodolite: Run, store: Path, options: tuple[str, ...], says: str
) -> None:
    done = theodolite("store", "erase", store, *options, "--yes")
    assert (done.exit_code, says in done.stderr) == (2, True), done.stderr
    assert PLANTED.encode() in content(store)


def test_where_there_is_nobody_to_ask_nothing_is_erased(theodolite: Run, store: Path) -> None:
    for verb in (("erase", store, "--session", "hijacked", "--reason", "r"), ("expire", store, "--older-than", "0h")):
        done = theodolite("store", *verb)
        assert (done.exit_code, "nothing was erased: there is nobody to ask; give --yes" in done.stderr) == (2, True)
    assert PLANTED.encode() in content(store)


@pytest.mark.skipif(os.name != "posix", reason="the system has no such terminals")
@pytest.mark.parametrize(("answer", "status"), [(b"y\n", 0), (b"n\n", 2), (b"\n", 2)])
def test_on_a_terminal_it_asks_and_says_what_will_be_gone(store: Path, answer: bytes, status: int) -> None:
    host, terminal = os.openpty()
    os.write(host, answer)
    command = [sys.executable, "-m", "theodolite.cli", "store", "erase", str(store), "--session", "hijacked"]
    done = subprocess.run(
        [*command, "--reason", "r"], stdin=terminal, capture_output=True, text=True, timeout=60, check=False
    )
    os.close(host)
    os.close(terminal)
    assert done.returncode == status
    assert "of 1 session (hijacked) in" in done.stderr
    assert "will be gone for good. Go on? [y/N]" in done.stderr
    assert (PLANTED.encode() in content(store)) is (status != 0)


def test_what_is_older_than_its_time_expires(theodolite: Run, store: Path) -> None:
    asked = Erasing(file=store, key_file=None, agreed=True)
    now = time.time()  # noqa: TID251 - the records of coverage carry it
    assert expire_payloads(asked, "30d", None, clock=lambda: now + 29 * 86_400) == 0
    assert erasures(theodolite, store) == {}
    assert expire_payloads(asked, "30d", None, clock=lambda: now + 31 * 86_400) == 0
    assert erasures(theodolite, store) == dict.fromkeys(("blind", "clean", "hijacked"), "older than 30d")
    assert theodolite("store", "verify", store).exit_code == 0
    assert expire_payloads(asked, "30d", None, clock=lambda: now + 99 * 86_400) == 0
    assert len(erasures(theodolite, store)) == 3


def test_how_old_is_too_old_comes_from_the_configuration_too(theodolite: Run, store: Path, home: Path) -> None:
    nothing = theodolite("store", "expire", store, "--yes")
    assert (nothing.exit_code, "store.keep" in nothing.stderr) == (2, True)
    (home / "theodolite.toml").write_text('[store]\nkeep = "0h"\n', encoding="utf-8")
    assert theodolite("store", "expire", store, "--yes").exit_code == 0
    assert set(erasures(theodolite, store).values()) == {"older than 0h"}


@pytest.mark.parametrize("age", ["", "30", "d", "-1d", "1y", "1.5d", "9999999d"])
def test_what_is_no_age_is_2(theodolite: Run, store: Path, home: Path, age: str) -> None:
    given = theodolite("store", "expire", store, "--older-than", age, "--yes")
    assert (given.exit_code, "erased" in given.stdout) == (2, False)
    (home / "theodolite.toml").write_text(f'[store]\nkeep = "{age}"\n', encoding="utf-8")
    configured = theodolite("store", "expire", store, "--yes")
    assert configured.exit_code == 2
    assert "store.keep" in configured.stderr or "store" in configured.stderr


def test_a_session_that_was_tampered_with_keeps_no_other_from_being_erased(theodolite: Run, store: Path) -> None:
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute(
            "DELETE FROM records WHERE session = 'blind' AND n = (SELECT max(n) FROM records WHERE session = 'blind')"
        )
    done = theodolite("store", "erase", store, "--before", "2999-01-01", "--reason", "r", "--yes")
    assert (done.exit_code, "session 'blind' does not end where its head says" in done.stderr) == (2, True)
    assert "payloads of other sessions are erased" in done.stderr
    assert PLANTED.encode() not in content(store)
