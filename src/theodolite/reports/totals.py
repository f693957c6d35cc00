"""What a scan came to as a whole, counted as it goes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

from msgspec import Struct

from theodolite.core.coverage import Coverage, Sight
from theodolite.core.policy import Action, Outcome
from theodolite.core.reader import Unreadable
from theodolite.core.reading import Cause, Failure, Status
from theodolite.reports.document import SessionReport
from theodolite.reports.findings import Finding, findings
from theodolite.reports.triage import FRESH, Mark, Standing, Triaged, asked, left
from theodolite.runtime.population import PopulationState
from theodolite.runtime.purse import Spent
from theodolite.runtime.replay import Sighting

__all__ = ("Origin", "Report", "Run", "Totals", "Trouble", "Watch")

# Parts outside of any session that are kept to be listed; more are counted. Who has more has one cause for them.
LISTED = 1_000


class Origin(Struct, frozen=True, kw_only=True):
    """What a scan knows of a session beside what was judged of it.

    Where it was read: its file, and the name of the format, both empty where nobody knows. `marks` has the standing of
    each finding that is not new, by fingerprint.
    """

    file: str = ""
    reader: str = ""
    marks: Mapping[str, Mark] = MappingProxyType({})

    def mark(self, finding: Finding) -> Mark:
        """Return the standing of a finding."""
        return self.marks.get(finding.fingerprint, FRESH)


NOWHERE = Origin()


class Run(Struct, frozen=True, kw_only=True):
    """What a report has to say of the scan itself.

    `version` is that of this package, `calibration` the id of the artefact in use. `complete` is False when the
    scan was stopped before its end. `store` is where evidence was kept, if anywhere, and `records` how much of it.
    `asked` is what was used of models, None where nobody was there to be asked; of `repeatable` questions the
    answers to `known` were there already. `triage` is what told new findings from others. `thresholds` has the
    score from which each code alarmed. `population` is how the sessions compare with those that the artefact was fitted
    to, None where nobody watched that. `trusted` are the tools of which the settings say that nobody else writes
    what they return, `unmet` the names in `[tools]` that no session declares or calls.
    """

    version: str
    calibration: str | None = None
    complete: bool = True
    store: str = ""
    records: int = 0
    asked: Spent | None = None
    repeatable: int = 0
    known: int = 0
    triage: Triaged = Triaged()
    thresholds: Mapping[str, float] = MappingProxyType({})
    trusted: tuple[str, ...] = ()
    unmet: tuple[str, ...] = ()
    population: PopulationState | None = None


class Report(Protocol):
    """Writes what a scan comes to, in the order given. `end` is called once, when everything was added."""

    def add(self, item: Sighting | Unreadable, origin: Origin = NOWHERE) -> None:
        """Take a session and where it was read, or a part that belongs to none."""
        ...

    def end(self, totals: Totals, run: Run) -> None:
        """Write what is left to be written; `totals` were told the same."""
        ...


class Watch(Struct, kw_only=True):
    """What one version of a detector did over all sessions: answers, failures, sessions that it could not judge.

    `missing` counts, over the sessions that it could not judge, the event types that it reads and that never came.
    """

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
        for name in sight.missing if sight.blind else ():
            self.missing[name] = self.missing.get(name, 0) + 1


class Trouble(Struct, kw_only=True):
    """How often one version of a detector failed for one cause, and what it said the first time, in which session."""

    detector: str
    version: str
    cause: Cause
    detail: str
    session: str
    times: int = 0


class Totals:
    """Counts over sessions, as they were judged or as documents hold them, in memory that does not grow with them.

    `outcomes`, `actions` and `findings` count without the findings that are not new; `settled` are the sessions of
    which only such findings would count, and `standings` counts all findings by their standing. `statuses` counts all
    scores by what their threshold rests on. `actions` leaves out sessions of documents, which do not tell what each
    finding asks for.
    """

    def __init__(self) -> None:
        self.outcomes: Counter[Outcome] = Counter()
        self.actions: Counter[Action] = Counter()
        self.findings: Counter[str] = Counter()
        self.standings: Counter[Standing] = Counter()
        self.statuses: Counter[Status] = Counter()
        self.settled = 0
        self.calls = 0
        self.refused = 0
        self.events: Counter[str] = Counter()
        self.channels: Counter[str] = Counter()
        self.unset: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        self.readers: Counter[str] = Counter()
        self.undecided = 0
        self.unread = 0
        self.unreadable: list[Unreadable] = []
        self._watches: dict[tuple[str, str], Watch] = {}
        self._troubles: dict[tuple[str, str, Cause], Trouble] = {}

    @property
    def sessions(self) -> int:
        """How many sessions were judged."""
        return self.outcomes.total() + self.settled

    @property
    def watches(self) -> tuple[Watch, ...]:
        """What each version of each detector did. Versions are not added up."""
        return tuple(self._watches.values())

    @property
    def troubles(self) -> tuple[Trouble, ...]:
        """Who failed, and why."""
        return tuple(self._troubles.values())

    @property
    def unexplained(self) -> dict[str, int]:
        """How often who failed without a decision that says so: at the end of a session, say."""
        explained = Counter[str]()
        for trouble in self.troubles:
            explained[trouble.detector] += trouble.times if trouble.cause is not Cause.NO_EVIDENCE else 0
        return dict(self.failures - explained)

    def add(self, item: Sighting | SessionReport | Unreadable, origin: Origin = NOWHERE) -> None:
        """Count a session, or a part that belongs to none. A session of a document says itself where it was read."""
        if isinstance(item, Unreadable):
            self.unread += item.parts
            if len(self.unreadable) < LISTED:
                self.unreadable.append(item)
            return
        if isinstance(item, Sighting):
            self._judged(item, origin)
        else:
            self._told(item)
        self.calls += len(item.calls)
        self.unread += sum(part.parts for part in item.unreadable)
        self._covered(item.coverage)

    def _judged(self, item: Sighting, origin: Origin) -> None:
        self._came_to(left(item, origin.marks), origin.reader)
        self.actions[asked(item, origin.marks)] += 1
        self.refused += sum(not row.decision.allowed for row in item.calls)
        for finding in findings(item):
            self._found(finding.code, origin.mark(finding).standing)
        for decision in item.decisions:
            for signal in decision.signals:
                if isinstance(signal.said, Failure):
                    self._failed(item.session, signal.said)
                else:
                    self.statuses[signal.status] += 1

    def _told(self, item: SessionReport) -> None:
        self._came_to(item.counts_as, item.reader)
        self.refused += sum(not call.allowed for call in item.calls)
        for finding in item.findings:
            self._found(finding.code, finding.standing)
        for said in item.signals:
            if said.cause is not None:
                failure = Failure(detector=said.detector, version=said.version, cause=said.cause, detail=said.detail)
                self._failed(item.session_id, failure)
            else:
                self.statuses[said.status] += 1

    def _came_to(self, outcome: Outcome | None, reader: str) -> None:
        if outcome is None:
            self.settled += 1
        else:
            self.outcomes[outcome] += 1
        if reader:
            self.readers[reader] += 1

    def _found(self, code: str, standing: Standing) -> None:
        self.standings[standing] += 1
        if standing is Standing.NEW:
            self.findings[code] += 1

    def _covered(self, seen: Coverage) -> None:
        self.undecided += not any(sight.decides for sight in seen.detectors)
        self.events.update(seen.events)
        self.channels.update(seen.channels)
        self.unset.update(seen.unset)
        self.failures.update(seen.failures)
        for sight in seen.detectors:
            fresh = Watch(detector=sight.detector, version=sight.version, decides=sight.decides)
            self._watches.setdefault((sight.detector, sight.version), fresh).add(sight)

    def _failed(self, session: str, said: Failure) -> None:
        first = Trouble(
            detector=said.detector, version=said.version, cause=said.cause, detail=said.detail, session=session
        )
        self._troubles.setdefault((said.detector, said.version, said.cause), first).times += 1
