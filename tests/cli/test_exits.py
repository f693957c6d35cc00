"""What the end of a command tells the shell."""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest
import typer
from typer.testing import Result

from theodolite.cli.exits import Boundary, answering
from theodolite.cli.scanning import status
from theodolite.core.errors import ConfigError, MissingExtraError, StoreError
from theodolite.core.policy import Action, Outcome
from theodolite.reports.totals import Totals

Done = subprocess.CompletedProcess[str]


def _totals(*outcomes: Outcome, unread: int = 0, action: Action = Action.LOG_ONLY) -> Totals:
    totals = Totals()
    totals.outcomes.update(outcomes)
    totals.actions[action] += len(outcomes)
    totals.unread = unread
    return totals


@pytest.mark.parametrize("outcomes", [c for n in range(5) for c in itertools.combinations(Outcome, n)])
@pytest.mark.parametrize("unread", [0, 1])
def test_a_finding_goes_before_what_could_not_be_judged(outcomes: tuple[Outcome, ...], unread: int) -> None:
    judged = outcomes == (Outcome.CLEAN,) and not unread
    expected = 1 if Outcome.FINDING in outcomes else 0 if judged else 3
    assert status(_totals(*outcomes, unread=unread)) == expected


@pytest.mark.parametrize(
    ("fail_on", "reached", "expected"),
    [
        (Action.ELEVATED_REVIEW, Action.LOG_ONLY, 0),
        (Action.ELEVATED_REVIEW, Action.ELEVATED_REVIEW, 1),
        (Action.ELEVATED_REVIEW, Action.RESTRICTED_MODE, 1),
        (Action.RESTRICTED_MODE, Action.LOG_ONLY, 0),
        (Action.RESTRICTED_MODE, Action.ELEVATED_REVIEW, 0),
        (Action.RESTRICTED_MODE, Action.RESTRICTED_MODE, 1),
    ],
)
def test_fail_on_takes_the_place_of_any_finding(fail_on: Action, reached: Action, expected: int) -> None:
    assert status(_totals(Outcome.FINDING, action=reached), fail_on) == expected
    assert status(_totals(Outcome.FINDING, Outcome.FAILED, action=reached), fail_on) == (expected or 3)


@pytest.mark.parametrize(
    "error", [ConfigError("no\x1b[2J"), StoreError("full"), MissingExtraError(extra="x", needed_for="things")]
)
def test_an_error_of_ours_is_one_harmless_line(error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as stop, answering():
        raise error
    assert stop.value.exit_code == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert said.endswith("\n")
    assert said[:-1].isprintable()


def test_a_fault_of_ours_shows_where_and_nothing_of_the_session(capsys: pytest.CaptureFixture[str]) -> None:
    def fails(session: str) -> None:
        raise KeyError(session)

    with pytest.raises(SystemExit) as stop, Boundary():
        fails("hunter2")
    said = capsys.readouterr().err
    assert stop.value.code == 70
    assert "in fails" in said
    assert "builtins.KeyError" in said
    assert "hunter2" not in said.replace('fails("hunter2")', "")  # the line of this file is shown, as it stands


@pytest.mark.parametrize("stop", [SystemExit(3), KeyboardInterrupt()])
def test_what_is_no_fault_passes_the_boundary(stop: BaseException) -> None:
    with pytest.raises(type(stop)) as passed, Boundary():
        raise stop
    assert passed.value is stop


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_command_in_its_own_way(stop: signal.Signals) -> None:
    with pytest.raises(typer.Exit) as ended, answering():
        signal.raise_signal(stop)
    assert ended.value.exit_code == 128 + stop
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_who_set_a_handler_for_sigterm_keeps_it() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
    try:
        with answering():
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert heard == [signal.SIGTERM]


# -- output that cannot be written ------------------------------------------------------------------------------------

FULL = Path("/dev/full")
full = pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full, a device that takes nothing")


@full
@pytest.mark.parametrize(
    "arguments", [("scan", "{clean}"), ("scan", "{clean}", "-f", "jsonl"), ("explain",), ("--help",), ("--version",)]
)
def test_a_full_device_is_a_line_and_no_fault_of_ours(recordings: Path, arguments: tuple[str, ...]) -> None:
    command = [argument.format(clean=recordings / "clean.json") for argument in arguments]
    with FULL.open("wb") as device:
        done = _run(*command, stdout=device, stderr=subprocess.PIPE)
    assert done.returncode == 2, done.stderr
    assert "error: the output cannot be written (No space left on device)" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1


@full
def test_a_report_on_a_full_device_too(recordings: Path) -> None:
    done = _run("scan", str(recordings / "clean.json"), "--output", str(FULL), stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "the output cannot be written" in done.stderr


@full
def test_what_nobody_can_hear_changes_no_exit_status(recordings: Path) -> None:
    with FULL.open("wb") as device:
        quiet = _run("scan", str(recordings / "hijacked.json"), "-f", "jsonl", stdout=subprocess.PIPE, stderr=device)
        lost = _run("scan", str(recordings / "hijacked.json"), stdout=device, stderr=device)
    assert (quiet.returncode, lost.returncode) == (1, 2)
    assert quiet.stdout.startswith('{"session_id":"hijacked"')


def _run(*arguments: str, stdout: IO[bytes] | int = subprocess.DEVNULL, stderr: IO[bytes] | int) -> Done:
    command = [sys.executable, "-m", "theodolite.cli", *arguments]
    return subprocess.run(command, stdout=stdout, stderr=stderr, text=True, timeout=60, check=False)


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
@pytest.mark.parametrize(("name", "exits"), [("clean", 0), ("hijacked", 1)])
def test_closed_streams_change_no_exit_status(closed: str, name: str, exits: int, recordings: Path) -> None:
    command = f"{sys.executable} -m theodolite.cli scan {recordings / name}.json {closed}"
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == exits, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "known"),
    [
        (("scan", "x", "--format", "jsn"), "'jsn' is none of text, json, jsonl, html, junit, sarif, png"),
        (("doctor", "--format", "jsn"), "'jsn' is none of text, json"),
        (("models", "list", "--format", "jsn"), "'jsn' is none of text, json"),
        (("report", "x", "--format", "jsn"), "'jsn' is none of html, junit, sarif, png"),
        (("scan", "x", "--fail-on", "jsn"), "'jsn' is none of elevated_review, restricted_mode"),
        (("scan", "x", "--calls", "--format", "json"), "leave it out; json and jsonl always tell of every call"),
    ],
)
def test_a_word_that_an_option_does_not_take_is_told_with_those_that_it_takes(
    theodolite: Callable[..., Result], arguments: tuple[str, ...], known: str
) -> None:
    done = theodolite(*arguments)
    assert done.exit_code == 2
    assert known in " ".join(done.stderr.replace("│", " ").split())
