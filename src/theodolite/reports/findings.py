"""One cause, one finding."""

from __future__ import annotations

from msgspec import Struct

from theodolite.core.policy import Action, Decision
from theodolite.core.reading import Level, Reading, Signal
from theodolite.runtime.replay import Sighting

__all__ = ("Alarm", "Finding", "findings")


class Alarm(Struct, frozen=True, kw_only=True):
    """A signal that alarmed, and the event that it is about."""

    about: int
    signal: Signal


class Finding(Struct, frozen=True, kw_only=True):
    """Alarms of one code that rest on the same event. `source` is the seq of that event."""

    code: str
    source: int
    alarms: tuple[Alarm, ...]

    @property
    def calls(self) -> tuple[int, ...]:
        """The seqs of the events that alarmed, each once, in order."""
        return tuple(dict.fromkeys(alarm.about for alarm in self.alarms))

    @property
    def worst(self) -> Alarm:
        """The first of the alarms that went furthest."""
        return max(self.alarms, key=lambda alarm: (alarm.signal.level is Level.STRONG, _score(alarm.signal)))


def findings(sighting: Sighting) -> tuple[Finding, ...]:
    """Return the findings of a session in the order in which their first alarms came.

    An alarm counts when its code finds, or when it acts and the decision asks for more than a log entry. It rests on
    the first event that its first evidence names: several calls that follow one injected passage are one finding.
    Without evidence an alarm rests on the event that it is about.
    """
    causes: dict[tuple[str, int], list[Alarm]] = {}
    for decision in sighting.decisions:
        for signal in decision.signals:
            if _counts(signal, decision):
                alarm = Alarm(about=decision.about, signal=signal)
                causes.setdefault((signal.code, _source(alarm)), []).append(alarm)
    return tuple([Finding(code=code, source=source, alarms=tuple(held)) for (code, source), held in causes.items()])


def _counts(signal: Signal, decision: Decision) -> bool:
    return signal.alarmed and (signal.finds or (signal.acts and decision.action is not Action.LOG_ONLY))


def _source(alarm: Alarm) -> int:
    said = alarm.signal.said
    first = said.evidence[0].seqs if isinstance(said, Reading) and said.evidence else ()
    return first[0] if first else alarm.about


def _score(signal: Signal) -> float:
    return signal.said.score if isinstance(signal.said, Reading) else 0.0
