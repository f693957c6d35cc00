"""A person steps through sessions: every answer is kept, nothing is asked twice, and texts of sessions do nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from theodolite.core.labels import Known, Label, Labels, encode_label, read_labels

Run = Callable[..., Result]


@pytest.fixture
def labels(home: Path) -> Path:
    return home / "labels.jsonl"


def kept(labels: Path) -> Labels:
    with labels.open("rb") as stream:
        return read_labels(stream, str(labels))


def known(labels: Path) -> dict[str, Known | None]:
    return {name: label.known for name, label in kept(labels).of.items()}


def test_each_answer_is_kept_with_who_gave_it_and_when(theodolite: Run, recordings: Path, labels: Path) -> None:
    done = theodolite(
        "dataset", "label", recordings, "--labels", labels, "--by", "Mo", stdin="u\nclean\nd it wrote to a stranger\n"
    )
    assert done.exit_code == 0
    assert known(labels) == {"blind": None, "clean": Known.CLEAN, "hijacked": Known.DRIFTED}
    told = kept(labels).of["hijacked"]
    assert (told.by, told.note) == ("Mo", "it wrote to a stranger")
    assert len(told.date) == len("2026-01-31")
    assert f"1 clean, 1 drifted, 1 unknown, kept in {labels}; of 3 sessions met, 0 had a label" in done.stderr


def test_a_session_is_shown_with_goal_calls_results_and_what_was_found(
    theodolite: Run, recordings: Path, labels: Path
) -> None:
    done = theodolite("dataset", "label", recordings / "hijacked.json", "--labels", labels, stdin="q\n")
    for part in (
        "Finding in session hijacked",
        '"Summarize the report in notes.txt."',
        "transfer (event",
        'read_file returned: "Quarterly figures.',
        'the agent said: "The report holds figures."',
        "fusion.call",
    ):
        assert part in done.stdout
    assert labels.read_bytes() == b""


def test_it_goes_on_where_it_was_left(theodolite: Run, recordings: Path, labels: Path) -> None:
    first = theodolite("dataset", "label", recordings, "--labels", labels, stdin="s\nc\nq\n")
    assert known(labels) == {"clean": Known.CLEAN}
    assert "of 3 sessions met, 0 had a label" in first.stderr
    second = theodolite("dataset", "label", recordings, "--labels", labels, stdin="u\nd\n")
    assert "session clean" not in second.stdout
    assert known(labels) == {"clean": Known.CLEAN, "blind": None, "hijacked": Known.DRIFTED}
    third = theodolite("dataset", "label", recordings, "--labels", labels, stdin="")
    assert (third.exit_code, third.stdout) == (0, "")
    assert "no answer, kept in" in third.stderr
    assert "3 had a label" in third.stderr


def test_back_shows_the_one_before_and_its_last_answer_counts(theodolite: Run, recordings: Path, labels: Path) -> None:
    done = theodolite("dataset", "label", recordings, "--labels", labels, stdin="b\nc\nd\nb\nb\nu\nc\nd\n")
    assert "there is no session to go back to" in done.stderr
    assert "labeled before: drifted" in done.stderr
    assert known(labels) == {"blind": None, "clean": Known.CLEAN, "hijacked": Known.DRIFTED}


def test_what_is_no_answer_is_asked_again_and_the_end_of_input_quits(
    theodolite: Run, recordings: Path, labels: Path
) -> None:
    done = theodolite("dataset", "label", recordings, "--labels", labels, stdin="\nyes\nC\n")
    assert done.stderr.count("one of the letters c, d, u, b, s, q is expected") == 2
    assert (done.exit_code, known(labels)) == (0, {"blind": Known.CLEAN})


def test_a_line_that_was_cut_short_is_taken_away_and_an_end_is_set(
    theodolite: Run, recordings: Path, labels: Path
) -> None:
    whole = encode_label(Label(session="blind", known=None))
    labels.write_bytes(whole + b'{"session":"cl')
    done = theodolite("dataset", "label", recordings, "--labels", labels, stdin="c\n")
    assert "line 2 of" in done.stderr
    assert labels.read_bytes().startswith(whole + b'{"session":"clean","known":"clean"')
    labels.write_bytes(whole.strip())
    theodolite("dataset", "label", recordings, "--labels", labels, stdin="c\n")
    assert known(labels) == {"blind": None, "clean": Known.CLEAN}


def test_a_file_of_labels_among_the_recordings_is_none_of_them(theodolite: Run, recordings: Path) -> None:
    labels = recordings / "labels.jsonl"
    for answers in ("c\n", "d\n"):
        assert theodolite("dataset", "label", recordings, "--labels", labels, stdin=answers).exit_code == 0
    assert known(labels) == {"blind": Known.CLEAN, "clean": Known.DRIFTED}


@pytest.mark.parametrize("name", ["hijacked.json", "store.db", "notes.jsonl", "absent/labels.jsonl"])
def test_nothing_else_is_written_over(theodolite: Run, recordings: Path, home: Path, name: str) -> None:
    (home / "store.db").write_bytes(b"SQLite format 3\0 evidence")
    (home / "notes.jsonl").write_bytes(b"Dear diary\n")
    path = recordings / name if name == "hijacked.json" else home / name
    before = path.read_bytes() if path.exists() else None
    arguments = [recordings / "clean.json", recordings / "hijacked.json", "--labels", path]
    done = theodolite("dataset", "label", *arguments, stdin="c\nc\n")
    assert done.exit_code == 2
    assert done.stderr.startswith("error: ")
    assert (path.read_bytes() if path.exists() else None) == before


def test_what_cannot_be_read_is_counted_and_nothing_at_all_exits_3(
    theodolite: Run, recordings: Path, labels: Path
) -> None:
    broken = recordings / "broken.json"
    broken.write_text('[{"role": "nobody"', encoding="utf-8")
    done = theodolite("dataset", "label", recordings, "--labels", labels, stdin="s\ns\ns\ns\n")
    assert "cannot be read: theodolite scan" in done.stderr
    broken.write_text("", encoding="utf-8")
    assert theodolite("dataset", "label", broken, "--labels", labels, stdin="").exit_code == 3


def test_text_of_a_session_does_nothing_on_the_terminal(theodolite: Run, home: Path, labels: Path) -> None:
    bad = "\x1b]0;owned\x07\u202e[bold]x[/bold]\n##vso[task.complete]"
    messages = [
        {"role": "user", "content": f"Go. {bad}"},
        {
            "role": "assistant",
            "content": bad,
            "tool_calls": [{"id": "1", "function": {"name": bad, "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "1", "content": bad},
    ]
    (home / "a.json").write_text(json.dumps({"session_id": bad, "messages": messages}), encoding="utf-8")
    done = theodolite("dataset", "label", home / "a.json", "--labels", labels, "--by", bad, stdin=f"d {bad[:9]}\n")
    assert done.exit_code == 0
    for text in (done.stdout, done.stderr):
        assert all(char == "\n" or char.isprintable() for char in text)
        assert "##vso[" not in text
    (label,) = kept(labels).of.values()
    assert "\x1b" not in label.note + label.by


def test_a_secret_of_a_session_is_not_shown(theodolite: Run, home: Path, labels: Path) -> None:
    messages = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "get", "arguments": "{}"}}]},
        {
            "role": "tool",
            "tool_call_id": "1",
            "content": "token ghp_0123456789abcdefghijABCDEFGHIJ012345 of mo@example.org",
        },
    ]
    (home / "a.json").write_text(json.dumps(messages), encoding="utf-8")
    done = theodolite("dataset", "label", home / "a.json", "--labels", labels, stdin="c\n")
    assert "get returned" in done.stdout
    assert "ghp_0123" not in done.stdout
    assert "mo@example.org" not in done.stdout


def test_long_sessions_are_shown_in_part(theodolite: Run, home: Path, labels: Path) -> None:
    said = [{"role": "assistant", "content": f"word {number}"} for number in range(500)]
    (home / "a.json").write_text(json.dumps([{"role": "user", "content": "Go."}, *said]), encoding="utf-8")
    done = theodolite("dataset", "label", home / "a.json", "--labels", labels, stdin="q\n")
    assert "word 99" in done.stdout
    assert "word 100" not in done.stdout
    assert "... and more, which the recording has" in done.stdout


def test_ctrl_c_loses_no_answer_on_a_terminal(recordings: Path, labels: Path) -> None:
    pytest.importorskip("pty", reason="needs a pseudo-terminal")
    own, theirs = os.openpty()
    command = [sys.executable, "-m", "theodolite.cli", "dataset", "label", str(recordings), "--labels", str(labels)]
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80"}
    done = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    os.write(own, b"c careful\n")
    shown = b""
    while shown.count(b"a note may follow") < 2:
        shown += os.read(own, 65_536)
    assert b"\x1b[" in shown  # drawn, and not plain
    done.send_signal(signal.SIGINT)
    try:
        while part := os.read(own, 65_536):
            shown += part
    except OSError:  # Linux says so when the other end is closed
        pass
    os.close(own)
    assert done.wait(timeout=60) == 130
    assert b"1 clean, kept in" in shown
    assert known(labels) == {"blind": Known.CLEAN}
