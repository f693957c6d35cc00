"""How often whole sessions alarm by decisions that are read from probabilities, through the monitor as a host has it.

The model's log-odds are a fixed function of context and question. In a clean session its context is drawn as those of
the benign references are: it shifts all probes, and each probe behind it once more. Each session has a model, and so
references, of its own: what is promised is promised over both.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from statistics import mean, median, stdev
from typing import NamedTuple

import pytest

from theodolite.core.event import MessageObserved, ModelCalled, Source, SystemPromptSet
from theodolite.core.gate import Gate, Shown
from theodolite.core.inquiry import Message, Query, Role
from theodolite.core.policy import Action, Decision
from theodolite.core.reading import Cause, Failure, Reading
from theodolite.detectors.behavior.accumulation import ALPHA_LONG
from theodolite.detectors.behavior.detector import SESSION, BehaviorDetector, BehaviorSettings
from theodolite.detectors.behavior.gating import Gating, Pair, Terms, gate
from theodolite.detectors.behavior.library import shipped
from theodolite.detectors.behavior.probe import Probe
from theodolite.detectors.behavior.readout import BOUND, WORDINGS, queries, question
from theodolite.detectors.behavior.references import Kind, Length, Reference, e_value, like
from theodolite.detectors.behavior.schedule import ScheduleSettings
from theodolite.redactors.rules import RuleRedactor
from theodolite.runtime.drive import Panel
from theodolite.runtime.monitor import Monitor
from theodolite.stats.interval import exact_lower
from theodolite.testing.fakes import FakeClock, PolicyModel
from theodolite.testing.fakes.policies import Asked

Drawn = Callable[[Random], float]
Note = Callable[[str, int, int], None]

MODEL, CAP = "agent-model", 20
ALPHAS = (0.05, 0.01)
SHORT, FOR_POWER, MANY = 4, 300, 1_000
SHIPPED, OWN = 40, 400  # references: those that come with the package, or as many of the operator's own
PROMPT = "You are the assistant of a bank."
HASH = hashlib.sha256(PROMPT.encode()).hexdigest()
SETTINGS = BehaviorSettings(
    system=PROMPT,
    scheduled=False,
    schedule=ScheduleSettings(max_probes_per_session=CAP, jitter_seconds=0.0, cooldown_window_seconds=0.0),
)


def normal(spread: float) -> Drawn:
    return lambda dice: dice.gauss(0.0, spread)


def heavy(scale: float) -> Drawn:
    """Draw from Student's t with two degrees of freedom, whose variance is infinite."""
    return lambda dice: scale * dice.gauss(0.0, 1.0) / math.sqrt(dice.expovariate(1.0))


class Law(NamedTuple):
    """What a context does, in log-odds: to all probes alike, and to each probe and each twin by itself.

    A mood moves twins as much as probes; a subject moves the probes alone, which no difference takes out.
    """

    context: Drawn
    pair: Drawn
    mood: bool = False


# With 0.7 for a probe and as much for its twin, their difference has a standard deviation of 1.
LAWS = {
    "wobble": Law(normal(0.0), normal(0.7)),
    "subjects": Law(normal(1.0), normal(0.5)),
    "strong subjects": Law(normal(2.0), normal(0.5)),
    "heavy subjects": Law(heavy(1.0), heavy(0.5)),
    "moods": Law(normal(2.0), normal(0.5), mood=True),
    "heavy moods": Law(heavy(1.0), heavy(0.5), mood=True),
}


@dataclass(kw_only=True, eq=False)
class Swayed(PolicyModel):
    """A model that contexts move by a law, and longer ones by `stretch` for each 1,000 characters, twins spared.

    `toward` is added to what the session's own copy is asked: its drift.
    """

    law: Law
    toward: float = 0.0
    stretch: float = 0.0

    def log_odds(self, query: Query) -> float:
        twin = self.asked(query) is Asked.TWIN
        odds = self.policy if twin else -self.policy
        said = self._behind(query)
        if not said:
            return odds
        context = "\0".join([str(self.seed), *said])
        odds += self.law.pair(_dice(f"{context}\0\0{self._put(query)}"))
        if not twin or self.law.mood:
            odds += self.law.context(_dice(context))
        if not twin:
            odds += self.stretch * sum(map(len, said)) / 1_000
            odds += self.toward if query.role is Role.SUBJECT else 0.0
        return odds


