"""The tools on offer in an Anthropic conversation, and how it changes them."""

from __future__ import annotations

from msgspec import Raw, UnsetType

from theodolite.core.event import Tool
from theodolite.readers.anthropic_messages import form
from theodolite.readers.conversations.conversation import Conversation

__all__ = ("changes_of", "tools_of")


def tools_of(under: Conversation, raw: Raw | UnsetType, field: str = "tools") -> list[Tool]:
    """Return the tools of a list. A set of tools counts as those that it names; where it names none, as one tool."""
    tools: list[Tool] = []
    for place, item in under.items(raw, field):
        named = under.decoded(form.NAMED, item, place)
        inside = [] if named is None else under.items(named.tools, f"{place}.tools")
        for below, declared in inside or [(place, item)]:
            tools += under.declared(declared, below) if named is not None else []
    return tools


def changes_of(under: Conversation, block: form.Block, place: str) -> bool:
    """Tell which tool is added or gone, where a block says so; whether it is such a block."""
    if block.type not in {"tool_addition", "tool_removal"}:
        return False
    change = under.decoded(form.CHANGE, block.tool, f"{place}.tool")
    if change is None:
        return True
    named = [change.name] if isinstance(change.name, str) else []
    if block.type == "tool_removal":
        under.declares((), gone=named)
    elif isinstance(change.definition, Raw):
        under.declares(under.declared(change.definition, f"{place}.tool.definition"))
    else:
        under.declares([Tool(name=name) for name in named if name not in under.offered])
    return True
