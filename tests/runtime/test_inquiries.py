"""Inquiries of a session: opened, driven, settled as decisions of their own."""

from __future__ import annotations

import math
from collections.abc import Callable

import anyio
import pytest
from msgspec.structs import replace

from theodolite.core.calibration import Band, Calibration, Dataset
from theodolite.core.detector import Answer
from theodolite.core.errors import EventError, ModelError
from theodolite.core.event import Event, InquirySettled, ModelCalled, ProbeRequested, ToolCallProposed, TurnEnded
from theodolite.core.inquiry import Draw, Inquiry, Query, Reply, Role
from theodolite.core.policy import Action, Decision, Mode, Policy
from theodolite.core.reading import Cause, Failure, Reading, Status
from theodolite.core.store import verify
from theodolite.core.window import Window
from theodolite.redactors.rules import RuleRedactor
from theodolite.runtime.drive import Panel
from theodolite.runtime.monitor import Monitor
from theodolite.runtime.session import Session
from theodolite.stores.memory import MemoryStore
from theodolite.testing.fakes import (
    AskingDetector,
    FakeClock,
    Question,
    ScriptedDetector,
    ScriptedModel,
    ScriptedVerifier,
    SeededModel,
    Tally,
)


def drifted(query: Query) -> Reply:
    return Reply(query=query, model="m-1", draws=(Draw(text=query.role.value),) * query.samples)


def alike(query: Query) -> Reply:
    return Reply(query=query, model="m-1", draws=(Draw(text="no"),) * query.samples)


def said(decision: Decision) -> list[Reading | Failure]:
    return [signal.said for signal in decision.signals]


def test_a_settled_inquiry_is_a_decision_of_its_own_about_the_event_that_opened_it(
    answered: Callable[..., Monitor],
) -> None:
    session = answered(SeededModel(1, by_role=True), AskingDetector(on=ToolCallProposed)).session("s-1")
    session.observe(ModelCalled(model="seeded-model"))
    opener = session.observe(ToolCallProposed(tool="t"))
    between = session.observe(TurnEnded())
    [decision] = anyio.run(session.drain)
    assert (opener.open, between.open, decision.open) == (1, 1, 0)
    assert (decision.about, decision.seq) == (opener.seq, between.seq + 1)
    [reading] = said(decision)
    assert isinstance(reading, Reading)
    assert (reading.score, decision.action) == (1.0, Action.ELEVATED_REVIEW)
    assert session.coverage().events["InquirySettled"] == 1


def test_equal_answers_from_all_arms_are_no_drift(answered: Callable[..., Monitor]) -> None:
    session = answered(SeededModel(1)).session("s-1")
    session.request_probe("r")
    [decision] = anyio.run(session.drain)
    assert decision.action is Action.LOG_ONLY


def test_drain_may_be_for_one_event_only(answered: Callable[..., Monitor]) -> None:
    session = answered(SeededModel(1)).session("s-1")
    for _ in range(3):
        session.request_probe("r")

    async def drain() -> list[int]:
        first = await session.drain(about=1)
        rest = await session.drain()
        return [decision.about for decision in (*first, *rest)]

    assert anyio.run(drain) == [1, 0, 2]


@pytest.mark.parametrize("claim", [("asking", 0), ("asking", 5), ("nobody", 0)])
def test_an_inquiry_that_is_not_open_cannot_be_settled_and_nothing_changes(claim: tuple[str, int]) -> None:
    store = MemoryStore()
    session = Monitor([AskingDetector()], store=store, clock=FakeClock()).session("s-1")
    session.request_probe("r")
    session.drain_sync(alike)
    before, kept = session.save(), list(store.read())
    with pytest.raises(EventError, match=r"session s-1: no open inquiry of \w+ about event \d; it was settled before"):
        session.take(InquirySettled(asker=claim[0], about=claim[1], said=()))
    assert (session.save(), list(store.read())) == (before, kept)
    assert session.observe(TurnEnded()).seq == 2


@pytest.mark.parametrize("drains", [2, 5])
def test_concurrent_drains_drive_no_inquiry_twice(drains: int, answered: Callable[..., Monitor]) -> None:
    model = ScriptedModel("no", delay=0.002, max_concurrency=16)
    session = answered(model).session("s-1")
    for _ in range(6):
        session.request_probe("r")

    async def drain_at_once() -> list[Decision]:
        found: list[Decision] = []

        async def one() -> None:
            found.extend(await session.drain())

        async with anyio.create_task_group() as group:
            for _ in range(drains):
                group.start_soon(one)
        return found

    decisions = anyio.run(drain_at_once)
    assert sorted(decision.about for decision in decisions) == list(range(6))
    assert len(model.asked) == 12
    assert session.waiting == 0


