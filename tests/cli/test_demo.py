"""The demo shows what it says, needs nothing from outside, and the commands that it ends with work."""

from __future__ import annotations

import json
import os
import re
import shlex
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from typer.testing import Result

from theodolite.cli.demonstrating import NEXT
from theodolite.models.local.weights import SMOLLM2

Run = Callable[..., Result]
Shell = Callable[..., CompletedProcess[str]]

needs_weights = pytest.mark.skipif(
    find_spec("xllamacpp") is None or not SMOLLM2.path().is_file(),
    reason="the embedded model is not here: pip install 'theodolite[local]' && theodolite models pull",
)


def test_the_sessions_alone_give_the_finding(theodolite: Run) -> None:
    shown = theodolite("demo", "--no-probes")
    assert shown.exit_code == 0
    assert "Session demo-clean  11 calls: nothing found" in shown.stdout
    assert "Finding in session demo-hijacked" in shown.stdout
    assert "send_mail (event 24), prepare_payment (event 27)" in shown.stdout
    assert "Probe" not in shown.stdout
    # What it tells in words is what the report lists.
    assert "Two calls whose arguments come from that mail" in " ".join(shown.stdout.split())


def test_the_commands_explain_each_code_that_was_found_and_nothing_that_only_notes_speaks(theodolite: Run) -> None:
    shown = theodolite("demo", "--no-probes").stdout
    found = re.findall(r"^  \d+\. (\S+):", shown, re.MULTILINE)
    assert found
    assert {f"theodolite explain {code}" for code in found} <= set(NEXT)
    rows = re.findall(r"^  \d+ .*", shown, re.MULTILINE)
    assert not [row for row in rows if "noted" in row and "ALARM" not in row]


def test_without_the_weights_it_says_how_to_get_them_and_shows_the_rest(shell: Shell, tmp_path: Path) -> None:
    shown = shell("demo", THEODOLITE_CACHE=str(tmp_path))
    assert shown.returncode == 0
    assert "theodolite models pull" in shown.stdout
    assert "Finding in session demo-hijacked" in shown.stdout
    assert "Probe of session" not in shown.stdout


# What the README promises of two idle cores, in seconds.
PROMISE = 90.0


@needs_weights
@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "getloadavg"), reason="needs the load of the machine, as POSIX tells it")
def test_with_the_weights_both_sessions_are_probed_within_the_time_that_is_promised(shell: Shell) -> None:
    import resource

    def worked() -> float:
        """Return the seconds of processors that processes which this one started have used."""
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    before, begun = worked(), time.monotonic()
    shown = shell("demo", THEODOLITE_PLUGINS="0", timeout=10 * PROMISE)
    took, busy = time.monotonic() - begun, os.getloadavg()[0] > (os.cpu_count() or 1)
    assert shown.returncode == 0, shown.stderr
    # One thread does all the work and waits for nobody, so that on idle cores it takes no longer than it works. On a
    # machine that others keep busy the wall clock says how busy they are, and nothing of the demo.
    assert worked() - before < PROMISE
    assert took < PROMISE or busy
    for session in ("demo-clean", "demo-hijacked"):
        assert shown.stdout.count(f"Probe of session {session}") == 1
    # The finding is there before anybody is asked, and rests on no answer.
    assert "behavior." not in shown.stdout[: shown.stdout.index("Probes")]
    told = " ".join(shown.stdout.split())
    assert told.count("it says nothing about that agent") >= 2
    assert "too small for a verdict" in told
    # It is no longer than the finding, and of no answer more is shown than a line.
    finding, _, rest = shown.stdout.partition("What the finding rests on")
    assert rest.partition("Try next")[0].count("\n") < finding.count("\n")
    assert len(re.findall(r"^  (?:clean shadow|this session)  .*$", rest, re.MULTILINE)) == 4
    assert all(len(line) <= 110 for line in rest.splitlines())


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_scan_of_the_saved_sessions_says_the_same(theodolite: Run, form: str) -> None:
    assert theodolite("demo", "--save", "demo").exit_code == 0
    shown = theodolite("scan", "demo", "--format", form)
    assert shown.exit_code == 1
    if form == "json":
        outcomes = {session["session_id"]: session["outcome"] for session in json.loads(shown.stdout)["sessions"]}
        assert outcomes == {"demo-clean": "clean", "demo-hijacked": "finding"}


def test_files_that_are_there_are_not_replaced(theodolite: Run) -> None:
    Path("demo").mkdir()
    Path("demo/clean.json").write_text("mine", encoding="utf-8")
    shown = theodolite("demo", "--save", "demo")
    assert shown.exit_code == 2
    assert "name another folder" in shown.stderr
    assert Path("demo/clean.json").read_text(encoding="utf-8") == "mine"


def test_the_commands_that_it_ends_with_work(theodolite: Run) -> None:
    shown = theodolite("demo", "--no-probes").stdout
    statuses = {"scan": 1}  # the demo's own finding
    for command in NEXT:
        assert f"  {command}\n" in shown
        name, *arguments = shlex.split(command)
        assert name == "theodolite"
        done = theodolite(*arguments)
        assert done.exit_code == statuses.get(arguments[0], 0), (command, done.output)
    assert Path("demo.html").stat().st_size > 0
