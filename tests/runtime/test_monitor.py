from __future__ import annotations

import threading
import time
from collections.abc import Callable
from enum import StrEnum

import pytest

from theodolite.core.calibration import Band, Calibration, Dataset
from theodolite.core.errors import ConfigError, EventError, StoreError
from theodolite.core.event import (
    AnyEvent,
    CanaryChecked,
    CanaryVerdict,
    Channel,
    Cleared,
    ModelCalled,
    ProbeRequested,
    ToolCallProposed,
    TurnEnded,
)
from theodolite.core.intent import Effect
from theodolite.core.policy import Action, Decision, Mode, Policy
from theodolite.core.reading import Reading, Status
from theodolite.core.store import Entry, Kind, Record, Store, verify
from theodolite.runtime.drive import Panel
from theodolite.runtime.monitor import Monitor
from theodolite.runtime.saved import SCHEMA
from theodolite.stores.memory import MemoryStore
from theodolite.testing.fakes import (
    AskingDetector,
    FullStore,
    QuietDetector,
    ScriptedDetector,
    ScriptedVerifier,
)

HELD = CanaryChecked(contract="k-1", checked=Channel.USER_TEXT, verdict=CanaryVerdict.HOLDS)
BLIND = CanaryChecked(contract="k-1", checked=Channel.USER_TEXT, verdict=CanaryVerdict.VISIBILITY_BROKEN)
OTHER = CanaryChecked(contract="k-2", checked=Channel.MCP_RESULT, verdict=CanaryVerdict.HOLDS)


def test_a_session_is_opened_once_and_found_by_its_id() -> None:
    monitor = Monitor()
    first = monitor.session("s-1", agent="a-1")
    assert monitor.session("s-1") is first
    assert (first.id, first.agent) == ("s-1", "a-1")
    assert {session.id for session in monitor.sessions} == {"s-1"}


def test_a_session_that_was_closed_is_opened_anew() -> None:
    monitor = Monitor()
    first = monitor.session("s-1")
    first.observe(TurnEnded())
    first.close()
    assert monitor.session("s-1") is not first
    assert monitor.session("s-1").observe(TurnEnded()).seq == 0


def test_a_session_without_an_id_is_refused() -> None:
    with pytest.raises(ConfigError, match="a session needs an id: pass the host's own id of the conversation"):
        Monitor().session("")


def untyped(method: Callable[..., object]) -> Callable[..., object]:
    """Return a method as callers see it who ignore types."""
    return method


@pytest.mark.parametrize("junk", [5, b"s-1", None, ("s", 1)])
def test_an_id_that_is_no_text_is_refused_wherever_it_is_given(junk: object) -> None:
    monitor = Monitor()
    session, clear, forget = untyped(monitor.session), untyped(monitor.clear), untyped(monitor.forget)
    of_a_session = rf"the id of a session is text, not {type(junk).__name__}: pass str\(id\), the same for each of its"
    with pytest.raises(ConfigError, match=of_a_session):
        session(junk)
    with pytest.raises(ConfigError, match=rf"the id of an agent is text, not {type(junk).__name__}"):
        session("s-1", agent=junk)
    with pytest.raises(ConfigError, match=of_a_session):
        clear(junk, "o-1", "why")
    with pytest.raises(ConfigError, match=of_a_session):
        forget(junk)
    assert monitor.sessions == ()


def test_an_id_that_is_a_member_of_a_closed_list_is_its_text() -> None:
    class Conversation(StrEnum):
        SUPPORT = "support-1"

    monitor = Monitor()
    session = monitor.session(Conversation.SUPPORT)
    assert (type(session.id), session.id) == (str, "support-1")
    assert monitor.session("support-1") is session


def test_an_id_with_a_lone_surrogate_is_spelled_out_and_can_be_kept() -> None:
    store = MemoryStore()
    monitor = Monitor([ScriptedDetector(script={TurnEnded: 0.75})], store=store)
    session = monitor.session("s-\ud800", agent="a-\udfff")
    assert (session.id, session.agent) == (r"s-\ud800", r"a-\udfff")
    assert monitor.session("s-\ud800") is session
    session.observe(TurnEnded())
    monitor.clear("s-\ud800", "o-1", "why")
    session.close()
    assert monitor.restore(session.save()).id == session.id
    assert verify(store).intact


