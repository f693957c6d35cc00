"""The form of Anthropic messages, as far as it is read: https://platform.claude.com/docs/en/api/messages.

What may be wrong by itself stays undecoded (`Raw`) here, so that it can be reported by itself.
"""

from __future__ import annotations

from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.json import Decoder

from theodolite.readers.conversations.shown import Kinds

__all__ = (
    "ANSWER",
    "BLOCK",
    "CHANGE",
    "CITATIONS",
    "CONTENT",
    "DETAILS",
    "INNER",
    "MESSAGE",
    "NAMED",
    "RECORD",
    "RESULTS",
    "USAGE",
    "Block",
    "Change",
    "Details",
    "Message",
    "Named",
    "Record",
    "Usage",
)


class Record(Struct, frozen=True):
    """A request, or what a host kept of it; `request` and `response` where it kept both; or a response alone."""

    messages: Raw | UnsetType = UNSET
    system: Raw | UnsetType = UNSET
    tools: Raw | UnsetType = UNSET
    model: Raw | UnsetType = UNSET
    temperature: Raw | UnsetType = UNSET
    top_p: Raw | UnsetType = UNSET
    id: Raw | UnsetType = UNSET
    session_id: Raw | UnsetType = UNSET
    request: Raw | UnsetType = UNSET
    response: Raw | UnsetType = UNSET
    role: Raw | UnsetType = UNSET
    content: Raw | UnsetType = UNSET


class Message(Struct, frozen=True):
    """A message of any role; a response is one, with more beside it."""

    role: str
    content: Raw | UnsetType = UNSET
    model: Raw | UnsetType = UNSET
    usage: Raw | UnsetType = UNSET
    stop_reason: Raw | UnsetType = UNSET
    stop_details: Raw | UnsetType = UNSET


class Usage(Struct, frozen=True):
    """What a response used, in tokens; those of the input are the sum of three."""

    input_tokens: Raw | UnsetType = UNSET
    cache_creation_input_tokens: Raw | UnsetType = UNSET
    cache_read_input_tokens: Raw | UnsetType = UNSET
    output_tokens: Raw | UnsetType = UNSET


class Details(Struct, frozen=True):
    """Why a model refused."""

    explanation: str | None = None


class Block(Struct, frozen=True):
    """A content block of any type."""

    type: str
    text: Raw | UnsetType = UNSET
    citations: Raw | UnsetType = UNSET
    thinking: Raw | UnsetType = UNSET
    id: Raw | UnsetType = UNSET
    name: Raw | UnsetType = UNSET
    input: Raw | UnsetType = UNSET
    tool_use_id: Raw | UnsetType = UNSET
    content: Raw | UnsetType = UNSET
    is_error: bool | None = None
    to: Raw | UnsetType = UNSET
    tool: Raw | UnsetType = UNSET
    tools: Raw | UnsetType = UNSET
    tool_changes: Raw | UnsetType = UNSET


class Change(Struct, frozen=True):
    """The tool that becomes available, or is gone: by its name, or with its definition."""

    name: str | UnsetType = UNSET
    definition: Raw | UnsetType = UNSET


class Named(Struct, frozen=True):
    """A tool by its name, a model, or a set of tools that a server lists."""

    name: Raw | UnsetType = UNSET
    model: Raw | UnsetType = UNSET
    tools: Raw | UnsetType = UNSET


RECORD = Decoder(Record)
INNER: Decoder[Record | None] = Decoder(Record | None)
ANSWER: Decoder[Message | None] = Decoder(Message | None)
MESSAGE = Decoder(Message)
USAGE: Decoder[Usage | None] = Decoder(Usage | None)
DETAILS: Decoder[Details | None] = Decoder(Details | None)
CONTENT: Decoder[str | list[Raw] | None] = Decoder(str | list[Raw] | None)
BLOCK = Decoder(Block)
CHANGE = Decoder(Change)
NAMED = Decoder(Named)

_ERRORS = (
    "web_search_tool_result_error",
    "web_fetch_tool_result_error",
    "code_execution_tool_result_error",
    "bash_code_execution_tool_result_error",
    "text_editor_code_execution_tool_result_error",
    "tool_search_tool_result_error",
    "advisor_tool_result_error",
)
# The types that results are made of: blocks, and the results of the tools that run at Anthropic.
RESULTS = Kinds(
    shows={
        "text": ("text", "data"),
        "image": (),
        "document": ("title", "context", "source"),
        "base64": (),
        "url": ("url",),
        "file": (),
        "content": ("content",),
        "search_result": ("title", "source", "content"),
        "tool_reference": ("tool_name",),
        "container_upload": (),
        "browser_state": ("tabs", "state_changes"),
        "": ("title", "url"),  # of a tab
        "tab_opened": (),
        "download_started": ("url",),
        "download_completed": ("url", "path"),
        "download_failed": ("url", "error"),
        "web_search_result": ("title", "url"),
        "web_fetch_result": ("url", "content"),
        "code_execution_result": ("stdout", "stderr", "content"),
        "encrypted_code_execution_result": ("stderr", "content"),
        "code_execution_output": (),
        "bash_code_execution_result": ("stdout", "stderr", "content"),
        "bash_code_execution_output": (),
        "text_editor_code_execution_view_result": ("content",),
        "text_editor_code_execution_create_result": (),
        "text_editor_code_execution_str_replace_result": ("lines",),
        "tool_search_tool_search_result": ("tool_references",),
        "advisor_result": ("text",),
        "advisor_redacted_result": (),
        **dict.fromkeys(_ERRORS, ("error_code", "error_message")),
    },
    hides=frozenset(
        {
            *(
                "image",
                "container_upload",
                "base64",
                "url",
                "file",
                "web_search_result",
                "encrypted_code_execution_result",
            ),
            *("code_execution_output", "bash_code_execution_output", "advisor_redacted_result"),
        }
    ),
    fails={
        **dict.fromkeys(_ERRORS, ""),
        **dict.fromkeys(
            ("code_execution_result", "bash_code_execution_result", "encrypted_code_execution_result"), "return_code"
        ),
    },
)
_CITED = (
    *("char_location", "page_location", "content_block_location"),
    *("web_search_result_location", "search_result_location"),
)
CITATIONS = Kinds(shows=dict.fromkeys(_CITED, ("cited_text", "title", "document_title", "url", "source")))
