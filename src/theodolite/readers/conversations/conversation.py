"""One recorded conversation, told event by event: what all forms of messages come to."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Annotated, Literal, NamedTuple, TypeAlias, TypedDict, TypeVar

from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field
from msgspec.json import Decoder

from theodolite.core.arguments import freeze
from theodolite.core.errors import EventError
from theodolite.core.event import (
    AnyHostEvent,
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
from theodolite.readers.conversations.arguments import Arguments, arguments_of
from theodolite.readers.conversations.faults import Faults

__all__ = ("COUNT", "ITEMS", "Call", "Conversation", "Declaration", "Sampling", "kind_named")

ITEMS: Decoder[list[Raw] | None] = Decoder(list[Raw] | None)
TEXT: Decoder[str | None] = Decoder(str | None)
# Whole numbers that a double holds exactly: a sum of some of them is still one that JSON can say.
_Count: TypeAlias = Annotated[int, Meta(ge=0, le=2**53)]
COUNT: Decoder[int | None] = Decoder(_Count | None)
_NUMBER: Decoder[float | None] = Decoder(float | None)

# Calls whose results may still come. The API of OpenAI takes at most 128 tools a request and wants the results next.
_MAX_CALLS = 1024
# Tools that a conversation may declare, each as often as it stands in a declaration. Our choice: a later declaration
# names all earlier tools too, so that without a bound a recording could make the square of its size in events.
_MAX_TOOLS = 2**20
# Type names of the APIs are such words. Any other is a recording's own, and is not repeated in a message.
_KIND = re.compile(r"[a-z]+(?:_[a-z0-9]+)*\Z")
_KIND_LENGTH = 64
_WRITERS = {"system": Source.SYSTEM, "user": Source.USER, "assistant": Source.MODEL}
_HOST_RESULTS = frozenset({Channel.TOOL_RESULT_TEXT, Channel.TOOL_RESULT_PART})

_T = TypeVar("_T")


class Declaration(Struct, frozen=True):
    """A tool on offer; one of the provider's may go by its type.

    Anthropic and MCP call the parameters `input_schema`, and MCP gives hints beside them, and a schema of what comes
    back; some recordings keep the names of its own protocol.
    """

    name: str | None = None
    type: str | None = None
    description: str | None = None
    parameters: dict[str, object] | None = None
    input_schema: dict[str, object] | None = None
    output_schema: dict[str, object] | None = None
    of_arguments: dict[str, object] | None = field(default=None, name="inputSchema")
    of_results: dict[str, object] | None = field(default=None, name="outputSchema")
    annotations: dict[str, object] | None = None


_DECLARATION = Decoder(Declaration)


class Call(NamedTuple):
    """A call whose result may still come. `hosted`: it runs at the provider."""

    tool: str
    id: str
    hosted: bool = False


class Sampling(NamedTuple):
    """What a record says of its model and how it sampled, undecoded."""

    model: Raw | UnsetType = UNSET
    temperature: Raw | UnsetType = UNSET
    top_p: Raw | UnsetType = UNSET


class _Place(TypedDict):
    session: str
    agent: str
    turn: int
    channel: Channel
    source: Source


class Conversation:
    """One session under way. Turns count what the model said from 0; one ends before the next, or the next user's.

    What was found since it was last asked is in `take()`; faults name the place that was last given to `stand`. Holds
    the names of the calls whose results may still come, the tools on offer, and no message.
    """

    def __init__(self, session: str, file: str, *, agent: str = "") -> None:
        self.session = session
        self.agent = agent
        self.spoken = False
        self._file = file
        self._turn = 0
        self._goal = False
        self._calls: dict[str, Call] = {}
        self._tools: dict[str, Tool] = {}
        self._declared = 0
        self._line = 0
        self._place = ""
        self._found: list[Recorded] = []
        self._faults = Faults()

    def take(self) -> list[Recorded]:
        """Return what was found since the last time."""
        found, self._found = [*self._found, *self._faults.rest()], []
        self._faults = Faults()
        return found

    def stand(self, line: int, place: str) -> None:
        """Say where in the recording what follows was read."""
        self._line, self._place = line, place

    def fault(self, field: str, reason: str) -> None:
        """Report what cannot be read."""
        place = ".".join(filter(None, (self._place, field)))
        told = Unreadable(file=self._file, line=self._line, reason=f"{place}: {reason}", session=self.session)
        self._found += self._faults.take(told)

    def decoded(self, decoder: Decoder[_T], data: bytes | Raw | UnsetType, field: str) -> _T | None:
        """Return a value, or None where it is absent or, which is reported, of the wrong form."""
        if isinstance(data, UnsetType):
            return None
        try:
            return decode(decoder, data)
        except EventError as error:
            self.fault(field, str(error))
            return None

    def text(self, data: Raw | UnsetType, field: str) -> str:
        """Return a text, or an empty one where there is none."""
        return self.decoded(TEXT, data, field) or ""

    def items(self, data: Raw | UnsetType, field: str) -> list[tuple[str, Raw]]:
        """Return the elements of a list, each with its place."""
        items = self.decoded(ITEMS, data, field) or ()
        return [(f"{field}[{index}]", item) for index, item in enumerate(items)]

    def arguments(self, data: Raw | UnsetType, field: str) -> Arguments:
        """Return the arguments of a call; what cannot be read of them is reported."""
        try:
            given = arguments_of(data)
        except EventError as error:
            given = Arguments(UNSET, Channel.TOOL_CALL_STRING, str(error))
        if given.fault:
            self.fault(field, f"{given.fault}; the call is kept without them")
        return given

    def at(self, channel: Channel, source: Source) -> _Place:
        """Return what every event of this session and turn has."""
        session, agent = self.session, self.agent
        return {"session": session, "agent": agent, "turn": self._turn, "channel": channel, "source": source}

    def put(self, event: AnyHostEvent) -> None:
        """Add an event that was made with `at`."""
        self._found.append(event)

    def end_turn(self) -> None:
        """End the turn, if the model has said something in it."""
        if self.spoken:
            self.put(TurnEnded(**self.at(Channel.CONTROL, Source.SYSTEM)))
            self._turn += 1
            self.spoken = False

    def end(self, reason: str = "") -> None:
        """End the session."""
        self.end_turn()
        self.put(SessionEnded(reason=reason, **self.at(Channel.CONTROL, Source.SYSTEM)))

    def system(self, text: str | UnsetType, field: str) -> None:
        """Tell a system prompt, by its hash."""
        if isinstance(text, UnsetType):
            self.fault(field, "a system prompt without text")
            return
        digest = hashlib.sha256(text.encode()).hexdigest()
        place = self.at(Channel.SYSTEM_TEXT, Source.SYSTEM)
        self.put(SystemPromptSet(prompt_hash=digest, length=len(text), **place))

    def asks(self, text: str | UnsetType, channel: Channel, attached: Iterable[Channel] = ()) -> None:
        """Tell a message of the user: its text, and what is attached to it, unseen. The first text is the goal."""
        self.end_turn()
        unseen = tuple(attached)
        if text and not self._goal:
            self._goal = True
            self.put(GoalStated(text=text, **self.at(channel, Source.USER)))
        if text is not UNSET or not unseen:
            self.says("user", text, channel)
        for kind in unseen:
            self.says("user", UNSET, kind)

    def says(
        self,
        role: Literal["system", "user", "assistant"],
        text: str | UnsetType,
        channel: Channel,
        source: Source | None = None,
    ) -> None:
        """Tell a message, or a part of one. Its source is who has the role, unless another wrote it."""
        wrote = source or _WRITERS[role]
        self.put(MessageObserved(role=role, text=text, **self.at(channel, wrote)))

    def called(self, sampling: Sampling, usage: Mapping[str, int | None] | None = None) -> None:
        """Tell that the model was asked, where the record names it; `usage` is in tokens."""
        model = self.text(sampling.model, "model")
        temperature = self.decoded(_NUMBER, sampling.temperature, "temperature")
        top_p = self.decoded(_NUMBER, sampling.top_p, "top_p")
        if not model:
            return
        used = {name: count for name, count in (usage or {}).items() if count is not None}
        self.put(
            ModelCalled(
                model=model,
                temperature=UNSET if temperature is None else temperature,
                top_p=UNSET if top_p is None else top_p,
                input_tokens=used.get("input_tokens", UNSET),
                output_tokens=used.get("output_tokens", UNSET),
                **self.at(Channel.CONTROL, Source.SYSTEM),
            )
        )

    def calls(self, call: Call, given: Arguments, *, channel: Channel | None = None, also: str = "") -> None:
        """Tell a call. Its result may come under its id, or under another one (`also`)."""
        came = Channel.PROVIDER_TOOL if call.hosted else channel or given.channel
        place = self.at(came, Source.MODEL)
        self.put(ToolCallProposed(tool=call.tool, arguments=given.said, call=call.id, foreign=given.foreign, **place))
        for number in filter(None, (call.id, also)):
            self._calls[number] = call
        while len(self._calls) > _MAX_CALLS:
            del self._calls[next(iter(self._calls))]

    def call(self, number: str, tool: str = "") -> Call:
        """Return the call that a result belongs to; one of the given name where it is not known."""
        return self._calls.get(number) or Call(tool, number)

    def returns(
        self,
        call: Call,
        text: str | UnsetType,
        channel: Channel,
        *,
        source: Source = Source.TOOL,
        error: bool = False,
    ) -> None:
        """Tell what a call returned; what a hosted one did came on the provider's channel."""
        place = self.at(Channel.PROVIDER_TOOL if call.hosted and channel in _HOST_RESULTS else channel, source)
        self.put(ToolResultObserved(tool=call.tool, text=text, call=call.id, error=error, **place))

    @property
    def offered(self) -> Collection[str]:
        """The names of the tools on offer."""
        return self._tools.keys()

    def declared(self, data: Raw, field: str) -> list[Tool]:
        """Return a tool that is declared here, as a list of one; of none where it cannot be read, which is reported."""
        declaration = self.decoded(_DECLARATION, data, field)
        return [] if declaration is None else self.tool(declaration, field)

    def tool(self, declared: Declaration, field: str) -> list[Tool]:
        """Return a tool, as `declared` does; without a schema that nests too deeply, which is reported."""
        name = declared.name or declared.type
        if not name:
            self.fault(field, "a tool without a name")
            return []
        hints = declared.annotations or {}
        tool = Tool(
            name=name,
            description=declared.description or "",
            parameters=self._schema(
                f"{field}.parameters", declared.input_schema, declared.of_arguments, declared.parameters
            ),
            results=self._schema(f"{field}.results", declared.output_schema, declared.of_results),
            read_only=_hint(hints, "readOnlyHint"),
            destructive=_hint(hints, "destructiveHint"),
            open_world=_hint(hints, "openWorldHint"),
        )
        return [tool]

    def _schema(self, field: str, *given: dict[str, object] | None) -> Raw | UnsetType:
        """Return the first schema that is given; none where it nests too deeply, which is reported."""
        schema = next((one for one in given if one is not None), None)
        if schema is None:
            return UNSET
        kept, foreign = freeze(schema)
        if foreign:
            self.fault(field, "nested too deeply to be read")
        return UNSET if foreign else kept

    def declares(self, tools: Iterable[Tool], source: Source = Source.SYSTEM, *, gone: Iterable[str] = ()) -> None:
        """Tell the tools on offer from here on: those before, without those that are gone, and with new ones.

        Nothing is told where nothing changes; a change that comes after a million tools is reported instead.
        """
        if self._declared > _MAX_TOOLS:
            self.fault("tools", "the tools were declared anew too often to be followed")
            return
        lost = set(gone)
        offered = {name: tool for name, tool in self._tools.items() if name not in lost}
        offered.update({tool.name: tool for tool in tools})
        self._declared += len(offered) + 1
        if offered != self._tools:
            self._tools = offered
            self.put(ToolsDeclared(tools=tuple(offered.values()), **self.at(Channel.TOOL_DEFINITION, source)))


def kind_named(kind: str) -> str:
    """Return the name of a type for a message; one that is no word of an API's is not repeated.

    >>> kind_named("tool_use"), kind_named("Dear reader")
    ('the kind tool_use, which', 'a kind that')
    """
    return f"the kind {kind}, which" if len(kind) <= _KIND_LENGTH and _KIND.match(kind) else "a kind that"


def _hint(hints: Mapping[str, object], name: str) -> bool | None:
    hint = hints.get(name)
    return hint if isinstance(hint, bool) else None
