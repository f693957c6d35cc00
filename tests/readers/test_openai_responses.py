from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from io import BytesIO

import pytest
from msgspec import UNSET, Raw

from theodolite.core.event import (
    AnyEvent,
    ApprovalGiven,
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
from theodolite.readers.openai_responses import OpenAIResponses

USER = {"role": "user", "content": "Book a table."}
SECRET = "hunter2-7f3a"
NOTHING: list[object] = []
EMPTY: dict[str, object] = {}


def read(recorded: object) -> list[Recorded]:
    return list(OpenAIResponses().read(BytesIO(json.dumps(recorded).encode()), "logs/runs.json"))


def events(found: list[Recorded]) -> list[AnyEvent]:
    return [item for item in found if not isinstance(item, Unreadable)]


def faults(found: list[Recorded]) -> list[str]:
    return [item.reason for item in found if isinstance(item, Unreadable)]


def kinds(found: Sequence[Recorded]) -> list[str]:
    return [type(item).__name__ for item in found]


def told(*items: object) -> list[AnyEvent]:
    found = read(items)
    assert faults(found) == []
    return events(found)


def proposed(found: Sequence[Recorded]) -> list[ToolCallProposed]:
    return [item for item in found if isinstance(item, ToolCallProposed)]


def returned(found: Sequence[Recorded]) -> list[ToolResultObserved]:
    return [item for item in found if isinstance(item, ToolResultObserved)]


def said(*items: object) -> list[tuple[str, object, Channel, Source]]:
    return [
        (item.role, item.text, item.channel, item.source) for item in told(*items) if isinstance(item, MessageObserved)
    ]


def test_a_request_with_its_response_is_told_event_by_event() -> None:
    request = {
        "model": "gpt-alias",
        "top_p": 0.5,
        "instructions": "Be kind.",
        "tools": [{"type": "function", "name": "find", "parameters": {"type": "object"}}, {"type": "web_search"}],
        "input": "Book a table.",
    }
    response = {
        "id": "resp_1",
        "object": "response",
        "model": "gpt-6",
        "instructions": "Be kind.",
        "tools": request["tools"],
        "status": "completed",
        "usage": {"input_tokens": 3, "output_tokens": 5, "total_tokens": 8},
        "output": [
            {"type": "function_call", "id": "fc-1", "call_id": "c-1", "name": "find", "arguments": '{"day": "Friday"}'}
        ],
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
    declared, called, system, asked = found[0], found[1], found[2], found[4]
    assert isinstance(declared, ToolsDeclared)
    assert [tool.name for tool in declared.tools] == ["find", "web_search"]
    assert isinstance(called, ModelCalled)
    assert (called.model, called.top_p, called.input_tokens, called.output_tokens) == ("gpt-6", 0.5, 3, 5)
    assert isinstance(system, SystemPromptSet)
    assert system.prompt_hash == hashlib.sha256(b"Be kind.").hexdigest()
    assert isinstance(asked, MessageObserved)
    assert (asked.text, asked.channel) == ("Book a table.", Channel.USER_TEXT)
    (call,) = proposed(found)
    assert (call.values(), call.call, call.channel) == ({"day": "Friday"}, "c-1", Channel.TOOL_CALL_STRING)


def test_each_form_is_read_alone_in_lines_and_in_a_list() -> None:
    answer = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}
    body = {"model": "m", "input": [USER, answer]}
    response = {"id": "resp_1", "object": "response", "model": "m", "output": [answer]}
    pair = {"request": {"input": "Book."}, "response": response}
    forms: list[object] = [body, response, pair, [USER, answer]]
    whole = [[type(event) for event in events(read(form))] for form in forms]
    for form, expected in zip(forms, whole, strict=True):
        assert OpenAIResponses().detects(json.dumps(form).encode())
        lines = json.dumps(form).encode() + b"\n" + json.dumps(form).encode()
        found = events(list(OpenAIResponses().read(BytesIO(lines), "runs.jsonl")))
        assert [type(event) for event in found] == 2 * expected
    several = events(read([body, response, body]))
    assert [type(event) for event in several] == [*whole[0], *whole[1], *whole[0]]
    assert list(dict.fromkeys(event.session for event in several)) == ["runs", "resp_1", "runs#1.2"]


def test_a_list_that_begins_with_an_output_is_one_of_items() -> None:
    found = told({"type": "function_call_output", "call_id": "c-1", "output": "free"}, USER)
    assert kinds(found) == ["ToolResultObserved", "GoalStated", "MessageObserved", "SessionEnded"]


def test_a_turn_is_what_the_model_says_between_answers() -> None:
    call = {"type": "function_call", "name": "find", "arguments": "{}"}
    found = told(
        USER,
        {"type": "reasoning", "id": "r", "summary": NOTHING},
        {"type": "message", "role": "assistant", "content": "I will look."},
        {**call, "call_id": "a"},
        {**call, "call_id": "b"},
        {"type": "function_call_output", "call_id": "a", "output": "x"},
        {"type": "function_call_output", "call_id": "b", "output": "y"},
        {"type": "mcp_call", "id": "m", "name": "book", "server_label": "s", "arguments": "{}", "output": "ok"},
        {"type": "message", "role": "assistant", "content": "Booked."},
    )
    assert [(type(event).__name__, event.turn) for event in found if not isinstance(event, MessageObserved)] == [
        ("GoalStated", 0),
        ("ToolCallProposed", 0),
        ("ToolCallProposed", 0),
        ("ToolResultObserved", 0),
        ("ToolResultObserved", 0),
        ("TurnEnded", 0),
        ("ToolCallProposed", 1),
        ("ToolResultObserved", 1),
        ("TurnEnded", 1),
        ("SessionEnded", 2),
    ]


def test_messages_of_each_role_and_their_parts_come_on_their_channels() -> None:
    model, user = ("assistant", Source.MODEL), ("user", Source.USER)
    cited = {"type": "url_citation", "title": "T", "url": "u", "start_index": 0, "end_index": 1}
    found = said(
        {"role": "developer", "content": [{"type": "input_text", "text": "Be kind."}]},
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "See"},
                {"type": "input_image", "image_url": "x"},
                {"type": "input_file", "file_id": "x"},
                {"type": "input_audio", "input_audio": EMPTY},
            ],
        },
        {
            "type": "message",
            "role": "assistant",
            "content": [
                {"type": "output_text", "text": "a", "annotations": [cited]},
                {"type": "refusal", "refusal": "No."},
            ],
        },
    )
    assert [(role, text, channel, source) for role, text, channel, source in found] == [
        ("user", "See", Channel.USER_PART, user[1]),
        ("user", UNSET, Channel.USER_IMAGE, user[1]),
        ("user", UNSET, Channel.USER_FILE, user[1]),
        ("user", UNSET, Channel.USER_AUDIO, user[1]),
        ("assistant", "a", Channel.ASSISTANT_PART, model[1]),
        ("assistant", "No.", Channel.REFUSAL, model[1]),
        ("assistant", "T\nu", Channel.CITATION, Source.EXTERNAL),
    ]


