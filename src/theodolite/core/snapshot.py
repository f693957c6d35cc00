"""What a probe is asked of: the messages of a session at one moment, frozen, with no way back to the session."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import force_setattr

from theodolite.core.arguments import is_mapping, is_sequence
from theodolite.core.summary import CanonicalizedContextSummary
from theodolite.core.text import printable, spell_out

__all__ = ("CHARACTERS", "MESSAGES", "Message", "StateSnapshot")

MESSAGES = 256
"""Messages of a snapshot, the last ones. Our choice: four times the window of a session."""

CHARACTERS = 262_144
"""Characters of all messages of a snapshot: the room of a session's window."""


class Message(Struct, frozen=True, gc=False):
    """One message of a context, as a model is shown it."""

    role: str
    text: str


class StateSnapshot(Struct, frozen=True, kw_only=True, gc=False):
    """A session at one moment: a copy of its last messages, the shape of the rest, and the hash of its system prompt.

    `context_window` takes messages, mappings with `role` and `content` (text, or a list of blocks of which the text is
    kept), and pairs; it keeps copies of the last 256, and of those the last 262,144 characters. `timestamp` is in
    seconds since the epoch. `system_prompt_hash` is hex SHA-256, empty where it is not known; the prompt itself is
    never held, nor is any handle to a tool, a memory or an output. `snapshot_id` says nothing about the session.
    Raises ValueError for a moment that is none, TypeError for what is no message.

    >>> given = {"role": "user", "content": [{"type": "text", "text": "Where is it?"}]}
    >>> StateSnapshot(session_id="s-1", timestamp=0.0, context_window=(given,)).context_window
    (Message(role='user', text='Where is it?'),)
    """

    session_id: str
    timestamp: float = 0.0
    context_window: tuple[Message, ...] = ()
    system_prompt_hash: str = ""
    canonicalized_summary: CanonicalizedContextSummary = CanonicalizedContextSummary()
    snapshot_id: str = ""

    def __post_init__(self) -> None:
        if not math.isfinite(self.timestamp):
            raise ValueError(f"the timestamp of a snapshot is {self.timestamp}, which is no moment")
        given: object = self.context_window
        if not is_sequence(given):
            raise TypeError(f"the context_window of a snapshot is a list of messages, not {type(given).__name__}")
        force_setattr(self, "context_window", _bounded([_message(item) for item in given[-MESSAGES:]]))
        spell_out(self, "session_id", "system_prompt_hash", "snapshot_id")


def _message(given: object) -> Message:
    if isinstance(given, Message):
        return Message(printable(given.role), printable(given.text))
    if is_mapping(given):
        role = given.get("role")
        if isinstance(role, str):
            return Message(printable(role), printable(_text(given)))
    elif is_sequence(given) and len(given) == 2:  # noqa: PLR2004 - a role and a text
        role, text = given
        if isinstance(role, str) and isinstance(text, str):
            return Message(printable(role), printable(text))
    raise TypeError(f"a message has a role and a content; {type(given).__name__} has not: pass dicts with both")


def _text(message: Mapping[object, object]) -> str:
    content = message.get("content", message.get("text"))
    blocks: Sequence[object] = content if is_sequence(content) else (content,)
    texts = [block.get("text", block.get("content")) if is_mapping(block) else block for block in blocks]
    return "\n".join([str(text) for text in texts if isinstance(text, str)])


def _bounded(messages: Sequence[Message]) -> tuple[Message, ...]:
    room, kept = CHARACTERS, list[Message]()
    for message in reversed(messages):
        if room <= 0:
            break
        kept.append(message if len(message.text) <= room else Message(message.role, message.text[-room:]))
        room -= len(message.text)
    return tuple(reversed(kept))
