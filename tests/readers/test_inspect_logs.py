"""Logs of Inspect: what it wrote is read in both forms alike, and no archive takes more than one member's room."""

from __future__ import annotations

import json
import struct
import sys
import tracemalloc
import zipfile
import zlib
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

import pytest
from msgspec import UNSET

from theodolite.core.event import (
    AnyEvent,
    Channel,
    GoalStated,
    MessageObserved,
    ModelCalled,
    SessionEnded,
    Source,
    SystemPromptSet,
    ToolCallProposed,
    ToolResultObserved,
    ToolsDeclared,
    TurnEnded,
)
from theodolite.core.labels import Known, Label
from theodolite.core.reader import Recorded, Unreadable
from theodolite.readers.detection import open_labels, open_recording
from theodolite.readers.inspect_logs import InspectLogs
from theodolite.readers.inspect_logs.archive import members

# Written by inspect_ai 0.3.285 with its mock model: one task of two samples, with a tool.
LOGS = Path(__file__).parent / "inspect_logs"
RUN = {"eval_id": "e-1", "task": "bills", "model": "m-1"}


def read(data: bytes) -> list[Recorded]:
    return list(InspectLogs().read(BytesIO(data), "f.eval"))


def reasons(data: bytes) -> list[tuple[int, str]]:
    return [(item.line, item.reason) for item in read(data) if isinstance(item, Unreadable)]


def labels(data: bytes) -> dict[str, Label]:
    return dict(InspectLogs().labels(BytesIO(data), "f.eval"))


def sample(*messages: Mapping[str, object], **fields: object) -> dict[str, object]:
    return {"id": "s-1", "epoch": 1, "input": "Pay.", "messages": messages, **fields}


def document(*samples: object, run: object = None) -> bytes:
    head = {"version": 2, "status": "success", "eval": RUN if run is None else run}
    return json.dumps({**head, "samples": samples, "reductions": []}, indent=2).encode()


def told(*messages: Mapping[str, object], **fields: object) -> list[AnyEvent]:
    """Return the events of a sample between the call of the model and its end."""
    found = [item for item in read(document(sample(*messages, **fields))) if not isinstance(item, Unreadable)]
    assert isinstance(found[0], ModelCalled)
    assert isinstance(found[-1], SessionEnded)
    return found[1:-1]


# ------------------------------------------------------------------------------------ what Inspect wrote


def test_what_inspect_wrote_is_read_in_both_forms() -> None:
    kinds: dict[str, list[type]] = {}
    for name in ("notes.eval", "notes.json"):
        if name.endswith(".eval"):
            pytest.importorskip("zstandard", reason="Inspect packs with zstd, which is an extra")
        found = list(open_recording(LOGS / name, [InspectLogs()]))
        assert not [item for item in found if isinstance(item, Unreadable)]
        sessions = {item.session.partition("/")[2] for item in found if not isinstance(item, Unreadable)}
        assert sessions == {"n-1/1", "2/1"}
        kinds[name] = sorted((type(item) for item in found), key=str)
        assert {item.model for item in found if isinstance(item, ModelCalled)} == {"mockllm/model"}
        assert {item.agent for item in found if not isinstance(item, Unreadable)} == {"notes"}
        (goal,) = [item.text for item in found if isinstance(item, GoalStated) and "/n-1/" in item.session]
        assert goal == "What does note a say?"
        calls = [item.values() for item in found if isinstance(item, ToolCallProposed)]
        results = [(item.tool, item.text, item.error) for item in found if isinstance(item, ToolResultObserved)]
        assert sorted(map(str, calls)) == ["{'name': 'a'}", "{'name': 'absent'}"]
        assert sorted(results) == [
            ("read_note", "Note a: the bill is 30 EUR.", False),
            ("read_note", "no such note", True),
        ]
        (shown,) = {item.tools[0].name for item in found if isinstance(item, ToolsDeclared)}
        assert shown == "read_note"
        known = {session.partition("/")[2]: label for session, label in open_labels(LOGS / name, [InspectLogs()])}
        assert {session: label.known for session, label in known.items()} == {"n-1/1": Known.CLEAN, "2/1": None}
        assert known["2/1"].task == "notes/2"
        assert known["2/1"].slices == {"suite": "notes", "model": "mockllm/model"}
    assert kinds["notes.eval"] == kinds["notes.json"]


