"""One conversation, written down in each of three forms, is told in the same events."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from io import BytesIO
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from theodolite.core.event import AnyEvent, Channel, GoalStated, ToolCallProposed, ToolResultObserved
from theodolite.core.reader import Reader, Unreadable
from theodolite.readers.anthropic_messages import AnthropicMessages
from theodolite.readers.openai_chat import OpenAIChat
from theodolite.readers.openai_responses import OpenAIResponses

READERS = (OpenAIChat(), AnthropicMessages(), OpenAIResponses())


class Called(NamedTuple):
    number: str
    tool: str
    arguments: dict[str, object]
    returned: str | tuple[str, ...]


class Round(NamedTuple):
    """What the user says, if anything, and the agent's answer: a text, calls, and what they return."""

    asked: str | None
    said: str
    calls: tuple[Called, ...] = ()


class Told(NamedTuple):
    system: str
    rounds: tuple[Round, ...]
    tools: tuple[str, ...] = ("find",)


SCHEMA = {"type": "object", "properties": {"day": {"type": "string"}}}
JSON = dict[str, object]


def _parts(kind: str, texts: str | Sequence[str]) -> object:
    return texts if isinstance(texts, str) else [{"type": kind, "text": text} for text in texts]


def chat(told: Told) -> JSON:
    messages: list[JSON] = [{"role": "system", "content": told.system}]
    for asked, said, calls in told.rounds:
        if asked is not None:
            messages.append({"role": "user", "content": asked})
        made = [
            {"id": call.number, "type": "function", "function": {"name": call.tool, "arguments": call.arguments}}
            for call in calls
        ]
        spoken = [{"type": "text", "text": said}] if said else None
        messages.append({"role": "assistant", "content": spoken, **({"tool_calls": made} if made else {})})
        messages += [
            {"role": "tool", "tool_call_id": call.number, "content": _parts("text", call.returned)} for call in calls
        ]
    tools = [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in told.tools]
    return {"session_id": "s", "model": "m", "temperature": 0.5, "tools": tools, "messages": messages}


def anthropic(told: Told) -> JSON:
    messages: list[JSON] = []
    for asked, said, calls in told.rounds:
        if asked is not None:
            messages.append({"role": "user", "content": asked})
        spoken: Sequence[JSON] = [{"type": "text", "text": said}] if said else []
        made: Sequence[JSON] = [
            {"type": "tool_use", "id": call.number, "name": call.tool, "input": call.arguments} for call in calls
        ]
        messages.append({"role": "assistant", "content": [*spoken, *made]})
        if calls:
            results = [
                {"type": "tool_result", "tool_use_id": call.number, "content": _parts("text", call.returned)}
                for call in calls
            ]
            messages.append({"role": "user", "content": results})
    tools = [{"name": name, "input_schema": SCHEMA} for name in told.tools]
    beside = {"session_id": "s", "model": "m", "temperature": 0.5, "tools": tools, "system": told.system}
    return {**beside, "messages": messages}


def _function_call(call: Called) -> JSON:
    return {"type": "function_call", "call_id": call.number, "name": call.tool, "arguments": call.arguments}


