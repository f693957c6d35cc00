"""The arguments of a recorded call: an object, or the JSON of one in a string."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple, TypeGuard

import msgspec
from msgspec import UNSET, Raw, UnsetType
from msgspec.json import Decoder

from theodolite.core.arguments import Foreign
from theodolite.core.event import Channel
from theodolite.core.lines import decode
from theodolite.readers.conversations.broken import written_so

__all__ = ("Arguments", "arguments_of")

_TEXT = Decoder(str)
_OBJECT = Decoder(dict[str, object])


class Arguments(NamedTuple):
    """What a call says, the channel it came on, and why it says nothing where it should.

    `foreign` is what the model wrote that is no JSON, where nobody else can have made it so.
    """

    said: Mapping[str, object] | UnsetType
    channel: Channel
    fault: str = ""
    foreign: tuple[Foreign, ...] = ()


def arguments_of(given: Raw | UnsetType) -> Arguments:
    r"""Return the arguments of a call; none where it has none or null.

    Hosts take the blank text that some models send for a tool without parameters as no arguments, and so does this.
    Raises EventError for a string that is broken.

    >>> arguments_of(Raw(rb'"{\"day\": \"Friday\"}"'))[:2]
    ({'day': 'Friday'}, <Channel.TOOL_CALL_STRING: 'tool_call_string'>)
    >>> arguments_of(Raw(rb'"{\"day\": Friday}"')).foreign
    (Foreign(path='', type='not_json'),)
    """
    text = b"" if isinstance(given, UnsetType) else bytes(given)
    if text in {b"", b"null"}:
        return Arguments(UNSET, Channel.TOOL_CALL_OBJECT)
    channel = Channel.TOOL_CALL_OBJECT
    if text.startswith(b'"'):
        channel, text = Channel.TOOL_CALL_STRING, decode(_TEXT, text).strip().encode() or b"{}"
    said = _object_of(text)
    if not isinstance(said, str):
        return Arguments(said, channel)
    foreign = (Foreign("", said),) if said and channel is Channel.TOOL_CALL_STRING else ()
    return Arguments(UNSET, channel, "no JSON object that can be read", foreign)


def _object_of(text: bytes) -> Mapping[str, object] | str:
    """Return the object that a JSON text says, or what is wrong with it, empty where that may be nothing.

    Takes what Python's json module takes, since hosts do: NaN, lone surrogates, numbers beyond a double.
    ToolCallProposed finds and lists them.
    """
    try:
        return _OBJECT.decode(text)
    except (msgspec.DecodeError, RecursionError):
        pass
    try:
        value: object = json.loads(text.decode())
    except json.JSONDecodeError as error:
        return "not_json" if written_so(error) else ""
    except RecursionError:
        return "too_deep" if text.startswith(b"{") else ""
    except ValueError:  # a number with more digits than Python reads
        return ""
    return value if _is_object(value) else ""


def _is_object(value: object) -> TypeGuard[dict[str, object]]:
    return isinstance(value, dict)  # of JSON: its keys are text
