"""How many calls it takes to find the fragments that carry a drift, and how often they are found.

    python benchmarks/localization.py [--short] [--peer DIR]

Culprits are planted at random, each sufficient alone, and each answer is wrong with 5 %. A run counts as right where
exactly these are named and confirmed, within the calls of the bar. Then what is said where the model does not fit: a
coin, more noise than was told, culprits that need each other. Shares have intervals of Clopper and Pearson. What the
search itself costs is CPU time for each call, without the model's.

With `--peer` the repair of axor-probe is counted in the same run, in an environment of its own that is made in that
folder: the calls of its exhaustive enumeration, and what it makes of the same noise. Without it, what is printed was
counted so with axor-probe 0.2.1. It is exact where no answer is wrong, and finds coalitions, which ours only suspects.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
import venv
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from statistics import fmean

from figures import share
from msgspec import Struct
from timing import row

from theodolite.detectors.behavior.localization import Localization, answered, localize

NOISE = 0.05
LEAST = 0.95  # of the runs
Drifts = Callable[[frozenset[int], frozenset[int]], bool]

PEER_PACKAGE = "axor-probe==0.2.1"
PEER = """
import json, random, sys
from axor_probe.repair import Fragment, localize
def run(count, culprits, together, noise, seed):
    draw, calls = random.Random(seed), 0
    bad = {f"f{number:03}" for number in culprits}
    def escapes(present):
        nonlocal calls
        calls += 1
        drifts = bad <= present if together else bool(bad & present)
        return drifts != (draw.random() < noise)
    made = localize([Fragment(f"f{number:03}", True) for number in range(count)], escapes)
    return calls, made.verdict.value, set(made.drift_fragments) == bad, len(made.drift_fragments)
