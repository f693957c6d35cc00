"""What is no part of the score, and why: numbers and codes that were left out, each measured beside it on train.

    python benchmarks/candidates.py [DATA_DIR] [--short]

Each number is added to those of the score by itself, with its sign, and fitted and judged by folds of the user's tasks
as the score is. `anomaly.score` raises the log-odds of its call as a part of the fusion would: by so much of what its
own log-odds are over those of a window that shows nothing, at twenty weights. dev is not read.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from agentdojo import Session, events, sessions
from calls import NEEDS, SIGNS, Call, Material, Told, by_folds, fitted, log_odds, material, outside, scored, told
from figures import auc, found_at
from msgspec import Struct

from theodolite.core.arguments import leaves
from theodolite.core.event import ToolCallProposed, stamp
from theodolite.core.intent import Call as Folded
from theodolite.core.intent import Origin, Permission, Role
from theodolite.core.reading import Reading
from theodolite.detectors.anomaly.detector import SCORE, AnomalyDetector
from theodolite.detectors.anomaly.scoring import shipped
from theodolite.detectors.fusion import Part
from theodolite.features.folds import Folds
from theodolite.features.intents import words
from theodolite.features.margin import fetches
from theodolite.features.roles import address
from theodolite.features.stakes import stakes
from theodolite.runtime.monitor import Monitor
from theodolite.stats.logistic import Logistic

WEIGHTS = tuple(round(0.05 * step, 2) for step in range(1, 21))


class Shown(Struct):
    """All that is known of a call: what was folded, the session's folds, its values, the highest permission before."""

    call: Folded
    folds: Folds
    values: Mapping[str, str]
    before: int

    @property
    def acts(self) -> bool:
        """Whether the call changes something, or reads a page that is beyond the goal."""
        return not fetches(self.call.intent) or (self.call.grounds is not None and self.call.grounds.beyond)

    @property
    def rises(self) -> bool:
        """Whether its permission class is above that of every call before it, of which there is one."""
        return 0 <= self.before < self.call.intent.permission

    @property
    def foreign(self) -> list[str]:
        """The targets that untrusted text named."""
        origins = [one for one in self.call.origins or () if one.origin is Origin.TOOL_RESULT]
        return [self.values.get(one.path, "") for one in origins if one.role is Role.TARGET and not one.within]


def _acts(shown: Shown) -> float:
    return float(shown.acts)


def _asked(shown: Shown) -> float:
    index, named = shown.folds.index, words(shown.call.intent.tool)
    return sum(word in index.goal for word in named) / len(named) if index is not None and named else 0.0


def _address(shown: Shown) -> float:
    return float(shown.acts and any(address(value) for value in shown.foreign))


def _another(shown: Shown) -> float:
    return float(shown.acts and any(address(value) in shown.folds.aims.named for value in shown.foreign))


def _given(shown: Shown) -> float:
    origins = shown.call.origins or ()
    return sum(one.origin is Origin.USER for one in origins) / len(origins) if origins else 0.0


def _on_topic(shown: Shown) -> float:
    margin, index = shown.call.margin, shown.folds.index
    if margin is None or index is None or margin.seq is None:
        return 0.0
    return float(index.near(margin.seq, margin.start, shown.folds.aims.about))


def _rises(shown: Shown) -> float:
    return float(shown.rises)


def _leaves_reading(shown: Shown) -> float:
    return float(shown.before == Permission.READ and shown.rises)


def _rises_after_outside(shown: Shown) -> float:
    return float(shown.rises and shown.call.intent.after_external_read)


def _rising_margin(shown: Shown) -> float:
    return shown.call.margin.lead if shown.rises and shown.call.margin is not None else 0.0


CANDIDATES: Mapping[str, tuple[int, Callable[[Shown], float]]] = {
    "the call acts": (1, _acts),
    "the goal names this action": (-1, _asked),
    "a foreign target is an address": (1, _address),
    "the goal names another address of its kind": (1, _another),
    "the share of arguments from the goal": (-1, _given),
    "the passage shares the goal's topic": (-1, _on_topic),
    "escalation: the permission class rises": (1, _rises),
    "escalation: the first call that does more than read": (1, _leaves_reading),
    "escalation: the class rises after outside text": (1, _rises_after_outside),
    "escalation: the margin of a call that rises": (1, _rising_margin),
}
NAMES = (*SIGNS, *CANDIDATES)


