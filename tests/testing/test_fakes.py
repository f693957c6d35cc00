"""The fakes do what they are told to, under a real Monitor."""

from __future__ import annotations

import math

import anyio
import pytest
from msgspec import Raw

from theodolite.core.errors import ModelError, StoreError
from theodolite.core.event import ToolCallProposed, TurnEnded
from theodolite.core.inquiry import Query, Role
from theodolite.core.policy import Mode, Policy
from theodolite.core.reading import Cause, Failure, Level
from theodolite.core.store import Entry, Kind
from theodolite.runtime.drive import Panel
from theodolite.runtime.monitor import Monitor
from theodolite.stores.memory import MemoryStore
from theodolite.testing.fakes import (
    AskingDetector,
    FakeClock,
    FakeHost,
    FakeIntegration,
    FullStore,
    NonsenseDetector,
    QuietDetector,
    RaisingDetector,
    RecordingRedactor,
    ScriptedDetector,
    ScriptedModel,
    ScriptedVerifier,
    SeededModel,
)

QUERY = Query(role=Role.JUDGE, prompt="Has the agent drifted?", options=("yes", "no"), samples=3)


def test_a_quiet_detector_sees_all_and_says_nothing() -> None:
    with Monitor([QuietDetector()]).session("s-1") as session:
        assert session.observe(TurnEnded()).signals == ()
        assert session.coverage().detectors[0].spoke == 0


def test_a_script_goes_by_seq_before_type() -> None:
    detector = ScriptedDetector(script={TurnEnded: 0.95, 1: 0.5, 2: Cause.NO_EVIDENCE})
    with Monitor([detector], clock=FakeClock()).session("s-1") as session:
        signals = [session.observe(TurnEnded()).signals[0] for _ in range(3)]
    assert [signal.level for signal in signals] == [Level.STRONG, Level.NOTABLE, Level.CLEAR]
    assert isinstance(signals[2].said, Failure)
    assert signals[2].said.cause is Cause.NO_EVIDENCE


@pytest.mark.parametrize(
    "broken", [RaisingDetector(), NonsenseDetector(), NonsenseDetector(nonsense=("?",)), NonsenseDetector(nonsense=7)]
)
def test_a_broken_detector_is_a_failure_and_no_exception(broken: RaisingDetector | NonsenseDetector) -> None:
    with Monitor([broken]).session("s-1") as session:
        (signal,) = session.observe(TurnEnded()).signals
    assert isinstance(signal.said, Failure)
    assert signal.said.detector == broken.name


def test_an_asking_detector_compares_the_subject_with_its_shadow() -> None:
    models = {Role.SUBJECT: ScriptedModel("yes"), Role.SHADOW: ScriptedModel("no")}
    with Monitor([AskingDetector(on=TurnEnded)], panel=Panel(models)).session("s-1") as session:
        assert session.observe(TurnEnded()).open == 1
        (decision,) = session.drain_sync()
    assert [signal.level for signal in decision.signals] == [Level.STRONG]
    assert [model.asked[0].role for model in models.values()] == [Role.SUBJECT, Role.SHADOW]


def test_a_probe_on_request_opens_the_default_inquiry() -> None:
    with Monitor([AskingDetector()]).session("s-1") as session:
        assert session.observe(TurnEnded()).open == 0
        assert session.request_probe("a test").open == 1


def test_a_verifier_settles_what_is_ambiguous() -> None:
    verifier = ScriptedVerifier(codes=frozenset({"scripted.scripted"}), verdict=0.0)
    monitor = Monitor(
        [ScriptedDetector(script={TurnEnded: 0.5})],
        verifiers=[verifier],
        panel=Panel({Role.JUDGE: ScriptedModel("no")}),
    )
    with monitor.session("s-1") as session:
        assert session.observe(TurnEnded()).open == 1
        (decision,) = session.drain_sync()
    assert [signal.said.detector for signal in decision.signals] == ["scripted_verifier"]
    assert not decision.signals[0].alarmed


