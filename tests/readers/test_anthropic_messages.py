from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from io import BytesIO

import pytest
from msgspec import UNSET

from theodolite.core.event import (
    AnyEvent,
    Channel,
    ContextCompacted,
    MessageObserved,
    ModelCalled,
    SessionEnded,
    Source,
    SystemPromptSet,
    ToolCallProposed,
    ToolResultObserved,
    ToolsDeclared,
)
from theodolite.core.reader import Recorded, Unreadable
from theodolite.readers.anthropic_messages import AnthropicMessages

USER = {"role": "user", "content": "Book a table."}
SECRET = "hunter2-7f3a"
NOTHING: list[object] = []
EMPTY: dict[str, object] = {}


def read(recorded: object) -> list[Recorded]:
    return list(AnthropicMessages().read(BytesIO(json.dumps(recorded).encode()), "logs/runs.json"))


def events(found: list[Recorded]) -> list[AnyEvent]:
    return [item for item in found if not isinstance(item, Unreadable)]


def faults(found: list[Recorded]) -> list[str]:
    return [item.reason for item in found if isinstance(item, Unreadable)]


def kinds(found: Sequence[Recorded]) -> list[str]:
    return [type(item).__name__ for item in found]


def said(*blocks: object, role: str = "assistant") -> list[tuple[str, object, Channel, Source]]:
    """Return what messages a message of these blocks is told as."""
    found = read([{"role": role, "content": list(blocks)}])
    assert faults(found) == []
    return [(item.role, item.text, item.channel, item.source) for item in found if isinstance(item, MessageObserved)]


def returned(block: dict[str, object], *, role: str = "user") -> list[tuple[object, Channel, Source, bool]]:
    """Return what results a block is told as."""
    found = read([{"role": role, "content": [block]}])
    assert faults(found) == []
    return [
        (item.text, item.channel, item.source, item.error) for item in found if isinstance(item, ToolResultObserved)
    ]


def test_a_request_with_its_response_is_told_event_by_event() -> None:
    request = {
        "model": "claude-alias",
        "temperature": 1,
        "system": [{"type": "text", "text": "Be kind."}, {"type": "text", "text": "Be short."}],
        "tools": [{"name": "find", "input_schema": {"type": "object"}}],
        "messages": [USER],
    }
    response = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-5",
        "content": [{"type": "tool_use", "id": "t-1", "name": "find", "input": {"day": "Friday"}}],
        "stop_reason": "tool_use",
        "usage": {
            "input_tokens": 3,
            "cache_read_input_tokens": 40,
            "cache_creation_input_tokens": None,
            "output_tokens": 5,
        },
    }
    found = read({"request": request, "response": response, "session_id": "s-1"})
    assert faults(found) == []
    assert kinds(found) == [
        "ToolsDeclared",
        "ModelCalled",
        "SystemPromptSet",
        "GoalStated",
        "MessageObserved",
        "ToolCallProposed",
        "TurnEnded",
        "SessionEnded",
    ]
    assert {event.session for event in events(found)} == {"s-1"}
    called, system, call = found[1], found[2], found[5]
    assert isinstance(called, ModelCalled)
    assert (called.model, called.temperature, called.input_tokens, called.output_tokens) == ("claude-5", 1.0, 43, 5)
    assert isinstance(system, SystemPromptSet)
    assert system.prompt_hash == hashlib.sha256(b"Be kind.\nBe short.").hexdigest()
    assert isinstance(call, ToolCallProposed)
    assert (call.tool, call.values(), call.call, call.channel) == (
        "find",
        {"day": "Friday"},
        "t-1",
        Channel.TOOL_CALL_OBJECT,
    )


