"""Tool definitions on their way to a model, and the calls that it attempts on their way back. Nothing is dispatched."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Raw, Struct

from theodolite.core.arguments import is_mapping
from theodolite.core.event import Tool
from theodolite.core.text import printable

__all__ = ("NativeCall", "attempted", "declared", "named", "spelled_out")

_FORM = '{"name": "the tool\'s name", "arguments": {}}'


class _Called(Struct, frozen=True):
    name: str = ""
    arguments: str = ""


class NativeCall(Struct, frozen=True):
    """A call as Chat Completions writes it: the arguments are JSON within a string."""

    function: _Called = _Called()


def declared(tools: Iterable[Tool]) -> list[dict[str, object]]:
    """Return tool definitions in the form of Chat Completions."""
    return [{"type": "function", "function": _definition(tool)} for tool in tools]


def spelled_out(tools: Iterable[Tool]) -> str:
    """Return tool definitions as text, for a model whose template has no place for them."""
    lines = [msgspec.json.encode(_definition(tool)).decode() for tool in tools]
    if not lines:
        return ""
    return "\n".join(["You may call these tools:", *lines, f"To call one, answer with nothing but JSON: {_FORM}"])


def named(calls: Iterable[NativeCall]) -> tuple[Raw, ...]:
    """Return calls that the runtime has parsed, as `{"name": ..., "arguments": ...}`."""
    return tuple([_call(call.function.name, _stated(call.function.arguments)) for call in calls])


def attempted(text: str) -> tuple[Raw, ...]:
    """Return the calls that a text holds, in any of the forms in which small models write them.

    A call is a JSON object with a name, and with arguments or parameters that are an object; it may stand in a list, in
    a code fence, between tags or among words.

    >>> bytes(attempted('Sure: <tool_call>{"name": "pay", "arguments": {"to": "ES-77"}}</tool_call>')[0])
    b'{"name":"pay","arguments":{"to":"ES-77"}}'
    """
    found: list[Raw] = []
    for value, source in _objects(text):
        name, arguments = value.get("name"), value.get("arguments", value.get("parameters"))
        if isinstance(name, str) and is_mapping(arguments):
            try:
                found.append(_call(name, arguments))
            except (ValueError, OverflowError, RecursionError):  # half a character, a number of a hundred digits
                found.append(_call(printable(name), printable(source)))
    return tuple(found)


def _objects(text: str) -> Iterator[tuple[dict[str, object], str]]:
    """Yield each JSON object that a text holds, with how it is written."""
    decoder = json.JSONDecoder()
    place = text.find("{")
    while place >= 0:
        try:
            value, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            end = place + 1
        else:
            yield value, text[place:end]
        place = text.find("{", end)


def _definition(tool: Tool) -> dict[str, object]:
    parameters = tool.parameters if isinstance(tool.parameters, Raw) else {"type": "object"}
    return {"name": tool.name, "description": tool.description, "parameters": parameters}


def _stated(arguments: str) -> Raw | str:
    """Return arguments as JSON if they are, else as text."""
    try:
        msgspec.json.decode(arguments)
    except (msgspec.DecodeError, RecursionError):
        return arguments
    return Raw(arguments.encode())


def _call(name: str, arguments: object) -> Raw:
    return Raw(msgspec.json.encode({"name": name, "arguments": arguments}))
