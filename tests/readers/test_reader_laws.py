"""What every reader obeys, on whole files, cut ones, damaged ones, hostile ones and huge ones."""

from __future__ import annotations

import json
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from theodolite.core.event import (
    HOST_EVENTS,
    AnyEvent,
    GoalStated,
    InquirySettled,
    ProbeRequested,
    SessionEnded,
    Tool,
    ToolCallProposed,
    ToolResultObserved,
    ToolsDeclared,
    TurnEnded,
    encode_event,
)
from theodolite.core.labels import Labeled
from theodolite.core.reader import Reader, Recorded, Unreadable
from theodolite.core.reading import Cause, Evidence, Fact, Failure, Reading
from theodolite.core.recording import HEADER, encode_line
from theodolite.readers.agentdojo_runs import AgentDojoRuns
from theodolite.readers.anthropic_messages import AnthropicMessages
from theodolite.readers.inspect_logs import InspectLogs
from theodolite.readers.jsonl import EventLines
from theodolite.readers.labelled import LabelledSessions
from theodolite.readers.openai_chat import OpenAIChat
from theodolite.readers.openai_responses import OpenAIResponses

KEY = b"the operator's key"
SECRET = "hunter2-7f3a"


READING = Reading(
    detector=SECRET,
    version="1",
    code="trajectory.margin",
    score=0.5,
    evidence=(Evidence(kind="margin.passage", seqs=(1,), observed=SECRET),),
    facts=(Fact("rank", SECRET),),
)
FAILURE = Failure(detector=SECRET, version="1", cause=Cause.TIMEOUT, detail=SECRET)
# Others may be at work on the machine.
patient = settings(deadline=None)


class Sample(NamedTuple):
    """A recording in one form, with a secret in every place that takes text."""

    reader: Reader
    data: bytes


def messages() -> list[dict[str, object]]:
    return [
        {"role": "system", "content": f"{SECRET} é"},
        {"role": "user", "content": [{"type": "text", "text": SECRET}, {"type": "image_url", "image_url": SECRET}]},
        {
            "role": "assistant",
            "content": SECRET,
            "tool_calls": [
                {"id": SECRET, "function": {"name": SECRET, "arguments": json.dumps({SECRET: [SECRET]})}},
                {"id": "c-2", "function": {"name": "b", "arguments": {SECRET: 1.5}}},
            ],
        },
        {"role": "tool", "tool_call_id": SECRET, "content": SECRET},
        {"role": "assistant", "content": None, "refusal": SECRET},
        {"role": "user", "content": SECRET},
    ]


def record() -> dict[str, object]:
    tool = {"type": "function", "function": {"name": SECRET, "parameters": {SECRET: {"type": SECRET}}}}
    return {"id": SECRET, "model": SECRET, "temperature": 0.5, "tools": [tool], "messages": messages()}


def blocks() -> list[dict[str, object]]:
    return [
        {
            "role": "user",
            "content": [{"type": "document", "source": {"type": "text", "data": SECRET}, "title": SECRET}],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": SECRET, "signature": SECRET},
                {"type": "text", "text": f"{SECRET} é"},
                {"type": "tool_use", "id": SECRET, "name": SECRET, "input": {SECRET: [SECRET]}},
                {"type": "server_tool_use", "id": "s-1", "name": SECRET, "input": {"query": SECRET}},
                {
                    "type": "web_search_tool_result",
                    "tool_use_id": "s-1",
                    "content": [
                        {"type": "web_search_result", "title": SECRET, "url": SECRET, "encrypted_content": SECRET}
                    ],
                },
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": SECRET, "content": SECRET, "is_error": True},
                {"type": "text", "text": SECRET},
            ],
        },
    ]


def request() -> dict[str, object]:
    tool = {"name": SECRET, "description": SECRET, "input_schema": {SECRET: {"type": SECRET}}}
    return {"model": SECRET, "system": SECRET, "tools": [tool], "messages": blocks()}


def message() -> dict[str, object]:
    usage = {"input_tokens": 1, "output_tokens": 2}
    content = [{"type": "text", "text": SECRET, "citations": None}]
    return {"id": SECRET, "role": "assistant", "content": content, "stop_reason": "end_turn", "usage": usage}


