"""A sealed own event counts in the place where it was recorded, and nowhere else."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from theodolite.core.detector import AnyDetector
from theodolite.core.event import (
    AnyEvent,
    AnyHostEvent,
    CanaryChecked,
    CanaryVerdict,
    Channel,
    Cleared,
    GoalStated,
    ProbeRequested,
    SessionEnded,
    ToolCallProposed,
    TurnEnded,
)
from theodolite.core.inquiry import Draw, Query, Reply
from theodolite.core.policy import Outcome
from theodolite.core.reader import Recorded, Unreadable
from theodolite.core.recording import HEADER
from theodolite.readers.jsonl import EventLines
from theodolite.runtime.monitor import Monitor
from theodolite.runtime.recorder import Recorder
from theodolite.runtime.replay import Sighting, replay
from theodolite.testing.fakes import AskingDetector, FakeClock, ScriptedDetector
from theodolite.testing.sessions import stamped

KEY = b"0123456789abcdef"
JUNK = b'{"event":"GoalStated","text":\n'


def monitor(recorder: Recorder | None = None) -> Monitor:
    detectors: list[AnyDetector] = [AskingDetector(), ScriptedDetector(script={ToolCallProposed: 0.75})]
    return Monitor(detectors, clock=FakeClock(100.0, step=1.0), recorder=recorder)


def sightings(recorded: Iterable[Recorded]) -> list[Sighting]:
    return [seen for seen in replay(recorded, monitor()) if isinstance(seen, Sighting)]


def reasons(seen: Sighting) -> list[str]:
    return [item.reason for item in seen.unreadable]


CLEARED = Cleared(operator="o", reason="r")
CHECKED = CanaryChecked(contract="k", checked=Channel.USER_TEXT, verdict=CanaryVerdict.HOLDS)
LOST = Unreadable(file="f", line=3, reason="not JSON")
LOST_OF = Unreadable(file="f", line=3, reason="not JSON", session="s-1")
LOST_OF_ANOTHER = Unreadable(file="f", line=3, reason="not JSON", session="s-2")


def at(seq: int, event: AnyEvent, session: str = "s-1") -> AnyEvent:
    [*_, placed] = stamped([TurnEnded()] * seq + [event], session=session)
    return placed


@pytest.mark.parametrize(
    ("recorded", "refused"),
    [
        ([at(0, CLEARED)], None),
        ([at(0, TurnEnded()), at(1, CLEARED), at(2, CLEARED)], None),
        ([at(0, CHECKED), at(1, TurnEnded()), at(2, CLEARED)], None),
        ([at(1, CLEARED)], (1, 0)),
        ([at(0, TurnEnded()), at(2, CLEARED)], (2, 1)),
        ([at(0, TurnEnded()), at(0, CLEARED)], (0, 1)),
        ([at(0, TurnEnded()), at(1, CLEARED), at(1, CLEARED)], (1, 2)),
        ([at(0, TurnEnded()), at(1, TurnEnded()), at(0, CLEARED)], (0, 2)),
        ([at(0, TurnEnded()), LOST, at(2, CLEARED)], None),
        ([at(0, TurnEnded()), LOST, at(9, CLEARED), at(10, CLEARED)], None),
        ([at(0, TurnEnded()), LOST_OF, at(2, CLEARED)], None),
        ([at(0, TurnEnded()), LOST_OF, at(1, CLEARED)], None),
        ([LOST, at(3, CLEARED)], None),
        ([LOST_OF, at(3, CLEARED)], None),
        ([at(0, TurnEnded()), LOST_OF_ANOTHER, at(2, CLEARED)], (2, 1)),
        ([at(0, TurnEnded()), LOST, at(0, CLEARED)], (0, 1)),
        ([LOST_OF_ANOTHER, at(3, CLEARED)], (3, 0)),
        ([at(0, TurnEnded(), "s-2"), LOST, at(1, SessionEnded(), "s-2"), at(3, CLEARED)], (3, 0)),
        ([at(0, TurnEnded()), LOST, at(2, TurnEnded()), at(4, CLEARED)], (4, 3)),
        ([at(0, TurnEnded(), "s-2"), LOST, at(0, TurnEnded()), at(2, CLEARED)], (2, 1)),
    ],
)
def test_an_own_event_follows_the_one_before_it_or_lies_beyond_what_cannot_be_read(
    recorded: Sequence[Recorded], refused: tuple[int, int] | None
) -> None:
    [seen] = [seen for seen in sightings(recorded) if seen.session == "s-1"]
    told = [reason for reason in reasons(seen) if "was recorded as event" in reason]
    if refused is None:
        assert told == []
        return
    [reason] = told
    assert reason == (
        f"session s-1: a Cleared was recorded as event {refused[0]}, and event {refused[1]} is wanted here: it was "
        "moved or repeated, or what came before it was removed"
    )
    assert seen.outcome is Outcome.FAILED


def test_what_was_refused_changes_nothing_and_what_follows_counts() -> None:
    events = [at(0, TurnEnded()), at(7, ProbeRequested(reason="r")), at(1, CLEARED), at(2, SessionEnded())]
    [seen] = sightings(events)
    assert (len(reasons(seen)), seen.coverage.events) == (1, {"TurnEnded": 1, "Cleared": 1, "SessionEnded": 1})


def test_an_own_event_that_is_in_its_place_and_cannot_be_true_leaves_the_next_its_place() -> None:
    """A recording is replayed by an instrument without the detector that asked."""
    [opened, *_] = stamped([ProbeRequested(reason="r")])
    live = Monitor([AskingDetector()])
    taken: list[AnyEvent] = []
    live.fleet.recorder = taken.append
    session = live.session("s-1")
    session.request_probe("r")
    session.drain_sync(lambda query: Reply(query=query, model="m-1", draws=(Draw(text="no"),)))
    live.clear("s-1", "o", "r")
    assert [type(event) for event in taken] == [type(opened), type(taken[1]), Cleared]
    [seen] = [one for one in replay(taken, Monitor()) if isinstance(one, Sighting)]
    assert [reason.partition(": ")[2][:26] for reason in reasons(seen)] == ["no open inquiry of asking "]
    assert seen.coverage.events == {"ProbeRequested": 1, "Cleared": 1}


def test_a_session_that_ended_twice_may_have_something_settled_afterwards() -> None:
    events = stamped([TurnEnded(), SessionEnded(), SessionEnded(), CLEARED])
    [seen] = sightings(events)
    assert (reasons(seen), seen.coverage.events["Cleared"]) == ([], 1)


def test_an_end_that_a_reader_added_has_no_place() -> None:
    events = [at(0, TurnEnded()), SessionEnded(session="s-1"), at(1, CLEARED)]
    [seen] = sightings(events)
    assert (reasons(seen), seen.coverage.events["Cleared"]) == ([], 1)


# -- a recording that was really written ------------------------------------------------------------------------------


def recorded_lines(folder: Path) -> list[bytes]:
    """Record a session that is cleared in its fourth event; return its lines without the header."""
    recorder = Recorder(folder, KEY)
    live = monitor(recorder)
    session = live.session("s-1")
    hosted: list[AnyHostEvent] = [GoalStated(text="pay"), ToolCallProposed(tool="t"), TurnEnded()]
    for event in hosted:
        session.observe(event)
    live.clear("s-1", "o", "looked at it")
    session.request_probe("r")
    session.drain_sync(_no)
    session.observe(ToolCallProposed(tool="t"))
    session.observe(SessionEnded())
    session.close()
    header, *lines = recorder.path("s-1").read_bytes().splitlines(keepends=True)
    assert header == HEADER
    return lines


def _no(query: Query) -> Reply:
    return Reply(query=query, model="m-1", draws=(Draw(text="no"),))


def read(lines: Iterable[bytes]) -> list[Recorded]:
    return list(EventLines(KEY).read(io.BytesIO(HEADER + b"".join(lines)), "f"))


def test_the_recording_as_it_was_written_is_read_in_full(tmp_path: Path) -> None:
    lines = recorded_lines(tmp_path)
    [seen] = sightings(read(lines))
    assert (reasons(seen), sum(seen.coverage.events.values())) == ([], len(lines))


@pytest.mark.parametrize(
    "places",
    [
        [3, 0, 1, 2, 4, 5, 6, 7],
        [0, 1, 2, 4, 5, 6, 3, 7],
        [0, 1, 3, 4, 5, 6, 7],
        [0, 1, 2, 3, 3, 4, 5, 6, 7],
    ],
    ids=["to the front", "to the end", "after one that was removed", "twice"],
)
def test_a_clearing_that_was_moved_clears_nothing_there(places: list[int], tmp_path: Path) -> None:
    lines = recorded_lines(tmp_path)
    seen = sightings(read([lines[place] for place in places]))
    assert any("a Cleared was recorded as event 3" in reason for one in seen for reason in reasons(one))


pasting = st.lists(st.sampled_from([-1, 0, 1, 2, 6]), max_size=6)


@settings(max_examples=80, deadline=None)
@given(pasting, pasting)
def test_a_clearing_counts_only_where_it_belongs_however_a_file_is_cut_and_pasted(
    tmp_path_factory: pytest.TempPathFactory, before: list[int], after: list[int]
) -> None:
    """Lines of the host are left out, repeated and put elsewhere; -1 is one that cannot be read."""
    lines = recorded_lines(tmp_path_factory.mktemp("session"))

    def pasted(numbers: list[int]) -> list[bytes]:
        return [JUNK if number < 0 else lines[number] for number in numbers]

    taken: list[AnyEvent] = []
    instrument = monitor()
    instrument.fleet.recorder = taken.append
    list(replay(read([*pasted(before), lines[3], *pasted(after)]), instrument))
    last = max(before, default=-1)
    in_place = last == 2 or (last < 2 and before[-1:] == [-1])
    assert any(isinstance(event, Cleared) for event in taken) is in_place
