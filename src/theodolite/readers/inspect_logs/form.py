"""The form of Inspect logs, version 2, as far as it is read: https://inspect.aisi.org.uk/eval-logs.html.

What may be wrong by itself stays undecoded (`Raw`) here, so that it can be reported by itself.
"""

from __future__ import annotations

from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.json import Decoder

__all__ = (
    "ATTACHMENTS",
    "CALL",
    "CONTENT",
    "ERROR",
    "HEAD",
    "LABEL",
    "MESSAGE",
    "MODEL",
    "PART",
    "SAMPLE",
    "SCORES",
    "Eval",
    "Label",
    "Message",
    "Part",
    "Sample",
)


class Eval(Struct, frozen=True):
    """What was evaluated: the id of the run, the task and the model."""

    eval_id: str | None = None
    run_id: str | None = None
    task: str | None = None
    model: str | None = None


class _Head(Struct, frozen=True):
    eval: Eval


class Sample(Struct, frozen=True):
    """One sample, which is one session."""

    id: int | str
    epoch: int = 1
    input: Raw | UnsetType = UNSET
    messages: Raw | UnsetType = UNSET
    events: Raw | UnsetType = UNSET
    metadata: Raw | UnsetType = UNSET
    scores: Raw | UnsetType = UNSET
    attachments: Raw | UnsetType = UNSET


class Message(Struct, frozen=True):
    """A message of any role."""

    role: str
    content: Raw | UnsetType = UNSET
    tool_calls: Raw | UnsetType = UNSET
    tool_call_id: str | None = None
    function: str | None = None
    error: Raw | UnsetType = UNSET


class Part(Struct, frozen=True):
    """A part of a content: text, reasoning, an attached file, or a tool that the provider ran."""

    type: str
    text: str | UnsetType = UNSET
    reasoning: str | UnsetType = UNSET
    redacted: bool = False
    id: str | None = None
    name: str | None = None
    arguments: Raw | UnsetType = UNSET
    result: str | UnsetType = UNSET
    error: str | None = None


class _Call(Struct, frozen=True):
    function: str
    id: str | None = None
    arguments: Raw | UnsetType = UNSET


class _Error(Struct, frozen=True):
    message: str = ""


class _Event(Struct, frozen=True):
    event: str = ""
    tools: Raw | UnsetType = UNSET


class Label(Struct, frozen=True):
    """What the metadata of a sample says of it; of anything else that stands there nothing is known."""

    theodolite_label: object = None


class _Score(Struct, frozen=True):
    value: object = None


class _Scores(Struct, frozen=True):
    theodolite_label: _Score | None = None


HEAD = Decoder(_Head)
SAMPLE = Decoder(Sample)
MESSAGE = Decoder(Message)
CONTENT: Decoder[str | list[Raw] | None] = Decoder(str | list[Raw] | None)
PART = Decoder(Part)
CALL = Decoder(_Call)
ERROR: Decoder[_Error | None] = Decoder(_Error | None)
MODEL = Decoder(_Event)
ATTACHMENTS: Decoder[dict[str, str] | None] = Decoder(dict[str, str] | None)
LABEL: Decoder[Label | None] = Decoder(Label | None)
SCORES: Decoder[_Scores | None] = Decoder(_Scores | None)