@pytest.mark.parametrize(
    ("detectors", "verifiers", "fault"),
    [
        ([QuietDetector(), QuietDetector()], [], "two detectors, fusions or verifiers are called quiet: leave one out"),
        (
            [QuietDetector(name="both")],
            [ScriptedVerifier(codes=frozenset({"x.y"}), name="both")],
            "two detectors, fusions or verifiers are called both",
        ),
        (
            [QuietDetector(bands={"margin.x": Band(alert=0.5)})],
            [],
            r"the detector quiet may not say the code margin\.x: it begins with its name",
        ),
    ],
)
def test_names_and_codes_are_told_apart(
    detectors: list[QuietDetector], verifiers: list[ScriptedVerifier], fault: str
) -> None:
    with pytest.raises(ConfigError, match=fault):
        Monitor(detectors, verifiers=verifiers)


def test_effects_are_taken_as_words_too_and_a_word_that_is_none_is_refused() -> None:
    monitor = Monitor(effects={"send": "write"})  # type: ignore[dict-item] # pyright: ignore[reportArgumentType] - as untyped callers do
    assert monitor.fleet.effects == {"send": Effect.WRITE}
    with pytest.raises(
        ConfigError, match="the effect of a tool: 'wirte' is not a valid Effect; it is one of read, write"
    ):
        Monitor(effects={"send": "wirte"})  # type: ignore[dict-item] # pyright: ignore[reportArgumentType] - as above


def test_a_panel_is_made_where_none_was_given_and_kept() -> None:
    panel = Panel()
    assert Monitor(panel=panel).fleet.panel is panel
    monitor = Monitor()
    assert monitor.fleet.panel is monitor.fleet.panel


def test_a_code_is_graded_for_whoever_may_say_it() -> None:
    detector = ScriptedDetector(script={})
    monitor = Monitor([detector], verifiers=[ScriptedVerifier(codes=frozenset({"scripted.scripted"}))])

    def reading(maker: str) -> Reading:
        return Reading(detector=maker, version="1", code="scripted.scripted", score=0.75)

    assert monitor.fleet.grade(reading("scripted")).alarmed
    assert monitor.fleet.grade(reading("scripted_verifier")).alarmed
    assert monitor.fleet.grade(reading("quiet")).code == "quiet.failure"


# -- canaries ---------------------------------------------------------------------------------------------------------


class Heard:
    """Remembers what it was told of canaries and clearings."""

    def __init__(self) -> None:
        self.events: list[AnyEvent] = []

    def __call__(self, event: AnyEvent) -> None:
        self.events.append(event)

    def of(self, session: str) -> list[tuple[Channel, CanaryVerdict]]:
        return [
            (event.checked, event.verdict)
            for event in self.events
            if isinstance(event, CanaryChecked) and event.session == session
        ]


def test_what_a_canary_contract_showed_is_told_to_every_session_and_to_each_new_one() -> None:
    heard = Heard()
    detector = ScriptedDetector(script={CanaryChecked: 0.75})
    monitor = Monitor([detector], recorder=heard)
    monitor.session("old")
    decisions = [*monitor.announce(HELD), *monitor.announce(BLIND), *monitor.announce(OTHER)]
    assert [(decision.session, decision.seq, len(decision.signals)) for decision in decisions] == [
        ("old", 0, 1),
        ("old", 1, 1),
        ("old", 2, 1),
    ]
    new = monitor.session("new")
    assert heard.of("old") == [
        (Channel.USER_TEXT, CanaryVerdict.HOLDS),
        (Channel.USER_TEXT, CanaryVerdict.VISIBILITY_BROKEN),
        (Channel.MCP_RESULT, CanaryVerdict.HOLDS),
    ]
    assert heard.of("new") == [
        (Channel.USER_TEXT, CanaryVerdict.VISIBILITY_BROKEN),
        (Channel.MCP_RESULT, CanaryVerdict.HOLDS),
    ]
    assert new.coverage().events == {"CanaryChecked": 2}
    assert new.observe(TurnEnded()).seq == 2


def test_sessions_that_close_while_they_are_told_keep_nobody_from_being_told() -> None:
    heard = Heard()
    monitor = Monitor(recorder=heard)
    doomed, lasting = monitor.session("doomed"), monitor.session("lasting")
    held_up = threading.Event()
    doomed._lock.acquire()  # pyright: ignore[reportPrivateUsage] - stands for a slow event on another thread
    told: list[tuple[Decision, ...]] = []

    def announce() -> None:
        held_up.set()
        told.append(monitor.announce(HELD))

    thread = threading.Thread(target=announce)
    thread.start()
    held_up.wait()
    time.sleep(0.02)
    doomed.close()
    doomed._lock.release()  # pyright: ignore[reportPrivateUsage] - as above
    thread.join()
    assert heard.of("lasting") == [(Channel.USER_TEXT, CanaryVerdict.HOLDS)]
    assert [decision.session for decision in told[0]][-1] == lasting.id