def items() -> list[dict[str, object]]:
    return [
        {
            "role": "user",
            "content": [{"type": "input_text", "text": SECRET}, {"type": "input_image", "file_id": SECRET}],
        },
        {"type": "reasoning", "id": SECRET, "summary": [{"type": "summary_text", "text": SECRET}]},
        {"type": "function_call", "call_id": SECRET, "name": SECRET, "arguments": json.dumps({SECRET: [SECRET]})},
        {"type": "function_call_output", "call_id": SECRET, "output": f"{SECRET} é"},
        {"type": "mcp_approval_request", "id": "a-1", "name": SECRET, "server_label": SECRET, "arguments": "{}"},
        {"type": "mcp_approval_response", "approval_request_id": "a-1", "approve": False, "reason": SECRET},
        {
            "type": "file_search_call",
            "id": SECRET,
            "queries": [SECRET],
            "status": "completed",
            "results": [{"text": SECRET, "filename": SECRET}],
        },
        {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": SECRET}]},
    ]


def response() -> dict[str, object]:
    tool = {"type": "function", "name": SECRET, "parameters": {SECRET: {"type": SECRET}}}
    return {"id": SECRET, "object": "response", "model": SECRET, "tools": [tool], "output": items()}


def labelled(session: str) -> dict[str, object]:
    steps: list[dict[str, object]] = [
        {"turn": 0, "role": "assistant", "tool": SECRET, "args": {SECRET: SECRET}, "text": SECRET},
        {"turn": 0, "role": "tool", "tool": SECRET, "text": SECRET, "error": SECRET},
        {"turn": 1, "role": "assistant", "text": SECRET},
    ]
    return {"session_id": session, "model": SECRET, "suite": SECRET, "kind": "clean", "goal": SECRET, "events": steps}


def run(number: int) -> dict[str, object]:
    call = {"function": SECRET, "args": {SECRET: [SECRET]}, "id": SECRET}
    told: list[dict[str, object]] = [
        {"role": "system", "content": [{"type": "text", "content": SECRET}]},
        {"role": "user", "content": SECRET},
        {"role": "assistant", "content": [{"type": "thinking", "content": SECRET, "id": None}], "tool_calls": [call]},
        {"role": "tool", "content": None, "tool_call": call, "tool_call_id": SECRET, "error": SECRET},
        {"role": "assistant", "content": f"{SECRET} é", "tool_calls": None},
    ]
    attack = {"attack_type": SECRET, "injections": {SECRET: SECRET}, "injection_task_id": SECRET}
    named = {"suite_name": SECRET, "pipeline_name": SECRET, "user_task_id": f"user_task_{number}"}
    return {**named, **attack, "messages": told, "error": None, "utility": True, "security": False}


def sample(number: int) -> dict[str, object]:
    call = {"id": SECRET, "function": SECRET, "arguments": {SECRET: [SECRET]}}
    told: list[dict[str, object]] = [
        {"role": "system", "content": f"{SECRET} é"},
        {"role": "user", "content": [{"type": "text", "text": SECRET}, {"type": "image", "image": SECRET}]},
        {"role": "assistant", "content": [{"type": "reasoning", "reasoning": SECRET}], "tool_calls": [call]},
        {"role": "tool", "content": "", "tool_call_id": SECRET, "error": {"type": "timeout", "message": SECRET}},
    ]
    shown = {"event": "model", "tools": [{"name": SECRET, "parameters": {SECRET: {"type": SECRET}}}]}
    named = {"id": f"{SECRET}-{number}", "epoch": 1, "input": SECRET}
    return {**named, "messages": told, "events": [shown], "metadata": {SECRET: SECRET}}


def log(number: int = 0) -> dict[str, object]:
    named = {"eval_id": f"e-{number}", "task": SECRET, "model": SECRET}
    return {"version": 2, "status": "success", "eval": named, "samples": [sample(1), sample(2)]}


def archived() -> bytes:
    written = BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("_journal/start.json", json.dumps({**log(), "samples": None}))
        for number in (1, 2):
            archive.writestr(f"samples/{SECRET}-{number}_epoch_1.json", json.dumps(sample(number)))
        archive.writestr("header.json", json.dumps({**log(), "samples": None}))
    return written.getvalue()


def own_lines() -> bytes:
    events: list[AnyEvent] = [
        GoalStated(session="s-1", text=SECRET),
        ToolCallProposed(session="s-1", tool=SECRET, arguments={SECRET: [SECRET, 1, None]}, call=SECRET),
        GoalStated(session="s-2", text="é"),
        ToolsDeclared(session="s-2", tools=(Tool(name=SECRET, parameters=Raw(b'{"%b":{}}' % SECRET.encode())),)),
        ProbeRequested(session="s-1", reason=SECRET),
        InquirySettled(session="s-1", asker=SECRET, about=1, said=(READING, FAILURE), first=READING),
        ToolResultObserved(session="s-1", tool=SECRET, text=SECRET, error=True),
        SessionEnded(session="s-1"),
        TurnEnded(session="s-2"),
    ]
    return HEADER + b"".join(encode_line(event, KEY) for event in events)


def as_lines(*values: object) -> bytes:
    return b"".join(json.dumps(value, ensure_ascii=False).encode() + b"\n" for value in values)


SAMPLES = {
    "own": Sample(EventLines(KEY), own_lines()),
    "chat list": Sample(OpenAIChat(), as_lines(messages())),
    "chat list over lines": Sample(OpenAIChat(), json.dumps(messages(), indent=1).encode()),
    "chat object": Sample(OpenAIChat(), json.dumps(record(), indent=1).encode()),
    "chat lines": Sample(OpenAIChat(), as_lines(record(), messages(), record())),
    "anthropic list": Sample(AnthropicMessages(), as_lines(blocks())),
    "anthropic object": Sample(AnthropicMessages(), json.dumps(request(), indent=1).encode()),
    "anthropic pairs": Sample(
        AnthropicMessages(), as_lines(*[{"session_id": SECRET, "request": request(), "response": message()}] * 2)
    ),
    "responses list": Sample(OpenAIResponses(), as_lines(items())),
    "responses object": Sample(OpenAIResponses(), json.dumps(response(), indent=1).encode()),
    "responses pairs": Sample(
        OpenAIResponses(),
        as_lines(*[{"request": {"input": SECRET, "instructions": SECRET}, "response": response()}] * 2),
    ),
    "labelled": Sample(LabelledSessions(), as_lines(labelled("s-1"), labelled("s-2"))),
    "a run": Sample(AgentDojoRuns(), json.dumps(run(1), indent=4).encode()),
    "runs": Sample(AgentDojoRuns(), as_lines(run(1), run(2))),
    "a log": Sample(InspectLogs(), json.dumps(log(), indent=1).encode()),
    "logs": Sample(InspectLogs(), as_lines(log(1), log(2))),
    "an archive": Sample(InspectLogs(), archived()),
}
every_sample = pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)


