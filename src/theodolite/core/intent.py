"""What a call is, without its content: its permission class, its effect, where its arguments came from."""

from __future__ import annotations

from enum import IntEnum, StrEnum

from msgspec import Struct

__all__ = ("ArgumentOrigin", "Call", "Effect", "Margin", "NormalizedIntent", "Origin", "Permission")


class Permission(IntEnum):
    """The permission class of a call, in the order of zeph's ShadowMemory: a higher number may do more harm."""

    READ = 0
    WRITE = 1
    EXECUTE = 2
    NETWORK = 3


class Effect(StrEnum):
    """Whether running the tool changes anything outside the agent. What is not known counts as a write."""

    READ = "read"
    WRITE = "write"
    UNKNOWN = "unknown"


class Origin(StrEnum):
    """Where an argument value first stood: in what the user said, in a tool result, or nowhere before the model."""

    USER = "user"
    TOOL_RESULT = "tool_result"
    MODEL = "model"


class ArgumentOrigin(Struct, frozen=True, kw_only=True, gc=False):
    """One argument value, by its JSON Pointer, and the event it first came from (None: from the model)."""

    path: str
    origin: Origin
    seq: int | None = None


class NormalizedIntent(Struct, frozen=True, kw_only=True, gc=False):
    """A call as behavior: what it would do, not what it says. `tool` is free text of the host's."""

    tool: str
    permission: Permission
    effect: Effect
    after_external_read: bool = False


class Margin(Struct, frozen=True, kw_only=True, gc=False):
    """How much better untrusted text explains a call than the user's goal does.

    `score` is in [0, 1]: 0.5 means equally well, 1 means that only untrusted text does. `seq`, `start` and `end` give
    the passage that explains it best, in characters of that event's text; `seq` is None where there is none. `lost`
    counts the untrusted sentences so far that were not compared, since there were too many.
    """

    score: float
    goal: float
    untrusted: float
    seq: int | None = None
    start: int = 0
    end: int = 0
    lost: int = 0


class Call(Struct, frozen=True, kw_only=True, gc=False):
    """What was folded about the call under judgment. A part that no detector needs is None.

    `text` is its beginning, at most 256 characters: the tool and its argument values in order.
    """

    seq: int
    text: str
    intent: NormalizedIntent
    origins: tuple[ArgumentOrigin, ...] | None = None
    margin: Margin | None = None
