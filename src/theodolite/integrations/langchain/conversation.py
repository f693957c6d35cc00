"""One thread of LangChain messages, told event by event, with the same events that our readers make of a recording."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from threading import Lock

from langchain.agents.middleware import ModelRequest
from langchain.agents.middleware.types import ContextT
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
)
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from msgspec import UNSET, Raw, UnsetType

from theodolite.core.arguments import freeze, is_mapping
from theodolite.core.event import (
    AnyHostEvent,
    Channel,
    ContextCompacted,
    GoalStated,
    MessageObserved,
    ModelCalled,
    Source,
    SystemPromptSet,
    Tool,
    ToolCallProposed,
    ToolResultObserved,
    ToolsDeclared,
    TurnEnded,
)
from theodolite.core.policy import Decision
from theodolite.integrations.langchain.content import content_of

__all__ = ("Conversation", "proposed")

_Key = tuple[int, int]  # the hash of a message, and how many equal ones stand before it


class Conversation:
    """What of one thread was told, and what was decided about the calls of its newest answer.

    Makes events and observes none. A message is known again by what it says, not by its id: hosts without a
    checkpointer send the whole conversation with each run, under new ids. `wrote` is who writes the messages that begin
    a run. `lost` says that a message could not be told, `found` are decisions that nobody was told of yet. Whoever uses
    it holds `lock`.

    State: a hash for each message of the thread, and the names of the newest calls; no object of the host.
    """

    def __init__(self, wrote: Source = Source.USER) -> None:
        self.lock = Lock()
        self.lost = False
        self.found: list[Decision] = []
        self._wrote = wrote
        self._begins = True
        self._spoken = False
        self._goal = False
        self._told: set[_Key] = set()
        self._names: dict[str, str] = {}
        self._decided: dict[tuple[str, str, bytes], Decision] = {}
        self._tools: tuple[Tool, ...] = ()
        self._model: ModelCalled | None = None
        self._prompt: SystemPromptSet | None = None

    def begin(self) -> None:
        """Say that a run begins: messages that are in its input come from whoever writes them."""
        self._begins = True

    def go_on(self) -> None:
        """Say that the model is asked: what code adds as a user's message from here on, no user wrote."""
        self._begins = False

    def fresh(self, messages: Iterable[BaseMessage]) -> list[tuple[_Key, BaseMessage]]:
        """Return the messages that were not told, in order. Those that are gone are forgotten. O(messages)."""
        count: Counter[int] = Counter()
        keyed: dict[_Key, BaseMessage] = {}
        for message in messages:
            digest = _digest(message)
            keyed[digest, count[digest]] = message
            count[digest] += 1
        self._told.intersection_update(keyed)
        return [(key, message) for key, message in keyed.items() if key not in self._told]

    def told(self, key: _Key) -> None:
        """Note that a message was told."""
        self._told.add(key)

    def decide(self, event: AnyHostEvent, decision: Decision) -> None:
        """Note what was decided about a call. Of two that are equal in all, one that is refused refuses both."""
        if isinstance(event, ToolCallProposed):
            known = self._decided.get(_identity(event))
            if known is None or known.allowed:
                self._decided[_identity(event)] = decision

    def decided(self, call: ToolCallProposed) -> Decision | None:
        """Return what was decided about a call of the newest answer; None for one that was altered since."""
        return self._decided.get(_identity(call))

    def asks(self, asked: ModelRequest[ContextT]) -> Iterator[AnyHostEvent]:
        """Tell what the model is asked with, as far as it changed: the tools on offer, the model, the system prompt."""
        tools = tuple([_tool(tool) for tool in asked.tools])
        if tools != self._tools:
            self._tools = tools
            yield ToolsDeclared(tools=tools, channel=Channel.TOOL_DEFINITION, source=Source.SYSTEM)
        model = _model(asked)
        if model is not None and model != self._model:
            self._model = model
            yield model
        prompt = None if asked.system_message is None else _prompt(asked.system_message)
        if prompt is not None and prompt != self._prompt:
            self._prompt = prompt
            yield prompt

    def tell(self, message: BaseMessage) -> Iterator[AnyHostEvent]:
        """Tell one message."""
        if isinstance(message, SystemMessage):
            yield _prompt(message)
        elif isinstance(message, AIMessage):
            yield from self._answer(message)
        elif isinstance(message, ToolMessage | FunctionMessage):
            yield self._result(message)
        else:
            yield from self._said(message)

    def end_turn(self) -> Iterator[AnyHostEvent]:
        """End the turn, if the model has said something in it."""
        if self._spoken:
            self._spoken = False
            yield TurnEnded(channel=Channel.CONTROL, source=Source.SYSTEM)

    def failed(self, call: ToolCallProposed) -> ToolResultObserved:
        """Tell that a call raised; with what words, the model may never see."""
        channel, source = Channel.TOOL_RESULT_TEXT, Source.TOOL
        return ToolResultObserved(tool=call.tool, call=call.call, error=True, channel=channel, source=source)

    def _said(self, message: BaseMessage) -> Iterator[AnyHostEvent]:
        """Tell a message that has the user's place. Its first text is the goal, where the user wrote it."""
        yield from self.end_turn()
        content = content_of(message.content)
        channel = Channel.USER_PART if content.parts else Channel.USER_TEXT
        source = self._wrote if self._begins and isinstance(message, HumanMessage) else Source.EXTERNAL
        if message.additional_kwargs.get("lc_source") == "summarization":  # as LangChain's own middleware marks it
            source = Source.MODEL
            yield ContextCompacted(channel=Channel.CONTROL, source=Source.SYSTEM)
        if content.text and source is Source.USER and not self._goal:
            self._goal = True
            yield GoalStated(text=content.text, channel=channel, source=source)
        if content.text is not UNSET or not content.attached:
            yield MessageObserved(role="user", text=content.text, channel=channel, source=source)
        for kind in content.attached:
            yield MessageObserved(role="user", channel=kind, source=source)

    def _answer(self, message: AIMessage) -> Iterator[AnyHostEvent]:
        yield from self.end_turn()
        self._spoken = True
        self._names.clear()
        self._decided.clear()
        content = content_of(message.content)
        if content.text:
            channel = Channel.ASSISTANT_PART if content.parts else Channel.ASSISTANT_TEXT
            yield MessageObserved(role="assistant", text=content.text, channel=channel, source=Source.MODEL)
        refusal: object = message.additional_kwargs.get("refusal")
        if isinstance(refusal, str) and refusal:
            yield MessageObserved(role="assistant", text=refusal, channel=Channel.REFUSAL, source=Source.MODEL)
        for call in message.tool_calls:
            event = proposed(call)
            self._names[event.call] = event.tool
            yield event
        for broken in message.invalid_tool_calls:  # LangChain runs none of them
            name, number = broken["name"] or "", broken["id"] or ""
            yield ToolCallProposed(tool=name, call=number, channel=Channel.TOOL_CALL_STRING, source=Source.MODEL)

    def _result(self, message: ToolMessage | FunctionMessage) -> ToolResultObserved:
        number, error = "", False
        if isinstance(message, ToolMessage):
            number, error = message.tool_call_id, message.status == "error"
        content = content_of(message.content)
        return ToolResultObserved(
            tool=self._names.get(number) or message.name or "",
            text=content.text,
            call=number,
            error=error,
            channel=Channel.TOOL_RESULT_PART if content.parts else Channel.TOOL_RESULT_TEXT,
            source=Source.TOOL,
        )


