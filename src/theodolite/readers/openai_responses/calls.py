"""Tells the calls and results among the items of a Responses conversation."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping

from msgspec import UNSET, Raw, UnsetType
from msgspec.json import Decoder, Encoder

from theodolite.core.event import ApprovalGiven, Channel, Source
from theodolite.readers.conversations.arguments import Arguments
from theodolite.readers.conversations.conversation import Call, Conversation
from theodolite.readers.conversations.shown import shown
from theodolite.readers.openai_responses import form
from theodolite.readers.openai_responses.tools import BUILT_IN, OUTPUTS, UNDER_WAY, BuiltIn, tools_of

__all__ = ("Calls",)

# Requests for approval that may still be answered, like the calls whose results may still come.
_MAX_REQUESTS = 1024
# Takes an item, undecoded and decoded.
_Tell = Callable[[Raw | bytes, form.Item], None]
_BY_MODEL = frozenset({"function_call", "custom_tool_call", "mcp_call", "mcp_approval_request", *BUILT_IN})
# JSON, or an object and what is in it.
_OBJECT: Decoder[dict[str, Raw] | str | list[Raw] | bool | int | float | None] = Decoder(
    dict[str, Raw] | str | list[Raw] | bool | int | float | None
)
_ENCODER = Encoder()


class Calls:
    """Tells what was called, where, and what came back. Holds a digest of each request for approval.

    `answered`: since this was last set to false, the host or a person answered a call.
    """

    def __init__(self, under: Conversation) -> None:
        self.answered = False
        self._under = under
        self._requests: dict[str, bytes] = {}

    def of_model(self, kind: str) -> bool:
        """Whether an item of this type is a call."""
        return kind in _BY_MODEL

    def tell(self, kind: str, data: Raw | bytes, item: form.Item) -> bool:
        """Tell an item; whether it is one of these."""
        told = self._of(kind)
        if told is None:
            return False
        told(data, item)
        return True

    def _of(self, kind: str) -> _Tell | None:  # noqa: PLR0911 - one for each type
        # Looked up anew: a table of methods bound to this would keep it alive until the next collection.
        match kind:
            case "function_call":
                return self._function
            case "custom_tool_call":
                return self._custom
            case "mcp_call":
                return self._mcp
            case "mcp_approval_request":
                return self._request
            case "mcp_approval_response":
                return self._approval
            case "mcp_list_tools":
                return self._listing
            case "tool_search_output":
                return self._found_tools
            case _:
                return self._built_in if kind in BUILT_IN else self._output if kind in OUTPUTS else None

    def _call(self, item: form.Item, tool: str, *, hosted: bool = False) -> tuple[Call, str]:
        """Return a call, and the other id that its result may come under."""
        own = self._under.text(item.id, "id")
        return Call(tool, self._under.text(item.call_id, "call_id") or own, hosted), own

    def _function(self, data: Raw | bytes, item: form.Item) -> None:
        del data
        call, own = self._call(item, self._under.text(item.name, "name"))
        self._under.calls(call, self._under.arguments(item.arguments, "arguments"), also=own)

    def _custom(self, data: Raw | bytes, item: form.Item) -> None:
        del data
        call, own = self._call(item, self._under.text(item.name, "name"))
        given = Arguments({"input": self._under.text(item.input, "input")}, Channel.TOOL_CALL_STRING)
        self._under.calls(call, given, also=own)

    def _built_in(self, data: Raw | bytes, item: form.Item) -> None:
        under = self._under
        tool = BUILT_IN[item.type or ""]
        fields = under.decoded(form.FIELDS, data, "") or {}
        said, result = self._parted(fields, tool)
        hosted = tool.hosted or self._elsewhere(item)
        call, own = self._call(item, tool.tool, hosted=hosted)
        under.calls(call, under.arguments(said, tool.fields[0]), also=own)
        if tool.result:
            self._returned(call, item, result, Channel.PROVIDER_TOOL, tool.source)

    def _parted(self, fields: Mapping[str, Raw], tool: BuiltIn) -> tuple[Raw | UnsetType, Raw | UnsetType]:
        """Return what a call of a tool of the interface says, and what it returned."""
        given = {name: fields[name] for name in tool.fields if _given(fields.get(name, UNSET))}
        result = fields.get(tool.result, UNSET)
        if len(tool.fields) == 1 and tool.fields[0] in given:
            alone = self._under.decoded(_OBJECT, given[tool.fields[0]], tool.fields[0])
            if isinstance(alone, dict):
                result = alone.pop(tool.result, result)
                given = alone
        return (Raw(_ENCODER.encode(given)) if given else UNSET), result

    def _elsewhere(self, item: form.Item) -> bool:
        """Whether a call that a host could serve is served at OpenAI."""
        environment = self._under.decoded(form.ENVIRONMENT, item.environment, "environment")
        served = self._under.text(item.execution, "execution")
        return served == "server" or (environment is not None and environment.type == "container_reference")

    def _returned(self, call: Call, item: form.Item, result: Raw | UnsetType, channel: Channel, source: Source) -> None:
        """Tell what a hosted call returned, if it has: what was shown, and that there was more."""
        under = self._under
        status = under.text(item.status, "status")
        if status in UNDER_WAY:
            return
        wrong = self._error(item.error, "error")
        seen = shown(under, result, form.RESULTS, "result")
        error = status == "failed" or seen.failed or wrong is not None
        under.returns(call, wrong or seen.text, channel, source=source, error=error)
        if seen.texts and seen.hidden:
            under.returns(call, UNSET, channel, source=source, error=error)

    def _error(self, raw: Raw | UnsetType, field: str) -> str | None:
        """Return what an error says; None where there is none."""
        under = self._under
        error = under.decoded(form.ERROR, raw, field)
        if not isinstance(error, dict):
            return error
        said = under.text(error.get("message", UNSET), f"{field}.message")
        return said or "\n".join(shown(under, error.get("content", UNSET), form.RESULTS, f"{field}.content").texts)

    def _output(self, data: Raw | bytes, item: form.Item) -> None:
        del data
        under = self._under
        number = under.text(item.call_id, "call_id") or under.text(item.id, "id")
        named = under.text(item.name, "name") or OUTPUTS[item.type or ""]
        call = under.call(number, named)
        self.answered = self.answered or not call.hosted
        result = item.result if item.type == "program_output" else item.output
        seen = shown(under, result, form.RESULTS, "output")
        channel = Channel.TOOL_RESULT_PART if seen.parts else Channel.TOOL_RESULT_TEXT
        error = seen.failed or under.text(item.status, "status") == "failed"
        under.returns(call, seen.text, channel, error=error)
        if seen.texts and seen.hidden:
            under.returns(call, UNSET, channel, error=error)

    def _mcp(self, data: Raw | bytes, item: form.Item) -> None:
        del data
        under = self._under
        call, own = self._call(item, under.text(item.name, "name"), hosted=True)
        asked = under.text(item.approval_request_id, "approval_request_id")
        if asked and self._requests.get(asked) == _digest(item):
            call = under.call(asked)  # it was proposed when its approval was asked for
        else:
            under.calls(call, under.arguments(item.arguments, "arguments"), also=own)
        if isinstance(item.status, Raw) or _given(item.output) or _given(item.error):
            self._returned(call, item, item.output, Channel.MCP_RESULT, Source.TOOL)

    def _request(self, data: Raw | bytes, item: form.Item) -> None:
        del data
        call, own = self._call(item, self._under.text(item.name, "name"), hosted=True)
        self._under.calls(call, self._under.arguments(item.arguments, "arguments"))
        self._requests[own] = _digest(item)
        if len(self._requests) > _MAX_REQUESTS:
            del self._requests[next(iter(self._requests))]

    def _approval(self, data: Raw | bytes, item: form.Item) -> None:
        del data
        under = self._under
        call = under.call(under.text(item.approval_request_id, "approval_request_id"))
        self.answered = True
        if under.decoded(form.FLAG, item.approve, "approve"):
            under.put(ApprovalGiven(call=call.id, **under.at(Channel.CONTROL, Source.USER)))
        else:
            reason = under.text(item.reason, "reason")
            under.returns(call, reason or UNSET, Channel.CONTROL, source=Source.USER, error=True)

    def _listing(self, data: Raw | bytes, item: form.Item) -> None:
        del data
        under = self._under
        under.declares(tools_of(under, item.tools, "tools"), Source.TOOL)
        wrong = self._error(item.error, "error")
        if wrong is not None:
            call = Call("mcp_list_tools", under.text(item.id, "id"))
            under.returns(call, wrong, Channel.MCP_RESULT, error=True)

    def _found_tools(self, data: Raw | bytes, item: form.Item) -> None:
        del data
        under = self._under
        tools = tools_of(under, item.tools, "tools")
        under.declares(tools)
        number = under.text(item.call_id, "call_id")
        call = under.call(number, "tool_search")
        under.returns(call, "\n".join(tool.name for tool in tools), Channel.TOOL_RESULT_PART)


def _given(raw: Raw | UnsetType) -> bool:
    return isinstance(raw, Raw) and bytes(memoryview(raw)[:4]) != b"null"


def _digest(item: form.Item) -> bytes:
    """Return what tells whether two items are the same call."""
    return hashlib.sha256(
        b"%b %b" % tuple(b"" if isinstance(raw, UnsetType) else bytes(raw) for raw in (item.name, item.arguments))
    ).digest()