def read(reader: Reader, data: bytes) -> list[Recorded]:
    return list(reader.read(BytesIO(data), "f.jsonl"))


def events(found: list[Recorded]) -> list[AnyEvent]:
    return [item for item in found if not isinstance(item, Unreadable)]


def check(found: list[Recorded], lines: int) -> None:
    """Assert what holds of anything that a reader yields, whatever it was given."""
    under: set[str] = set()
    for item in found:
        if isinstance(item, Unreadable):
            assert item.file == "f.jsonl"
            assert 0 <= item.line <= lines
            assert item.reason
            assert SECRET not in item.reason
        else:
            encode_event(item)
            assert item.session
            assert type(item) in HOST_EVENTS or isinstance(item, ProbeRequested | InquirySettled)
            if isinstance(item, SessionEnded):
                under.discard(item.session)
            else:
                under.add(item.session)
    assert not under, "a session was not ended"


def check_labels(reader: Reader, data: bytes, found: list[Recorded]) -> None:
    """Assert that a reader of labels tells of the sessions that it reads, in their order, and of no others."""
    if isinstance(reader, Labeled):
        told = list(reader.labels(BytesIO(data), "f.jsonl"))
        assert [session for session, _ in told] == [item.session for item in found if isinstance(item, SessionEnded)]
        assert all(label.session == session for session, label in told)


@every_sample
def test_a_whole_file_is_read_without_a_fault_and_only_its_reader_claims_it(sample: Sample) -> None:
    found = read(sample.reader, sample.data)
    check(found, sample.data.count(b"\n") + 1)
    check_labels(sample.reader, sample.data, found)
    assert not [item for item in found if isinstance(item, Unreadable)]
    assert [other.reader.name for other in SAMPLES.values() if other.reader.detects(sample.data)] == [
        other.reader.name for other in SAMPLES.values() if other.reader.name == sample.reader.name
    ]


