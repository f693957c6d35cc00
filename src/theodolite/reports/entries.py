"""The entries of a document: what it says of a session and of a scan, made from what was judged."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from theodolite.core.intent import ArgumentOrigin
from theodolite.core.policy import Outcome
from theodolite.core.reader import Unreadable
from theodolite.core.reading import Evidence, Fact, Failure, Reading, Signal
from theodolite.core.text import printable
from theodolite.reports.document import (
    ArgumentReport,
    AskedReport,
    CallReport,
    DetectorReport,
    Document,
    FactReport,
    FindingReport,
    GoalReport,
    PopulationReport,
    SessionReport,
    SignalReport,
    StepReport,
    Summary,
    SuppressionReport,
    TriageReport,
    UnreadableReport,
)
from theodolite.reports.findings import Finding, findings
from theodolite.reports.probe_verdict import came_to
from theodolite.reports.reasons import reasons, score
from theodolite.reports.totals import NOWHERE, Origin, Run, Totals
from theodolite.reports.triage import Standing, Suppression, left
from theodolite.runtime.population import PopulationState
from theodolite.runtime.purse import Spent
from theodolite.runtime.replay import CallRow, Goal, Sighting, Step

__all__ = ("call_report", "document", "goal_report", "session_report", "signal_report", "step_report", "summary")


def document(items: Iterable[Sighting | Unreadable], run: Run) -> Document:
    """Return the document of a scan. Sessions stand in the order given.

    >>> document([], Run(version="1.0")).summary.outcomes[Outcome.CLEAN]
    0
    """
    totals = Totals()
    sessions: list[SessionReport] = []
    for item in items:
        totals.add(item)
        if isinstance(item, Sighting):
            sessions.append(session_report(item))
    return Document(sessions=tuple(sessions), summary=summary(totals, run))


def session_report(sighting: Sighting, origin: Origin = NOWHERE) -> SessionReport:
    """Return what a document says of one session that was read there."""
    return SessionReport(
        session_id=printable(sighting.session),
        agent_id=printable(sighting.agent),
        file=printable(origin.file),
        reader=printable(origin.reader),
        outcome=sighting.outcome,
        counts_as=left(sighting, origin.marks),
        action=sighting.action,
        coverage=replace(sighting.coverage, unreadable=sum(part.parts for part in sighting.unreadable)),
        calls=tuple(map(call_report, sighting.calls)),
        signals=tuple(
            [signal_report(signal, made.seq, made.about) for made in sighting.decisions for signal in made.signals]
        ),
        findings=tuple([_finding(finding, origin) for finding in findings(sighting)]),
        steps=tuple(map(step_report, sighting.steps)),
        unreadable=tuple(map(_unreadable, sighting.unreadable)),
        goals=tuple(map(goal_report, sighting.goals)),
        probed=came_to(sighting),
    )


def summary(totals: Totals, run: Run) -> Summary:
    """Return what a document says of the scan as a whole."""
    return Summary(
        version=run.version,
        calibration=None if run.calibration is None else printable(run.calibration),
        complete=run.complete,
        sessions=totals.sessions,
        events=totals.events.total(),
        calls=totals.calls,
        refused=totals.refused,
        outcomes={outcome: totals.outcomes[outcome] for outcome in Outcome},
        findings=dict(sorted(totals.findings.items())),
        triage=_triage(totals, run),
        detectors=tuple(
            [
                DetectorReport(
                    detector=watch.detector,
                    version=watch.version,
                    decides=watch.decides,
                    spoke=watch.spoke,
                    failed=watch.failed,
                    blind=watch.blind,
                )
                for watch in totals.watches
            ]
        ),
        asked=None if run.asked is None else _asked(run.asked, run),
        store=printable(run.store),
        records=run.records,
        thresholds=dict(sorted(run.thresholds.items())),
        unread=totals.unread,
        unreadable=tuple(map(_unreadable, totals.unreadable)),
        trusted=tuple(map(printable, run.trusted)),
        unmet=tuple(map(printable, run.unmet)),
        population=None if run.population is None else _population(run.population),
    )


def _population(state: PopulationState) -> PopulationReport:
    return PopulationReport(
        sessions=state.sessions,
        e_value=state.e_value,
        recalibrate=state.recalibrate,
        direction=state.direction,
    )


def _asked(spent: Spent, run: Run) -> AskedReport:
    cost = None if spent.unpriced else spent.cost
    return AskedReport(calls=spent.calls, tokens=spent.tokens, cost=cost, repeatable=run.repeatable, known=run.known)


def goal_report(goal: Goal) -> GoalReport:
    """Return what a document says of what the user asked for."""
    return GoalReport(seq=goal.seq, text=printable(goal.text))


def call_report(row: CallRow) -> CallReport:
    """Return what a document says of a call."""
    made = row.decision
    marks = dict.fromkeys(s.code for s in made.signals if s.alarmed or isinstance(s.said, Failure))
    return CallReport(
        seq=made.about,
        tool=printable(row.tool),
        score=score(made.signals),
        allowed=made.allowed,
        signals=tuple(marks),
        arguments=None if row.origins is None else tuple(map(_argument, row.origins)),
        reasons=reasons(made.signals),
    )


def _argument(item: ArgumentOrigin) -> ArgumentReport:
    return ArgumentReport(
        path=printable(item.path),
        role=item.role,
        origin=item.origin,
        seq=item.seq,
        start=item.start,
        end=item.end,
        within=item.within,
    )


def signal_report(signal: Signal, seq: int, about: int) -> SignalReport:
    """Return what a document says of a signal: the event `seq` brought it, and it judges the one `about`."""
    said = signal.said
    reading = said if isinstance(said, Reading) else None
    failure = said if isinstance(said, Failure) else None
    return SignalReport(
        seq=seq,
        about=about,
        detector=said.detector,
        version=said.version,
        code=signal.code,
        score=reading.score if reading else None,
        level=signal.level,
        status=signal.status,
        ambiguous=signal.ambiguous,
        finds=signal.finds,
        calibration=None if signal.calibration is None else printable(signal.calibration),
        models=tuple(map(printable, reading.models)) if reading else (),
        surrogate=reading.surrogate if reading else False,
        evidence=tuple(map(_evidence, reading.evidence)) if reading else (),
        cause=failure.cause if failure else None,
        detail=printable(failure.detail) if failure else "",
        facts=tuple(map(_fact, reading.facts)) if reading and reading.models else (),
    )


def _fact(fact: Fact) -> FactReport:
    value = fact.value
    return FactReport(name=fact.name, value=printable(value) if isinstance(value, str) else value)


def _evidence(item: Evidence) -> Evidence:
    return replace(
        item, path=printable(item.path), expected=printable(item.expected), observed=printable(item.observed)
    )


def _finding(finding: Finding, origin: Origin) -> FindingReport:
    mark = origin.mark(finding)
    return FindingReport(
        code=finding.code,
        source=finding.source,
        calls=finding.calls,
        fingerprint=finding.fingerprint,
        standing=mark.standing,
        reason=printable(mark.reason),
        expires=None if mark.expires is None else mark.expires.isoformat(),
    )


def _triage(totals: Totals, run: Run) -> TriageReport:
    return TriageReport(
        baseline=printable(run.triage.baseline),
        suppressions=printable(run.triage.suppressions),
        known=totals.standings[Standing.KNOWN],
        suppressed=totals.standings[Standing.SUPPRESSED],
        settled=totals.settled,
        gone=run.triage.gone,
        expired=tuple(map(_suppression, run.triage.expired)),
        unused=tuple(map(_suppression, run.triage.unused)),
    )


def _suppression(item: Suppression) -> SuppressionReport:
    return SuppressionReport(
        entry=item.entry,
        names=printable(item.names),
        reason=printable(item.reason),
        expires=item.expires.isoformat(),
    )


def step_report(step: Step) -> StepReport:
    """Return what a document says of an event."""
    return StepReport(seq=step.seq, turn=step.turn, event=step.event, source=step.source, tool=printable(step.tool))


def _unreadable(item: Unreadable) -> UnreadableReport:
    return UnreadableReport(file=printable(item.file), line=item.line, reason=printable(item.reason), parts=item.parts)
