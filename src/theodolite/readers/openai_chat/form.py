"""The form of Chat Completions messages, as far as it is read: https://platform.openai.com/docs/api-reference/chat.

What may be wrong by itself stays undecoded (`Raw`) here, so that it can be reported by itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TypeGuard

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.json import Decoder

from theodolite.core.event import Channel
from theodolite.core.lines import decode

__all__ = (
    "CALL",
    "CONTENT",
    "DECLARATION",
    "DECLARED",
    "FUNCTION",
    "ITEMS",
    "MESSAGE",
    "NAME",
    "NUMBER",
    "PART",
    "RECORD",
    "TEXT",
    "Declaration",
    "Declared",
    "Function",
    "Message",
    "Part",
    "Record",
    "ToolCall",
    "arguments_of",
)


class Record(Struct, frozen=True):
    """A request, or what a host kept of it: the messages and what stands beside them."""

    messages: Raw | UnsetType = UNSET
    id: Raw | UnsetType = UNSET
    session_id: Raw | UnsetType = UNSET
    model: Raw | UnsetType = UNSET
    temperature: Raw | UnsetType = UNSET
    top_p: Raw | UnsetType = UNSET
    tools: Raw | UnsetType = UNSET
    functions: Raw | UnsetType = UNSET


class Message(Struct, frozen=True):
    """A message of any role."""

    role: str
    content: Raw | UnsetType = UNSET
    refusal: Raw | UnsetType = UNSET
    name: Raw | UnsetType = UNSET
    tool_calls: Raw | UnsetType = UNSET
    function_call: Raw | UnsetType = UNSET
    tool_call_id: Raw | UnsetType = UNSET


class Part(Struct, frozen=True):
    """One part of a content list."""

    type: str
    text: str | UnsetType = UNSET
    refusal: str | UnsetType = UNSET


class Function(Struct, frozen=True):
    """What is called: arguments as an object or as the JSON of one; a custom tool has an input instead."""

    name: str
    arguments: Raw | UnsetType = UNSET
    input: str | UnsetType = UNSET


class ToolCall(Struct, frozen=True):
    """One entry of `tool_calls`."""

    id: str | None = None
    function: Function | UnsetType = UNSET
    custom: Function | UnsetType = UNSET


class Declaration(Struct, frozen=True):
    """A tool on offer."""

    name: str
    description: str | None = None
    parameters: dict[str, object] | None = None


class Declared(Struct, frozen=True):
    """One entry of `tools`."""

    function: Declaration | UnsetType = UNSET
    custom: Declaration | UnsetType = UNSET


RECORD = Decoder(Record)
ITEMS: Decoder[list[Raw] | None] = Decoder(list[Raw] | None)
MESSAGE = Decoder(Message)
CONTENT: Decoder[str | list[Raw] | None] = Decoder(str | list[Raw] | None)
PART = Decoder(Part)
CALL = Decoder(ToolCall)
FUNCTION: Decoder[Function | None] = Decoder(Function | None)
DECLARED = Decoder(Declared)
DECLARATION = Decoder(Declaration)
TEXT: Decoder[str | None] = Decoder(str | None)
NAME: Decoder[str | int | None] = Decoder(str | int | None)
NUMBER: Decoder[float | None] = Decoder(float | None)

_OBJECT = Decoder(dict[str, object])


def arguments_of(function: Function) -> tuple[Mapping[str, object] | UnsetType, Channel, str]:
    """Return the arguments of a call, the channel they came on, and why there are none where there should be.

    Hosts take the blank text that some models send for a tool without parameters as no arguments, and so does this.
    """
    if isinstance(function.input, str):
        return {"input": function.input}, Channel.TOOL_CALL_STRING, ""
    given = b"" if isinstance(function.arguments, UnsetType) else bytes(function.arguments)
    if given in {b"", b"null"}:
        return UNSET, Channel.TOOL_CALL_OBJECT, ""
    channel, text = Channel.TOOL_CALL_OBJECT, given
    if given.startswith(b'"'):
        channel, text = Channel.TOOL_CALL_STRING, (decode(TEXT, given) or "").strip().encode() or b"{}"
    said = _object_of(text)
    return (UNSET, channel, "no JSON object that can be read") if said is None else (said, channel, "")


def _object_of(text: bytes) -> Mapping[str, object] | None:
    """Return the object that a JSON text says, or None.

    Takes what Python's json module takes, since hosts do: NaN, lone surrogates, numbers beyond a double.
    ToolCallProposed finds and lists them.
    """
    try:
        return _OBJECT.decode(text)
    except (msgspec.DecodeError, RecursionError):
        pass
    try:
        value: object = json.loads(text.decode())
    except (ValueError, RecursionError):
        return None
    return value if _is_object(value) else None


def _is_object(value: object) -> TypeGuard[dict[str, object]]:
    return isinstance(value, dict)  # of JSON: its keys are text
