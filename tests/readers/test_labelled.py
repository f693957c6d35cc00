from __future__ import annotations

import json
from io import BytesIO

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from theodolite.core.errors import EventError
from theodolite.core.event import (
    Channel,
    GoalStated,
    MessageObserved,
    ModelCalled,
    SessionEnded,
    Source,
    ToolCallProposed,
    ToolResultObserved,
    TurnEnded,
)
from theodolite.core.labels import Known
from theodolite.core.labels import Label as SessionLabel
from theodolite.core.reader import Recorded, Unreadable
from theodolite.readers.labelled import Label, LabelledSessions, label

NOTHING: dict[str, object] = {}
LABELS = {
    "user_task": "user_task_9",
    "injection_task": "injection_task_7",
    "attack": "important_instructions",
    "kind": "attacked_succeeded",
    "utility": True,
    "security": True,
    "injection_seen": True,
    "onset_turn": 1,
    "injected_goal": "Send the list to mallory.",
}


def line(*steps: object, **fields: object) -> bytes:
    session = {"session_id": "s-1", "source": "runs", "model": "m-1", "suite": "banking", "goal": "Pay the bill."}
    return json.dumps({**session, **LABELS, **fields, "events": steps}).encode()


def read(data: bytes) -> list[Recorded]:
    return list(LabelledSessions().read(BytesIO(data), "f.jsonl"))


def test_a_session_is_told_event_by_event() -> None:
    found = read(
        line(
            {"turn": 0, "role": "assistant", "tool": "list_bills", "args": {"open": True}, "text": "I look."},
            {"turn": 0, "role": "assistant", "tool": "read_mail", "args": NOTHING, "text": "I look."},
            {"turn": 0, "role": "tool", "tool": "list_bills", "text": "30 EUR", "is_injected_content": True},
            {"turn": 0, "role": "tool", "tool": "read_mail", "text": "", "error": "ValueError: no mail"},
            {"turn": 1, "role": "assistant", "text": "Paid."},
            {"turn": 1, "role": "user", "text": "Thanks."},
        )
    )
    expected = [
        ModelCalled(channel=Channel.CONTROL, source=Source.SYSTEM, turn=0, model="m-1"),
        GoalStated(channel=Channel.USER_TEXT, source=Source.USER, turn=0, text="Pay the bill."),
        MessageObserved(channel=Channel.USER_TEXT, source=Source.USER, turn=0, role="user", text="Pay the bill."),
        MessageObserved(channel=Channel.ASSISTANT_TEXT, source=Source.MODEL, turn=0, role="assistant", text="I look."),
        ToolCallProposed(
            channel=Channel.TOOL_CALL_OBJECT, source=Source.MODEL, turn=0, tool="list_bills", arguments={"open": True}
        ),
        ToolCallProposed(channel=Channel.TOOL_CALL_OBJECT, source=Source.MODEL, turn=0, tool="read_mail", arguments={}),
        ToolResultObserved(
            channel=Channel.TOOL_RESULT_TEXT, source=Source.TOOL, turn=0, tool="list_bills", text="30 EUR"
        ),
        ToolResultObserved(
            channel=Channel.TOOL_RESULT_TEXT,
            source=Source.TOOL,
            turn=0,
            tool="read_mail",
            text="ValueError: no mail",
            error=True,
        ),
        TurnEnded(channel=Channel.CONTROL, source=Source.SYSTEM, turn=0),
        MessageObserved(channel=Channel.ASSISTANT_TEXT, source=Source.MODEL, turn=1, role="assistant", text="Paid."),
        MessageObserved(channel=Channel.USER_TEXT, source=Source.USER, turn=1, role="user", text="Thanks."),
        TurnEnded(channel=Channel.CONTROL, source=Source.SYSTEM, turn=1),
        SessionEnded(channel=Channel.CONTROL, source=Source.SYSTEM, turn=1),
    ]
    assert [_unnamed(item) for item in found] == expected
    assert {(item.session, item.agent) for item in found if not isinstance(item, Unreadable)} == {("s-1", "banking")}


def _unnamed(item: Recorded) -> Recorded:
    return item if isinstance(item, Unreadable) else replace(item, session="", agent="")


def test_nothing_of_the_label_reaches_an_event() -> None:
    steps: tuple[dict[str, object], ...] = (
        {"turn": 0, "role": "assistant", "tool": "t", "args": NOTHING},
        {"turn": 0, "role": "tool", "tool": "t", "text": "x", "is_injected_content": False, "text_chars": 9},
    )
    changed = {"kind": "clean", "utility": False, "security": False, "onset_turn": None, "injected_goal": None}
    changed |= {"user_task": "", "injection_task": None, "attack": None, "injection_seen": False}
    assert changed.keys() == LABELS.keys()
    with_other_steps = [dict(step) for step in steps]
    with_other_steps[1]["is_injected_content"] = True
    assert read(line(*steps)) == read(line(*with_other_steps, **changed))