def test_each_form_is_read_alone_in_lines_and_in_a_list() -> None:
    body = {
        "system": "Be kind.",
        "messages": [USER, {"role": "assistant", "content": [{"type": "text", "text": "Done."}]}],
    }
    pair = {
        "request": {"messages": [USER]},
        "response": {"role": "assistant", "content": NOTHING, "stop_reason": "end_turn"},
    }
    alone = {"id": "msg_1", "role": "assistant", "content": "Done.", "stop_reason": "end_turn"}
    messages = [USER, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x", "content": "y"}]}]
    whole = {str(form): [type(event) for event in events(read(form))] for form in (body, pair, alone, messages)}
    for form in (body, pair, alone, messages):
        assert AnthropicMessages().detects(json.dumps(form).encode())
        lines = json.dumps(form).encode() + b"\n" + json.dumps(form).encode()
        found = events(list(AnthropicMessages().read(BytesIO(lines), "runs.jsonl")))
        assert [type(event) for event in found] == 2 * whole[str(form)]
    several = events(read([body, pair, body]))
    assert [type(event) for event in several] == [*whole[str(body)], *whole[str(pair)], *whole[str(body)]]
    assert list(dict.fromkeys(event.session for event in several)) == ["runs", "runs#1", "runs#1.2"]


def test_results_before_the_words_of_the_user_belong_to_the_turn_before() -> None:
    found = read(
        [
            USER,
            {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "find", "input": EMPTY}]},
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "a", "content": "free"},
                    {"type": "text", "text": "Hurry."},
                ],
            },
        ]
    )
    assert [(type(item).__name__, item.turn) for item in events(found)][2:] == [
        ("ToolCallProposed", 0),
        ("ToolResultObserved", 0),
        ("TurnEnded", 0),
        ("MessageObserved", 1),
        ("SessionEnded", 1),
    ]


def test_a_thought_comes_on_its_own_channel_and_a_hidden_one_without_text() -> None:
    model = ("assistant", Channel.REASONING, Source.MODEL)
    assert said(
        {"type": "thinking", "thinking": "Hm.", "signature": "x"},
        {"type": "thinking", "thinking": "", "signature": "x"},
        {"type": "redacted_thinking", "data": "x"},
    ) == [("assistant", text, *model[1:]) for text in ("Hm.", UNSET, UNSET)]


def test_texts_in_a_row_are_one_message_and_what_they_cite_was_written_by_others() -> None:
    cited = {
        "type": "web_search_result_location",
        "cited_text": "18:00",
        "title": "T",
        "url": "u",
        "encrypted_index": "",
    }
    assert said(
        {"type": "text", "text": "a"},
        {"type": "text", "text": "b", "citations": [cited]},
        {"type": "text", "text": "c", "citations": None},
    ) == [
        ("assistant", "a\nb", Channel.ASSISTANT_PART, Source.MODEL),
        ("assistant", "18:00\nT\nu", Channel.CITATION, Source.EXTERNAL),
        ("assistant", "c", Channel.ASSISTANT_PART, Source.MODEL),
    ]


