"""The anomaly model: fitted on generated windows, judged on builders that it never saw, timed beside its original.

    python benchmarks/anomaly.py [DATA_DIR] [--fit] [--folds] [--short] [--peer DIR]

`--fit` writes the coefficients that the package ships. With `--peer` the original, axor-classifier-simple, is timed in
the same run, on the same windows, in an environment of its own in that folder. Where it is not there yet it is made:
`PEER_PACKAGES`, some 400 MB, from the index that pip is set to, and its model, which its own trainer writes in some
four minutes. Exits with 1 where a budget or a bar is missed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import subprocess
import sys
import venv
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
from anomaly_windows import BUILDERS, HARD, Labeled, generate
from timing import row, spread

import theodolite.detectors.anomaly
from theodolite.api.anomaly import MLAnomalyDetector
from theodolite.core.anomaly import CRITICAL, GRAY_ZONE, SUSPICIOUS, AnomalyClass
from theodolite.detectors.anomaly.detector import AnomalyDetector
from theodolite.detectors.anomaly.scoring import Coefficients, Scoring
from theodolite.detectors.anomaly.traits import TRAITS, UNEXPECTED, sign_of, traits_of
from theodolite.readers.detection import open_recording
from theodolite.readers.labelled import LabelledSessions
from theodolite.readers.labelled import label as label_of
from theodolite.runtime.monitor import Monitor
from theodolite.runtime.replay import Sighting, replay

FILE = Path(theodolite.detectors.anomaly.__file__).with_name("model.json")
SEED, TRIES = 20_261, 600
ORDER = {cls: place for place, cls in enumerate(AnomalyClass)}
# The strength of the penalty on weights, and how long the fit goes on; our choices: over a tenth and ten times as much
# of either the counts on builders left out change by a few windows.
PENALTY, ROUNDS, RATE = 0.001, 4_000, 0.05
# Bars on what was never fitted on. Our choice: the original's own gate for its hard windows is 0.75.
HELD_OUT_BAR, HARD_BAR = 0.85, 0.75


def traits(labeled: Labeled) -> int:
    """Return the traits of a window with its task."""
    found = traits_of(map(sign_of, labeled.window))
    return found | (UNEXPECTED if Scoring(EMPTY).unexpected(labeled.window, labeled.hint, "") else 0)


EMPTY = Coefficients(schema=1, version="0", bias=0.0, weights={})


def fit(windows: Sequence[Labeled]) -> Coefficients:
    """Return the coefficients of a proportional-odds model with weights of 0 or more, each builder counting alike.

    P(class >= k) = logistic(weights . traits - cut_k): McCullagh 1980. The sum is then shifted and scaled so that the
    two cuts come to lie at the scores 0.40 and 0.75. Projected gradient with Adam's steps (Kingma and Ba 2015).
    """
    share = Counter(made.builder for made in windows)
    rows: Counter[tuple[int, int]] = Counter()
    mass: dict[tuple[int, int], float] = {}
    for made in windows:
        key = (traits(made), ORDER[made.label])
        rows[key] += 1
        mass[key] = mass.get(key, 0.0) + 1.0 / share[made.builder] / len(share)
    bits = list(TRAITS)
    data = [([place for place, bit in enumerate(bits) if bit & found], label, m) for (found, label), m in mass.items()]
    theta = [*[0.0] * len(bits), 1.0, math.log(2.0)]  # weights, the first cut, the logarithm of the way to the second
    first, second = [0.0] * len(theta), [0.0] * len(theta)
    for turn in range(1, ROUNDS + 1):
        slope = gradient(theta, data)
        for place, value in enumerate(slope):
            first[place] = 0.9 * first[place] + 0.1 * value
            second[place] = 0.999 * second[place] + 0.001 * value * value
            move = first[place] / (1 - 0.9**turn) / (math.sqrt(second[place] / (1 - 0.999**turn)) + 1e-8)
            theta[place] -= RATE * move
            if place < len(bits):
                theta[place] = max(0.0, theta[place])
    low, high = theta[-2], theta[-2] + math.exp(theta[-1])
    scale = (logit(CRITICAL) - logit(SUSPICIOUS)) / (high - low)
    weights = {TRAITS[bit]: round(scale * weight, 3) for bit, weight in zip(bits, theta, strict=False) if weight > 0.0}
    return Coefficients(
        schema=1,
        version="1",
        bias=round(logit(SUSPICIOUS) - scale * low, 3),
        weights={name: weight for name, weight in weights.items() if weight > 0.0},
        data={"windows": len(windows), "sets of traits": len({found for found, _ in mass}), "builders": len(share)},
    )


def gradient(theta: Sequence[float], data: Iterable[tuple[list[int], int, float]]) -> list[float]:
    """Return the slope of the penalized loss."""
    low, gap = theta[-2], math.exp(theta[-1])
    slope = [*[PENALTY * weight for weight in theta[:-2]], 0.0, 0.0]
    for places, label, mass in data:
        total = sum(theta[place] for place in places)
        above = [1.0, logistic(total - low), logistic(total - low - gap), 0.0]
        chance = max(1e-9, above[label] - above[label + 1])
        upper, lower = above[label] * (1 - above[label]), above[label + 1] * (1 - above[label + 1])
        pull = -mass * (upper - lower) / chance
        for place in places:
            slope[place] += pull
        cuts = [(0.0, 0.0), (-1.0, 0.0), (-1.0, -gap), (0.0, 0.0)]  # what each bound moves with the cut and the gap
        for axis in (0, 1):
            slope[len(theta) - 2 + axis] -= mass * (upper * cuts[label][axis] - lower * cuts[label + 1][axis]) / chance
    return slope


def logistic(value: float) -> float:
    """Return the probability of some log-odds."""
    return 1.0 / (1.0 + math.exp(-max(-500.0, min(500.0, value))))


def logit(share: float) -> float:
    """Return the log-odds of a probability."""
    return math.log(share / (1.0 - share))


def judge(name: str, windows: Sequence[Labeled], scoring: Scoring) -> float:
    """Print how windows are called; return the share that is called right."""
    table: Counter[tuple[str, str]] = Counter()
    wrong: Counter[str] = Counter()
    gray = 0
    for made in windows:
        result = scoring.score(made.window, made.hint)
        table[made.label, result.cls] += 1
        wrong[made.builder] += made.label is not result.cls
        gray += GRAY_ZONE <= result.score < CRITICAL
    right = sum(count for (label, called), count in table.items() if label == called)
    different = len({traits(made) for made in windows})
    print(f"{name}: {len(windows)} different windows, {different} sets of traits; {right / len(windows):.3f} right")
    for label in AnomalyClass:
        of = sum(table[label, called] for called in AnomalyClass)
        print(
            f"  {label:10} " + "  ".join(f"{called} {table[label, called]}" for called in AnomalyClass) + f"  of {of}"
        )
    print(f"  in the gray zone {gray / len(windows):.1%}")
    for builder, count in wrong.most_common(6):
        if count:
            print(f"  wrong: {count} of {sum(made.builder == builder for made in windows)} {builder}")
    return right / len(windows)


def fold(train: Sequence[Labeled]) -> None:
    """Print how each builder is called by a model that was fitted without it."""
    names = sorted({made.builder for made in train})
    right = 0.0
    for name in names:
        scoring = Scoring(fit([made for made in train if made.builder != name]))
        part = [made for made in train if made.builder == name]
        share = sum(scoring.score(made.window, made.hint).cls is made.label for made in part) / len(part)
        right += share
        print(f"  without it: {share:.3f} right of {name}")
    print(f"leave one builder out: mean {right / len(names):.3f} over {len(names)} builders")


# axor-core 0.8.0 is the last one that the original runs with; it needs the other two and does not say which versions.
PEER_PACKAGES = ("axor-classifier-simple==0.2.1", "axor-core==0.8.0", "scikit-learn==1.9.1", "joblib==1.6.0")
PEER = """
import gc, json, sys, time
from axor_classifier_simple import MLAnomalyDetector
from axor_core.contracts.anomaly import NormalizedIntent
detector = MLAnomalyDetector(model_path=sys.argv[1])
windows = [[NormalizedIntent(**intent) for intent in window] for window in json.load(sys.stdin)]
times = []
def drive(window):
    try:
        detector.score(window=window).send(None)
    except StopIteration as stop:
        return stop.value
