from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from functools import partial
from io import BytesIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET, Raw

from theodolite.core.arguments import Foreign
from theodolite.core.event import (
    AnyEvent,
    Channel,
    GoalStated,
    MessageObserved,
    ModelCalled,
    SessionEnded,
    Source,
    SystemPromptSet,
    Tool,
    ToolCallProposed,
    ToolResultObserved,
    ToolsDeclared,
    TurnEnded,
)
from theodolite.core.reader import Recorded, Unreadable
from theodolite.readers.conversations.pieces import Cut, pieces
from theodolite.readers.openai_chat import OpenAIChat
from theodolite.testing.checks.cost import growth

USER = {"role": "user", "content": "Book a table."}
DONE = {"role": "assistant", "content": "Done."}


def read(data: bytes) -> list[Recorded]:
    return list(OpenAIChat().read(BytesIO(data), "logs/chat.jsonl"))


def told(*messages: object) -> list[Recorded]:
    return read(json.dumps(messages).encode())


def events(found: list[Recorded]) -> list[AnyEvent]:
    return [item for item in found if not isinstance(item, Unreadable)]


def faults(found: list[Recorded]) -> list[tuple[int, str]]:
    return [(item.line, item.reason) for item in found if isinstance(item, Unreadable)]


def kinds(found: Sequence[Recorded]) -> list[str]:
    return [type(item).__name__ for item in found]


def calls(*found: object) -> dict[str, object]:
    return {"role": "assistant", "content": None, "tool_calls": found}


def call(name: object, arguments: object, number: str = "c-1") -> dict[str, object]:
    return {"id": number, "type": "function", "function": {"name": name, "arguments": arguments}}


def proposed(found: list[Recorded]) -> list[ToolCallProposed]:
    return [item for item in found if isinstance(item, ToolCallProposed)]


def test_a_conversation_is_told_event_by_event() -> None:
    found = told(
        {"role": "system", "content": "Be kind."},
        USER,
        {**calls(call("find", '{"day": "Friday"}')), "content": "I will look."},
        {"role": "tool", "tool_call_id": "c-1", "content": "free: 18:00"},
        DONE,
        {"role": "user", "content": "Thanks."},
    )
    text = "Be kind."
    expected: list[AnyEvent] = [
        SystemPromptSet(
            session="chat",
            turn=0,
            channel=Channel.SYSTEM_TEXT,
            source=Source.SYSTEM,
            prompt_hash=hashlib.sha256(text.encode()).hexdigest(),
            length=len(text),
        ),
        GoalStated(session="chat", turn=0, channel=Channel.USER_TEXT, source=Source.USER, text="Book a table."),
        MessageObserved(
            session="chat", turn=0, channel=Channel.USER_TEXT, source=Source.USER, role="user", text="Book a table."
        ),
        MessageObserved(
            session="chat",
            turn=0,
            channel=Channel.ASSISTANT_TEXT,
            source=Source.MODEL,
            role="assistant",
            text="I will look.",
        ),
        ToolCallProposed(
            session="chat",
            turn=0,
            channel=Channel.TOOL_CALL_STRING,
            source=Source.MODEL,
            tool="find",
            arguments={"day": "Friday"},
            call="c-1",
        ),
        ToolResultObserved(
            session="chat",
            turn=0,
            channel=Channel.TOOL_RESULT_TEXT,
            source=Source.TOOL,
            tool="find",
            text="free: 18:00",
            call="c-1",
        ),
        TurnEnded(session="chat", turn=0, channel=Channel.CONTROL, source=Source.SYSTEM),
        MessageObserved(
            session="chat", turn=1, channel=Channel.ASSISTANT_TEXT, source=Source.MODEL, role="assistant", text="Done."
        ),
        TurnEnded(session="chat", turn=1, channel=Channel.CONTROL, source=Source.SYSTEM),
        MessageObserved(
            session="chat", turn=2, channel=Channel.USER_TEXT, source=Source.USER, role="user", text="Thanks."
        ),
        SessionEnded(session="chat", turn=2, channel=Channel.CONTROL, source=Source.SYSTEM),
    ]
    assert found == expected


