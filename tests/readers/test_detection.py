from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pytest

from theodolite.core.errors import ConfigError
from theodolite.core.event import GoalStated, SessionEnded, ToolCallProposed
from theodolite.core.labels import Known
from theodolite.core.reader import Recorded, Unreadable
from theodolite.core.recording import HEADER, encode_line
from theodolite.readers.agentdojo_runs import AgentDojoRuns
from theodolite.readers.anthropic_messages import AnthropicMessages
from theodolite.readers.detection import HEAD, detect, find_recordings, open_labels, open_recording
from theodolite.readers.inspect_logs import InspectLogs
from theodolite.readers.jsonl import EventLines
from theodolite.readers.labelled import LabelledSessions
from theodolite.readers.openai_chat import OpenAIChat
from theodolite.readers.openai_responses import OpenAIResponses

READERS = (
    *(EventLines(), OpenAIChat(), AnthropicMessages(), OpenAIResponses()),
    *(LabelledSessions(), AgentDojoRuns(), InspectLogs()),
)
KNOWN = (
    "theodolite-events, openai-chat, anthropic-messages, openai-responses, "
    "labelled-sessions, agentdojo-runs, inspect-logs"
)
EXAMPLES = Path(__file__).parents[2] / "examples" / "sessions"
GOAL = GoalStated(session="s", text="x")
PLAIN = HEADER + encode_line(GOAL, None)


class Claims:
    def __init__(self, name: str) -> None:
        self.name = name

    def detects(self, head: bytes) -> bool:
        return head.startswith(b"[")

    def read(self, stream: BinaryIO, file: str) -> Iterator[Recorded]:
        yield Unreadable(file=file, line=0, reason=f"{self.name} read {len(stream.read())} bytes")


def written(folder: Path, data: bytes, name: str = "a.jsonl") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def opened(path: Path, name: str | None = None) -> list[Recorded]:
    return list(open_recording(path, READERS, name=name))


def reasons(found: list[Recorded]) -> list[tuple[int, str]]:
    return [(item.line, item.reason) for item in found if isinstance(item, Unreadable)]


def test_the_one_reader_that_claims_a_file_gets_it() -> None:
    assert detect(PLAIN, READERS).name == "theodolite-events"
    assert detect(b'[{"role": "user"}]', READERS).name == "openai-chat"
    assert detect(b'{"session_id": "", "goal": "", "events": []}', READERS).name == "labelled-sessions"


CHAT, ANTHROPIC, RESPONSES = "openai-chat", "anthropic-messages", "openai-responses"


@pytest.mark.parametrize(
    ("head", "form"),
    [
        # What every form of messages has is the plainest one's.
        ('[{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]', CHAT),
        ('[{"role": "user", "content": [{"type": "text", "text": "x"}]}]', CHAT),
        ('{"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}', CHAT),
        ('{"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f"}}]}]}', CHAT),
        ('{"messages": [], "tools": [{"type": "function", "function": {"name": "f"}}]}', CHAT),
        ('[{"role": "user", "content": "x"}, {"role": "assistant", "content": [{"type": "tool_use"', ANTHROPIC),
        ('[{"role": "user", "content": [{"type": "image", "source": {}}]}]', ANTHROPIC),
        ('{"system": "s", "messages": []}', ANTHROPIC),
        ('{"messages": [], "tools": [{"name": "f", "input_schema": {}}]}', ANTHROPIC),
        ('{"messages": [{"role": "user", "content": [{"type": "tool_result"}]}]}', ANTHROPIC),
        ('{"request": {"messages": []}, "response": {"type": "message", "stop_reason": "end_turn"}}', ANTHROPIC),
        ('[{"system": "s", "messages": []}]', ANTHROPIC),
        ('[{"request": {"system": "s", "messages": []}, "response": {}}]', ANTHROPIC),
        ('{"id": "msg", "type": "message", "role": "assistant", "content": [], "stop_reason": null}', ANTHROPIC),
        ('[{"role": "user", "content": "x"}, {"type": "function_call", "name": "f"}]', RESPONSES),
        ('[{"type": "message", "role": "user", "content": [{"type": "input_text"', RESPONSES),
        ('{"model": "m", "input": "x"}', RESPONSES),
        ('{"instructions": "s", "input": [{"role": "user", "content": "x"}]}', RESPONSES),
        ('{"id": "resp", "object": "response", "output": []}', RESPONSES),
        ('{"request": {"model": "m", "input": "x"}, "response": {}}', RESPONSES),
        ('[{"model": "m", "input": "x"}, {"model": "m", "input": "y"}]', RESPONSES),
    ],
)
def test_the_forms_of_messages_are_told_apart_by_what_only_one_of_them_has(head: str, form: str) -> None:
    assert [reader.name for reader in READERS if reader.detects(head.encode())] == [form]