# -- closing ----------------------------------------------------------------------------------------------------------


def test_closing_closes_the_sessions_then_the_store_and_then_what_belongs_to_it() -> None:
    order: list[str] = []

    class Ordered(MemoryStore):
        def append(self, entry: Entry, *, durable: bool = False) -> Record:
            order.append(f"{entry.kind.value} of {entry.session}")
            return super().append(entry, durable=durable)

        def flush(self) -> None:
            order.append("flush")

    with Monitor(store=Ordered(), closing=[lambda: order.append("first"), lambda: order.append("last")]) as monitor:
        monitor.session("s-1")
        monitor.session("s-2")
    assert order == ["coverage of s-1", "coverage of s-2", "flush", "first", "last"]
    assert len(monitor.sessions) == 0


def test_a_session_that_cannot_be_closed_keeps_nothing_else_open() -> None:
    closed: list[str] = []
    store = FullStore(MemoryStore(), room=1)
    monitor = Monitor(store=store, closing=[lambda: closed.append("closed")])
    for n in range(3):
        monitor.session(f"s-{n}")
    with pytest.raises(StoreError, match="the store is full"):
        monitor.close()
    assert (closed, len(monitor.sessions)) == (["closed"], 0)
    assert [record.kind for record in store.read()] == [Kind.COVERAGE]


def test_a_monitor_without_a_store_closes_too() -> None:
    with Monitor([AskingDetector()]) as monitor:
        monitor.session("s-1").request_probe("r")
    assert len(monitor.sessions) == 0


def test_a_session_that_is_open_cannot_be_restored_over() -> None:
    monitor = Monitor()
    old = monitor.session("s-1")
    with pytest.raises(EventError, match="session s-1 is open: close it before it is restored"):
        monitor.restore(old.save())
    assert monitor.session("s-1") is old
    old.close()
    new = monitor.restore(old.save())
    old.close()
    assert monitor.session("s-1") is new


def test_what_is_no_saved_session_is_refused() -> None:
    monitor = Monitor()
    saved = monitor.session("s-1").save()
    restore = untyped(monitor.restore)
    for junk in (None, 5, b"", b"{}", b"[]", saved[:-1], b"\xff", saved.replace(b'"turn":0', b'"turn":"x"')):
        with pytest.raises(EventError, match=r"^this is not a saved session: .*; give what Session\.save returned"):
            restore(junk)
    with pytest.raises(EventError, match=f"session s-1 was saved in form 99, and this version reads {SCHEMA}"):
        monitor.restore(saved.replace(f'"schema":{SCHEMA}'.encode(), b'"schema":99'))


def test_clearing_is_kept_with_who_did_it_and_why() -> None:
    store = MemoryStore()
    heard = Heard()
    monitor = Monitor(store=store, recorder=heard)
    monitor.session("s-1")
    decision = monitor.clear("s-1", "o-1", "looked at it")
    [event] = heard.events
    assert isinstance(event, Cleared)
    assert (event.operator, event.reason, event.seq) == ("o-1", "looked at it", decision.seq)
    assert [record.kind for record in store.read()] == [Kind.EVENT, Kind.DECISION]


def test_the_queue_is_the_fleet_s_and_a_settled_inquiry_makes_room() -> None:
    monitor = Monitor([AskingDetector(on=ProbeRequested)], capacity=2)
    first, second = monitor.session("s-1"), monitor.session("s-2")
    assert [first.request_probe("r").open, second.request_probe("r").open] == [1, 1]
    assert second.request_probe("r").open == 1
    first.drain_sync()
    assert second.request_probe("r").open == 2


# -- restrictions -----------------------------------------------------------------------------------------------------


def restricting(store: Store | None = None) -> Monitor:
    fitted = Calibration(
        schema=1,
        id="fitted",
        status=Status.CALIBRATED,
        alpha=0.05,
        date="2026-11-29",
        dataset=Dataset(name="test"),
        versions={"scripted": "1"},
        bands={"scripted.scripted": Band(alert=0.5, strong=0.9)},
        agents=("a-1",),
        models=("m-1",),
    )
    detector = ScriptedDetector(script={TurnEnded: 1.0})
    policy = Policy(default=Mode.ENFORCE)
    return Monitor([detector], policy=policy, calibration=fitted, store=store)


def restrict(monitor: Monitor, session: str = "s-1") -> bytes:
    """Restrict a session and close it; return it as it was before."""
    opened = monitor.session(session, agent="a-1")
    opened.observe(ModelCalled(model="m-1"))
    saved = opened.save()
    assert opened.observe(TurnEnded()).action is Action.RESTRICTED_MODE
    opened.close()
    return saved


