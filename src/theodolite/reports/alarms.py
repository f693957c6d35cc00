"""The alarms behind a finding of a session, and what they say in sentences for forms that have no more than text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct

from theodolite.core.reading import Evidence, Level
from theodolite.reports.document import FindingReport, SessionReport, SignalReport
from theodolite.reports.escaping import inert
from theodolite.reports.pages import meaning_of
from theodolite.reports.telling import CALLS, NAME, PASSAGES, PATH, PIECES, QUOTE
from theodolite.reports.triage import Standing
from theodolite.reports.wording import SURE

__all__ = (
    "Alarms",
    "Gathered",
    "alarms",
    "blindness",
    "codes",
    "fresh",
    "gathered",
    "how_sure",
    "old",
    "sentences",
    "worst",
)

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


def old(session: SessionReport) -> list[str]:
    """Return a line about each finding that is known or suppressed."""
    tools = {call.seq: call.tool for call in session.calls}
    lines: list[str] = []
    for finding in session.findings:
        if finding.standing is not Standing.NEW:
            more = f" and {len(finding.calls) - 1:,} more" if len(finding.calls) > 1 else ""
            why = f" until {inert(finding.expires, NAME)}: {inert(finding.reason, QUOTE)}" if finding.expires else ""
            calls = f"{_call(finding.calls[0], tools)}{more}" if finding.calls else ""
            names = f"{inert(finding.code, NAME)}, {calls}, {inert(finding.fingerprint, NAME)}"
            lines.append(f"{finding.standing}: {names}{why}")
    return lines


def blindness(session: SessionReport) -> str:
    """Return who could not judge a session."""
    blind = ", ".join([inert(name, NAME) for name in session.coverage.blind])
    return f"{blind} could not judge" if blind else "no detector that decides is switched on"


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


def how_sure(signal: SignalReport) -> str:
    """Return what a score is worth, in words."""
    score = "no score" if signal.score is None else f"score {signal.score:.2f}"
    graded = f" ({inert(signal.calibration, NAME)})" if signal.calibration else ""
    near = "; so near to the threshold that it may be chance" if signal.ambiguous else ""
    return f"{score}, {signal.level}, {signal.status}: {SURE[signal.status]}{graded}{near}"


def sentences(
    session: SessionReport,
    finding: FindingReport,
    signals: Sequence[SignalReport],
    pages: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[str]:
    """Yield what a finding means, its calls, its evidence, and how sure it is. `signals` are its alarms."""
    tools = {call.seq: call.tool for call in session.calls}
    code = inert(finding.code, NAME)
    yield f"{code}: {inert(meaning_of(finding.code, pages), QUOTE)}"
    calls = ", ".join([_call(seq, tools) for seq in finding.calls[:CALLS]])
    yield f"calls: {calls}{f' and {len(finding.calls) - CALLS:,} more' if len(finding.calls) > CALLS else ''}"
    yield from _evidence(signals, tools)
    said = worst(signals)
    if said is not None:
        yield f"how sure: {how_sure(said)}"
    yield f"known as: {inert(finding.fingerprint, NAME)}"
    yield f"more: theodolite explain {code}"


def _call(seq: int, tools: Mapping[int, str]) -> str:
    tool = tools.get(seq)
    return f"{inert(tool, NAME)} (event {seq})" if tool else f"event {seq}"


def _evidence(signals: Sequence[SignalReport], tools: Mapping[int, str]) -> Iterator[str]:
    held = gathered(signals)
    yield from [_passage(source, text) for source, text in held.passages[:PASSAGES]]
    yield from [_taken(_call(about, tools), source, paths) for about, source, paths in held.taken[:CALLS]]
    yield from [_piece(item) for item in held.other[:PIECES]]
    if len(held.passages) > PASSAGES or len(held.taken) > CALLS or len(held.other) > PIECES:
        yield "... and more evidence: --format json has all"


def _passage(source: int | None, text: str) -> str:
    if source is None:
        return "passage: none, nothing that was read explains the call, and the request does not either"
    if not text:
        return f"passage: event {source}, whose text was no longer held when the call came"
    return f'passage: event {source} says "{inert(text, QUOTE)}"'


def _taken(call: str, source: int | None, paths: Sequence[str]) -> str:
    more = f" and {len(paths) - CALLS} more" if len(paths) > CALLS else ""
    origin = "untrusted text" if source is None else f"event {source}"
    return f"taken: {', '.join([inert(path, PATH) for path in paths[:CALLS]])}{more} of {call}, from {origin}"


def _piece(item: Evidence) -> str:
    where = [inert(item.kind, NAME), *(f"event {seq}" for seq in item.seqs[:CALLS])]
    path = f", at {inert(item.path, PATH)}" if item.path else ""
    expected = f', expected "{inert(item.expected, QUOTE)}"' if item.expected else ""
    observed = f', observed "{inert(item.observed, QUOTE)}"' if item.observed else ""
    return f"evidence: {', '.join(where)}{path}{expected}{observed}"