def test_marks_in_what_was_said_or_called_are_no_marks() -> None:
    said = json.dumps({"type": "tool_use", "system": "s", "content": [{"type": "input_text"}], "messages": []})
    call = {"function": {"name": "f", "arguments": {"content": [{"type": "tool_use"}], "input": 1, "model": 2}}}
    recorded = [{"role": "user", "content": said}, {"role": "assistant", "content": None, "tool_calls": [call]}]
    assert detect(json.dumps(recorded).encode(), READERS).name == CHAT


def test_a_mixture_of_forms_is_not_guessed_at() -> None:
    call = {"role": "assistant", "tool_calls": [{"id": "x"}]}
    for other, form in (
        ({"role": "assistant", "content": [{"type": "tool_use"}]}, ANTHROPIC),
        ({"type": "function_call_output", "call_id": "x", "output": "y"}, RESPONSES),
    ):
        with pytest.raises(ConfigError, match=f"could be any of {CHAT}, {form}; .* --reader NAME"):
            detect(json.dumps([{"role": "user", "content": "x"}, call, other]).encode(), READERS)


def test_a_mark_beyond_the_head_makes_no_other_claim_and_is_reported(tmp_path: Path) -> None:
    used = {"type": "tool_use", "id": "a", "name": "f", "input": None}
    recorded = [{"role": "user", "content": "x" * 2 * HEAD}, {"role": "assistant", "content": [used]}]
    path = written(tmp_path, json.dumps(recorded).encode())
    assert reasons(opened(path)) == [(1, "messages[1].content[0]: a part of the kind tool_use, which is not read here")]
    assert reasons(opened(path, ANTHROPIC)) == []


@pytest.mark.parametrize("name", [reader.name for reader in READERS])
@pytest.mark.parametrize(
    "data",
    [
        b"[" * 100_000,
        b"[" * 100_000 + b"]" * 100_000,
        b'{"messages":' * 100_000,
        b'{"messages":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"input":' + b'{"input":' * 100_000,
        b'[{"role":"user","content":' + b"[" * 100_000 + b"]" * 100_000 + b"}]",
        b'[{"type":"local_shell_call","action":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}]",
    ],
    ids=["lists", "closed lists", "objects", "a list", "input", "content", "an action"],
)
def test_what_nests_100_000_deep_is_refused(data: bytes, name: str, tmp_path: Path) -> None:
    path = written(tmp_path, data)
    for reader in (None, name):
        try:
            found = opened(path, reader)
        except ConfigError as error:
            assert len(str(error)) < 1_000  # noqa: PT017 - where no form is told, this says so
        else:
            assert reasons(found)
            assert all(len(reason) < 200 for _, reason in reasons(found))


def test_no_claim_and_several_are_errors_that_name_the_file_the_formats_and_the_way_out() -> None:
    with pytest.raises(ConfigError) as none:
        detect(b'{"id": 7}', READERS, file="a.jsonl")
    assert str(none.value) == (
        f"a.jsonl is in none of the known formats, {KNOWN}: expected is, for example, a list of messages with a role, "
        "alone or under the key messages. The formats are on the page docs/reference/cli.md"
    )
    with pytest.raises(ConfigError) as several:
        detect(b"[", (*READERS, Claims("one"), Claims("two")), file="a.jsonl")
    assert str(several.value) == (
        f"a.jsonl could be any of one, two; the known formats are {KNOWN}, one, two: "
        "give the right one with --reader NAME"
    )


