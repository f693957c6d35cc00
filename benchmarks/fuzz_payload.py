"""Fuzz the loader and the checker of the payload guard: `python benchmarks/fuzz_payload.py [--seconds N] [--short]`.

First a fault that is planted here, and nowhere in the package, must be found in each; then the package as it is, where
nothing may be found: an exception other than ConfigError, a value of the call in what is told, a repair that does not
repair, a verdict that python-jsonschema does not share, a crash, 2 GB, 20 seconds for one input. Printed are
executions, edges and features as libFuzzer counts them, and how many functions and lines the kept inputs reach.

Needs atheris (`python3 dev.py fuzz` installs it into an environment of its own). Without it the same changes are made
blindly, no planted fault is looked for, and it says so.
"""

from __future__ import annotations

import argparse
import faulthandler
import re
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from importlib import import_module, util
from pathlib import Path
from random import Random
from types import CodeType, FrameType
from typing import NamedTuple

LONGEST_INPUT = 50_000
INSTRUMENTED = ("theodolite.contracts", "theodolite.detectors.payload", "theodolite.readers.specification")
STATUS = re.compile(r"#(\d+)\s+\w+.*?cov: (\d+) ft: (\d+) corp: (\d+)")
# A planted fault has to be found within so many seconds. It took 2 to 108 on a busy machine.
PATIENCE = 240
REPLAYED = 3_000
SLOWEST = 20

Trace = Callable[[FrameType, str, object], "Trace | None"]


class Told(NamedTuple):
    """What one run came to."""

    executions: int
    seconds: float
    edges: int
    features: int
    kept: int
    fault: str
    reach: str


def main() -> int:
    """Fuzz each target twice, print what it came to, and return 1 where something was found or not found."""
    parser = argparse.ArgumentParser(description="Fuzz the loader and the checker of the payload guard.")
    parser.add_argument("--seconds", type=int, default=600, help="for each target (default: 600)")
    parser.add_argument("--short", action="store_true", help="ten seconds for each target")
    parser.add_argument("--keep", type=Path, help="where inputs that break something are kept")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--planted", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--corpus", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    seconds = 10 if given.short else given.seconds
    if given.child:
        guided(given.child, given.corpus, seconds, planted=given.planted)
        return 0
    by_coverage = util.find_spec("atheris") is not None
    print("guided by coverage (atheris)" if by_coverage else "atheris is not installed: changes are made blindly")
    wrong = 0
    for target in ("loader", "checker"):
        if by_coverage:
            wrong += not finds(target)
        with tempfile.TemporaryDirectory() as folder:
            told = (child if by_coverage else blind)(target, Path(folder), seconds, keep=given.keep)
        show(target, told)
        wrong += bool(told.fault)
    return int(bool(wrong))


def finds(target: str) -> bool:
    """Look for the planted fault, and print whether it was found."""
    with tempfile.TemporaryDirectory() as folder:
        told = child(target, Path(folder), PATIENCE, planted=True)
    found = "ZeroDivisionError: planted" in told.fault
    effort = f"{told.executions:,} executions, {told.seconds:.0f} s"
    print(f"{target}: planted fault {'found' if found else 'MISSED'}: {effort}", flush=True)
    return found


def show(target: str, told: Told) -> None:
    """Print one run."""
    pace = told.executions / max(told.seconds, 1e-9)
    print(f"{target}: {told.executions:,} executions in {told.seconds:.0f} s ({pace:,.0f} a second)")
    if told.edges:
        print(f"{target}: {told.edges:,} edges, {told.features:,} features, {told.kept:,} inputs kept")
    print(f"{target}: reached {told.reach}")
    print(f"{target}: {'MISSED: ' + told.fault if told.fault else 'nothing found'}", flush=True)


def child(target: str, folder: Path, seconds: int, *, planted: bool = False, keep: Path | None = None) -> Told:
    """Fuzz in a process of its own, which libFuzzer ends as it likes."""
    corpus, breaking = folder / "corpus", keep or folder / "breaking"
    for one in (corpus, breaking):
        one.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, __file__, "--child", target, "--seconds", str(seconds), "--corpus", str(corpus)]
    command += ["--planted"] if planted else []
    start = time.monotonic()
    done = subprocess.run(  # noqa: S603 - this script itself
        command, cwd=breaking, capture_output=True, text=True, errors="replace", check=False
    )
    took = time.monotonic() - start
    seen = STATUS.findall(done.stderr)
    executions, edges, features, kept = map(int, seen[-1]) if seen else (0, 0, 0, 0)
    fault = ""
    if done.returncode:
        lines = done.stdout.splitlines() + done.stderr.splitlines()
        errors = [line.strip() for line in lines if re.match(r"\s*[\w.]+(Error|Exception|Interrupt)\b|SUMMARY", line)]
        fault = (errors or [f"exit status {done.returncode}"])[0][:500]
    if done.returncode and not planted:
        print("\n".join((done.stdout + done.stderr).splitlines()[-60:]))
    return Told(executions, took, edges, features, kept, fault, "" if planted else reached(target, corpus))