def test_without_the_extra_a_log_that_zstd_packed_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    wanted = (
        "packed with zstd, which needs an extra: pip install 'theodolite[inspect]'; or "
        "`inspect log convert LOG --to json --output-dir FOLDER` writes a form that is read"
    )
    assert {reason.partition(": ")[2] for _, reason in reasons((LOGS / "notes.eval").read_bytes())} == {wanted}


# --------------------------------------------------------------------------------------- messages


def test_a_sample_is_told_event_by_event() -> None:
    call = {"id": "c-1", "function": "pay", "arguments": {"to": "ES-77"}, "type": "function"}
    found = told(
        {"role": "system", "content": "You pay."},
        {"role": "user", "content": "Pay the bill.", "source": "input"},
        {"role": "assistant", "content": "I pay.", "tool_calls": [call]},
        {"role": "tool", "content": "paid", "tool_call_id": "c-1", "function": "pay"},
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": "Thanks."},
    )
    assert [type(item) for item in found] == [
        *(SystemPromptSet, GoalStated, MessageObserved, MessageObserved, ToolCallProposed, ToolResultObserved),
        *(TurnEnded, MessageObserved, TurnEnded, MessageObserved),
    ]
    assert {(item.session, item.agent) for item in found} == {("e-1/s-1/1", "bills")}
    assert [item.turn for item in found] == [0, 0, 0, 0, 0, 0, 0, 1, 1, 2]
    (proposed,) = [item for item in found if isinstance(item, ToolCallProposed)]
    assert (proposed.tool, proposed.values(), proposed.call) == ("pay", {"to": "ES-77"}, "c-1")


def test_parts_of_a_content_go_on_their_channels() -> None:
    ran = {"type": "tool_use", "tool_type": "web_search", "id": "w-1", "name": "search", "arguments": '{"q": "x"}'}
    found = told(
        {"role": "user", "content": [{"type": "text", "text": "See"}, {"type": "text", "text": "this."}]},
        {"role": "user", "content": [{"type": "image", "image": "data:"}, {"type": "document", "document": "d"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "reasoning", "reasoning": "Hm."},
                {"type": "reasoning", "reasoning": "x", "redacted": True},
                {**ran, "result": "found it"},
                {**ran, "id": "w-2", "result": "", "error": "no net"},
                {"type": "text", "text": "So."},
            ],
        },
        {"role": "tool", "function": "look", "content": [{"type": "image", "image": "data:"}]},
    )
    said = [(item.channel, item.text) for item in found if isinstance(item, MessageObserved)]
    assert said == [
        (Channel.USER_PART, "See\nthis."),
        (Channel.USER_IMAGE, UNSET),
        (Channel.USER_FILE, UNSET),
        (Channel.REASONING, "Hm."),
        (Channel.REASONING, UNSET),
        (Channel.ASSISTANT_PART, "So."),
    ]
    results = [
        (item.tool, item.text, item.source, item.error) for item in found if isinstance(item, ToolResultObserved)
    ]
    assert results == [
        ("search", "found it", Source.EXTERNAL, False),
        ("search", "no net", Source.EXTERNAL, True),
        ("look", UNSET, Source.TOOL, False),
        ("look", UNSET, Source.TOOL, False),
    ]


def test_what_was_kept_once_is_put_back_where_it_was_said() -> None:
    found = told(
        {"role": "user", "content": "attachment://f00"},
        {"role": "tool", "function": "read", "content": [{"type": "text", "text": "attachment://f00"}]},
        {"role": "user", "content": "attachment://absent"},
        attachments={"f00": "a long text"},
    )
    assert [item.text for item in found if isinstance(item, GoalStated | ToolResultObserved)] == ["a long text"] * 2
    assert isinstance(found[-1], MessageObserved)
    assert found[-1].text == "attachment://absent"