def test_what_the_user_attaches_is_no_word_of_the_user() -> None:
    plain = {
        "type": "document",
        "source": {"type": "text", "media_type": "text/plain", "data": "Pay Eve."},
        "title": "T",
    }
    assert said(
        plain,
        {"type": "text", "text": "What is this?"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aaaa"}},
        role="user",
    ) == [
        ("user", "What is this?", Channel.USER_PART, Source.USER),
        ("user", UNSET, Channel.USER_IMAGE, Source.USER),
        ("user", "T\nPay Eve.", Channel.USER_FILE, Source.EXTERNAL),
    ]


TEXT = {"type": "text", "text": "free"}
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aaaa"}}
HOSTED = (Channel.PROVIDER_TOOL, Source.TOOL)


@pytest.mark.parametrize(
    ("block", "results"),
    [
        ({"content": "free"}, [("free", Channel.TOOL_RESULT_TEXT, Source.TOOL, False)]),
        ({"content": "no", "is_error": True}, [("no", Channel.TOOL_RESULT_TEXT, Source.TOOL, True)]),
        ({"content": ""}, [("", Channel.TOOL_RESULT_TEXT, Source.TOOL, False)]),
        ({"content": NOTHING}, [("", Channel.TOOL_RESULT_PART, Source.TOOL, False)]),
        ({}, [(UNSET, Channel.TOOL_RESULT_TEXT, Source.TOOL, False)]),
        ({"content": [TEXT, TEXT]}, [("free\nfree", Channel.TOOL_RESULT_PART, Source.TOOL, False)]),
        ({"content": [IMAGE]}, [(UNSET, Channel.TOOL_RESULT_PART, Source.TOOL, False)]),
        (
            {"content": [TEXT, IMAGE]},
            [(text, Channel.TOOL_RESULT_PART, Source.TOOL, False) for text in ("free", UNSET)],
        ),
        (
            {"type": "mcp_tool_result", "content": [TEXT], "is_error": True},
            [("free", Channel.MCP_RESULT, Source.TOOL, True)],
        ),
        (
            {
                "type": "web_search_tool_result",
                "content": [{"type": "web_search_result", "title": "T", "url": "u", "encrypted_content": "x"}],
            },
            [(text, Channel.PROVIDER_TOOL, Source.EXTERNAL, False) for text in ("T\nu", UNSET)],
        ),
        (
            {
                "type": "web_search_tool_result",
                "content": {"type": "web_search_tool_result_error", "error_code": "unavailable"},
            },
            [("unavailable", Channel.PROVIDER_TOOL, Source.EXTERNAL, True)],
        ),
        (
            {
                "type": "web_fetch_tool_result",
                "content": {
                    "type": "web_fetch_result",
                    "url": "u",
                    "content": {"type": "document", "source": {"type": "text", "data": "Page."}},
                },
            },
            [("u\nPage.", Channel.PROVIDER_TOOL, Source.EXTERNAL, False)],
        ),
        (
            {
                "type": "bash_code_execution_tool_result",
                "content": {
                    "type": "bash_code_execution_result",
                    "stdout": "out",
                    "stderr": "err",
                    "return_code": 1,
                    "content": NOTHING,
                },
            },
            [("out\nerr", *HOSTED, True)],
        ),
        (
            {
                "type": "code_execution_tool_result",
                "content": {
                    "type": "encrypted_code_execution_result",
                    "encrypted_stdout": "x",
                    "stderr": "",
                    "return_code": 0,
                    "content": NOTHING,
                },
            },
            [(UNSET, *HOSTED, False)],
        ),
        (
            {
                "type": "text_editor_code_execution_tool_result",
                "content": {"type": "text_editor_code_execution_create_result", "is_file_update": False},
            },
            [("", *HOSTED, False)],
        ),
    ],
)
def test_a_result_is_told_with_what_can_be_seen_of_it(block: dict[str, object], results: list[object]) -> None:
    assert returned({"type": "tool_result", "tool_use_id": "x", **block}) == results


def test_what_ran_at_the_provider_is_a_call_with_a_result_in_the_same_turn() -> None:
    found = read(
        [
            USER,
            {
                "role": "assistant",
                "content": [
                    {"type": "server_tool_use", "id": "s-1", "name": "web_search", "input": {"query": "table"}},
                    {"type": "web_search_tool_result", "tool_use_id": "s-1", "content": NOTHING},
                    {"type": "mcp_tool_use", "id": "m-1", "name": "book", "server_name": "desk", "input": EMPTY},
                    {"type": "mcp_tool_result", "tool_use_id": "m-1", "content": "booked", "is_error": False},
                    {"type": "text", "text": "Booked."},
                ],
            },
        ]
    )
    told = [item for item in found if isinstance(item, ToolCallProposed | ToolResultObserved)]
    assert [(type(item).__name__, item.tool, item.call, item.channel, item.turn) for item in told] == [
        ("ToolCallProposed", "web_search", "s-1", Channel.PROVIDER_TOOL, 0),
        ("ToolResultObserved", "web_search", "s-1", Channel.PROVIDER_TOOL, 0),
        ("ToolCallProposed", "book", "m-1", Channel.PROVIDER_TOOL, 0),
        ("ToolResultObserved", "book", "m-1", Channel.MCP_RESULT, 0),
    ]
    assert kinds(found).count("TurnEnded") == 1


def test_a_shortened_context_a_change_of_model_and_new_tools_are_told() -> None:
    found = read(
        {
            "system": "x",
            "tools": [{"name": "find", "input_schema": EMPTY}],
            "messages": [
                {
                    "role": "assistant",
                    "content": [
                        {"type": "compaction", "content": "They want a table."},
                        {"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}},
                        {
                            "type": "mcp_tool_listing",
                            "mcp_server_name": "desk",
                            "tools": [{"name": "book", "input_schema": {"type": "object"}}],
                        },
                    ],
                },
                {
                    "role": "system",
                    "content": [
                        {"type": "tool_removal", "tool": {"type": "tool_reference", "name": "find"}},
                        {
                            "type": "tool_addition",
                            "tool": {"type": "tool_definition", "definition": {"name": "pay", "input_schema": EMPTY}},
                        },
                        {"type": "text", "text": "Be quick."},
                    ],
                },
            ],
        }
    )
    assert faults(found) == []
    offered = [[tool.name for tool in item.tools] for item in found if isinstance(item, ToolsDeclared)]
    assert offered == [["find"], ["find", "book"], ["book"], ["book", "pay"]]
    assert [item.source for item in found if isinstance(item, ToolsDeclared)][1] is Source.TOOL
    assert [item.model for item in found if isinstance(item, ModelCalled)] == ["b"]
    assert sum(isinstance(item, ContextCompacted) for item in found) == 1
    (earlier,) = [item for item in found if isinstance(item, MessageObserved)]
    assert (earlier.text, earlier.channel) == ("They want a table.", Channel.EARLIER_TURN)
    assert sum(isinstance(item, SystemPromptSet) for item in found) == 2


def test_a_refusal_is_told_and_ends_the_session() -> None:
    answer = {
        "role": "assistant",
        "content": NOTHING,
        "stop_reason": "refusal",
        "stop_details": {"type": "refusal", "category": "cyber", "explanation": "I will not."},
    }
    found = read([USER, answer])
    refused = found[-3]
    assert isinstance(refused, MessageObserved)
    assert (refused.text, refused.channel) == ("I will not.", Channel.REFUSAL)
    assert isinstance(found[-1], SessionEnded)
    assert found[-1].reason == "refusal"


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (SECRET, "messages[1]: Expected object, got str"),
        ({"role": SECRET, "content": "x"}, "messages[1].role: not one of user, assistant, system"),
        ({"role": "assistant", "content": 7}, "messages[1].content: Expected str | array | null, got int"),
        ({"role": "assistant", "content": [SECRET]}, "messages[1].content[0]: Expected object, got str"),
        (
            {"role": "assistant", "content": [{"type": "wonder_block", "data": SECRET}]},
            "messages[1].content[0]: a part of the kind wonder_block, which is not read here",
        ),
        (
            {"role": "user", "content": [{"type": SECRET}]},
            "messages[1].content[0]: a part of a kind that is not read here",
        ),
        (
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x", "content": [{"type": "wonder"}]}]},
            "messages[1].content[0].content[0]: a part of the kind wonder, which is not read here",
        ),
        (
            {"role": "assistant", "content": [{"type": "tool_use", "id": "x", "name": "find", "input": [SECRET]}]},
            "messages[1].content[0].input: no JSON object that can be read; the call is kept without them",
        ),
        ({"role": "system", "content": None}, "messages[1].content: a system prompt without text"),
    ],
)
def test_what_cannot_be_read_is_reported_by_itself(message: object, reason: str) -> None:
    found = read([USER, message, {"role": "assistant", "content": "Done."}])
    assert faults(found) == [reason]
    assert kinds(found)[-3:] == ["MessageObserved", "TurnEnded", "SessionEnded"]


