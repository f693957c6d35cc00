"""Weights that are not there are told of before anything is read, and before anybody is asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

Run = Callable[..., Result]
NONE = "the weights of the embedded model are not on this machine (looked for "


@pytest.fixture(autouse=True)
def _no_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THEODOLITE_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("local", f"error: models.local: {NONE}"),
        ("local:nowhere.gguf", "error: models.local:nowhere.gguf: there is no file nowhere.gguf: name a GGUF file"),
    ],
)
@pytest.mark.parametrize("more", [(), ("--localize",)])
def test_a_probe_ends_at_once(theodolite: Run, recordings: Path, model: str, said: str, more: tuple[str, ...]) -> None:
    done = theodolite("probe", recordings, "--model", model, "--output", "report.txt", *more)
    assert done.exit_code == 2
    assert done.stderr.startswith(said)
    assert not Path("report.txt").exists()


def test_so_does_a_gate(theodolite: Run) -> None:
    done = theodolite("probe", "--gate", "--model", "local")
    assert done.exit_code == 2
    assert done.stderr.startswith(f"error: models.local: {NONE}")
    assert done.stderr.endswith("run `theodolite models pull`\n")


def test_an_estimate_needs_none(theodolite: Run, recordings: Path) -> None:
    assert theodolite("probe", recordings, "--model", "local", "--estimate").exit_code == 0


def test_a_scan_says_so_first_and_tells_what_it_can(theodolite: Run, recordings: Path) -> None:
    done = theodolite("scan", recordings, "--model", "local", "--format", "json")
    assert done.stderr.splitlines()[0].startswith(f"warning: models.local: {NONE}")
    assert "until then no session is probed" in done.stderr
    assert len(json.loads(done.stdout)["sessions"]) == 3
    assert done.exit_code == 1
