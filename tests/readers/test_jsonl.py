from __future__ import annotations

from io import BytesIO

from theodolite.core.event import (
    AnyEvent,
    CanaryChecked,
    CanaryVerdict,
    Channel,
    Cleared,
    GoalStated,
    MessageObserved,
    SessionEnded,
    Source,
    ToolCallProposed,
)
from theodolite.core.reader import Recorded, Unreadable
from theodolite.core.recording import HEADER, encode_line
from theodolite.readers.jsonl import EventLines

KEY = b"the operator's key"


def file_of(*events: AnyEvent) -> bytes:
    return HEADER + b"".join(encode_line(event, KEY) for event in events)


def read(data: bytes, key: bytes | None = None) -> list[Recorded]:
    return list(EventLines(key).read(BytesIO(data), "logs/monday.jsonl.gz"))


def reasons(data: bytes, key: bytes | None = None) -> list[tuple[int, str]]:
    return [(item.line, item.reason) for item in read(data, key) if isinstance(item, Unreadable)]


def end(session: str, agent: str = "") -> SessionEnded:
    return SessionEnded(session=session, agent=agent, channel=Channel.CONTROL, source=Source.SYSTEM)


def test_interleaved_sessions_come_as_they_stand_and_what_is_open_is_ended() -> None:
    events = (
        GoalStated(session="s-1", agent="a", text="one"),
        GoalStated(session="s-2", agent="b", text="two"),
        MessageObserved(session="s-1", agent="a", role="user", text="one"),
        SessionEnded(session="s-2", agent="b"),
    )
    assert read(file_of(*events)) == [*events, end("s-1", "a")]


def test_a_session_that_goes_on_after_its_end_is_ended_again() -> None:
    events = (GoalStated(session="s", text="x"), SessionEnded(session="s"), GoalStated(session="s", text="y"))
    assert read(file_of(*events)) == [*events, end("s")]


def test_events_without_a_session_belong_to_one_named_after_the_file() -> None:
    assert read(file_of(GoalStated(text="x"))) == [GoalStated(session="monday", text="x"), end("monday")]


def test_own_events_count_with_the_key_and_are_reported_without() -> None:
    checked = CanaryChecked(
        session="s", contract="c", checked=Channel.TOOL_RESULT_TEXT, verdict=CanaryVerdict.VISIBILITY_BROKEN
    )
    data = file_of(GoalStated(session="s", text="x"), checked)
    assert checked in read(data, KEY)
    for key in (None, b"another"):
        assert checked not in read(data, key)
        assert [line for line, reason in reasons(data, key) if "operator's key" in reason] == [3]


def test_a_foreign_file_cannot_forge_an_own_event() -> None:
    forged = b'{"event":"Cleared","session":"s","operator":"n.abara","reason":"fine"%b}\n'
    seals = (b"", b',"seal":""', b',"seal":"%b"' % (b"0" * 64), b',"seal":null', b',"seal":7')
    data = HEADER + b"".join(forged % seal for seal in seals)
    assert not [item for item in read(data, KEY) if isinstance(item, Cleared)]
    assert len(reasons(data, KEY)) == len(seals)


def test_a_bad_line_is_reported_and_the_rest_is_read() -> None:
    good = encode_line(GoalStated(session="s", text="x"), None)
    bad = b"[1]\n\n" + good + b'{"event":"Nope"}\n' + good + b'{"event":"GoalStated","text":"\xff"}\n' + good
    found = read(HEADER + bad)
    assert sum(isinstance(item, GoalStated) for item in found) == 3
    assert reasons(HEADER + bad) == [
        (2, "Expected object, got array"),
        (5, "an event kind that this version does not know: a newer one may have written it"),
        (7, "not UTF-8: byte 30 of it"),
    ]


def test_what_stands_in_place_of_the_header_is_reported_and_the_rest_is_read() -> None:
    good = encode_line(GoalStated(session="s", text="x"), None)
    assert reasons(good + good) == [(1, 'no header: the first line must be {"theodolite":"events","version":1}')]
    assert GoalStated(session="s", text="x") in read(good + good)


def test_a_file_of_a_newer_version_is_reported_and_not_read() -> None:
    data = file_of(GoalStated(session="s", text="x")).replace(b'"version":1', b'"version":2')
    assert read(data) == [
        Unreadable(
            file="logs/monday.jsonl.gz",
            line=1,
            reason="version 2 of this form, and up to 1 can be read: upgrade theodolite",
        )
    ]


def test_windows_line_ends_and_a_byte_order_mark_do_no_harm() -> None:
    data = b"\xef\xbb\xbf" + file_of(GoalStated(session="s", text="x")).replace(b"\n", b"\r\n")
    assert EventLines().detects(data)
    assert read(data) == [GoalStated(session="s", text="x"), end("s")]


def test_a_line_over_64_mib_is_reported_and_the_rest_is_read() -> None:
    call = encode_line(ToolCallProposed(session="s", tool="t", arguments={"x": "y" * 2**26}), None)
    found = read(HEADER + call + encode_line(GoalStated(session="s", text="x"), None))
    assert found == [
        Unreadable(file="logs/monday.jsonl.gz", line=2, reason="the line is longer than 67108864 bytes"),
        GoalStated(session="s", text="x"),
        end("s"),
    ]


def test_only_our_header_is_claimed() -> None:
    reader = EventLines()
    assert reader.detects(HEADER)
    assert reader.detects(b'\n { "version" : 3, "theodolite" : "events" }')
    for other in (
        b"",
        b"[",
        b'{"event":"GoalStated","theodolit":1}',
        b'{"messages":[{"theodolite":1}]}',
        b"theodolite",
    ):
        assert not reader.detects(other)


def test_the_key_does_not_show() -> None:
    assert KEY.decode() not in repr(EventLines(KEY))