def test_the_text_of_a_system_prompt_reaches_no_event() -> None:
    for role in ("system", "developer"):
        for content in ("the secret policy", [{"type": "text", "text": "the secret policy"}]):
            found = told({"role": role, "content": content}, USER)
            assert isinstance(found[0], SystemPromptSet)
            assert "secret" not in repr(found)


def test_what_stands_beside_the_messages_comes_first() -> None:
    schema = {"type": "object", "properties": {"day": {"type": "string"}}}
    record = {
        "messages": [USER],
        "temperature": 0.5,
        "top_p": 1,
        "model": "m-1",
        "session_id": "s-7",
        "tools": [
            {"type": "function", "function": {"name": "find", "description": "Finds.", "parameters": schema}},
            {"type": "custom", "custom": {"name": "query"}},
        ],
        "functions": [{"name": "old"}],
    }
    found = read(json.dumps(record).encode())
    assert found[:2] == [
        ToolsDeclared(
            session="s-7",
            turn=0,
            channel=Channel.TOOL_DEFINITION,
            source=Source.SYSTEM,
            tools=(
                Tool(
                    name="find",
                    description="Finds.",
                    parameters=Raw(b'{"type":"object","properties":{"day":{"type":"string"}}}'),
                ),
                Tool(name="query"),
                Tool(name="old"),
            ),
        ),
        ModelCalled(
            session="s-7",
            turn=0,
            channel=Channel.CONTROL,
            source=Source.SYSTEM,
            model="m-1",
            temperature=0.5,
            top_p=1.0,
        ),
    ]
    assert kinds(found)[2:] == ["GoalStated", "MessageObserved", "SessionEnded"]


@pytest.mark.parametrize(
    ("record", "name"),
    [
        ({"id": "a"}, "a"),
        ({"session_id": "b", "id": "a"}, "b"),
        ({"id": 17}, "17"),
        ({"id": 0}, "0"),
        ({"session_id": None, "id": "a"}, "a"),
        ({"id": ""}, "chat"),
        ({"id": None}, "chat"),
        ({}, "chat"),
    ],
)
def test_a_session_is_named_by_its_record_or_after_the_file(record: dict[str, object], name: str) -> None:
    found = read(json.dumps({**record, "messages": [USER]}).encode())
    assert {event.session for event in events(found)} == {name}


def test_each_line_is_a_session_of_its_own() -> None:
    lines = [{"messages": [USER]}, [USER, DONE], {"id": "x", "messages": [USER]}, [USER]]
    found = read(b"\n\n".join(json.dumps(line).encode() for line in lines))
    assert list(dict.fromkeys(event.session for event in events(found))) == ["chat", "chat#3", "x", "chat#7"]
    assert kinds(found).count("SessionEnded") == 4
    assert kinds(found).count("GoalStated") == 4


def test_a_name_that_comes_again_is_told_apart_by_its_line() -> None:
    line = json.dumps({"id": "a", "messages": [USER]}).encode()
    found = read(b"\n".join([line] * 3))
    assert list(dict.fromkeys(event.session for event in events(found))) == ["a", "a#2", "a#3"]


@pytest.mark.parametrize("indent", [None, 0, 1, 2])
def test_one_document_reads_the_same_however_it_is_laid_out(indent: int | None) -> None:
    messages = [
        USER,
        calls(call("find", {"a": [1, {"b": [2]}]})),
        {"role": "tool", "tool_call_id": "c-1", "content": "x"},
    ]
    for record in (messages, {"messages": messages}):
        assert read(json.dumps(record, indent=indent).encode()) == read(json.dumps(record).encode())


