"""The reader of our own recorded form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from msgspec.structs import replace

from theodolite.core.errors import EventError
from theodolite.core.event import AnyEvent, Channel, SessionEnded, Source
from theodolite.core.lines import content, first_keys, lines, session_name
from theodolite.core.reader import Recorded, Unreadable
from theodolite.core.recording import VERSION, check_header, decode_line

__all__ = ("EventLines",)


class EventLines:
    """Reads events, one a line, of any number of interleaved sessions.

    An event without a session belongs to one named after the file. Sessions that the file leaves open are ended at its
    end. Own events count only with a seal of `key`. A file of a newer version is not read at all, since its events may
    mean something else.
    """

    name = "theodolite-events"

    def __init__(self, key: bytes | None = None) -> None:
        self._key = key

    def detects(self, head: bytes) -> bool:
        """Whether our header begins here."""
        return content(head).startswith(b"{") and "theodolite" in first_keys(head)

    def read(self, stream: BinaryIO, file: str) -> Iterator[Recorded]:
        """Yield the events of each line. Holds one line, and the name of each open session."""
        under: dict[str, str] = {}
        headed = False
        for line in lines(stream, file):
            if isinstance(line, Unreadable):
                yield line
                continue
            try:
                if headed:
                    event = _named(decode_line(line.data, self._key), file)
                    _note(event, under)
                    yield event
                    continue
                headed = True
                version = check_header(line.data)
            except EventError as error:
                yield Unreadable(file=file, line=line.number, reason=str(error))
                continue
            if version > VERSION:
                newer = f"version {version} of this form, and up to {VERSION} can be read: upgrade theodolite"
                yield Unreadable(file=file, line=line.number, reason=newer)
                return
        for session, agent in under.items():
            yield SessionEnded(session=session, agent=agent, channel=Channel.CONTROL, source=Source.SYSTEM)


def _named(event: AnyEvent, file: str) -> AnyEvent:
    return event if event.session else replace(event, session=session_name(file))


def _note(event: AnyEvent, under: dict[str, str]) -> None:
    if isinstance(event, SessionEnded):
        under.pop(event.session, None)
    else:
        under[event.session] = event.agent
