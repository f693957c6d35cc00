"""What the end of a command tells the shell."""

from __future__ import annotations

import io
import itertools

import pytest
import typer

from theodolite.cli import progress as progress_module
from theodolite.cli.exits import Boundary, answering
from theodolite.cli.progress import Progress
from theodolite.cli.scanning import status
from theodolite.core.errors import ConfigError, MissingExtraError, StoreError
from theodolite.core.policy import Action, Outcome
from theodolite.core.reader import Unreadable
from theodolite.reports.totals import Totals


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


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


PARTS = [Unreadable(file="f", line=n, reason="no") for n in range(300)]


def test_progress_shows_on_a_terminal_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with Progress(3) as progress:
        assert list(progress.counting(PARTS)) == PARTS
    assert terminal.getvalue() == ""
    monkeypatch.setattr(progress_module, "_PATIENCE", 0.0)
    with Progress(3) as progress:
        assert list(progress.counting(PARTS)) == PARTS
    assert "300 events" in terminal.getvalue()


def test_progress_keeps_out_of_a_report_that_streams_to_the_same_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setattr(progress_module, "_PATIENCE", 0.0)
    with Progress(3, streams=True) as progress:
        assert list(progress.counting(PARTS)) == PARTS
    assert terminal.getvalue() == ""


def test_progress_is_silent_in_a_pipe(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(progress_module, "_PATIENCE", 0.0)
    with Progress(3) as progress:
        assert list(progress.counting(PARTS)) == PARTS
    assert capsys.readouterr().err == ""