def proposed(call: ToolCall) -> ToolCallProposed:
    """Return the event of one of LangChain's tool calls. Raises EventError for what no event can hold."""
    return ToolCallProposed(
        tool=call["name"],
        arguments=call["args"],
        call=call["id"] or "",
        channel=Channel.TOOL_CALL_OBJECT,
        source=Source.MODEL,
    )


def _identity(call: ToolCallProposed) -> tuple[str, str, bytes]:
    return call.call, call.tool, bytes(call.arguments) if isinstance(call.arguments, Raw) else b""


def _digest(message: BaseMessage) -> int:
    """Return a hash that depends on what the model is shown. Python keys it anew in each process."""
    calls = (message.tool_calls, message.invalid_tool_calls) if isinstance(message, AIMessage) else ()
    answers = (message.tool_call_id, message.status) if isinstance(message, ToolMessage) else ()
    content = message.content if isinstance(message.content, str) else repr(message.content)
    return hash((message.type, content, repr(calls) if any(calls) else "", answers))


def _prompt(message: SystemMessage) -> SystemPromptSet:
    text = content_of(message.content).text or ""
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
    return SystemPromptSet(prompt_hash=digest, length=len(text), channel=Channel.SYSTEM_TEXT, source=Source.SYSTEM)


def _model(asked: ModelRequest[ContextT]) -> ModelCalled | None:
    """Return which model is asked, by the names that LangChain's models have for it; None for one without a name."""
    for field in ("model_name", "model", "model_id"):
        name: object = getattr(asked.model, field, None)
        if isinstance(name, str) and name:
            return ModelCalled(
                model=name,
                temperature=_setting(asked, "temperature"),
                top_p=_setting(asked, "top_p"),
                channel=Channel.CONTROL,
                source=Source.SYSTEM,
            )
    return None


def _setting(asked: ModelRequest[ContextT], name: str) -> float | UnsetType:
    value = asked.model_settings.get(name, getattr(asked.model, name, None))
    return float(value) if isinstance(value, int | float) else UNSET


def _tool(given: BaseTool | dict[str, object]) -> Tool:
    """Return a tool on offer: one of the host's, or one of the provider's, which may go by its type."""
    declared: dict[str, object] = convert_to_openai_tool(given) if isinstance(given, BaseTool) else given
    function = declared.get("function", declared)
    shown = function if is_mapping(function) else declared
    schema = shown.get("parameters", shown.get("input_schema"))
    parameters, foreign = (
        freeze({str(key): value for key, value in schema.items()}) if is_mapping(schema) else (UNSET, ())
    )
    hints = (given.metadata if isinstance(given, BaseTool) else None) or {}
    return Tool(
        name=str(shown.get("name") or shown.get("type") or ""),
        description=str(shown.get("description") or ""),
        parameters=UNSET if foreign else parameters,
        read_only=_hint(hints, "readOnlyHint"),
        destructive=_hint(hints, "destructiveHint"),
        open_world=_hint(hints, "openWorldHint"),
    )


def _hint(hints: Mapping[str, object], name: str) -> bool | None:
    """Return what a tool of an MCP server says of itself, which LangChain's adapter keeps in the tool's metadata."""
    hint = hints.get(name)
    return hint if isinstance(hint, bool) else None
