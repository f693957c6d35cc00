"""Requests through Pydantic AI's direct interface. Imported only when a model is made: it costs a second."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeGuard

import anyio
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
from theodolite.core.inquiry import Draw, Query
from theodolite.core.reading import Cause
from theodolite.core.text import printable
from theodolite.models.hosted.per_loop import PerLoop
from theodolite.models.hosted.replies import Answer, Said, call_of, usage_of
from theodolite.models.hosted.transport import Fault, Transport
from theodolite.models.hosted.wording import Sampling, parameters, schema_of, turns

__all__ = ("Requests", "made")

# What a model that somebody wrote may raise. AgentRunError, of which Pydantic AI's own errors are, is a RuntimeError.
_FAULTS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ExceptionGroup,
    LookupError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    httpx2.HTTPError,
)
_ROLES = frozenset({"system", "user", "assistant"})


def made(model: Model | str | Callable[[], Model]) -> Callable[[], Model]:
    """Return what makes the model for an event loop. Raises ConfigError for a name that none can be made of."""
    if not isinstance(model, str):
        return partial(_same, model) if isinstance(model, Model) else model
    try:
        infer_model(model)
    except (UserError, ValueError, ImportError) as error:
        raise ConfigError(f"Pydantic AI makes no model of {model!r}: {error}") from error
    return partial(infer_model, model)


def _same(model: Model) -> Model:
    return model


class Requests:
    """Asks a model of Pydantic AI, which is entered once for each event loop."""

    def __init__(
        self, make: Callable[[], Model], *, sampling: Sampling, transport: Transport, concurrency: int
    ) -> None:
        self._desks = PerLoop(partial(_opened, make, concurrency), _closed)
        self._sampling = sampling
        self._transport = transport

    async def send(self, query: Query) -> Answer:
        """Return what one request brought. Raises ModelError."""
        desk = await self._desks.get()
        asked = self._asked(query, desk.model)
        async with desk.places:
            return await self._transport.call(partial(self._attempt, desk.model, query, asked))

    async def release(self) -> None:
        """Leave the model of the running event loop."""
        await self._desks.release()

    def _asked(self, query: Query, model: Model) -> tuple[list[ModelMessage], ModelRequestParameters]:
        system: list[ModelMessage] = (
            [ModelRequest(parts=[SystemPromptPart(printable(query.system))])] if query.system else []
        )
        return [*system, *[_message(turn) for turn in turns(query, roles=_ROLES)]], _parameters(query, model)

    async def _attempt(
        self, model: Model, query: Query, asked: tuple[list[ModelMessage], ModelRequestParameters]
    ) -> Answer | Fault:
        messages, wanted = asked
        settings = ModelSettings(max_tokens=self._sampling.max_tokens)
        if self._sampling.temperature is not None:
            settings["temperature"] = self._sampling.temperature
        try:
            response = await model_request(model, messages, model_settings=settings, model_request_parameters=wanted)
        except _FAULTS as error:
            return _fault_of(error, self._sampling.model)
        return _answer_of(response, query)


@dataclass(frozen=True)
class _Desk:
    model: Model
    places: anyio.CapacityLimiter


async def _opened(make: Callable[[], Model], concurrency: int) -> _Desk:
    model = make()
    try:
        await model.__aenter__()
    except _FAULTS as error:
        raise ModelError(f"{model.model_name} cannot be opened: {type(error).__name__}") from error
    return _Desk(model, anyio.CapacityLimiter(concurrency))


async def _closed(desk: _Desk) -> None:
    # A connection that cannot be closed in order is gone all the same.
    with suppress(*_FAULTS):
        await desk.model.__aexit__(None, None, None)


def _message(turn: dict[str, str]) -> ModelMessage:
    if turn["role"] == "assistant":
        return ModelResponse(parts=[TextPart(turn["content"])])
    part = SystemPromptPart if turn["role"] == "system" else UserPromptPart
    return ModelRequest(parts=[part(turn["content"])])


def _parameters(query: Query, model: Model) -> ModelRequestParameters:
    tools = [
        ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=parameters(tool))
        for tool in query.tools
    ]
    schema = schema_of(query)
    if schema is None:
        return ModelRequestParameters(function_tools=tools)
    native = model.profile.get("supports_json_schema_output", False)
    wanted = OutputObjectDefinition(json_schema=schema, name="answer")
    return ModelRequestParameters(
        function_tools=tools, output_mode="native" if native else "prompted", output_object=wanted
    )


def _answer_of(response: ModelResponse, query: Query) -> Answer | Fault:
    if response.finish_reason == "content_filter":
        return Fault("the provider's content filter took the answer away")
    if response.finish_reason == "length" and not query.options:
        return Fault("the answer was cut at max_tokens: raise it", Cause.MALFORMED)
    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    calls = [call_of(part.tool_name, part.args or {}) for part in response.parts if isinstance(part, ToolCallPart)]
    used = response.usage
    cost = None if used.cost is None else float(used.cost)
    usage = usage_of(input_tokens=used.input_tokens, output_tokens=used.output_tokens, cost=cost)
    return Answer((Said(Draw(text=text, tool_calls=tuple(calls))),), usage)


def _fault_of(error: BaseException, name: str) -> Fault:
    """Return what an error of Pydantic AI means. What the provider said is left out: which key to hide is not known."""
    while _is_group(error):
        error = error.exceptions[0]
    if isinstance(error, ModelHTTPError):
        return _refused(error, name)
    if isinstance(error, ModelTimeoutError | ModelRequestTimeout | TimeoutError):
        return Fault(f"{name} did not answer in time", Cause.TIMEOUT, down=True)
    if isinstance(error, ModelConnectionError | OSError | httpx2.TransportError):
        early = isinstance(error, ModelConnectionError) and error.phase in {"pool", "connect"}
        what = "cannot be reached" if early else "broke off before its answer was complete"
        return Fault(f"{name} {what}: are its base URL and the network right?", transient=early, down=True)
    if isinstance(error, ContentFilterError):
        return Fault("the provider's content filter took the answer away")
    malformed = isinstance(error, UnexpectedModelBehavior | ValueError | TypeError) and not isinstance(error, UserError)
    return Fault(f"{name} failed with {type(error).__name__}", Cause.MALFORMED if malformed else Cause.ERROR)


def _is_group(error: BaseException) -> TypeGuard[BaseExceptionGroup[BaseException]]:
    return isinstance(error, BaseExceptionGroup)


def _refused(error: ModelHTTPError, name: str) -> Fault:
    status = error.status_code
    told = _ADVICE.get(status, "refuses the request" if status < 500 else "is out of order")  # noqa: PLR2004 - HTTP
    meant = f"; did you mean {error.suggested_model_id}?" if error.suggested_model_id else ""
    transient = status in {408, 409, 429} or status >= 500  # noqa: PLR2004 - HTTP
    down = status == 408 or status >= 500  # noqa: PLR2004 - HTTP
    wait = error.retry_after if transient else None
    return Fault(f"{name} {told} (HTTP {status}){meant}", transient=transient, down=down, wait=wait)


_ADVICE = {
    401: "does not take the API key: look at the provider's variable for it",
    402: "wants to be paid first: look at the account's billing",
    403: "may not be used with this key: look at what the key and its project may use",
    404: "is not known to its provider: look at the model's name and the base URL",
    429: "is asked too often",
}
