"""`theodolite scan --calls`: each call with its goal, where its arguments came from, its score and why."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

Run = Callable[..., Result]


def test_every_call_is_told_and_the_exit_status_is_the_same(theodolite: Run, recordings: Path) -> None:
    done = theodolite("scan", recordings, "--calls")
    assert done.exit_code == 1
    for session in ("clean", "hijacked", "blind"):
        assert f"Calls of session {session}\n" in done.stdout
    assert '  goal:     "Send the invoice 17 to Berta." (event ' in done.stdout
    assert re.search(r"\n {12}/to +target +from the user\n", done.stdout)
    assert done.stdout.count("  why:      the goal explains it better") >= 1


def test_without_it_only_calls_of_findings_are_told(theodolite: Run, recordings: Path) -> None:
    text = theodolite("scan", recordings).stdout
    assert "Calls of session" not in text
    assert "call:     transfer (event " in text
    assert "/account  target   from event 3 (read_file): untrusted text" in text
    assert "call:     send_invoice" not in text


def test_it_goes_into_a_file_too(theodolite: Run, recordings: Path, home: Path) -> None:
    shown = theodolite("scan", recordings, "--calls").stdout
    theodolite("scan", recordings, "--calls", "--output", "report.txt")
    assert (home / "report.txt").read_text(encoding="utf-8") == shown


@pytest.mark.parametrize("form", ["json", "jsonl", "html", "junit", "sarif"])
def test_another_form_than_text_is_refused_before_anything_is_read(theodolite: Run, home: Path, form: str) -> None:
    done = theodolite("scan", home / "not-there.json", "--calls", "--format", form)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "--calls is for text: leave it out; json and jsonl always tell of every call" in done.stderr


@pytest.mark.parametrize("form", ["text", "json"])
def test_several_processes_tell_the_same_of_each_call(theodolite: Run, recordings: Path, form: str) -> None:
    arguments = ("scan", recordings, "--format", form, *["--calls"] * (form == "text"))
    one, two = theodolite(*arguments), theodolite(*arguments, "--jobs", "2")
    assert (two.exit_code, two.stdout) == (one.exit_code, one.stdout)


def test_a_kept_report_tells_of_each_call_what_the_scan_did(theodolite: Run, recordings: Path) -> None:
    theodolite("scan", recordings, "--format", "json", "--output", "kept.json")
    page = theodolite("report", "kept.json").stdout
    assert "Summarize the report in notes.txt." in page
    assert "<code>/account</code>" in page
    assert re.search(r"untrusted text of event \d+ explains it better than the goal does, and it acts \(\+", page)


def test_a_report_that_was_kept_before_there_were_reasons_is_read_too(
    theodolite: Run, recordings: Path, home: Path
) -> None:
    theodolite("scan", recordings, "--format", "json", "--output", "kept.json")
    kept = json.loads((home / "kept.json").read_text(encoding="utf-8"))
    for session in kept["sessions"]:
        del session["goals"]
        for call in session["calls"]:
            del call["arguments"], call["reasons"]
            call["score"] = None
    (home / "old.json").write_text(json.dumps(kept), encoding="utf-8")
    done = theodolite("report", "old.json")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "Every call" not in done.stdout