def test_a_drain_that_is_cancelled_leaves_the_inquiry_open(answered: Callable[..., Monitor]) -> None:
    model = ScriptedModel("no", delay=math.inf)
    session = answered(model).session("s-1")
    session.request_probe("r")

    async def give_up() -> None:
        with anyio.move_on_after(0.02):
            await session.drain()

    anyio.run(give_up)
    assert (session.waiting, session.due, len(model.asked)) == (1, True, 2)
    [decision] = session.drain_sync(alike)
    assert (decision.about, session.waiting) == (0, 0)


class Twice(AskingDetector):
    """Opens two inquiries at once, as a library of probes does."""

    def update(self, state: Tally, event: Event, window: Window) -> Answer:
        [opened] = super().update(state, event, window)
        assert isinstance(opened, Inquiry)
        return (opened, replace(opened, subject=Question(prompt="May a refund be paid at all?", seq=event.seq)))


class Cached(AskingDetector):
    """Opens the very same inquiry twice, and again at each event."""

    opened = Inquiry(asker="asking", version="1", about=0, subject=Question(prompt="?", seq=0))

    def update(self, state: Tally, event: Event, window: Window) -> Answer:
        del state, event, window
        return (self.opened, self.opened)


def test_an_inquiry_that_is_opened_more_than_once_is_settled_as_often() -> None:
    session = Monitor([Cached()], capacity=4).session("s-1")
    assert [session.request_probe("r").open for _ in range(3)] == [2, 4, 4]
    assert [decision.open for decision in session.drain_sync(alike)] == [3, 2, 1, 0]
    assert session.request_probe("r").open == 2


class Held:
    """A model that answers the first queries only when it is released, and all others at once."""

    name = "held"
    max_concurrency = 8

    def __init__(self, first: int) -> None:
        self.asked, self.released = anyio.Event(), anyio.Event()
        self.left = first

    async def ask(self, query: Query) -> Reply:
        self.left -= 1
        if self.left >= 0:
            if self.left == 0:
                self.asked.set()
            await self.released.wait()
        return alike(query)


def test_of_two_inquiries_about_one_event_each_is_settled_once() -> None:
    """The slow one is cancelled after the quick one was settled: it is open again, and it alone."""

    async def work() -> Session:
        held = Held(first=2)
        session = Monitor([Twice()], panel=Panel(dict.fromkeys(Role, held))).session("s-1")
        assert session.request_probe("r").open == 2
        async with anyio.create_task_group() as group:
            group.start_soon(session.drain)
            await held.asked.wait()
            [decision] = await session.drain()
            assert (decision.about, decision.open) == (0, 1)
            group.cancel_scope.cancel()
        return session

    session = anyio.run(work)
    assert (session.waiting, session.due) == (1, True)
    asked: list[str] = []

    def answer(query: Query) -> Reply:
        asked.append(query.prompt)
        return alike(query)

    assert [decision.open for decision in session.drain_sync(answer)] == [0]
    assert set(asked) == {AskingDetector().prompt}


class Urgent(Twice):
    """Of its two inquiries about one event the second is driven first."""

    def update(self, state: Tally, event: Event, window: Window) -> Answer:
        first, second = super().update(state, event, window)
        assert isinstance(first, Inquiry)
        return (replace(first, not_before=1.0), second)


def test_of_two_inquiries_about_one_event_the_one_that_is_driven_is_settled_from_outside() -> None:
    session = Monitor([Urgent()]).session("s-1")
    session.request_probe("r")
    asked: list[str] = []

    def settled_meanwhile(query: Query) -> Reply:
        if not asked:
            session.take(InquirySettled(asker="asking", about=0, said=()))
        asked.append(query.prompt)
        return alike(query)

    assert len(session.drain_sync(settled_meanwhile)) == 1  # what was driven first comes too late
    assert asked == ["May a refund be paid at all?"] * 2 + [AskingDetector().prompt] * 2
    assert session.waiting == 0


def test_a_session_that_is_closed_under_a_drain_abandons_the_inquiry_and_the_drain_just_ends() -> None:
    drained: list[Decision] = []

    async def work() -> Session:
        held = Held(first=2)
        session = Monitor([AskingDetector()], panel=Panel(dict.fromkeys(Role, held))).session("s-1")
        session.request_probe("r")

        async def drain() -> None:
            drained.extend(await session.drain())

        async with anyio.create_task_group() as group:
            group.start_soon(drain)
            await held.asked.wait()
            [decision] = session.close()
            assert [answer.cause for answer in said(decision) if isinstance(answer, Failure)] == [Cause.ABANDONED]
            held.released.set()
        return session

    session = anyio.run(work)
    assert drained == []
    assert session.coverage().events["InquirySettled"] == 1


