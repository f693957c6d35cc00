"""The reader of Anthropic message recordings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from msgspec import Raw, UnsetType

from theodolite.core.errors import EventError
from theodolite.core.lines import decode
from theodolite.core.reader import Recorded
from theodolite.readers.anthropic_messages.form import RECORD, Record
from theodolite.readers.anthropic_messages.messages import Messages
from theodolite.readers.conversations.conversation import ITEMS, Conversation
from theodolite.readers.conversations.marks import marks
from theodolite.readers.conversations.records import conversations

__all__ = ("AnthropicMessages",)


class AnthropicMessages:
    """Reads lists of messages with content blocks.

    They may be bare, under `messages` with what stands beside them, a `request` with its `response`, or a response
    alone; one of these a line, or a list of several. A bare list is read message by message, an object as a whole.
    Sessions are named as by the reader of Chat Completions. What ran at Anthropic is told as a call and its result, on
    the provider's channel. What is encrypted, an image or a file in a result is told as one more result, without text.
    """

    name = "anthropic-messages"

    def detects(self, head: bytes) -> bool:
        """Whether what begins here has content blocks, or fields, that only this form has."""
        return self.name in marks(head)

    def read(self, stream: BinaryIO, file: str) -> Iterator[Recorded]:
        """Yield the events of each conversation. Holds one message, or one object, and the names that were given."""
        return conversations(stream, file, _Anthropic())


class _Anthropic:
    """The form of Anthropic recordings."""

    def opens(self, data: bytes) -> Record:
        """Return a request, a pair, or a response."""
        record = decode(RECORD, data)
        if isinstance(record.role, Raw):
            return Record(messages=Raw(b"[%b]" % data), role=record.role, session_id=record.session_id, id=record.id)
        asked = decode(RECORD, record.request) if isinstance(record.request, Raw) else record
        if not isinstance(asked.messages, Raw) or decode(ITEMS, asked.messages) is None:
            raise EventError("an object without messages")
        return record

    def holds(self, data: bytes) -> bool:
        """Whether an element of a list is a request, a pair, and no message."""
        try:
            record = decode(RECORD, data)
        except EventError:
            return False
        return isinstance(record.messages, Raw) or isinstance(record.request, Raw)

    def names(self, record: Record) -> tuple[Raw | UnsetType, ...]:
        """Return the two fields by which hosts name a session."""
        return record.session_id, record.id

    def tells(self, under: Conversation) -> Messages:
        """Return what tells messages."""
        return Messages(under)
