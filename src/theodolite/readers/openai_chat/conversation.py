"""Folds the messages of one conversation into events."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Literal, NamedTuple, TypedDict, TypeVar

from msgspec import UNSET, Raw, UnsetType
from msgspec.json import Decoder

from theodolite.core.arguments import freeze
from theodolite.core.errors import EventError
from theodolite.core.event import (
    Channel,
    GoalStated,
    MessageObserved,
    ModelCalled,
    SessionEnded,
    Source,
    SystemPromptSet,
    Tool,
    ToolCallProposed,
    ToolResultObserved,
    ToolsDeclared,
    TurnEnded,
)
from theodolite.core.lines import decode
from theodolite.core.reader import Recorded, Unreadable
from theodolite.readers.openai_chat import form

__all__ = ("Conversation",)

# Calls whose results may still come. The API takes at most 128 tools a request and wants the results next.
_MAX_CALLS = 1024
_ATTACHED = {"image_url": Channel.USER_IMAGE, "input_audio": Channel.USER_AUDIO, "file": Channel.USER_FILE}
# Kinds of parts that hosts of other interfaces record; any other word of a recording is not repeated in a message.
_FOREIGN = frozenset(
    {
        *_ATTACHED,
        "document",
        "image",
        "input_file",
        "input_image",
        "input_text",
        "output_text",
        "reasoning",
        "redacted_thinking",
        "server_tool_use",
        "thinking",
        "tool_result",
        "tool_use",
    }
)
_TEXT_ONLY: Mapping[str, Channel] = {}

_T = TypeVar("_T")


class _Place(TypedDict):
    session: str
    turn: int
    channel: Channel
    source: Source


class _Content(NamedTuple):
    text: str | UnsetType = UNSET
    parts: bool = False
    refusals: tuple[str, ...] = ()
    attached: tuple[Channel, ...] = ()


class Conversation:
    """One session under way. Turns count assistant messages from 0; a turn ends before the next one or the next user's.

    Holds the names of the calls whose results may still come, and no message.
    """

    def __init__(self, session: str, file: str) -> None:
        self.session = session
        self._file = file
        self._turn = 0
        self._spoken = False
        self._goal = False
        self._names: dict[str, str] = {}
        self._count = 0
        self._line = 0
        self._place = ""
        self._found: list[Recorded] = []

    def begin(self, record: form.Record, line: int) -> list[Recorded]:
        """Return what stands beside the messages: the tools on offer and the model."""
        self._line, self._place = line, ""
        tools = (*self._tools(record.tools), *self._functions(record.functions))
        if tools:
            self._found.append(ToolsDeclared(tools=tools, **self._at(Channel.TOOL_DEFINITION, Source.SYSTEM)))
        model = self._decoded(form.TEXT, record.model, "model")
        temperature = self._decoded(form.NUMBER, record.temperature, "temperature")
        top_p = self._decoded(form.NUMBER, record.top_p, "top_p")
        if model:
            called = ModelCalled(
                model=model,
                temperature=UNSET if temperature is None else temperature,
                top_p=UNSET if top_p is None else top_p,
                **self._at(Channel.CONTROL, Source.SYSTEM),
            )
            self._found.append(called)
        return self._taken()

    def message(self, data: bytes | Raw, line: int) -> list[Recorded]:
        """Return the events of the next message."""
        self._line, self._place = line, f"messages[{self._count}]"
        self._count += 1
        message = self._decoded(form.MESSAGE, data, "")
        if message is None:
            return self._taken()
        if message.role in {"system", "developer"}:
            self._system(message)
        elif message.role == "user":
            self._user(message)
        elif message.role == "assistant":
            self._assistant(message)
        elif message.role in {"tool", "function"}:
            self._result(message)
        else:
            self._fault("role", "not one of system, developer, user, assistant, tool, function")
        return self._taken()

    def end(self) -> list[Recorded]:
        """Return the end of the session."""
        self._end_turn()
        self._found.append(SessionEnded(**self._at(Channel.CONTROL, Source.SYSTEM)))
        return self._taken()

    def _taken(self) -> list[Recorded]:
        found, self._found = self._found, []
        return found

    def _at(self, channel: Channel, source: Source) -> _Place:
        return {"session": self.session, "turn": self._turn, "channel": channel, "source": source}

    def _fault(self, field: str, reason: str) -> None:
        place = ".".join(filter(None, (self._place, field)))
        self._found.append(
            Unreadable(file=self._file, line=self._line, reason=f"{place}: {reason}", session=self.session)
        )

    def _decoded(self, decoder: Decoder[_T], data: bytes | Raw | UnsetType, field: str) -> _T | None:
        """Return a value, or None where it is absent or, which is reported, of the wrong form."""
        if isinstance(data, UnsetType):
            return None
        try:
            return decode(decoder, data)
        except EventError as error:
            self._fault(field, str(error))
            return None

    def _items(self, data: Raw | UnsetType, field: str) -> list[Raw]:
        items = self._decoded(form.ITEMS, data, field)
        return [] if items is None else items

    def _end_turn(self) -> None:
        if self._spoken:
            self._found.append(TurnEnded(**self._at(Channel.CONTROL, Source.SYSTEM)))
            self._turn += 1
            self._spoken = False

    def _content(self, raw: Raw | UnsetType, attached: Mapping[str, Channel] = _TEXT_ONLY) -> _Content:
        value = self._decoded(form.CONTENT, raw, "content")
        if value is None or isinstance(value, str):
            return _Content(UNSET if value is None else value)
        texts: list[str] = []
        refusals: list[str] = []
        channels: list[Channel] = []
        for index, item in enumerate(value):
            part = self._decoded(form.PART, item, f"content[{index}]")
            if part is None:
                continue
            if part.type == "text" and isinstance(part.text, str):
                texts.append(part.text)
            elif part.type == "refusal" and isinstance(part.refusal, str):
                refusals.append(part.refusal)
            elif part.type in attached:
                channels.append(attached[part.type])
            else:
                kind = f"the kind {part.type}, which" if part.type in _FOREIGN else "a kind that"
                self._fault(f"content[{index}]", f"a part of {kind} is not read here")
        return _Content(
            text="\n".join(texts) if texts else UNSET,
            parts=True,
            refusals=tuple(refusals),
            attached=tuple(channels),
        )

    def _system(self, message: form.Message) -> None:
        text = self._content(message.content).text
        if isinstance(text, UnsetType):
            self._fault("content", "a system prompt without text")
            return
        place = self._at(Channel.SYSTEM_TEXT, Source.SYSTEM)
        digest = hashlib.sha256(text.encode()).hexdigest()
        self._found.append(SystemPromptSet(prompt_hash=digest, length=len(text), **place))

    def _user(self, message: form.Message) -> None:
        self._end_turn()
        content = self._content(message.content, _ATTACHED)
        channel = Channel.USER_PART if content.parts else Channel.USER_TEXT
        if content.text and not self._goal:
            self._goal = True
            self._found.append(GoalStated(text=content.text, **self._at(channel, Source.USER)))
        if content.text is not UNSET or not content.attached:
            self._say("user", content.text, channel)
        for kind in content.attached:
            self._say("user", UNSET, kind)

    def _assistant(self, message: form.Message) -> None:
        self._end_turn()
        self._spoken = True
        content = self._content(message.content)
        if content.text:
            self._say("assistant", content.text, Channel.ASSISTANT_PART if content.parts else Channel.ASSISTANT_TEXT)
        refusal = self._decoded(form.TEXT, message.refusal, "refusal")
        for text in filter(None, (*content.refusals, refusal)):
            self._say("assistant", text, Channel.REFUSAL)
        for index, item in enumerate(self._items(message.tool_calls, "tool_calls")):
            self._tool_call(item, f"tool_calls[{index}]")
        function = self._decoded(form.FUNCTION, message.function_call, "function_call")
        if function is not None:
            self._call(function, "", "function_call", Channel.FUNCTION_CALL)

    def _say(self, role: Literal["user", "assistant"], text: str | UnsetType, channel: Channel) -> None:
        source = Source.USER if role == "user" else Source.MODEL
        self._found.append(MessageObserved(role=role, text=text, **self._at(channel, source)))

    def _tool_call(self, item: Raw, place: str) -> None:
        call = self._decoded(form.CALL, item, place)
        if call is None:
            return
        if isinstance(call.function, form.Function):
            self._call(call.function, call.id or "", f"{place}.function")
        elif isinstance(call.custom, form.Function):
            self._call(call.custom, call.id or "", f"{place}.custom")
        else:
            self._fault(place, "neither a function nor a custom tool")

    def _call(self, function: form.Function, call: str, field: str, channel: Channel | None = None) -> None:
        arguments, came, fault = form.arguments_of(function)
        place = self._at(channel or came, Source.MODEL)
        self._found.append(ToolCallProposed(tool=function.name, arguments=arguments, call=call, **place))
        if fault:
            self._fault(f"{field}.arguments", f"{fault}; the call is kept without them")
        if call:
            self._names[call] = function.name
            if len(self._names) > _MAX_CALLS:
                del self._names[next(iter(self._names))]

    def _result(self, message: form.Message) -> None:
        content = self._content(message.content)
        call = self._decoded(form.TEXT, message.tool_call_id, "tool_call_id") or ""
        name = self._decoded(form.TEXT, message.name, "name") or ""
        place = self._at(Channel.TOOL_RESULT_PART if content.parts else Channel.TOOL_RESULT_TEXT, Source.TOOL)
        tool = self._names.get(call, name)
        self._found.append(ToolResultObserved(tool=tool, text=content.text, call=call, **place))

    def _tools(self, raw: Raw | UnsetType) -> list[Tool]:
        tools: list[Tool] = []
        for index, item in enumerate(self._items(raw, "tools")):
            place = f"tools[{index}]"
            declared = self._decoded(form.DECLARED, item, place)
            if declared is None:
                continue
            tool = declared.function or declared.custom
            if isinstance(tool, UnsetType):
                self._fault(place, "neither a function nor a custom tool")
            else:
                tools.append(self._tool(tool, place))
        return tools

    def _functions(self, raw: Raw | UnsetType) -> list[Tool]:
        items = enumerate(self._items(raw, "functions"))
        found = [(f"functions[{index}]", item) for index, item in items]
        read = [(self._decoded(form.DECLARATION, item, place), place) for place, item in found]
        return [self._tool(tool, place) for tool, place in read if tool is not None]

    def _tool(self, tool: form.Declaration, place: str) -> Tool:
        parameters, foreign = (UNSET, ()) if tool.parameters is None else freeze(tool.parameters)
        if foreign:
            self._fault(f"{place}.parameters", "nested too deeply to be read")
        return Tool(name=tool.name, description=tool.description or "", parameters=UNSET if foreign else parameters)
