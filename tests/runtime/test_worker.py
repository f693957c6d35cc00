from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

import anyio
import pytest

from theodolite.core.event import TurnEnded
from theodolite.core.inquiry import Role
from theodolite.core.policy import Decision, Policy
from theodolite.core.reading import Cause, Failure
from theodolite.core.store import verify
from theodolite.runtime.drive import Panel
from theodolite.runtime.monitor import Monitor
from theodolite.runtime.worker import Worker
from theodolite.stores.memory import MemoryStore
from theodolite.testing.fakes import AskingDetector, ScriptedModel


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 5.0
    while not condition():
        assert time.monotonic() < deadline, "it never came about"
        time.sleep(0.005)


def settled(instrument: Monitor) -> int:
    return sum(session.coverage().events.get("InquirySettled", 0) for session in instrument.sessions)


def until_settled(instrument: Monitor, count: int) -> None:
    until(lambda: settled(instrument) == count)


def test_a_worker_on_a_thread_settles_what_is_open_and_what_is_opened_later(answered: Callable[..., Monitor]) -> None:
    store = MemoryStore()
    instrument = answered(ScriptedModel("no"), store=store)
    sessions = [instrument.session(f"s-{n}") for n in range(5)]
    for session in sessions:
        session.request_probe("before")
    worker = Worker(instrument, interval=0.002)
    worker.start()
    try:
        until_settled(instrument, 5)
        sessions[3].request_probe("meanwhile")
        until_settled(instrument, 6)
    finally:
        worker.stop()
    assert all(thread.name != "theodolite-worker" for thread in threading.enumerate())
    assert verify(store).intact


def test_a_worker_may_be_started_again(answered: Callable[..., Monitor]) -> None:
    instrument = answered(ScriptedModel("no"))
    session = instrument.session("s-1")
    worker = Worker(instrument, interval=0.002)
    for count in (1, 2):
        session.request_probe("r")
        worker.start()
        until_settled(instrument, count)
        worker.stop()


def test_stopping_gives_what_is_under_way_time_to_come_to_its_end(answered: Callable[..., Monitor]) -> None:
    instrument = answered(ScriptedModel("no", delay=0.05))
    worker = Worker(instrument, interval=0.002)
    instrument.session("s-1").request_probe("r")
    worker.start(patience=5.0)
    worker.stop()
    assert settled(instrument) == 1


def test_what_outlasts_the_patience_stays_open_and_is_abandoned_when_its_session_closes(
    answered: Callable[..., Monitor],
) -> None:
    instrument = answered(ScriptedModel("never", delay=math.inf))
    session = instrument.session("s-1")
    session.request_probe("r")
    worker = Worker(instrument, interval=0.002)
    worker.start(patience=0.05)
    began = time.monotonic()
    worker.stop()
    assert time.monotonic() - began < 3.0
    assert (session.waiting, session.due) == (1, True)
    [decision] = session.close()
    [failure] = [signal.said for signal in decision.signals]
    assert isinstance(failure, Failure)
    assert failure.cause is Cause.ABANDONED


def test_a_model_that_hangs_is_timed_out_and_the_worker_goes_on(answered: Callable[..., Monitor]) -> None:
    instrument = answered(ScriptedModel("never", delay=math.inf), timeout=0.02)
    worker = Worker(instrument, interval=0.002)
    worker.start()
    try:
        for count in (1, 2):
            instrument.session(f"s-{count}").request_probe("r")
            until_settled(instrument, count)
    finally:
        worker.stop()


def test_an_inquiry_whose_time_has_not_come_keeps_no_other_waiting(answered: Callable[..., Monitor]) -> None:
    later = AskingDetector(name="later", not_before=1e9)
    instrument = answered(ScriptedModel("no"), later, AskingDetector())
    for n in range(3):
        instrument.session(f"s-{n}").request_probe("r")
    worker = Worker(instrument, concurrency=1, interval=0.002)
    worker.start()
    try:
        until_settled(instrument, 3)
    finally:
        worker.stop()
    assert [session.waiting for session in instrument.sessions] == [1, 1, 1]


