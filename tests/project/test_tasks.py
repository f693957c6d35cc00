"""`dev.py` explains itself, and what continuous integration runs is what README.md tells a newcomer to run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
VERBS = ("setup", "demo", "scan", "test", "test-all", "check", "coverage", "bench", "fuzz", "docs", "lock", "all")
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


# The tasks of a copy in another folder, with the packages that these tests run on.
PREPARED = """
import sys
from pathlib import Path
import dev

class Prepared(dev.Environment):
    def stands(self, requirements):
        return True

status = dev.{verb}(Prepared(Path(sys.prefix)), sys.argv[1:])
print(f"status {{status}}")
"""


def _copied(folder: Path, verb: str, *arguments: str, cwd: Path) -> str:
    shutil.copy(ROOT / "dev.py", folder)
    return subprocess.run(
        [sys.executable, "-c", PREPARED.format(verb=verb), *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
        timeout=60,
    ).stdout


def test_benchmarks_that_had_nothing_to_measure_do_not_count_as_kept(tmp_path: Path) -> None:
    scripts = {
        "absent": "print('skipped: no data')",
        "fast": "print('1 us: it skipped: nothing')",
        "slow": "print('budget 1 us: EXCEEDED'); raise SystemExit(1)",
    }
    (tmp_path / "benchmarks").mkdir()
    for name, text in scripts.items():
        (tmp_path / "benchmarks" / f"{name}.py").write_text(f"if __name__ == '__main__':\n    {text}\n")
    said = _copied(tmp_path, "bench", cwd=tmp_path).splitlines()
    assert said[-2] == (
        "Benchmarks: 1 kept their budgets (fast.py); 1 exceeded one (slow.py); 0 failed (none); 1 skipped (absent.py)"
    )
    assert "skipped: no data" in said


@pytest.mark.parametrize(
    ("text", "short", "status"),
    [
        ("print('budget 1 us: EXCEEDED'); raise SystemExit(1)", False, 1),
        ("print('budget 1 us: EXCEEDED'); raise SystemExit(1)", True, 0),
        ("print('bar 90 %: MISSED'); raise SystemExit(1)", True, 1),
        ("raise RuntimeError", True, 1),
        ("print('1 us')", False, 0),
    ],
)
def test_a_short_benchmark_fails_for_its_results_and_not_for_its_times(
    tmp_path: Path, text: str, *, short: bool, status: int
) -> None:
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "one.py").write_text(f"if __name__ == '__main__':\n    {text}\n")
    said = _copied(tmp_path, "bench", *(["--short"] if short else []), cwd=tmp_path)
    assert said.splitlines()[-1] == f"status {status}"


def test_recordings_that_are_named_to_scan_lie_in_the_folder_of_the_caller(tmp_path: Path) -> None:
    project, here = tmp_path / "project", tmp_path / "here"
    project.mkdir()
    here.mkdir()
    shutil.copy(ROOT / "examples" / "sessions" / "refund-clean.jsonl", here / "mine.jsonl")
    said = _copied(project, "scan", "mine.jsonl", cwd=here)
    assert "Exit status 0" in said
    assert "1 session," in said


def test_setup_names_the_folder_that_it_prepared(tmp_path: Path) -> None:
    said = _copied(tmp_path, "setup", cwd=Path(sys.prefix).parent)
    script = "activate" if os.name == "nt" else "bin/activate"
    assert said.removesuffix("status 0\n").rstrip().endswith(f"{Path(sys.prefix).name}/{script}")


# An environment that an earlier version of dev.py made, without pip, is given one before it counts as prepared.
EARLIER = """
import subprocess, sys, venv
from pathlib import Path
import dev

class Earlier(dev.Environment):
    def _stamp(self, requirements):
        return self.folder / "stamp"
    def _digest(self, requirements):
        return "same"

folder = Path(sys.argv[1])
venv.create(folder, with_pip=False, symlinks=True)
(folder / "stamp").write_text("same")
environment = Earlier(folder)
print(environment.stands("run"))
environment.make()
print(environment.stands("run"))
print(subprocess.check_output([environment.python, "-m", "pip", "--version"], text=True))
"""


def test_what_is_installed_with_pip_in_the_environment_stays_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "environment"
    before, after, told, *_ = subprocess.run(
        [sys.executable, "-c", EARLIER, folder],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout.splitlines()
    assert (before, after) == ("False", "True")
    assert f" from {folder}" in told