def responses(told: Told) -> JSON:
    items: list[JSON] = []
    for asked, said, calls in told.rounds:
        if asked is not None:
            items.append({"role": "user", "content": asked})
        if said:
            items.append({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": said}]})
        items += [_function_call(call) for call in calls]
        items += [
            {"type": "function_call_output", "call_id": call.number, "output": _parts("input_text", call.returned)}
            for call in calls
        ]
    tools = [{"type": "function", "name": name, "parameters": SCHEMA} for name in told.tools]
    beside = {"session_id": "s", "model": "m", "temperature": 0.5, "tools": tools, "instructions": told.system}
    return {**beside, "input": items}


FORMS: dict[str, tuple[Reader, Callable[[Told], JSON]]] = {
    "chat": (READERS[0], chat),
    "anthropic": (READERS[1], anthropic),
    "responses": (READERS[2], responses),
}


def read(reader: Reader, recorded: object) -> list[AnyEvent]:
    found = list(reader.read(BytesIO(json.dumps(recorded).encode()), "f.json"))
    assert not [item for item in found if isinstance(item, Unreadable)]
    return [item for item in found if not isinstance(item, Unreadable)]


def bookings() -> Told:
    return Told(
        "Be kind.",
        (
            Round("Book a table.", "I will look.", (Called("c-1", "find", {"day": "Friday"}, "free: 18:00"),)),
            Round(None, "", (Called("c-2", "book", {"at": [18]}, ("done", "bye")), Called("c-3", "mail", {}, "sent"))),
            Round(None, "It is booked."),
            Round("Thanks.", "You are welcome."),
        ),
        ("find", "book", "mail"),
    )


@pytest.mark.parametrize("form", FORMS)
def test_a_conversation_is_told_alike(form: str) -> None:
    reader, write = FORMS[form]
    events = read(reader, write(bookings()))
    assert events == read(READERS[0], chat(bookings()))
    assert [event.turn for event in events if isinstance(event, ToolCallProposed)] == [0, 1, 1]
    assert [(event.tool, event.text) for event in events if isinstance(event, ToolResultObserved)] == [
        ("find", "free: 18:00"),
        ("book", "done\nbye"),
        ("mail", "sent"),
    ]


@pytest.mark.parametrize("form", FORMS)
def test_only_its_own_reader_claims_it(form: str) -> None:
    reader, write = FORMS[form]
    for recorded in (write(bookings()), *([write(bookings())["messages"]] if form != "responses" else [])):
        data = json.dumps(recorded).encode()
        assert [other.name for other in READERS if other.detects(data)] == [reader.name]


words = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
calls = st.builds(
    Called,
    number=st.uuids().map(str),
    tool=words,
    arguments=st.dictionaries(words, words | st.integers(-9, 9) | st.lists(words, max_size=2), max_size=3),
    returned=words | st.lists(words, min_size=1, max_size=2).map(tuple),
)


@st.composite
def conversations(draw: st.DrawFn) -> Told:
    """Draw a conversation that all three forms can say: the user speaks, or something was called, before the agent."""
    rounds: list[Round] = []
    for _ in range(draw(st.integers(1, 4))):
        silent = bool(rounds) and bool(rounds[-1].calls) and draw(st.booleans())
        called = tuple(draw(st.lists(calls, max_size=3, unique_by=lambda call: call.number)))
        said = draw(words if not called else words | st.just(""))
        rounds.append(Round(None if silent else draw(words), said, called))
    return Told(draw(words), tuple(rounds), tuple(draw(st.lists(words, min_size=1, max_size=3, unique=True))))


@settings(deadline=None)
@given(conversations())
def test_any_conversation_is_told_alike(told: Told) -> None:
    expected = read(READERS[0], chat(told))
    assert read(READERS[1], anthropic(told)) == expected
    assert read(READERS[2], responses(told)) == expected
    assert sum(isinstance(event, GoalStated) for event in expected) == 1


def _as_hosts_write(told: Told) -> JSON:
    """Return a Chat Completions recording as most hosts keep it: texts bare, arguments as the JSON of an object."""
    text = json.dumps(chat(told))
    for said in filter(None, [each.said for each in told.rounds]):
        text = text.replace(f'[{{"type": "text", "text": {json.dumps(said)}}}]', json.dumps(said))
    for call in [call for each in told.rounds for call in each.calls]:
        given = json.dumps(call.arguments)
        text = text.replace(f'"arguments": {given}}}', f'"arguments": {json.dumps(given)}}}')
    decoded: JSON = json.loads(text)
    return decoded


def test_as_hosts_write_them_the_forms_differ_in_the_carrier_alone() -> None:
    plain = {Channel.ASSISTANT_TEXT: Channel.ASSISTANT_PART, Channel.TOOL_CALL_STRING: Channel.TOOL_CALL_OBJECT}
    events = read(READERS[0], _as_hosts_write(bookings()))
    assert {event.channel for event in events} >= plain.keys()
    moved = [replace(event, channel=plain.get(event.channel, event.channel)) for event in events]
    assert moved == read(READERS[1], anthropic(bookings()))
