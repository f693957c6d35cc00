"""The one input: what happened in a session, in order.

A host or a reader makes events; Session stamps `session`, `agent`, `seq`, `at` and, where nobody set it, `turn`.
Every event is a deep-frozen value: text, numbers, and JSON bytes. None holds a host object. What a field cannot hold is
an EventError when the event is made, so that an event that exists can be kept, sent and read back.
A field that the channel did not show is `UNSET`, which is not the same as empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from enum import StrEnum
from typing import Literal, TypeVar, get_args

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import force_setattr

from theodolite.core.arguments import Foreign, freeze, thaw
from theodolite.core.errors import EventError
from theodolite.core.fields import hold
from theodolite.core.reading import Failure, Reading
from theodolite.core.snapshot import StateSnapshot

__all__ = (
    "HOST_EVENTS",
    "AnyEvent",
    "AnyHostEvent",
    "ApprovalGiven",
    "CanaryChecked",
    "CanaryVerdict",
    "Channel",
    "Cleared",
    "ContextCompacted",
    "Event",
    "GoalStated",
    "HandedOff",
    "HostEvent",
    "InquirySettled",
    "MessageObserved",
    "ModelCalled",
    "ModelUsage",
    "OwnEvent",
    "ProbeRequested",
    "SessionEnded",
    "Source",
    "SystemPromptSet",
    "Tool",
    "ToolCallProposed",
    "ToolResultObserved",
    "ToolsDeclared",
    "TurnEnded",
    "decode_event",
    "encode_event",
    "stamp",
)


class Source(StrEnum):
    """Who wrote what the event carries. `tool` and `external` are untrusted by default."""

    USER = "user"
    SYSTEM = "system"
    MODEL = "model"
    TOOL = "tool"
    EXTERNAL = "external"

    @property
    def trusted(self) -> bool:
        """Whether text of this source may say what the agent should do."""
        return self is Source.USER or self is Source.SYSTEM


class Channel(StrEnum):
    """The carrier that an event came on: a closed list, so that coverage can name what was never seen."""

    UNKNOWN = "unknown"
    SYSTEM_TEXT = "system_text"
    USER_TEXT = "user_text"
    USER_PART = "user_part"
    USER_IMAGE = "user_image"
    USER_AUDIO = "user_audio"
    USER_FILE = "user_file"
    EARLIER_TURN = "earlier_turn"
    TOOL_DEFINITION = "tool_definition"
    TOOL_RESULT_TEXT = "tool_result_text"
    TOOL_RESULT_PART = "tool_result_part"
    MCP_RESULT = "mcp_result"
    MCP_RESOURCE = "mcp_resource"
    MCP_PROMPT = "mcp_prompt"
    MCP_INSTRUCTIONS = "mcp_instructions"
    ASSISTANT_TEXT = "assistant_text"
    ASSISTANT_PART = "assistant_part"
    TOOL_CALL_OBJECT = "tool_call_object"
    TOOL_CALL_STRING = "tool_call_string"
    FUNCTION_CALL = "function_call"
    PROVIDER_TOOL = "provider_tool"
    REASONING = "reasoning"
    REFUSAL = "refusal"
    CITATION = "citation"
    STRUCTURED_OUTPUT = "structured_output"
    SECOND_CHOICE = "second_choice"
    HANDOFF = "handoff"
    CONTROL = "control"


class Event(Struct, frozen=True, kw_only=True, tag_field="event", tag=True, gc=False):
    """What every event carries. `seq` counts from 0 within a session; `at` is in seconds since the epoch.

    Raises EventError for a value that a field cannot hold. Lone surrogates in text are spelled out.
    """

    session: str = ""
    agent: str = ""
    seq: int = -1
    at: float = 0.0
    turn: int = -1
    channel: Channel = Channel.UNKNOWN
    source: Source = Source.EXTERNAL

    def __post_init__(self) -> None:
        hold(self)


class HostEvent(Event, frozen=True, kw_only=True, tag=True, gc=False):
    """An event that a host or a recording may bring."""


class OwnEvent(Event, frozen=True, kw_only=True, tag=True, gc=False):
    """An event that only this package makes. From a file it counts only with a valid seal."""


class SystemPromptSet(HostEvent, frozen=True, kw_only=True, tag=True, gc=False):
    """The policy in force, by its hash (hex SHA-256 of the UTF-8 text) and length in characters, never its text."""

    prompt_hash: str
    length: int = 0


class Tool(Struct, frozen=True, kw_only=True, gc=False):
    """One tool that the agent may call, with the MCP hints where the host shows them (None: not shown).

    `parameters` is the JSON of the schema of its arguments, `results` that of what it returns (`outputSchema` of MCP).
    Raises EventError like an event, also for JSON that is not an object, or is nested deeper than the arguments of a
    call may be.
    """

    name: str
    description: str = ""
    parameters: Raw | UnsetType = UNSET
    results: Raw | UnsetType = UNSET
    read_only: bool | None = None
    destructive: bool | None = None
    open_world: bool | None = None

    def __post_init__(self) -> None:
        hold(self)
        for field, schema in (("parameters", self.parameters), ("results", self.results)):
            if isinstance(schema, Raw):
                _, foreign = freeze(thaw(schema, f"the {field} of a tool"))
                if foreign:
                    fault = f"{foreign[0].type} at {foreign[0].path}"
                    raise EventError(f"the {field} of the tool {self.name!r}: {fault}; leave them UNSET")
                force_setattr(self, field, Raw(bytes(schema)))  # the bytes under a Raw may be the caller's


class ToolsDeclared(HostEvent, frozen=True, kw_only=True, tag=True, gc=False):
    """The tools on offer from here on; replaces an earlier declaration."""

    tools: tuple[Tool, ...]


class GoalStated(HostEvent, frozen=True, kw_only=True, tag=True, gc=False):
    """What the user asked for. Later ones, and later messages of the user, amend it.

    It comes from the user unless `source` says otherwise; from an untrusted source it is no goal.
    """

    text: str
    source: Source = Source.USER


class MessageObserved(HostEvent, frozen=True, kw_only=True, tag=True, gc=False):
    """A message in the agent's context."""

    role: Literal["system", "user", "assistant"]
    text: str | UnsetType = UNSET


