"""A session that was suspended, or whose process was killed, goes on as if nothing had happened."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from theodolite.core.budget import Budget, Limit
from theodolite.core.calibration import Band
from theodolite.core.detector import AnyDetector
from theodolite.core.event import AnyHostEvent, ModelCalled, ToolCallProposed, TurnEnded
from theodolite.core.inquiry import Draw, Query, Reply
from theodolite.core.policy import Decision, Mode, Policy
from theodolite.core.reading import Cause
from theodolite.core.store import verify
from theodolite.detectors.trajectory.margin import MarginDetector
from theodolite.runtime.monitor import Monitor
from theodolite.stores.memory import MemoryStore
from theodolite.testing.fakes import AskingDetector, FakeClock, MemoryShelf, ScriptedDetector, ScriptedVerifier
from theodolite.testing.strategies import host_events

CODES = {"asking.differs", "asking.failure"}
BAND = Band(alert=0.5, strong=0.9, width=0.3, source="a test")

# What a host does, and what befalls its process: `killed` at once after an inquiry was opened, or `suspended` in order.
Step = AnyHostEvent | str
steps = st.lists(
    st.one_of(host_events(), st.sampled_from(["probe", "drain", "suspended", "killed", "killed"])), max_size=16
)


def instrument(store: MemoryStore, shelf: MemoryShelf | None) -> Monitor:
    detectors: list[AnyDetector] = [
        MarginDetector(),
        AskingDetector(samples=2),
        ScriptedDetector(script={ToolCallProposed: 0.6, TurnEnded: 0.95, 3: Cause.NO_EVIDENCE}, band=BAND),
    ]
    return Monitor(
        detectors,
        verifiers=[ScriptedVerifier(codes=frozenset({"scripted.scripted", "asking.differs"}), verdict=0.7)],
        policy=Policy(default=Mode.ENFORCE),
        store=store,
        shelf=shelf,
        budget=Budget(session=Limit(calls=30)),
        clock=FakeClock(100.0),
        capacity=5,
        secret=bytes(32),
    )


def answer(query: Query) -> Reply:
    return Reply(query=query, model="m-1", draws=(Draw(text=query.role.value),) * query.samples)


def lived(given_steps: list[Step], store: MemoryStore, shelf: MemoryShelf | None = None) -> list[Decision]:
    """Go through the steps; without a shelf nothing befalls the process."""
    session = instrument(store, shelf).session("s-1", agent="a-1")
    made = [session.observe(ModelCalled(model="m-1"))]
    for step in given_steps:
        if step == "probe":
            made.append(session.request_probe("r"))
        elif step == "drain":
            made.extend(session.drain_sync(answer))
        elif not isinstance(step, str):
            made.append(session.observe(step))
        elif shelf is not None and session.waiting:
            opened = made[-1].open > (made[-2].open if len(made) > 1 else 0)
            if step == "suspended":
                session.suspend()
            if step == "suspended" or opened:
                [session] = instrument(store, shelf).recover()
    made.extend(session.close())
    return made


@settings(max_examples=80)
@given(steps)
def test_whatever_befalls_a_process_later_decisions_are_equal(given_steps: list[Step]) -> None:
    whole, broken = MemoryStore(salts=lambda: "00" * 16), MemoryStore(salts=lambda: "00" * 16)
    shelf = MemoryShelf()
    assert lived(given_steps, broken, shelf) == lived(given_steps, whole)
    assert list(broken.read()) == list(whole.read())
    assert verify(broken).intact
    assert list(shelf.held()) == []


@settings(max_examples=40)
@given(st.lists(st.sampled_from(["probe", "drain", "close", "suspended", "killed"]), max_size=25), st.integers(1, 3))
def test_each_inquiry_is_settled_at_least_once_and_none_is_left_on_the_shelf(moves: list[str], names: int) -> None:
    """Sessions come, go and are killed; what was opened is settled in the end, abandoned or answered."""
    store, shelf = MemoryStore(), MemoryShelf()
    monitor = instrument(store, shelf)
    opened = 0
    for number, move in enumerate(moves):
        name = f"s-{number % names}"
        if move == "killed":
            monitor = instrument(store, shelf)
            monitor.recover()
        elif move == "probe":
            session = monitor.session(name)
            before = session.waiting
            opened += session.request_probe("r").open - before
        elif name in {session.id for session in monitor.sessions}:
            session = monitor.session(name)
            if move == "suspended":
                session.suspend()
                monitor.recover()
            else:
                session.drain_sync(answer) if move == "drain" else session.close()
    monitor.close()
    last = instrument(store, shelf)
    settled = [made for session in last.recover() for made in session.close()]
    assert all(made.signals for made in settled)
    told = [record for record in store.read() if set(record.codes) & CODES]
    assert len(told) >= opened
    assert list(shelf.held()) == []
    assert verify(store).intact
