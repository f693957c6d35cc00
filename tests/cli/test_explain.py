"""`theodolite explain`, `--version` and `--help`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest
from typer.testing import Result

from theodolite.cli.explaining import explained
from theodolite.reports.pages import codes, page

Run = Callable[..., Result]
Shell = Callable[..., subprocess.CompletedProcess[str]]
PLUG_IN = """
from msgspec import Struct
from theodolite.core.calibration import Band
from theodolite.core.event import ToolCallProposed

class Nothing(Struct):
    pass

class It:
    name, version, needs = "another", "1", frozenset()
    reads = frozenset({ToolCallProposed})
    bands = {"another.code": Band(alert=0.5, source="a guess")}
    pages = PAGES

    def begin(self):
        return Nothing()

    def update(self, state, event, window):
        return ()
"""


@pytest.mark.parametrize("code", codes())
def test_in_a_pipe_a_page_is_what_was_written(theodolite: Run, code: str) -> None:
    known = page(code)
    assert known is not None
    assert theodolite("explain", code).stdout == known.text


def test_the_failure_of_any_detector_has_the_page_of_failures(theodolite: Run) -> None:
    assert theodolite("explain", "payload.failure").stdout.startswith("# monitor.failure")


def test_without_a_code_all_are_listed(theodolite: Run) -> None:
    lines = theodolite("explain").stdout.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(codes())


def test_an_unknown_code_names_the_nearest_and_all(theodolite: Run) -> None:
    done = theodolite("explain", "margin.untrused")
    assert done.exit_code == 2
    assert "did you mean 'margin.untrusted'?" in done.stderr
    assert all(code in done.stderr for code in codes())


def test_the_name_of_a_detector_is_answered_with_its_codes_and_no_list_twice(theodolite: Run) -> None:
    said = theodolite("explain", "margin").stderr
    assert "did you mean 'margin.untrusted'?" in said
    assert said.count("monitor.failure") == 1
    assert theodolite("explain", "no.such").stderr.count("monitor.failure") == 1


@pytest.mark.parametrize(
    ("pages", "said"),
    [
        ("{}", "whose package brings no page for it.\nalarms at 0.5, UNCALIBRATED: a guess"),
        ("{'another.code': '# another.code'}", "# another.code"),
    ],
)
def test_the_code_of_a_plug_in_is_explained(shell: Shell, tmp_path: Path, pages: str, said: str) -> None:
    info = tmp_path / "another-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: another\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text("[theodolite.detectors]\nanother = another:It\n", encoding="utf-8")
    (tmp_path / "another.py").write_text(PLUG_IN.replace("PAGES", pages), encoding="utf-8")
    done = shell("explain", "another.code", PYTHONPATH=str(tmp_path), THEODOLITE_PLUGINS="1")
    assert (done.returncode, done.stderr) == (0, "")
    assert all(part in done.stdout for part in said.split("\n"))


def test_on_a_terminal_a_page_is_drawn() -> None:
    shown = explained("margin.untrusted", terminal=True)
    assert "## Why it matters" not in shown
    assert "Why it matters" in shown


@pytest.mark.parametrize("command", [(), ("scan",), ("explain",), ("doctor",), ("store",), ("store", "verify")])
def test_every_verb_has_help(theodolite: Run, command: tuple[str, ...]) -> None:
    done = theodolite(*command, "--help")
    assert done.exit_code == 0
    assert "Usage:" in done.stdout


def test_the_help_of_scan_tells_every_option_and_exit_status(theodolite: Run) -> None:
    shown = " ".join(re.sub(r"[^\w\s./<>-]", " ", theodolite("scan", "--help").stdout).split())
    options = ("format", "output", "jobs", "store", "calibration", "config", "reader", "no-probes", "fail-on")
    assert all(f"--{option}" in shown for option in options)
    assert "Exit status" in shown
    assert "theodolite scan recordings/ --format jsonl" in shown


def test_the_version_is_that_of_the_package(theodolite: Run) -> None:
    assert theodolite("--version").stdout == f"theodolite {version('theodolite')}\n"


def test_help_and_version_load_nothing_that_they_do_not_need() -> None:
    code = "import sys; from theodolite.cli.main import app; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ})
    loaded = set(done.stdout.split())
    assert "theodolite.cli.scan" in loaded
    assert not loaded & {"sqlalchemy", "msgspec", "rich", "phonenumbers", "theodolite.runtime.monitor"}


@pytest.mark.parametrize("kind", ["passage", "target", "command", "credential", "carried_link", "content"])
def test_a_kind_of_evidence_opens_the_page_of_its_code(theodolite: Run, kind: str) -> None:
    done = theodolite("explain", f"hijack.{kind}")
    assert done.stdout.startswith("# hijack.call\n")
    assert f"| `hijack.{kind}` | " in done.stdout


def test_what_is_no_kind_of_evidence_is_still_unknown(theodolite: Run) -> None:
    done = theodolite("explain", "hijack.targets")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "did you mean" in done.stderr
