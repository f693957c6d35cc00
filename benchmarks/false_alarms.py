"""How often clean sessions alarm, counted on simulated ones of known laws, and how late a shift is found.

    python benchmarks/false_alarms.py [--short] [--write]

For each alpha: 20,000 sessions of 1 to 100 readings of each code, and 1,000 of 10,000, each against a calibration set
of its own; as many that are put probes; and 20,000 against fusions with fitted coefficients. `--write` writes the
figures to docs/evidence/false-alarm-rates.md. It takes two processors the better part of an hour; `--short` counts few.
Exits with 1 when the lower 95 % bound of a rate is above its alpha. `tests/quality/test_false_alarm_rates.py` counts
the same.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from itertools import repeat
from pathlib import Path
from typing import NamedTuple

from clean_bets import ALPHAS, NULLS, Delay, delays, reached
from clean_fusions import CLEAN, SCENES, Blocks, blocks
from clean_sessions import BOTH, MIXES, Alarms, alarms, law_of, share, sizes, together

from theodolite.detectors.fusion import CALL
from theodolite.stats.interval import clopper_pearson, exact_lower

PAGE = Path(__file__).parents[1] / "docs/evidence/false-alarm-rates.md"
OF_CODES = (0.1, 0.05, 0.01)
LONG = 10_000
BEFORE = (0, 1_000, LONG)
SURE = (1.0, 0.9)
IN_BLOCK = 100
# Of fewer the spread says little.
_FEWEST_BLOCKS = 100


class Size(NamedTuple):
    """How many are counted: short and long sessions of each mix and of each kind of draws, blocks, and shifts."""

    short: int
    long: int
    bets: int
    long_bets: int
    blocks: int
    shifts: int


FULL = Size(short=2_858, long=143, bets=20_000, long_bets=1_000, blocks=200, shifts=200)
FEW = Size(short=20, long=1, bets=100, long_bets=1, blocks=2, shifts=5)


class Page:
    """Lines of the page, and the rates on it of which the lower bound, of one minus `level`, is above alpha."""

    def __init__(self, level: float) -> None:
        self.lines: list[str] = []
        self.missed: list[str] = []
        self.level = level

    def add(self, *lines: str) -> None:
        """Add lines, and print them."""
        print(*lines, sep="\n", flush=True)
        self.lines += lines

    def rate(self, what: Sequence[str], alpha: float, k: int, n: int, *more: str) -> None:
        """Add a row with a rate, which is held against alpha."""
        low, high = clopper_pearson(k, n)
        bound = self.counted(", ".join(what), alpha, k, n)
        self.row([*what, f"{alpha:g}", f"{n:,}", f"{k:,}", f"{k / n:.4f} [{low:.4f}, {high:.4f}]", bound, *more])

    def counted(self, what: str, alpha: float, k: int, n: int) -> str:
        """Return the lower 95 % bound of a rate, which is held against alpha."""
        self.held(what, exact_lower(k, n, self.level), alpha)
        return f"{exact_lower(k, n, 0.05):.4f}"

    def held(self, what: str, bound: float, alpha: float) -> None:
        """Note a bound that is above alpha."""
        if bound > alpha:
            self.missed.append(f"{what} at {alpha:g}: {bound:.4f}")
            print(f"MISSED {self.missed[-1]}")

    def row(self, cells: Sequence[str]) -> None:
        """Add a row of a table."""
        self.add(f"| {' | '.join(cells)} |")


def head(*names: str) -> tuple[str, str]:
    """Return the head of a table."""
    return f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"


def of_codes(page: Page, pool: Executor, size: Size) -> None:
    """Add the rates of thresholds, of short sessions and of long ones."""
    for length, each in ((None, size.short), (LONG, size.long)):
        jobs = [(alpha, mix) for alpha in OF_CODES for mix in range(MIXES)]
        found = dict(zip(jobs, pool.map(_alarms, jobs, repeat(each), repeat(length)), strict=True))
        readings = "1 to 100" if length is None else f"{LONG:,}"
        page.add("", f"## Thresholds: sessions of {readings} readings of each code", "")
        page.add(*head("code", "alpha", "sessions", "alarmed", "rate, 95 %", "lower bound", "known rate", "mute"))
        for alpha in OF_CODES:
            whole = together(found[alpha, mix] for mix in range(MIXES))
            for code, k in whole.alarmed.items():
                told = known(whole, code) if length is None else ""
                page.rate([code], share(code, alpha), k, whole.sessions, told, f"{whole.mute.get(code, 0):,}")
        page.add("", "By the law of `hijack.call`, from which the fused score starts; alarms with the lower bound:", "")
        codes = ("hijack.call", CALL, BOTH)
        page.add(*head("law", "alpha", "sessions", *codes))
        for (alpha, mix), one in found.items():
            law = law_of("hijack.call", mix)
            counts = {code: one.alarmed.get(code, 0) for code in codes}
            bounds = {
                code: page.counted(f"{law}, {code}", share(code, alpha), k, one.sessions) for code, k in counts.items()
            }
            alarmed = [f"{counts[code]:,} ({bounds[code]} of {share(code, alpha):g})" for code in codes]
            page.row([law, f"{alpha:g}", f"{one.sessions:,}", *alarmed])


def _alarms(job: tuple[float, int], each: int, length: int | None) -> Alarms:
    return alarms(*job, each, length=length)


def known(found: Alarms, code: str) -> str:
    """Return how often a code alarmed where it is known how often it does."""
    if code not in found.known:
        return ""
    n, k, due = found.known[code]
    return f"{k / n:.4f} of {due / n:.4f}"


def of_fusions(page: Page, pool: Executor, size: Size) -> None:
    """Add the rates of fusions whose coefficients were fitted."""
    page.add("", "## Fusions with fitted coefficients", "")
    page.add(*head("sessions have", "clean ones", "alpha", "sessions", "fits with a part", "rate", "lower bound"))
    jobs = [(alpha, scene) for alpha in OF_CODES for scene in SCENES]
    for (alpha, scene), one in zip(jobs, pool.map(_blocks, jobs, repeat(size.blocks)), strict=True):
        kept = f"{sum(one.kept):,} of {len(one.kept):,}"
        told = [scene, f"{CLEAN[alpha]:,}", f"{alpha / 2:g}", f"{one.sessions:,}", kept, f"{one.rate:.4f}"]
        page.row([*told, f"{one.lower:.4f}"])
        if len(one.shares) > _FEWEST_BLOCKS:
            page.held(scene, one.lower, alpha / 2)


def _blocks(job: tuple[float, str], count: int) -> Blocks:
    return blocks(*job, count, IN_BLOCK)


def of_bets(page: Page, pool: Executor, size: Size) -> None:
    """Add the rates of the evidence of probes, and how late it finds a shift."""
    page.add("", "## Evidence of probes", "")
    page.add(*head("draws", "probes", "alpha", "sessions", "alarmed", "rate, 95 %", "lower bound"))
    jobs = [(null, length) for length in (None, LONG) for null in NULLS]
    each = [size.bets if length is None else size.long_bets for _, length in jobs]
    for (null, length), n, found in zip(jobs, each, pool.map(_reached, jobs, each), strict=True):
        for alpha in ALPHAS:
            page.rate([null, "1 to 100" if length is None else f"{LONG:,}"], alpha, found[alpha], n)
    page.add("", "## How late a shift is found", "")
    page.add(*head("draws of 1", "shifts", "after probes", "measured", "stated", "ratio"))
    shifts = [(clean, sure, both) for both in (False, True) for sure in SURE for clean in BEFORE]
    for (clean, sure, both), one in zip(shifts, pool.map(_delays, shifts, repeat(size.shifts)), strict=True):
        what = "both kinds" if both else "one kind, the other silent"
        page.row([f"{sure:.0%}", what, f"{clean:,}", f"{one.measured:.1f}", f"{one.stated:.1f}", f"{one.ratio:.2f}"])


def _reached(job: tuple[str, int | None], sessions: int) -> Mapping[float, int]:
    return reached(job[0], sessions, job[1])


def _delays(job: tuple[int, float, bool], runs: int) -> Delay:
    return delays(job[0], job[1], runs, both=job[2])


def introduction(size: Size) -> str:
    """Return what the page says before its figures."""
    told = ", ".join([f"{low} to {high} at {alpha:g}" for alpha in OF_CODES for low, high in [sizes(alpha)]])
    return f"""# How often clean sessions alarm