def test_reasoning_is_told_as_far_as_it_is_shown() -> None:
    summary = [{"type": "summary_text", "text": "s"}]
    whole = [{"type": "reasoning_text", "text": "a"}, {"type": "reasoning_text", "text": "b"}]
    texts = [
        text
        for _, text, channel, _ in said(
            {"type": "reasoning", "id": "r", "summary": summary, "content": whole},
            {"type": "reasoning", "id": "r", "summary": summary, "content": None},
            {"type": "reasoning", "id": "r", "summary": NOTHING, "encrypted_content": "x"},
        )
        if channel is Channel.REASONING
    ]
    assert texts == ["a\nb", "s", UNSET]


def test_what_the_provider_keeps_is_told_without_text() -> None:
    found = read({"model": "m", "input": "Go on.", "previous_response_id": "resp_0", "prompt": {"id": "p"}})
    assert [(item.role, item.text, item.channel) for item in found if isinstance(item, MessageObserved)] == [
        ("system", UNSET, Channel.SYSTEM_TEXT),
        ("assistant", UNSET, Channel.EARLIER_TURN),
        ("user", "Go on.", Channel.USER_TEXT),
    ]
    assert said({"type": "item_reference", "id": "x"}, {"id": "y"}) == [
        ("assistant", UNSET, Channel.EARLIER_TURN, Source.EXTERNAL),
        ("assistant", UNSET, Channel.EARLIER_TURN, Source.EXTERNAL),
    ]
    assert isinstance(told({"type": "compaction", "encrypted_content": "x"})[0], ContextCompacted)