@pytest.mark.parametrize(
    ("given", "channel", "values"),
    [
        ('{"a": 1}', Channel.TOOL_CALL_STRING, {"a": 1}),
        ({"a": 1}, Channel.TOOL_CALL_OBJECT, {"a": 1}),
        ("{}", Channel.TOOL_CALL_STRING, {}),
        ("", Channel.TOOL_CALL_STRING, {}),
        (" \n", Channel.TOOL_CALL_STRING, {}),
        ("null", Channel.TOOL_CALL_STRING, None),
        (None, Channel.TOOL_CALL_OBJECT, UNSET),
        ('{"a": "\\ud83d\\ude00"}', Channel.TOOL_CALL_STRING, {"a": "\U0001f600"}),
        ('{"a": 1, "a": 2}', Channel.TOOL_CALL_STRING, {"a": 2}),
        ("[1]", Channel.TOOL_CALL_STRING, None),
        ('"{}"', Channel.TOOL_CALL_STRING, None),
        ('{"a": ', Channel.TOOL_CALL_STRING, None),
        ('{"a": 1} and more', Channel.TOOL_CALL_STRING, None),
        ('{"a":' + "[" * 10**5, Channel.TOOL_CALL_STRING, None),
        ('{"a":1' + "0" * 5000 + "}", Channel.TOOL_CALL_STRING, None),
        ([1], Channel.TOOL_CALL_OBJECT, None),
        (7, Channel.TOOL_CALL_OBJECT, None),
    ],
)
def test_a_call_is_told_whatever_its_arguments(given: object, channel: Channel, values: object) -> None:
    found = told(USER, calls(call("find", given)), DONE)
    (said,) = proposed(found)
    assert (said.tool, said.call, said.channel, said.source) == ("find", "c-1", channel, Source.MODEL)
    reason = (
        "messages[1].tool_calls[0].function.arguments: no JSON object that can be read; the call is kept without them"
    )
    if values is None:
        assert said.values() is UNSET
        assert faults(found) == [(1, reason)]
    else:
        assert said.values() == values
        assert faults(found) == []


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ('{"a": NaN}', Foreign("/a", "NaN")),
        ('{"a": -Infinity}', Foreign("/a", "Infinity")),
        ('{"a": 1e999}', Foreign("/a", "Infinity")),
        ('{"a": "\\ud800"}', Foreign("/a", "lone_surrogate")),
        ('{"a":' + "[" * 150 + "]" * 150 + "}", Foreign("/a" + "/0" * 99, "too_deep")),
    ],
)
def test_arguments_that_hosts_take_but_json_does_not_know_are_listed(given: str, place: Foreign) -> None:
    found = told(USER, calls(call("find", given)))
    assert faults(found) == []
    assert proposed(found)[0].foreign == (place,)


def test_the_older_forms_of_calls_are_read() -> None:
    found = told(
        USER,
        {"role": "assistant", "content": None, "function_call": {"name": "find", "arguments": '{"a":1}'}},
        {"role": "function", "name": "find", "content": "x"},
        calls({"id": "c-2", "type": "custom", "custom": {"name": "query", "input": "select 1"}}),
    )
    first, second = proposed(found)
    assert (first.tool, first.channel, first.values()) == ("find", Channel.FUNCTION_CALL, {"a": 1})
    assert (second.tool, second.channel, second.values()) == (
        "query",
        Channel.TOOL_CALL_STRING,
        {"input": "select 1"},
    )
    (result,) = [item for item in found if isinstance(item, ToolResultObserved)]
    assert (result.tool, result.call) == ("find", "")


def test_results_carry_the_name_of_their_call_in_any_order() -> None:
    found = told(
        USER,
        calls(call("find", "{}", "c-1"), call("book", "{}", "c-2")),
        {
            "role": "tool",
            "tool_call_id": "c-2",
            "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
        },
        {"role": "tool", "tool_call_id": "c-1", "content": "found"},
        {"role": "tool", "tool_call_id": "c-9", "content": None},
        {"role": "tool", "tool_call_id": "c-9", "name": "given", "content": "x"},
    )
    results = [item for item in found if isinstance(item, ToolResultObserved)]
    assert [(item.tool, item.call, item.text, item.channel) for item in results] == [
        ("book", "c-2", "a\nb", Channel.TOOL_RESULT_PART),
        ("find", "c-1", "found", Channel.TOOL_RESULT_TEXT),
        ("", "c-9", UNSET, Channel.TOOL_RESULT_TEXT),
        ("given", "c-9", "x", Channel.TOOL_RESULT_TEXT),
    ]
    assert {item.source for item in results} == {Source.TOOL}