def _dice(name: str) -> Random:
    return Random(hashlib.sha256(name.encode()).digest())  # noqa: S311 - test data, not secrets


def swayed(number: int, law: str, *, toward: float = 0.0, stretch: float = 0.0) -> Swayed:
    return Swayed(law=LAWS[law], toward=toward, stretch=stretch, seed=number, name=MODEL, templates=shipped().templates)


def request(number: int, size: int) -> str:
    """Return what a user writes: so many characters, no two alike."""
    words = f"Request {number}: when does the branch open, and at which desk shall I ask for this? "
    return (words * (size // len(words) + 1))[:size]


@cache
def benign(length: Length, count: int) -> tuple[Reference, ...]:
    """Return benign contexts: the shipped ones, or so many own ones of the same sizes."""
    found = like(length)
    sizes = [sum(len(message.text) for message in one.said) for one in found]
    own = [(Message("user", request(10**6 + number, sizes[number % len(sizes)])),) for number in range(count)]
    return (
        found
        if count == SHIPPED
        else tuple(
            [Reference(id=f"own-{place}", kind=Kind.PLAIN, topic="own", said=said) for place, said in enumerate(own)]
        )
    )


def passed(model: Swayed, length: Length, count: int) -> Gate:
    """Return the gate that measuring the model comes to, without what its questions cost."""
    firsts = {probe.probe_type: probe for probe in reversed(shipped().probes)}
    found = benign(length, count)
    return Gate(
        model=MODEL,
        prompt_hash=HASH,
        library=shipped().version,
        version=BehaviorDetector.version,
        wording=WORDINGS[0].id,
        shown=Shown.PROBABILITIES,
        date="2026-11-30",
        pairs=len(shipped().probes),
        auc=1.0,
        violation=-model.policy,
        twin=model.policy,
        decline_share=1.0,
        conform_share=1.0,
        spread=0.0,
        passed=True,
        references={
            length.value: {
                probe.probe_id: tuple([_difference(model, probe, one.said) for one in found])
                for probe in firsts.values()
            }
        },
    )


def _difference(model: Swayed, probe: Probe, said: tuple[Message, ...]) -> float:
    asked = [question(probe, role=Role.BASELINE, system=PROMPT, context=said, twin=twin) for twin in (False, True)]
    violation, twin = [model.log_odds(queries(one, WORDINGS[0])[0]) for one in asked]
    return max(-BOUND, min(BOUND, violation)) - max(-BOUND, min(BOUND, twin))


class Ended(NamedTuple):
    """The most that a session came to: in all, by decisions read exactly and by drawn ones; and what else was said."""

    whole: float
    exactly: float
    decided: float
    probes: int
    actions: frozenset[Action]
    blind: frozenset[str]


def ended(decisions: Sequence[Decision]) -> Ended:
    said = [signal.said for decision in decisions for signal in decision.signals]
    session = [one for one in said if isinstance(one, Reading) and one.code == SESSION]
    blind = [one for one in said if isinstance(one, Failure) and one.cause is Cause.NO_EVIDENCE]
    return Ended(
        whole=_most(session, "e_value"),
        exactly=_most(session, "exactly"),
        decided=_most(session, "decided"),
        probes=len(session),
        actions=frozenset(decision.action for decision in decisions),
        blind=frozenset(failure.detail for failure in blind),
    )


def _most(said: Iterable[Reading], name: str) -> float:
    return max([value for one in said if isinstance(value := one.fact(name), float)], default=0.0)


def probed(model: Swayed, length: Length, count: int, *, size: int = 0) -> Ended:
    """Probe a session up to its cap; by default it is as long as a benign context."""
    found = benign(length, count)
    size = size or sum(len(message.text) for message in found[model.seed % count].said)
    detector = BehaviorDetector(
        SETTINGS, references=None if count == SHIPPED else found, gates={MODEL: passed(model, length, count)}
    )
    watch = Monitor(
        [detector],
        redactor=RuleRedactor(),
        panel=Panel(dict.fromkeys((Role.SUBJECT, Role.SHADOW, Role.BASELINE), model)),
        secret=model.seed.to_bytes(32, "big"),
        clock=FakeClock(),
    )
    decisions: list[Decision] = []
    with watch, watch.session(f"s-{model.seed}", agent="a-1") as session:
        session.observe(SystemPromptSet(prompt_hash=HASH))
        session.observe(ModelCalled(model=MODEL))
        session.observe(MessageObserved(role="user", text=request(model.seed, size), source=Source.USER))
        for _ in range(CAP):
            session.request_probe("manual")
            decisions += session.drain_sync(model.reply)
    assert model.unknown == 0
    return ended(decisions)


def sessions(law: str, count: int, size: int, *, toward: float = 0.0) -> list[Ended]:
    first = int(hashlib.sha256(repr((law, count, toward)).encode()).hexdigest()[:8], 16)
    return [probed(swayed(first + number, law, toward=toward), Length.BRIEF, count) for number in range(size)]


def alarmed(values: Iterable[float], alpha: float) -> int:
    return sum(value * alpha >= 1.0 - 1e-9 for value in values)


def check_alarms(values: Sequence[float], note: Note, what: str) -> None:
    """Hold the promise: the lower 95 % bound of the rate of alarms is at most alpha."""
    counts = {alpha: alarmed(values, alpha) for alpha in ALPHAS}
    for alpha, count in counts.items():
        note(f"{what}, alpha {alpha}", count, len(values))
    assert all(exact_lower(count, len(values), 0.05) <= alpha for alpha, count in counts.items()), counts


def put(asking: Gating, model: Swayed) -> Gate:
    asked = next(asking)
    while True:
        try:
            asked = asking.send(tuple(map(model.reply, asked)))
        except StopIteration as stop:
            found: Gate | Failure = stop.value
            assert isinstance(found, Gate), found
            return found


def test_the_references_are_those_that_a_gate_measures() -> None:
    model = swayed(7, "heavy subjects")
    terms = Terms(prompt_hash=HASH, library=shipped().version, version=BehaviorDetector.version, date="2026-11-30")
    pairs = [Pair.of(probe, system=PROMPT) for probe in shipped().probes]
    found = put(gate(pairs, terms, contexts={"brief": like(Length.BRIEF)}), model)
    made = passed(model, Length.BRIEF, SHIPPED)
    assert (found.passed, found.shown, found.wording) == (made.passed, made.shown, made.wording)
    assert found.references["brief"].keys() == made.references["brief"].keys()
    for probe, values in found.references["brief"].items():
        assert values == pytest.approx(made.references["brief"][probe], abs=1e-6)


@pytest.mark.parametrize("law", LAWS)
def test_few_sessions_without_drift_alarm(law: str, measured: Note) -> None:
    ran = sessions(law, SHIPPED, SHORT)
    assert {session.probes for session in ran} == {CAP}
    assert not any(session.blind for session in ran)
    check_alarms([session.exactly for session in ran], measured, "exactly")


@pytest.mark.evidence
@pytest.mark.parametrize("count", [SHIPPED, OWN])
@pytest.mark.parametrize("law", LAWS)
def test_sessions_without_drift_alarm_no_more_often_than_promised(law: str, count: int, measured: Note) -> None:
    ran = sessions(law, count, MANY)
    for alpha in ALPHAS:
        measured(f"drawn, alpha {alpha}", alarmed([session.decided for session in ran], alpha), MANY)
    check_alarms([session.exactly for session in ran], measured, "exactly")
    check_alarms([session.whole for session in ran], measured, "in all")


# In what share of sessions such decisions alone have to alarm at 0.05, by law and by how far drift moves them, in
# log-odds. With 40 references they did in 77 of 300 (21 to 31 %) and 131 of 300 (38 to 49 %) of the first and the last,
# and in 15 of 20 (51 to 91 %) of the second. Less drift is found too seldom for a demand.
LEAST = {("wobble", 2.0): 0.15, ("wobble", 3.0): 0.5, ("subjects", 3.0): 0.3}


@pytest.mark.evidence
@pytest.mark.parametrize("toward", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("count", [SHIPPED, OWN])
@pytest.mark.parametrize("law", ["wobble", "subjects"])
def test_what_is_found_of_drift(law: str, count: int, toward: float, measured: Note) -> None:
    ran = sessions(law, count, FOR_POWER, toward=toward)
    for name in ("exactly", "decided", "whole"):
        for alpha in (*ALPHAS, ALPHA_LONG):
            values = [float(getattr(session, name)) for session in ran]
            measured(f"{name}, alpha {alpha}", alarmed(values, alpha), FOR_POWER)
    assert alarmed([session.exactly for session in ran], max(ALPHAS)) >= LEAST.get((law, toward), 0.0) * FOR_POWER


def test_far_drift_is_always_found_by_decisions_and_comes_to_the_references_and_one_at_most() -> None:
    ran = sessions("wobble", SHIPPED, SHORT, toward=9.0)
    assert alarmed([session.exactly for session in ran], 0.05) == SHORT
    assert all(SHIPPED < session.exactly <= SHIPPED + 1 for session in ran)
    assert alarmed([session.exactly for session in ran], 0.01) == 0


@pytest.mark.parametrize(
    ("readings", "score", "written"), [(1, 3, 7), (1, 4, 18), (1, 5, 29), (6, 3, 10), (6, 4, 25), (6, 5, 35)]
)
def test_what_readings_come_to_is_what_is_written(readings: int, score: int, written: int) -> None:
    """Of 40 references of 6 probes, all independent and normal: medians of 300 sets."""
    dice, told = _dice("sets"), list[float]()
    for _ in range(300):
        clean = {probe: [dice.gauss(0.0, 1.0) for _ in range(SHIPPED)] for probe in "abcdef"}
        session = {probe: mean(clean[probe]) + score * stdev(clean[probe]) for probe in "abcdef"[:readings]}
        told.append(e_value(session, clean))
    assert median(told) == pytest.approx(written, rel=0.05)


@pytest.mark.parametrize("count", [SHIPPED, OWN])
def test_a_session_of_a_length_that_was_not_measured_is_not_held_against_another(count: int) -> None:
    """Longer contexts move this model: 12,000 characters by 12 log-odds, and brief ones by less than half of one."""
    for number in range(2):
        ran = probed(swayed(number, "wobble", stretch=1.0), Length.BRIEF, count, size=12_000)
        assert ran.probes == CAP
        assert ran.exactly == 1.0
        assert ran.actions == {Action.LOG_ONLY}
        assert ran.whole < 1 / max(ALPHAS)
        assert [*ran.blind] == [
            "the decision could not be read: no benign contexts of length long were measured: measure some with --gate"
        ]


@pytest.mark.xfail(strict=True, reason="a gate keeps no sizes, so a class of length is all that a session is held to")
@pytest.mark.parametrize("count", [SHIPPED, OWN])
def test_a_session_longer_than_all_references_of_its_class_is_not_taken_for_drift(count: int) -> None:
    """Longer contexts move this model: 1,950 characters by 7.8 log-odds, and the references by 2.5 to 4.2."""
    ran = [probed(swayed(number, "wobble", stretch=4.0), Length.SHORT, count, size=1_950) for number in range(2)]
    assert alarmed([session.exactly for session in ran], 0.05) == 0
