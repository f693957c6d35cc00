"""What there is to say of a session's findings, in sentences, for forms that have no more than text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from theodolite.core.reading import Evidence
from theodolite.reports.alarms import gathered, worst
from theodolite.reports.document import FindingReport, SessionReport, SignalReport
from theodolite.reports.escaping import inert
from theodolite.reports.limits import CALLS, NAME, PASSAGES, PATH, PIECES, QUOTE
from theodolite.reports.pages import explaining, meaning_of
from theodolite.reports.probe_words import lines
from theodolite.reports.shapes import about_shape, misfit, words
from theodolite.reports.triage import Standing
from theodolite.reports.words import SURE

__all__ = ("blindness", "how_sure", "old", "sentences")


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
        yield from [f"probe: {line.text}" for line in lines(said)]
        yield f"how sure: {how_sure(said)}"
    yield f"known as: {inert(finding.fingerprint, NAME)}"
    helping = explaining(finding.code, [] if said is None else [item.kind for item in said.evidence])
    yield f"more: {', '.join([f'theodolite explain {inert(code, NAME)}' for code in helping])}"


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
    if about_shape(item.kind) and words(item.kind.partition(".")[2]):
        return f"evidence: {misfit(item, item.seqs)}"
    where = [inert(item.kind, NAME), *(f"event {seq}" for seq in item.seqs[:CALLS])]
    path = f", at {inert(item.path, PATH)}" if item.path else ""
    expected = f', expected "{inert(item.expected, QUOTE)}"' if item.expected else ""
    observed = f', observed "{inert(item.observed, QUOTE)}"' if item.observed else ""
    return f"evidence: {', '.join(where)}{path}{expected}{observed}"
