"""A snapshot is a bounded copy that nothing leads back from, and an error tells what it cannot be made of."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from theodolite.core.errors import EventError
from theodolite.core.event import ProbeRequested, decode_event, encode_event
from theodolite.core.snapshot import CHARACTERS, MESSAGES, Message, StateSnapshot
from theodolite.core.summary import CanonicalizedContextSummary

HASH = "0123456789abcdef" * 4
_TEXTS = st.text(st.characters(codec=None), max_size=30)
_MESSAGES = st.lists(st.builds(Message, st.text(st.characters(codec=None), min_size=1, max_size=8), _TEXTS), max_size=8)


def taken(*messages: object) -> tuple[Message, ...]:
    return StateSnapshot(session_id="s-1", context_window=messages).context_window  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - as hosts may


@pytest.mark.parametrize(
    "given_",
    [
        Message("user", "Where\nis it?"),
        {"role": "user", "content": "Where\nis it?"},
        {"role": "user", "text": "Where\nis it?"},
        {"role": "user", "content": [{"type": "text", "text": "Where"}, {"type": "image"}, "is it?"], "name": "eve"},
        ("user", "Where\nis it?"),
        ["user", "Where\nis it?"],
    ],
)
def test_each_form_of_a_message_is_taken(given_: object) -> None:
    assert taken(given_) == (Message("user", "Where\nis it?"),)


def test_a_call_without_text_is_a_message_without_text() -> None:
    assert taken({"role": "assistant", "content": None, "tool_calls": []}) == (Message("assistant", ""),)


def test_nothing_that_the_host_changes_later_changes_a_snapshot() -> None:
    mine = [{"role": "user", "content": "Hello"}]
    snapshot = StateSnapshot(session_id="s-1", context_window=mine)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - as hosts may
    mine[0]["content"] = "Gone"
    mine.clear()
    assert snapshot.context_window == (Message("user", "Hello"),)


def test_the_last_messages_and_their_last_characters_are_kept() -> None:
    assert taken(*[("user", str(n)) for n in range(MESSAGES + 5)]) == tuple(
        [Message("user", str(n)) for n in range(5, MESSAGES + 5)]
    )
    kept = taken(("user", "a"), ("user", "b" * (CHARACTERS - 1)), ("user", "cd"))
    assert [(message.text[0], len(message.text)) for message in kept] == [("b", CHARACTERS - 2), ("c", 2)]


def test_a_summary_may_be_given_as_a_dict() -> None:
    snapshot = StateSnapshot(session_id="s-1", canonicalized_summary={"session_depth": 3})  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - as hosts may
    assert snapshot.canonicalized_summary == CanonicalizedContextSummary(session_depth=3)


@given(_MESSAGES, st.sampled_from(("", HASH, HASH.upper())), st.integers(-(2**40), 2**40), _TEXTS)
def test_what_was_taken_can_be_kept_and_read_back(messages: list[Message], known: str, at: int, name: str) -> None:
    snapshot = StateSnapshot(
        session_id=f"s{name}", timestamp=at, context_window=tuple(messages), system_prompt_hash=known, snapshot_id=name
    )
    assert type(snapshot.timestamp) is float
    asked = ProbeRequested(reason="manual", snapshot=snapshot)
    assert decode_event(encode_event(asked)) == asked


@pytest.mark.parametrize(
    "wrong",
    [
        {"session_id": "s-1", "context_window": [{"role": "", "text": "Hello"}]},
    ],
)
def test_what_no_snapshot_holds_is_not_read_back_either(wrong: dict[str, object]) -> None:
    line = msgspec.json.encode({"event": "ProbeRequested", "reason": "manual", "snapshot": wrong})
    with pytest.raises(EventError):
        decode_event(line)
