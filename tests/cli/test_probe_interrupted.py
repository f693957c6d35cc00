"""Probes that are cut short: by Ctrl-C and SIGTERM, while a real provider hangs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec
import pytest

from theodolite.core.store import verify
from theodolite.reports.document import Document, SessionReport
from theodolite.stores.sqlite import SQLiteStore
from theodolite.testing.provider import Asked, Breaks, FakeProvider, Phase, Says, Scripted

pytestmark = pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs the signals of POSIX")

COUNT = 4
# Calls of a probe of each, of one draw.
ASKED = 5 * COUNT
ANSWER = {
    "decision": "decline",
    "reasoning": "",
    "disclosed_data": False,
    "policy_cited": True,
    "escalation_suggested": False,
    "tool_call_attempted": False,
}


def hangs(*sessions: int) -> Callable[[Asked], Scripted]:
    """Answer everybody but the copies of these sessions."""

    def answer(asked: Asked) -> Scripted:
        text = json.dumps(asked.body["messages"])
        waits = any(f"book seat {number} for me" in text for number in sessions)
        return Breaks(Phase.HEADERS, "hang") if waits else Says(text=json.dumps(ANSWER))

    return answer


@pytest.fixture
def sessions(home: Path) -> Path:
    """Return a folder with a file for each session."""
    folder = home / "sessions"
    folder.mkdir()
    for number in range(COUNT):
        said = [
            {"role": "user", "content": f"Please book seat {number} for me."},
            {"role": "assistant", "content": "It is booked."},
        ]
        (folder / f"s{number}.json").write_text(json.dumps({"messages": said}), encoding="utf-8")
    return folder


def start(provider: FakeProvider, home: Path, *arguments: str | Path, more: str = "") -> subprocess.Popen[str]:
    (home / "theodolite.toml").write_text(
        f'[models.shop]\nkind = "openai"\nmodel = "m-1"\nbase_url = "{provider.base_url}"\napi_key_env = "SHOP_KEY"\n'
        f'price = {{ input = 2.0, output = 8.0 }}\n[panel]\nsubject = "shop"\ntimeout = 300.0\n'
        f"[detectors.behavior]\nsamples = 1\n{more}",
        encoding="utf-8",
    )
    return subprocess.Popen(
        [sys.executable, "-m", "theodolite.cli", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env={**os.environ, "SHOP_KEY": "sk-none"},
        start_new_session=True,
    )


def stopped(
    running: subprocess.Popen[str], provider: FakeProvider, asked: int, stop: signal.Signals
) -> tuple[str, str]:
    """Stop a command that asked so often; return what it wrote. It ends soon, whoever still hangs."""
    deadline = time.monotonic() + 60
    while len(provider.asked) < asked and time.monotonic() < deadline:
        assert running.poll() is None, running.communicate()
        time.sleep(0.02)
    time.sleep(1.0)  # those who do not hang have answered by then
    os.killpg(running.pid, stop)
    said = running.communicate(timeout=20)
    assert running.returncode == 128 + stop, said
    assert "Traceback" not in said[1]
    return said


@pytest.mark.parametrize(("verb", "stop"), [("probe", signal.SIGINT), ("scan", signal.SIGTERM)])
def test_what_was_answered_is_reported_and_kept_also_behind_one_that_hangs(
    home: Path, sessions: Path, verb: str, stop: signal.Signals
) -> None:
    with FakeProvider(hangs(1)) as provider:
        once = ("--probes", "1") if verb == "probe" else ()
        running = start(provider, home, verb, sessions, *once, "--store", "kept.db", "-f", "json", "-o", "report.json")
        _, said = stopped(running, provider, ASKED, stop)
    made = msgspec.json.decode((home / "report.json").read_bytes(), type=Document)
    assert [session.session_id for session in made.sessions] == ["s0", "s2", "s3"]
    assert all(signal.models for session in made.sessions for signal in session.signals if "behavior" in signal.code)
    assert not made.summary.complete
    done, onward = said.splitlines()
    assert done.startswith(f"stopped: what was {'judged' if verb == 'scan' else 'answered'} and kept until here is 3 ")
    assert f"Asked of models: {ASKED} calls, " in done
    assert onward == (
        f"to go on: 1 of 4 files is done; {verb} again from {sessions / 's1.json'} on, with another --store, since "
        "this one holds what was kept"
    )
    with SQLiteStore(home / "kept.db", create=False) as kept:
        assert verify(kept).intact
        assert {head.session for head in kept.heads()} >= {"s0", "s2", "s3"}


def _text(report: str) -> None:
    assert report.startswith("The probing was stopped: this is what was answered until then.")
    assert report.count("Probe of session") == 2
    assert f"{ASKED} calls" in report


def _jsonl(report: str) -> None:
    lines = [msgspec.json.decode(line, type=SessionReport) for line in report.splitlines()]
    assert [session.session_id for session in lines] == ["s1", "s2"]


def _junit(report: str) -> None:
    assert [case.get("name") for case in ET.fromstring(report).iter("testcase")] == ["s1", "s2"]  # noqa: S314 - ours


def _html(report: str) -> None:
    assert report.startswith("<!DOCTYPE html>")
    assert report.rstrip().endswith("</html>")


def _sarif(report: str) -> None:
    assert json.loads(report)["version"] == "2.1.0"


@pytest.mark.parametrize(
    ("form", "check"),
    [
        ("text", _text),
        *[
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (("jsonl", _jsonl), ("junit", _junit), ("html", _html), ("sarif", _sarif))
        ],
    ],
)
def test_a_stopped_probe_writes_a_whole_report_of_any_form(
    home: Path, sessions: Path, form: str, check: Callable[[str], None]
) -> None:
    with FakeProvider(hangs(0, 3)) as provider:
        running = start(provider, home, "probe", sessions, "--probes", "1", "--format", form)
        report, said = stopped(running, provider, ASKED, signal.SIGINT)
    check(report)
    assert "stopped: what was answered until here is 2 sessions" in said
    assert f"probe again from {sessions / 's0.json'} on" in said


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a named pipe to hold a probe in its middle")
def test_a_session_that_was_read_in_part_is_no_part_of_the_report(home: Path, sessions: Path) -> None:
    pipe = sessions / "s9.jsonl"
    os.mkfifo(pipe)
    with FakeProvider(hangs()) as provider:
        running = start(provider, home, "probe", *sorted(sessions.iterdir()), "--probes", "1", "--format", "json")
        with os.fdopen(os.open(pipe, os.O_RDWR), "wb") as stream:  # waits for no reader, as a writer alone would
            stream.write(b'[{"role": "user", "content": "Please wait."},' + b" " * 70_000)
            stream.flush()
            report, said = stopped(running, provider, ASKED, signal.SIGINT)
    made = msgspec.json.decode(report, type=Document)
    assert [session.session_id for session in made.sessions] == ["s0", "s1", "s2", "s3"]
    assert f"4 of 5 files are done; probe again from {pipe} on" in said


def test_who_cannot_wait_presses_twice(home: Path, sessions: Path) -> None:
    with FakeProvider(hangs(0, 1, 2, 3)) as provider:
        running = start(provider, home, "probe", sessions, "--store", "kept.db")
        while len(provider.asked) < COUNT and running.poll() is None:
            time.sleep(0.02)
        for _ in range(2):
            os.killpg(running.pid, signal.SIGINT)
        running.communicate(timeout=20)
    assert running.returncode == 130
    with SQLiteStore(home / "kept.db", create=False) as kept:
        assert verify(kept).intact


@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_at_any_moment_leaves_a_whole_store_and_a_whole_report(
    home: Path, sessions: Path, stop: signal.Signals
) -> None:
    with FakeProvider(hangs(2), delay=0.2) as provider:
        for place in range(5):
            store, report = home / f"kept-{place}.db", home / f"report-{place}.json"
            running = start(provider, home, "probe", sessions, "--store", store, "-f", "json", "-o", report)
            while not report.exists() and running.poll() is None:
                time.sleep(0.01)
            time.sleep(0.15 * place)
            os.killpg(running.pid, stop)
            _, said = running.communicate(timeout=20)
            assert running.returncode == 128 + stop, said
            assert "Traceback" not in said
            assert "stopped: " in said
            assert not msgspec.json.decode(report.read_bytes(), type=Document).summary.complete
            with SQLiteStore(store, create=False) as kept:
                assert verify(kept).intact


def test_an_error_in_the_middle_takes_nothing_of_what_was_answered(home: Path, sessions: Path) -> None:
    odd = home / "odd.json"
    odd.write_text('{"name": "something else"}', encoding="utf-8")
    with FakeProvider(hangs(), delay=0.0) as provider:
        running = start(provider, home, "probe", sessions, odd, "--format", "json")
        report, said = running.communicate(timeout=60)
    assert running.returncode == 2
    assert "odd.json is in none of the known formats" in said
    if report:  # nobody may have answered by then
        assert not msgspec.json.decode(report, type=Document).summary.complete


def test_probes_of_a_session_that_is_cut_short_are_counted_and_not_reported(home: Path, sessions: Path) -> None:
    seen: list[str] = []

    def answer(asked: Asked) -> Scripted:
        seen.append(json.dumps(asked.body["messages"]))
        return Breaks(Phase.HEADERS, "hang") if len(seen) > 2 * 5 else Says(text=json.dumps(ANSWER))

    with FakeProvider(answer) as provider:
        running = start(provider, home, "probe", sessions / "s0.json", "--probes", "4")
        report, said = stopped(running, provider, 11, signal.SIGINT)
    assert report.startswith("The probing was stopped: this is what was answered until then.")
    assert "cut short: 2 probes of s0 had answers, which are not reported: it is begun anew" in said
    assert "to go on" not in said  # there is nowhere else to go on