def test_the_inquiry_whose_time_comes_first_is_put_first_and_none_before_its_time(
    answered: Callable[..., Monitor],
) -> None:
    clock = FakeClock(100.0)
    later, soon = AskingDetector(name="later", not_before=100.04), AskingDetector(name="soon", not_before=100.01)
    now = AskingDetector(name="now")
    session = answered(ScriptedModel("no"), later, soon, now, clock=clock).session("s-1")
    session.request_probe("r")

    async def drain() -> tuple[list[str], float]:
        due = await session.drain(due=True)
        assert [answer.detector for decision in due for answer in said(decision)] == ["now"]
        assert (session.due, session.waiting) == (False, 2)
        began = anyio.current_time()
        rest = await session.drain()
        return [answer.detector for decision in rest for answer in said(decision)], anyio.current_time() - began

    names, took = anyio.run(drain)
    assert names == ["soon", "later"]
    assert took >= 0.04


def test_drain_sync_works_outside_and_inside_a_running_loop(answered: Callable[..., Monitor]) -> None:
    session = answered(SeededModel(1)).session("s-1")
    session.request_probe("r")
    assert [decision.about for decision in session.drain_sync()] == [0]

    async def within() -> tuple[Decision, ...]:
        await anyio.lowlevel.checkpoint()
        return session.drain_sync()

    session.request_probe("r")
    assert [decision.about for decision in anyio.run(within)] == [2]


def test_a_script_that_raises_leaves_the_inquiry_open() -> None:
    session = Monitor([AskingDetector()]).session("s-1")
    session.request_probe("r")

    def refuses(query: Query) -> Reply:
        raise ModelError(query.prompt)

    with pytest.raises(ModelError):
        session.drain_sync(refuses)
    assert session.waiting == 1
    assert len(session.drain_sync(alike)) == 1


def test_without_models_an_inquiry_fails_visibly() -> None:
    session = Monitor([AskingDetector()]).session("s-1")
    session.request_probe("r")
    [decision] = session.drain_sync()
    [failure] = said(decision)
    assert isinstance(failure, Failure)
    assert failure.cause is Cause.ERROR


def test_a_model_that_hangs_fails_visibly_in_decision_record_and_coverage(answered: Callable[..., Monitor]) -> None:
    store = MemoryStore()
    hanging = ScriptedModel("never", delay=math.inf)
    session = answered(hanging, timeout=0.02, store=store).session("s-1")
    session.request_probe("r")
    [decision] = session.drain_sync()
    [failure] = said(decision)
    assert isinstance(failure, Failure)
    assert (failure.detector, failure.cause) == ("asking", Cause.TIMEOUT)
    assert [record.codes for record in store.read(session="s-1")] == [("asking.failure",)]
    assert session.coverage().failures == {"asking": 1}
    assert verify(store).intact


# -- second opinions --------------------------------------------------------------------------------------------------

UNSURE = Band(alert=0.5, width=0.5, source="a test: everything is ambiguous")
VERIFIER = ScriptedVerifier(codes=frozenset({"asking.differs"}), verdict=0.0)


def answering(ask: Callable[[Query], Reply | Failure], *, verdict: float | Cause = 0.0) -> tuple[Session, Decision]:
    verifier = ScriptedVerifier(codes=frozenset({"asking.differs"}), verdict=verdict)
    session = Monitor([AskingDetector(band=UNSURE)], verifiers=[verifier]).session("s-1")
    session.request_probe("r")
    [decision] = session.drain_sync(ask)
    return session, decision


def test_an_ambiguous_answer_is_settled_by_a_verifier_in_the_same_inquiry() -> None:
    session, decision = answering(drifted)
    [reading] = said(decision)
    assert isinstance(reading, Reading)
    assert (reading.detector, reading.code, reading.score) == ("scripted_verifier", "asking.differs", 0.0)
    assert (session.waiting, decision.open) == (0, 0)


def test_a_verifier_that_fails_leaves_the_reading_and_shows_its_failure() -> None:
    _, decision = answering(drifted, verdict=Cause.MALFORMED)
    reading, failure = said(decision)
    assert isinstance(reading, Reading)
    assert isinstance(failure, Failure)
    assert (reading.detector, failure.detector, failure.cause) == ("asking", "scripted_verifier", Cause.MALFORMED)