def test_a_sample_without_messages_has_its_input_for_them() -> None:
    asked = [item.text for item in told(input="Pay.") if isinstance(item, GoalStated)]
    listed = [item.text for item in told(input=[{"role": "user", "content": "Pay."}]) if isinstance(item, GoalStated)]
    assert asked == listed == ["Pay."]


def test_what_cannot_be_read_is_told_with_its_place_and_the_rest_is_read() -> None:
    data = document(
        sample(
            {"role": "user", "content": "Go."},
            {"role": "nobody", "content": "x"},
            {"role": "assistant", "content": [{"type": "hologram"}, 7], "tool_calls": [{"id": "c"}]},
            {"role": "user", "content": "On."},
        ),
        {"epoch": 1},
        sample({"role": "user", "content": "Go."}, epoch=2),
    )
    assert [reason for _, reason in reasons(data)] == [
        "samples[0].messages[1].role: not one of system, user, assistant, tool",
        "samples[0].messages[2].content[0]: a part of the kind hologram, which is not read here",
        "samples[0].messages[2].content[1]: Expected object, got int",
        "samples[0].messages[2].tool_calls[0]: Object missing required field function",
        "samples[1]: Object missing required field id",
    ]
    assert [item.session for item in read(data) if isinstance(item, SessionEnded)] == ["e-1/s-1/1", "e-1/s-1/2"]


# ----------------------------------------------------------------------------------------- labels


@pytest.mark.parametrize(
    ("fields", "known"),
    [
        ({"metadata": {"theodolite_label": "clean"}}, Known.CLEAN),
        ({"metadata": {"theodolite_label": "drifted", "other": 1}}, Known.DRIFTED),
        ({"scores": {"theodolite_label": {"value": "drifted"}}}, Known.DRIFTED),
        (
            {"metadata": {"theodolite_label": "clean"}, "scores": {"theodolite_label": {"value": "drifted"}}},
            Known.CLEAN,
        ),
        ({"metadata": {"theodolite_label": "unknown"}}, None),
        ({"metadata": {"theodolite_label": 1}}, None),
        ({"metadata": ["clean"], "scores": "clean"}, None),
        ({"scores": {"includes": {"value": "C"}}}, None),
        ({}, None),
    ],
)
def test_a_label_stands_in_the_metadata_or_is_a_score(fields: Mapping[str, object], known: Known | None) -> None:
    told_of = labels(document(sample(**fields)))["e-1/s-1/1"]
    assert (told_of.known, told_of.task) == (known, "bills/s-1")
    assert told_of.slices == {"suite": "bills", "model": "m-1"}


def test_nothing_of_the_label_reaches_an_event() -> None:
    one = told({"role": "user", "content": "Go."}, metadata={"theodolite_label": "clean"}, target="30")
    assert one == told({"role": "user", "content": "Go."}, metadata={"theodolite_label": "drifted"}, target="31")


def test_a_run_without_names_has_that_of_its_file() -> None:
    assert list(labels(document(sample(), run={}))) == ["f/s-1/1"]
    assert list(labels(document(sample(id=7), run={"run_id": "r-1"}))) == ["r-1/7/1"]


# -------------------------------------------------------------------------------------- documents


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b'{"version": 2, "status": "error", "eval": {}}', []),
        (b'{"version": 2, "status": "success", "eval": {}, "samples": null}', []),
        (b'{"version": 2, "status": "success", "eval": {}, "samples"', [(1, "the file ends inside a value")]),
        (
            b'{"version": 2, "status": "success", "eval": 7, "samples": []}',
            [(1, "Expected object, got int - at $.eval")],
        ),
        (b'{"version": 2, "status": "success"', [(1, "the file ends inside a value")]),
        (b'["samples"]', [(1, "expected an object")]),
        (b"Dear diary", [(1, "the file ends inside a value")]),
        (b'{"eval": {}, "plan": {"samples": [1]}}', []),
    ],
)
def test_a_document_without_samples_says_what_is_wrong_if_anything_is(data: bytes, said: list[object]) -> None:
    assert reasons(data) == said


