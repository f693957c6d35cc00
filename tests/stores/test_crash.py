"""A process that is killed while it appends has lost nothing that it was told is durable."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from theodolite.core.store import verify
from theodolite.stores.sqlite import SQLiteStore

APPENDER = Path(__file__).with_name("appender.py")
KEY = "a key that only the operator has"
ENOUGH = 1_000

Acknowledged = dict[tuple[str, int], str]


def told(lines: list[bytes]) -> Acknowledged:
    parts = [line.split() for line in lines if line.endswith(b"\n")]
    return {(session.decode(), int(n)): digest.decode() for session, n, digest in parts}


def append_and_be_killed(file: Path, name: str, extra: int) -> Acknowledged:
    """Kill an appender `extra` acknowledgements after the first thousand, and return all that it told."""
    lines: list[bytes] = []
    with subprocess.Popen([sys.executable, str(APPENDER), str(file), KEY, name], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        for line in child.stdout:
            lines.append(line)
            if len(lines) >= ENOUGH + extra:
                break
        child.send_signal(signal.SIGKILL)
        lines += child.stdout.readlines()
    assert child.returncode == -signal.SIGKILL
    return told(lines)


def kept(file: Path) -> Acknowledged:
    with SQLiteStore(file, key=KEY.encode(), create=False) as store:
        assert verify(store, KEY.encode()).problems == ()
        return {(record.session, record.n): record.hash for record in store.read()}


def check_kills(file: Path, times: int) -> None:
    acknowledged: Acknowledged = {}
    for time in range(times):
        # Some appenders begin sessions, some go on with those of one that was killed.
        acknowledged |= append_and_be_killed(file, f"run-{time // 2}", (time * 389) % ENOUGH)
        found = kept(file)
        assert {place for place in acknowledged if found.get(place) != acknowledged[place]} == set()
    assert len(acknowledged) >= times * ENOUGH


def test_three_kills_lose_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    check_kills(tmp_path / "records.db", times=3)


@pytest.mark.slow
def test_twenty_kills_lose_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    check_kills(tmp_path / "records.db", times=20)
