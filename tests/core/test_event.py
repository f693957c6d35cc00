from __future__ import annotations

import enum
import math
from collections.abc import Callable
from typing import get_args, get_type_hints

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw, Struct, UnsetType

from theodolite.core.errors import EventError
from theodolite.core.event import (
    HOST_EVENTS,
    AnyEvent,
    ApprovalGiven,
    CanaryChecked,
    CanaryVerdict,
    Channel,
    Cleared,
    ContextCompacted,
    Event,
    GoalStated,
    HandedOff,
    HostEvent,
    InquirySettled,
    MessageObserved,
    ModelCalled,
    OwnEvent,
    ProbeRequested,
    SessionEnded,
    Source,
    SystemPromptSet,
    Tool,
    ToolCallProposed,
    ToolResultObserved,
    ToolsDeclared,
    TurnEnded,
    decode_event,
    encode_event,
    stamp,
)
from theodolite.core.reading import Cause, Failure
from theodolite.testing.sessions import every_event, hostile_session, sparse_session
from theodolite.testing.strategies import events, texts

EVERY: tuple[type[Event], ...] = get_args(AnyEvent)

# One of each, with as little as it may have.
LEAST: dict[Callable[..., Event], dict[str, object]] = {
    SystemPromptSet: {"prompt_hash": "e3b0"},
    ToolsDeclared: {"tools": ()},
    GoalStated: {"text": "pay"},
    MessageObserved: {"role": "user"},
    ModelCalled: {"model": "m-1"},
    ToolCallProposed: {"tool": "send"},
    ToolResultObserved: {},
    TurnEnded: {},
    ContextCompacted: {},
    HandedOff: {"to": "a-2"},
    ApprovalGiven: {"call": "c-1"},
    SessionEnded: {},
    ProbeRequested: {"reason": "doubt"},
    InquirySettled: {"asker": "a", "about": 0, "said": ()},
    CanaryChecked: {"contract": "k", "checked": Channel.USER_TEXT, "verdict": CanaryVerdict.HOLDS},
    Cleared: {"operator": "o", "reason": "r"},
}


def least(kind: Callable[..., Event], **fields: object) -> Event:
    return kind(**{**LEAST[kind], **fields})


def text_fields() -> list[tuple[type[Event], str]]:
    """Return each field of each event that holds text."""
    hints = {kind: get_type_hints(kind) for kind in EVERY}
    return [
        (kind, name) for kind in EVERY for name in kind.__struct_fields__ if hints[kind][name] in {str, str | UnsetType}
    ]


def field(struct: Struct, name: str) -> object:
    value: object = getattr(struct, name)
    return value


def test_events_are_of_the_host_or_our_own_and_every_one_is_tested_here() -> None:
    assert set(EVERY) == LEAST.keys()
    assert {kind for kind in EVERY if issubclass(kind, HostEvent)} == HOST_EVENTS
    assert {kind for kind in EVERY if issubclass(kind, OwnEvent)} == set(EVERY) - HOST_EVENTS


@given(events())
def test_an_event_comes_back_equal_and_byte_for_byte(event: AnyEvent) -> None:
    line = encode_event(event)
    again = decode_event(line)
    assert again == event
    assert encode_event(again) == line
    assert b"\n" not in line


@pytest.mark.parametrize(
    "event", [*every_event(), *sparse_session(), *hostile_session()], ids=lambda e: type(e).__name__
)
def test_every_kind_of_event_and_hostile_ones_come_back_byte_for_byte(event: AnyEvent) -> None:
    line = encode_event(event)
    assert encode_event(decode_event(line)) == line


@pytest.mark.parametrize(("kind", "name"), text_fields(), ids=lambda value: getattr(value, "__name__", value))
def test_lone_surrogates_are_spelled_out_in_every_text_field(kind: type[Event], name: str) -> None:
    event = least(kind, **{name: "a\ud800\udfffb"})
    assert field(event, name) == r"a\ud800\udfffb"
    assert msgspec.json.decode(encode_event(event), type=kind) == event


@given(st.sampled_from(text_fields()), texts())
def test_any_text_can_be_kept_in_any_text_field(place: tuple[type[Event], str], text: str) -> None:
    kind, name = place
    event = least(kind, **{name: text})
    assert encode_event(decode_event(encode_event(event))) == encode_event(event)


def test_lone_surrogates_are_spelled_out_in_tools_too() -> None:
    assert Tool(name="\ud800", description="\udfff") == Tool(name=r"\ud800", description=r"\udfff")


JUNK: list[tuple[type[Event], str, object]] = [
    (MessageObserved, "text", None),
    (MessageObserved, "text", 5),
    (MessageObserved, "text", b"bytes"),
    (MessageObserved, "role", "wizard"),
    (MessageObserved, "role", None),
    (ToolCallProposed, "tool", None),
    (ToolCallProposed, "tool", ["send"]),
    (ToolCallProposed, "foreign", ["x"]),
    (ToolResultObserved, "error", "no"),
    (ToolResultObserved, "error", 1),
    (ToolsDeclared, "tools", None),
    (ToolsDeclared, "tools", [{"description": "nameless"}]),
    (ToolsDeclared, "tools", "send"),
    (GoalStated, "at", "now"),
    (GoalStated, "at", math.nan),
    (GoalStated, "at", math.inf),
    (GoalStated, "at", True),
    (GoalStated, "seq", 1.5),
    (GoalStated, "turn", None),
    (GoalStated, "channel", "carrier pigeon"),
    (GoalStated, "source", None),
    (ModelCalled, "temperature", math.nan),
    (ModelCalled, "top_p", -math.inf),
    (ModelCalled, "input_tokens", "many"),
    (InquirySettled, "said", ["drifted"]),
    (InquirySettled, "about", None),
    (CanaryChecked, "verdict", "fine"),
]


