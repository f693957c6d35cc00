"""The tools that a Responses conversation has: those on offer, and those of the interface itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Raw, UnsetType

from theodolite.core.event import Source, Tool
from theodolite.readers.conversations.conversation import Conversation
from theodolite.readers.openai_responses import form

__all__ = ("BUILT_IN", "OUTPUTS", "UNDER_WAY", "BuiltIn", "tools_of")


class BuiltIn(NamedTuple):
    """A tool of the interface itself, by the type of its calls.

    `fields` of the item are what the call says; where there is one alone and it is an object, that object is. `hosted`:
    it runs at OpenAI. Then `result` is the field of the item, or of that object, with what came back; the host has to
    ask for it. Without a `result` it comes in an item of its own.
    """

    tool: str
    fields: tuple[str, ...]
    hosted: bool = False
    result: str = ""
    source: Source = Source.TOOL


BUILT_IN: Mapping[str, BuiltIn] = {
    # What was found on the web was written outside.
    "web_search_call": BuiltIn("web_search", ("action",), hosted=True, result="sources", source=Source.EXTERNAL),
    "file_search_call": BuiltIn("file_search", ("queries",), hosted=True, result="results"),
    "code_interpreter_call": BuiltIn("code_interpreter", ("code",), hosted=True, result="outputs"),
    # What comes back is an image, as text: nothing of it can be seen here.
    "image_generation_call": BuiltIn("image_generation", ("revised_prompt",), hosted=True, result="unseen"),
    "program": BuiltIn("program", ("code",), hosted=True),
    "computer_call": BuiltIn("computer", ("action", "actions")),
    "local_shell_call": BuiltIn("local_shell", ("action",)),
    "shell_call": BuiltIn("shell", ("action",)),
    "apply_patch_call": BuiltIn("apply_patch", ("operation",)),
    "tool_search_call": BuiltIn("tool_search", ("arguments",)),
}
# Items that hold the result of a call before them, and the tool where that call is not known.
OUTPUTS: Mapping[str, str] = {
    "function_call_output": "",
    "custom_tool_call_output": "",
    "computer_call_output": "computer",
    "local_shell_call_output": "local_shell",
    "shell_call_output": "shell",
    "apply_patch_call_output": "apply_patch",
    "program_output": "program",
}
# While its status is one of these, a hosted call has no result yet.
UNDER_WAY = frozenset({"calling", "generating", "in_progress", "interpreting", "searching"})


def tools_of(under: Conversation, raw: Raw | UnsetType, field: str) -> list[Tool]:
    """Return the tools of a list. A namespace counts as the tools in it; a tool of the interface goes by its type."""
    tools: list[Tool] = []
    for place, item in under.items(raw, field):
        entry = under.decoded(form.TOOLSET, item, place)
        inside = [] if entry is None else under.items(entry.tools, f"{place}.tools")
        for below, declared in inside or [(place, item)]:
            tools += [] if entry is None else under.declared(declared, below)
    return tools
