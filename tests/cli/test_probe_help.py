"""What the help of `probe` and `scan` says is true, and its first examples work as they stand."""

from __future__ import annotations

import shlex
from collections.abc import Callable

import pytest
from typer.testing import Result

from theodolite.cli.probe import EXAMPLES
from theodolite.cli.probing import PROBES

Run = Callable[..., Result]


def test_the_first_examples_work(theodolite: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = [shlex.split(line)[1:] for line in EXAMPLES.splitlines() if line.startswith("theodolite ")]
    assert commands[0] == ["demo", "--save", "demo"]
    assert theodolite(*commands[0]).exit_code == 0
    done = theodolite(*commands[1])
    assert done.exit_code == 0, done.output
    assert "1 session to probe with local: 30 calls" in done.stdout
    monkeypatch.setenv("THEODOLITE_CACHE", "nowhere")
    needs = theodolite(*commands[2])
    assert (needs.exit_code, "run `theodolite models pull`" in needs.stderr) == (2, True)


def test_it_names_who_is_asked_and_all_defaults(theodolite: Run) -> None:
    told = " ".join(theodolite("probe", "--help").stdout.replace("│", " ").split())
    assert "both arms" not in told
    for who in ("a copy of the session", "a shadow", "a benign conversation", "an instance without context"):
        assert who in told
    for default in (f"{PROBES}, one of each type", "short", "today", "text", "the subject of [panel]"):
        assert f"[default: ({default})]" in told or f"[default: {default}]" in told


def test_a_scan_says_how_many_probes_it_puts(theodolite: Run) -> None:
    told = " ".join(theodolite("scan", "--help").stdout.replace("│", " ").split())
    assert "each session is put one probe when it is over" in told
    assert "Put one probe to each session when it is over" in told
