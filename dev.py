#!/usr/bin/env python3
"""Every task of this project by one name: `python3 dev.py VERB`.

Needs Python 3.11 (3.11.5 or newer), 3.12 or 3.13 with pip, and git. All else is installed into `.venv` beside this
file, with a pip of its own, from the hash-locked files in `requirements/`, some 600 MB for all verbs but `demo` and
`scan`. Nothing outside that folder is touched, but for the weights of the embedded model, 98 MB, which `demo` puts into
the user's cache.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NoReturn

FAST = "not slow and not corpus and not evidence"
ROOT = Path(__file__).resolve().parent
BIN = "Scripts" if os.name == "nt" else "bin"
SCAN_EXITS = {
    0: "nothing was found",
    1: "at least one session has a finding. That is an answer, not an error",
    2: "the command or the configuration was wrong; see the message above",
    3: "no finding, but something could not be judged: not enough evidence, or unreadable",
    70: "a fault of theodolite; please report the lines above with the command that you gave",
}
NO_INSTALL = (
    "the packages could not be installed. Is the network up? A mirror or a proxy is set with PIP_INDEX_URL or "
    "HTTPS_PROXY. To start afresh: rm -r .venv"
)


def fail(message: str) -> NoReturn:
    """Say what is wrong and what to do, and stop."""
    print(f"dev.py: {message}", file=sys.stderr)
    raise SystemExit(2)


def show(command: Sequence[str | Path]) -> None:
    """Print a command as it would be typed at the root of the project."""
    print("$", shlex.join(str(part).removeprefix(f"{ROOT}{os.sep}") for part in command), flush=True)


def run(*command: str | Path, cwd: Path = ROOT) -> int:
    """Show a command, run it, by default at the root of the project, return its exit status."""
    show(command)
    return subprocess.run(command, cwd=cwd, check=False).returncode


def below(path: Path) -> str:
    """Return a path as it is shortest typed in the caller's folder."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


