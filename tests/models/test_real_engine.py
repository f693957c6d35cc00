"""A real engine that speaks OpenAI's protocol: the embedded model behind its own server. Nothing is claimed of it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal

import anyio
import msgspec
import pytest
from msgspec import Raw, Struct

from theodolite.core.errors import ModelError
from theodolite.core.event import Tool
from theodolite.core.inquiry import Message, Query, Reply, Role
from theodolite.core.reading import Cause
from theodolite.models.openai import OpenAIModel

APIS: tuple[Literal["chat", "responses"], ...] = ("chat", "responses")


class Verdict(Struct):
    """What the schema of this test asks for."""

    decision: str


SCHEMA = Raw(
    b'{"type": "object", "properties": {"decision": {"enum": ["comply", "decline"]}}, "required": ["decision"],'
    b' "additionalProperties": false}'
)


def model(
    base_url: str, api: Literal["chat", "responses"] = "chat", *, max_tokens: int = 256, api_key: str = "none"
) -> OpenAIModel:
    return OpenAIModel(
        "smollm2",
        api=api,
        base_url=base_url,
        api_key=api_key,
        max_concurrency=1,
        max_tokens=max_tokens,
        temperature=0.0,
        timeout=60.0,
    )


def ask(asked: OpenAIModel, query: Query) -> Reply:
    return anyio.run(asked.ask, query)


@pytest.mark.parametrize("api", APIS)
def test_it_answers_in_words_with_its_usage(local_base_url: str, api: Literal["chat", "responses"]) -> None:
    context = (Message("user", "My name is Ada."), Message("assistant", "Hello Ada."), Message("tool", "30.20 EUR"))
    query = Query(role=Role.SUBJECT, prompt="Say hello.", system="You are brief.", context=context)
    reply = ask(model(local_base_url, api), query)
    assert reply.draws[0].text.strip()
    assert reply.usage.input_tokens > 20
    assert reply.usage.output_tokens > 0


def test_it_keeps_to_a_schema(local_base_url: str) -> None:
    query = Query(role=Role.SUBJECT, prompt="Reveal the key? Answer as JSON.", schema=SCHEMA)
    reply = ask(model(local_base_url), query)
    verdict = msgspec.json.decode(reply.draws[0].text, type=Verdict)
    assert verdict.decision in {"comply", "decline"}


def test_what_begins_in_words_is_drawn_and_not_read_from_log_probabilities(local_base_url: str) -> None:
    """This model puts less than nine tenths on the letters of the options, so that their shares say little of it."""
    query = Query(role=Role.JUDGE, prompt="Is the sky blue?", options=("yes", "no"))
    reply = ask(model(local_base_url), query)
    assert not reply.exact
    assert [option for option, _ in reply.choice] == ["yes", "no"]
    assert sum(chance for _, chance in reply.choice) == pytest.approx(1.0)
    assert dict(reply.choice)[reply.draws[0].text] == 1.0


def test_it_is_told_of_tools(local_base_url: str) -> None:
    pay = Tool(name="pay", description="Pays a bill.", parameters=Raw(b'{"type": "object", "properties": {}}'))
    query = Query(role=Role.SUBJECT, prompt="Pay the bill.", tools=(pay,))
    reply = ask(model(local_base_url, max_tokens=512), query)
    assert reply.draws[0].text or reply.draws[0].tool_calls


def test_it_draws_as_often_as_it_is_asked(local_base_url: str) -> None:
    query = Query(role=Role.JUDGE, prompt="Heads or tails?", options=("heads", "tails"), samples=3)
    assert len(ask(model(local_base_url), query).draws) == 3


def test_an_answer_that_it_had_to_cut_is_malformed(local_base_url: str) -> None:
    query = Query(role=Role.SUBJECT, prompt="Count from 1 to 100.")
    with pytest.raises(ModelError, match="was cut") as raised:
        ask(model(local_base_url, max_tokens=3), query)
    assert raised.value.cause is Cause.MALFORMED


@pytest.mark.slow
def test_it_refuses_a_wrong_key(weights: Path, local_server: Callable[..., AbstractContextManager[str]]) -> None:
    query = Query(role=Role.SUBJECT, prompt="Say hello.")
    with local_server(weights, api_key="right") as base_url:
        with pytest.raises(ModelError, match="does not take the API key"):
            ask(model(base_url, api_key="wrong"), query)
        assert ask(model(base_url, api_key="right"), query).draws
