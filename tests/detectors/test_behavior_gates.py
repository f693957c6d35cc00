"""What a gate is worth to the evidence of a session: for its own model and policy, and for no other."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache, partial

import pytest
from msgspec.structs import replace

from theodolite.core.calibration import Calibration, Dataset
from theodolite.core.event import MessageObserved, ModelCalled, Source, SystemPromptSet, Tool, ToolsDeclared
from theodolite.core.gate import Gate, Shown
from theodolite.core.inquiry import Message, Query, Reply, Role
from theodolite.core.policy import Action, Decision
from theodolite.core.reading import Cause, Failure, Reading, Status
from theodolite.core.snapshot import StateSnapshot
from theodolite.detectors.behavior.detector import SESSION, BehaviorDetector, BehaviorSettings
from theodolite.detectors.behavior.gating import Gating, Pair, Terms, gate
from theodolite.detectors.behavior.library import shipped
from theodolite.detectors.behavior.references import Length, like
from theodolite.detectors.behavior.schedule import ScheduleSettings
from theodolite.redactors.rules import RuleRedactor
from theodolite.runtime.drive import Panel
from theodolite.runtime.monitor import Monitor
from theodolite.testing.fakes import PolicyModel
from theodolite.testing.fakes.policies import TAINT

PROMPT = "You help at a bank."
HASH = hashlib.sha256(PROMPT.encode()).hexdigest()
SETTINGS = BehaviorSettings(
    system=PROMPT,
    scheduled=False,
    schedule=ScheduleSettings(jitter_seconds=0.0, cooldown_window_seconds=0.0),
)
TEMPLATES = shipped().templates


policy = partial(PolicyModel, templates=TEMPLATES, name="m-1", anew=True)


def put(asking: Gating, model: PolicyModel) -> Gate:
    """Put what a gate asks to a model; return the gate."""
    queries = next(asking)
    while True:
        try:
            queries = asking.send(tuple(map(model.reply, queries)))
        except StopIteration as stop:
            found: Gate | Failure = stop.value
            assert isinstance(found, Gate), found
            return found


@cache
def measured(*, passes: bool = True) -> Gate:
    model = policy(wobble=0.5, scatter=0.5) if passes else policy(policy=0.0)
    pairs = [Pair.of(probe, system=PROMPT) for probe in shipped().probes]
    terms = Terms(prompt_hash=HASH, library=shipped().version, version=BehaviorDetector.version, date="2026-11-30")
    return put(
        gate(pairs, terms, contexts={length.value: like(length) for length in (Length.BRIEF, Length.SHORT)}), model
    )


def artefact(gates: Mapping[str, Gate]) -> Calibration:
    return Calibration(
        schema=1,
        id="test",
        status=Status.CALIBRATED,
        alpha=0.01,
        date="2026-11-30",
        dataset=Dataset(name="made"),
        versions={"behavior": BehaviorDetector.version},
        bands={SESSION: replace(BehaviorDetector().bands[SESSION], source="made")},
        agents=("a-1",),
        models=("m-1", "m-2"),
        gates=dict(gates),
    )


def probed(
    model: PolicyModel, gates: Mapping[str, Gate], *, times: int = 20, tainted: bool = True, own: str = "m-1"
) -> list[Decision]:
    detector = BehaviorDetector(SETTINGS, gates=gates)
    panel = Panel({Role.SUBJECT: model, Role.SHADOW: model, Role.BASELINE: model})
    monitor = Monitor(
        [detector], panel=panel, redactor=RuleRedactor(), calibration=artefact(gates), secret=bytes(range(32))
    )
    decisions: list[Decision] = []
    with monitor.session("s-1", agent="a-1") as session:
        session.observe(SystemPromptSet(prompt_hash=HASH))
        session.observe(ModelCalled(model=own))
        said = f"Please look at this. {TAINT if tainted else 'Fine.'} " + "And so on, as ever. " * 30
        session.observe(MessageObserved(role="user", text=said, source=Source.USER))
        for _ in range(times):
            session.request_probe("now")
            decisions += session.drain_sync()
    return decisions


def told(decision: Decision, code: str) -> Reading:
    (found,) = [signal.said for signal in decision.signals if signal.code == code]
    assert isinstance(found, Reading)
    return found


def single(decision: Decision) -> Reading:
    found = [signal.said for signal in decision.signals if isinstance(signal.said, Reading)]
    return next(said for said in found if said.fact("probe") is not None)


def status(decision: Decision) -> Status:
    return next(signal.status for signal in decision.signals if signal.code == SESSION)


def test_the_gate_that_these_tests_rest_on_passed_by_probabilities() -> None:
    assert measured().passed
    assert measured().shown is Shown.PROBABILITIES
    assert set(measured().references) == {"brief", "short"}
    assert not measured(passes=False).passed


def test_a_drifted_agent_whose_model_passed_is_restricted_by_what_it_decides_alone() -> None:
    # It does what a twin asks all but always. By decisions alone, one of three processes, strong evidence takes 17 of
    # the cap's 20 probes: one that fails a twin now and then is reviewed.
    now_and_then = probed(policy(policy=3.0, drift=9.0), {"m-1": measured()})
    assert now_and_then[-1].action is Action.ELEVATED_REVIEW
    decisions = probed(policy(policy=5.0, drift=15.0), {"m-1": measured()})
    last = told(decisions[-1], SESSION)
    assert decisions[-1].action is Action.RESTRICTED_MODE
    assert status(decisions[-1]) is Status.CALIBRATED
    exactly = last.fact("exactly")
    assert isinstance(exactly, float)
    assert exactly > 5.0  # 41 with 40 references at one of two lengths, 1 at the other
    first = single(decisions[0])
    assert (first.fact("gate"), first.fact("length")) == ("passed", "short")
    z = first.fact("z")
    assert isinstance(z, float)
    assert z > 3.0


def test_a_clean_session_of_it_comes_to_nothing() -> None:
    decisions = probed(policy(wobble=0.5, scatter=0.5), {"m-1": measured()}, tainted=False)
    assert {decision.action for decision in decisions} == {Action.LOG_ONLY}
    exactly = told(decisions[-1], SESSION).fact("exactly")
    assert isinstance(exactly, float)
    assert exactly < 20.0


def test_a_topic_or_a_longer_context_that_moves_probe_and_twin_alike_is_no_drift() -> None:
    for model in (policy(novelty=6.0), policy(novelty=-6.0)):
        decisions = probed(model, {"m-1": measured()})
        assert {decision.action for decision in decisions} == {Action.LOG_ONLY}


@pytest.mark.parametrize(
    "other",
    [{"prompt_hash": "0" * 64}, {"library": "0.1"}, {"version": "0.9"}],
    ids=["prompt", "library", "version"],
)
def test_a_gate_of_another_prompt_library_or_version_vouches_for_nothing(other: dict[str, str]) -> None:
    stale = replace(measured(), **other)
    decisions = probed(policy(drift=9.0), {"m-1": stale})
    assert decisions[-1].action is Action.ELEVATED_REVIEW
    assert status(decisions[-1]) is Status.UNCALIBRATED
    assert single(decisions[-1]).fact("gate") == "stale"
    assert single(decisions[-1]).fact("z") is None


def test_a_gate_judges_no_other_model() -> None:
    model = policy(drift=9.0)
    model.name = "m-2"
    decisions = probed(model, {"m-1": measured()}, own="m-2")
    assert single(decisions[-1]).fact("gate") == "none"
    assert single(decisions[-1]).fact("z") is None
    assert decisions[-1].action is Action.ELEVATED_REVIEW


def test_decisions_of_a_model_that_failed_are_no_evidence_and_not_no_drift() -> None:
    decisions = probed(policy(drift=9.0), {"m-1": measured(passes=False)})
    assert {decision.action for decision in decisions} == {Action.LOG_ONLY}
    failures = [signal.said for signal in decisions[0].signals if isinstance(signal.said, Failure)]
    assert [failure.cause for failure in failures] == [Cause.NO_EVIDENCE]
    assert "not measurable" in failures[0].detail
    assert single(decisions[-1]).score == 0.0
    assert told(decisions[-1], SESSION).fact("e_value") == 1.0


def test_what_such_a_model_does_is_evidence_all_the_same() -> None:
    decisions = probed(policy(policy=0.0, tainted_leak=1.0), {"m-1": measured(passes=False)})
    assert decisions[-1].action is Action.RESTRICTED_MODE


def test_the_evidence_is_of_one_model_and_a_surrogate_s_makes_way_for_the_own() -> None:
    detector = BehaviorDetector(SETTINGS)
    models = {name: policy(tainted_leak=1.0 if name == "m-2" else 0.0) for name in ("m-1", "m-2")}
    for name, model in models.items():
        model.name = name
    turn = {"now": "m-2"}

    class Switched:
        """One that another model answers for from some moment on."""

        max_concurrency = 4

        @property
        def name(self) -> str:
            return turn["now"]

        async def ask(self, query: Query) -> Reply:
            return models[turn["now"]].reply(query)

    panel = Panel({Role.SUBJECT: Switched(), Role.SHADOW: Switched()})
    with Monitor([detector], panel=panel, redactor=RuleRedactor(), secret=bytes(range(32))).session("s-1") as session:
        session.observe(ModelCalled(model="m-1"))
        session.observe(MessageObserved(role="user", text=f"Look. {TAINT}", source=Source.USER))
        decisions: list[Decision] = []
        for _ in range(4):
            session.request_probe("now")
            decisions += session.drain_sync()
        surrogate = told(decisions[-1], SESSION)
        assert surrogate.surrogate
        assert surrogate.score > 0.5
        turn["now"] = "m-1"
        session.request_probe("now")
        (decision,) = session.drain_sync()
        assert not told(decision, SESSION).surrogate
        assert told(decision, SESSION).fact("probes") == 1.0
        turn["now"] = "m-2"
        session.request_probe("now")
        (decision,) = session.drain_sync()
        assert SESSION not in {signal.code for signal in decision.signals}


def test_counts_are_shared_by_sessions_that_are_asked_alike_and_by_no_others() -> None:
    detector = BehaviorDetector(replace(SETTINGS, reuse=True))

    def names(text: str, tools: tuple[Tool, ...]) -> set[str]:
        asked: list[Query] = []
        with Monitor([detector], secret=bytes(range(32))).session("s-1") as session:
            session.observe(ToolsDeclared(tools=tools))
            session.observe(MessageObserved(role="user", text=text, source=Source.USER))
            session.request_probe("now")

            def ask(query: Query) -> Failure:
                asked.append(query)
                return Failure(detector="test", version="1", cause=Cause.TIMEOUT)

            session.drain_sync(ask)
        return {query.reuse for query in asked if query.reuse}

    plain = names("Hello", ())
    assert len(plain) == 2
    assert names("Good day", ()) == plain
    assert names("Hello", (Tool(name="delete_logs"),)).isdisjoint(plain)
    assert names("Hello " * 200, ()).isdisjoint(plain)


def test_a_snapshot_of_another_session_is_no_evidence_of_this_one() -> None:
    snapshot = StateSnapshot(session_id="s-9", timestamp=0.0, context_window=(Message("user", "Hi."),))
    with Monitor([BehaviorDetector(SETTINGS)], redactor=RuleRedactor()).session("s-1") as session:
        decision = session.request_probe("now", snapshot=snapshot)
    assert decision.open == 0
    (failure,) = [signal.said for signal in decision.signals]
    assert isinstance(failure, Failure)
    assert (failure.cause, failure.detail) == (Cause.NO_EVIDENCE, "the snapshot is of another session")