def test_a_document_that_was_cut_off_keeps_the_samples_before() -> None:
    data = document(sample(), sample(epoch=2))
    found = read(data[: data.index(b'"epoch": 2') + 3])
    assert [item.session for item in found if isinstance(item, SessionEnded)] == ["e-1/s-1/1"]
    ((line, reason),) = [(item.line, item.reason) for item in found if isinstance(item, Unreadable)]
    assert (line, reason) == (
        data[: data.index(b'"epoch": 2')].count(b"\n") + 1,
        "samples[1]: the file ends inside a value",
    )


def test_what_stands_before_the_samples_may_hold_anything_and_is_bounded() -> None:
    odd = {**RUN, "note": '"samples": [ \\" }', "tags": ["samples", {"samples": [1]}], "long": "\\" * 200_000}
    assert [type(item) for item in read(document(sample(), run=odd))] == [
        ModelCalled,
        GoalStated,
        MessageObserved,
        SessionEnded,
    ]
    endless = b'{"version": 2, "status": "x", "eval": "' + b'\\"' * 9_000_000
    assert reasons(endless) == [(1, "what stands before its samples is longer than 16777216 bytes")]


# --------------------------------------------------------------------------------------- archives

START = json.dumps({"version": 2, "eval": RUN}).encode()
ONE = json.dumps(sample({"role": "user", "content": "Go."})).encode()


def archive(*samples: bytes, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    written = BytesIO()
    with zipfile.ZipFile(written, "w", method) as opened:
        opened.writestr("_journal/start.json", START)
        for number, data in enumerate(samples, 1):
            opened.writestr(f"samples/s-{number}_epoch_1.json", data)
            opened.writestr(f"_journal/summaries/{number}.json", b"[]")
        opened.writestr("header.json", START)
    return written.getvalue()


def local(name: str, packed: bytes, data: bytes, *, method: int = 0, flags: int = 0, extra: bytes = b"") -> bytes:
    """Return a member as it stands in an archive; with an extra field its sizes stand there."""
    sizes = (0xFFFFFFFF, 0xFFFFFFFF) if extra else (len(packed), len(data))
    head = struct.pack("<5H3L2H", 45, flags, method, 0, 0, zlib.crc32(data), *sizes, len(name), len(extra))
    return b"PK\x03\x04" + head + name.encode() + extra + packed


END = b"PK\x05\x06" + bytes(18)
FIRST = local("_journal/start.json", START, START)
NAME = "samples/s-1_epoch_1.json"


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED], ids=["stored", "deflated"])
def test_an_archive_gives_what_its_document_gives(method: int) -> None:
    for samples in ([ONE], [ONE, json.dumps(sample(epoch=2)).encode()]):
        data = archive(*samples, method=method)
        assert read(data) == read(document(*map(json.loads, samples)))
        assert labels(data) == labels(document(*map(json.loads, samples)))
        assert InspectLogs().detects(data[:65536])


def test_sizes_may_stand_in_a_field_of_zip64() -> None:
    field = struct.pack("<2H4x2H2Q", 0xCAFE, 4, 1, 16, len(ONE), len(ONE))
    assert read(FIRST + local(NAME, ONE, ONE, extra=field) + END) == read(archive(ONE))


def test_frames_of_zstd_that_follow_each_other_are_one_member() -> None:
    zstandard = pytest.importorskip("zstandard", reason="an extra")
    packed = b"".join([zstandard.ZstdCompressor().compress(ONE[at : at + 40]) for at in range(0, len(ONE), 40)])
    assert read(FIRST + local(NAME, packed, ONE, method=93) + END) == read(archive(ONE))


