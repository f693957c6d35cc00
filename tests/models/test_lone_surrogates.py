"""A model that writes what no UTF-8 can hold is still heard, over real sockets and body by body."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TypeAlias

import anyio
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from theodolite.core.errors import ModelError
from theodolite.core.inquiry import Draw, Query, Role
from theodolite.models.anthropic import AnthropicModel
from theodolite.models.hosted.reply import call_of, decoded
from theodolite.models.hosted.retry import Retry
from theodolite.models.openai import OpenAIModel
from theodolite.testing.provider import FakeProvider, Responds, Says

Make: TypeAlias = Callable[[FakeProvider], OpenAIModel | AnthropicModel]
QUESTION = Query(role=Role.SUBJECT, prompt="May a refund be paid?")


def chat(provider: FakeProvider) -> OpenAIModel:
    return OpenAIModel("m-1", base_url=provider.base_url, api_key="sk-1")


def responses(provider: FakeProvider) -> OpenAIModel:
    return OpenAIModel("m-1", base_url=provider.base_url, api_key="sk-1", api="responses")


def messages(provider: FakeProvider) -> AnthropicModel:
    return AnthropicModel("m-1", base_url=provider.url, api_key="sk-1")


every = pytest.mark.parametrize("make", [chat, responses, messages])


def drawn(make: Make, said: Says) -> Draw:
    with FakeProvider(said) as provider:
        return anyio.run(make(provider).ask, QUESTION).draws[0]


@every
@pytest.mark.parametrize("spelled", [r"\ud800", r"\udfff", r"\udc00\ud800", r"\ud83d\ud83d"])
def test_a_text_with_a_lone_surrogate_is_a_text(make: Make, spelled: str) -> None:
    lone = json.loads(f'"{spelled}"')
    assert drawn(make, Says(text=f"It is 4711 {lone}.")).text == f"It is 4711 {spelled}."


@every
def test_arguments_with_a_lone_surrogate_are_json_still(make: Make) -> None:
    (call,) = drawn(make, Says(text="ok", tool_calls=(("pay", r'{"to": "4711 \ud800"}'),))).tool_calls
    assert msgspec.json.decode(call) == {"name": "pay", "arguments": {"to": r"4711 \ud800"}}


@every
def test_a_name_of_a_tool_may_have_one(make: Make) -> None:
    (call,) = drawn(make, Says(text="ok", tool_calls=(("pay\ud800", '{"to": "4711"}'),))).tool_calls
    assert msgspec.json.decode(call) == {"name": r"pay\ud800", "arguments": {"to": "4711"}}


def test_what_a_provider_refuses_for_is_read_beside_one() -> None:
    body = json.dumps({"error": {"code": "insufficient_quota", "message": "You asked \ud800"}})
    with FakeProvider(Responds(status=429, body=body)) as provider, pytest.raises(ModelError, match="billing"):
        anyio.run(
            OpenAIModel("m-1", base_url=provider.base_url, api_key="sk-1", retry=Retry(attempts=2, first=0.001)).ask,
            QUESTION,
        )
    assert len(provider.asked) == 1


@given(st.lists(st.sampled_from(["\ud800", "\udc00", "\U0001f600", "\\", '"', "\n", "u", "d800", "é"])))
def test_all_else_is_kept_as_it_was(parts: list[str]) -> None:
    text = "".join(parts).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    kept = decoded(json.dumps([text, "\ud800"]).encode(), list[str])
    assert kept == [text, r"\ud800"]


def test_bytes_that_are_no_utf_8_are_replaced() -> None:
    assert decoded(b'["It is 4711 \xff\xed\xa0\x80"]', list[str])[0].startswith("It is 4711 \N{REPLACEMENT CHARACTER}")


@pytest.mark.parametrize("body", [rb'["\ud800"', rb'["\ud800\q"]', rb'["\ud80"]', b'["\xff', rb'[NaN, "\ud800"]'])
def test_what_is_no_json_beside_one_is_none_still(body: bytes) -> None:
    with pytest.raises(ModelError, match="cannot be read"):
        decoded(body, list[str])


def test_a_body_of_another_form_is_refused_for_its_form() -> None:
    with pytest.raises(ModelError, match="Expected int, got str"):
        decoded(rb'["\ud800", 5]', list[int])


@pytest.mark.parametrize("arguments", [r'{"to": "\ud800', r"\ud800", "\ud800 to him"], ids=ascii)
def test_arguments_that_are_no_json_either_way_stay_text(arguments: str) -> None:
    said = msgspec.json.decode(call_of("pay", arguments), type=dict[str, str])
    assert said["arguments"] == arguments.encode("utf-8", "backslashreplace").decode()
    assert isinstance(call_of("pay", arguments), Raw)