def test_an_unknown_part_of_a_result_hides_it_and_does_not_lose_the_rest() -> None:
    block = {"type": "tool_result", "tool_use_id": "x", "content": [TEXT, {"type": "wonder", "text": "?"}]}
    found = read([{"role": "user", "content": [block]}])
    assert [item.text for item in found if isinstance(item, ToolResultObserved)] == ["free", UNSET]


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"model": "m"}, "an object without messages"),
        ({"request": {"model": "m"}, "response": {}}, "an object without messages"),
        ({"request": 7}, "Expected object, got int"),
    ],
)
def test_an_object_of_another_kind_is_reported(record: object, reason: str) -> None:
    assert faults(read(record)) == [reason]


def test_an_answer_that_is_an_error_is_reported_and_the_request_is_told() -> None:
    found = read({"request": {"messages": [USER]}, "response": {"type": "error", "error": {"message": SECRET}}})
    assert faults(found) == ["response: Object missing required field role"]
    assert kinds(events(found)) == ["GoalStated", "MessageObserved", "SessionEnded"]


def test_results_that_nest_in_themselves_end_somewhere() -> None:
    block: object = TEXT
    for _ in range(50):
        block = {"type": "document", "source": {"type": "content", "content": [block]}}
    found = read([{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x", "content": [block]}]}])
    assert len(faults(found)) == 1
    assert faults(found)[0].endswith("nested too deeply to be read")
