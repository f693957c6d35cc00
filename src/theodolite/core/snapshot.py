"""What a probe is asked of: the messages of a session at one moment, frozen, with no way back to the session."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import force_setattr

from theodolite.core.arguments import is_mapping, is_sequence
from theodolite.core.errors import EventError
from theodolite.core.fields import hold
from theodolite.core.summary import CanonicalizedContextSummary
from theodolite.core.text import brief

__all__ = ("CHARACTERS", "MESSAGES", "Message", "StateSnapshot")

MESSAGES = 256
"""Messages of a snapshot, the last ones. Our choice: four times the window of a session."""

CHARACTERS = 262_144
"""Characters of all messages of a snapshot: the room of a session's window."""

_HASH = re.compile(r"[0-9a-f]{64}")


class Message(Struct, frozen=True, gc=False):
    """One message of a context, as a model is shown it. Raises EventError for what is no text, and for no role."""

    role: str
    text: str

    def __post_init__(self) -> None:
        hold(self)
        if not self.role:
            raise EventError("Message.role is empty: say who wrote it, such as user, assistant or tool")


class StateSnapshot(Struct, frozen=True, kw_only=True, gc=False):
    """A session at one moment: a copy of its last messages, the shape of the rest, and the hash of its system prompt.

    `context_window` takes messages, mappings with `role` and `content` (text, or a list of blocks of which the text is
    kept), and pairs; it keeps copies of the last 256, and of those the last 262,144 characters. `timestamp` is in
    seconds since the epoch. `system_prompt_hash` is hex SHA-256, empty where it is not known; of any other text its
    SHA-256 is kept, so that the prompt itself is never held, nor is any handle to a tool, a memory or an output.
    `snapshot_id` says nothing about the session. Raises EventError for a field of another type and for what is no
    message.

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
        given: object = self.context_window
        if not is_sequence(given):
            raise EventError(
                f"StateSnapshot.context_window is a list of messages, each with role and content, not "
                f"{type(given).__name__}"
            )
        force_setattr(self, "context_window", _bounded([_message(item) for item in given[-MESSAGES:]]))
        _check_keys(self.canonicalized_summary)
        hold(self)
        force_setattr(self, "system_prompt_hash", _digest(self.system_prompt_hash))


def _check_keys(summary: object) -> None:
    """Raise EventError for a dict with a key that no summary has: left out, it would be the summary of a calm session.

    A summary is a Struct, which cannot have one.
    """
    if not is_mapping(summary):
        return
    unknown = [brief(key) for key in summary if key not in CanonicalizedContextSummary.__struct_fields__]
    if unknown:
        raise EventError(
            f"StateSnapshot.canonicalized_summary has no {', '.join(unknown[:4])}: its fields are "
            f"{', '.join(CanonicalizedContextSummary.__struct_fields__)}"
        )


def _digest(given: str) -> str:
    """Return a hash in hex as it is, and of all else the SHA-256: whoever mixes them up gives the prompt itself."""
    if not given or _HASH.fullmatch(given.lower()) is not None:
        return given.lower()
    return hashlib.sha256(given.encode()).hexdigest()


def _message(given: object) -> Message:
    if isinstance(given, Message):
        return given
    role: object = None
    text: object = None
    if is_mapping(given):
        role, text = given.get("role"), _text(given)
    elif is_sequence(given) and len(given) == 2:  # noqa: PLR2004 - a role and a text
        role, text = given
    if isinstance(role, str) and role and isinstance(text, str):
        return Message(role, text)
    raise EventError(
        f"StateSnapshot.context_window: a message is a dict with role and content, both text; {type(given).__name__} "
        "has not both"
    )


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
