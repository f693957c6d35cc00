"""What models behind a provider's interface send and make of an answer, over real sockets."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import TypeAlias

import anyio
import msgspec
import pytest
from msgspec import UNSET, Raw
from msgspec.structs import replace

from theodolite.core.errors import ModelError
from theodolite.core.event import Tool
from theodolite.core.inquiry import Message, Query, Reply, Role
from theodolite.core.model import Price
from theodolite.models.anthropic import AnthropicModel
from theodolite.models.hosted.retry import Retry
from theodolite.models.openai import OpenAIModel
from theodolite.testing.checks.model import check_model
from theodolite.testing.provider import Asked, Breaks, FakeProvider, Phase, Responds, Says, Scripted

Hosted: TypeAlias = OpenAIModel | AnthropicModel

KEY = "sk-test-5Bq0Vw7Yx2"
QUICK = Retry(attempts=3, first=0.001, longest=0.002, jitter=0.0)
QUESTION = Query(role=Role.SUBJECT, prompt="May a refund be paid?")


def chat(provider: FakeProvider, **settings: object) -> OpenAIModel:
    return OpenAIModel("m-1", base_url=provider.base_url, **{"api_key": KEY, "retry": QUICK, **settings})  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - as a settings file gives them


def responses(provider: FakeProvider, **settings: object) -> OpenAIModel:
    return chat(provider, api="responses", **settings)


def messages(provider: FakeProvider, **settings: object) -> AnthropicModel:
    return AnthropicModel("m-1", base_url=provider.url, **{"api_key": KEY, "retry": QUICK, **settings})  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - as above


Make: TypeAlias = Callable[..., Hosted]
every = pytest.mark.parametrize("make", [chat, responses, messages])
openai = pytest.mark.parametrize("make", [chat, responses])


def ask(model: Hosted, query: Query = QUESTION) -> Reply:
    return anyio.run(model.ask, query)


def answered(make: Make, said: Scripted, query: Query = QUESTION, **settings: object) -> tuple[Reply, Asked]:
    with FakeProvider(said) as provider:
        reply = ask(make(provider, **settings), query)
        return reply, provider.asked[0]


def failed(make: Make, said: Scripted, query: Query = QUESTION, **settings: object) -> ModelError:
    with FakeProvider(said) as provider, pytest.raises(ModelError) as raised:
        ask(make(provider, **settings), query)
    return raised.value


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("OPENAI_", "ANTHROPIC_"))]:
        monkeypatch.delenv(name)


# -- the laws ---------------------------------------------------------------------------------------------------------


@every
def test_it_keeps_the_laws_of_models(make: Make) -> None:
    with FakeProvider("no") as provider, FakeProvider(Responds(status=401)) as closed, FakeProvider("x") as gone:
        gone.close()
        with FakeProvider(Responds(body="<html>")) as junk:
            failing = [lambda place=place: make(place) for place in (closed, gone, junk)]
            check_model(lambda: make(provider), failing=failing)


# -- what is asked ----------------------------------------------------------------------------------------------------

RICH = Query(
    role=Role.SUBJECT,
    prompt="Go on.",
    system="You pay bills.",
    context=(
        Message("user", "Pay the water bill."),
        Message("assistant", "I look it up."),
        Message("tool", "30.20 EUR"),
        Message("assistant", ""),
        Message("critic", "a\ud800b"),
    ),
    tools=(
        Tool(name="pay", description="Pays.", parameters=Raw(b'{"type":"object","properties":{"to":{}}}')),
        Tool(name="look"),
    ),
    schema=Raw(b'{"type":"object"}'),
)
SPOKEN = [
    {"role": "user", "content": "Pay the water bill."},
    {"role": "assistant", "content": "I look it up."},
    {"role": "user", "content": "Result of a tool:\n30.20 EUR"},
    {"role": "user", "content": "Message of the role critic:\na\\ud800b"},
    {"role": "user", "content": "Go on."},
]
PAY: dict[str, object] = {"type": "object", "properties": {"to": {}}}
ANY: dict[str, object] = {"type": "object", "properties": {}}


def test_chat_completions_gets_the_whole_query() -> None:
    _, asked = answered(chat, "{}", RICH, temperature=0.5, max_tokens=77)
    assert asked.path == "/v1/chat/completions"
    assert asked.body == {
        "model": "m-1",
        "messages": [{"role": "system", "content": "You pay bills."}, *SPOKEN],
        "max_tokens": 77,
        "temperature": 0.5,
        "tools": [
            {"type": "function", "function": {"name": "pay", "description": "Pays.", "parameters": PAY}},
            {"type": "function", "function": {"name": "look", "description": "", "parameters": ANY}},
        ],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": {"type": "object"}, "strict": False},
        },
    }


def test_responses_gets_the_whole_query_and_keeps_nothing() -> None:
    _, asked = answered(responses, "{}", RICH, temperature=0.5, max_tokens=77)
    assert asked.path == "/v1/responses"
    assert asked.body == {
        "model": "m-1",
        "instructions": "You pay bills.",
        "input": [
            {"type": "message", **turn}
            if turn["role"] == "user"
            else {
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": turn["content"], "annotations": []}],
            }
            for turn in SPOKEN
        ],
        "max_output_tokens": 77,
        "temperature": 0.5,
        "store": False,
        "tools": [
            {"type": "function", "name": "pay", "description": "Pays.", "parameters": PAY, "strict": False},
            {"type": "function", "name": "look", "description": "", "parameters": ANY, "strict": False},
        ],
        "text": {
            "format": {"type": "json_schema", "name": "answer", "schema": {"type": "object"}, "strict": False},
        },
    }


def test_anthropic_gets_the_whole_query() -> None:
    _, asked = answered(messages, "{}", RICH, temperature=0.5, max_tokens=77)
    assert asked.path == "/v1/messages"
    assert asked.body == {
        "model": "m-1",
        "system": "You pay bills.",
        "messages": SPOKEN,
        "max_tokens": 77,
        "temperature": 0.5,
        "tools": [
            {"name": "pay", "description": "Pays.", "input_schema": PAY},
            {"name": "look", "description": "", "input_schema": ANY},
        ],
        "output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}},
    }


@every
def test_what_is_not_set_is_not_sent(make: Make) -> None:
    _, asked = answered(make, "yes")
    assert asked.body.keys() <= {"model", "messages", "input", "max_tokens", "max_output_tokens", "store"}


@openai
def test_a_closed_schema_is_asked_for_strictly(make: Make) -> None:
    closed = b'{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}'
    _, asked = answered(make, "{}", Query(role=Role.JUDGE, prompt="?", schema=Raw(closed)))
    assert '"strict": true' in json.dumps(asked.body)


@every
@pytest.mark.parametrize("schema", [b"[]", b"{", b'"x"'])
def test_a_schema_that_is_none_is_a_fault_of_the_query(make: Make, schema: bytes) -> None:
    error = failed(make, "yes", Query(role=Role.JUDGE, prompt="?", schema=Raw(schema)))
    assert "schema of the query" in str(error)


@every
def test_nothing_is_compressed_and_the_sdk_makes_no_attempts_of_its_own(make: Make) -> None:
    _, asked = answered(make, "yes")
    assert asked.headers["accept-encoding"] == "identity"
    with FakeProvider(Responds(status=500)) as provider, pytest.raises(ModelError):
        ask(make(provider, retry=Retry(attempts=1)))
    assert len(provider.asked) == 1


# -- what is made of an answer ----------------------------------------------------------------------------------------


@every
def test_a_text_becomes_a_draw_with_its_usage(make: Make) -> None:
    reply, _ = answered(make, Says(text="It may.", input_tokens=40, output_tokens=4))
    assert (reply.query, reply.model, [draw.text for draw in reply.draws]) == (QUESTION, "m-1", ["It may."])
    assert (reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.cost) == (40, 4, UNSET)


@every
def test_tool_calls_are_kept_as_json_and_never_run(make: Make) -> None:
    reply, _ = answered(make, Says(tool_calls=(("pay", '{"to": "ES-77", "amount": 30.2}'), ("look", "{}"))))
    assert [msgspec.json.decode(call) for call in reply.draws[0].tool_calls] == [
        {"name": "pay", "arguments": {"to": "ES-77", "amount": 30.2}},
        {"name": "look", "arguments": {}},
    ]


@openai
@pytest.mark.parametrize("arguments", ['{"to": ', '{"to": NaN}', "pay him"])
def test_arguments_that_are_no_json_are_kept_as_text(make: Make, arguments: str) -> None:
    reply, _ = answered(make, Says(tool_calls=(("pay", arguments),)))
    assert msgspec.json.decode(reply.draws[0].tool_calls[0]) == {"name": "pay", "arguments": arguments}


@openai
def test_a_refusal_of_the_model_is_its_words(make: Make) -> None:
    reply, _ = answered(make, Says(text="I cannot help with that.", refusal=True))
    assert reply.draws[0].text == "I cannot help with that."


@every
def test_a_price_makes_a_cost(make: Make) -> None:
    said = Says(text="yes", input_tokens=1_000_000, output_tokens=500_000, cost=99.0)
    reply, _ = answered(make, said, price=Price(input=2.0, output=8.0))
    assert reply.usage.cost == 6.0


@every
def test_without_a_price_the_cost_is_what_the_provider_says(make: Make) -> None:
    assert answered(make, Says(text="yes", cost=0.25))[0].usage.cost == 0.25
    assert answered(make, Says(text="yes", cost=-1.0))[0].usage.cost is UNSET


@every
def test_as_many_draws_as_samples(make: Make) -> None:
    with FakeProvider(Says(text="yes", cost=0.5)) as provider:
        reply = ask(make(provider, draws_at_once=2) if make is chat else make(provider), SAMPLED)
    assert [draw.text for draw in reply.draws] == ["yes"] * 5
    assert reply.usage.output_tokens == 15
    assert [asked.draws for asked in provider.asked].count(1) == (1 if make is chat else 5)
    assert reply.usage.cost == 0.5 * len(provider.asked)


SAMPLED = Query(role=Role.JUDGE, prompt="?", samples=5)


def test_a_server_that_gives_one_draw_at_a_time_is_asked_for_the_rest() -> None:
    one = {"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}]}
    with FakeProvider(Responds(body=json.dumps(one))) as provider:
        reply = ask(chat(provider, draws_at_once=5), SAMPLED)
    assert (len(reply.draws), [asked.draws for asked in provider.asked]) == (5, [5, 4, 3, 2, 1])


def test_more_draws_than_were_asked_for_are_left_out() -> None:
    three = {"choices": [{"message": {"content": "yes"}}] * 3}
    reply, _ = answered(chat, Responds(body=json.dumps(three)))
    assert len(reply.draws) == 1


@every
def test_when_one_draw_fails_the_others_are_given_up(make: Make) -> None:
    said: list[Scripted] = ["yes", Responds(status=400), Breaks(Phase.REQUEST, "hang")]
    with FakeProvider(said) as provider, pytest.raises(ModelError, match="HTTP 400"):
        ask(make(provider, draws_at_once=1) if make is chat else make(provider), SAMPLED)


@every
def test_no_more_requests_are_under_way_than_queries_may_be(make: Make) -> None:
    with FakeProvider("yes", delay=0.02) as provider:
        ask(
            make(provider, max_concurrency=2, draws_at_once=1) if make is chat else make(provider, max_concurrency=2),
            SAMPLED,
        )
    assert provider.most_at_once == 2


# -- choices ----------------------------------------------------------------------------------------------------------

CHOICE = Query(role=Role.JUDGE, prompt="Is this the same?", options=("yes", "no", "cannot say"))


@openai
def test_a_choice_comes_from_the_alternatives_to_the_first_token(make: Make) -> None:
    letters = {"A": 0.5, " B": 0.3, "B": 0.1, "C": 0.06, "The": 0.03, "a": 0.01}
    reply, asked = answered(make, Says(text="A", letters=letters), CHOICE)
    assert dict(reply.choice) == pytest.approx({"yes": 0.5 / 0.96, "no": 0.4 / 0.96, "cannot say": 0.06 / 0.96})
    assert reply.exact
    assert reply.draws[0].text == "yes"
    assert asked.body["top_logprobs"] == 20
    assert asked.body.get("max_tokens", asked.body.get("max_output_tokens")) == 16
    assert "A. yes\nB. no\nC. cannot say" in json.dumps(asked.body).replace("\\n", "\n")


@openai
@pytest.mark.parametrize(
    ("letters", "exact"),
    [
        ({"A": 0.61, "B": 0.2, "C": 0.1, "The": 0.09}, True),
        ({"A": 0.6, "B": 0.2, "C": 0.09, "The": 0.05, "Yes": 0.05}, False),
        ({"A": 0.03, "B": 0.01, "C": 0.01, **{f"w{number}": 0.04 for number in range(16)}}, False),
        ({"A": 0.7, "B": 0.299, "The": 0.001}, False),
        ({"A": 0.999_998, "B": 1e-6, "C": 1e-6}, True),
        ({"A": 1.0}, False),
    ],
    ids=["nine tenths", "less", "a twentieth, and nothing likelier", "one is not seen", "hardly", "the only one"],
)
def test_a_choice_is_exact_where_the_letters_are_what_the_model_answers_with(
    make: Make, letters: dict[str, float], *, exact: bool
) -> None:
    reply, _ = answered(make, Says(text="A", letters=letters), CHOICE)
    assert reply.exact is exact
    if not exact:
        assert dict(reply.choice) == {"yes": 1.0, "no": 0.0, "cannot say": 0.0}
    else:
        total = sum(letters[letter] for letter in "ABC")
        shares = {name: letters[letter] / total for name, letter in zip(CHOICE.options, "ABC", strict=True)}
        assert dict(reply.choice) == pytest.approx(shares)


@openai
def test_of_several_draws_one_whose_letters_are_not_seen_makes_the_choice_that_of_the_draws(make: Make) -> None:
    whole = {"A": 0.6, "B": 0.3, "C": 0.1}
    said: list[Scripted] = [Says(text="A", letters=whole), Says(text="B", letters={"B": 0.5, "No": 0.5})]
    with FakeProvider(said) as provider:
        query = replace(CHOICE, samples=2)
        reply = ask(make(provider, draws_at_once=1) if make is chat else make(provider), query)
    assert (reply.exact, dict(reply.choice)) == (False, {"yes": 0.5, "no": 0.5, "cannot say": 0.0})


@openai
def test_letters_that_the_model_hardly_thought_of_make_no_choice(make: Make) -> None:
    reply, _ = answered(make, Says(text="The two differ.", letters={"The": 0.9, "A": 0.04, "B": 0.01}), CHOICE)
    assert (reply.choice, reply.draws[0].text) == ((), "The two differ.")


@openai
def test_a_model_without_logprobs_is_not_asked_for_them(make: Make) -> None:
    reply, asked = answered(make, Says(text="B"), CHOICE, top_logprobs=0, max_tokens=300)
    assert not {"logprobs", "top_logprobs", "include"} & asked.body.keys()
    assert asked.body.get("max_tokens", asked.body.get("max_output_tokens")) == 300
    assert dict(reply.choice) == {"yes": 0.0, "no": 1.0, "cannot say": 0.0}


@every
@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("B", "no"),
        (" B.\n", "no"),
        ("(B)", "no"),
        ("**B**", "no"),
        ("B. no", "no"),
        ("B) because it differs", "no"),
        ("no", "no"),
        ("A refund is due", None),
        ("D", None),
        ("", None),
        ("Neither", None),
    ],
)
def test_a_draw_that_names_an_option_is_that_option(make: Make, text: str, named: str | None) -> None:
    reply, _ = answered(make, text, CHOICE)
    assert reply.draws[0].text == (text if named is None else named)
    assert bool(reply.choice) is (named is not None)


@every
def test_without_logprobs_the_choice_is_how_often_each_was_drawn(make: Make) -> None:
    said: list[Scripted] = ["A", "B", "A", "Hm.", "A"]
    query = Query(role=Role.JUDGE, prompt="?", options=("yes", "no"), samples=5)
    with FakeProvider(said) as provider:
        reply = ask(make(provider, draws_at_once=1) if make is chat else make(provider), query)
    assert dict(reply.choice) == {"yes": 0.75, "no": 0.25}


@every
def test_more_options_than_letters_are_a_fault_of_the_query(make: Make) -> None:
    many = Query(role=Role.JUDGE, prompt="?", options=tuple(map(str, range(27))))
    assert "at most 26" in str(failed(make, "A", many))


# -- event loops ------------------------------------------------------------------------------------------------------


@every
def test_each_event_loop_has_its_own_client_and_closes_it(make: Make) -> None:
    with FakeProvider("yes") as provider:
        model = make(provider)
        for _ in range(3):
            ask(model)
    assert provider.connections == 3


@every
def test_one_event_loop_uses_its_connections_again_until_they_are_released(make: Make) -> None:
    async def work(model: Hosted) -> None:
        for _ in range(3):
            await model.ask(QUESTION)
        assert provider.connections == 1
        await model.release()
        await model.release()
        await model.ask(QUESTION)
        assert provider.connections == 2

    with FakeProvider("yes") as provider:
        anyio.run(work, make(provider))


@every
def test_the_first_two_to_ask_share_a_client(make: Make) -> None:
    async def work(model: Hosted) -> None:
        async with anyio.create_task_group() as group:
            for _ in range(4):
                group.start_soon(model.ask, QUESTION)
        await model.ask(QUESTION)

    with FakeProvider("yes", delay=0.02) as provider:
        anyio.run(work, make(provider))
    assert provider.connections == 4


@every
def test_to_release_what_was_never_asked_does_nothing(make: Make) -> None:
    with FakeProvider("yes") as provider:
        anyio.run(make(provider).release)
