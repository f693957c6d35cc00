"""The summary of sessions that documents hold: of one, of several, or of lines that have none."""

from __future__ import annotations

import math
from collections import Counter

from theodolite.core.policy import Outcome
from theodolite.reports.document import AskedReport, DetectorReport, SessionReport, Summary, TriageReport
from theodolite.reports.totals import LISTED, Watch
from theodolite.reports.triage import Standing

__all__ = ("Summing",)


class Summing:
    """Adds up sessions as they come, and what the summary of each document says beside them."""

    def __init__(self, version: str) -> None:
        self._version = version
        self._summaries: list[Summary] = []
        self._counts: Counter[Outcome | None] = Counter()
        self._findings: Counter[str] = Counter()
        self._standings: Counter[Standing] = Counter()
        self._events = self._calls = self._refused = 0
        self._inside = self._unread = 0
        self._watches: dict[tuple[str, str], Watch] = {}

    def add(self, session: SessionReport) -> None:
        """Add a session."""
        self._counts[session.counts_as] += 1
        self._standings.update(finding.standing for finding in session.findings)
        self._findings.update(finding.code for finding in session.findings if finding.standing is Standing.NEW)
        self._events += sum(session.coverage.events.values())
        self._calls += len(session.calls)
        self._refused += sum(not call.allowed for call in session.calls)
        self._inside += sum(part.parts for part in session.unreadable)
        self._unread += sum(part.parts for part in session.unreadable)
        for sight in session.coverage.detectors:
            fresh = Watch(detector=sight.detector, version=sight.version, decides=sight.decides)
            self._watches.setdefault((sight.detector, sight.version), fresh).add(sight)

    def close(self, summary: Summary | None) -> None:
        """Take the summary of a document, after its sessions; None for lines that have none."""
        if summary is not None:
            self._summaries.append(summary)
            self._unread += max(0, summary.unread - self._inside)
        self._inside = 0

    def summary(self) -> Summary:
        """Return the summary of them all."""
        parts = [part for summary in self._summaries for part in summary.unreadable]
        return Summary(
            version=_joined([summary.version for summary in self._summaries]) or self._version,
            calibration=_joined([summary.calibration or "" for summary in self._summaries]) or None,
            complete=all(summary.complete for summary in self._summaries),
            sessions=self._counts.total(),
            events=self._events,
            calls=self._calls,
            refused=self._refused,
            outcomes={outcome: self._counts[outcome] for outcome in Outcome},
            findings=dict(sorted(self._findings.items())),
            triage=self._triage(),
            detectors=tuple([_detector(watch) for watch in self._watches.values()]),
            asked=_asked([summary.asked for summary in self._summaries if summary.asked is not None]),
            unread=self._unread,
            unreadable=tuple(parts[:LISTED]),
        )

    def _triage(self) -> TriageReport:
        told = [summary.triage for summary in self._summaries]
        gone = [one.gone for one in told if one.gone is not None]
        return TriageReport(
            baseline=_joined([one.baseline for one in told]),
            suppressions=_joined([one.suppressions for one in told]),
            known=self._standings[Standing.KNOWN],
            suppressed=self._standings[Standing.SUPPRESSED],
            settled=self._counts[None],
            gone=sum(gone) if gone else None,
            expired=tuple([one for triage in told for one in triage.expired]),
            unused=tuple([one for triage in told for one in triage.unused]),
        )


def _asked(told: list[AskedReport]) -> AskedReport | None:
    if not told:
        return None
    costs = [one.cost for one in told if one.cost is not None]
    cost = math.fsum(costs) if len(costs) == len(told) else None
    return AskedReport(calls=sum(one.calls for one in told), tokens=sum(one.tokens for one in told), cost=cost)


def _joined(names: list[str]) -> str:
    return ", ".join(dict.fromkeys(filter(None, names)))


def _detector(watch: Watch) -> DetectorReport:
    return DetectorReport(
        detector=watch.detector,
        version=watch.version,
        decides=watch.decides,
        spoke=watch.spoke,
        failed=watch.failed,
        blind=watch.blind,
    )