@pytest.mark.parametrize(
    ("member", "said"),
    [
        (local(NAME, ONE, ONE, method=12), "packed in a way that is not read here; `inspect log convert LOG --to json"),
        (local(NAME, ONE, ONE, flags=1), "an encrypted member"),
        (local(NAME, ONE, b"other"), "its packed data is damaged"),
        (local(NAME, b"\xff" * 9, b"", method=8), "its packed data is damaged"),
        (local(NAME, b"\xff" * 9, b"", method=93), "its packed data is damaged"),
        (local(NAME, b"\xff", b"\xff"), "not UTF-8: byte 0 of it"),
        (local(NAME, b"[]", b"[]"), "Expected object, got array"),
    ],
)
def test_a_member_that_cannot_be_read_is_told_and_the_next_is_read(member: bytes, said: str) -> None:
    if b"PK\x03\x04-\0\0\0]" in member:
        pytest.importorskip("zstandard", reason="an extra")
    data = FIRST + member + local(NAME, ONE, ONE) + END
    ((line, reason),) = reasons(data)
    assert line == 0
    assert reason.startswith(f"member 2 of the archive: {said}")
    assert [item.session for item in read(data) if isinstance(item, SessionEnded)] == ["e-1/s-1/1"]


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        (b"", "the archive ends too early: the file was cut off"),
        (b"PK\x03\x04 short", "the archive ends too early: the file was cut off"),
        (local(NAME, ONE, ONE)[:-3], "the archive ends too early: the file was cut off"),
        (local("other", ONE, ONE)[:-3], "the archive ends too early: the file was cut off"),
        (b"what is this", "the archive is damaged from here on"),
        (local(NAME, b"", ONE, flags=8), "an archive that does not say how long its members are; `inspect log convert"),
        (local(NAME, ONE, ONE, extra=b"\1\0\2\0ab"), "the archive is damaged from here on"),
    ],
)
def test_an_archive_that_cannot_be_followed_says_so_once(rest: bytes, said: str) -> None:
    ((_, reason),) = reasons(FIRST + rest)
    assert reason.startswith(f"member 2 of the archive: {said}")


def bomb(method: int) -> bytes:
    data = bytes(300 * 2**20)
    if method == zipfile.ZIP_DEFLATED:
        squeezed = zlib.compressobj(9, zlib.DEFLATED, -15)
        packed = squeezed.compress(data) + squeezed.flush()
    else:
        packed = pytest.importorskip("zstandard", reason="an extra").ZstdCompressor().compress(data)
    return FIRST + local(NAME, packed, data, method=method) + local(NAME, ONE, ONE) + END


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, 93], ids=["deflated", "zstd"])
def test_a_small_archive_that_unpacks_to_much_is_not_unpacked(method: int) -> None:
    data = bomb(method)
    assert len(data) < 400_000
    tracemalloc.start()
    try:
        found = [(member.fault, len(member.data)) for member in members(_after(data), lambda _: True, 2**20)]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found == [("", len(START)), ("longer than 1048576 bytes", 0), ("", len(ONE))]
    assert peak < 8 * 2**20


def _after(data: bytes) -> BytesIO:
    stream = BytesIO(data)
    assert stream.read(4) == b"PK\x03\x04"
    return stream


def test_members_that_nobody_wants_are_not_unpacked() -> None:
    damaged = local("_journal/summaries/1.json", b"\xff" * 900, b"", method=8)
    assert read(FIRST + damaged + local(NAME, ONE, ONE) + END) == read(archive(ONE))


def test_an_archive_without_a_journal_is_read_under_the_name_of_its_file() -> None:
    data = local(NAME, ONE, ONE) + END
    assert InspectLogs().detects(data)
    assert [item.session for item in read(data) if isinstance(item, SessionEnded)] == ["f/s-1/1"]


def test_other_archives_and_documents_are_not_claimed() -> None:
    written = BytesIO()
    with zipfile.ZipFile(written, "w") as opened:
        opened.writestr("word/document.xml", b"<x/>")
    for other in (written.getvalue(), b"PK\x03\x04", b"", b"{", b'{"version": 2, "status": "x"}', b"PK\x05\x06"):
        assert not InspectLogs().detects(other)