drive(windows[0])
gc.collect()
for window in windows:
    start = time.thread_time_ns(); drive(window); times.append(time.thread_time_ns() - start)
times.sort()
print(times[len(times) // 2] / 1e3, times[int(len(times) * 0.99)] / 1e3)
"""


def peer(folder: Path, windows: Sequence[Labeled]) -> float:
    """Return the median of one score of axor-classifier-simple, in microseconds. Makes its environment if need be."""
    python, model = folder / "venv/bin/python", folder / "model.joblib"
    if not python.exists():
        venv.create(folder / "venv", with_pip=True)
        _run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *PEER_PACKAGES)
    if not model.exists():
        _run(python, "-m", "axor_classifier_simple.train_anomaly", "--out", model)
    ours = {"permission", "effect"}
    told = [
        [{k: v for k, v in msgspec.to_builtins(i).items() if k not in ours} for i in made.window] for made in windows
    ]
    return float(_run(python, "-W", "ignore", "-c", PEER, model, given=json.dumps(told)).split()[0])


def _run(*command: str | Path, given: str = "") -> str:
    done = subprocess.run(command, input=given, stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603 - in the folder that the person names
    return done.stdout


def recorded(path: Path) -> None:
    """Print how often the rules and the score alarm in recorded sessions, by kind."""
    with gzip.open(path) as lines:
        kinds = {known.session_id: known.kind for known in map(label_of, lines)}
    sessions: Counter[str] = Counter()
    alarmed: Counter[tuple[str, str]] = Counter()
    for sighting in replay(open_recording(path, [LabelledSessions()]), Monitor([AnomalyDetector()])):
        assert isinstance(sighting, Sighting), sighting
        kind = kinds[sighting.session]
        sessions[kind] += 1
        alarmed.update({(kind, s.code) for decision in sighting.decisions for s in decision.signals if s.alarmed})
    for kind, count in sorted(sessions.items()):
        told = ", ".join(f"{code} {alarmed[kind, code]}" for code in AnomalyDetector.bands)
        print(f"  {kind:20} {count} sessions: {told}")


def timed(windows: Sequence[Labeled], original: float | None) -> bool:
    """Print what one score and a batch of windows of 10 cost; return whether both are within budget."""
    detector = MLAnomalyDetector()
    one = spread(lambda made: detector.score_sync(made.window, made.hint), windows).median
    met = row("score_sync, a window of 10", one, "us", budget=50.0)
    batch = [made.window for made in windows]
    apart = spread(lambda _: detector.score_batch(batch), range(5)).median / len(batch)
    met &= row("score_batch, each window, none sharing an intent", apart, "us", budget=10.0)
    calls = [intent for window in batch for intent in window]
    sliding = [calls[place : place + 10] for place in range(len(calls) - 10)]
    shared = spread(lambda _: detector.score_batch(sliding), range(5)).median / len(sliding)
    met &= row("score_batch, each window of one stream", shared, "us", budget=10.0)
    if original is None:
        print("axor-classifier-simple was skipped: name a folder for its environment with --peer")
        return met
    row("axor-classifier-simple, a window of 10", original, "us")
    for name, own in (("score_sync", one), ("score_batch", apart), ("score_batch of one stream", shared)):
        row(f"  over {name}", original / own, "x")
    return met


def main() -> int:
    """Fit or judge, then time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?", default=Path("../shared/data/agentdojo"))
    parser.add_argument("--fit", action="store_true", help="write the coefficients that the package ships")
    parser.add_argument("--folds", action="store_true", help="leave out one builder after the other: a minute")
    parser.add_argument("--short", action="store_true", help="fewer windows")
    parser.add_argument("--peer", type=Path, metavar="DIR", help="time axor-classifier-simple too, installed there")
    options = parser.parse_args()
    tries = TRIES // 6 if options.short else TRIES
    train = list(generate([builder for builder in BUILDERS if not builder.held_out], tries, SEED))
    held_out = list(generate([builder for builder in BUILDERS if builder.held_out], tries, SEED + 1))
    if options.fit:
        FILE.write_bytes(msgspec.json.format(msgspec.json.encode(fit(train)), indent=2) + b"\n")
    if options.folds:
        fold(train)
    scoring = Scoring(Coefficients.load(FILE.read_bytes(), str(FILE)))
    judge("fitted on", train, scoring)
    seen = {traits(made) for made in train}
    held = judge("held-out builders", held_out, scoring) >= HELD_OUT_BAR
    judge("of these, sets of traits that were not fitted on", [m for m in held_out if traits(m) not in seen], scoring)
    held &= judge("hard, by hand", HARD, scoring) >= HARD_BAR
    print(
        f"bars ({HELD_OUT_BAR:.0%} of held-out builders, {HARD_BAR:.0%} of hard ones): {'held' if held else 'MISSED'}"
    )
    if (options.data / "train.jsonl.gz").exists():
        print("alarms on AgentDojo train:")
        recorded(options.data / "train.jsonl.gz")
    sample = held_out[:: max(1, len(held_out) // 400)]
    full = [made for made in sample if len(made.window) == 10]
    return 0 if timed(full, peer(options.peer, full) if options.peer else None) and held else 1


if __name__ == "__main__":
    sys.exit(main())