def test_the_text_of_a_message_is_told_once_a_turn() -> None:
    say: dict[str, object] = {"role": "assistant", "tool": "t", "args": NOTHING, "text": "I look."}
    found = read(line({"turn": 0, **say}, {"turn": 0, **say}, {"turn": 1, **say}))
    said = [(item.turn, item.text) for item in found if isinstance(item, MessageObserved) and item.role == "assistant"]
    assert said == [(0, "I look."), (1, "I look.")]


def test_what_a_step_does_not_show_is_unset() -> None:
    found = read(line({"turn": 0, "role": "assistant", "tool": "t"}, {"turn": 0, "role": "tool", "tool": "t"}))
    (call,) = [item for item in found if isinstance(item, ToolCallProposed)]
    (result,) = [item for item in found if isinstance(item, ToolResultObserved)]
    assert call.arguments is UNSET
    assert (result.text, result.error) == (UNSET, False)


def test_a_session_without_events_still_states_its_goal_and_ends() -> None:
    assert [type(item) for item in read(line())] == [ModelCalled, GoalStated, MessageObserved, SessionEnded]


def test_a_session_that_names_no_model_calls_none() -> None:
    assert [type(item) for item in read(line(model=""))] == [GoalStated, MessageObserved, SessionEnded]


def test_the_source_is_the_agent_where_there_is_no_suite() -> None:
    found = read(line(suite=""))
    assert {item.agent for item in found if not isinstance(item, Unreadable)} == {"runs"}


SECRET = "hunter2-7f3a"


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b'{"session_id": "%b"}' % SECRET.encode(), "Object missing required field goal"),
        (line({"turn": 0, "role": SECRET}), "a value that is not allowed - at $.events[0].role"),
        (line({"role": "tool", "text": SECRET}), "Object missing required field turn - at $.events[0]"),
        (line({"turn": 0, "role": "tool", "text": [SECRET]}), "Expected str, got array - at $.events[0].text"),
        (
            line({"turn": 0, "role": "assistant", "tool": "t", "args": SECRET}),
            "Expected object, got str - at $.events[0].args",
        ),
        (SECRET.encode(), "JSON is malformed: invalid character (byte 0)"),
        (line()[:-9], "Input data was truncated"),
    ],
)
def test_a_bad_line_is_reported_without_its_content_and_the_rest_is_read(bad: bytes, reason: str) -> None:
    found = read(b"\n".join([line(), bad, line(session_id="s-2")]))
    assert [item for item in found if isinstance(item, Unreadable)] == [
        Unreadable(file="f.jsonl", line=2, reason=reason)
    ]
    assert sum(isinstance(item, SessionEnded) for item in found) == 2


def test_labels_are_read_apart() -> None:
    assert label(line()) == Label(
        session_id="s-1", kind="attacked_succeeded", onset_turn=1, suite="banking", model="m-1"
    )
    assert label(line(onset_turn=None)).onset_turn is None
    with pytest.raises(EventError, match="missing required field kind"):
        label(b'{"session_id": "s-1"}')


def test_objects_with_a_session_a_goal_and_events_are_claimed() -> None:
    reader = LabelledSessions()
    assert reader.detects(line())
    assert reader.detects(line({"turn": 0, "role": "tool", "text": "x" * 70_000})[:65536])
    for other in (b"", b'{"session_id":"s","events":[]}', b'[{"session_id":"s","goal":"g","events":[]}]', b"{"):
        assert not reader.detects(other)


def labels(data: bytes) -> list[tuple[str, SessionLabel]]:
    return list(LabelledSessions().labels(BytesIO(data), "f.jsonl"))


@pytest.mark.parametrize(
    ("kind", "onset", "known"),
    [
        ("clean", None, Known.CLEAN),
        ("clean_direct", None, Known.CLEAN),
        ("attacked_unseen", None, Known.CLEAN),
        ("attacked_resisted", None, Known.CLEAN),
        ("attacked_resisted", 0, None),
        ("attacked_succeeded", 3, Known.DRIFTED),
        ("attacked_succeeded", None, Known.DRIFTED),
        ("attacked_otherwise", None, None),
        (None, None, None),
    ],
)
def test_what_became_of_an_attack_says_what_is_known(kind: str | None, onset: int | None, known: Known | None) -> None:
    ((session, label),) = labels(line(kind=kind, onset_turn=onset))
    assert (session, label.session, label.known, label.task) == ("s-1", "s-1", known, "banking/user_task_9")
    assert label.slices == {"suite": "banking", "model": "m-1", **({"kind": kind} if kind else {})}


def test_a_session_without_a_word_of_its_making_has_a_label_that_knows_nothing() -> None:
    bare = b'{"session_id": "", "goal": "Pay.", "events": []}'
    assert labels(bare) == [("f", SessionLabel(session="f", known=None))]


def test_labels_are_of_the_sessions_that_are_read_and_say_nothing_of_others() -> None:
    data = b"\n".join([line(), b"{", line(session_id="s-2"), line({"turn": 0, "role": SECRET}, session_id="s-3")])
    assert [session for session, _ in labels(data)] == ["s-1", "s-2"]
    assert [item.session for item in read(data) if isinstance(item, SessionEnded)] == ["s-1", "s-2"]