def guided(target: str, corpus: Path, seconds: int, *, planted: bool) -> None:
    """Fuzz in this process. Does not return."""
    atheris = import_module("atheris")
    with atheris.instrument_imports(include=[*INSTRUMENTED, "fuzzing"]):  # where the planted faults are
        fuzzing = import_module("fuzzing")
    mutated = import_module("fuzzing_mutation").mutated
    test = next(one for one in fuzzing.TARGETS if one.name == target)(planted=planted)
    for number, seed in enumerate(test.seeds()):
        (corpus / f"seed-{number}").write_bytes(seed)
    options = (f"-max_total_time={seconds}", f"-max_len={LONGEST_INPUT}", f"-timeout={SLOWEST}", "-rss_limit_mb=2048")
    settings = (*options, "-seed=1", "-print_final_stats=1", "-report_slow_units=5")

    def change(data: bytes, most: int, seed: int) -> bytes:
        new: bytes = mutated(data, most, seed, atheris.Mutate)
        return new

    atheris.Setup([sys.argv[0], *settings, str(corpus)], test, custom_mutator=change)
    atheris.Fuzz()


def blind(target: str, folder: Path, seconds: int, *, keep: Path | None = None) -> Told:
    """Change inputs that came before, one after the other, without knowing what they reach."""
    fuzzing, mutated = import_module("fuzzing"), import_module("fuzzing_mutation").mutated
    test = next(one for one in fuzzing.TARGETS if one.name == target)(planted=False)
    breaking = keep or folder / "breaking"
    breaking.mkdir(parents=True, exist_ok=True)
    pool: list[bytes] = list(test.seeds())
    dice, executions, fault = Random(1), 0, ""
    start = time.monotonic()
    while not fault and time.monotonic() - start < seconds:
        data = mutated(dice.choice(pool), LONGEST_INPUT, dice.getrandbits(32), flipped(dice))
        executions += 1
        faulthandler.dump_traceback_later(SLOWEST, exit=True)  # an endless loop ends here too, and shows itself
        try:
            test(data)
        except Exception as error:  # noqa: BLE001 - whatever comes is what is looked for
            fault = f"{type(error).__name__}: {error}"[:500]
            traceback.print_exc()
            (breaking / f"breaks-{target}").write_bytes(data)
        faulthandler.cancel_dump_traceback_later()
        if dice.random() < 0.02:
            pool.append(data)
    corpus = folder / "corpus"
    corpus.mkdir()
    for number, one in enumerate(pool):
        (corpus / str(number)).write_bytes(one)
    return Told(executions, time.monotonic() - start, 0, 0, len(pool), fault, reached(target, corpus))


def flipped(dice: Random) -> Callable[[bytes, int], bytes]:
    """Return what changes a few bytes."""

    def flip(data: bytes, most: int) -> bytes:
        changed = bytearray(data[:most])
        for _ in range(dice.randint(1, 4)):
            if changed:
                changed[dice.randrange(len(changed))] = dice.randrange(256)
        return bytes(changed)

    return flip


def reached(target: str, corpus: Path) -> str:
    """Return how much of the code the kept inputs reach, replayed one by one in a process of its own."""
    command = [
        sys.executable,
        "-c",
        "import sys, fuzz_payload; fuzz_payload.replay(*sys.argv[1:])",
        target,
        str(corpus),
    ]
    done = subprocess.run(  # noqa: S603 - this script itself
        command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or f"unknown: {done.stderr[-300:]}"


def replay(target: str, corpus: str) -> None:
    """Run the kept inputs, and print which share of functions and lines they reached."""
    test = next(one for one in import_module("fuzzing").TARGETS if one.name == target)(planted=False)
    files = {module.__file__ or "" for name, module in sys.modules.items() if name.startswith(INSTRUMENTED)}
    lines, functions = set[tuple[str, int]](), set[tuple[str, int]]()

    def trace(frame: FrameType, event: str, argument: object) -> Trace | None:
        del argument
        code = frame.f_code
        if code.co_filename not in files:
            return None
        if event == "call":
            functions.add((code.co_filename, code.co_firstlineno))
        lines.add((code.co_filename, frame.f_lineno))
        return trace

    sys.settrace(trace)
    for file in sorted(Path(corpus).iterdir())[:REPLAYED]:
        try:
            test(file.read_bytes())
        except Exception:  # noqa: BLE001, S112 - what breaks was told of already
            continue
    sys.settrace(None)
    known = {(name, code.co_firstlineno): code for name in files for code in codes(name)}
    possible = {(name, line) for (name, _), code in known.items() for line in inside(code)}
    print(
        f"{len(functions & known.keys())} of {len(known)} functions and {len(lines & possible)} of {len(possible)} "
        f"lines in them, in {len(files)} modules"
    )


def codes(name: str) -> Iterator[CodeType]:
    """Yield the code of each function of a file."""
    stack = [compile(Path(name).read_text(encoding="utf-8"), name, "exec")]
    while stack:
        code = stack.pop()
        stack.extend(one for one in code.co_consts if isinstance(one, CodeType))
        if code.co_flags & 0x2 and not code.co_name.startswith("<"):  # CO_NEWLOCALS together with a name: a function
            yield code


def inside(code: CodeType) -> Iterator[int]:
    """Yield the lines of a function's body."""
    yield from (line for _, _, line in code.co_lines() if line is not None and line > code.co_firstlineno)


if __name__ == "__main__":
    threading.stack_size(64 * 1024 * 1024)
    sys.exit(main())