HOST, PROVIDER = Channel.TOOL_CALL_OBJECT, Channel.PROVIDER_TOOL


@pytest.mark.parametrize(
    ("item", "tool", "arguments", "channel"),
    [
        ({"type": "function_call", "name": "f", "arguments": ""}, "f", {}, Channel.TOOL_CALL_STRING),
        ({"type": "custom_tool_call", "name": "f", "input": "x"}, "f", {"input": "x"}, Channel.TOOL_CALL_STRING),
        (
            {"type": "web_search_call", "action": {"type": "search", "query": "q", "sources": NOTHING}},
            "web_search",
            {"type": "search", "query": "q"},
            PROVIDER,
        ),
        ({"type": "file_search_call", "queries": ["q"]}, "file_search", {"queries": ["q"]}, PROVIDER),
        ({"type": "code_interpreter_call", "code": "1"}, "code_interpreter", {"code": "1"}, PROVIDER),
        ({"type": "code_interpreter_call", "code": None}, "code_interpreter", UNSET, PROVIDER),
        (
            {"type": "image_generation_call", "revised_prompt": "a cat", "result": "aaaa"},
            "image_generation",
            {"revised_prompt": "a cat"},
            PROVIDER,
        ),
        ({"type": "mcp_call", "name": "f", "server_label": "s", "arguments": '{"a": 1}'}, "f", {"a": 1}, PROVIDER),
        ({"type": "program", "code": "f()", "call_id": "x"}, "program", {"code": "f()"}, PROVIDER),
        (
            {"type": "computer_call", "action": {"type": "type", "text": "hi"}},
            "computer",
            {"action": {"type": "type", "text": "hi"}},
            HOST,
        ),
        (
            {"type": "local_shell_call", "action": {"type": "exec", "command": ["ls"], "env": {}}},
            "local_shell",
            {"type": "exec", "command": ["ls"], "env": {}},
            HOST,
        ),
        ({"type": "shell_call", "action": {"commands": ["ls"]}}, "shell", {"commands": ["ls"]}, HOST),
        (
            {
                "type": "shell_call",
                "action": {"commands": ["ls"]},
                "environment": {"type": "container_reference", "container_id": "x"},
            },
            "shell",
            {"commands": ["ls"]},
            PROVIDER,
        ),
        (
            {"type": "apply_patch_call", "operation": {"type": "delete_file", "path": "a"}},
            "apply_patch",
            {"type": "delete_file", "path": "a"},
            HOST,
        ),
        ({"type": "tool_search_call", "arguments": [1]}, "tool_search", {"arguments": [1]}, HOST),
        ({"type": "local_shell_call", "action": "\ud800"}, "local_shell", {"action": "\\ud800"}, HOST),
        ({"type": "tool_search_call", "arguments": {"a": 1}, "execution": "client"}, "tool_search", {"a": 1}, HOST),
        ({"type": "tool_search_call", "arguments": {"a": 1}, "execution": "server"}, "tool_search", {"a": 1}, PROVIDER),
    ],
)
def test_every_kind_of_call_is_proposed(
    item: dict[str, object], tool: str, arguments: object, channel: Channel
) -> None:
    (call,) = proposed(told({"id": "x", **item}))
    assert (call.tool, call.values(), call.channel, call.call, call.source) == (
        tool,
        arguments,
        channel,
        "x",
        Source.MODEL,
    )