class ModelCalled(HostEvent, frozen=True, kw_only=True, tag=True, gc=False):
    """The agent's own model was asked: which one, how it samples, what it used."""

    model: str
    temperature: float | UnsetType = UNSET
    top_p: float | UnsetType = UNSET
    input_tokens: int | UnsetType = UNSET
    output_tokens: int | UnsetType = UNSET


class ToolCallProposed(HostEvent, frozen=True, kw_only=True, tag=True, gc=False):
    """A tool call that the agent wants to make; nothing has run yet.

    `arguments` takes a mapping, or JSON as msgspec.Raw, and keeps JSON: the caller's object is read once, never held.
    What JSON cannot say (NaN, dates, bytes, sets, lone surrogates ...) is listed in `foreign`, found in the original.
    Where the model wrote text that is no JSON, `arguments` are UNSET and `foreign` has `Foreign("", "not_json")`.
    Raises EventError for anything else, and for JSON that is not an object.

    >>> call = ToolCallProposed(tool="send", arguments={"to": "a@example.org"})
    >>> call.values()
    {'to': 'a@example.org'}
    """

    tool: str
    arguments: Mapping[str, object] | Raw | UnsetType = UNSET
    call: str = ""
    foreign: tuple[Foreign, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        given = self.arguments
        if not isinstance(given, UnsetType):
            raw, foreign = freeze(thaw(given) if isinstance(given, Raw) else given)
            force_setattr(self, "arguments", raw)
            force_setattr(self, "foreign", self.foreign + foreign)

    def values(self) -> dict[str, object] | UnsetType:
        """Return a fresh copy of the arguments, or UNSET where the channel did not show them."""
        return thaw(self.arguments) if isinstance(self.arguments, Raw) else UNSET


class ToolResultObserved(HostEvent, frozen=True, kw_only=True, tag=True, gc=False):
    """What a tool returned. `error` says that the tool reported a failure."""

    tool: str = ""
    text: str | UnsetType = UNSET
    call: str = ""
    error: bool = False


class TurnEnded(HostEvent, frozen=True, kw_only=True, tag=True, gc=False):
    """One round of the agent is over: its message, its calls and their results."""


class ContextCompacted(HostEvent, frozen=True, kw_only=True, tag=True, gc=False):
    """The host shortened the context; sizes in tokens where known."""

    before: int | UnsetType = UNSET
    after: int | UnsetType = UNSET


class HandedOff(HostEvent, frozen=True, kw_only=True, tag=True, gc=False):
    """Another agent goes on, in the session named by `child` where the host shows it."""

    to: str
    child: str = ""


class ApprovalGiven(HostEvent, frozen=True, kw_only=True, tag=True, gc=False):
    """A person allowed a call. It is evidence; it clears nothing."""

    call: str
    operator: str = ""


class SessionEnded(HostEvent, frozen=True, kw_only=True, tag=True, gc=False):
    """No more events will come."""

    reason: str = ""


class ProbeRequested(OwnEvent, frozen=True, kw_only=True, tag=True, gc=False):
    """Somebody asked for a probe now: of the session as it is here, or of the snapshot that they took themselves."""

    reason: str
    snapshot: StateSnapshot | None = None


class ModelUsage(Struct, frozen=True, kw_only=True, gc=False):
    """What one model used: queries that it answered, tokens, and their cost; UNSET where that is not known of all."""

    model: str
    input_tokens: int
    output_tokens: int
    queries: int = 0
    cost: float | UnsetType = UNSET


class InquirySettled(OwnEvent, frozen=True, kw_only=True, tag=True, gc=False):
    """An inquiry came to its end, whatever that is.

    `about` is the seq of the event that opened it; `first` is what a verifier was asked to look at; `exchanges`
    counts the queries that models answered, and `reused` those whose answers were known; `canaries` are the tokens that
    were planted in them; `usage` is what each model used for its answers, by the model's name.
    """

    asker: str
    about: int
    said: tuple[Reading | Failure, ...]
    first: Reading | None = None
    exchanges: int = 0
    reused: int = 0
    canaries: tuple[str, ...] = ()
    usage: tuple[ModelUsage, ...] = ()


class CanaryVerdict(StrEnum):
    """What a canary contract showed."""

    HOLDS = "holds"
    VISIBILITY_BROKEN = "visibility_broken"
    DECISION_BROKEN = "decision_broken"
    NOT_RUN = "not_run"


class CanaryChecked(OwnEvent, frozen=True, kw_only=True, tag=True, gc=False):
    """A canary contract was run over the channel `checked` (not the channel that this event came on)."""

    contract: str
    checked: Channel
    verdict: CanaryVerdict


class Cleared(OwnEvent, frozen=True, kw_only=True, tag=True, gc=False):
    """An operator lifted the restriction, and says why."""

    operator: str
    reason: str


_E = TypeVar("_E", bound=Event)


def stamp(event: _E, *, session: str, agent: str, seq: int, at: float, turn: int) -> _E:
    """Return the event in its place. A copy: the one that was given stays as it is.

    >>> stamp(TurnEnded(), session="s-1", agent="", seq=4, at=0.0, turn=2).seq
    4
    """
    # Not msgspec's `replace`, which would make and check every field anew: that doubles the price of an event.
    stamped = copy(event)
    put = force_setattr
    put(stamped, "session", session)
    put(stamped, "agent", agent)
    put(stamped, "seq", seq)
    put(stamped, "at", at)
    put(stamped, "turn", turn)
    return stamped


AnyHostEvent = (
    SystemPromptSet
    | ToolsDeclared
    | GoalStated
    | MessageObserved
    | ModelCalled
    | ToolCallProposed
    | ToolResultObserved
    | TurnEnded
    | ContextCompacted
    | HandedOff
    | ApprovalGiven
    | SessionEnded
)
HOST_EVENTS: frozenset[type[HostEvent]] = frozenset(get_args(AnyHostEvent))
AnyEvent = AnyHostEvent | ProbeRequested | InquirySettled | CanaryChecked | Cleared

_ENCODER = msgspec.json.Encoder()
_DECODER: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)


def encode_event(event: Event) -> bytes:
    """Return the event as one line of JSON, equal bytes for equal events."""
    return _ENCODER.encode(event)


def decode_event(line: bytes | str) -> AnyEvent:
    """Return the event of one line of JSON.

    Raises msgspec.DecodeError with the place of the fault, and EventError for what no event of that kind may hold.
    """
    return _DECODER.decode(line)