@every_sample
def test_reading_twice_gives_the_same(sample: Sample) -> None:
    assert read(sample.reader, sample.data) == read(sample.reader, sample.data)


@every_sample
def test_a_file_cut_at_any_byte_gives_a_prefix_of_its_events(sample: Sample) -> None:
    whole = events(read(sample.reader, sample.data))
    lines = sample.data.count(b"\n") + 1
    for cut in range(len(sample.data)):
        found = read(sample.reader, sample.data[:cut])
        check(found, lines)
        told = events(found)
        # What was open when the file ended is closed: that end is not the recording's.
        while told and isinstance(told[-1], TurnEnded | SessionEnded):
            told.pop()
        assert told == whole[: len(told)]
        assert sum(isinstance(item, Unreadable) for item in found) <= 1


@every_sample
@patient
@given(data=st.data())
def test_a_damaged_file_raises_nothing_and_no_reason_quotes_it(sample: Sample, data: st.DataObject) -> None:
    damaged = bytearray(sample.data)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(damaged)))
        junk = st.sampled_from(
            [b"", b'"', b"\\", b"[", b"]", b"{", b"}", b",", b"\n", b"0", b"\xff", b"\\ud800", b"null"]
        )
        damaged[at : at + data.draw(st.integers(0, 3))] = data.draw(junk | st.binary(max_size=4))
    for other in (
        EventLines(),
        OpenAIChat(),
        AnthropicMessages(),
        OpenAIResponses(),
        LabelledSessions(),
        AgentDojoRuns(),
        InspectLogs(),
        sample.reader,
    ):
        found = read(other, bytes(damaged))
        check(found, damaged.count(b"\n") + 1)
        check_labels(other, bytes(damaged), found)
        other.detects(bytes(damaged))


CHAT = ("role", "content", "messages", "type", "text", "tool_calls", "function", "name", "arguments", "tools")
BLOCKS = ("system", "thinking", "citations", "tool_use_id", "source", "input", "request", "response", "stop_reason")
ITEMS = ("output", "call_id", "summary", "action", "results", "instructions", "error", "status", "id")
OWN = ("event", "theodolite", "version", "session", "seal", "channel")
LABELED = ("session_id", "goal", "events", "turn", "args", "tool", "error", "model", "kind", "onset_turn", "suite")
RUNS = ("suite_name", "pipeline_name", "user_task_id", "attack_type", "injections", "security", "tool_call")
LOGS = (
    "eval",
    "samples",
    "epoch",
    "eval_id",
    "task",
    "metadata",
    "theodolite_label",
    "scores",
    "attachments",
    "version",
)
KINDS = (
    *("tool_use", "tool_result", "document", "thinking", "web_search_tool_result", "compaction", "tool_addition"),
    *("function_call", "function_call_output", "web_search_call", "mcp_call", "reasoning", "additional_tools"),
    *("input_text", "output_text", "item_reference", "mcp_approval_response", "tool_search_call", "completed"),
)
WORDS = ("user", "assistant", "tool", "system", "text", "GoalStated", "Cleared", "events")
atoms = st.none() | st.booleans() | st.floats() | st.integers() | st.text(st.characters(), max_size=5)
json_values: st.SearchStrategy[object] = st.recursive(
    atoms | st.sampled_from((*WORDS, *KINDS)),
    lambda below: (
        st.lists(below, max_size=3)
        | st.dictionaries(st.sampled_from((*CHAT, *BLOCKS, *ITEMS, *OWN, *LABELED, *RUNS, *LOGS)), below, max_size=5)
    ),
    max_leaves=30,
)


@pytest.mark.parametrize(
    "reader",
    [
        EventLines(KEY),
        OpenAIChat(),
        AnthropicMessages(),
        OpenAIResponses(),
        LabelledSessions(),
        AgentDojoRuns(),
        InspectLogs(),
    ],
    ids=lambda reader: reader.name,
)
@patient
@given(st.lists(json_values | st.binary(max_size=30), max_size=4))
def test_arbitrary_content_raises_nothing(reader: Reader, values: list[object]) -> None:
    data = b"\n".join(value if isinstance(value, bytes) else json.dumps(value).encode() for value in values)
    check(read(reader, data), data.count(b"\n") + 1)
    check(read(reader, HEADER + data), data.count(b"\n") + 2)
    reader.detects(data)
    check_labels(reader, data, read(reader, data))