@pytest.mark.parametrize(("kind", "name", "junk"), JUNK, ids=lambda value: getattr(value, "__name__", None))
def test_what_a_field_cannot_hold_makes_no_event(kind: type[Event], name: str, junk: object) -> None:
    with pytest.raises(EventError, match=rf"^{kind.__name__}\.{name}: .*; leave out what is not known$"):
        least(kind, **{name: junk})


class Word(str, enum.Enum):  # noqa: UP042 - not a StrEnum, as hosts have them
    SEND = "send"


def test_what_means_the_same_is_taken_as_what_it_means() -> None:
    event = least(ToolCallProposed, tool=Word.SEND, at=5, channel="mcp_result", source="tool", foreign=[])
    assert isinstance(event, ToolCallProposed)
    assert (event.tool, type(event.tool)) == ("send", str)
    assert (event.at, type(event.at)) == (5.0, float)
    assert (event.channel, event.source) == (Channel.MCP_RESULT, Source.TOOL)
    assert event.foreign == ()
    assert decode_event(encode_event(event)) == event


def test_a_list_of_the_caller_s_is_not_held() -> None:
    tools = [Tool(name="send")]
    event = least(ToolsDeclared, tools=tools)
    assert isinstance(event, ToolsDeclared)
    tools.append(Tool(name="added later"))
    assert event.tools == (Tool(name="send"),)


def test_the_schema_of_a_tool_is_copied_and_must_be_json() -> None:
    schema = bytearray(b'{"type":"object"}')
    tool = Tool(name="send", parameters=Raw(schema))
    schema[2:6] = b"evil"
    assert tool.parameters == Raw(b'{"type":"object"}')
    for junk in (b'{"type":', b"[]", b'{},"name":"harmless"'):
        with pytest.raises(EventError, match="the parameters of a tool given as JSON must be one JSON object"):
            Tool(name="send", parameters=Raw(junk))
    with pytest.raises(EventError, match=r"^Tool\.parameters: "):
        Tool(name="send", parameters={"type": "object"})  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - as untyped hosts do


@pytest.mark.parametrize("kind", EVERY)
def test_events_are_frozen(kind: type[Event]) -> None:
    event = least(kind)
    for name in kind.__struct_fields__:
        with pytest.raises(AttributeError):
            setattr(event, name, "changed")


def test_json_given_as_arguments_cannot_smuggle_fields_into_the_event() -> None:
    with pytest.raises(EventError, match="must be one JSON object"):
        ToolCallProposed(tool="send_money", arguments=Raw(b'{"to":"x"},"tool":"get_balance"'))


def test_json_given_as_arguments_is_held_to_the_bounds_of_a_mapping() -> None:
    deep = b'{"a":' * 300 + b"1" + b"}" * 300
    event = ToolCallProposed(tool="t", arguments=Raw(deep))
    assert [place.type for place in event.foreign] == ["too_deep"]
    assert decode_event(encode_event(event)) == event


def test_arguments_that_are_json_of_another_kind_are_refused_from_a_file_too() -> None:
    for junk in (b"[1]", b"null", b'"x"', b"7"):
        with pytest.raises((EventError, msgspec.DecodeError)):
            decode_event(b'{"event":"ToolCallProposed","tool":"t","arguments":' + junk + b"}")


@pytest.mark.parametrize("junk", [None, [1], "text", 5])
def test_arguments_that_are_no_mapping_make_no_event(junk: object) -> None:
    with pytest.raises(EventError, match="arguments must be a mapping"):
        least(ToolCallProposed, arguments=junk)


def test_values_are_a_fresh_copy_each_time_and_unset_where_nothing_was_shown() -> None:
    event = ToolCallProposed(tool="t", arguments={"to": ["a"]})
    first = event.values()
    assert isinstance(first, dict)
    first["to"] = "changed"
    assert event.values() == {"to": ["a"]}
    assert ToolCallProposed(tool="t").values() is UNSET
    assert ToolCallProposed(tool="t", arguments={}).values() == {}


def test_what_was_found_foreign_before_is_kept_when_an_event_is_read_back() -> None:
    event = ToolCallProposed(tool="t", arguments={"a": math.nan})
    again = decode_event(encode_event(event))
    assert isinstance(again, ToolCallProposed)
    assert again.foreign == event.foreign != ()


@given(events())
def test_a_stamped_event_is_the_same_in_its_place(event: AnyEvent) -> None:
    before = encode_event(event)
    stamped = stamp(event, session="s-9", agent="a-9", seq=7, at=12.5, turn=3)
    assert (stamped.session, stamped.agent, stamped.seq, stamped.at, stamped.turn) == ("s-9", "a-9", 7, 12.5, 3)
    kept = set(event.__struct_fields__) - {"session", "agent", "seq", "at", "turn"}
    assert all(field(stamped, name) == field(event, name) for name in kept)
    assert encode_event(event) == before


def test_own_events_can_be_told_from_those_of_a_host() -> None:
    settled = InquirySettled(asker="a", about=1, said=(Failure(detector="a", version="1", cause=Cause.TIMEOUT),))
    assert isinstance(settled, OwnEvent)
    assert not isinstance(TurnEnded(), OwnEvent)


def test_only_users_and_systems_are_trusted() -> None:
    assert {source for source in Source if source.trusted} == {Source.USER, Source.SYSTEM}
    assert TurnEnded().source is Source.EXTERNAL


@pytest.mark.parametrize(
    "line", [b"", b"{}", b'{"event":"Unknown"}', b'{"event":"GoalStated"}', b'{"event":"GoalStated","text":5}', b"[]"]
)
def test_a_line_that_is_no_event_is_a_decode_error(line: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_event(line)
