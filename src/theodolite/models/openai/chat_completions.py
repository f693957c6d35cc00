"""OpenAI's Chat Completions, on the wire: a query as a request, a response as an answer. Pure.

Source: the types of the official SDK. Compatible servers are read leniently in what they leave out, and strictly in
what they say.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from theodolite.core.arguments import is_mapping, is_sequence
from theodolite.core.errors import ModelError
from theodolite.core.inquiry import Draw, Query
from theodolite.core.reading import Cause
from theodolite.core.text import printable
from theodolite.models.hosted.question import Sampling, is_strict, parameters, schema_of, turns
from theodolite.models.hosted.reply import Alternative, Answer, Said, call_of, decoded, usage_of

__all__ = ("PATH", "answer_of", "request_for")

PATH = "/chat/completions"

_ROLES = frozenset({"system", "developer", "user", "assistant"})


class _Message(Struct, gc=False):
    """What a model wrote, which may be of any form: it is read part by part, so that one does not hide another."""

    content: str | list[object] | dict[str, object] | None = None
    refusal: str | None = None
    tool_calls: object = None


class _Token(Struct, gc=False):
    token: str
    top_logprobs: tuple[Alternative, ...] = ()


class _Logprobs(Struct, gc=False):
    content: tuple[_Token, ...] | None = None


class _Choice(Struct, gc=False):
    message: _Message
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None


class _Usage(Struct, gc=False):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: object = None  # what OpenRouter and others say that they charge


class _Error(Struct, gc=False):
    code: int | str | None = None


class _Completion(Struct, gc=False):
    choices: tuple[_Choice, ...] | None = None
    usage: _Usage | None = None
    error: _Error | str | None = None


def request_for(query: Query, sampling: Sampling, draws: int, *, length: str) -> dict[str, object]:
    """Return the body of a request for so many draws. `length` names the field for the most tokens of an answer.

    Raises ModelError for a query that cannot be put.
    """
    system = [{"role": "system", "content": printable(query.system)}] if query.system else []
    body: dict[str, object] = {
        "model": sampling.model,
        "messages": [*system, *turns(query, roles=_ROLES)],
        length: sampling.tokens(query),
    }
    if draws > 1:
        body["n"] = draws
    if sampling.temperature is not None:
        body["temperature"] = sampling.temperature
    if query.options and sampling.top_logprobs:
        body |= {"logprobs": True, "top_logprobs": sampling.top_logprobs}
    if query.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": parameters(tool)},
            }
            for tool in query.tools
        ]
    schema = schema_of(query)
    if schema is not None:
        named = {"name": "answer", "schema": schema, "strict": is_strict(schema)}
        body["response_format"] = {"type": "json_schema", "json_schema": named}
    return body


def answer_of(data: bytes, query: Query) -> Answer:
    """Return what a response says. Raises ModelError: MALFORMED for what cannot be read or was cut, ERROR for a filter.

    The `refusal` of a model is its own words: a draw.
    """
    completion = decoded(data, _Completion)
    if not completion.choices:
        told = completion.error.code if isinstance(completion.error, _Error) else None
        if completion.error is not None:
            raise ModelError(f"an error is all that the answer holds (code {told})")
        raise ModelError("the answer holds no choices", cause=Cause.MALFORMED)
    used = completion.usage or _Usage()
    usage = usage_of(input_tokens=used.prompt_tokens, output_tokens=used.completion_tokens, cost=used.cost)
    return Answer(tuple([_said(choice, query) for choice in completion.choices]), usage)


def _said(choice: _Choice, query: Query) -> Said:
    if choice.finish_reason == "content_filter":
        raise ModelError("the provider's content filter took the answer away")
    if choice.finish_reason == "length" and not query.options:
        raise ModelError("the answer was cut at max_tokens: raise it", cause=Cause.MALFORMED)
    message = choice.message
    tokens = (choice.logprobs.content or ()) if choice.logprobs else ()
    first = next((token.top_logprobs for token in tokens if token.token.strip()), ())
    return Said(
        Draw(text=_text(message.content) or message.refusal or "", tool_calls=_calls(message.tool_calls)), first
    )


def _text(content: object) -> str:
    """Return the text of a message: its own, or that of its blocks; what has none as JSON."""
    parts = content if is_sequence(content) else () if content is None else (content,)
    texts = [part.get("text") if is_mapping(part) else part for part in parts]
    pairs = zip(texts, parts, strict=True)
    return "".join([text if isinstance(text, str) else msgspec.json.encode(part).decode() for text, part in pairs])


def _calls(given: object) -> tuple[Raw, ...]:
    """Return the calls that were tried; what is none as JSON, which whoever reads the answer will call malformed."""
    calls = given if is_sequence(given) else () if given is None else (given,)
    return tuple([_call(call) for call in calls])


def _call(given: object) -> Raw:
    function = given.get("function") if is_mapping(given) else None
    name = function.get("name") if is_mapping(function) else None
    if not is_mapping(function) or not isinstance(name, str):
        return Raw(msgspec.json.encode(given))
    return call_of(name, function.get("arguments", ""))
