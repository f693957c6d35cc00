"""The reader of Responses recordings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from msgspec import Raw, UnsetType

from theodolite.core.errors import EventError
from theodolite.core.lines import decode
from theodolite.core.reader import Recorded
from theodolite.readers.conversations.conversation import Conversation
from theodolite.readers.conversations.marks import marks
from theodolite.readers.conversations.records import conversations
from theodolite.readers.openai_responses.form import INPUT, RECORD, Record
from theodolite.readers.openai_responses.items import Items

__all__ = ("OpenAIResponses",)


class OpenAIResponses:
    """Reads lists of items.

    They may be bare, under `input` of a request, under `output` of a response, or a `request` with its `response`; one
    of these a line, or a list of several. A bare list is read item by item, an object as a whole. Sessions are named as
    by the reader of Chat Completions. Each request is a session of its own: what it refers to by
    `previous_response_id` or a conversation is told as an earlier turn without text. What ran at OpenAI is told as a
    call and its result, on the provider's channel; a result that the host did not ask for has no text.
    """

    name = "openai-responses"

    def detects(self, head: bytes) -> bool:
        """Whether what begins here has items, parts or fields that only this form has."""
        return self.name in marks(head)

    def read(self, stream: BinaryIO, file: str) -> Iterator[Recorded]:
        """Yield the events of each conversation. Holds one item, or one object, and the names that were given."""
        return conversations(stream, file, _Responses())


class _Responses:
    """The form of Responses recordings."""

    def opens(self, data: bytes) -> Record:
        """Return a request, a response, or a pair."""
        record = decode(RECORD, data)
        if isinstance(record.type, Raw):
            raise EventError("an item that stands alone, where a list of items, a request or a response is expected")
        asked = decode(RECORD, record.request) if isinstance(record.request, Raw) else record
        holds = asked.input if isinstance(asked.input, Raw) else record.output
        if not isinstance(holds, Raw) or decode(INPUT, holds) is None:
            raise EventError("an object without input or output")
        return record

    def holds(self, data: bytes) -> bool:
        """Whether an element of a list is a request, a response or a pair, and no item."""
        try:
            record = decode(RECORD, data)
        except EventError:
            return False
        held = (record.input, record.output, record.request)
        return isinstance(record.type, UnsetType) and any(isinstance(each, Raw) for each in held)

    def names(self, record: Record) -> tuple[Raw | UnsetType, ...]:
        """Return the two fields by which hosts name a session."""
        return record.session_id, record.id

    def tells(self, under: Conversation) -> Items:
        """Return what tells items."""
        return Items(under)
