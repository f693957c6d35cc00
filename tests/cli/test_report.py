"""`--format html|junit|sarif|png`, and `theodolite report`, which gives a kept report another form."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from typer.testing import Result

Run = Callable[..., Result]
STARTS = {"html": b"<!DOCTYPE html>", "junit": b"<?xml ", "sarif": b'{"$schema":', "png": b"\x89PNG"}


@pytest.mark.parametrize("form", STARTS)
def test_a_scan_is_written_in_each_form_and_its_exit_status_is_the_same(
    theodolite: Run, recordings: Path, home: Path, form: str
) -> None:
    if form == "png":
        pytest.importorskip("resvg_py", reason="the extra png is not installed")
    done = theodolite("scan", recordings, "--format", form, "--output", "report")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "3 sessions: 1 with a finding, 1 without enough evidence, 1 clean." in done.stderr
    assert (home / "report").read_bytes().startswith(STARTS[form])


@pytest.mark.parametrize("form", ["html", "junit", "sarif"])
@pytest.mark.parametrize("kept", ["json", "jsonl"])
def test_a_kept_report_in_another_form_says_what_the_scan_says_in_that_form(
    theodolite: Run, recordings: Path, kept: str, form: str
) -> None:
    theodolite("scan", recordings, "--format", kept, "--output", "kept")
    again = theodolite("report", "kept", "--format", form)
    assert (again.exit_code, again.stderr) == (0, "")
    assert _sayings(form, again.stdout) == _sayings(form, theodolite("scan", recordings, "--format", form).stdout)


def _sayings(form: str, text: str) -> object:
    """Return what a report says: of a page all but the thresholds, which a document does not have."""
    if form == "junit":
        return [(case.attrib, [child.text for child in case]) for case in ET.fromstring(text).iter("testcase")]  # noqa: S314 - written here
    if form == "sarif":
        return json.loads(text)["runs"][0]["results"]
    return text.partition('<main id="report"')[2].partition("<figure")[0]


def test_several_reports_become_one(theodolite: Run, recordings: Path) -> None:
    for name in ("clean", "hijacked"):
        theodolite("scan", recordings / f"{name}.json", "--format", "json", "--output", name)
    (suite,) = ET.fromstring(theodolite("report", "clean", "hijacked", "-f", "junit").stdout)  # noqa: S314 - written here
    assert [case.get("name") for case in suite.iter("testcase")] == ["clean", "hijacked"]
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")


def test_what_belongs_to_no_session_is_not_lost(theodolite: Run, recordings: Path) -> None:
    (recordings / "odd.json").write_text("{", encoding="utf-8")
    theodolite("scan", recordings, "--format", "json", "--output", "kept")
    page = theodolite("report", "kept").stdout
    assert "1 part of the recordings could not be read." in page
    assert "odd.json" in page


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is not what this version"),
        (b"{}", "is not what this version"),
        (b'{"schema":2,"sessions":[],"summary":{}}', "is not what this version"),
        (b'{"session_id": 7}\n', "session 1: "),
        (b"\xff\xfe\x00", "is not what this version"),
        (b"[" * 100_000, "is not what this version"),
    ],
)
def test_what_is_no_report_is_refused_with_its_name(theodolite: Run, home: Path, content: bytes, said: str) -> None:
    (home / "x.json").write_bytes(content)
    (home / "old.html").write_bytes(b"old")
    done = theodolite("report", "x.json", "--output", "old.html")
    assert done.exit_code == 2
    assert (home / "old.html").read_bytes() == b"old"
    assert done.stderr.startswith("error: x.json")
    assert said in done.stderr
    assert done.stderr.endswith("scan again\n")


def test_a_file_that_is_not_there_is_named(theodolite: Run) -> None:
    done = theodolite("report", "nothing.json")
    assert (done.exit_code, done.stderr) == (2, "error: nothing.json cannot be read (No such file or directory)\n")


def test_a_report_does_not_take_the_place_of_what_it_is_made_from(
    theodolite: Run, recordings: Path, home: Path
) -> None:
    theodolite("scan", recordings, "--format", "json", "--output", "kept.json")
    before = (home / "kept.json").read_bytes()
    done = theodolite("report", "kept.json", "--output", "kept.json")
    assert done.exit_code == 2
    assert "--output kept.json is what this command reads or keeps: name another file" in done.stderr
    assert (home / "kept.json").read_bytes() == before


def test_without_the_extra_a_picture_is_refused_before_anything_is_judged_or_overwritten(
    theodolite: Run, recordings: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    (home / "old.png").write_bytes(b"old")
    done = theodolite("scan", recordings, "--format", "png", "--output", "old.png")
    assert done.exit_code == 2
    assert "pip install 'theodolite[png]'" in done.stderr
    assert (home / "old.png").read_bytes() == b"old"
