"""What a page says of all sessions together, counted as they come, in memory that does not grow with them."""

from __future__ import annotations

from collections import Counter

from theodolite.core.reading import Cause
from theodolite.reports.document import SessionReport
from theodolite.reports.totals import Trouble, Watch

__all__ = ("TROUBLES", "Counts")

# Kinds of failure that are listed; whoever has more has one cause for them.
TROUBLES = 50


class Counts:
    """What could be seen, by whom, and what went wrong."""

    def __init__(self) -> None:
        self.sessions = 0
        self.undecided = 0
        self.events: Counter[str] = Counter()
        self.channels: Counter[str] = Counter()
        self.unset: Counter[str] = Counter()
        self.readers: Counter[str] = Counter()
        self.watches: dict[tuple[str, str], Watch] = {}
        self.troubles: dict[tuple[str, str, Cause], Trouble] = {}

    def add(self, session: SessionReport) -> None:
        """Count a session."""
        seen = session.coverage
        self.sessions += 1
        self.undecided += not any(sight.decides for sight in seen.detectors)
        self.events.update(seen.events)
        self.channels.update(seen.channels)
        self.unset.update(seen.unset)
        self.readers.update([session.reader] if session.reader else [])
        for sight in seen.detectors:
            fresh = Watch(detector=sight.detector, version=sight.version, decides=sight.decides, missing={})
            self.watches.setdefault((sight.detector, sight.version), fresh).add(sight)
        for signal in session.signals:
            if signal.cause is not None:
                self._failed(session, signal.detector, signal.version, signal.cause, signal.detail)

    def _failed(self, session: SessionReport, detector: str, version: str, cause: Cause, detail: str) -> None:
        key = (detector, version, cause)
        if key not in self.troubles and len(self.troubles) < TROUBLES:
            self.troubles[key] = Trouble(
                detector=detector, version=version, cause=cause, detail=detail, session=session.session_id
            )
        if key in self.troubles:
            self.troubles[key].times += 1