def test_labels_come_from_where_the_sessions_come_from_packed_or_plain(tmp_path: Path) -> None:
    told = b'{"session_id": "s", "goal": "x", "kind": "clean", "events": []}'
    for data in (told, gzip.compress(told)):
        assert [label.known for _, label in open_labels(written(tmp_path, data), READERS)] == [Known.CLEAN]
    for data in (PLAIN, b"", gzip.compress(told)[:-30]):
        assert list(open_labels(written(tmp_path, data), READERS, name="theodolite-events")) == []
    with pytest.raises(ConfigError, match="in none of the known formats"):
        list(open_labels(written(tmp_path, b"Dear diary"), READERS))
    with pytest.raises(ConfigError, match="cannot be opened"):
        list(open_labels(tmp_path / "absent", READERS))


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (b"Dear diary", "a session is expected as JSON, and this is none"),
        (b"[]", "it begins with an empty list or object"),
        (b"[ [[", "it begins with a list in a list"),
        (b'{"id": "c", "object": "chat.completion", "choices": []}', "this looks like one answer of a model"),
    ],
)
def test_what_is_no_session_is_told_what_it_looks_like(head: bytes, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        detect(head, READERS)


def test_plain_and_packed_files_read_the_same_whatever_their_name(tmp_path: Path) -> None:
    expected = [GOAL, SessionEnded]
    for data, name in ((PLAIN, "plain.gz"), (gzip.compress(PLAIN), "packed.jsonl")):
        found = opened(written(tmp_path, data, name))
        assert [found[0], type(found[1])] == expected
    two_members = gzip.compress(PLAIN[:50]) + gzip.compress(PLAIN[50:])
    assert opened(written(tmp_path, two_members))[0] == GOAL


def test_the_name_of_a_reader_goes_before_detection(tmp_path: Path) -> None:
    found = opened(written(tmp_path, PLAIN), "openai-chat")
    assert reasons(found) == [(1, "an object without messages"), (2, "an object without messages")]


def test_a_name_that_no_reader_has_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"no reader is named 'nope': the known ones are {KNOWN}"):
        opened(written(tmp_path, PLAIN), "nope")


@pytest.mark.parametrize(
    "data",
    [b"", b"\n \r\n", b"\xef\xbb\xbf", gzip.compress(b"", mtime=0)],
    ids=["no bytes", "blank lines", "a byte order mark", "nothing, packed"],
)
def test_an_empty_file_is_unreadable(tmp_path: Path, data: bytes) -> None:
    for name in (None, "theodolite-events"):
        path = written(tmp_path, data)
        assert opened(path, name) == [Unreadable(file=str(path), line=0, reason="the file is empty")]


def test_a_packed_file_that_is_cut_off_keeps_what_came_before(tmp_path: Path) -> None:
    many = PLAIN + b"".join(encode_line(GoalStated(session="s", text=str(n)), None) for n in range(20_000))
    found = opened(written(tmp_path, gzip.compress(many)[:-20_000]))
    assert found[0] == GOAL
    assert sum(isinstance(item, GoalStated) for item in found) > 1000
    assert reasons(found)[-1] == (0, "its gzip data ends too early: the file was cut off")


def test_a_packed_file_cut_at_any_byte_raises_nothing_and_says_so(tmp_path: Path) -> None:
    packed = gzip.compress(PLAIN)
    for cut in range(2, len(packed)):
        found = opened(written(tmp_path, packed[:cut]))
        assert reasons(found)[-1] == (0, "its gzip data ends too early: the file was cut off")
        assert [item for item in found if isinstance(item, GoalStated)] in ([], [GOAL])


def test_a_packed_file_that_is_damaged_raises_nothing_and_says_so(tmp_path: Path) -> None:
    packed = gzip.compress(PLAIN)
    wrong_checksum = packed[:-8] + b"\0\0\0\0" + packed[-4:]
    found = opened(written(tmp_path, wrong_checksum))
    assert GOAL in found
    assert reasons(found) == [(0, "its gzip data is damaged from here on")]
    for at in range(2, len(packed)):
        found = opened(
            written(tmp_path, packed[:at] + bytes([packed[at] ^ 0x55]) + packed[at + 1 :]), "theodolite-events"
        )
        assert all(isinstance(item, Unreadable) or item.session for item in found)


