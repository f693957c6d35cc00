"""Requests through Pydantic AI's direct interface. Imported only when a model is made: it costs a second."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial

import httpx2
from pydantic_ai import (
    ModelHTTPError,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolDefinition,
    UserPromptPart,
)
from pydantic_ai.direct import model_request
from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelConnectionError,
    ModelRequestTimeout,
    ModelTimeoutError,
    UnexpectedModelBehavior,
    UserError,
)
from pydantic_ai.models import Model, ModelRequestParameters, infer_model
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.settings import ModelSettings

from theodolite.core.errors import ConfigError, ModelError
from theodolite.core.event import Tool
from theodolite.core.inquiry import Draw, Query
from theodolite.core.reading import Cause
from theodolite.core.text import printable
from theodolite.models.hosted.breaker import Breaker
from theodolite.models.hosted.desk import Desk
from theodolite.models.hosted.question import Sampling, parameters, schema_of, turns
from theodolite.models.hosted.reply import Answer, Said, call_of, usage_of
from theodolite.models.hosted.retry import Retry
from theodolite.models.hosted.transport import Fault, Transport, is_down, may_pass
from theodolite.runtime.answers import first_of

__all__ = ("Requests", "Source")

_ROLES = frozenset({"system", "user", "assistant"})
_FILTERED = "the provider's content filter took the answer away"


class Source:
    """Gives a model to each event loop that takes one: the same where it was given a Model, else another each time.

    Raises ConfigError for a name that Pydantic AI makes no model of, and what a function raises.
    """

    def __init__(self, model: Model | str | Callable[[], Model]) -> None:
        self._make = _maker(model)
        first = self._make()
        self.name = first.model_name
        self._made = [first]

    def take(self) -> Model:
        """Return a model, which may have been made before."""
        with suppress(IndexError):
            return self._made.pop()
        return self._make()


def _maker(model: Model | str | Callable[[], Model]) -> Callable[[], Model]:
    if isinstance(model, str):
        return partial(_inferred, model)
    return partial(_same, model) if isinstance(model, Model) else model


def _same(model: Model) -> Model:
    return model


def _inferred(name: str) -> Model:
    try:
        return infer_model(name)
    except (UserError, ValueError, ImportError) as error:
        raise ConfigError(f"Pydantic AI makes no model of {name!r}: {error}") from error


class Requests:
    """Asks a model of Pydantic AI, which is entered once for each event loop."""

    def __init__(
        self,
        take: Callable[[], Model],
        *,
        sampling: Sampling,
        retry: Retry,
        breaker: Breaker,
        timeout: float,
        concurrency: int,
    ) -> None:
        self._sampling = sampling
        transport = Transport(
            retry=retry, breaker=breaker, timeout=timeout, fault_of=partial(_fault_of, name=sampling.model)
        )
        self._desk: Desk[Model] = Desk(take, transport=transport, concurrency=concurrency)

    async def send(self, query: Query) -> Answer:
        """Return what one request brought. Raises ModelError."""
        system: list[ModelMessage] = (
            [ModelRequest(parts=[SystemPromptPart(printable(query.system))])] if query.system else []
        )
        messages = [*system, *[_message(turn) for turn in turns(query, roles=_ROLES)]]
        wanted = schema_of(query), [_definition(tool) for tool in query.tools]
        settings = ModelSettings(max_tokens=self._sampling.max_tokens)
        if self._sampling.temperature is not None:
            settings["temperature"] = self._sampling.temperature

        async def requested(model: Model) -> ModelResponse:
            parameters = _parameters(model, *wanted)
            return await model_request(model, messages, model_settings=settings, model_request_parameters=parameters)

        return _answer_of(await self._desk.call(requested), query)

    async def release(self) -> None:
        """Leave the model of the running event loop."""
        await self._desk.release()


def _message(turn: dict[str, str]) -> ModelMessage:
    if turn["role"] == "assistant":
        return ModelResponse(parts=[TextPart(turn["content"])])
    part = SystemPromptPart if turn["role"] == "system" else UserPromptPart
    return ModelRequest(parts=[part(turn["content"])])


def _definition(tool: Tool) -> ToolDefinition:
    return ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=parameters(tool))


def _parameters(model: Model, schema: dict[str, object] | None, tools: list[ToolDefinition]) -> ModelRequestParameters:
    if schema is None:
        return ModelRequestParameters(function_tools=tools)
    native = model.profile.get("supports_json_schema_output", False)
    wanted = OutputObjectDefinition(json_schema=schema, name="answer")
    return ModelRequestParameters(
        function_tools=tools, output_mode="native" if native else "prompted", output_object=wanted
    )


def _answer_of(response: ModelResponse, query: Query) -> Answer:
    """Return what a response says. Raises ModelError for an answer that did not end."""
    if response.finish_reason == "content_filter":
        raise ModelError(_FILTERED)
    if response.finish_reason == "length" and not query.options:
        raise ModelError("the answer was cut at max_tokens: raise it", cause=Cause.MALFORMED)
    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    calls = [call_of(part.tool_name, part.args or {}) for part in response.parts if isinstance(part, ToolCallPart)]
    used = response.usage
    cost = None if used.cost is None else float(used.cost)
    usage = usage_of(input_tokens=used.input_tokens, output_tokens=used.output_tokens, cost=cost)
    return Answer((Said(Draw(text=text, tool_calls=tuple(calls))),), usage)


def _fault_of(error: BaseException, name: str) -> Fault:
    """Return what an error of Pydantic AI means. What the provider said is left out: which key to hide is not known."""
    error = first_of(error)
    if isinstance(error, ModelHTTPError):
        return _refused(error, name)
    if isinstance(error, ModelTimeoutError | ModelRequestTimeout | TimeoutError):
        return Fault(f"{name} did not answer in time", Cause.TIMEOUT, down=True)
    if isinstance(error, ModelConnectionError | OSError | httpx2.TransportError):
        early = isinstance(error, ModelConnectionError) and error.phase in {"pool", "connect"}
        what = "cannot be reached" if early else "broke off before its answer was complete"
        return Fault(f"{name} {what}: are its base URL and the network right?", transient=early, down=True)
    if isinstance(error, ContentFilterError):
        return Fault(_FILTERED)
    malformed = isinstance(error, UnexpectedModelBehavior | ValueError | TypeError) and not isinstance(error, UserError)
    return Fault(f"{name} failed with {type(error).__name__}", Cause.MALFORMED if malformed else Cause.ERROR)


def _refused(error: ModelHTTPError, name: str) -> Fault:
    status = error.status_code
    told = _ADVICE.get(status, "refuses the request" if status < 500 else "is out of order")  # noqa: PLR2004 - HTTP
    meant = f"; did you mean {error.suggested_model_id}?" if error.suggested_model_id else ""
    transient = may_pass(status)
    wait = error.retry_after if transient else None
    return Fault(f"{name} {told} (HTTP {status}){meant}", transient=transient, down=is_down(status), wait=wait)


_ADVICE = {
    401: "does not take the API key: look at the provider's variable for it",
    402: "wants to be paid first: look at the account's billing",
    403: "may not be used with this key: look at what the key and its project may use",
    404: "is not known to its provider: look at the model's name and the base URL",
    429: "is asked too often",
}
