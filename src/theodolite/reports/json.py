"""JSON: one document, or one session a line as they come."""

from __future__ import annotations

from typing import BinaryIO

import msgspec

from theodolite.core.reader import Unreadable
from theodolite.reports.entries import session_report, summary
from theodolite.reports.escaping import ascii_json
from theodolite.reports.totals import NOWHERE, Origin, Run, Totals
from theodolite.runtime.replay import Sighting

__all__ = ("JSONLinesReport", "JSONReport", "encoded")

_ENCODER = msgspec.json.Encoder()


class JSONReport:
    """Writes one Document. Each session is written as it comes and then forgotten."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._begun = False

    def add(self, item: Sighting | Unreadable, origin: Origin = NOWHERE) -> None:
        """Write a session."""
        if isinstance(item, Sighting):
            self._stream.write(b",\n" if self._begun else b'{"schema":1,"sessions":[\n')
            self._stream.write(encoded(session_report(item, origin)))
            self._begun = True

    def end(self, totals: Totals, run: Run) -> None:
        """Write the summary, which makes the document whole."""
        self._stream.write(b"\n" if self._begun else b'{"schema":1,"sessions":[')
        self._stream.write(b'],"summary":%b}\n' % encoded(summary(totals, run)))


class JSONLinesReport:
    """Writes one SessionReport a line, at once. What belongs to no session has no line."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def add(self, item: Sighting | Unreadable, origin: Origin = NOWHERE) -> None:
        """Write a session."""
        if isinstance(item, Sighting):
            self._stream.write(encoded(session_report(item, origin)) + b"\n")
            self._stream.flush()

    def end(self, totals: Totals, run: Run) -> None:
        """Write nothing more."""
        del totals, run


def encoded(value: object) -> bytes:
    """Return a value as one line of JSON in plain ASCII."""
    return ascii_json(_ENCODER.encode(value))
