"""The reader of Chat Completions recordings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from msgspec import Raw

from theodolite.core.errors import EventError
from theodolite.core.lines import content, decode, first_keys, session_name
from theodolite.core.reader import Recorded, Unreadable
from theodolite.readers.openai_chat.conversation import Conversation
from theodolite.readers.openai_chat.form import ITEMS, NAME, RECORD, Record
from theodolite.readers.openai_chat.pieces import Cut, Piece, pieces

__all__ = ("OpenAIChat",)

_BYTE = re.compile(r"\(byte (\d+)\)")


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

        A `system` beside the messages is the form of another vendor.
        """
        keys = first_keys(head)
        if content(head).startswith(b"["):
            return "role" in keys
        return "messages" in keys and "system" not in keys

    def read(self, stream: BinaryIO, file: str) -> Iterator[Recorded]:
        """Yield the events of each conversation. Holds one message, or one object, and the names that were given."""
        under: Conversation | None = None
        name = session_name(file)
        given: set[str] = set()
        for place, piece in enumerate(pieces(stream)):
            if piece.cut is Cut.ELEMENT and under:
                yield from under.message(piece.data, piece.line)
            elif piece.cut is Cut.FAULT:
                session = under.session if under else ""
                yield Unreadable(file=file, line=piece.line, reason=piece.reason, session=session)
            elif piece.cut is Cut.LIST_ENDS and under:
                yield from under.end()
                under = None
            else:
                session = f"{name}#{piece.line}" if place else name
                if piece.cut is Cut.LIST_BEGINS:
                    under = Conversation(session, file)
                else:
                    yield from _record(piece, session, given, file)


def _record(piece: Piece, name: str, given: set[str], file: str) -> Iterator[Recorded]:
    try:
        record = decode(RECORD, piece.data)
        messages = decode(ITEMS, record.messages) if isinstance(record.messages, Raw) else None
    except EventError as error:
        yield Unreadable(file=file, line=_line(piece, str(error)), reason=str(error))
        return
    if messages is None:
        yield Unreadable(file=file, line=piece.line, reason="an object without messages")
        return
    try:
        said = _said_name(record)
        if said:
            name = f"{said}#{piece.line}" if said in given else said
            given.add(said)
    except EventError as error:
        yield Unreadable(file=file, line=piece.line, reason=f"session_id or id: {error}", session=name)
    conversation = Conversation(name, file)
    yield from conversation.begin(record, piece.line)
    for message in messages:
        yield from conversation.message(message, piece.line)
    yield from conversation.end()


def _line(piece: Piece, reason: str) -> int:
    """Return the line of a fault: where its reason names a byte of the piece, the one on which that stands."""
    byte = _BYTE.search(reason)
    return piece.line + (piece.data.count(b"\n", 0, int(byte[1])) if byte else 0)


def _said_name(record: Record) -> str:
    for raw in (record.session_id, record.id):
        said = decode(NAME, raw) if isinstance(raw, Raw) else None
        if said not in {None, ""}:
            return str(said)
    return ""