def told_more(session: Session) -> Told:
    """Return the numbers of a session's calls, those of the score first and then all candidates."""
    known, folds, calls, before = told(session).calls, Folds.begin(NEEDS), list[Call](), -1
    for seq, event in enumerate(events(session)):
        placed = stamp(event, session="s", agent="", seq=seq, at=0.0, turn=event.turn)
        call = folds.fold(placed, {})
        if call is None or not isinstance(placed, ToolCallProposed):
            continue
        if stakes(call) is not None:
            given = placed.values()
            shown = Shown(call, folds, dict(leaves(given)) if isinstance(given, Mapping) else {}, before)
            more = tuple([number(shown) for _, number in CANDIDATES.values()])
            same = known[len(calls)]
            calls.append(Call(same.turn, same.onset, (*same.row, *more)))
        before = max(before, call.intent.permission)
    return Told(session, calls)


def fitted_with(data: Material, candidate: str, fold: int) -> Logistic:
    """Return the coefficients of the score and a candidate, of all folds but one."""
    signs = {**SIGNS, candidate: CANDIDATES[candidate][0]}
    return fitted(data, partial(outside, fold), signs, NAMES)


def scores(models: Sequence[Logistic], group: Iterable[Told]) -> Iterator[float]:
    """Yield the highest log-odds of each session, by the model that has not seen its task."""
    for one in group:
        model = models[one.session.fold]
        odds = [model.bias + sum(model.terms(dict(zip(NAMES, call.row, strict=True))).values()) for call in one.calls]
        yield max(odds, default=-36.0)


def line(name: str, recorded: Sequence[Told], values: Sequence[float]) -> str:
    """Return the figures of a score on recorded sessions."""
    positive = [value for value, one in zip(values, recorded, strict=True) if one.session.hijacked]
    negative = [value for value, one in zip(values, recorded, strict=True) if not one.session.hijacked]
    return f"{name:<54} AUC {auc(positive, negative)}  TPR at 1 % {found_at(positive, negative, 0.01)}"


def show_numbers(data: Material) -> None:
    """Print the figures with each candidate."""
    for name in CANDIDATES:
        models = [fitted_with(data, name, fold) for fold in range(5)]
        weights = ", ".join(f"{model.weights[name]:.2f}" for model in models)
        values = list(scores(models, data.recorded))
        print(line(f"with {name}", data.recorded, values))
        negative = [value for value, one in zip(values, data.recorded, strict=True) if not one.session.hijacked]
        found = [
            f"{of} {found_at(list(scores(models, made)), negative, 0.01).value:.2f}" for of, made in data.made.items()
        ]
        print(f"    weights {weights}; made attacks found at 1 %: {', '.join(found)}")


def anomalies(session: Session, monitor: Monitor) -> list[float]:
    """Return the anomaly score of each proposed call."""
    found: list[float] = []
    with monitor.session(session.session_id) as live:
        for event in events(session):
            said = [signal.said for signal in live.observe(event).signals]
            found += [reading.score for reading in said if isinstance(reading, Reading) and reading.code == SCORE]
    return found


def show_fused(recorded: Sequence[Session], group: Sequence[Told], models: Sequence[Logistic]) -> None:
    """Print what the anomaly score is worth alone, and beside the score of the hijack, at each weight."""
    monitor = Monitor([AnomalyDetector()])
    found = [anomalies(session, monitor) for session in recorded]
    print(line(f"{SCORE} alone", group, [max(more, default=0.0) for more in found]))
    for weight in WEIGHTS:
        part = Part(weight=weight, above=shipped().bias)
        fused = [
            max(map(partial(_fused, models[one.session.fold], part), one.calls, more), default=-36.0)
            for one, more in zip(group, found, strict=True)
        ]
        print(line(f"raised by {weight:.2f} of {SCORE}", group, fused))


def _fused(model: Logistic, part: Part, call: Call, score: float) -> float:
    return log_odds(model, call.row) + part.term(score)


def _more(group: Iterable[Told]) -> list[Told]:
    return [told_more(one.session) for one in group]


def main() -> int:
    """Print what each candidate adds on train."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?", default=Path("../shared/data/agentdojo"))
    parser.add_argument("--short", action="store_true", help="the same: it takes a minute")
    train = parser.parse_args().data / "train.jsonl.gz"
    if not train.exists():
        print(f"skipped: no recorded sessions in {train.parent}")
        return 0
    recorded = sessions(train)
    plain = material(recorded)
    models = by_folds(plain)
    print(line("the score as it is", plain.recorded, scored(models, plain.recorded)))
    made = {name: _more(group) for name, group in plain.made.items()}
    show_numbers(Material(_more(plain.recorded), made, _more(plain.errands)))
    show_fused(recorded, plain.recorded, models)
    return 0


if __name__ == "__main__":
    sys.exit(main())
