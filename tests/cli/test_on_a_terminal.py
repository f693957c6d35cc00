"""On a real terminal: color, the terminal's width, and the wish for no color."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.cells import cell_len

pty = pytest.importorskip("pty", reason="needs a pseudo-terminal")
pytestmark = pytest.mark.usefixtures("home")
CODES = re.compile(r"\x1b\[([0-9;]*)m")


def _shown(*arguments: str, columns: int = 80, **environment: str) -> str:
    """Return what a command writes to a terminal of that width."""
    own, theirs = os.openpty()
    known = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "FORCE_COLOR"}}
    done = subprocess.Popen(
        [sys.executable, "-m", "theodolite.cli", *arguments],
        stdout=theirs,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**known, "TERM": "xterm-256color", "COLUMNS": str(columns), **environment},
    )
    os.close(theirs)
    parts: list[bytes] = []
    try:
        while part := os.read(own, 65_536):
            parts.append(part)
    except OSError:  # Linux says so when the other end is closed
        pass
    os.close(own)
    done.wait(timeout=60)
    return b"".join(parts).decode().replace("\r\n", "\n")


def test_a_report_has_color_and_the_width_of_the_terminal(recordings: Path) -> None:
    shown = _shown("scan", str(recordings), columns=40)
    assert "\x1b[1;31mFinding in session \x1b[0m" in shown
    bare = CODES.sub("", shown)
    assert all(char == "\n" or char.isprintable() for char in bare)
    assert max(map(cell_len, bare.splitlines())) <= 40


def test_no_color_is_honored(recordings: Path) -> None:
    shown = _shown("scan", str(recordings), NO_COLOR="1")
    assert "Finding in session" in shown
    used = {part for code in CODES.findall(shown) for part in code.split(";")}
    assert used <= {"0", "1", "2"}  # bold and dim are no colors


def test_json_stays_json(recordings: Path) -> None:
    assert "\x1b" not in _shown("scan", str(recordings), "--format", "json")


def test_a_page_is_drawn() -> None:
    assert "## What to do" not in CODES.sub("", _shown("explain", "margin.untrusted"))
