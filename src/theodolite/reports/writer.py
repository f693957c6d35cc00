"""The port of the forms that are made from sessions as documents have them: of a scan, or of one that was kept."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

from theodolite.core.reader import Unreadable
from theodolite.reports.document import SessionReport, Summary
from theodolite.reports.entries import session_report, summary
from theodolite.reports.totals import NOWHERE, Origin, Run, Totals
from theodolite.runtime.replay import Sighting

__all__ = ("Writer", "WriterReport")


class Writer(Protocol):
    """Writes sessions in the order given, and what they came to. `end` is called once, after the last."""

    def add(self, session: SessionReport, thresholds: Mapping[str, float] = MappingProxyType({})) -> None:
        """Take a session, and the scores from which codes alarmed in it, where they are known."""
        ...

    def end(self, summary: Summary) -> None:
        """Write what is left to be written."""
        ...


class WriterReport:
    """The report of a scan in the form of a writer. `thresholds` are the scores from which codes alarm in it."""

    def __init__(self, writer: Writer, *, thresholds: Mapping[str, float] = MappingProxyType({})) -> None:
        self._writer = writer
        self._thresholds = thresholds

    def add(self, item: Sighting | Unreadable, origin: Origin = NOWHERE) -> None:
        """Take a session and where it was read. What belongs to no session stands in the summary."""
        if isinstance(item, Sighting):
            self._writer.add(session_report(item, origin), self._thresholds)

    def end(self, totals: Totals, run: Run) -> None:
        """Write what is left to be written."""
        self._writer.end(summary(totals, run))