def test_a_file_that_cannot_be_opened_is_an_error_with_its_name(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.jsonl", tmp_path):
        with pytest.raises(ConfigError, match=f"{path.name} cannot be opened"):
            opened(path)


def test_a_file_that_stops_to_read_is_unreadable_from_there_on() -> None:
    path = Path("/proc/self/mem")  # opens, and has nothing at its beginning that may be read
    if not path.exists():
        pytest.skip("only Linux has such a file")
    ((line, reason),) = reasons(opened(path, "theodolite-events"))
    assert line == 0
    assert reason.startswith("reading failed: ")


def test_a_file_name_that_is_not_utf8_can_still_be_written_anywhere(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.jsonl"))
    try:
        path.write_bytes(HEADER + b"7\n" + encode_line(GoalStated(text="x"), None))
    except OSError:
        pytest.skip("this file system takes no such name")
    for item in opened(path):
        (item.file if isinstance(item, Unreadable) else item.session).encode()


def test_readers_see_the_first_64_kib_unpacked_and_then_the_whole_file(tmp_path: Path) -> None:
    seen: list[int] = []

    class Looks(Claims):
        def detects(self, head: bytes) -> bool:
            seen.append(len(head))
            return True

    data = b"[" + b" " * 200_000
    for packed in (data, gzip.compress(data)):
        path = written(tmp_path, packed)
        assert list(open_recording(path, [Looks("looks")])) == [
            Unreadable(file=str(path), line=0, reason="looks read 200001 bytes")
        ]
    assert seen == [HEAD, HEAD]


def test_nothing_is_left_open_when_reading_stops_half_way(tmp_path: Path) -> None:
    # An open file that is dropped is a ResourceWarning, which is an error here.
    reading = open_recording(written(tmp_path, gzip.compress(PLAIN)), READERS)
    assert next(iter(reading)) == GOAL
    del reading


def test_folders_are_searched_and_files_taken_as_named(tmp_path: Path) -> None:
    for name in (
        "b.jsonl",
        "a/z.json.gz",
        "a/y.jsonl.gz",
        "a/x.json",
        "a/notes.txt",
        "c.log",
        "a/folder.json/d.json",
        "e.eval",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"[]")
    found = find_recordings([tmp_path / "c.log", tmp_path, tmp_path / "b.jsonl"])
    assert [path.relative_to(tmp_path).as_posix() for path in found] == [
        "c.log",
        "a/folder.json/d.json",
        "a/x.json",
        "a/y.jsonl.gz",
        "a/z.json.gz",
        "b.jsonl",
        "e.eval",
    ]


def test_a_path_that_is_not_there_and_a_folder_without_recordings_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="absent does not exist"):
        find_recordings([tmp_path / "absent"])
    with pytest.raises(ConfigError, match=r"holds no file that ends in \.json, \.jsonl, "):
        find_recordings([tmp_path])
    with pytest.raises(ConfigError, match="cannot be searched"):
        find_recordings([tmp_path / ("x" * 300)])


@pytest.mark.parametrize("path", sorted(EXAMPLES.iterdir()), ids=lambda path: path.name)
def test_the_example_sessions_read_without_a_fault(path: Path) -> None:
    found = opened(path)
    assert reasons(found) == []
    sessions = {item.session for item in found if not isinstance(item, Unreadable)}
    assert sessions == ({"desk-17", "desk-18"} if path.stem == "events" else {path.stem})
    assert sum(isinstance(item, SessionEnded) for item in found) == len(sessions)


def test_the_example_agent_writes_only_where_the_user_said_unless_it_is_hijacked() -> None:
    def addresses(name: str) -> set[object]:
        found = opened(EXAMPLES / name)
        calls = [item.values() or {} for item in found if isinstance(item, ToolCallProposed)]
        return {values["to"] for values in calls if "to" in values}

    assert addresses("refund-clean.jsonl") == {"mira.oland@example.org"}
    assert addresses("refund-hijacked.jsonl") == {"mira.oland@example.org", "records@ledger-desk.example"}
