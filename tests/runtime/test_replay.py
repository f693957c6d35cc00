"""Recorded sessions through the same code as live ones, and the recorder that writes them."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from theodolite.core.detector import AnyDetector
from theodolite.core.errors import ConfigError, StoreError
from theodolite.core.event import (
    AnyEvent,
    AnyHostEvent,
    CanaryChecked,
    CanaryVerdict,
    Channel,
    Cleared,
    GoalStated,
    InquirySettled,
    ModelCalled,
    SessionEnded,
    ToolCallProposed,
    TurnEnded,
)
from theodolite.core.inquiry import Draw, Query, Reply
from theodolite.core.policy import Action, Decision, Outcome
from theodolite.core.reader import Recorded, Unreadable
from theodolite.core.reading import Cause, Failure
from theodolite.readers.jsonl import EventLines
from theodolite.redactors.rules import RuleRedactor
from theodolite.runtime.monitor import Monitor
from theodolite.runtime.recorder import Recorder
from theodolite.runtime.replay import Sighting, goes_on, replay
from theodolite.stores.memory import MemoryStore
from theodolite.testing.fakes import AskingDetector, FakeClock, FullStore, ScriptedDetector
from theodolite.testing.sessions import clean_session, hijacked_session, stamped

KEY = b"0123456789abcdef"


def monitor(recorder: Recorder | None = None) -> Monitor:
    detectors: list[AnyDetector] = [AskingDetector(), ScriptedDetector(script={ToolCallProposed: 0.75})]
    return Monitor(detectors, clock=FakeClock(100.0, step=1.0), recorder=recorder)


def different(query: Query) -> Reply:
    return Reply(query=query, model="m-1", draws=(Draw(text=query.role.value),))


def read(recorder: Recorder, *sessions: str) -> Iterator[Recorded]:
    for session in sessions:
        path = recorder.path(session)
        with path.open("rb") as stream:
            yield from EventLines(KEY).read(stream, path.name)


def sightings(recorded: Iterable[Recorded], instrument: Monitor | None = None) -> list[Sighting]:
    return [seen for seen in replay(recorded, instrument or monitor()) if isinstance(seen, Sighting)]


def spoken(decisions: Iterable[Decision]) -> list[Decision]:
    return [decision for decision in decisions if decision.signals or not decision.allowed]


def test_a_recording_gives_the_same_decisions_without_a_model(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, KEY)
    live = monitor(recorder)
    live.announce(CanaryChecked(contract="k", checked=Channel.USER_TEXT, verdict=CanaryVerdict.VISIBILITY_BROKEN))
    session = live.session("s-1", agent="a-1")
    decisions: list[Decision] = []
    for event in hijacked_session():
        decisions.append(session.observe(event))
        if isinstance(event, TurnEnded):
            decisions.append(session.request_probe("each turn"))
            decisions.extend(session.drain_sync(different))
    decisions.append(live.clear("s-1", "o-1", "seen"))
    coverage = session.coverage()
    session.close()

    [seen] = sightings(read(recorder, "s-1"))
    assert list(seen.decisions) == spoken(decisions)
    assert (seen.session, seen.agent, seen.coverage) == ("s-1", "a-1", coverage)
    assert sum(decision.about != decision.seq for decision in seen.decisions) == 2


def test_what_was_settled_after_the_end_of_the_session_belongs_to_it(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, KEY)
    session = monitor(recorder).session("s-1")
    session.observe(ModelCalled(model="m-1"))
    session.request_probe("r")
    session.request_probe("r")
    session.observe(SessionEnded())
    [late, *_] = session.drain_sync(different)
    seen = sightings(read(recorder, "s-1"))
    assert [len(sighting.decisions) for sighting in seen] == [2]
    assert seen[0].decisions[0] == late
    assert (seen[0].outcome, seen[0].unreadable) == (Outcome.FINDING, ())


def test_a_session_that_is_opened_again_in_its_recording_starts_with_what_it_was_told(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, KEY)
    detector = ScriptedDetector(script={CanaryChecked: 0.75, TurnEnded: 0.25})
    live = Monitor([detector], recorder=recorder)
    live.session("s-1")
    live.announce(CanaryChecked(contract="k", checked=Channel.USER_TEXT, verdict=CanaryVerdict.DECISION_BROKEN))
    lived: list[list[int]] = []
    for _ in range(2):
        session = live.session("s-1")
        lived.append([session.observe(TurnEnded()).seq, session.observe(SessionEnded()).seq])
        session.close()
    seen = sightings(read(recorder, "s-1"), Monitor([detector]))
    assert [[decision.seq for decision in sighting.decisions] for sighting in seen] == [[0, 1], [0, 1]]
    assert lived == [[1, 2], [1, 2]]


def test_what_was_abandoned_when_the_session_closed_is_abandoned_again(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, KEY)
    session = Monitor([AskingDetector()], recorder=recorder).session("s-1")
    session.request_probe("r")
    session.observe(SessionEnded())
    [abandoned] = session.close()
    [seen] = sightings(read(recorder, "s-1"), Monitor([AskingDetector()]))
    assert seen.decisions == (abandoned,)
    assert seen.outcome is Outcome.FAILED


def test_an_inquiry_that_nobody_settled_is_abandoned_at_the_end_and_fails_the_session() -> None:
    asking = Monitor([AskingDetector(on=TurnEnded)])
    [seen] = sightings(stamped([TurnEnded(), SessionEnded()]), asking)
    [signal] = [signal for decision in seen.decisions for signal in decision.signals]
    assert isinstance(signal.said, Failure)
    assert (signal.said.cause, seen.outcome) == (Cause.ABANDONED, Outcome.FAILED)


def test_sessions_may_be_interleaved_and_come_in_the_order_in_which_they_end() -> None:
    first = list(stamped([GoalStated(text="a"), TurnEnded(), SessionEnded()], session="first"))
    second = list(stamped([GoalStated(text="b"), SessionEnded()], session="second"))
    third = list(stamped([GoalStated(text="never ends")], session="third"))
    mixed = [third[0], first[0], second[0], first[1], second[1], first[2]]
    seen = sightings(mixed)
    assert [sighting.session for sighting in seen] == ["second", "first", "third"]
    assert [sum(sighting.coverage.events.values()) for sighting in seen] == [2, 3, 1]


def test_a_session_that_goes_on_after_its_end_is_seen_as_another() -> None:
    events = list(stamped([TurnEnded(), SessionEnded(), TurnEnded()]))
    assert [sum(sighting.coverage.events.values()) for sighting in sightings(events)] == [2, 1]


@pytest.mark.parametrize(
    ("ended", "item", "expected"),
    [
        (None, TurnEnded(session="a"), True),
        ("a", TurnEnded(session="a"), False),
        ("a", TurnEnded(session="b"), False),
        ("a", SessionEnded(session="a"), True),
        ("a", SessionEnded(session="b"), False),
        ("a", Cleared(session="a", seq=7, operator="o", reason="r"), True),
        ("a", Cleared(session="a", seq=0, operator="o", reason="r"), False),
        ("a", Cleared(session="b", seq=7, operator="o", reason="r"), False),
        ("a", Unreadable(file="f", line=1, reason="no"), True),
    ],
)
def test_what_still_belongs_to_a_session_that_ended(ended: str | None, item: Recorded, expected: bool) -> None:  # noqa: FBT001 - a column
    assert goes_on(ended, item) is expected


def test_each_call_has_a_row_and_quiet_decisions_are_not_held() -> None:
    [seen] = sightings(stamped(clean_session()), Monitor(redactor=RuleRedactor()))
    assert [row.tool for row in seen.calls] == ["list_bills", "send_money"]
    assert (seen.decisions, seen.outcome, seen.action) == ((), Outcome.NOT_ENOUGH_EVIDENCE, Action.LOG_ONLY)
    [alarmed] = sightings(stamped(clean_session()))
    assert [len(row.decision.signals) for row in alarmed.calls] == [1, 1]
    assert (alarmed.outcome, alarmed.action) == (Outcome.FINDING, Action.ELEVATED_REVIEW)


def test_a_detector_that_never_got_its_fields_leaves_too_little_evidence() -> None:
    blind = ScriptedDetector(script={ToolCallProposed: Cause.NO_EVIDENCE}, reads=frozenset({ToolCallProposed}))
    [seen] = sightings(stamped([ToolCallProposed(tool="t"), SessionEnded()]), Monitor([blind]))
    assert (seen.outcome, seen.coverage.blind) == (Outcome.NOT_ENOUGH_EVIDENCE, ("scripted",))


def test_what_cannot_be_read_fails_its_session_or_stands_alone() -> None:
    of_session = Unreadable(file="f", line=2, reason="no JSON", session="s-1")
    of_nobody = Unreadable(file="f", line=9, reason="no JSON", session="s-9")
    first, *rest = stamped([TurnEnded(), SessionEnded()])
    found = list(replay([of_nobody, first, of_session, *rest], Monitor()))
    assert found[0] is of_nobody
    assert isinstance(found[1], Sighting)
    assert (found[1].unreadable, found[1].outcome) == ((of_session,), Outcome.FAILED)


def test_an_own_event_that_cannot_be_true_is_told_and_the_rest_is_read() -> None:
    events: list[AnyEvent] = [InquirySettled(asker="asking", about=0, said=()), TurnEnded(), SessionEnded()]
    [seen] = sightings(stamped(events))
    [fault] = seen.unreadable
    assert fault.reason.startswith("session s-1: no open inquiry of asking about event 0")
    assert (seen.coverage.events, seen.outcome) == ({"TurnEnded": 1, "SessionEnded": 1}, Outcome.FAILED)


def test_a_store_that_is_full_at_the_end_of_a_session_is_an_error() -> None:
    with pytest.raises(StoreError, match="the store is full"):
        list(replay(stamped([SessionEnded()]), Monitor(store=FullStore(MemoryStore(), room=0))))


def test_a_longer_stream_holds_only_the_sessions_that_are_open() -> None:
    instrument = Monitor()

    def many() -> Iterator[AnyEvent]:
        for n in range(200):
            yield from stamped([GoalStated(text="x"), SessionEnded()], session=f"s-{n}")
            assert len(instrument.sessions) <= 2

    assert len(sightings(many(), instrument)) == 200


# -- recorder ---------------------------------------------------------------------------------------------------------


def test_a_recording_is_for_its_owner_alone_and_its_name_tells_nothing(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, KEY)
    monitor(recorder).session("../../etc/passwd").observe(TurnEnded())
    [path] = tmp_path.iterdir()
    assert path == recorder.path("../../etc/passwd")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "passwd" not in path.name


def test_sessions_are_recorded_in_files_of_their_own_and_a_session_goes_on_in_its_file(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, KEY)
    live = monitor(recorder)
    for name in ("s-1", "s-2", "s-1"):
        session = live.session(name)
        session.observe(GoalStated(text=f"of {name}"))
        session.observe(SessionEnded())
        session.close()
    assert [seen.session for seen in sightings(read(recorder, "s-1", "s-2"))] == ["s-1", "s-1", "s-2"]
    assert recorder.path("s-1").read_bytes().count(b'"theodolite"') == 1


def test_own_events_are_sealed(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, KEY)
    live = monitor(recorder)
    live.session("s-1")
    live.clear("s-1", "o-1", "why")
    with recorder.path("s-1").open("rb") as stream:
        forged = list(EventLines(b"another key of 16").read(stream, "f"))
    assert [type(item) for item in forged] == [Unreadable]
    [cleared, *_] = read(recorder, "s-1")
    assert isinstance(cleared, Cleared)


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not a folder: make it, or leave raw_events out"):
        Recorder(tmp_path / "nowhere", KEY)


def test_a_line_that_cannot_be_written_is_a_failure_of_the_recorder(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, KEY)
    recorder.path("s-1").mkdir()
    session = monitor(recorder).session("s-1")
    decision = session.observe(TurnEnded())
    [signal] = decision.signals
    assert (signal.said.detector, session.coverage().failures) == ("recorder", {"recorder": 1})
    with pytest.raises(StoreError, match=rf"cannot be written: .*{os.strerror(errno.EISDIR)}.*leave raw_events out"):
        recorder(next(stamped([TurnEnded()])))


def test_what_the_store_cannot_keep_is_recorded_all_the_same(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, KEY)
    detector = ScriptedDetector(script={TurnEnded: 0.75})
    session = Monitor([detector], store=FullStore(MemoryStore(), room=0), recorder=recorder).session("s-1")
    events: list[AnyHostEvent] = [TurnEnded(), GoalStated(text="x"), TurnEnded()]
    for event in events:
        session.observe(event)
    kept = [type(item) for item in read(recorder, "s-1")]
    assert kept == [TurnEnded, GoalStated, TurnEnded, SessionEnded]


def test_a_tool_name_that_holds_a_secret_is_redacted_and_a_long_one_cut() -> None:
    events = stamped([ToolCallProposed(tool="mail bob@example.com"), ToolCallProposed(tool="x" * 5_000)])
    [seen] = sightings(events, Monitor(redactor=RuleRedactor()))
    assert [row.tool for row in seen.calls] == ["mail [REDACTED:EMAIL]", "x" * 128]


def test_where_nobody_decides_a_session_is_not_clean() -> None:
    [seen] = sightings(stamped(clean_session()), Monitor())
    assert seen.outcome is Outcome.NOT_ENOUGH_EVIDENCE


def test_what_cannot_be_read_is_counted_in_the_coverage() -> None:
    begun, *rest = stamped(clean_session())
    lost = Unreadable(file="f", line=2, reason="not JSON", session=begun.session)
    [seen] = sightings([begun, lost, *rest], Monitor())
    assert seen.coverage.unreadable == 1
    assert seen.outcome is Outcome.FAILED
