"""What compatible servers give in the place of a text or of calls: each part is read, and none hides another."""

from __future__ import annotations

import json

import anyio
import msgspec
import pytest

from theodolite.core.inquiry import Draw, Query, Role
from theodolite.models.openai import OpenAIModel
from theodolite.testing.provider import FakeProvider, Responds


def drawn(message: object) -> Draw:
    body = json.dumps({"choices": [{"index": 0, "finish_reason": "stop", "message": message}]})
    with FakeProvider(Responds(body=body)) as provider:
        model = OpenAIModel("m-1", base_url=provider.base_url, api_key="sk-1")
        return anyio.run(model.ask, Query(role=Role.SUBJECT, prompt="?")).draws[0]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([{"type": "text", "text": "It is "}, {"type": "text", "text": "4711."}], "It is 4711."),
        (["It is ", "4711."], "It is 4711."),
        ([{"type": "text", "text": "4711"}, {"type": "image", "url": "u"}], '4711{"type":"image","url":"u"}'),
        ([["4711"]], '["4711"]'),
        ({"type": "text", "text": "4711"}, "4711"),
        ([], ""),
        (None, ""),
    ],
)
def test_blocks_are_read_as_text(content: object, text: str) -> None:
    assert drawn({"role": "assistant", "content": content}).text == text


CALL = {"id": "1", "type": "function", "function": {"name": "pay", "arguments": '{"to": "4711"}'}}
PAYS = {"name": "pay", "arguments": {"to": "4711"}}


@pytest.mark.parametrize(
    ("calls", "kept"),
    [
        ("none", ["none"]),
        ([[CALL]], [[CALL]]),
        ([CALL, "4711", None], [PAYS, "4711", None]),
        ([{"function": {"arguments": "4711"}}], [{"function": {"arguments": "4711"}}]),
        (CALL, [PAYS]),
        ([], []),
        (None, []),
    ],
)
def test_what_is_no_call_is_kept_beside_the_text(calls: object, kept: list[object]) -> None:
    draw = drawn({"role": "assistant", "content": "It is 4711.", "tool_calls": calls})
    assert draw.text == "It is 4711."
    assert [msgspec.json.decode(call) for call in draw.tool_calls] == kept
