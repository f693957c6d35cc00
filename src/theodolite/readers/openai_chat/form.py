"""The form of Chat Completions messages, as far as it is read: https://platform.openai.com/docs/api-reference/chat.

What may be wrong by itself stays undecoded (`Raw`) here, so that it can be reported by itself.
"""

from __future__ import annotations

from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.json import Decoder

from theodolite.readers.conversations.conversation import Declaration

__all__ = (
    "CALL",
    "DECLARED",
    "FUNCTION",
    "MESSAGE",
    "RECORD",
    "Declared",
    "Function",
    "Message",
    "Record",
    "ToolCall",
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


class Declared(Struct, frozen=True):
    """One entry of `tools`."""

    function: Declaration | UnsetType = UNSET
    custom: Declaration | UnsetType = UNSET


RECORD = Decoder(Record)
MESSAGE = Decoder(Message)
CALL = Decoder(ToolCall)
FUNCTION: Decoder[Function | None] = Decoder(Function | None)
DECLARED = Decoder(Declared)
