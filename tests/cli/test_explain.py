"""`theodolite explain`, `--version` and `--help`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version

import pytest
from typer.testing import Result

from theodolite.cli.explaining import explained
from theodolite.reports.pages import codes, page

Run = Callable[..., Result]


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