Counted by `benchmarks/false_alarms.py` on simulated sessions whose law is known, through the code that ships:
the fit of `theodolite calibrate`, the grading by its bands, the fusion, the accumulator of probes. An alarm is
any reading above CLEAR at any time. A rate is wrong where its lower 95 % bound (Clopper and Pearson) is above
alpha; of a hundred rates that are alpha to the last bit five are so by chance. Seeds are what each row is
about, and were not chosen.

- **A calibration set is drawn anew for each session** that is judged. It has as many clean sessions as is drawn
  from the least that can promise alpha to some more: {told}. Most of these numbers promise less than alpha,
  since a threshold lies at a session: *known rate* is how often a code alarmed of how often it has to, over the
  sessions in which its law is continuous.
- **Laws**: even; tied in ten steps; mostly 0; near 1; some at 1; alike within a session; rising, as evidence
  does that adds up. Each code has each of them in a seventh of the sessions. What codes say has nothing to do
  with what others do.
- *mute* counts sessions in which a code could not alarm: more than a share alpha of the clean ones had the
  highest score there is. The artefact says so, and such a code neither acts nor finds.
- `fusion.call` and `fusion.session` share alpha: each has half of it, *{BOTH}* has all. Sessions are put up to
  20 probes.
- Where coefficients are fitted, some sessions are judged by one artefact. What is independent are then the
  blocks of {IN_BLOCK}, and the bound is made of their spread.
- Probes: the same sessions are held against each alpha; {size.bets:,} are short, {size.long_bets:,} long.
- A shift is stated to be found after the draws that `theodolite.stats.restarting.delay` says, for one kind of
  draws. Where both shift and neither is sure, the sooner one of them is found, and sooner than stated.

Limits: clean sessions are exchangeable here, by the way that they are made. What breaks that in practice no
simulation tells."""


def main() -> int:
    """Print the figures; return 1 when a rate is above its alpha."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="count few sessions")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    options = parser.parse_args()
    size = FEW if options.short else FULL
    # A short run has many cells and few sessions: in some of them four of twenty alarm by chance.
    page = Page(1e-5 if options.short else 0.05)
    page.add(*introduction(size).splitlines())
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        for section in (of_codes, of_bets, of_fusions):
            section(page, pool, size)
            if options.write:
                PAGE.write_text("\n".join(page.lines) + "\n", encoding="utf-8")
    print(f"rates with a lower bound above alpha: {len(page.missed)}{''.join(f', {one}' for one in page.missed)}")
    return int(bool(page.missed))


if __name__ == "__main__":
    sys.exit(main())
