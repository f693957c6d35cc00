"""Anthropic's Messages, on the wire: a query as a request, a response as an answer. Pure.

Source: the types of the official SDK.
"""

from __future__ import annotations

from msgspec import Struct

from theodolite.core.errors import ModelError
from theodolite.core.inquiry import Draw, Query
from theodolite.core.reading import Cause
from theodolite.core.text import printable
from theodolite.models.hosted.question import Sampling, parameters, schema_of, turns
from theodolite.models.hosted.reply import Answer, Said, call_of, decoded, usage_of

__all__ = ("PATH", "answer_of", "request_for")

PATH = "/v1/messages"

_CUT = frozenset({"max_tokens", "model_context_window_exceeded"})


class _Block(Struct, gc=False):
    """A block of content: text, a call, or what a model thinks by itself."""

    type: str
    text: str = ""
    name: str = ""
    input: dict[str, object] | None = None


class _Usage(Struct, gc=False):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cost: object = None


class _Message(Struct, gc=False):
    content: tuple[_Block, ...]
    stop_reason: str | None = None
    usage: _Usage | None = None


def request_for(query: Query, sampling: Sampling) -> dict[str, object]:
    """Return the body of a request for one draw. Raises ModelError for a query that cannot be put."""
    body: dict[str, object] = {
        "model": sampling.model,
        "messages": turns(query),
        "max_tokens": sampling.max_tokens,
    }
    if query.system:
        body["system"] = printable(query.system)
    if sampling.temperature is not None:
        body["temperature"] = sampling.temperature
    if query.tools:
        body["tools"] = [
            {"name": tool.name, "description": tool.description, "input_schema": parameters(tool)}
            for tool in query.tools
        ]
    schema = schema_of(query)
    if schema is not None:
        body["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
    return body


def answer_of(data: bytes, query: Query) -> Answer:
    """Return what a response says. Raises ModelError: MALFORMED for what cannot be read or was cut, ERROR for a filter.

    A model that declines in words has answered; `stop_reason: refusal` is the provider's classifier.
    """
    message = decoded(data, _Message)
    if message.stop_reason == "refusal":
        raise ModelError("the provider's classifiers stopped the answer (stop_reason refusal)")
    if message.stop_reason in _CUT and not query.options:
        raise ModelError(f"the answer was cut ({message.stop_reason}): raise max_tokens", cause=Cause.MALFORMED)
    used = message.usage or _Usage()
    read = used.input_tokens + (used.cache_creation_input_tokens or 0) + (used.cache_read_input_tokens or 0)
    usage = usage_of(input_tokens=read, output_tokens=used.output_tokens, cost=used.cost)
    text = "".join(block.text for block in message.content if block.type == "text")
    calls = tuple([call_of(block.name, block.input or {}) for block in message.content if block.type == "tool_use"])
    return Answer((Said(Draw(text=text, tool_calls=calls)),), usage)