def test_a_scripted_model_answers_in_turn_and_counts() -> None:
    model = ScriptedModel(["yes", ModelError("busy: ask later"), "no"])
    first = anyio.run(model.ask, QUERY)
    assert [draw.text for draw in first.draws] == ["yes"] * 3
    assert first.choice == (("yes", 1.0), ("no", 0.0))
    with pytest.raises(ModelError, match="busy"):
        anyio.run(model.ask, QUERY)
    assert [anyio.run(model.ask, QUERY).draws[0].text for _ in range(2)] == ["no", "no"]
    assert model.asked == (QUERY,) * 4
    assert model.most_at_once == 1


def test_a_script_may_be_a_function_but_not_empty() -> None:
    model = ScriptedModel(lambda query: query.prompt.upper())
    assert anyio.run(model.ask, QUERY).draws[0].text == "HAS THE AGENT DRIFTED?"
    with pytest.raises(ValueError, match="at least one answer"):
        ScriptedModel([])


def test_a_model_may_hang_until_it_is_given_up() -> None:
    model = ScriptedModel("late", delay=math.inf)
    models = {Role.SUBJECT: model, Role.SHADOW: ScriptedModel("no")}
    with Monitor([AskingDetector(on=TurnEnded)], panel=Panel(models, timeout=0.01)).session("s-1") as session:
        session.observe(TurnEnded())
        (decision,) = session.drain_sync()
    assert isinstance(decision.signals[0].said, Failure)
    assert decision.signals[0].said.cause in {Cause.TIMEOUT, Cause.ABANDONED}


def test_a_seeded_model_depends_on_its_seed_and_on_the_role_if_asked_to() -> None:
    query = Query(role=Role.SUBJECT, prompt="Pay?")
    other = Query(role=Role.SHADOW, prompt="Pay?")

    def said(model: SeededModel, asked: Query) -> str:
        return anyio.run(model.ask, asked).draws[0].text

    assert said(SeededModel(1), query) == said(SeededModel(1), other) != said(SeededModel(2), query)
    assert said(SeededModel(1, by_role=True), query) != said(SeededModel(1, by_role=True), other)
    with pytest.raises(ModelError):
        anyio.run(SeededModel(1, fails=1).ask, query)


def test_callers_at_once_are_counted() -> None:
    model = SeededModel(1, delay=0.001)

    async def three() -> None:
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(model.ask, QUERY)

    anyio.run(three)
    assert model.most_at_once == 3


def test_a_recording_redactor_sees_each_text_once() -> None:
    redactor = RecordingRedactor()
    failing = RaisingDetector(error=RuntimeError("account ES-77"))
    with Monitor([failing], redactor=redactor).session("s-1") as session:
        (signal,) = session.observe(TurnEnded()).signals
    assert redactor.texts == ["RuntimeError: account ES-77"]
    assert isinstance(signal.said, Failure)
    assert signal.said.detail == "[REDACTED:TEXT]"
    assert redactor.field("level", "high") == "[REDACTED:UNKNOWN_FIELD]"
    assert redactor.fields == [("level", "high")]


def test_a_full_store_keeps_what_it_has() -> None:
    store = FullStore(MemoryStore(), room=1)
    entry = Entry(session="s-1", at=0.0, kind=Kind.EVENT, payload=Raw(b"{}"))
    kept = store.append(entry, durable=True)
    with pytest.raises(StoreError, match="full"):
        store.append(entry)
    store.room += 1
    assert list(store.read()) == [kept]
    assert store.append(entry).n == 1


def test_a_clock_moves_on_when_it_is_looked_at() -> None:
    clock = FakeClock(10.0, step=0.5)
    assert [clock(), clock(), clock.now] == [10.0, 10.5, 11.0]


@pytest.mark.parametrize(("mode", "ran"), [(Mode.WARN, ["send_money"]), (Mode.ENFORCE, [])])
def test_a_host_runs_the_calls_that_are_not_refused(mode: Mode, ran: list[str]) -> None:
    host = FakeHost()
    policy = Policy(modes={"raising": mode}, fail_closed=True)
    broken = RaisingDetector(reads=frozenset({ToolCallProposed}))
    with Monitor([broken], policy=policy).session("s-1") as session:
        FakeIntegration(host, session.observe).run()
    assert host.ran == ran
    assert host.refused == [name for name in ["send_money"] if name not in ran]
