"""`dev.py` explains itself, and what continuous integration runs is what README.md tells a newcomer to run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
VERBS = ("setup", "scan", "test", "test-all", "check", "coverage", "bench", "docs", "lock", "all")
TEST_COMMAND = "python3 dev.py test"


def _dev(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "dev.py", *arguments], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )


def test_help_names_every_verb_with_what_it_does() -> None:
    shown = _dev("--help")
    assert shown.returncode == 0
    for verb in VERBS:
        assert any(line.startswith(f"  {verb} ") and line.endswith(".") for line in shown.stdout.splitlines()), verb


def test_an_unknown_verb_is_refused_with_the_known_ones() -> None:
    shown = _dev("tset")
    assert shown.returncode == 2
    assert "'tset'" in shown.stderr
    assert "'test'" in shown.stderr


def test_arguments_that_a_verb_does_not_take_are_refused() -> None:
    shown = _dev("check", "src")
    assert (shown.returncode, shown.stderr) == (2, "dev.py: check takes no arguments, not src\n")


def test_the_readme_and_continuous_integration_run_the_same_test_command() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert TEST_COMMAND in readme
    assert TEST_COMMAND in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
