"""OpenAI's Responses, on the wire: a query as a request, a response as an answer. Pure.

Source: the types of the official SDK. Nothing is kept at the provider (`store` is false).
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from theodolite.core.errors import ModelError
from theodolite.core.inquiry import Draw, Query
from theodolite.core.reading import Cause
from theodolite.core.text import printable
from theodolite.models.hosted.question import Sampling, is_strict, parameters, schema_of, turns
from theodolite.models.hosted.reply import Alternative, Answer, Said, call_of, decoded, usage_of

__all__ = ("PATH", "answer_of", "request_for")

PATH = "/responses"

_ROLES = frozenset({"system", "developer", "user", "assistant"})


class _Token(Struct, gc=False):
    token: str
    top_logprobs: tuple[Alternative, ...] = ()


class _Part(Struct, gc=False):
    type: str
    text: str = ""
    refusal: str = ""
    logprobs: tuple[_Token, ...] | None = None


class _Item(Struct, gc=False):
    """An item of the output: a message, a call, or what a reasoning model keeps to itself."""

    type: str
    content: tuple[_Part, ...] | None = None
    name: str = ""
    arguments: str = ""


class _Incomplete(Struct, gc=False):
    reason: str | None = None


class _Error(Struct, gc=False):
    code: str | None = None


class _Usage(Struct, gc=False):
    input_tokens: int = 0
    output_tokens: int = 0
    cost: object = None


class _Response(Struct, gc=False):
    output: tuple[_Item, ...]
    status: str | None = None
    incomplete_details: _Incomplete | None = None
    error: _Error | None = None
    usage: _Usage | None = None


def request_for(query: Query, sampling: Sampling) -> dict[str, object]:
    """Return the body of a request for one draw. Raises ModelError for a query that cannot be put."""
    body: dict[str, object] = {
        "model": sampling.model,
        "input": [_item(turn) for turn in turns(query, roles=_ROLES)],
        "max_output_tokens": sampling.tokens(query),
        "store": False,
    }
    if query.system:
        body["instructions"] = printable(query.system)
    if sampling.temperature is not None:
        body["temperature"] = sampling.temperature
    if query.options and sampling.top_logprobs:
        body |= {"top_logprobs": sampling.top_logprobs, "include": ["message.output_text.logprobs"]}
    if query.tools:
        body["tools"] = [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": parameters(tool),
                "strict": False,
            }
            for tool in query.tools
        ]
    schema = schema_of(query)
    if schema is not None:
        named = {"type": "json_schema", "name": "answer", "schema": schema, "strict": is_strict(schema)}
        body["text"] = {"format": named}
    return body


def _item(turn: dict[str, str]) -> dict[str, object]:
    if turn["role"] != "assistant":
        return {"type": "message", **turn}
    # What a model said comes back as it was put out: llama.cpp's server takes it in no other form.
    part = {"type": "output_text", "text": turn["content"], "annotations": list[object]()}
    return {"type": "message", "role": "assistant", "status": "completed", "content": [part]}


def answer_of(data: bytes, query: Query) -> Answer:
    """Return what a response says. Raises ModelError: MALFORMED for what cannot be read or was cut, ERROR for a filter.

    The `refusal` of a model is its own words: a draw.
    """
    response = decoded(data, _Response)
    _check_ended(response, query)
    used = response.usage or _Usage()
    usage = usage_of(input_tokens=used.input_tokens, output_tokens=used.output_tokens, cost=used.cost)
    calls = tuple([call_of(item.name, item.arguments) for item in response.output if item.type == "function_call"])
    parts = list(_parts(response))
    text = "".join(part.text or part.refusal for part in parts)
    tokens = [token for part in parts for token in part.logprobs or ()]
    first = next((token.top_logprobs for token in tokens if token.token.strip()), ())
    return Answer((Said(Draw(text=text, tool_calls=calls), first),), usage)


def _parts(response: _Response) -> Iterator[_Part]:
    for item in response.output:
        if item.type == "message":
            yield from item.content or ()


def _check_ended(response: _Response, query: Query) -> None:
    if response.status == "failed":
        code = response.error.code if response.error else None
        raise ModelError(f"the provider failed in the midst of the answer (code {code})")
    if response.status == "incomplete":
        reason = response.incomplete_details.reason if response.incomplete_details else None
        if reason == "content_filter":
            raise ModelError("the provider's content filter took the answer away")
        if not (query.options and reason == "max_output_tokens"):
            raise ModelError(f"the answer was cut ({reason}): raise max_tokens", cause=Cause.MALFORMED)
    elif response.status not in {"completed", None}:
        raise ModelError(f"the answer is not finished: its status is {response.status}", cause=Cause.MALFORMED)
