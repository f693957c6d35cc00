"""What probes came to, for people: the two answers side by side, and how little or much they say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from theodolite.core.reading import Evidence, Failure, Reading, Signal
from theodolite.reports.document import ProbedReport, ProbeVerdict, SignalReport
from theodolite.reports.entries import signal_report
from theodolite.reports.escaping import inert
from theodolite.reports.layout import Block, Heading, Paragraph, Span, Style, Table, counted
from theodolite.reports.limits import NAME, QUOTE
from theodolite.reports.probe_words import (
    BASELINE,
    Line,
    answered_by,
    answers,
    compares,
    difference,
    known_of,
    lines,
    word,
)
from theodolite.runtime.purse import Spent
from theodolite.runtime.replay import Sighting

__all__ = ("DETECTOR", "probe_blocks", "probe_lines", "probe_signals", "used", "verdict_blocks")

DETECTOR = "behavior"

# Who gives a second opinion on a probe: what it says has the code of the probe.
_SECOND = "triangulation"
_SPEAK = frozenset({DETECTOR, _SECOND})
_ARMS = ("clean shadow", "this session")
_SESSION = "behavior.session"
# Characters of a reason that has one line.
_REASON = 60
_STYLES = {ProbeVerdict.DRIFT_FOUND: Style.BAD, ProbeVerdict.NOTHING_FOUND: Style.GOOD}


def probe_signals(sighting: Sighting) -> tuple[Signal, ...]:
    """Return what the probes of a session came to, second opinions too."""
    signals = (signal for decision in sighting.decisions for signal in decision.signals)
    return tuple([signal for signal in signals if signal.said.detector in _SPEAK])


def probe_blocks(sighting: Sighting) -> Iterator[Block]:
    """Yield each probe of a session with both answers, field by field, and what they are worth."""
    yield from _probes(sighting, _whole)


def probe_lines(sighting: Sighting) -> Iterator[Block]:
    """Yield each probe of a session in short: of both answers the first field and how the reason begins, in a line."""
    yield from _probes(sighting, _briefly)


def verdict_blocks(probed: ProbedReport | None) -> Iterator[Block]:
    """Yield what the probes of a session came to together, in a line."""
    if probed is not None:
        words, _, why = probed.text.partition(": ")
        yield Paragraph((Span(words, _STYLES.get(probed.verdict, Style.WARN)), Span(f": {why}")))


def used(spent: Spent, *, repeatable: int = 0, known: int = 0) -> str:
    """Return in words what was used of models, and how many answers were known already."""
    cost = f"cost unknown: {inert(spent.unpriced, NAME)} has no price" if spent.unpriced else f"cost {spent.cost:,.4f}"
    return f"{counted(spent.calls, 'call')}, {counted(spent.tokens, 'token')}, {cost}{known_of(repeatable, known)}"


def _probes(sighting: Sighting, told: Callable[[SignalReport], Iterator[Block | Line]]) -> Iterator[Block]:
    yield Heading((Span("Probe of session "), Span(inert(sighting.session, QUOTE), Style.STRONG)))
    if not probe_signals(sighting):
        yield Paragraph((Span("it was not probed", Style.WARN),))
    said: set[Line] = set()
    for decision in sighting.decisions:
        signals = [signal for signal in decision.signals if signal.said.detector in _SPEAK]
        reports = [signal_report(signal, decision.seq, decision.about) for signal in signals]
        answered = any(map(compares, reports))
        who: Line | None = None
        for signal, report in zip(signals, reports, strict=True):
            if isinstance(signal.said, Reading):
                yield from _unsaid(told(report), said)
                who = answered_by(report) if report.models else who
            else:
                yield _failure(signal.said, answered=answered)
        yield from _unsaid([] if who is None else [who], said)


def _unsaid(told: Iterable[Block | Line], said: set[Line]) -> Iterator[Block]:
    """Yield what is told of a probe, without what need not be said again of the session."""
    for one in told:
        if not isinstance(one, Line):
            yield one
        elif not one.once or one not in said:
            said.add(one)
            yield Paragraph((Span(one.text, Style.WARN if one.warns else Style.PLAIN),))


def _briefly(signal: SignalReport) -> Iterator[Block | Line]:
    fields = [item for item in answers(signal) if item.path != "reasoning"]
    reason = next((item for item in answers(signal) if item.path == "reasoning"), None)
    if signal.code != _SESSION:
        # What is decided says most in a line, whichever field weighs most.
        first = next((item for item in fields if item.path == "decision"), fields[0] if fields else None)
        if first is not None:
            yield _pair(first, reason)
        differ = [inert(item.path, NAME) for item in fields if item.expected != item.observed]
        told = f"they differ in {len(differ)} of {counted(len(fields), 'field')}"
        yield Paragraph((Span(f"{told}{': ' * bool(differ)}{', '.join(differ)}"),))
    first_line = next(lines(signal), None)
    if first_line is not None:
        yield first_line


def _pair(first: Evidence, reason: Evidence | None) -> Table:
    why = ("", "") if reason is None else (reason.expected, reason.observed)
    rows = [
        (Span(who), Span(inert(said, NAME)), Span(f'"{inert(text, _REASON)}"', Style.QUOTED))
        for who, said, text in zip(_ARMS, (first.expected, first.observed), why, strict=True)
    ]
    return Table(("answer", inert(first.path, NAME), "says why"), tuple(rows))


def _whole(signal: SignalReport) -> Iterator[Block | Line]:
    told = answers(signal)
    fields = [item for item in told if item.path != "reasoning"]
    if fields:
        yield _table(fields, word(signal, "baseline"))
    for item in told:
        if item.path == "reasoning":
            for who, text in zip(_ARMS, (item.expected, item.observed), strict=True):
                quoted = Span(f'"{inert(text, QUOTE)}"', Style.QUOTED)
                yield Paragraph((Span(f"{who} says why: "), quoted))
    yield from lines(signal)


def _table(fields: Sequence[Evidence], baseline: str) -> Table:
    """Return the answers side by side; `baseline` is what an instance without context decides, if one was asked."""
    head = ("field", *_ARMS, BASELINE, "") if baseline else ("field", *_ARMS, "")
    rows: list[tuple[Span, ...]] = []
    for item in fields:
        cells = [Span(inert(text, QUOTE)) for text in (item.path, item.expected, item.observed)]
        if baseline:
            cells.append(Span(baseline if item.path == "decision" else ""))
        told = difference(item)
        rows.append((*cells, Span("") if told == "same" else Span(told, Style.WARN)))
    return Table(head, tuple(rows))


def _failure(failure: Failure, *, answered: bool) -> Paragraph:
    """Return why something is not known: all of a probe, or, where it was `answered`, a part of it."""
    cause = failure.cause.replace("_", " ")
    missing = "no answer"
    if failure.detector == _SECOND:
        missing = "no second opinion"
    elif answered:
        missing = "not all of it is known"
    return Paragraph((Span(f"{missing} ({cause}): {inert(failure.detail, QUOTE)}", Style.WARN),))