def test_parts_of_a_user_message_come_on_their_own_channels() -> None:
    content = [
        {"type": "text", "text": "What is"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aaaa"}},
        {"type": "text", "text": "this?"},
        {"type": "input_audio", "input_audio": {"data": "aaaa", "format": "wav"}},
        {"type": "file", "file": {"file_id": "f-1"}},
    ]
    found = [item for item in told({"role": "user", "content": content}) if isinstance(item, MessageObserved)]
    assert [(item.channel, item.text) for item in found] == [
        (Channel.USER_PART, "What is\nthis?"),
        (Channel.USER_IMAGE, UNSET),
        (Channel.USER_AUDIO, UNSET),
        (Channel.USER_FILE, UNSET),
    ]
    assert {(item.role, item.source) for item in found} == {("user", Source.USER)}


def test_the_goal_is_the_first_user_message_with_text() -> None:
    image = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}
    found = told(image, {"role": "user", "content": ""}, USER, {"role": "user", "content": "And now?"})
    assert [item.text for item in found if isinstance(item, GoalStated)] == ["Book a table."]


def test_refusals_come_on_their_own_channel() -> None:
    found = told(
        USER,
        {"role": "assistant", "content": None, "refusal": "I will not."},
        {"role": "assistant", "content": [{"type": "text", "text": "Well,"}, {"type": "refusal", "refusal": "no."}]},
    )
    said = [(item.channel, item.text) for item in found if isinstance(item, MessageObserved) and item.role != "user"]
    assert said == [(Channel.REFUSAL, "I will not."), (Channel.ASSISTANT_PART, "Well,"), (Channel.REFUSAL, "no.")]


def test_an_assistant_that_says_nothing_beside_its_calls_gives_no_message() -> None:
    contents: tuple[object, ...] = (None, "", [])
    for content in contents:
        found = told(USER, {**calls(call("find", "{}")), "content": content})
        assert kinds(found) == ["GoalStated", "MessageObserved", "ToolCallProposed", "TurnEnded", "SessionEnded"]


SECRET = "hunter2-7f3a"
JSON: st.SearchStrategy[object] = st.recursive(
    st.none() | st.integers() | st.text(st.characters(codec="utf-8"), max_size=5),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text("ab{}[],", max_size=2), below, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (SECRET, "messages[1]: Expected object, got str"),
        (None, "messages[1]: Expected object, got null"),
        ({"content": SECRET}, "messages[1]: Object missing required field role"),
        ({"role": 7, "content": SECRET}, "messages[1]: Expected str, got int - at $.role"),
        (
            {"role": SECRET},
            "messages[1].role: not one of system, developer, user, assistant, tool, function",
        ),
        ({"role": "user", "content": {SECRET: 1}}, "messages[1].content: Expected str | array | null, got object"),
        (
            {"role": "user", "content": [{"type": SECRET}]},
            "messages[1].content[0]: a part of a kind that is not read here",
        ),
        (
            {"role": "assistant", "content": [{"type": "tool_use", "name": SECRET}]},
            "messages[1].content[0]: a part of the kind tool_use, which is not read here",
        ),
        (
            {"role": "user", "content": [{"type": "text"}]},
            "messages[1].content[0]: a text part without text",
        ),
        ({"role": "user", "content": [SECRET]}, "messages[1].content[0]: Expected object, got str"),
        ({"role": "system", "content": None}, "messages[1].content: a system prompt without text"),
        ({"role": "assistant", "tool_calls": SECRET}, "messages[1].tool_calls: Expected array | null, got str"),
        (
            {"role": "assistant", "tool_calls": [{"id": SECRET}]},
            "messages[1].tool_calls[0]: neither a function nor a custom tool",
        ),
        (
            {"role": "assistant", "tool_calls": [{"function": {"arguments": SECRET}}]},
            "messages[1].tool_calls[0]: Object missing required field name - at $.function",
        ),
        ({"role": "assistant", "content": 7.5}, "messages[1].content: Expected str | array | null, got float"),
        ({"role": "tool", "tool_call_id": [SECRET]}, "messages[1].tool_call_id: Expected str | null, got array"),
    ],
)
def test_a_bad_message_is_reported_without_its_content_and_the_rest_is_read(message: object, reason: str) -> None:
    found = told(USER, message, calls(call("find", "{}")))
    assert faults(found) == [(1, reason)]
    assert {item.session for item in found if isinstance(item, Unreadable)} == {"chat"}
    assert len(proposed(found)) == 1