EVENTS = 25_000
TEXT = "x" * 100


def many_own_events() -> Iterator[bytes]:
    yield HEADER
    line = encode_line(ToolResultObserved(session="s-7", tool="t", text=TEXT), None)
    for number in range(EVENTS):
        yield line.replace(b"s-7", b"s-%d" % (number % 7))


def many_messages() -> Iterator[bytes]:
    yield b'[{"role": "user", "content": "go"}'
    call = {"id": "c-0", "function": {"name": "t", "arguments": '{"a": 1}'}}
    said = json.dumps({"role": "assistant", "content": TEXT, "tool_calls": [call]}).encode()
    told = json.dumps({"role": "tool", "tool_call_id": "c-0", "content": TEXT}).encode()
    for number in range(EVENTS // 4):
        yield b", %b, %b" % (said.replace(b"c-0", b"c-%d" % number), told.replace(b"c-0", b"c-%d" % number))
    yield b"]"


def many_blocks() -> Iterator[bytes]:
    yield b'[{"role": "user", "content": "go"}'
    used = {"type": "tool_use", "id": "c-0", "name": "t", "input": {"a": 1}}
    said = json.dumps({"role": "assistant", "content": [{"type": "text", "text": TEXT}, used]}).encode()
    given = {"type": "tool_result", "tool_use_id": "c-0", "content": TEXT}
    told = json.dumps({"role": "user", "content": [given]}).encode()
    for number in range(EVENTS // 4):
        yield b", %b, %b" % (said.replace(b"c-0", b"c-%d" % number), told.replace(b"c-0", b"c-%d" % number))
    yield b"]"


def many_items() -> Iterator[bytes]:
    yield b'[{"role": "user", "content": "go"}'
    said = json.dumps({"type": "message", "role": "assistant", "content": TEXT}).encode()
    call = json.dumps({"type": "function_call", "call_id": "c-0", "name": "t", "arguments": '{"a": 1}'}).encode()
    told = json.dumps({"type": "function_call_output", "call_id": "c-0", "output": TEXT}).encode()
    for number in range(EVENTS // 4):
        yield b", %b, %b, %b" % (said, *(part.replace(b"c-0", b"c-%d" % number) for part in (call, told)))
    yield b"]"


def many_sessions() -> Iterator[bytes]:
    line = as_lines(labelled("s-0"))
    for number in range(EVENTS // 10):
        yield line.replace(b"s-0", b"s-%d" % number)


def many_runs() -> Iterator[bytes]:
    line = as_lines(run(0))
    for number in range(EVENTS // 10):
        yield line.replace(b"user_task_0", b"user_task_%d" % number)


def many_samples() -> Iterator[bytes]:
    yield json.dumps({**log(), "samples": []}, indent=1).encode()[:-4]
    one = json.dumps(sample(0)).encode()
    for number in range(EVENTS // 10):
        yield b"[,"[number > 0 :][:1] + one.replace(b"3a-0", b"3a-%d" % number)
    yield b"]}"


@pytest.mark.parametrize(
    ("reader", "parts"),
    [
        (EventLines(), many_own_events),
        (OpenAIChat(), many_messages),
        (AnthropicMessages(), many_blocks),
        (OpenAIResponses(), many_items),
        (LabelledSessions(), many_sessions),
        (AgentDojoRuns(), many_runs),
        (InspectLogs(), many_samples),
    ],
    ids=["own", "chat list", "anthropic list", "responses list", "labelled", "runs", "a log"],
)
def test_a_long_file_is_read_in_little_memory(
    reader: Reader, parts: Callable[[], Iterator[bytes]], tmp_path: Path
) -> None:
    path = tmp_path / "many.jsonl"
    with path.open("wb") as out:
        out.writelines(parts())
    with path.open("rb") as stream:
        tracemalloc.start()
        try:
            count = sum(not isinstance(item, Unreadable) for item in reader.read(stream, "f.jsonl"))
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert count >= EVENTS
    assert path.stat().st_size > 3 * peak
    assert peak < 1_000_000
