"""A session with open inquiries outlives its process, where the instrument has a shelf."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable
from itertools import pairwise

import anyio
import msgspec
import pytest

from theodolite.core.budget import Budget, Limit
from theodolite.core.detector import AnyDetector
from theodolite.core.errors import EventError, StoreError
from theodolite.core.event import GoalStated, InquirySettled, MessageObserved, ToolCallProposed, TurnEnded
from theodolite.core.inquiry import Draw, Query, Reply, Role
from theodolite.core.policy import Decision, Policy
from theodolite.core.reading import Failure
from theodolite.core.shelf import Shelf
from theodolite.core.store import Kind, verify
from theodolite.redactors.rules import RuleRedactor
from theodolite.runtime.drive import Panel
from theodolite.runtime.ledger import KeptDecision
from theodolite.runtime.monitor import Monitor
from theodolite.runtime.saved import SCHEMA
from theodolite.runtime.session import Session
from theodolite.runtime.worker import Worker
from theodolite.stores.memory import MemoryStore
from theodolite.testing.fakes import (
    AskingDetector,
    FailingShelf,
    MemoryShelf,
    QuietDetector,
    ScriptedModel,
    Tally,
)

SECRET = bytes(range(32))


class CountingShelf(MemoryShelf):
    """Counts what it is asked to do."""

    def __init__(self) -> None:
        super().__init__()
        self.did: list[str] = []

    def keep(self, session: str, saved: bytes) -> None:
        self.did.append(f"keep {session}")
        super().keep(session, saved)

    def drop(self, session: str) -> None:
        self.did.append(f"drop {session}")
        super().drop(session)


def monitor(
    shelf: Shelf | None,
    *detectors: AnyDetector,
    store: MemoryStore | None = None,
    panel: Panel | None = None,
    policy: Policy | None = None,
    budget: Budget | None = None,
) -> Monitor:
    return Monitor(
        detectors or [AskingDetector(), QuietDetector()],
        shelf=shelf,
        store=store,
        panel=panel,
        policy=policy,
        budget=budget,
        redactor=RuleRedactor(),
        secret=SECRET,
    )


def answer(query: Query) -> Reply:
    return Reply(query=query, model="m-1", draws=(Draw(text="no"),))


def failures(decision: Decision) -> list[tuple[str, str]]:
    said = [signal.said for signal in decision.signals]
    return [(failure.detector, failure.detail) for failure in said if isinstance(failure, Failure)]


def names(saved: Iterable[bytes]) -> list[str]:
    return sorted(msgspec.json.decode(document)["session"] for document in saved)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 5.0
    while not condition():
        assert time.monotonic() < deadline, "it never came about"
        time.sleep(0.002)


# -- what is held, and when -------------------------------------------------------------------------------------------


def test_a_session_is_held_while_an_inquiry_is_open_and_no_longer() -> None:
    shelf = CountingShelf()
    session = monitor(shelf).session("s-1")
    session.observe(GoalStated(text="pay"))
    assert shelf.did == []
    session.request_probe("r")
    assert names(shelf.held()) == ["s-1"]
    session.observe(TurnEnded())
    session.request_probe("r")
    session.drain_sync(answer)
    assert list(shelf.held()) == []
    assert shelf.did == ["keep s-1", "keep s-1", "keep s-1", "drop s-1"]
    session.close()
    assert len(shelf.did) == 4


def test_a_session_without_inquiries_never_touches_the_shelf() -> None:
    shelf = CountingShelf()
    with monitor(shelf, QuietDetector()) as instrument, instrument.session("s-1") as session:
        for _ in range(5):
            session.observe(TurnEnded())
    assert shelf.did == []


def test_closing_a_session_abandons_its_inquiries_and_takes_it_off_the_shelf_once() -> None:
    shelf = CountingShelf()
    session = monitor(shelf).session("s-1")
    for _ in range(3):
        session.request_probe("r")
    shelf.did.clear()
    decisions = session.close()
    assert [said for decision in decisions for said in failures(decision)] == [
        ("asking", "the session was closed before the inquiry was settled")
    ] * 3
    assert (shelf.did, list(shelf.held())) == (["drop s-1"], [])


def test_a_monitor_that_closes_leaves_sessions_with_open_inquiries_on_the_shelf_and_closes_the_rest() -> None:
    shelf, store = MemoryShelf(), MemoryStore()
    with monitor(shelf, store=store) as instrument:
        instrument.session("open").request_probe("r")
        instrument.session("done").observe(TurnEnded())
    assert names(shelf.held()) == ["open"]
    assert [(record.session, record.kind) for record in store.read()] == [("done", Kind.COVERAGE)]
    assert instrument.sessions == ()


def test_a_suspended_session_takes_no_more_and_its_place_is_free() -> None:
    instrument = Monitor([AskingDetector()], shelf=MemoryShelf(), capacity=1)
    session = instrument.session("s-1")
    session.request_probe("r")
    session.suspend()
    session.suspend()
    assert (session.waiting, instrument.sessions, instrument.fleet.waiting) == (0, (), ())
    with pytest.raises(EventError, match="session s-1 is closed"):
        session.observe(TurnEnded())
    assert instrument.session("s-2").request_probe("r").open == 1


def test_without_a_shelf_to_suspend_is_to_close() -> None:
    store = MemoryStore()
    session = monitor(None, store=store).session("s-1")
    session.request_probe("r")
    session.suspend()
    assert [record.kind for record in store.read()] == [Kind.DECISION, Kind.COVERAGE]


# -- what comes back --------------------------------------------------------------------------------------------------


def test_a_recovered_session_goes_on_where_it_was() -> None:
    shelf, store = MemoryShelf(), MemoryStore()
    with monitor(shelf, store=store) as first:
        session = first.session("s-1", agent="a-1")
        session.observe(GoalStated(text="pay"))
        session.request_probe("r")
        session.observe(TurnEnded())
    second = monitor(shelf, store=store)
    [back] = second.recover()
    assert (back.id, back.agent, back.waiting, second.sessions) == ("s-1", "a-1", 1, (back,))
    assert [(decision.seq, decision.about) for decision in back.drain_sync(answer)] == [(3, 1)]
    assert back.observe(TurnEnded()).seq == 4
    assert list(shelf.held()) == []
    second.close()
    assert verify(store).intact


def test_a_killed_process_leaves_each_session_as_it_was_when_its_queue_last_changed() -> None:
    shelf = MemoryShelf()
    session = monitor(shelf).session("s-1")
    session.observe(GoalStated(text="pay"))
    session.request_probe("r")
    session.observe(MessageObserved(role="user", text="nobody saved this"))
    [back] = monitor(shelf).recover()  # the first monitor was never closed
    assert back.observe(TurnEnded()).seq == 2
    assert b"nobody saved this" not in back.save()


def test_to_recover_twice_gives_nothing_new_until_there_is_something_new() -> None:
    shelf = MemoryShelf()
    with monitor(shelf) as first:
        for n in range(3):
            first.session(f"s-{n}").request_probe("r")
    second = monitor(shelf)
    assert len(second.recover()) == 3
    assert second.recover() == ()
    second.session("s-0").drain_sync(answer)
    second.session("s-1").suspend()
    assert [session.id for session in second.recover()] == ["s-1"]
    second.close()
    assert names(shelf.held()) == ["s-1", "s-2"]


def test_a_session_that_is_open_already_is_left_alone() -> None:
    shelf = MemoryShelf()
    with monitor(shelf) as first:
        first.session("s-1").request_probe("r")
    second = monitor(shelf)
    anew = second.session("s-1")
    assert (second.recover(), second.session("s-1").waiting) == ((), 0)
    assert anew is second.session("s-1")


def test_inquiries_that_nobody_can_put_any_more_are_abandoned_once_and_leave_the_shelf() -> None:
    shelf, store = MemoryShelf(), MemoryStore()
    with monitor(shelf) as first:
        first.session("s-1").request_probe("r")
    with monitor(shelf, QuietDetector(), store=store) as second:
        [back] = second.recover()
        assert back.waiting == 0
        assert names(shelf.held()) == ["s-1"]  # nobody was told yet
        told = failures(back.observe(TurnEnded()))
        assert told == [("asking", "its inquiry about event 0 is lost: the asker is gone or of another version")]
        assert list(shelf.held()) == []
    assert [record.codes for record in store.read(code="asking.failure")] == [("asking.failure",)]
    assert monitor(shelf).recover() == ()


def test_what_was_lost_is_counted_and_off_the_shelf_where_the_session_closes_at_once() -> None:
    shelf = MemoryShelf()
    with monitor(shelf) as first:
        first.session("s-1").request_probe("r")
    [back] = monitor(shelf, QuietDetector()).recover()
    back.close()
    assert (back.coverage().failures, list(shelf.held())) == ({"asking": 1}, [])


def test_what_a_session_has_used_of_its_budget_comes_back_with_it() -> None:
    shelf, budget = MemoryShelf(), Budget(session=Limit(calls=8))
    with monitor(shelf, budget=budget) as first:
        session = first.session("s-1")
        session.request_probe("r")
        session.drain_sync(answer)
        session.request_probe("r")
    [back] = monitor(shelf, budget=budget).recover()
    [decision] = back.drain_sync(answer)
    assert failures(decision) == [
        ("asking", "the budget of this session allows no more: 8 of 8 calls are used, and 8 more are wanted")
    ]


# -- a worker meanwhile -----------------------------------------------------------------------------------------------


def test_a_session_suspended_under_the_worker_is_driven_again_after_it_was_recovered() -> None:
    """The slow answer to the first questions comes too late; those of the recovered session are put anew."""
    shelf, store = MemoryShelf(), MemoryStore()
    model = ScriptedModel("no", delay=0.05)
    instrument = monitor(shelf, store=store, panel=Panel(dict.fromkeys(Role, model)))
    worker = Worker(instrument, interval=0.002)
    session = instrument.session("s-1")
    session.request_probe("r")
    worker.start()
    try:
        until(lambda: len(model.asked) == 2)
        session.suspend()
        [back] = instrument.recover()
        until(lambda: back.waiting == 0)
    finally:
        worker.stop()
    assert len(model.asked) == 4
    assert back.coverage().events[InquirySettled.__name__] == 1
    assert session.coverage().events.get(InquirySettled.__name__) is None
    instrument.close()
    assert verify(store).intact
    assert list(shelf.held()) == []


def test_a_monitor_closed_under_the_worker_leaves_nothing_that_is_settled_twice() -> None:
    shelf, store = MemoryShelf(), MemoryStore()
    panel = Panel(dict.fromkeys(Role, ScriptedModel("no", delay=0.01)))
    first = monitor(shelf, store=store, panel=panel)
    sessions = [first.session(f"s-{n}") for n in range(8)]
    worker = Worker(first, concurrency=2, interval=0.002)
    for session in sessions:
        session.request_probe("r")
    worker.start()
    until(lambda: sum(session.waiting == 0 for session in sessions) >= 2)
    first.close()
    worker.stop()
    with monitor(shelf, store=store) as second:
        for back in second.recover():
            back.drain_sync(answer)
    decided = [
        msgspec.json.decode(record.payload, type=KeptDecision).decision
        for record in store.read()
        if record.kind is Kind.DECISION and record.payload is not None
    ]
    assert sorted(decision.session for decision in decided) == [f"s-{n}" for n in range(8)]
    assert list(shelf.held()) == []
    assert verify(store).intact


def test_a_drain_that_is_cancelled_leaves_the_session_on_the_shelf() -> None:
    shelf = MemoryShelf()
    session = monitor(shelf, panel=Panel(dict.fromkeys(Role, ScriptedModel("x", delay=math.inf)))).session("s-1")
    session.request_probe("r")

    async def give_up() -> None:
        with anyio.move_on_after(0.02):
            await session.drain()

    anyio.run(give_up)
    [back] = monitor(shelf).recover()
    assert [decision.about for decision in back.drain_sync(answer)] == [0]


def test_sessions_that_are_driven_on_several_threads_are_held_as_they_were_last() -> None:
    shelf = MemoryShelf()
    instrument = monitor(shelf)

    def work(name: str) -> None:
        session = instrument.session(name)
        for _ in range(10):
            session.request_probe("r")
            session.request_probe("r")
            session.drain_sync(answer)
        session.request_probe("last")

    threads = [threading.Thread(target=work, args=(f"s-{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    back = monitor(shelf).recover()
    assert sorted(session.id for session in back) == [f"s-{n}" for n in range(4)]
    assert [[decision.about for decision in session.drain_sync(answer)] for session in back] == [[40]] * 4


# -- shelves that fail ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [StoreError("the shelf is full: give it more room"), LookupError("a bug")])
def test_a_shelf_that_fails_is_a_failure_in_the_decision_and_in_the_coverage(fault: Exception) -> None:
    session = monitor(FailingShelf("keep", fault=fault)).session("s-1")
    decision = session.request_probe("r")
    [(owner, detail)] = failures(decision)
    assert (owner, decision.open) == ("shelf", 1)
    assert str(fault.args[0]) in detail
    assert session.coverage().failures == {"shelf": 1}


def test_a_shelf_that_failed_is_asked_again_with_the_next_event() -> None:
    shelf = FailingShelf("keep")
    session = monitor(shelf).session("s-1")
    assert len(failures(session.request_probe("r"))) == 1
    assert len(failures(session.observe(TurnEnded()))) == 1
    shelf.fails.clear()
    assert failures(session.observe(TurnEnded())) == []
    assert names(shelf.held()) == ["s-1"]
    shelf.fails = {"drop"}
    [settled] = session.drain_sync(answer)
    assert [owner for owner, _ in failures(settled)] == ["shelf"]
    shelf.fails.clear()
    session.observe(TurnEnded())
    assert list(shelf.held()) == []


@pytest.mark.parametrize("fail_closed", [True, False])
def test_a_call_whose_session_cannot_be_held_is_refused_only_where_the_operator_fails_closed(
    fail_closed: bool,  # noqa: FBT001 - a column of the table
) -> None:
    asking = AskingDetector(on=ToolCallProposed)
    session = monitor(FailingShelf("keep"), asking, policy=Policy(fail_closed=fail_closed)).session("s-1")
    assert session.observe(ToolCallProposed(tool="t")).allowed is not fail_closed
    assert session.observe(TurnEnded()).allowed


def test_a_session_that_cannot_be_held_when_the_monitor_closes_is_closed_and_the_others_are_held() -> None:
    class Picky(MemoryShelf):
        def keep(self, session: str, saved: bytes) -> None:
            if session == "s-1":
                raise StoreError("the shelf does not take s-1")
            super().keep(session, saved)

    shelf, store = Picky(), MemoryStore()
    instrument = monitor(shelf, store=store)
    for n in range(3):
        instrument.session(f"s-{n}").request_probe("r")
    with pytest.raises(StoreError, match="the shelf does not take s-1"):
        instrument.close()
    assert names(shelf.held()) == ["s-0", "s-2"]
    assert [(record.session, record.kind) for record in store.read() if record.kind is Kind.COVERAGE] == [
        ("s-1", Kind.COVERAGE)
    ]
    assert instrument.sessions == ()


def test_a_session_that_cannot_be_taken_off_the_shelf_says_so_when_it_closes() -> None:
    shelf = FailingShelf("drop")
    session = monitor(shelf).session("s-1")
    session.request_probe("r")
    with pytest.raises(StoreError, match="the shelf is full"):
        session.close()
    assert (session.coverage().failures["shelf"], names(shelf.held())) == (2, ["s-1"])


def test_what_can_be_read_of_a_shelf_is_recovered_before_it_is_an_error() -> None:
    shelf = FailingShelf("held")
    with monitor(shelf) as first:
        for n in range(2):
            first.session(f"s-{n}").request_probe("r")
    second = monitor(shelf)
    with pytest.raises(StoreError, match="the shelf is full"):
        second.recover()
    assert sorted(session.id for session in second.sessions) == ["s-0", "s-1"]
    shelf.fails.clear()
    assert second.recover() == ()


def test_a_session_of_another_form_is_an_error_after_all_others_are_back_and_stays_where_it_is() -> None:
    shelf = MemoryShelf()
    with monitor(shelf) as first:
        for n in range(3):
            first.session(f"s-{n}").request_probe("r")
    [first_saved, *_] = shelf.held()
    name = names([first_saved])[0]
    shelf.keep(name, first_saved.replace(f'"schema":{SCHEMA}'.encode(), b'"schema":1'))
    second = monitor(shelf)
    with pytest.raises(EventError, match=f"session {name} was saved in form 1, and this version reads {SCHEMA}"):
        second.recover()
    assert len(second.sessions) == 2
    second.close()
    assert names(shelf.held()) == ["s-0", "s-1", "s-2"]


def test_a_state_that_cannot_be_written_is_a_failure_of_the_shelf() -> None:
    class Holding(Tally, kw_only=True):
        thing: object = None

    class Unsavable(QuietDetector):
        def begin(self) -> Tally:
            return Holding(thing=object())

    instrument = monitor(MemoryShelf(), AskingDetector(), Unsavable())
    session = instrument.session("s-1")
    [(owner, _)] = failures(session.request_probe("r"))
    assert owner == "shelf"
    with pytest.raises(StoreError):
        instrument.close()
    assert instrument.sessions == ()


# -- closing, while inquiries are still opened ------------------------------------------------------------------------


@pytest.mark.parametrize("shelved", [False, True])
def test_an_asker_that_asks_again_while_its_session_closes_is_abandoned_and_holds_no_place(
    shelved: bool,  # noqa: FBT001 - a column of the table
) -> None:
    asking = [AskingDetector(on=TurnEnded), AskingDetector(on=InquirySettled, name="relentless")]
    instrument = Monitor(asking, capacity=2, shelf=MemoryShelf() if shelved else None, redactor=RuleRedactor())
    session = instrument.session("s-1")
    session.observe(TurnEnded())
    session.observe(TurnEnded())
    decisions = session.close()
    assert [failures(decision)[1] for decision in decisions] == [("relentless", "the session is being closed")] * 2
    assert instrument.fleet.waiting == ()
    other = instrument.session("s-2")
    assert [other.observe(TurnEnded()).open for _ in range(2)] == [1, 2]


def test_sessions_come_and_go_and_no_place_is_lost() -> None:
    instrument = Monitor([AskingDetector()], capacity=3, shelf=MemoryShelf())

    def come(name: str) -> Session:
        session = instrument.session(name)
        assert [session.request_probe("r").open for _ in range(3)] == [1, 2, 3]
        return session

    ways: list[Callable[[Session], object]] = [Session.close, Session.suspend, lambda gone: gone.drain_sync(answer)]
    for leave in ways:
        for before, after in pairwise(["a", "b", "c"]):
            leave(come(before))
            leave(come(after + before))
    assert instrument.fleet.waiting == ()