def test_one_bad_call_does_not_hide_its_neighbors() -> None:
    found = told(USER, calls(call("a", "{}"), call(7, "{}"), "x", call("b", "{}")))
    assert [item.tool for item in proposed(found)] == ["a", "b"]
    assert len(faults(found)) == 2


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (b'{"model": "m"}', "an object without messages"),
        (b'{"messages": null}', "an object without messages"),
        (b'{"messages": "x"}', "Expected array | null, got str"),
        (b'{"messages": [{"role": "user", "content": NaN}]}', "JSON is malformed: invalid character (byte 42)"),
        (b'{"messages": 07}', "JSON is malformed: invalid number (byte 14)"),
        (b'{"messages": [], "messages"}', "JSON is malformed: expected ':' (byte 27)"),
        (b"7", "expected a list or an object"),
        (b"junk {", "expected a list or an object"),
        (b'{"messages": [', "the line ends inside a value"),
        (b'{"messages": ["', "the line ends inside a value"),
        (b'{"messages": "\xff"}', "not UTF-8: byte 14 of it"),
        (b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply to be read"),
    ],
)
def test_a_bad_line_is_reported_and_the_rest_is_read(record: bytes, reason: str) -> None:
    good = json.dumps([USER]).encode()
    found = read(b"\n".join([good, record, good]))
    assert faults(found) == [(2, reason)]
    assert kinds(found).count("GoalStated") == 2


def test_a_first_line_that_is_cut_off_does_not_hide_the_next_ones() -> None:
    good = json.dumps({"messages": [USER]}).encode()
    for cut in (
        b'{"messages": [{"role": "us',
        b'{"messages": [{"role": "user"',
        b'{"messages": [{"role": "user"}',
        b"junk",
    ):
        found = read(b"\n".join([cut, good, good]))
        assert [line for line, _ in faults(found)] == [1]
        assert kinds(found).count("GoalStated") == 2


def test_fields_beside_the_messages_that_are_wrong_are_reported_one_by_one() -> None:
    record = {
        "messages": [USER],
        "model": "m",
        "temperature": "warm",
        "id": [SECRET],
        "tools": [SECRET, {"type": SECRET}, {"type": "function", "function": {"name": "find", "parameters": [SECRET]}}],
    }
    found = read(json.dumps(record).encode())
    assert [reason for _, reason in faults(found)] == [
        "session_id or id: Expected int | str | null, got array",
        "tools[0]: Expected object, got str",
        "tools[1]: neither a function nor a custom tool",
        "tools[2]: Expected object | null, got array - at $.function.parameters",
        "temperature: Expected float | null, got str",
    ]
    assert kinds(events(found)) == ["ModelCalled", "GoalStated", "MessageObserved", "SessionEnded"]


def test_a_schema_that_nests_too_deeply_is_reported_and_its_tool_kept() -> None:
    schema = b'{"a":' * 200 + b"1" + b"}" * 200
    found = read(b'{"messages":[],"tools":[{"function":{"name":"find","parameters":%b}}]}' % schema)
    assert faults(found) == [(1, "tools[0].parameters: nested too deeply to be read")]
    (declared,) = [item for item in found if isinstance(item, ToolsDeclared)]
    assert declared.tools == (Tool(name="find"),)


def test_faults_in_a_long_list_name_their_lines() -> None:
    found = read(
        b'[\n{"role": "user", "content": "x"},\n7,\n{"role": "user",\n"content": NaN},\n'
        b'{"role": "user", "content": "y"}\n]'
    )
    assert [line for line, _ in faults(found)] == [3, 4]
    assert kinds(found).count("MessageObserved") == 2


def test_a_fault_in_an_object_of_many_lines_names_the_line_of_the_fault() -> None:
    assert [line for line, _ in faults(read(b'{\n "messages": [\n {"role": "user"\n "x": 1}]\n}'))] == [4]
    assert [line for line, _ in faults(read(b'{\n "messages": [\n  {"role": "us'))] == [3]


