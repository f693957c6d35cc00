"""Nothing here can change what belongs to the host, and nothing that the host does later changes what was seen."""

from __future__ import annotations

import copy
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw, Struct, UnsetType

from theodolite.core.arguments import is_sequence
from theodolite.core.calibration import Band
from theodolite.core.detector import Answer, Feature
from theodolite.core.event import (
    AnyEvent,
    Event,
    GoalStated,
    Tool,
    ToolCallProposed,
    ToolsDeclared,
    TurnEnded,
    encode_event,
)
from theodolite.core.inquiry import Draw, Query, Reply
from theodolite.core.policy import Policy
from theodolite.core.store import verify
from theodolite.core.window import Window
from theodolite.detectors.trajectory.margin import MarginDetector
from theodolite.runtime.monitor import Monitor
from theodolite.stores.memory import MemoryStore
from theodolite.testing.fakes import AskingDetector, ScriptedDetector, Tally
from theodolite.testing.sessions import every_event
from theodolite.testing.strategies import arguments, host_events


class Vandal:
    """Tries to change whatever it can reach."""

    name = "vandal"
    version = "1"
    needs: frozenset[Feature] = frozenset(Feature)
    reads: frozenset[type[Event]] = frozenset(get_args(AnyEvent))
    bands: Mapping[str, Band] = {}

    def __init__(self) -> None:
        self.changed: list[str] = []

    def begin(self) -> Tally:
        return Tally()

    def update(self, state: Tally, event: Event, window: Window) -> Answer:
        del state
        for value in (event, window.call):
            for name in value.__struct_fields__ if isinstance(value, Struct) else ():
                try:
                    setattr(value, name, "vandalized")
                except AttributeError:
                    continue
                self.changed.append(name)
        if isinstance(event, ToolCallProposed):
            values = event.values()
            if isinstance(values, dict):
                values["to"] = "vandalized"
        return ()


@settings(max_examples=60)
@given(arguments())
def test_what_the_host_does_to_its_arguments_later_changes_nothing(given_arguments: dict[str, object]) -> None:
    given_arguments["list"] = ["kept"]
    session = Monitor([MarginDetector()]).session("s-1")
    session.observe(ToolCallProposed(tool="t", arguments=given_arguments))
    before = session.save()
    nested = given_arguments["list"]
    assert isinstance(nested, list)
    nested.append("changed")
    given_arguments.clear()
    given_arguments["to"] = "changed"
    assert session.save() == before
    assert b"kept" in before


@settings(max_examples=60)
@given(host_events(), arguments())
def test_no_detector_changes_an_event_or_the_host_s_objects(
    event: AnyEvent, given_arguments: dict[str, object]
) -> None:
    vandal = Vandal()
    session = Monitor([vandal]).session("s-1")
    untouched = repr(given_arguments)
    call = ToolCallProposed(tool="t", arguments=given_arguments)
    lines = [encode_event(event), encode_event(call)]
    session.take(event)
    session.take(call)
    assert [encode_event(event), encode_event(call)] == lines
    assert repr(given_arguments) == untouched
    assert vandal.changed == []


@pytest.mark.parametrize("event", every_event(), ids=lambda event: type(event).__name__)
def test_events_are_frozen_all_the_way_down(event: AnyEvent) -> None:
    def parts(value: object) -> list[Struct]:
        if isinstance(value, Struct):
            return [value, *(part for name in value.__struct_fields__ for part in parts(getattr(value, name)))]
        if is_sequence(value):
            assert value.__class__ is tuple
            return [part for item in value for part in parts(item)]
        assert isinstance(value, str | int | float | Raw | UnsetType | None)
        return []

    found = parts(event)
    assert found[0] is event
    assert all(part.__struct_config__.frozen for part in found)


def test_a_tool_list_that_the_host_changes_later_is_not_what_was_declared() -> None:
    session = Monitor().session("s-1")
    tools = [Tool(name="send_money", read_only=True)]
    declared = ToolsDeclared(tools=tuple(tools))
    session.observe(declared)
    tools[0] = Tool(name="send_money", destructive=True)
    assert b'"send_money":"read"' in session.save()


def test_a_decision_is_the_host_s_own_and_frozen() -> None:
    session = Monitor([ScriptedDetector(script={TurnEnded: 0.75})]).session("s-1")
    decision = session.observe(TurnEnded())
    kept = copy.deepcopy(decision)
    with pytest.raises(AttributeError):
        setattr(decision, "allowed", True)  # noqa: B010 - what a type checker refuses
    session.observe(TurnEnded())
    assert decision == kept


# -- threads ----------------------------------------------------------------------------------------------------------

THREADS, EACH = 8, 60


def answer(query: Query) -> Reply:
    return Reply(query=query, model="m-1", draws=(Draw(text=query.role.value),))


@pytest.mark.parametrize("sessions", [1, 5])
def test_events_from_many_threads_lose_no_number_and_break_no_chain(sessions: int) -> None:
    store = MemoryStore()
    detectors = [ScriptedDetector(script={TurnEnded: 0.75}), ScriptedDetector(script={}, name="quiet")]
    monitor = Monitor([*detectors, AskingDetector(), MarginDetector()], store=store, policy=Policy(hold=True))
    start = threading.Barrier(THREADS)

    def observe(thread: int) -> dict[str, list[int]]:
        start.wait()
        seqs: dict[str, list[int]] = {}
        for n in range(EACH):
            session = monitor.session(f"s-{(thread + n) % sessions}")
            made = [session.observe(GoalStated(text=f"{thread}") if n % 3 else TurnEnded())]
            if n % 10 == 0:
                made.append(session.request_probe("r"))
                made.extend(session.drain_sync(answer))
            seqs.setdefault(session.id, []).extend(decision.seq for decision in made)
        return seqs

    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(observe, range(THREADS)))
    opened = monitor.sessions
    total = 0
    for session in opened:
        own = [thread.get(session.id, []) for thread in found]
        # Of one thread's own events each comes after the one before; settled inquiries come whenever they do.
        assert sorted(seq for seqs in own for seq in seqs) == list(range(sum(map(len, own))))
        assert sum(session.coverage().events.values()) == sum(map(len, own))
        total += sum(map(len, own))
    assert len(opened) == sessions
    assert total >= THREADS * EACH
    monitor.close()
    assert verify(store).intact


def test_sessions_opened_at_once_by_many_threads_are_one() -> None:
    monitor = Monitor()
    start = threading.Barrier(THREADS)

    def open_it(_: int) -> int:
        start.wait()
        return id(monitor.session("s-1"))

    with ThreadPoolExecutor(THREADS) as pool:
        assert len(set(pool.map(open_it, range(THREADS)))) == 1


def test_a_session_is_saved_whole_while_others_write_to_it() -> None:
    monitor = Monitor([ScriptedDetector(script={})])
    session = monitor.session("s-1")
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            session.observe(GoalStated(text="x"))

    threads = [threading.Thread(target=write) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(30):
            saved = msgspec.json.decode(session.save())
            memory = saved["memory"]
            taken = memory["window"]["first"] + len(memory["window"]["events"])
            assert taken == memory["tally"]["quiet"] == saved["states"]["scripted"]["state"]["seen"]
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@given(st.integers(0, 3))
def test_what_is_closed_stays_closed_for_every_thread(late: int) -> None:
    monitor = Monitor()
    session = monitor.session("s-1")
    with ThreadPoolExecutor(4) as pool:
        closing = [pool.submit(session.close) for _ in range(4)]
    assert [done.result() for done in closing] == [(), (), (), ()]
    assert monitor.session(f"s-{late}") is not session