@pytest.mark.parametrize(
    ("item", "results"),
    [
        ({"type": "web_search_call", "status": "completed", "action": {"type": "search"}}, [(UNSET, False)]),
        (
            {"type": "web_search_call", "action": {"type": "search", "sources": [{"type": "url", "url": "u"}]}},
            [("u", False), (UNSET, False)],
        ),
        ({"type": "web_search_call", "status": "searching", "action": {"type": "search"}}, []),
        ({"type": "web_search_call", "status": "failed", "action": {"type": "search"}}, [(UNSET, True)]),
        ({"type": "file_search_call", "queries": NOTHING, "results": None}, [(UNSET, False)]),
        (
            {"type": "file_search_call", "queries": NOTHING, "results": [{"filename": "a", "text": "b", "score": 1}]},
            [("a\nb", False)],
        ),
        (
            {
                "type": "code_interpreter_call",
                "outputs": [{"type": "logs", "logs": "out"}, {"type": "image", "url": "u"}],
            },
            [("out", False), (UNSET, False)],
        ),
        ({"type": "image_generation_call", "status": "completed", "result": "aaaa"}, [(UNSET, False)]),
        (
            {"type": "image_generation_call", "status": "failed", "error": {"type": "any", "message": "no"}},
            [("no", True)],
        ),
        ({"type": "mcp_call", "name": "f", "arguments": "{}", "output": "done", "error": None}, [("done", False)]),
        ({"type": "mcp_call", "name": "f", "arguments": "{}", "error": "gone"}, [("gone", True)]),
        (
            {
                "type": "mcp_call",
                "name": "f",
                "arguments": "{}",
                "error": {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": "bad"}]},
            },
            [("bad", True)],
        ),
        ({"type": "mcp_call", "name": "f", "arguments": "{}", "output": None}, []),
    ],
)
def test_a_hosted_call_is_told_with_what_came_back(item: dict[str, object], results: list[object]) -> None:
    found = returned(told({"id": "x", **item}))
    assert [(event.text, event.error) for event in found] == results
    assert {event.call for event in found} <= {"x"}
    assert {event.channel for event in found} <= {PROVIDER, Channel.MCP_RESULT}
    web = item["type"] == "web_search_call"
    assert {event.source for event in found} <= {Source.EXTERNAL if web else Source.TOOL}


@pytest.mark.parametrize(
    ("item", "result"),
    [
        (
            {"type": "function_call_output", "call_id": "x", "output": "a"},
            ("", "a", Channel.TOOL_RESULT_TEXT, False),
        ),
        (
            {"type": "custom_tool_call_output", "call_id": "x", "output": [{"type": "input_text", "text": "a"}]},
            ("", "a", Channel.TOOL_RESULT_PART, False),
        ),
        (
            {"type": "function_call_output", "call_id": "x", "output": [{"type": "input_image", "file_id": "f"}]},
            ("", UNSET, Channel.TOOL_RESULT_PART, False),
        ),
        (
            {"type": "computer_call_output", "call_id": "x", "output": {"type": "computer_screenshot"}},
            ("computer", UNSET, Channel.TOOL_RESULT_PART, False),
        ),
        (
            {"type": "local_shell_call_output", "id": "x", "output": "a"},
            ("local_shell", "a", Channel.TOOL_RESULT_TEXT, False),
        ),
        (
            {
                "type": "shell_call_output",
                "call_id": "x",
                "output": [{"stdout": "a", "stderr": "b", "outcome": {"type": "exit", "exit_code": 2}}],
            },
            ("shell", "a\nb", Channel.TOOL_RESULT_PART, True),
        ),
        (
            {
                "type": "shell_call_output",
                "call_id": "x",
                "output": [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
            },
            ("shell", "a", Channel.TOOL_RESULT_PART, False),
        ),
        (
            {
                "type": "shell_call_output",
                "call_id": "x",
                "output": [{"stdout": "", "stderr": "", "outcome": {"type": "timeout"}}],
            },
            ("shell", "", Channel.TOOL_RESULT_PART, True),
        ),
        (
            {"type": "apply_patch_call_output", "call_id": "x", "status": "failed", "output": "no"},
            ("apply_patch", "no", Channel.TOOL_RESULT_TEXT, True),
        ),
        (
            {"type": "program_output", "call_id": "x", "result": "3", "status": "completed"},
            ("program", "3", Channel.TOOL_RESULT_TEXT, False),
        ),
    ],
)
def test_every_kind_of_output_is_a_result(item: dict[str, object], result: object) -> None:
    (found,) = returned(told(item))
    assert (found.tool, found.text, found.channel, found.error) == result
    assert (found.call, found.source) == ("x", Source.TOOL)


def test_a_result_finds_its_call_by_either_id() -> None:
    call = {"type": "local_shell_call", "id": "own", "call_id": "c-1", "action": {"type": "exec"}}
    for number in ({"id": "own"}, {"call_id": "c-1"}):
        (found,) = returned(told(call, {"type": "local_shell_call_output", "output": "a", **number}))
        assert (found.call, found.tool) == ("c-1", "local_shell")


ASKED = {"type": "mcp_approval_request", "id": "ask", "name": "pay", "server_label": "s", "arguments": '{"to": "A"}'}
RAN = {
    "type": "mcp_call",
    "id": "run",
    "name": "pay",
    "server_label": "s",
    "arguments": '{"to": "A"}',
    "output": "paid",
    "approval_request_id": "ask",
}


def test_a_call_that_a_person_allowed_is_proposed_once() -> None:
    allowed = {"type": "mcp_approval_response", "approval_request_id": "ask", "approve": True}
    found = told(ASKED, allowed, RAN)
    assert [(call.tool, call.call) for call in proposed(found)] == [("pay", "ask")]
    assert [item.call for item in found if isinstance(item, ApprovalGiven)] == ["ask"]
    assert [(item.call, item.text, item.channel) for item in returned(found)] == [("ask", "paid", Channel.MCP_RESULT)]


def test_a_call_that_is_not_the_one_that_was_allowed_is_proposed_itself() -> None:
    allowed = {"type": "mcp_approval_response", "approval_request_id": "ask", "approve": True}
    found = told(ASKED, allowed, {**RAN, "arguments": '{"to": "Eve"}'})
    assert [call.values() for call in proposed(found)] == [{"to": "A"}, {"to": "Eve"}]


def test_a_call_that_a_person_refused_failed_for_their_reason() -> None:
    refused = {"type": "mcp_approval_response", "approval_request_id": "ask", "approve": False, "reason": "Not Eve."}
    (found,) = returned(told(ASKED, refused))
    assert (found.call, found.tool, found.text, found.error, found.source) == (
        "ask",
        "pay",
        "Not Eve.",
        True,
        Source.USER,
    )


def test_tools_come_from_everywhere_and_are_added_up() -> None:
    listed = {
        "name": "book",
        "description": "Books.",
        "input_schema": {"type": "object"},
        "annotations": {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": "yes"},
    }
    namespace = {"type": "namespace", "name": "crm", "description": "", "tools": [{"type": "function", "name": "g"}]}
    found = read(
        {
            "model": "m",
            "tools": [{"type": "mcp", "server_label": "s"}, namespace],
            "input": [
                {"type": "mcp_list_tools", "id": "l", "server_label": "s", "tools": [listed]},
                {"type": "mcp_list_tools", "id": "l", "server_label": "s", "tools": [listed]},
                {"type": "additional_tools", "role": "developer", "tools": [{"type": "custom", "name": "h"}]},
                {"type": "tool_search_output", "call_id": "q", "tools": [{"type": "function", "name": "i"}]},
                {"type": "mcp_list_tools", "id": "l", "server_label": "t", "tools": NOTHING, "error": "gone"},
            ],
        }
    )
    assert faults(found) == []
    declared = [item for item in found if isinstance(item, ToolsDeclared)]
    assert [[tool.name for tool in item.tools] for item in declared] == [
        ["mcp", "g"],
        ["mcp", "g", "book"],
        ["mcp", "g", "book", "h"],
        ["mcp", "g", "book", "h", "i"],
    ]
    assert declared[1].source is Source.TOOL
    book = declared[1].tools[2]
    assert (book.read_only, book.destructive, book.open_world) == (False, True, None)
    assert [(item.tool, item.text, item.error) for item in returned(found)] == [
        ("tool_search", "i", False),
        ("mcp_list_tools", "gone", True),
    ]


@pytest.mark.parametrize("names", [("input_schema", "output_schema"), ("inputSchema", "outputSchema")])
def test_a_listed_tool_may_say_what_it_returns(names: tuple[str, str]) -> None:
    deep: dict[str, object] = {}
    for _ in range(101):
        deep = {"not": deep}
    tools = [
        {"name": "book", names[0]: {"type": "object"}, names[1]: {"type": "array"}},
        {"name": "deep", names[1]: deep},
    ]
    found = read({"model": "m", "input": [{"type": "mcp_list_tools", "id": "l", "server_label": "s", "tools": tools}]})
    [declared] = [item for item in found if isinstance(item, ToolsDeclared)]
    said = [(tool.parameters, tool.results) for tool in declared.tools]
    assert said == [(Raw(b'{"type":"object"}'), Raw(b'{"type":"array"}')), (UNSET, UNSET)]
    assert "nested too deeply" in str(faults(found))


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        ({"status": "completed"}, ""),
        ({"status": "failed", "error": {"code": "server_error", "message": SECRET}}, "failed"),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "max_output_tokens"),
        ({"status": "incomplete", "incomplete_details": {"reason": SECRET}}, "incomplete"),
        ({"status": SECRET}, ""),
    ],
)
def test_a_response_that_stopped_early_ends_the_session_with_its_reason(response: object, reason: str) -> None:
    found = read({"request": {"input": "Go."}, "response": response})
    assert isinstance(found[-1], SessionEnded)
    assert found[-1].reason == reason


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        (SECRET, "items[1]: Expected object, got str"),
        ({}, "items[1]: an item without a type"),
        ({"type": "wonder_call", "id": SECRET}, "items[1]: an item of the kind wonder_call, which is not read here"),
        ({"type": SECRET}, "items[1]: an item of a kind that is not read here"),
        ({"role": SECRET, "content": "x"}, "items[1].role: not one of user, assistant, system, developer"),
        (
            {"role": "user", "content": [{"type": "wonder", "text": SECRET}]},
            "items[1].content[0]: a part of the kind wonder, which is not read here",
        ),
        (
            {"type": "function_call", "name": "f", "call_id": "x", "arguments": f'["{SECRET}"]'},
            "items[1].arguments: no JSON object that can be read; the call is kept without them",
        ),
        (
            {"type": "function_call_output", "call_id": "x", "output": [{"type": "wonder"}]},
            "items[1].output[0]: a part of the kind wonder, which is not read here",
        ),
        (
            {"type": "mcp_list_tools", "id": "x", "tools": [{"description": SECRET}]},
            "items[1].tools[0]: a tool without a name",
        ),
    ],
)
def test_what_cannot_be_read_is_reported_by_itself(item: object, reason: str) -> None:
    found = read([USER, item, {"role": "assistant", "content": "Done."}])
    assert faults(found) == [reason]
    assert "Done." in [event.text for event in found if isinstance(event, MessageObserved)]


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"model": "m"}, "an object without input or output"),
        ({"input": None}, "an object without input or output"),
        ({"input": 7}, "Expected str | array | null, got int"),
        (
            {"type": "function_call_output", "output": "x"},
            "an item that stands alone, where a list of items, a request or a response is expected",
        ),
    ],
)
def test_an_object_of_another_kind_is_reported(record: object, reason: str) -> None:
    assert faults(read(record)) == [reason]


def test_tools_that_change_with_every_item_are_followed_only_so_far() -> None:
    tools = [{"type": "function", "name": f"t{number}"} for number in range(2_000)]
    listing = [{"type": "additional_tools", "tools": [{"name": f"n{number}"}]} for number in range(1_000)]
    found = read({"model": "m", "tools": tools, "input": listing})
    told_tools = sum(len(item.tools) for item in found if isinstance(item, ToolsDeclared))
    assert told_tools < 2**20 + 4_000
    assert faults(found)[0].endswith("tools: the tools were declared anew too often to be followed")
