"""One cause, one finding, and the name by which it is known again."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from theodolite.core.policy import Action, Decision, highest
from theodolite.core.reading import Evidence, Level, Reading, Signal
from theodolite.core.text import printable
from theodolite.runtime.replay import Sighting

__all__ = ("SCHEME", "Alarm", "Finding", "findings")

SCHEME = "v1"
"""What a fingerprint begins with. It changes when the same finding would get another fingerprint."""

# Hex digits of a fingerprint: 128 bits, so that nobody meets two alike by chance. Our choice: it fits a line.
_DIGITS = 32

_ENCODER = msgspec.json.Encoder()


class Alarm(Struct, frozen=True, kw_only=True):
    """A signal that alarmed, the event that it is about, and what the decision asked for."""

    about: int
    signal: Signal
    action: Action = Action.LOG_ONLY


class Finding(Struct, frozen=True, kw_only=True):
    """Alarms of one code that rest on the same event. `source` is the seq of that event.

    `tools` are those of the events that alarmed, each once, sorted; an event that is no call has the tool "".

    `fingerprint` is equal for the same finding in every scan of the same session: `v1:` and the first 32 hex digits of
    the SHA-256 of a JSON list without spaces, in UTF-8. The list holds the code, the session's id, the agent, the type,
    source and tool of the event that it rests on (each "" where that is not known), for each tool of an event that
    alarmed, sorted, a list of its name and the sorted paths of its evidence, and last how many findings of this session
    with an equal list came before.
    """

    code: str
    source: int
    alarms: tuple[Alarm, ...]
    tools: tuple[str, ...] = ()
    fingerprint: str = ""

    @property
    def calls(self) -> tuple[int, ...]:
        """The seqs of the events that alarmed, each once, in order."""
        return tuple(dict.fromkeys(alarm.about for alarm in self.alarms))

    @property
    def worst(self) -> Alarm:
        """The first of the alarms that went furthest."""
        return max(self.alarms, key=lambda alarm: (alarm.signal.level is Level.STRONG, _score(alarm.signal)))

    @property
    def action(self) -> Action:
        """The highest action that was asked for where one of its alarms acts."""
        return highest(alarm.action for alarm in self.alarms if alarm.signal.acts)


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
                alarm = Alarm(about=decision.about, signal=signal, action=decision.action)
                causes.setdefault((signal.code, _source(alarm)), []).append(alarm)
    if not causes:
        return ()
    tools = {row.decision.about: printable(row.tool) for row in sighting.calls}
    alike = Counter[bytes]()
    found: list[Finding] = []
    for (code, source), alarms in causes.items():
        taken = _taken(alarms, tools)
        basis = [code, printable(sighting.session), printable(sighting.agent), *_rests(sighting, source), taken]
        key = _ENCODER.encode(basis)
        found.append(
            Finding(
                code=code,
                source=source,
                alarms=tuple(alarms),
                tools=tuple([name for name, _ in taken]),
                fingerprint=_fingerprint([*basis, alike[key]]),
            )
        )
        alike[key] += 1
    return tuple(found)


def _counts(signal: Signal, decision: Decision) -> bool:
    return signal.alarmed and (signal.finds or (signal.acts and decision.action is not Action.LOG_ONLY))


def _source(alarm: Alarm) -> int:
    evidence = _evidence(alarm)
    first = evidence[0].seqs if evidence else ()
    return first[0] if first else alarm.about


def _evidence(alarm: Alarm) -> tuple[Evidence, ...]:
    said = alarm.signal.said
    return said.evidence if isinstance(said, Reading) else ()


def _score(signal: Signal) -> float:
    return signal.said.score if isinstance(signal.said, Reading) else 0.0


def _rests(sighting: Sighting, source: int) -> tuple[str, str, str]:
    """Return the type, source and tool of the event that a finding rests on."""
    step = next((step for step in sighting.steps if step.seq == source), None)
    return ("", "", "") if step is None else (step.event, step.source.value, printable(step.tool))


def _taken(alarms: Sequence[Alarm], tools: Mapping[int, str]) -> list[tuple[str, list[str]]]:
    """Return the tools that alarmed, each with the places in its arguments that evidence names."""
    paths: dict[str, set[str]] = {}
    for alarm in alarms:
        named = {printable(item.path) for item in _evidence(alarm) if item.path}
        paths.setdefault(tools.get(alarm.about, ""), set()).update(named)
    return [(tool, sorted(paths[tool])) for tool in sorted(paths)]


def _fingerprint(basis: Sequence[object]) -> str:
    return f"{SCHEME}:{hashlib.sha256(_ENCODER.encode(basis)).hexdigest()[:_DIGITS]}"
