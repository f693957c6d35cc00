"""What a call is as behavior: its permission class and its effect, from what the host and the operator say of the tool.

The operator's map comes first, then the host's annotations (the MCP hints), then the words of the tool's name. Names
are split into words and never searched for substrings: `list_requests` is not network, `send_money` is not a read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from msgspec import Struct

from theodolite.core.event import Tool, ToolCallProposed
from theodolite.core.intent import Effect, NormalizedIntent, Permission

__all__ = ("IntentFold", "words")

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
# Longer names are cut before they are looked at: no published tool name that we have read has more than 64 characters
# (the limit of the OpenAI and Anthropic APIs).
_NAME_LIMIT = 128

_NETWORK = frozenset(
    [
        "http",
        "https",
        "url",
        "curl",
        "wget",
        "web",
        "webpage",
        "website",
        "browser",
        "browse",
        "fetch",
        "download",
        "upload",
        "smtp",
        "ftp",
        "ssh",
        "socket",
    ]
)
_EXECUTE = frozenset(
    [
        "shell",
        "bash",
        "sh",
        "zsh",
        "powershell",
        "exec",
        "execute",
        "eval",
        "python",
        "node",
        "ruby",
        "perl",
        "run",
        "script",
        "command",
    ]
)
_WRITE = frozenset(
    [
        "write",
        "create",
        "edit",
        "delete",
        "remove",
        "patch",
        "update",
        "insert",
        "add",
        "append",
        "put",
        "post",
        "set",
        "save",
        "send",
        "reply",
        "forward",
        "pay",
        "transfer",
        "buy",
        "order",
        "book",
        "reserve",
        "cancel",
        "reschedule",
        "schedule",
        "invite",
        "share",
        "publish",
        "move",
        "mv",
        "rm",
        "cp",
        "copy",
        "rename",
        "upload",
        "grant",
        "revoke",
        "enable",
        "disable",
        "drop",
        "modify",
        "change",
        "submit",
        "approve",
        "reject",
        "merge",
        "push",
        "deploy",
        "restart",
        "stop",
        "start",
    ]
)
_READ = frozenset(
    [
        "read",
        "get",
        "list",
        "search",
        "find",
        "show",
        "view",
        "describe",
        "count",
        "check",
        "query",
        "lookup",
        "look",
        "fetch",
        "browse",
        "cat",
        "ls",
    ]
)

# Of these, the words that name no thing: "get_order" and "get_node" read one.
_PLAINLY = frozenset(
    {"write", "create", "edit", "delete", "remove", "insert", "update", "add", "append", "send", "pay", "transfer"}
    | {"cancel", "grant", "revoke", "disable", "drop", "modify", "submit", "approve", "deploy", "restart", "wipe"}
    | {"purge", "destroy", "overwrite", "replace", "exec", "execute", "eval", "shell", "bash"}
)
_VERBS = _READ | _WRITE | _EXECUTE


def words(name: str) -> tuple[str, ...]:
    """Return the words of a tool name, in lower case.

    >>> words("getHTTPResponse_v2")
    ('get', 'http', 'response', 'v', '2')
    """
    return tuple([word.lower() for word in _WORD.findall(name[:_NAME_LIMIT])])


class IntentFold(Struct, kw_only=True):
    """What is known of a session's tools, and whether it has read anything from outside. O(1) per event."""

    declared: dict[str, Effect] = {}
    after_external_read: bool = False

    def declare(self, tools: tuple[Tool, ...]) -> None:
        """Take the annotations of the tools on offer, in place of earlier ones."""
        self.declared = {tool.name: effect for tool in tools if (effect := _annotated(tool)) is not None}

    def saw_outside(self) -> None:
        """Note that text from outside has entered the context."""
        self.after_external_read = True

    def of(self, call: ToolCallProposed, operator: Mapping[str, Effect]) -> NormalizedIntent:
        """Return what a proposed call is; `operator` is the operator's map of tool names to effects."""
        permission, effect = _by_name(call.tool[:_NAME_LIMIT])
        known = operator.get(call.tool) or self.declared.get(call.tool)
        if known is Effect.WRITE and permission is Permission.READ:
            permission = Permission.WRITE
        return NormalizedIntent(
            tool=call.tool,
            permission=permission,
            effect=known or effect,
            after_external_read=self.after_external_read,
        )


def _annotated(tool: Tool) -> Effect | None:
    if tool.read_only is not None:
        return Effect.READ if tool.read_only and not tool.destructive else Effect.WRITE
    return Effect.WRITE if tool.destructive else None


# The same few tools are called over and over. 4,096 names are more than any host offers.
@lru_cache(maxsize=4096)
def _by_name(name: str) -> tuple[Permission, Effect]:
    spoken = words(name)
    found = frozenset(spoken)
    if found & _NETWORK:
        # Even a read of a page tells its server what was asked, so that it is not known only to read.
        return Permission.NETWORK, Effect.WRITE if found & _WRITE else Effect.UNKNOWN
    # The first verb decides: "get_order" and "get_node" name things, "order_book" and "node_eval" are actions.
    verb = next((word for word in spoken if word in _VERBS), None)
    if verb in _READ:
        # "list_delete" may do both, and a name is no more than its maker's word: it is not known only to read.
        return Permission.READ, Effect.UNKNOWN if found & _PLAINLY else Effect.READ
    if found & _EXECUTE:
        return Permission.EXECUTE, Effect.WRITE
    return (Permission.WRITE, Effect.WRITE) if verb else (Permission.READ, Effect.UNKNOWN)