SEND = ToolCallProposed(tool="send_money", arguments={})


def test_closing_and_opening_a_session_again_does_not_lift_its_restriction() -> None:
    monitor = restricting()
    restrict(monitor)
    for _ in range(2):
        with monitor.session("s-1") as again:
            assert (set(again.restricted), again.observe(SEND).allowed) == ({"scripted"}, False)
    assert monitor.session("s-2").observe(SEND).allowed


def test_a_restriction_that_is_younger_than_what_is_restored_stands() -> None:
    monitor = restricting()
    assert not monitor.restore(restrict(monitor)).observe(SEND).allowed


def test_a_restriction_of_a_closed_session_is_cleared_and_that_is_kept() -> None:
    store = MemoryStore()
    monitor = restricting(store)
    restrict(monitor)
    before = len(list(store.read()))
    decision = monitor.clear("s-1", "o-1", "looked at it")
    assert (decision.session, decision.action) == ("s-1", Action.LOG_ONLY)
    assert [record.kind for record in store.read()][before:] == [Kind.EVENT, Kind.DECISION, Kind.COVERAGE]
    assert len(monitor.sessions) == 0
    assert monitor.session("s-1").observe(SEND).allowed
    assert verify(store).intact
    with pytest.raises(ConfigError, match="there is no open session 's-9', and no restriction of one that was closed"):
        monitor.clear("s-9", "o-1", "why")


def test_a_restriction_whose_end_cannot_be_kept_stands() -> None:
    store = FullStore(MemoryStore(), room=100)
    monitor = restricting(store)
    restrict(monitor)
    store.room = 0
    with pytest.raises(StoreError, match="the store is full"):
        monitor.clear("s-1", "o-1", "why")
    assert not monitor.session("s-1").observe(SEND).allowed


def test_a_restriction_may_be_forgotten_for_recordings() -> None:
    monitor = restricting()
    restrict(monitor)
    monitor.forget("s-1")
    assert monitor.session("s-1").observe(SEND).allowed


def test_a_session_is_not_given_to_another_agent() -> None:
    monitor = Monitor()
    session = monitor.session("s-1", agent="a-1")
    assert monitor.session("s-1", agent="a-1") is session
    with pytest.raises(ConfigError, match="session s-1 is open for the agent 'a-1', not 'a-2': give each agent's"):
        monitor.session("s-1", agent="a-2")


def test_a_monitor_that_is_closed_opens_and_clears_nothing_and_closes_once() -> None:
    closed: list[str] = []
    monitor = Monitor(closing=[lambda: closed.append("closed")])
    saved = monitor.session("s-1").save()
    monitor.close()
    monitor.close()
    for use in (
        lambda: monitor.session("s-1"),
        lambda: monitor.restore(saved),
        lambda: monitor.clear("s-1", "o-1", "why"),
    ):
        with pytest.raises(EventError, match="the monitor is closed: make another one"):
            use()
    assert closed == ["closed"]


def test_a_restored_session_is_told_what_was_announced_while_it_was_at_rest_and_that_alone() -> None:
    heard = Heard()
    monitor = Monitor(recorder=heard)
    session = monitor.session("s-1")
    monitor.announce(HELD)
    monitor.announce(OTHER)
    saved = session.save()
    session.close()
    monitor.announce(BLIND)
    restored = monitor.restore(saved)
    assert heard.of("s-1") == [(item.checked, item.verdict) for item in (HELD, OTHER, BLIND)]
    assert restored.observe(TurnEnded()).seq == 3
    monitor.announce(BLIND)
    assert len(heard.of("s-1")) == 4


def test_a_verdict_that_was_overtaken_is_not_told() -> None:
    heard = Heard()
    session = Monitor(recorder=heard).session("s-1")
    assert session.tell(BLIND, 2) is not None
    assert session.tell(HELD, 1) is None
    assert session.tell(OTHER, 1) is not None
    assert heard.of("s-1") == [(item.checked, item.verdict) for item in (BLIND, OTHER)]


def test_who_decides_is_told_by_the_bands_in_force() -> None:
    shown = Band(alert=0.5, acts=False, finds=False)
    detector = ScriptedDetector(script={}, band=shown)
    fitted = Calibration(
        schema=1,
        id="fitted",
        status=Status.REFERENCE,
        alpha=0.05,
        date="2026-11-29",
        dataset=Dataset(name="test"),
        versions={"scripted": "1"},
        bands={"scripted.scripted": Band(alert=0.5)},
    )
    decides = [
        Monitor([detector], calibration=calibration).session("s-1").coverage().detectors[0].decides
        for calibration in (None, fitted)
    ]
    assert decides == [False, True]
