"""The reader of Chat Completions recordings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from msgspec import Raw, UnsetType

from theodolite.core.errors import EventError
from theodolite.core.lines import content, decode, first_keys
from theodolite.core.reader import Recorded
from theodolite.readers.conversations.conversation import ITEMS, Conversation
from theodolite.readers.conversations.marks import marks
from theodolite.readers.conversations.records import conversations
from theodolite.readers.openai_chat.form import RECORD, Record
from theodolite.readers.openai_chat.messages import Messages

__all__ = ("OpenAIChat",)


class OpenAIChat:
    """Reads message lists: bare, under `messages` with what stands beside them, or one of these a line.

    A bare list is read message by message, an object as a whole. The first conversation of a file is named after the
    file, a later one `file#line`; `session_id` or `id` beside the messages goes before that, and becomes `id#line` when
    it comes again, since hosts that log each request repeat the conversation. The system prompt becomes its hash; text
    parts are joined by line ends. A call whose arguments cannot be read is kept without them and reported.
    """

    name = "openai-chat"

    def detects(self, head: bytes) -> bool:
        """Whether a list of objects with a role begins here, or an object with messages.

        Not where it shows what only another form has, unless it shows what only this one has, too.
        """
        keys = first_keys(head)
        if not (("role" in keys) if content(head).startswith(b"[") else ("messages" in keys)):
            return False
        found = marks(head)
        return not found or self.name in found

    def read(self, stream: BinaryIO, file: str) -> Iterator[Recorded]:
        """Yield the events of each conversation. Holds one message, or one object, and the names that were given."""
        return conversations(stream, file, _Chat())


class _Chat:
    """The form of Chat Completions recordings."""

    def opens(self, data: bytes) -> Record:
        """Return an object with messages."""
        record = decode(RECORD, data)
        if isinstance(record.messages, UnsetType) or decode(ITEMS, record.messages) is None:
            raise EventError("an object without messages")
        return record

    def holds(self, data: bytes) -> bool:
        """Return that elements of a list are messages."""
        del data
        return False

    def names(self, record: Record) -> tuple[Raw | UnsetType, ...]:
        """Return the two fields by which hosts name a session."""
        return record.session_id, record.id

    def tells(self, under: Conversation) -> Messages:
        """Return what tells messages."""
        return Messages(under)
