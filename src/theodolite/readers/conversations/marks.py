"""What the beginning of a recording shows of its form: the keys and types that only one form of messages has."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import product

from theodolite.core.lines import content

__all__ = ("marks", "outline")

_TOKEN = re.compile(rb'"((?:[^"\\]++|\\.)*+)("?)|[{}\[\]:,]', re.DOTALL)
# Keys whose words tell what an object is; the deepest of them, request.input.content.type, stands four keys deep.
_TELLING = frozenset({"type", "role", "object"})
_DEPTH = 4

# Where messages, or items, and the blocks in them may stand. `[]` is a list at the top.
_TOPS = ("", "[].")
_MESSAGES = [f"{top}{place}" for top, place in product(_TOPS, ("", "messages.", "request.messages."))]
_ITEMS = [
    f"{top}{place}" for top, place in product(_TOPS, ("", "input.", "output.", "request.input.", "response.output."))
]
_RECORDS = [f"{top}{place}" for top, place in product(_TOPS, ("", "request."))]

_CHAT_KEYS = ("tool_calls", "tool_call_id", "function_call", "role=tool", "role=function")
_CHAT_PARTS = ("image_url", "input_audio", "file")
_ANTHROPIC_BLOCKS = (
    *("tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document", "search_result"),
    *("server_tool_use", "mcp_tool_use", "mcp_tool_result", "web_search_tool_result", "web_fetch_tool_result"),
    *("code_execution_tool_result", "bash_code_execution_tool_result", "text_editor_code_execution_tool_result"),
    *("tool_search_tool_result", "advisor_tool_result", "container_upload", "compaction", "mcp_tool_listing"),
)
_RESPONSES_ITEMS = (
    *("function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output", "reasoning"),
    *("web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "computer_call"),
    *("computer_call_output", "local_shell_call", "local_shell_call_output", "shell_call", "shell_call_output"),
    *("apply_patch_call", "apply_patch_call_output", "mcp_call", "mcp_list_tools", "mcp_approval_request"),
    *("mcp_approval_response", "tool_search_call", "tool_search_output", "additional_tools", "item_reference"),
)
_RESPONSES_PARTS = ("input_text", "output_text", "input_image", "input_file")
_RESPONSES = "openai-responses"
# Records of a benchmark, whose messages look like those of other forms: what names the record goes before them.
_RUNS = "agentdojo-runs"


def _paths(places: Iterable[str], ends: Iterable[str]) -> frozenset[str]:
    return frozenset([f"{place}{end}" for place, end in product(places, ends)])


# One of these is enough.
_MARKS = {
    "openai-chat": _paths(_MESSAGES, [*_CHAT_KEYS, *(f"content.type={part}" for part in _CHAT_PARTS)])
    | _paths(_RECORDS, ("tools.function", "functions")),
    "anthropic-messages": _paths(_MESSAGES, [f"content.type={block}" for block in _ANTHROPIC_BLOCKS])
    | _paths(("", "[].", "response.", "[].response."), ("stop_reason",))
    | _paths(_RECORDS, ("tools.input_schema",)),
    _RESPONSES: _paths(_ITEMS, [f"type={item}" for item in _RESPONSES_ITEMS])
    | _paths(_ITEMS, [f"content.type={part}" for part in _RESPONSES_PARTS])
    | _paths(("", "[].", "response.", "[].response."), ("object=response",)),
}
# Of these, all of one row.
_TOGETHER = [
    *(("anthropic-messages", {f"{place}messages", f"{place}system"}) for place in _RECORDS),
    *((_RESPONSES, {f"{place}input", f"{place}model"}) for place in _RECORDS),
    *((_RESPONSES, {f"{place}input", f"{place}instructions"}) for place in _RECORDS),
    *((_RUNS, {f"{top}{key}" for key in ("suite_name", "pipeline_name", "user_task_id")}) for top in _TOPS),
]


@lru_cache(maxsize=1)  # each reader asks for the same head
def marks(head: bytes) -> frozenset[str]:
    """Return the names of the forms of messages that a beginning shows marks of: none, one, or, mixed, several.

    A list of messages with a role and a text each has none: such messages are the same in several forms.

    >>> sorted(marks(b'[{"role": "user", "content": [{"type": "tool_result"'))
    ['anthropic-messages']
    """
    seen = outline(head)
    found = {form for form, paths in _MARKS.items() if not paths.isdisjoint(seen)}
    found.update([form for form, paths in _TOGETHER if paths <= seen])
    return frozenset([_RUNS]) if _RUNS in found else frozenset(found)


def outline(head: bytes) -> frozenset[str]:
    """Return the paths of the keys that a beginning shows, up to four deep, through lists; after `=`, what they say.

    >>> sorted(outline(b'[{"role": "user", "content": [{"type": "text", "te'))
    ['[].content', '[].content.type', '[].content.type=text', '[].role', '[].role=user']
    """
    walk = _Walk()
    for token in _TOKEN.finditer(content(head)):
        mark = token[0]
        if not mark.startswith(b'"'):
            walk.mark(mark)
        elif token[2]:
            walk.text(token[1])
    return frozenset(walk.seen)


class _Walk:
    """Where in the nesting the walk stands. A place beyond the depth has no path."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self._above: list[str | None] = []
        self._place: str | None = ""
        self._last = b""
        self._path: str | None = None  # of the key whose value comes next
        self._named = False

    def text(self, data: bytes) -> None:
        """Take a string: a key, or the value of one."""
        path = self._path
        if path is not None and path.rpartition(".")[2] in _TELLING:
            self.seen.add(f"{path}={data.decode(errors='replace')}")
        self._last = data

    def mark(self, mark: bytes) -> None:
        """Take a bracket, colon or comma."""
        if mark == b":":
            self._path = self._below(self._last.decode(errors="replace"))
            self._named = True
            if self._path is not None:
                self.seen.add(self._path)
        elif mark == b",":
            self._path, self._named = None, False
        elif mark in b"{[":
            self._open(mark)
        else:
            self._place = self._above.pop() if self._above else ""
            self._path, self._named = None, False

    def _open(self, mark: bytes) -> None:
        top = not self._above and mark == b"["
        self._above.append(self._place)
        if self._named:
            self._place = self._path
        elif top:
            self._place = "[]"
        self._path, self._named = None, False

    def _below(self, key: str) -> str | None:
        place = self._place
        if place is None or place.removeprefix("[].").count(".") >= _DEPTH - 1:
            return None
        return f"{place}.{key}" if place else key
