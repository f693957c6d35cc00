"""Recordings of conversations: bare lists of messages, objects that hold such lists, lists of these, one a line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO, Generic, Protocol, TypeVar

from msgspec import Raw, UnsetType
from msgspec.json import Decoder

from theodolite.core.errors import EventError
from theodolite.core.lines import decode, session_name
from theodolite.core.reader import Recorded, Unreadable
from theodolite.readers.conversations.conversation import Conversation
from theodolite.readers.conversations.pieces import Cut, Piece, pieces

__all__ = ("Form", "Telling", "conversations")

_BYTE = re.compile(r"\(byte (\d+)\)")
_NAME: Decoder[str | int | None] = Decoder(str | int | None)

_R = TypeVar("_R")
_R_contra = TypeVar("_R_contra", contravariant=True)


class Telling(Protocol[_R_contra]):
    """Folds what one form holds into the events of a conversation."""

    def message(self, data: bytes | Raw, line: int) -> None:
        """Tell the next message."""
        ...

    def record(self, record: _R_contra, line: int) -> Iterator[None]:
        """Tell a whole record; stops where what was found may be taken."""
        ...

    def end(self) -> None:
        """Tell the end."""
        ...


class Form(Protocol[_R]):
    """What tells one form of recorded conversations from another."""

    def opens(self, data: bytes) -> _R:
        """Return the record that an object is. Raises EventError with the reason why it is none."""
        ...

    def holds(self, data: bytes) -> bool:
        """Whether an element of a list is a record of its own, and no message."""
        ...

    def names(self, record: _R) -> tuple[Raw | UnsetType, ...]:
        """Return what may name the session of a record, the best first."""
        ...

    def tells(self, under: Conversation) -> Telling[_R]:
        """Return what tells a conversation."""
        ...


def conversations(stream: BinaryIO, file: str, form: Form[_R]) -> Iterator[Recorded]:
    """Yield the events of each conversation. Holds one message, or one object, and the names that were given.

    The first conversation is named after the file, a later one `file#line`, and one that begins on the line of another
    `file#line.2`. A name that a record gives goes before that; when it comes again, it is told apart in the same way.
    """
    names = _Names(file)
    listed: _Listed[_R] | None = None
    for piece in pieces(stream):
        if piece.cut is Cut.FAULT:
            names.begun = True
            session = listed.under.session if listed else ""
            yield Unreadable(file=file, line=piece.line, reason=piece.reason, session=session)
        elif piece.cut is Cut.LIST_BEGINS:
            listed = _Listed(form, Conversation(names.next(piece.line), file))
        elif piece.cut is Cut.LIST_ENDS and listed:
            yield from listed.end()
            listed = None
        elif piece.cut is Cut.ELEMENT and listed:
            if listed.holds(piece.data):
                name = listed.name or names.next(piece.line)
                listed.name = ""
                yield from _record(piece, form, names, name, file)
            else:
                yield from listed.message(piece)
        else:
            yield from _record(piece, form, names, names.next(piece.line), file)


class _Names:
    """Names for conversations, none of them twice unless the recording sees to it."""

    def __init__(self, file: str) -> None:
        self.begun = False
        self._file = session_name(file)
        self._given: set[str] = set()
        self._line = 0
        self._times = 0

    def next(self, line: int) -> str:
        """Return the name of a conversation that has none."""
        first, self.begun = not self.begun, True
        if first:
            return self._file
        self._times = self._times + 1 if line == self._line else 1
        self._line = line
        return f"{self._file}#{line}" if self._times == 1 else f"{self._file}#{line}.{self._times}"

    def said(self, name: str, place: str, line: int) -> str:
        """Return the name that a record gives; where it was given before, with the place of this one."""
        if name in self._given:
            return f"{name}{place.removeprefix(self._file)}" if place != self._file else f"{name}#{line}"
        self._given.add(name)
        return name


class _Listed(Generic[_R]):
    """A list under way: of messages, or of records, as its first element says."""

    def __init__(self, form: Form[_R], under: Conversation) -> None:
        self.under = under
        self.name = under.session  # for the first record, if it is a list of records
        self._form = form
        self._telling = form.tells(under)
        self._records: bool | None = None

    def holds(self, data: bytes) -> bool:
        """Whether an element is a record."""
        if self._records is None:
            self._records = self._form.holds(data)
        return self._records

    def message(self, piece: Piece) -> list[Recorded]:
        """Return the events of a message."""
        self._telling.message(piece.data, piece.line)
        return self.under.take()

    def end(self) -> list[Recorded]:
        """Return the end of the conversation, if it is one."""
        if not self._records:
            self._telling.end()
        return self.under.take()


def _record(piece: Piece, form: Form[_R], names: _Names, name: str, file: str) -> Iterator[Recorded]:
    try:
        record = form.opens(piece.data)
    except EventError as error:
        yield Unreadable(file=file, line=_line(piece, str(error)), reason=str(error))
        return
    try:
        said = next((name for name in map(_name, form.names(record)) if name), "")
    except EventError as error:
        said = ""
        yield Unreadable(file=file, line=piece.line, reason=f"session_id or id: {error}", session=name)
    under = Conversation(names.said(said, name, piece.line) if said else name, file)
    telling = form.tells(under)
    for _ in telling.record(record, piece.line):
        yield from under.take()
    telling.end()
    yield from under.take()


def _name(raw: Raw | UnsetType) -> str:
    said = decode(_NAME, raw) if isinstance(raw, Raw) else None
    return "" if said is None else str(said)


def _line(piece: Piece, reason: str) -> int:
    """Return the line of a fault: where its reason names a byte of the piece, the one on which that stands."""
    byte = _BYTE.search(reason)
    return piece.line + (piece.data.count(b"\n", 0, int(byte[1])) if byte else 0)