print(json.dumps([run(*case) for case in json.load(sys.stdin)]))
"""
# Counted by `--peer`; printed where it is not counted anew.
COUNTED = """  12 fragments, one culprit: 2,049 calls; two that need each other: 3,073
  13 fragments: 1 call, the operator is told of all 13"""


class Case(Struct, frozen=True):
    """Fragments and planted culprits; the calls within which they are to be found."""

    count: int
    culprits: int
    calls: float


CASES = (
    Case(12, 1, 40),
    *[Case(64, culprits, 10 * culprits * math.log2(64)) for culprits in (1, 2, 3)],
    *[Case(1000, culprits, 10 * culprits * math.log2(1000)) for culprits in (1, 3)],
)


def sufficient(planted: frozenset[int], keep: frozenset[int]) -> bool:
    """Whether any culprit is kept: each drifts alone."""
    return not planted.isdisjoint(keep)


def together(planted: frozenset[int], keep: frozenset[int]) -> bool:
    """Whether all culprits are kept: they need each other."""
    return planted <= keep


def found(
    case: Case, runs: int, noise: float = NOISE, drifts: Drifts = sufficient
) -> list[tuple[frozenset[int], Localization]]:
    """Return what was planted and what was found, of each run. The search is told of 5 % noise."""
    draw = Random(case.culprits * 1000 + case.count)
    ends: list[tuple[frozenset[int], Localization]] = []

    def drawn(planted: frozenset[int]) -> Callable[[frozenset[int]], bool]:
        return lambda keep: drifts(planted, keep) is not (draw.random() < noise)

    for run in range(runs):
        planted = frozenset(draw.sample(range(case.count), case.culprits))
        ends.append((planted, answered(localize(case.count, seed=b"%d" % run), drawn(planted))))
    return ends


def judge(runs: int) -> bool:
    """Print how often culprits are found, and in how many calls; return whether the bars are held."""
    met = True
    for case in CASES:
        start = time.process_time()
        ends = found(case, runs if case.count < 1000 else runs // 5)
        calls = [one.calls for _, one in ends]
        spent = (time.process_time() - start) / sum(calls) * 1e6
        right = share(
            [planted == frozenset(one.culprits) and one.confirmed and one.calls <= case.calls for planted, one in ends]
        )
        held = right.value >= LEAST
        met &= held
        print(
            f"{case.count} fragments, {_culprits(case.culprits)}: {right} within {case.calls:.0f} calls, "
            f"mean {fmean(calls):.1f}, most {max(calls)}: {'held' if held else 'MISSED'}"
        )
        row("  CPU of a call, without the model", spent, "us")
    return met


def elsewhere(runs: int) -> bool:
    """Print what is said where the model does not fit; return whether nothing wrong is cut out automatically."""
    wrong = 0
    for name, ends in (
        ("a coin, 64 fragments", found(Case(64, 1, 0), runs, 0.5)),
        ("a coin, 12 fragments", found(Case(12, 1, 0), runs, 0.5)),
        ("10 % noise, told 5 %", found(Case(64, 1, 0), runs, 0.1)),
        ("20 % noise, told 5 %", found(Case(64, 1, 0), runs, 0.2)),
        ("two that need each other", found(Case(64, 2, 0), runs, drifts=together)),
        ("three that need each other", found(Case(64, 3, 0), runs, drifts=together)),
        ("four, three looked for", found(Case(64, 4, 0), runs)),
        ("no drift", found(Case(64, 0, 0), runs)),
        ("drift without any", found(Case(64, 0, 0), runs, drifts=lambda _planted, _keep: True)),
    ):
        cut = share(
            [one.verdict.value == "auto_excise" and planted != frozenset(one.culprits) for planted, one in ends]
        )
        wrong += cut[0] if "coin" not in name else 0
        met = cut.value <= 0.02
        wrong += not met
        grounds = ", ".join(f"{ground} {n}" for ground, n in Counter(str(one.ground) for _, one in ends).most_common())
        calls = [one.calls for _, one in ends]
        print(f"{name}: {grounds}; wrongly cut out {cut}; calls mean {fmean(calls):.1f}, most {max(calls)}")
    print(f"bar: nothing wrong is cut out, of a coin at most 0.020: {'MISSED' if wrong else 'held'}")
    return not wrong


def peer(folder: Path, runs: int) -> None:
    """Print the calls of axor-probe's repair, and how often it is right under the same noise."""
    python = folder / "venv/bin/python"
    if not python.exists():
        venv.create(folder / "venv", with_pip=True)
        _run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", PEER_PACKAGE)
    draw = Random(12)
    exact = [(12, [3], False, 0, 0), (12, [3, 7], True, 0, 0), (12, [3, 7], False, 0, 0), (13, [3], False, 0, 0)]
    noisy = [(12, [draw.randrange(12)], False, NOISE, seed) for seed in range(runs)]
    counted: list[tuple[int, str, bool, int]] = json.loads(_run(python, "-c", PEER, given=json.dumps([*exact, *noisy])))
    for (count, culprits, needed, *_), (calls, verdict, _, named) in zip(exact, counted, strict=False):
        what = f"{_culprits(len(culprits))}{' that need each other' * needed}"
        print(f"  {count} fragments, {what}: calls {calls:,}, {verdict}, {named} named")
    ends = counted[len(exact) :]
    print(
        f"  12 fragments, 1 culprit, 5 % noise: right {share([right for _, _, right, _ in ends])}, "
        f"named {fmean(named for *_, named in ends):.1f}, calls mean {fmean(calls for calls, *_ in ends):.0f}"
    )


def _culprits(count: int) -> str:
    return f"{count} culprit{'s' * (count != 1)}"


def _run(*command: str | Path, given: str = "") -> str:
    done = subprocess.run(command, input=given, stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603 - in the folder that the person names
    return done.stdout


def main() -> int:
    """Find, say what is not found, and count the original's calls."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="200 runs each instead of 1,000")
    parser.add_argument("--peer", type=Path, metavar="DIR", help="count axor-probe's calls too, installed there")
    options = parser.parse_args()
    runs = 200 if options.short else 1000
    held = judge(runs)
    held &= elsewhere(runs)
    print(f"{PEER_PACKAGE.replace('==', ' ')}, its repair:")
    if options.peer:
        peer(options.peer, runs)
    else:
        print(COUNTED)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
