"""Laws over generated sessions: nothing that comes later changes what was decided, and a session can be moved."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from theodolite.core.calibration import Band, Calibration, Dataset
from theodolite.core.detector import AnyDetector
from theodolite.core.event import AnyEvent, AnyHostEvent, ModelCalled, ToolCallProposed, TurnEnded, encode_event
from theodolite.core.inquiry import Draw, Query, Reply
from theodolite.core.policy import Decision, Mode, Policy
from theodolite.core.reading import Cause, Status
from theodolite.core.store import verify
from theodolite.detectors.trajectory.margin import MarginDetector
from theodolite.detectors.trajectory.shadow_memory import ShadowMemoryDetector
from theodolite.redactors.rules import RuleRedactor
from theodolite.runtime.monitor import Monitor
from theodolite.runtime.session import Session
from theodolite.stores.memory import MemoryStore
from theodolite.testing.fakes import AskingDetector, FakeClock, RaisingDetector, ScriptedDetector, ScriptedVerifier
from theodolite.testing.sessions import clean_session, hijacked_session, hostile_session, synthetic_session
from theodolite.testing.strategies import host_events

BAND = Band(alert=0.5, strong=0.9, width=0.3, source="a test")
FITTED = Calibration(
    schema=1,
    id="fitted",
    status=Status.CALIBRATED,
    alpha=0.05,
    date="2026-11-29",
    dataset=Dataset(name="test"),
    versions={"scripted": "1"},
    bands={"scripted.scripted": BAND},
    agents=("a-1",),
    models=("m-1",),
)

# What a host does: it shows an event, asks for a probe, or has the open inquiries settled.
Step = AnyHostEvent | str
steps = st.lists(st.one_of(host_events(), st.sampled_from(["probe", "drain"])), max_size=14)


def instrument(store: MemoryStore | None = None) -> Monitor:
    detectors: list[AnyDetector] = [
        MarginDetector(),
        ShadowMemoryDetector(),
        AskingDetector(),
        ScriptedDetector(script={ToolCallProposed: 0.6, TurnEnded: 0.95, 3: Cause.NO_EVIDENCE}),
        RaisingDetector(reads=frozenset({ModelCalled})),
    ]
    return Monitor(
        detectors,
        verifiers=[ScriptedVerifier(codes=frozenset({"scripted.scripted", "asking.differs"}), verdict=0.7)],
        policy=Policy(default=Mode.ENFORCE),
        store=store,
        redactor=RuleRedactor(),
        calibration=FITTED,
        clock=FakeClock(100.0),
        capacity=3,
    )


def answer(query: Query) -> Reply:
    return Reply(query=query, model="m-1", draws=(Draw(text=query.role.value),))


def do(session: Session, step: Step) -> list[Decision]:
    if step == "probe":
        return [session.request_probe("r")]
    if isinstance(step, str):
        return list(session.drain_sync(answer))
    return [session.observe(step)]


def lived(session: Session, given_steps: Sequence[Step]) -> list[list[Decision]]:
    return [do(session, step) for step in given_steps]


def opened(monitor: Monitor) -> Session:
    session = monitor.session("s-1", agent="a-1")
    session.observe(ModelCalled(model="m-1"))
    return session


@settings(max_examples=60)
@given(steps, st.integers(0, 14))
def test_a_longer_stream_never_changes_an_earlier_decision(given_steps: list[Step], cut: int) -> None:
    whole = lived(opened(instrument()), given_steps)
    prefix = lived(opened(instrument()), given_steps[:cut])
    assert prefix == whole[:cut]


@settings(max_examples=60)
@given(steps)
def test_decisions_are_numbered_in_order_and_each_is_about_an_event_that_came_before(given_steps: list[Step]) -> None:
    decisions = [decision for made in lived(opened(instrument()), given_steps) for decision in made]
    assert [decision.seq for decision in decisions] == list(range(1, len(decisions) + 1))
    assert all(0 <= decision.about <= decision.seq for decision in decisions)
    cited = [
        seq
        for decision in decisions
        for signal in decision.signals
        for item in getattr(signal.said, "evidence", ())
        for seq in item.seqs
        if seq > decision.seq
    ]
    assert cited == []


@settings(max_examples=40)
@given(steps, st.integers(0, 14))
def test_a_session_that_is_saved_and_restored_goes_on_as_if_nothing_had_happened(
    given_steps: list[Step], cut: int
) -> None:
    unmoved, moved = MemoryStore(salts=lambda: "00" * 16), MemoryStore(salts=lambda: "00" * 16)
    expected = lived(opened(instrument(unmoved)), given_steps)

    session = opened(instrument(moved))
    before = lived(session, given_steps[:cut])
    session = instrument(moved).restore(session.save())
    after = lived(session, given_steps[cut:])
    assert before + after == expected
    assert verify(moved).intact
    assert list(moved.read()) == list(unmoved.read())


@pytest.mark.parametrize(
    "events",
    [clean_session(), hijacked_session(), hostile_session(), synthetic_session(6, seed=3)],
    ids=["clean", "hijacked", "hostile", "synthetic"],
)
def test_a_session_may_be_saved_and_restored_at_every_event(events: tuple[AnyHostEvent, ...]) -> None:
    unmoved, moved = MemoryStore(salts=lambda: "00" * 16), MemoryStore(salts=lambda: "00" * 16)
    expected = lived(opened(instrument(unmoved)), events)
    session = opened(instrument(moved))
    found: list[list[Decision]] = []
    for event in events:
        saved = session.save()
        session = instrument(moved).restore(saved)
        assert sorted(session.save()) == sorted(saved)  # but for the order of sets
        found.append(do(session, event))
    assert found == expected
    assert session.coverage() == instrument().restore(session.save()).coverage()
    session.close()
    assert verify(moved).intact


@settings(max_examples=40)
@given(st.lists(host_events(), max_size=10))
def test_a_saved_session_holds_every_event_byte_for_byte(events: list[AnyHostEvent]) -> None:
    session = opened(instrument())
    for event in events:
        session.observe(event)
    window = msgspec.json.decode(session.save())["memory"]["window"]["events"]
    held = msgspec.json.decode(msgspec.json.encode(window), type=list[AnyEvent])
    assert [msgspec.json.encode(event) for event in held] == [encode_event(event) for event in held]
    assert len(held) == len(events) + 1


@settings(max_examples=60)
@given(steps)
def test_whatever_a_session_does_its_chain_is_intact_and_its_counts_add_up(given_steps: list[Step]) -> None:
    store = MemoryStore()
    session = opened(instrument(store))
    decisions = [decision for made in lived(session, given_steps) for decision in made]
    decisions.extend(session.close())
    coverage = session.coverage()
    assert verify(store).intact
    assert sum(coverage.events.values()) == len(decisions) + 1
    assert sum(coverage.channels.values()) == len(decisions) + 1
    assert session.waiting == 0
