"""The form of Responses items, as far as it is read: https://platform.openai.com/docs/api-reference/responses.

What may be wrong by itself stays undecoded (`Raw`) here, so that it can be reported by itself.
"""

from __future__ import annotations

from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.json import Decoder

from theodolite.readers.conversations.shown import Kinds

__all__ = (
    "CITATIONS",
    "ENVIRONMENT",
    "ERROR",
    "FIELDS",
    "FLAG",
    "INCOMPLETE",
    "INNER",
    "INPUT",
    "ITEM",
    "RECORD",
    "RESULTS",
    "TOOLSET",
    "USAGE",
    "Environment",
    "Incomplete",
    "Item",
    "Record",
    "Toolset",
    "Usage",
)


class Record(Struct, frozen=True):
    """A request, a response, or what a host kept of one; `request` and `response` where it kept both.

    None of them has a `type`, and items have.
    """

    input: Raw | UnsetType = UNSET
    output: Raw | UnsetType = UNSET
    instructions: Raw | UnsetType = UNSET
    tools: Raw | UnsetType = UNSET
    model: Raw | UnsetType = UNSET
    temperature: Raw | UnsetType = UNSET
    top_p: Raw | UnsetType = UNSET
    usage: Raw | UnsetType = UNSET
    status: Raw | UnsetType = UNSET
    incomplete_details: Raw | UnsetType = UNSET
    previous_response_id: Raw | UnsetType = UNSET
    conversation: Raw | UnsetType = UNSET
    prompt: Raw | UnsetType = UNSET
    id: Raw | UnsetType = UNSET
    session_id: Raw | UnsetType = UNSET
    request: Raw | UnsetType = UNSET
    response: Raw | UnsetType = UNSET
    type: Raw | UnsetType = UNSET


class Usage(Struct, frozen=True):
    """What a response used, in tokens."""

    input_tokens: Raw | UnsetType = UNSET
    output_tokens: Raw | UnsetType = UNSET


class Item(Struct, frozen=True):
    """An item of any type; a message and a reference may leave it out."""

    type: str | None = None
    role: Raw | UnsetType = UNSET
    content: Raw | UnsetType = UNSET
    id: Raw | UnsetType = UNSET
    call_id: Raw | UnsetType = UNSET
    name: Raw | UnsetType = UNSET
    arguments: Raw | UnsetType = UNSET
    input: Raw | UnsetType = UNSET
    output: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    status: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET
    summary: Raw | UnsetType = UNSET
    tools: Raw | UnsetType = UNSET
    environment: Raw | UnsetType = UNSET
    execution: Raw | UnsetType = UNSET
    approval_request_id: Raw | UnsetType = UNSET
    approve: Raw | UnsetType = UNSET
    reason: Raw | UnsetType = UNSET


class Environment(Struct, frozen=True):
    """Where a command runs."""

    type: str = ""


class Incomplete(Struct, frozen=True):
    """Why a response is not complete."""

    reason: str = ""


class Toolset(Struct, frozen=True):
    """A tool, or tools in a namespace."""

    tools: Raw | UnsetType = UNSET


RECORD = Decoder(Record)
INNER: Decoder[Record | None] = Decoder(Record | None)
FLAG: Decoder[bool | None] = Decoder(bool | None)
INPUT: Decoder[str | list[Raw] | None] = Decoder(str | list[Raw] | None)
USAGE: Decoder[Usage | None] = Decoder(Usage | None)
INCOMPLETE: Decoder[Incomplete | None] = Decoder(Incomplete | None)
ITEM = Decoder(Item)
FIELDS = Decoder(dict[str, Raw])
ERROR: Decoder[str | dict[str, Raw] | None] = Decoder(str | dict[str, Raw] | None)
ENVIRONMENT: Decoder[Environment | None] = Decoder(Environment | None)
TOOLSET = Decoder(Toolset)

# The types that results are made of: parts of outputs, and the results of the tools that run at OpenAI.
RESULTS = Kinds(
    shows={
        "input_text": ("text",),
        "output_text": ("text",),
        "text": ("text",),
        "input_image": (),
        "input_file": (),
        "computer_screenshot": (),
        "url": ("url",),  # of a page that a search found
        "logs": ("logs",),
        "image": (),
        "": ("filename", "text", "stdout", "stderr", "outcome"),  # of a file that was found, of a command that ran
        "exit": (),
        "timeout": (),
        "summary_text": ("text",),
        "reasoning_text": ("text",),
    },
    hides=frozenset({"input_image", "input_file", "computer_screenshot", "url", "image"}),
    fails={"exit": "exit_code", "timeout": ""},
)
CITATIONS = Kinds(
    shows={
        "file_citation": ("filename",),
        "url_citation": ("title", "url"),
        "container_file_citation": ("filename",),
        "file_path": (),
    }
)
