"""What a scan came to as a whole, counted as it goes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from msgspec import Struct

from theodolite.core.coverage import Sight
from theodolite.core.policy import Outcome
from theodolite.core.reader import Unreadable
from theodolite.core.reading import Failure
from theodolite.reports.findings import findings
from theodolite.runtime.replay import Sighting

__all__ = ("Run", "Totals", "Watch")


class Run(Struct, frozen=True, kw_only=True):
    """What a report has to say of the scan itself.

    `version` is that of this package, `calibration` the id of the artefact in use. `complete` is False when the scan
    was stopped before its end.
    """

    version: str
    calibration: str | None = None
    complete: bool = True


class Watch(Struct, kw_only=True):
    """What one version of a detector did over all sessions: answers, failures, sessions that it could not judge."""

    detector: str
    version: str
    decides: bool
    spoke: int = 0
    failed: int = 0
    blind: int = 0
    missing: dict[str, int] = {}

    def add(self, sight: Sight) -> None:
        """Count one session."""
        self.spoke += sight.spoke
        self.failed += sight.failed
        self.blind += sight.blind
        for name in sight.missing:
            self.missing[name] = self.missing.get(name, 0) + 1


class Totals:
    """Counts over sessions, in memory that does not grow with them but for what could not be read."""

    def __init__(self) -> None:
        self.outcomes: Counter[Outcome] = Counter()
        self.findings: Counter[str] = Counter()
        self.failures: Counter[tuple[str, str, str]] = Counter()
        self.calls = 0
        self.refused = 0
        self.events: Counter[str] = Counter()
        self.channels: Counter[str] = Counter()
        self.unset: Counter[str] = Counter()
        self.unreadable: list[Unreadable] = []
        self._watches: dict[tuple[str, str], Watch] = {}

    @property
    def sessions(self) -> int:
        """How many sessions were judged."""
        return self.outcomes.total()

    @property
    def watches(self) -> tuple[Watch, ...]:
        """What each version of each detector did."""
        return tuple(self._watches.values())

    @property
    def unread(self) -> int:
        """How many parts could not be read, in sessions or outside of them."""
        return len(self.unreadable)

    def add(self, item: Sighting | Unreadable) -> None:
        """Count a session, or a part that belongs to none."""
        if isinstance(item, Unreadable):
            self.unreadable.append(item)
            return
        self.outcomes[item.outcome] += 1
        self.findings.update(finding.code for finding in findings(item))
        self.calls += len(item.calls)
        self.refused += sum(not row.decision.allowed for row in item.calls)
        self.unreadable.extend(item.unreadable)
        for counts, more in self._counts(item):
            counts.update(more)
        for sight in item.coverage.detectors:
            key = (sight.detector, sight.version)
            if key not in self._watches:
                self._watches[key] = Watch(detector=sight.detector, version=sight.version, decides=sight.decides)
            self._watches[key].add(sight)
        for decision in item.decisions:
            for signal in decision.signals:
                if isinstance(signal.said, Failure):
                    self.failures[signal.said.detector, signal.said.cause, signal.said.detail] += 1

    def _counts(self, item: Sighting) -> tuple[tuple[Counter[str], Mapping[str, int]], ...]:
        seen = item.coverage
        return (self.events, seen.events), (self.channels, seen.channels), (self.unset, seen.unset)
