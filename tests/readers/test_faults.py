from __future__ import annotations

import gzip
import json
import time
import tracemalloc
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path

import pytest

from theodolite.core.event import GoalStated, SessionEnded
from theodolite.core.reader import Recorded, Unreadable
from theodolite.readers.anthropic_messages import AnthropicMessages
from theodolite.readers.conversations.faults import LISTED, bounded
from theodolite.readers.conversations.pieces import pieces
from theodolite.readers.detection import open_recording
from theodolite.readers.openai_chat import OpenAIChat
from theodolite.readers.openai_responses import OpenAIResponses

READERS = (OpenAIChat(), AnthropicMessages(), OpenAIResponses())
USER = b'{"role": "user", "content": "x"}'


def bad(line: int, session: str = "") -> Unreadable:
    return Unreadable(file="f", line=line, reason="no", session=session)


def rest(line: int, parts: int, session: str = "") -> Unreadable:
    reason = f"parts that cannot be read, from here on, and are not listed one by one: {parts:,}"
    return Unreadable(file="f", line=line, reason=reason, session=session, parts=parts)


def test_up_to_the_bound_everything_is_listed_as_it_comes() -> None:
    goal, end = GoalStated(session="s", text="x"), SessionEnded(session="s")
    items: list[Recorded] = [bad(1), goal, *(bad(line, "s") for line in range(LISTED)), end, bad(9)]
    assert list(bounded(items)) == items


def test_beyond_it_the_rest_is_counted_by_session_before_its_end_and_for_the_file_at_its_end() -> None:
    goals = [GoalStated(session=name, text="x") for name in "ab"]
    ends = [SessionEnded(session=name) for name in "ab"]
    of_a = [bad(line, "a") for line in range(1, LISTED + 2)]
    of_none = [bad(line) for line in range(1, LISTED + 3001)]
    found = list(bounded([*goals, *of_a, *of_none, bad(7, "b"), *ends]))
    assert found == [
        *goals,
        *of_a[:LISTED],
        *of_none[:LISTED],
        bad(7, "b"),
        rest(LISTED + 1, 1, "a"),
        *ends,
        rest(LISTED + 1, 3_000),
    ]


def test_a_name_that_comes_again_is_counted_anew() -> None:
    session: list[Recorded] = [
        GoalStated(session="s", text="x"),
        *(bad(line, "s") for line in range(LISTED)),
        SessionEnded(session="s"),
    ]
    assert list(bounded([*session, *session])) == [*session, *session]


def test_what_was_counted_before_is_counted_in() -> None:
    goal, end = GoalStated(session="s", text="x"), SessionEnded(session="s")
    listed = [bad(line, "s") for line in range(LISTED)]
    assert list(bounded([goal, rest(0, 4, "s"), *listed, bad(1, "s"), rest(2, 5, "s"), end])) == [
        goal,
        *listed,
        rest(0, 10, "s"),
        end,
    ]


PARTS = 20_000


def floods() -> Iterator[tuple[str, bytes]]:
    yield "objects in a list", b"[%b%b]" % (USER, b",{}" * PARTS)
    yield "objects in a line", b'{"messages":[%b]}' % USER + b"{}" * PARTS
    yield "objects a line", b'{"messages":[%b]}\n' % USER + b"{}\n" * PARTS
    yield "broken lines", b'{"messages":[%b]}\n' % USER + b'{"a":}\n' * PARTS
    yield (
        "calls in a message",
        json.dumps([json.loads(USER), {"role": "assistant", "tool_calls": [{}] * PARTS}]).encode(),
    )
    block = {"role": "assistant", "content": [{"type": "wonder"}] * (PARTS - 1) + [{"type": "tool_use", "id": 7}]}
    yield "blocks in a message", json.dumps({"system": "x", "messages": [block]}).encode()


@pytest.mark.parametrize("name", [name for name, _ in floods()])
@pytest.mark.parametrize("packed", [False, True])
def test_a_flood_of_unreadable_parts_is_counted_in_little_memory(name: str, packed: object, tmp_path: Path) -> None:
    data = dict(floods())[name]
    path = tmp_path / "flood.json"
    path.write_bytes(gzip.compress(data) if packed else data)
    tracemalloc.start()
    try:
        found = list(open_recording(path, READERS))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    told = [item for item in found if isinstance(item, Unreadable)]
    more = told.pop()
    assert more.parts > 1
    assert len(told) == LISTED
    assert len(told) + more.parts >= PARTS
    assert isinstance(found[-1], SessionEnded if more.session else Unreadable)
    assert peak < 6_000_000


def test_the_places_are_those_of_the_parts_that_are_not_listed(tmp_path: Path) -> None:
    path = tmp_path / "flood.json"
    path.write_bytes(b'{"messages":[]}\n' + b"{}\n" * (LISTED + 2))
    *_, last = open_recording(path, READERS)
    assert last == Unreadable(
        file=str(path),
        line=LISTED + 2,
        reason="parts that cannot be read, from here on, and are not listed one by one: 2",
        parts=2,
    )


@pytest.mark.parametrize(
    ("flood", "most"),
    [(b"\n", 1), (b"{}\n", 3), (b"[]\n", 5), (b'{"a":[[{}]]}\n', 3), (b"[" * 1_000 + b"\n", 20)],
)
def test_a_line_costs_a_few_times_what_decoding_one_does(flood: bytes, most: float) -> None:
    lines = 20_000 if len(flood) < 100 else 1_000
    data = b"{}\n" + flood * lines

    def seconds(work: Callable[[], object]) -> float:
        begin = time.process_time()
        work()
        return time.process_time() - begin

    plain = min(seconds(lambda: [json.loads(b'{"a": 1}') for _ in range(lines)]) for _ in range(3))
    assert min(seconds(lambda: sum(1 for _ in pieces(BytesIO(data)))) for _ in range(3)) < most * plain
