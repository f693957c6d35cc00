"""The summaries of documents, as that of one: of one document, of several, or of lines that have none."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec.structs import replace

from theodolite.reports.document import AskedReport, PopulationReport, SessionReport, Summary, TriageReport
from theodolite.reports.entries import summary
from theodolite.reports.totals import LISTED, Run, Totals

__all__ = ("Summaries",)


class Summaries:
    """Counts sessions as they come, and keeps what the summary of each document says beside them."""

    def __init__(self, version: str) -> None:
        self._version = version
        self._held: list[Summary] = []
        self._totals = Totals()
        self._before = self._outside = 0

    def add(self, session: SessionReport) -> None:
        """Count a session."""
        self._totals.add(session)

    def close(self, summary: Summary | None) -> None:
        """Take the summary of a document, after its sessions; None for lines that have none."""
        if summary is not None:
            self._held.append(summary)
            self._outside += max(0, summary.unread - (self._totals.unread - self._before))
        self._before = self._totals.unread

    def summary(self) -> Summary:
        """Return the summary of them all. Of a code with several thresholds it names none."""
        held = self._held
        whole = summary(
            self._totals,
            Run(
                version=_joined([one.version for one in held]) or self._version,
                calibration=_joined([one.calibration or "" for one in held]) or None,
                complete=all(one.complete for one in held),
                store=_joined([one.store for one in held]),
                records=sum(one.records for one in held),
                thresholds=_thresholds(held),
                trusted=tuple(sorted({name for one in held for name in one.trusted})),
                unmet=_unmet(held),
            ),
        )
        return replace(
            whole,
            triage=_triage(whole.triage, [one.triage for one in held]),
            asked=_asked([one.asked for one in held if one.asked is not None]),
            unread=whole.unread + self._outside,
            population=_population([one.population for one in held if one.population is not None]),
            unreadable=tuple([part for one in held for part in one.unreadable][:LISTED]),
        )


def _triage(counted: TriageReport, told: Sequence[TriageReport]) -> TriageReport:
    gone = [one.gone for one in told if one.gone is not None]
    return replace(
        counted,
        baseline=_joined([one.baseline for one in told]),
        suppressions=_joined([one.suppressions for one in told]),
        gone=sum(gone) if gone else None,
        expired=tuple([one for triage in told for one in triage.expired]),
        unused=tuple([one for triage in told for one in triage.unused]),
    )


def _asked(told: Sequence[AskedReport]) -> AskedReport | None:
    if not told:
        return None
    costs = [one.cost for one in told if one.cost is not None]
    cost = math.fsum(costs) if len(costs) == len(told) else None
    return AskedReport(
        calls=sum(one.calls for one in told),
        tokens=sum(one.tokens for one in told),
        cost=cost,
        repeatable=sum(one.repeatable for one in told),
        known=sum(one.known for one in told),
    )


def _population(told: Sequence[PopulationReport]) -> PopulationReport | None:
    """Return what the one scan told of it; of several one that is to calibrate anew, since no two can be added up."""
    found = [one for one in told if one.recalibrate] or (told if len(told) == 1 else [])
    return found[0] if found else None


def _thresholds(held: Sequence[Summary]) -> dict[str, float]:
    named: dict[str, set[float]] = {}
    for one in held:
        for code, threshold in one.thresholds.items():
            named.setdefault(code, set()).add(threshold)
    return {code: min(different) for code, different in named.items() if len(different) == 1}


def _unmet(held: Sequence[Summary]) -> tuple[str, ...]:
    """Return the names that none of the scans met."""
    first, *others = [set(one.unmet) for one in held] or [set[str]()]
    return tuple(sorted(first.intersection(*others)))


def _joined(names: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(filter(None, names)))
