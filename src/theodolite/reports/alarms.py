"""The alarms behind the findings of a session, and their evidence, gathered from what a document has of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from theodolite.core.reading import Evidence, Level
from theodolite.reports.document import FindingReport, SessionReport, SignalReport
from theodolite.reports.triage import Standing

__all__ = ("Alarms", "Gathered", "alarms", "codes", "fresh", "gathered", "worst")

Alarms = Mapping[tuple[str, int], Sequence[SignalReport]]


def alarms(session: SessionReport) -> Alarms:
    """Return the alarms of a session by their code and the event that they rest on: those of a finding in one list."""
    found: dict[tuple[str, int], list[SignalReport]] = {}
    for signal in session.signals:
        if signal.level is not Level.CLEAR:
            first = signal.evidence[0].seqs if signal.evidence else ()
            found.setdefault((signal.code, first[0] if first else signal.about), []).append(signal)
    return found


def fresh(session: SessionReport) -> list[FindingReport]:
    """Return the findings of a session that are new: those that count."""
    return [finding for finding in session.findings if finding.standing is Standing.NEW]


def codes(session: SessionReport) -> str:
    """Return the codes of what is new in a session, each once."""
    return ", ".join(dict.fromkeys(finding.code for finding in fresh(session)))


class Gathered(Struct, frozen=True):
    """The evidence of some alarms, each piece once.

    `passages` have the event that a call follows, None for no event, and its text; `taken` the call, the event that
    values of it came from, and the places of those values; `other` is all else.
    """

    passages: list[tuple[int | None, str]]
    taken: list[tuple[int, int | None, list[str]]]
    other: list[Evidence]


def gathered(signals: Iterable[SignalReport]) -> Gathered:
    """Return the evidence of alarms. That of a kind `NAME.passage` is a passage, of `NAME.argument` a value."""
    passages: dict[tuple[int | None, str], None] = {}
    taken: dict[tuple[int, int | None], list[str]] = {}
    other: dict[Evidence, None] = {}
    for signal in signals:
        for item in signal.evidence:
            source = next((seq for seq in item.seqs if seq != signal.about), None)
            if item.kind.endswith(".passage"):
                passages[source, item.observed] = None
            elif item.kind.endswith(".argument"):
                taken.setdefault((signal.about, source), []).append(item.path)
            else:
                other[item] = None
    moved = [(about, source, paths) for (about, source), paths in taken.items()]
    return Gathered(list(passages), moved, list(other))


def worst(signals: Sequence[SignalReport]) -> SignalReport | None:
    """Return the first of the alarms that went furthest."""
    return max(signals, key=lambda signal: (signal.level is Level.STRONG, signal.score or 0.0), default=None)
