"""What `observe` does with an event: place, folds, detectors, policy, restriction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

import pytest
from msgspec.structs import replace

from theodolite.core.calibration import Band, Calibration, Dataset
from theodolite.core.detector import Answer, Feature
from theodolite.core.errors import ConfigError, EventError
from theodolite.core.event import (
    AnyEvent,
    AnyHostEvent,
    ApprovalGiven,
    CanaryChecked,
    CanaryVerdict,
    Channel,
    Cleared,
    Event,
    GoalStated,
    InquirySettled,
    MessageObserved,
    ModelCalled,
    ProbeRequested,
    SessionEnded,
    Source,
    Tool,
    ToolCallProposed,
    ToolResultObserved,
    ToolsDeclared,
    TurnEnded,
    encode_event,
)
from theodolite.core.inquiry import Draw, Query, Reply
from theodolite.core.intent import Call, Effect
from theodolite.core.policy import Action, Decision, Mode, Policy
from theodolite.core.reading import Cause, Failure, Level, Reading, Status
from theodolite.core.window import Window
from theodolite.runtime.monitor import Monitor
from theodolite.testing.fakes import AskingDetector, FakeClock, ScriptedDetector, Tally
from theodolite.testing.playback import Playback
from theodolite.testing.sessions import clean_session, every_event, stamped

BAND = Band(alert=0.5, strong=0.9, source="a test")


def calibrated(detector: str = "scripted", *, status: Status = Status.CALIBRATED) -> Calibration:
    return Calibration(
        schema=1,
        id="fitted",
        status=status,
        alpha=0.05,
        date="2026-11-29",
        dataset=Dataset(name="test"),
        versions={detector: "1"},
        bands={f"{detector}.scripted": BAND, f"{detector}.differs": BAND},
        agents=("a-1",),
        models=("m-1",),
    )


class Seen:
    """Remembers what it was shown."""

    version = "1"
    needs: frozenset[Feature] = frozenset()
    bands: Mapping[str, Band] = {}

    def __init__(self, *reads: type[Event], name: str = "seen") -> None:
        self.name = name
        self.reads = frozenset(reads or get_args(AnyEvent))
        self.events: list[Event] = []
        self.windows: list[tuple[bool, Call | None]] = []

    def begin(self) -> Tally:
        return Tally()

    def update(self, state: Tally, event: Event, window: Window) -> Answer:
        del state
        self.events.append(event)
        self.windows.append((window.goal, window.call))
        return ()


def test_an_event_is_stamped_with_its_place_and_time_and_the_given_one_stays_as_it_is() -> None:
    seen = Seen()
    session = Monitor([seen], clock=FakeClock(100.0, step=1.0)).session("s-1", agent="a-1")
    event = GoalStated(text="pay")
    before = encode_event(event)
    decisions = [session.observe(event), session.observe(replace(event, at=7.5, session="other", seq=99))]
    assert [(d.session, d.seq, d.about, d.allowed) for d in decisions] == [("s-1", 0, 0, True), ("s-1", 1, 1, True)]
    stamps = [(e.session, e.agent, e.seq, e.at, e.turn) for e in seen.events]
    assert stamps == [("s-1", "a-1", 0, 100.0, 0), ("s-1", "a-1", 1, 7.5, 0)]
    assert encode_event(event) == before


def test_turns_are_counted_where_nobody_counted_them() -> None:
    seen = Seen()
    session = Monitor([seen]).session("s-1")
    events: list[AnyHostEvent] = [
        GoalStated(text="a"),
        TurnEnded(),
        GoalStated(text="b"),
        TurnEnded(turn=6),
        GoalStated(text="c"),
        TurnEnded(turn=2),
        GoalStated(text="d"),
    ]
    for event in events:
        session.observe(event)
    assert [event.turn for event in seen.events] == [0, 0, 1, 6, 7, 2, 8]


@pytest.mark.parametrize(
    "event",
    [
        ProbeRequested(reason="r"),
        InquirySettled(asker="a", about=0, said=()),
        CanaryChecked(contract="k", checked=Channel.USER_TEXT, verdict=CanaryVerdict.HOLDS),
        Cleared(operator="o", reason="r"),
        "not an event",
        None,
    ],
)
def test_a_host_may_not_bring_own_events_nor_anything_else(event: AnyHostEvent) -> None:
    session = Monitor().session("s-1")
    with pytest.raises(EventError, match=r"s-1: .* is no event that a host may bring: .*; own events come from"):
        session.observe(event)
    assert session.observe(TurnEnded()).seq == 0


def test_after_close_nothing_is_observed() -> None:
    session = Monitor().session("s-1")
    session.close()
    with pytest.raises(EventError, match=r"session s-1 is closed: open it again with monitor\.session\('s-1'\)"):
        session.observe(TurnEnded())
    with pytest.raises(EventError, match="is closed"):
        session.request_probe("doubt")


def test_a_detector_is_shown_what_it_reads_in_order_and_nothing_else() -> None:
    calls, everything = Seen(ToolCallProposed, TurnEnded), Seen(name="everything")
    session = Monitor([calls, everything]).session("s-1")
    for event in clean_session():
        session.observe(event)
    assert [type(event) for event in everything.events] == [type(event) for event in clean_session()]
    assert calls.events == [event for event in everything.events if isinstance(event, ToolCallProposed | TurnEnded)]


def test_each_session_has_a_state_of_its_own() -> None:
    detector = ScriptedDetector(script={1: 0.75})
    monitor = Monitor([detector])
    first, second = monitor.session("s-1"), monitor.session("s-2")
    first.observe(TurnEnded())
    assert not second.observe(TurnEnded()).signals
    assert first.observe(TurnEnded()).signals


def test_a_session_answers_as_its_detector_does_alone() -> None:
    detector = ScriptedDetector(script={TurnEnded: 0.75, ToolCallProposed: 0.25})
    session = Monitor([detector]).session("s-1")
    together = [session.observe(event) for event in clean_session()]
    alone = Playback(detector).run(stamped(clean_session()))
    readings = [tuple([signal.said for signal in decision.signals]) for decision in together]
    assert [[said.detector for said in answer] for answer in readings] == [
        [detector.name] * len(answer) for answer in alone
    ]
    assert sum(map(len, alone)) == 4


def test_the_window_holds_the_call_only_while_it_is_judged() -> None:
    seen = Seen()
    session = Monitor([seen]).session("s-1")
    session.observe(ToolCallProposed(tool="t", arguments={"to": "x"}))
    session.observe(GoalStated(text="pay"))
    session.observe(ToolCallProposed(tool="send_money", arguments={"to": "x"}))
    session.observe(TurnEnded())
    assert [goal for goal, _ in seen.windows] == [False, True, True, True]
    assert [None if call is None else call.seq for _, call in seen.windows] == [0, None, 2, None]


# -- restriction ------------------------------------------------------------------------------------------------------

SEND = ToolCallProposed(tool="send_money", arguments={})
READ = ToolCallProposed(tool="get_balance", arguments={})
UNKNOWN = ToolCallProposed(tool="frobnicate", arguments={})


def restricting(mode: Mode = Mode.ENFORCE, effects: Mapping[str, Effect] | None = None) -> Monitor:
    detector = ScriptedDetector(script={MessageObserved: 0.95})
    policy = Policy(modes={"scripted": mode})
    return Monitor([detector], policy=policy, calibration=calibrated(), effects=effects)


def provoke(monitor: Monitor) -> Decision:
    session = monitor.session("s-1", agent="a-1")
    session.observe(ModelCalled(model="m-1"))
    return session.observe(MessageObserved(role="user", text="x"))


def test_a_restriction_stands_until_an_operator_clears_it() -> None:
    monitor = restricting()
    decision = provoke(monitor)
    session = monitor.session("s-1")
    assert (decision.action, session.restricted) == (Action.RESTRICTED_MODE, frozenset({"scripted"}))
    assert decision.signals[0].status is Status.CALIBRATED
    refused = session.observe(SEND)
    assert (refused.allowed, refused.action) == (False, Action.RESTRICTED_MODE)
    assert session.observe(READ).allowed
    assert not session.observe(UNKNOWN).allowed

    approved = session.observe(ApprovalGiven(call="c-1", operator="o-1"))
    assert (approved.action, session.restricted) == (Action.RESTRICTED_MODE, frozenset({"scripted"}))
    assert not session.observe(SEND).allowed

    cleared = monitor.clear("s-1", "o-1", "looked at it")
    assert (cleared.action, session.restricted) == (Action.LOG_ONLY, frozenset())
    assert session.observe(SEND).allowed
    assert session.observe(MessageObserved(role="user", text="x")).action is Action.RESTRICTED_MODE


@pytest.mark.parametrize("mode", [Mode.WARN, Mode.OBSERVE])
def test_a_restriction_refuses_nothing_unless_its_detector_enforces(mode: Mode) -> None:
    monitor = restricting(mode)
    decision = provoke(monitor)
    assert decision.action is (Action.RESTRICTED_MODE if mode is Mode.WARN else Action.LOG_ONLY)
    assert monitor.session("s-1").observe(SEND).allowed


def test_what_alarms_on_the_very_event_that_clears_restricts_again() -> None:
    detector = ScriptedDetector(script={Cleared: 0.95})
    monitor = Monitor([detector], policy=Policy(default=Mode.ENFORCE), calibration=calibrated())
    session = monitor.session("s-1", agent="a-1")
    session.observe(ModelCalled(model="m-1"))
    assert monitor.clear("s-1", "o-1", "why").action is Action.RESTRICTED_MODE
    assert session.restricted == {"scripted"}


@pytest.mark.parametrize(("operator", "reason"), [("", "why"), ("o-1", "")])
def test_to_clear_says_who_and_why(operator: str, reason: str) -> None:
    monitor = restricting()
    provoke(monitor)
    with pytest.raises(ConfigError, match="say who does it and why"):
        monitor.clear("s-1", operator, reason)
    with pytest.raises(ConfigError, match="there is no open session 's-9'"):
        monitor.clear("s-9", "o-1", "why")


@pytest.mark.parametrize(
    ("operator", "hint", "tool", "allowed"),
    [
        ({}, None, "get_balance", True),
        ({}, None, "send_money", False),
        ({}, Tool(name="get_balance", read_only=False), "get_balance", False),
        ({}, Tool(name="get_balance", destructive=True), "get_balance", False),
        ({}, Tool(name="send_money", read_only=True), "send_money", True),
        ({"send_money": Effect.READ}, Tool(name="send_money", destructive=True), "send_money", True),
        ({"get_balance": Effect.WRITE}, Tool(name="get_balance", read_only=True), "get_balance", False),
        ({"get_balance": Effect.UNKNOWN}, Tool(name="get_balance", read_only=True), "get_balance", False),
    ],
)
def test_the_operator_s_word_on_a_tool_goes_before_the_host_s_hints_and_these_before_its_name(
    operator: dict[str, Effect],
    hint: Tool | None,
    tool: str,
    allowed: bool,  # noqa: FBT001 - a column of the table
) -> None:
    monitor = restricting(effects=operator)
    provoke(monitor)
    session = monitor.session("s-1")
    if hint is not None:
        session.observe(ToolsDeclared(tools=(hint,)))
    assert session.observe(ToolCallProposed(tool=tool, arguments={})).allowed is allowed


def test_a_model_that_the_calibration_does_not_know_makes_it_stale_for_the_rest_of_the_session() -> None:
    monitor = restricting()
    session = monitor.session("s-1", agent="a-1")
    session.observe(ModelCalled(model="m-1"))
    session.observe(ModelCalled(model="m-2"))
    session.observe(ModelCalled(model="m-1"))
    [signal] = session.observe(MessageObserved(role="user", text="x")).signals
    assert (signal.level, signal.status) == (Level.STRONG, Status.STALE)
    assert not session.restricted


def test_models_that_a_reading_names_are_looked_up_before_a_redactor_takes_their_names() -> None:
    monitor = Monitor([AskingDetector()], calibration=calibrated("asking"))
    session = monitor.session("s-1", agent="a-1")
    session.observe(ModelCalled(model="m-1"))
    session.request_probe("doubt")

    def ask(query: Query) -> Reply:
        return Reply(query=query, model="m-1", draws=(Draw(text=query.role.value),))

    [decision] = session.drain_sync(ask)
    [signal] = decision.signals
    assert (signal.status, decision.action) == (Status.CALIBRATED, Action.RESTRICTED_MODE)
    assert isinstance(signal.said, Reading)
    assert signal.said.models == ("[REDACTED:TEXT]", "[REDACTED:TEXT]")


# -- what was seen ----------------------------------------------------------------------------------------------------


def test_coverage_counts_what_came_and_names_who_could_not_judge() -> None:
    deciding = ScriptedDetector(script={ToolCallProposed: Cause.NO_EVIDENCE}, reads=frozenset({ToolCallProposed}))
    absent = ScriptedDetector(script={}, name="absent", reads=frozenset({ModelCalled}))
    partly = ScriptedDetector(script={TurnEnded: 0.0}, name="partly", reads=frozenset({TurnEnded, ModelCalled}))
    mute = ScriptedDetector(
        script={}, name="mute", reads=frozenset({ModelCalled}), band=Band(alert=0.5, acts=False, finds=False)
    )
    failing = ScriptedDetector(script={TurnEnded: Cause.ERROR}, name="failing", reads=frozenset({TurnEnded}))
    monitor = Monitor([deciding, absent, partly, mute, failing])
    session = monitor.session("s-1")
    session.observe(ToolCallProposed(tool="t", channel=Channel.TOOL_CALL_OBJECT))
    session.observe(ToolResultObserved(channel=Channel.MCP_RESULT))
    session.observe(MessageObserved(role="user", text="", source=Source.USER))
    session.observe(TurnEnded())
    seen = session.coverage()
    assert seen.events == {"ToolCallProposed": 1, "ToolResultObserved": 1, "MessageObserved": 1, "TurnEnded": 1}
    assert seen.channels == {"tool_call_object": 1, "mcp_result": 1, "unknown": 2}
    assert seen.unset == {"ToolCallProposed.arguments": 1, "ToolResultObserved.text": 1}
    assert seen.quiet == 2
    assert seen.failures == {"failing": 1}
    assert seen.blind == ("scripted", "absent")
    sights = {sight.detector: sight for sight in seen.detectors}
    assert (sights["partly"].spoke, sights["partly"].missing, sights["partly"].blind) == (1, ("ModelCalled",), False)
    assert (sights["mute"].blind, sights["mute"].decides) == (True, False)
    assert (sights["failing"].failed, sights["failing"].blind) == (1, False)


def test_a_detector_that_could_not_judge_once_is_blind_whatever_it_judged_besides() -> None:
    detector = ScriptedDetector(script={0: 0.0, 1: Cause.NO_EVIDENCE, 2: 0.0}, reads=frozenset({TurnEnded}))
    session = Monitor([detector]).session("s-1")
    session.observe(TurnEnded())
    assert session.coverage().blind == ()
    for _ in range(2):
        session.observe(TurnEnded())
        assert session.coverage().blind == ("scripted",)


def test_a_session_is_its_own_context_and_leaves_the_monitor_when_it_closes() -> None:
    monitor = Monitor()
    with monitor.session("s-1") as session:
        assert [opened.id for opened in monitor.sessions] == ["s-1"]
        session.observe(SessionEnded())
    assert len(monitor.sessions) == 0
    assert session.close() == ()


def test_a_probe_can_be_asked_for() -> None:
    session = Monitor([AskingDetector()]).session("s-1")
    decision = session.request_probe("an operator wants to know")
    assert (decision.seq, decision.open, session.waiting) == (0, 1, 1)


def test_every_event_of_replay_is_taken_own_ones_too() -> None:
    session = Monitor().session("s-1")
    taken = [session.take(event) for event in every_event() if not isinstance(event, InquirySettled)]
    assert [decision.seq for decision in taken] == list(range(len(every_event()) - 1))


def test_a_failure_alone_asks_for_nothing() -> None:
    detector = ScriptedDetector(script={ToolCallProposed: Cause.TIMEOUT})
    decision = Monitor([detector]).session("s-1").observe(SEND)
    assert (decision.allowed, decision.action) == (True, Action.LOG_ONLY)
    assert isinstance(decision.signals[0].said, Failure)


def test_hold_refuses_the_call_whose_own_signal_alarms() -> None:
    detector = ScriptedDetector(script={ToolCallProposed: 0.7, TurnEnded: 0.7})
    session = Monitor([detector], policy=Policy(hold=True)).session("s-1")
    assert not session.observe(READ).allowed
    assert session.observe(TurnEnded()).allowed


def test_an_exact_alarm_without_a_call_asks_for_review() -> None:
    exact = ScriptedDetector(script={TurnEnded: 1.0, ToolCallProposed: 1.0}, band=Band(alert=1.0, status=Status.EXACT))
    session = Monitor([exact], policy=Policy(default=Mode.ENFORCE)).session("s-1")
    ended = session.observe(TurnEnded())
    assert (ended.action, ended.allowed, ended.mode) == (Action.ELEVATED_REVIEW, True, Mode.ENFORCE)
    assert not session.observe(READ).allowed
