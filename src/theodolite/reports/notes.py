"""What is noted of a session: scores over a threshold that are only shown, and are no part of a finding."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from theodolite.core.reading import Level, Reading, Signal, Status
from theodolite.reports.document import SessionReport
from theodolite.reports.escaping import inert
from theodolite.reports.findings import findings
from theodolite.reports.limits import NAME, SAID
from theodolite.reports.words import TRANSFER
from theodolite.runtime.replay import Sighting

__all__ = ("notable", "notes", "notes_of", "transfer")


class _Alarm(NamedTuple):
    """A score over its threshold: its code, the event that it is about, and what the threshold rests on."""

    code: str
    about: int
    score: float
    status: Status


def notable(signal: Signal) -> bool:
    """Whether an alarm is told to people without being asked for.

    One that counts always is. One that is only shown is where somebody measured how often its threshold is reached
    without reason: of an estimate a reader could not tell what it is worth.
    """
    return signal.finds or signal.acts or _measured(signal.status)


def notes(sighting: Sighting, *, every: bool = False) -> str:
    """Return in a line what is noted of a session, each code once with its highest score; nothing where nothing is.

    With `every` also what is over a threshold that nobody measured.
    """
    found = [
        _Alarm(signal.code, decision.about, signal.said.score, signal.status)
        for decision in sighting.decisions
        for signal in decision.signals
        if signal.alarmed and isinstance(signal.said, Reading)
    ]
    counted = {(one.code, seq) for one in findings(sighting) for seq in one.calls} if found else set[tuple[str, int]]()
    return _line([one for one in found if every or _measured(one.status)], counted)


def notes_of(session: SessionReport) -> str:
    """Return the same of a session as a document has it."""
    found = [
        _Alarm(signal.code, signal.about, signal.score, signal.status)
        for signal in session.signals
        if signal.level is not Level.CLEAR and signal.score is not None and _measured(signal.status)
    ]
    return _line(found, {(one.code, seq) for one in session.findings for seq in one.calls})


def transfer(statuses: Collection[Status]) -> str:
    """Return what a report notes of thresholds that were fitted on others' sessions; nothing where none graded a score.

    >>> transfer([Status.EXACT, Status.CALIBRATED])
    ''
    """
    own = Status.CALIBRATED in statuses  # what somebody's own sessions vouch for stands beside it
    return TRANSFER if Status.REFERENCE in statuses and not own else ""


def _measured(status: Status) -> bool:
    return status is not Status.UNCALIBRATED


def _line(found: Iterable[_Alarm], counted: set[tuple[str, int]]) -> str:
    highest: dict[str, float] = {}
    for one in found:
        if (one.code, one.about) not in counted:
            highest[one.code] = max(one.score, highest.get(one.code, 0.0))
    told = [f"{inert(code, NAME)} {score:.2f}" for code, score in highest.items()]
    more = f", and {len(told) - SAID} more" if len(told) > SAID else ""
    return f"noted {', '.join(told[:SAID])}{more}" if told else ""
