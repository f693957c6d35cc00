"""The file of pins: written by several at once, through links, and killed in the middle."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Run = Callable[..., Result]
PINS = "theodolite-pins.json"
posix = pytest.mark.skipif(os.name == "nt", reason="folders cannot be locked there, and links need a right")


def saved(home: Path, *names: str) -> None:
    for name in names:
        tool = {"name": name, "inputSchema": {"type": "object"}}
        (home / f"{name}.json").write_text(json.dumps([tool]), encoding="utf-8")


def held(file: Path) -> set[str]:
    return set(json.loads(file.read_text(encoding="utf-8"))["sources"])


def begun(home: Path, *words: str, before: str = "") -> subprocess.Popen[bytes]:
    script = f"{before}\nfrom theodolite.cli.main import run\nrun()"
    return subprocess.Popen([sys.executable, "-c", script, "pin", *words], cwd=home, stdout=subprocess.DEVNULL)


@posix
def test_what_several_pin_at_once_is_all_pinned(home: Path) -> None:
    names = [f"t{number}" for number in range(6)]
    saved(home, *names)
    running = [begun(home, "add", f"{name}.json") for name in names]
    assert [one.wait(120) for one in running] == [0] * len(names)
    assert held(home / PINS) == {f"{name}.json" for name in names}
    assert [one.name for one in home.iterdir() if one.name.endswith(".new")] == []


@posix
@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_who_is_killed_in_the_middle_leaves_the_old_file(theodolite: Run, home: Path, step: str) -> None:
    saved(home, "a", "b")
    assert theodolite("pin", "add", "a.json").exit_code == 0
    before = (home / PINS).read_bytes()
    die = "os.kill(os.getpid(), signal.SIGKILL)"
    killing = f"import os, signal\nos.{step} = lambda *_, **__: {die}"
    assert begun(home, "add", "b.json", before=killing).wait(120) == -9
    assert (home / PINS).read_bytes() == before
    assert theodolite("pin", "verify").exit_code == 0
    assert theodolite("pin", "add", "b.json").exit_code == 0
    assert held(home / PINS) == {"a.json", "b.json"}
    assert [one.name for one in home.iterdir() if one.name.endswith(".new")] == []


@posix
def test_no_link_beside_the_file_is_followed(theodolite: Run, home: Path) -> None:
    saved(home, "a")
    (home / "precious").write_text("kept", encoding="utf-8")
    (home / f".{PINS}.new").symlink_to(home / "precious")
    assert theodolite("pin", "add", "a.json").exit_code == 0
    assert (home / "precious").read_text(encoding="utf-8") == "kept"


@posix
@pytest.mark.parametrize("there", [True, False])
def test_a_link_to_the_file_stays_one(theodolite: Run, home: Path, there: object) -> None:
    saved(home, "a", "b")
    (home / "far").mkdir()
    real = home / "far" / "pins.json"
    if there:
        assert theodolite("pin", "add", "b.json", "--to", real).exit_code == 0
        real.chmod(0o640)
    (home / PINS).symlink_to(real)
    assert theodolite("pin", "add", "a.json").exit_code == 0
    assert (home / PINS).is_symlink()
    assert "a.json" in held(real)
    if there:
        assert real.stat().st_mode & 0o777 == 0o640
    assert theodolite("pin", "verify", "a.json").exit_code == 0


@posix
def test_what_is_no_file_is_refused(theodolite: Run, home: Path) -> None:
    saved(home, "a")
    os.mkfifo(home / "pipe")
    (home / "loop").symlink_to("loop")
    for name in ("pipe", "loop", "."):
        done = theodolite("pin", "add", "a.json", "--to", name)
        assert (done.exit_code, "name another file with --to" in done.stderr) == (2, True), name