def test_a_list_that_is_cut_off_keeps_the_messages_that_are_whole() -> None:
    for rest in (b"", b",", b', {"role": "us'):
        found = read(b'[{"role": "user", "content": "x"}' + rest)
        assert kinds(found) == ["GoalStated", "MessageObserved", "Unreadable", "SessionEnded"]
        assert faults(found) == [(1, "the file ends inside a value")]


@pytest.mark.parametrize(
    ("head", "claimed"),
    [
        (b'[{"role": "user"', True),
        (b'\xef\xbb\xbf\n [\n {"content": "x", "role": "user"}', True),
        (b'{"model": "m", "messages": [', True),
        (b'{"system": "s", "messages": [', False),
        (b'{"content": {"messages": []}, "x', False),
        (b'{"session_id": "s", "goal": "g", "events": [', False),
        (b'[{"messages": []}]', False),
        (b"[]", False),
        (b"", False),
        (b"messages", False),
    ],
)
def test_lists_of_messages_and_objects_with_messages_are_claimed(head: bytes, claimed: object) -> None:
    assert OpenAIChat().detects(head) is claimed


class TestPieces:
    def cut(self, data: bytes, limit: int = 100) -> list[tuple[Cut, int, bytes]]:
        return [(piece.cut, piece.line, piece.data) for piece in pieces(BytesIO(data), limit)]

    def test_brackets_quotes_and_commas_inside_text_cut_nothing(self) -> None:
        inner = json.dumps({"a": '],"}{[\\', "b\\": ["x,y"]}).encode()
        found = self.cut(b"[" + inner + b"," + inner + b"]")
        assert [data for cut, _, data in found if cut is Cut.ELEMENT] == [inner, inner]

    def test_pieces_do_not_depend_on_how_the_stream_is_read(self) -> None:
        text = json.dumps([{"content": "\\" * 70_000}, {"content": '"' * 70_000}, 7]).encode()
        found = self.cut(text, 10**6)
        assert [json.loads(data) for cut, _, data in found if cut is Cut.ELEMENT] == json.loads(text)

    @settings(deadline=None)
    @given(
        st.lists(st.lists(JSON, max_size=3) | st.dictionaries(st.text("ab", max_size=3), JSON, max_size=3), max_size=4)
    )
    def test_a_line_that_is_a_value_is_cut_the_same_way_by_the_decoder_and_by_hand(self, values: list[object]) -> None:
        lines = [json.dumps(value, ensure_ascii=False).encode() for value in values]
        # A blank before it leaves a line to the scan.
        assert self.cut(b"\n".join([*lines, b""]), 10**6) == self.cut(
            b"".join(b" %b\n" % line for line in lines), 10**6
        )

    def test_a_piece_that_is_too_long_is_reported_and_the_next_one_read(self) -> None:
        long = b'{"a": "%b"}' % (b"x" * 200_000)
        found = list(pieces(BytesIO(b"[" + long + b",\n{},\n" + long + b"]\n" + long + b"\n{}"), 100))
        assert [(piece.cut.name, piece.line, piece.reason) for piece in found] == [
            ("LIST_BEGINS", 1, ""),
            ("FAULT", 1, "longer than 100 bytes"),
            ("ELEMENT", 2, ""),
            ("FAULT", 3, "longer than 100 bytes"),
            ("LIST_ENDS", 3, ""),
            ("FAULT", 4, "longer than 100 bytes"),
            ("OBJECT", 5, ""),
        ]

    def test_a_list_that_a_brace_closes_is_reported(self) -> None:
        found = list(pieces(BytesIO(b"[{}}\n[{}]")))
        assert [piece.reason for piece in found if piece.cut is Cut.FAULT] == ["a list that a brace closes"]

    @pytest.mark.parametrize(
        "flood", [b"[", b"{", b'"', b"\\", b'\\"', b'["\\', b",", b"[,", b"[]", b" ", b"\n", b"{}\n"]
    )
    def test_hostile_floods_take_linear_time(self, flood: bytes) -> None:
        def read(data: bytes) -> None:
            for _ in pieces(BytesIO(data), 2**20):
                pass

        def prepared(start: bytes, size: int) -> Callable[[], None]:
            return partial(read, start + flood * (size // len(flood)))

        for start in (b"", b"[", b'["'):
            assert growth(partial(prepared, start), limit=3.0).ratio <= 3.0
