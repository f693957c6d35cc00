"""Arguments that are no JSON are a fault of the call, unless whoever recorded them may have made them so."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import BytesIO

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec import UNSET, Raw

from theodolite.core.arguments import Foreign
from theodolite.core.event import ToolCallProposed
from theodolite.core.reader import Reader
from theodolite.readers.anthropic_messages import AnthropicMessages
from theodolite.readers.conversations.arguments import arguments_of
from theodolite.readers.conversations.broken import SHORTEST
from theodolite.readers.openai_chat import OpenAIChat
from theodolite.readers.openai_responses import OpenAIResponses

WRITTEN_SO = [
    '{"city": "Paris"',
    '{"city": Paris}',
    '{"city": "Paris",}',
    '{"city": "Paris"} and more',
    '{"city": "Paris"}{"city": "Rome"}',
    '{city: "Paris"}',
    '{"path": "C:\\dir"}',
    '{"text": "two\nlines"}',
    '{"text": "say "so" now", "and": "a long text that would be long enough to have been cut by somebody"}',
    '```json\n{"city": "Paris"}\n```',
    '{"flags": [true, False], "none": None}',
]
MAY_BE_CHANGED = [
    '{"city": "Par...',
    '{"city": "Par\u2026',
    '{"city": "Par [truncated]',
    '{"city": "Par<truncated 300 chars>',
    '{"city": "Par (12 more)',
    '{"city": [REDACTED]}',
    '{"city": <PERSON>}',
    '{"city": ***}',
    '{"city": [email:0a1b2c]}',
    '{"city": <hidden>}',
    '{"card": XXXX-1234}',
    "{'city': 'Paris'}",
    "hidden",
    "sha256:9f86d081884c7d65",
    "*",
    "Paris",
    '{"text": "' + "a" * SHORTEST,
]


def _text(text: str) -> tuple[Foreign, ...]:
    return arguments_of(Raw(json.dumps(text).encode())).foreign


@pytest.mark.parametrize("text", WRITTEN_SO)
def test_what_nobody_else_can_have_broken_is_told(text: str) -> None:
    assert _text(text) == (Foreign("", "not_json"),)


@pytest.mark.parametrize("text", MAY_BE_CHANGED)
def test_what_may_have_been_cut_or_redacted_is_not(text: str) -> None:
    given = arguments_of(Raw(json.dumps(text).encode()))
    assert (given.said, given.foreign) == (UNSET, ())
    assert given.fault


@pytest.mark.parametrize("text", ['"{}"', "[1]", "7", "null", '{"a":1' + "0" * 5000 + "}"])
def test_what_is_json_and_no_object_is_no_text_without_json(text: str) -> None:
    assert _text(text) == ()


@pytest.mark.parametrize("value", [[1], 7, True])
def test_what_came_as_a_value_is_not_text(value: object) -> None:
    assert arguments_of(Raw(json.dumps(value).encode())).foreign == ()


def test_what_is_nested_too_deeply_to_be_read_is_told_as_that() -> None:
    assert _text('{"a":' + "[" * 10**5) == (Foreign("", "too_deep"),)


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
_OBJECTS = st.dictionaries(st.text(max_size=8), _VALUES, max_size=6)


def _dumped(value: dict[str, object], indent: int | None, *, plain: bool) -> str:
    return json.dumps(value, ensure_ascii=plain, indent=indent)


_DUMPED = st.builds(_dumped, _OBJECTS, st.sampled_from([None, 2]), plain=st.booleans())
_MARKS = st.sampled_from(
    ["...", "\u2026", "[REDACTED]", "<EMAIL_1>", "****", "[truncated]", "<redacted>", "[email:0a1b]"]
)


@given(_DUMPED, st.data())
def test_no_text_that_was_cut_by_a_recorder_is_a_fault_of_its_call(text: str, data: st.DataObject) -> None:
    long = text[:-1] + ', "more": "' + "m" * SHORTEST + '"}' if len(text) > 2 else '{"more": "' + "m" * SHORTEST + '"}'
    assume(_is_json(long))
    end = data.draw(st.integers(SHORTEST, len(long)))
    kept = long[:end].strip()
    assume(len(kept) >= SHORTEST)
    assert _text(kept) == ()


@given(_DUMPED, _MARKS, st.data())
def test_no_text_with_a_mark_in_place_of_a_part_is_a_fault_of_its_call(
    text: str, mark: str, data: st.DataObject
) -> None:
    begin = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(begin, len(text)))
    assert _text(text[:begin] + mark + text[end:]) == ()


@given(st.text())
def test_any_text_is_read_told_or_left_and_never_raises(text: str) -> None:
    given = arguments_of(Raw(json.dumps(text).encode()))
    assert bool(given.fault) == (given.said is UNSET)
    assert not given.foreign or given.said is UNSET


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _chat(text: str) -> tuple[Reader, object]:
    function = {"name": "find", "arguments": text}
    calls = [{"id": "c", "type": "function", "function": function}]
    messages = [{"role": "user", "content": "x"}, {"role": "assistant", "content": None, "tool_calls": calls}]
    return OpenAIChat(), {"messages": messages}


def _older(text: str) -> tuple[Reader, object]:
    function = {"name": "find", "arguments": text}
    messages = [{"role": "user", "content": "x"}, {"role": "assistant", "content": None, "function_call": function}]
    return OpenAIChat(), {"messages": messages}


def _responses(text: str) -> tuple[Reader, object]:
    call = {"type": "function_call", "name": "find", "call_id": "c", "arguments": text}
    return OpenAIResponses(), {"input": [{"role": "user", "content": "x"}, call]}


def _anthropic(text: str) -> tuple[Reader, object]:
    content = [{"type": "tool_use", "id": "t", "name": "find", "input": text}]
    messages = [{"role": "user", "content": "x"}, {"role": "assistant", "content": content}]
    return AnthropicMessages(), {"messages": messages}


@pytest.mark.parametrize("recorded", [_chat, _older, _responses, _anthropic])
@pytest.mark.parametrize(("text", "foreign"), [('{"a": 1', (Foreign("", "not_json"),)), ("[REDACTED]", ())])
def test_every_form_of_conversation_brings_it_to_the_event(
    recorded: Callable[[str], tuple[Reader, object]], text: str, foreign: tuple[Foreign, ...]
) -> None:
    reader, record = recorded(text)
    (call,) = [
        item
        for item in reader.read(BytesIO(json.dumps(record).encode()), "log.json")
        if isinstance(item, ToolCallProposed)
    ]
    assert (call.values(), call.foreign) == (UNSET, foreign)