def test_no_more_sessions_are_drained_at_once_than_it_is_told(answered: Callable[..., Monitor]) -> None:
    model = ScriptedModel("no", delay=0.005, max_concurrency=100)
    instrument = answered(model)
    for n in range(8):
        instrument.session(f"s-{n}").request_probe("r")
    worker = Worker(instrument, concurrency=2, interval=0.002)
    worker.start()
    try:
        until_settled(instrument, 8)
    finally:
        worker.stop()
    assert model.most_at_once <= 4  # two queries an inquiry


def test_a_session_that_closes_under_the_worker_does_not_stop_it(answered: Callable[..., Monitor]) -> None:
    instrument = answered(ScriptedModel("no", delay=0.02))
    worker = Worker(instrument, interval=0.002)
    closing = instrument.session("s-1")
    closing.request_probe("r")
    worker.start()
    try:
        until(lambda: not closing.due)
        assert len(closing.close()) == 1
        instrument.session("s-2").request_probe("r")
        until_settled(instrument, 1)
    finally:
        worker.stop()


def test_an_async_host_serves_it_in_a_task_group_of_its_own(answered: Callable[..., Monitor]) -> None:
    instrument = answered(ScriptedModel("no", delay=0.01))
    instrument.session("s-1").request_probe("r")
    worker = Worker(instrument, interval=0.002)

    async def host() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(worker.serve)
            await anyio.to_thread.run_sync(until_settled, instrument, 1)
            worker.stop()

    anyio.run(host)


@pytest.mark.parametrize("patience", [0.0, 2.0])
def test_to_serve_after_a_stop_settles_what_is_open_if_there_is_patience(
    patience: float, answered: Callable[..., Monitor]
) -> None:
    instrument = answered(ScriptedModel("no", delay=0.01))
    session = instrument.session("s-1")
    session.request_probe("r")
    worker = Worker(instrument)
    worker.stop()

    async def serve() -> None:
        await worker.serve(patience=patience)

    anyio.run(serve)
    assert session.waiting == (1 if patience == 0.0 else 0)


class Fragile(Policy, frozen=True):
    """A policy of a host's own that fails at one session."""

    def decide(self, **parts: object) -> Decision:
        if parts["session"] == "s-0" and parts["seq"] == 1:
            raise LookupError("no decision")
        return super().decide(**parts)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - passed on as they came


def test_a_session_that_cannot_be_drained_stops_no_other_and_says_so() -> None:
    panel = Panel(dict.fromkeys(Role, ScriptedModel("no")))
    instrument = Monitor([AskingDetector()], panel=panel, policy=Fragile())
    for n in range(3):
        instrument.session(f"s-{n}").request_probe("r")
    worker = Worker(instrument, concurrency=1, interval=0.002)
    worker.start()
    try:
        until_settled(instrument, 3)
        instrument.session("s-3").request_probe("r")
        until_settled(instrument, 4)
    finally:
        worker.stop()
    fragile = instrument.session("s-0")
    told = [signal.said for signal in fragile.observe(TurnEnded()).signals if isinstance(signal.said, Failure)]
    assert [(failure.detector, failure.cause) for failure in told] == [
        ("session", Cause.ERROR),
        ("worker", Cause.ERROR),
    ]
    assert fragile.waiting == 0


def test_only_sessions_with_open_inquiries_are_looked_at_the_one_that_waits_longest_first(
    answered: Callable[..., Monitor],
) -> None:
    instrument = answered(ScriptedModel("no"))
    sessions = [instrument.session(f"s-{n}") for n in range(4)]
    for place in (2, 1, 2):
        sessions[place].request_probe("r")
    assert [session.id for session in instrument.waiting] == ["s-2", "s-1"]
    sessions[2].drain_sync()
    assert [session.id for session in instrument.waiting] == ["s-1"]
    sessions[1].close()
    assert [session.id for session in instrument.waiting] == []