def test_an_ambiguous_signal_of_a_detector_opens_an_inquiry_of_the_verifier() -> None:
    unsure = ScriptedDetector(script={TurnEnded: 0.5})
    verifier = ScriptedVerifier(codes=frozenset({"scripted.scripted"}), verdict=1.0)
    session = Monitor([unsure], verifiers=[verifier]).session("s-1")
    opener = session.observe(TurnEnded())
    assert (opener.signals[0].ambiguous, opener.open) == (True, 1)
    [decision] = session.drain_sync(alike)
    assert (decision.about, decision.open) == (opener.seq, 0)
    [signal] = decision.signals
    assert (signal.said.detector, signal.ambiguous, signal.alarmed) == ("scripted_verifier", False, True)


def test_a_verifier_s_own_answer_is_not_put_to_a_verifier_again(answered: Callable[..., Monitor]) -> None:
    unsure = ScriptedDetector(script={TurnEnded: 0.5})
    verifier = ScriptedVerifier(codes=frozenset({"scripted.scripted"}), verdict=0.5)
    model = ScriptedModel("no")
    session = answered(model, unsure, verifiers=[verifier]).session("s-1")
    session.observe(TurnEnded())
    [decision] = session.drain_sync()
    assert decision.signals[0].ambiguous
    assert (session.waiting, len(model.asked)) == (0, 1)


@pytest.mark.parametrize(
    "answer",
    [
        Reading(detector="asking", version="1", code="asking.unheard_of", score=1.0),
        Reading(detector="asking", version="1", code="scripted.scripted", score=1.0),
        Reading(detector="nobody", version="1", code="asking.differs", score=1.0),
        Reading(detector="scripted_verifier", version="1", code="scripted.scripted", score=1.0),
    ],
)
def test_a_settled_reading_with_a_code_that_is_not_its_maker_s_is_a_failure(answer: Reading) -> None:
    asking, other = AskingDetector(), ScriptedDetector(script={})
    session = Monitor([asking, other], verifiers=[VERIFIER]).session("s-1")
    session.request_probe("r")
    decision = session.take(InquirySettled(asker="asking", about=0, said=(answer,)))
    [failure] = said(decision)
    assert isinstance(failure, Failure)
    assert (failure.detector, failure.cause) == (answer.detector, Cause.MALFORMED)
    assert decision.action is Action.LOG_ONLY


def test_a_verifier_for_a_code_without_a_band_harms_nothing() -> None:
    verifier = ScriptedVerifier(codes=frozenset({"asking.differs", "nobody.says"}), verdict=0.0)
    session = Monitor([AskingDetector()], verifiers=[verifier]).session("s-1")
    session.request_probe("r")
    assert len(session.drain_sync(drifted)) == 1


def test_a_verifier_that_restricts_does_so_in_the_name_of_the_detector() -> None:
    fitted = Calibration(
        schema=1,
        id="fitted",
        status=Status.CALIBRATED,
        alpha=0.05,
        date="2026-11-29",
        dataset=Dataset(name="test"),
        versions={"scripted_verifier": "1"},
        bands={"scripted.scripted": Band(alert=0.5, strong=0.9, width=0.1)},
        agents=("a-1",),
        models=("m-1",),
    )
    unsure = ScriptedDetector(script={TurnEnded: 0.5}, band=UNSURE)
    judge = ScriptedVerifier(codes=frozenset({"scripted.scripted"}), verdict=1.0)
    policy = Policy(modes={"scripted": Mode.ENFORCE, "scripted_verifier": Mode.OBSERVE})
    session = Monitor([unsure], verifiers=[judge], policy=policy, calibration=fitted).session("s-1", agent="a-1")
    session.observe(TurnEnded())
    [restricting] = session.drain_sync(alike)
    assert (restricting.action, restricting.mode) == (Action.RESTRICTED_MODE, Mode.ENFORCE)
    assert session.restricted == {"scripted"}
    assert not session.observe(ToolCallProposed(tool="send_money", arguments={})).allowed


def test_a_planted_canary_is_a_secret_from_then_on() -> None:
    session = Monitor([AskingDetector()], redactor=RuleRedactor()).session("s-1")
    session.request_probe("r")
    token = "canary-4711"
    failure = Failure(detector="asking", version="1", cause=Cause.ERROR, detail=f"said {token}")
    decision = session.take(InquirySettled(asker="asking", about=0, said=(failure,), canaries=(token,)))
    assert [getattr(answer, "detail", "") for answer in said(decision)] == ["said [REDACTED:CANARY]"]
    assert token not in repr(decision)


def test_a_probe_that_is_asked_for_is_an_event_like_any_other() -> None:
    session = Monitor([AskingDetector(on=ProbeRequested)]).session("s-1")
    assert session.request_probe("an operator wants to know").open == 1
    assert session.coverage().events == {"ProbeRequested": 1}