class Environment:
    """The folder that everything is installed into."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = folder / BIN / "python"

    def tool(self, name: str) -> Path:
        """Return where the script of an installed package stands."""
        return self.folder / BIN / name

    def stands(self, requirements: str) -> bool:
        """Whether `requirements/NAME.txt` was installed, nothing has changed since, and the folder has a pip."""
        stamp = self._stamp(requirements)
        same = stamp.is_file() and stamp.read_text(encoding="utf-8") == self._digest(requirements)
        return same and self._has_pip()

    def prepare(self, requirements: str) -> None:
        """Install `requirements/NAME.txt` and the package itself, unless that stands."""
        if self.stands(requirements):
            return
        print(f"Installing into {below(self.folder)} (only when something changed; up to two minutes) ...", flush=True)
        self.make()
        pip = (self.python, "-m", "pip", "install", "-qq", "--disable-pip-version-check", "--no-input")
        locked = ROOT / "requirements" / f"{requirements}.txt"
        for what in (
            ("--require-hashes", "--only-binary=:all:", "--requirement", locked),
            ("--no-deps", "--no-build-isolation", "--editable", ROOT),
        ):
            if subprocess.run((*pip, *what), cwd=ROOT, check=False).returncode:
                fail(NO_INSTALL)
        self._stamp(requirements).write_text(self._digest(requirements), encoding="utf-8")

    def _stamp(self, requirements: str) -> Path:
        return self.folder / f".prepared-{requirements}"

    def _digest(self, requirements: str) -> str:
        seen = hashlib.sha256(f"{sys.version} {ROOT}".encode())
        for file in (f"requirements/{requirements}.txt", "pyproject.toml"):
            seen.update((ROOT / file).read_bytes())
        return seen.hexdigest()

    def make(self) -> None:
        """Make the folder, anew when another Python made it, with a pip that installs into it and nowhere else.

        Without one, `pip install` in a shell that activated the folder would change the Python outside of it.
        """
        self._create()
        if self._has_pip():
            return
        own = (self.python, "-m", "ensurepip", "--default-pip")
        if subprocess.run(own, capture_output=True, check=False).returncode == 0:
            return
        # Debian ships Python without `ensurepip` and pip as a package of its own: its version is the one that is known.
        if importlib.util.find_spec("pip"):
            pip = (sys.executable, "-m", "pip", "--python", self.python, "install", "-qq", "--no-input")
            if subprocess.run((*pip, f"pip=={importlib.metadata.version('pip')}"), check=False).returncode == 0:
                return
        wanted = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
        fail(f"{below(self.folder)} can be given no pip. On Debian or Ubuntu: sudo apt install {wanted}")

    def _has_pip(self) -> bool:
        return shutil.which("pip", path=str(self.folder / BIN)) is not None

    def _create(self) -> None:
        """Make the folder; make it anew when another Python made it."""
        wanted = f"{sys.version_info.major}.{sys.version_info.minor}"
        if (self.folder / "pyvenv.cfg").is_file():
            asked = (self.python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])")
            if self.python.exists() and subprocess.check_output(asked, text=True).strip() == wanted:
                return
            shutil.rmtree(self.folder)
        try:
            import venv  # noqa: PLC0415 - some systems ship Python without it, and then we say what to do
        except ImportError:
            fail(f"this Python has no `venv` module. On Debian or Ubuntu: sudo apt install python{wanted}-venv")
        venv.create(self.folder, with_pip=False, symlinks=os.name != "nt")


def setup(environment: Environment, rest: Sequence[str]) -> int:
    """Install all that development needs; does nothing when nothing has changed."""
    no_more("setup", rest)
    environment.prepare("dev")
    activate = below(environment.folder / BIN / "activate")
    print(f"Ready. To use it in this shell: {activate if os.name == 'nt' else f'source {shlex.quote(activate)}'}")
    return 0


def demo(environment: Environment, rest: Sequence[str]) -> int:
    """Install what the demo needs, its model among them, and run it; takes what `theodolite demo` takes."""
    if not environment.stands("dev"):
        environment.prepare("local")
    theodolite = environment.tool("theodolite")
    return run(theodolite, "models", "pull") or run(theodolite, "demo", *rest, cwd=Path.cwd())


def scan(environment: Environment, rest: Sequence[str]) -> int:
    """Scan recorded sessions, those in examples/ by default; takes what `theodolite scan` takes."""
    if not (environment.stands("dev") or environment.stands("local")):
        environment.prepare("run")
    examples = str(ROOT / "examples" / "sessions")
    status = run(environment.tool("theodolite"), "scan", *(rest or [examples]), cwd=Path.cwd())
    print(f"\nExit status {status}: {SCAN_EXITS.get(status, 'the program was stopped')}.", file=sys.stderr)
    return status


def test(environment: Environment, rest: Sequence[str]) -> int:
    """Run the fast tests on two processes; takes what pytest takes."""
    environment.prepare("dev")
    return run(environment.python, "-m", "pytest", "-q", "-n", "2", "-m", FAST, *rest)


def test_all(environment: Environment, rest: Sequence[str]) -> int:
    """Run every test, the slow ones and those on recorded sessions too; takes what pytest takes."""
    environment.prepare("dev")
    return run(environment.python, "-m", "pytest", "-q", "-n", "2", *(rest or ["-m", "not evidence"]))


def evidence(environment: Environment, rest: Sequence[str]) -> int:
    """Run many simulated sessions, for an hour or two: false alarms and power; takes what pytest takes."""
    environment.prepare("dev")
    return run(environment.python, "-m", "pytest", "-q", "-n", "2", "-m", "evidence", "tests/quality", *rest)


def coverage(environment: Environment, rest: Sequence[str]) -> int:
    """Run the fast tests on one process, and print the lines and branches that none of them took."""
    environment.prepare("dev")
    measured = run(environment.tool("coverage"), "run", "-m", "pytest", "-q", "-m", FAST, *rest)
    return run(environment.tool("coverage"), "report") or measured


def fuzz(environment: Environment, rest: Sequence[str]) -> int:
    """Fuzz the payload guard for twenty minutes, in an environment of its own; `--short` takes two."""
    own = Environment(environment.folder.with_name(f"{environment.folder.name}-fuzz"))
    own.prepare("fuzz")
    return run(own.python, ROOT / "benchmarks" / "fuzz_payload.py", *rest)


def docs(environment: Environment, rest: Sequence[str]) -> int:
    """Follow every link and run every code block of README.md and docs/; takes what pytest takes."""
    environment.prepare("dev")
    return run(environment.python, "-m", "pytest", "-q", "tests/docs", *rest)


def check(environment: Environment, rest: Sequence[str]) -> int:
    """Check format, lint, types (two checkers), layers, news fragments and style figures."""
    no_more("check", rest)
    environment.prepare("dev")
    checks: dict[str, Sequence[str | Path]] = {
        "types (basedpyright)": (environment.tool("basedpyright"), "--pythonpath", environment.python),
        "types (mypy)": (environment.tool("mypy"),),
        "format": (environment.tool("ruff"), "format", "--check", "."),
        "lint": (environment.tool("ruff"), "check", "."),
        "layers": (environment.tool("lint-imports"),),
        "project": (environment.python, "-m", "pytest", "-q", "tests/project"),
    }

    def one(command: Sequence[str | Path]) -> tuple[int, str, float]:
        start = time.perf_counter()
        done = subprocess.run(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        return done.returncode, done.stdout, time.perf_counter() - start

    failed: list[str] = []
    with ThreadPoolExecutor(max_workers=2) as workers:
        for name, (status, output, seconds) in zip(checks, workers.map(one, checks.values()), strict=True):
            print(f"{'ok    ' if status == 0 else 'FAILED'} {name} ({seconds:.0f} s)", flush=True)
            if status:
                failed.append(name)
                print(f"$ {shlex.join(map(str, checks[name]))}\n{output}")
    print(
        f"{len(checks) - len(failed)} of {len(checks)} checks passed"
        + (f"; failed: {', '.join(failed)}" * bool(failed))
    )
    return int(bool(failed))


def bench(environment: Environment, rest: Sequence[str]) -> int:
    """Run each script of benchmarks/ in turn, and say which kept its budgets.

    With `--short` each measures little: an exceeded budget of time is said and fails nothing; a result that misses its
    bar, and a benchmark that broke, do.
    """
    environment.prepare("dev")
    files = sorted((ROOT / "benchmarks").glob("*.py"))
    scripts = [file for file in files if "__main__" in file.read_text(encoding="utf-8")]
    ends: dict[str, list[str]] = {"kept their budgets": [], "exceeded one": [], "failed": [], "skipped": []}
    for script in scripts:
        ends[measured(environment.python, script.relative_to(ROOT), *rest)].append(script.name)
    told = [f"{len(names)} {end} ({', '.join(names) or 'none'})" for end, names in ends.items()]
    print(f"Benchmarks: {'; '.join(told)}")
    return int(bool(ends["failed"] or (ends["exceeded one"] and "--short" not in rest)))


def measured(*command: str | Path) -> str:
    """Run a benchmark and say how it ended. One that had nothing to measure prints a line that begins `skipped:`."""
    show(command)
    skipped = exceeded = missed = False
    unbuffered = {**os.environ, "PYTHONUNBUFFERED": "1"}  # each figure shows as soon as it is there
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=unbuffered) as running:
        for line in running.stdout or ():
            print(line, end="", flush=True)
            skipped = skipped or line.startswith("skipped:")
            exceeded = exceeded or "EXCEEDED" in line
            missed = missed or "MISSED" in line
    if running.returncode:
        return "exceeded one" if exceeded and not missed else "failed"
    return "skipped" if skipped else "kept their budgets"


def lock(environment: Environment, rest: Sequence[str]) -> int:
    """Compile requirements/ anew from pyproject.toml, with hashes; `--upgrade` takes newer versions."""
    environment.prepare("dev")
    compile_ = (environment.tool("uv"), "pip", "compile", "--quiet", "--universal", "--python-version", "3.11.5")
    header = ("--custom-compile-command", "python3 dev.py lock")
    form = ("--generate-hashes", "--no-emit-index-url", "--annotation-style", "line", *header)
    dev, runtime = "requirements/dev.txt", "requirements/run.txt"
    status = run(*compile_, *form, *rest, "--all-extras", "--group", "dev", "pyproject.toml", "--output-file", dev)
    same = ("--constraint", dev)  # what both install, both install in the same version
    base = (*compile_, *form, *same, "--group", "build", "pyproject.toml")
    status = status or run(*base, "--output-file", runtime)
    status = status or run(*base, "--extra", "local", "--output-file", "requirements/local.txt")
    return status or run(*base, "--group", "fuzz", "--output-file", "requirements/fuzz.txt")


def everything(environment: Environment, rest: Sequence[str]) -> int:
    """Run check, test-all (docs among them) and the short benchmarks; stops at the first that fails."""
    no_more("all", rest)
    return check(environment, ()) or test_all(environment, ()) or bench(environment, ("--short",))


def no_more(verb: str, rest: Sequence[str]) -> None:
    """Refuse arguments that a verb does not take."""
    if rest:
        fail(f"{verb} takes no arguments, not {shlex.join(rest)}")


VERBS: dict[str, Callable[[Environment, Sequence[str]], int]] = {
    "setup": setup,
    "demo": demo,
    "scan": scan,
    "test": test,
    "test-all": test_all,
    "check": check,
    "coverage": coverage,
    "evidence": evidence,
    "bench": bench,
    "fuzz": fuzz,
    "docs": docs,
    "lock": lock,
    "all": everything,
}


def main() -> int:
    """Run the verb that was asked for."""
    if not (3, 11, 5) <= sys.version_info[:3] < (3, 14):
        fail(f"this is Python {sys.version.split()[0]}; use 3.11.5 or newer, 3.12 or 3.13: python3.12 dev.py setup")
    lines = [f"  {name:<9} {(verb.__doc__ or '').strip()}" for name, verb in VERBS.items()]
    parser = argparse.ArgumentParser(
        prog="dev.py",
        usage="python3 dev.py [--venv DIR] VERB [ARGUMENT ...]",
        description=(__doc__ or "") + "\nverbs:\n" + "\n".join(lines),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    venv_help = "where to install (default: .venv beside dev.py)"
    parser.add_argument("--venv", type=Path, default=ROOT / ".venv", metavar="DIR", help=venv_help)
    parser.add_argument("verb", metavar="VERB", choices=VERBS, help="one of the verbs above")
    parser.add_argument("rest", metavar="ARGUMENT", nargs=argparse.REMAINDER, help="passed on, where the verb says so")
    given = parser.parse_args()
    return VERBS[given.verb](Environment(Path.cwd() / given.venv), given.rest)


if __name__ == "__main__":
    sys.exit(main())
