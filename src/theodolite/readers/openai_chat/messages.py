"""Tells the messages of one Chat Completions conversation."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Raw, UnsetType

from theodolite.core.event import Channel, Tool
from theodolite.readers.conversations.arguments import Arguments
from theodolite.readers.conversations.content import Parts, content_of
from theodolite.readers.conversations.conversation import Call, Conversation, Declaration, Sampling
from theodolite.readers.openai_chat import form

__all__ = ("Messages",)

_ATTACHED = {"image_url": Channel.USER_IMAGE, "input_audio": Channel.USER_AUDIO, "file": Channel.USER_FILE}
_USER = Parts({"text"}, _ATTACHED)
_OTHERS = Parts({"text"}, {})


class Messages:
    """Tells messages in order, and what stands beside them first."""

    def __init__(self, under: Conversation) -> None:
        self._under = under
        self._count = 0

    def record(self, record: form.Record, line: int) -> Iterator[None]:
        """Tell the tools on offer and the model, then each message."""
        under = self._under
        under.stand(line, "")
        under.declares([*self._tools(record.tools), *self._functions(record.functions)])
        under.called(Sampling(record.model, record.temperature, record.top_p))
        yield
        for _, message in under.items(record.messages, "messages"):
            self.message(message, line)
            yield

    def message(self, data: bytes | Raw, line: int) -> None:
        """Tell the next message."""
        under = self._under
        under.stand(line, f"messages[{self._count}]")
        self._count += 1
        message = under.decoded(form.MESSAGE, data, "")
        if message is None:
            return
        if message.role in {"system", "developer"}:
            under.system(content_of(under, message.content, _OTHERS).text, "content")
        elif message.role == "user":
            self._user(message)
        elif message.role == "assistant":
            self._assistant(message)
        elif message.role in {"tool", "function"}:
            self._result(message)
        else:
            under.fault("role", "not one of system, developer, user, assistant, tool, function")

    def end(self) -> None:
        """Tell the end of the session."""
        self._under.end()

    def _user(self, message: form.Message) -> None:
        content = content_of(self._under, message.content, _USER)
        channel = Channel.USER_PART if content.parts else Channel.USER_TEXT
        self._under.asks(content.text, channel, content.attached)

    def _assistant(self, message: form.Message) -> None:
        under = self._under
        under.end_turn()
        under.spoken = True
        content = content_of(under, message.content, _OTHERS)
        if content.text:
            channel = Channel.ASSISTANT_PART if content.parts else Channel.ASSISTANT_TEXT
            under.says("assistant", content.text, channel)
        refusal = under.text(message.refusal, "refusal")
        for text in filter(None, (*content.refusals, refusal)):
            under.says("assistant", text, Channel.REFUSAL)
        for place, item in under.items(message.tool_calls, "tool_calls"):
            self._tool_call(item, place)
        function = under.decoded(form.FUNCTION, message.function_call, "function_call")
        if function is not None:
            self._call(function, "", "function_call", Channel.FUNCTION_CALL)

    def _tool_call(self, item: Raw, place: str) -> None:
        call = self._under.decoded(form.CALL, item, place)
        if call is None:
            return
        if isinstance(call.function, form.Function):
            self._call(call.function, call.id or "", f"{place}.function")
        elif isinstance(call.custom, form.Function):
            self._call(call.custom, call.id or "", f"{place}.custom")
        else:
            self._under.fault(place, "neither a function nor a custom tool")

    def _call(self, function: form.Function, number: str, field: str, channel: Channel | None = None) -> None:
        if isinstance(function.input, str):
            given = Arguments({"input": function.input}, Channel.TOOL_CALL_STRING)
        else:
            given = self._under.arguments(function.arguments, f"{field}.arguments")
        self._under.calls(Call(function.name, number), given, channel=channel)

    def _result(self, message: form.Message) -> None:
        under = self._under
        content = content_of(under, message.content, _OTHERS)
        number = under.text(message.tool_call_id, "tool_call_id")
        name = under.text(message.name, "name")
        channel = Channel.TOOL_RESULT_PART if content.parts else Channel.TOOL_RESULT_TEXT
        under.returns(under.call(number, name), content.text, channel)

    def _tools(self, raw: Raw | UnsetType) -> Iterator[Tool]:
        for place, item in self._under.items(raw, "tools"):
            entry = self._under.decoded(form.DECLARED, item, place)
            if entry is None:
                continue
            tool = entry.function or entry.custom
            if isinstance(tool, Declaration):
                yield from self._under.tool(tool, place)
            else:
                self._under.fault(place, "neither a function nor a custom tool")

    def _functions(self, raw: Raw | UnsetType) -> Iterator[Tool]:
        for place, item in self._under.items(raw, "functions"):
            yield from self._under.declared(item, place)
