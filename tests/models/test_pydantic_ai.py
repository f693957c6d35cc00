"""Models of Pydantic AI: its own test models, and its client of OpenAI over real sockets."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Self, TypeAlias

import anyio
import msgspec
import pytest
from msgspec import UNSET, Raw

from theodolite.core.errors import ConfigError, ModelError
from theodolite.core.event import Tool
from theodolite.core.inquiry import Message, Query, Reply, Role
from theodolite.core.model import Price
from theodolite.core.reading import Cause
from theodolite.models.hosted.breaker import Breaker
from theodolite.models.hosted.retry import Retry
from theodolite.models.pydantic_ai import PydanticAIModel
from theodolite.testing.checks.model import check_model
from theodolite.testing.provider import Breaks, FakeProvider, Phase, Responds, Says, Scripted

pytest.importorskip("pydantic_ai", reason="the extra `pydantic-ai` is not installed")

from pydantic_ai import (
    ModelHTTPError,
    ModelMessage,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelConnectionError,
    ModelTimeoutError,
    UnexpectedModelBehavior,
    UserError,
)
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.providers.openai import OpenAIProvider

Script: TypeAlias = Callable[[list[ModelMessage], AgentInfo], ModelResponse]

QUESTION = Query(role=Role.SUBJECT, prompt="May a refund be paid?")
CHOICE = Query(role=Role.JUDGE, prompt="Is it the same?", options=("yes", "no"), samples=4)


def scripted(answer: Script) -> FunctionModel:
    return FunctionModel(answer, model_name="scripted")


def saying(*parts: TextPart | ThinkingPart | ToolCallPart) -> FunctionModel:
    return scripted(lambda _messages, _info: ModelResponse(parts=list(parts)))


def raising(error: Exception) -> FunctionModel:
    def answer(_messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        raise error

    return scripted(answer)


def ask(model: PydanticAIModel, query: Query = QUESTION) -> Reply:
    return anyio.run(model.ask, query)


def failed(model: Model | Callable[[], Model], query: Query = QUESTION, *, retry: Retry | None = None) -> ModelError:
    with pytest.raises(ModelError) as raised:
        ask(PydanticAIModel(model, retry=retry), query)
    return raised.value


# -- its test models --------------------------------------------------------------------------------------------------


def test_it_keeps_the_laws_of_models() -> None:
    failing = [
        lambda: PydanticAIModel(raising(ModelHTTPError(401, "scripted"))),
        lambda: PydanticAIModel(raising(ModelConnectionError("scripted", "refused", phase="connect"))),
        lambda: PydanticAIModel(raising(UnexpectedModelBehavior("junk"))),
        lambda: PydanticAIModel(raising(KeyError("a bug in somebody's model"))),
    ]
    check_model(lambda: PydanticAIModel(saying(TextPart("no"))), failing=failing)


def test_it_goes_by_name_model_or_function() -> None:
    for model in ("test", TestModel(), TestModel):
        asked = PydanticAIModel(model)
        assert asked.name == "test"
        assert ask(asked).draws[0].text == "success (no tool calls)"


def test_the_model_gets_the_whole_query() -> None:
    seen: list[tuple[list[ModelMessage], AgentInfo]] = []

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen.append((messages, info))
        return ModelResponse(parts=[TextPart("{}")])

    query = Query(
        role=Role.SUBJECT,
        prompt="Go on.",
        system="You pay bills.",
        context=(Message("user", "Pay."), Message("assistant", "I look."), Message("tool", "30.20 EUR")),
        tools=(Tool(name="pay", description="Pays.", parameters=Raw(b'{"type":"object","title":"T"}')),),
        schema=Raw(b'{"type":"object"}'),
    )
    ask(PydanticAIModel(scripted(answer), temperature=0.5, max_tokens=77), query)
    [(messages, info)] = seen
    parts = [part for message in messages for part in message.parts]
    assert [(part.part_kind, text_of(part)) for part in parts] == [
        ("system-prompt", "You pay bills."),
        ("user-prompt", "Pay."),
        ("text", "I look."),
        ("user-prompt", "Result of a tool:\n30.20 EUR"),
        ("user-prompt", "Go on."),
    ]
    assert [(tool.name, tool.description) for tool in info.function_tools] == [("pay", "Pays.")]
    assert info.function_tools[0].parameters_json_schema == {"type": "object", "title": "T"}
    assert info.model_settings == {"max_tokens": 77, "temperature": 0.5}
    wanted = info.model_request_parameters
    assert (wanted.output_mode, wanted.output_object and wanted.output_object.json_schema) == (
        "native",
        {"type": "object"},
    )


def text_of(part: object) -> object:
    return part.content if isinstance(part, SystemPromptPart | UserPromptPart | TextPart) else None


def test_a_model_that_takes_no_schema_is_told_it_in_words() -> None:
    modes: list[str] = []

    def answer(_messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        modes.append(info.model_request_parameters.output_mode)
        assert "decision" in (info.instructions or "")
        return ModelResponse(parts=[TextPart("{}")])

    schema = Raw(b'{"type":"object","properties":{"decision":{"type":"string"}}}')
    model = FunctionModel(answer, profile={"supports_json_schema_output": False})
    ask(PydanticAIModel(model), Query(role=Role.JUDGE, prompt="?", schema=schema))
    assert modes == ["prompted"]


def test_text_and_tool_calls_are_kept_and_thoughts_are_not() -> None:
    parts = (
        ThinkingPart("hm"),
        TextPart("I "),
        TextPart("pay."),
        ToolCallPart("pay", {"to": "ES-77"}),
        ToolCallPart("x", "{"),
    )
    reply = ask(PydanticAIModel(saying(*parts)))
    assert reply.draws[0].text == "I pay."
    kept = [msgspec.json.decode(call) for call in reply.draws[0].tool_calls]
    assert kept == [{"name": "pay", "arguments": {"to": "ES-77"}}, {"name": "x", "arguments": "{"}]


def test_the_choice_is_how_often_each_option_was_drawn() -> None:
    letters = iter("ABAA")
    reply = ask(PydanticAIModel(scripted(lambda _m, _i: ModelResponse(parts=[TextPart(next(letters))]))), CHOICE)
    assert dict(reply.choice) == {"yes": 0.75, "no": 0.25}
    assert sorted(draw.text for draw in reply.draws) == ["no", "yes", "yes", "yes"]


def test_usage_costs_what_the_price_says() -> None:
    reply = ask(PydanticAIModel(saying(TextPart("no")), price=Price(input=1e6, output=0.0)))
    assert reply.usage.input_tokens > 0
    assert reply.usage.cost == reply.usage.input_tokens
    assert ask(PydanticAIModel(saying(TextPart("no")))).usage.cost is UNSET


FAULTS: list[tuple[Exception, Cause, str]] = [
    (
        ModelHTTPError(401, "m", {"error": "sk-1"}),
        Cause.ERROR,
        "scripted does not take the API key: look at the provider's",
    ),
    (ModelHTTPError(403, "m"), Cause.ERROR, "may not be used with this key"),
    (ModelHTTPError(404, "m", suggested_model_id="m-2"), Cause.ERROR, "did you mean m-2?"),
    (ModelHTTPError(400, "m"), Cause.ERROR, "scripted refuses the request (HTTP 400)"),
    (ModelHTTPError(429, "m", headers={"Retry-After": "90"}), Cause.ERROR, "(HTTP 429); it asks to wait 90 s, and"),
    (ModelHTTPError(503, "m"), Cause.ERROR, "scripted is out of order (HTTP 503)"),
    (ModelTimeoutError("m", "sk-1"), Cause.TIMEOUT, "did not answer in time"),
    (TimeoutError(), Cause.TIMEOUT, "did not answer in time"),
    (ModelConnectionError("m", "sk-1", phase="connect"), Cause.ERROR, "scripted cannot be reached"),
    (ModelConnectionError("m", "sk-1", phase="read"), Cause.ERROR, "broke off before its answer was complete"),
    (ConnectionResetError("sk-1"), Cause.ERROR, "broke off before its answer was complete"),
    (ContentFilterError("sk-1"), Cause.ERROR, "content filter"),
    (UnexpectedModelBehavior("sk-1"), Cause.MALFORMED, "UnexpectedModelBehavior"),
    (UserError("sk-1"), Cause.ERROR, "UserError"),
    (ValueError("sk-1"), Cause.MALFORMED, "ValueError"),
    (RuntimeError("sk-1"), Cause.ERROR, "RuntimeError"),
    (ExceptionGroup("all failed", [ModelHTTPError(503, "m"), ValueError()]), Cause.ERROR, "HTTP 503"),
]


@pytest.mark.parametrize(("error", "cause", "told"), FAULTS, ids=[repr(error)[:50] for error, _, _ in FAULTS])
def test_each_fault_becomes_the_right_failure_and_quotes_nothing(error: Exception, cause: Cause, told: str) -> None:
    raised = failed(raising(error))
    assert raised.cause is cause
    assert told in str(raised)
    assert "sk-1" not in str(raised)


@pytest.mark.parametrize(("reason", "cause"), [("length", Cause.MALFORMED), ("content_filter", Cause.ERROR)])
def test_an_answer_that_did_not_end_is_a_fault(reason: str, cause: Cause) -> None:
    response = ModelResponse(parts=[TextPart("A")], finish_reason="length" if reason == "length" else "content_filter")
    assert failed(scripted(lambda _m, _i: response)).cause is cause
    if reason == "length":
        assert ask(PydanticAIModel(scripted(lambda _m, _i: response)), CHOICE).draws[0].text == "yes"


def test_attempts_are_the_client_s_own_unless_more_are_wanted() -> None:
    made: list[int] = []

    def answer(_messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        made.append(1)
        raise ModelHTTPError(503, "m")

    assert "attempt" not in str(failed(scripted(answer)))
    assert "attempt 3" in str(failed(scripted(answer), retry=Retry(attempts=3, first=0.0, jitter=0.0)))
    assert len(made) == 4


@pytest.mark.parametrize("name", ["nosuch:model", "nosuch", "openai:gpt-5-mini"])
def test_a_name_without_a_model_or_its_key_is_refused_at_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigError, match=f"makes no model of '{name}'"):
        PydanticAIModel(name)


def test_it_is_entered_once_for_each_event_loop_and_left_with_it() -> None:
    steps: list[str] = []

    class Counted(TestModel):
        async def __aenter__(self) -> Self:
            steps.append("enter")
            return self

        async def __aexit__(self, *_: object) -> None:
            steps.append("leave")

    async def work() -> None:
        await asked.ask(QUESTION)
        await asked.ask(QUESTION)

    asked = PydanticAIModel(Counted)
    anyio.run(work)
    assert steps == ["enter", "leave"]
    anyio.run(work)
    assert steps == ["enter", "leave"] * 2


def test_a_function_is_called_once_for_each_event_loop_and_for_nothing_else() -> None:
    made: list[TestModel] = []

    def make() -> TestModel:
        made.append(TestModel())
        return made[-1]

    asked = PydanticAIModel(make)
    for loops in (1, 1, 2):
        assert len(made) == loops
        ask(asked)


def test_a_model_that_cannot_be_entered_is_a_model_error_without_its_words() -> None:
    class Closed(TestModel):
        async def __aenter__(self) -> Self:
            raise OSError("sk-1")

    raised = failed(Closed())
    assert "sk-1" not in "".join(traceback.format_exception(raised))


# -- its client of OpenAI ---------------------------------------------------------------------------------------------


def client(provider: FakeProvider) -> Callable[[], Model]:
    return lambda: OpenAIChatModel("m-1", provider=OpenAIProvider(base_url=provider.base_url, api_key="sk-test-5Bq0"))


def test_it_asks_over_http_in_one_event_loop_after_the_other() -> None:
    with FakeProvider(Says(text="yes", tool_calls=(("pay", '{"to":"ES-77"}'),))) as provider:
        model = PydanticAIModel(client(provider))
        replies = [ask(model) for _ in range(3)]
    assert [reply.draws[0].text for reply in replies] == ["yes"] * 3
    assert provider.connections == 3
    assert provider.asked[0].headers["authorization"] == "Bearer sk-test-5Bq0"


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        (Responds(body="<html>"), Cause.MALFORMED),
        (Responds(body='{"choices": 5}'), Cause.MALFORMED),
        (
            Responds(status=401, body='{"error": {"message": "Incorrect API key provided: sk-test-5Bq0"}}'),
            Cause.ERROR,
        ),
        (Responds(status=400), Cause.ERROR),
        (Breaks(Phase.BODY), Cause.ERROR),
        (Breaks(Phase.STREAM, "reset"), Cause.ERROR),
    ],
)
def test_what_goes_wrong_over_http_becomes_a_model_error_without_the_key(said: Scripted, cause: Cause) -> None:
    with FakeProvider(said) as provider:
        raised = failed(client(provider))
    assert raised.cause is cause, raised
    assert "sk-test-5Bq0" not in str(raised)


def test_a_provider_that_hangs_is_a_timeout_and_counts_for_the_breaker() -> None:
    with FakeProvider(Breaks(Phase.REQUEST, "hang")) as provider:
        model = PydanticAIModel(client(provider), timeout=0.2, breaker=Breaker(failures=1))
        with pytest.raises(ModelError, match=r"no answer within 0\.2 s") as raised:
            ask(model)
        assert raised.value.cause is Cause.TIMEOUT
        with pytest.raises(ModelError, match="not asked: 1 request in a row failed"):
            ask(model)
