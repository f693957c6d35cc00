"""What probes came to, for people: the two answers side by side, and how little or much they say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from theodolite.core.reading import Evidence, Failure, Reading, Signal
from theodolite.reports.escaping import inert
from theodolite.reports.layout import Block, Heading, Paragraph, Span, Style, Table, counted
from theodolite.reports.limits import NAME, QUOTE
from theodolite.runtime.purse import Spent
from theodolite.runtime.replay import Sighting

__all__ = ("DETECTOR", "probe_blocks", "probe_lines", "probe_signals", "used")

DETECTOR = "behavior"

_ARMS = ("clean shadow", "this session")
# Characters of a reason that has one line.
_REASON = 60


def probe_signals(sighting: Sighting) -> tuple[Signal, ...]:
    """Return what the probes of a session came to."""
    signals = (signal for decision in sighting.decisions for signal in decision.signals)
    return tuple([signal for signal in signals if signal.said.detector == DETECTOR])


def probe_blocks(sighting: Sighting) -> Iterator[Block]:
    """Yield each probe of a session with both answers, field by field."""
    yield from _probes(sighting, _answers)


def probe_lines(sighting: Sighting) -> Iterator[Block]:
    """Yield each probe of a session in short: of both answers the first field and how the reason begins, in a line."""
    yield from _probes(sighting, _briefly)


def _probes(sighting: Sighting, told: Callable[[Reading], Iterator[Block]]) -> Iterator[Block]:
    signals = probe_signals(sighting)
    yield Heading((Span("Probe of session "), Span(inert(sighting.session, QUOTE), Style.STRONG)))
    if not signals:
        yield Paragraph((Span("it was not probed", Style.WARN),))
    for signal in signals:
        if isinstance(signal.said, Failure):
            yield _failure(signal.said)
        else:
            yield from told(signal.said)
            yield from _worth(signal, signal.said)


def used(spent: Spent) -> str:
    """Return in words what was used of models."""
    cost = f"cost unknown: {inert(spent.unpriced, NAME)} has no price" if spent.unpriced else f"cost {spent.cost:,.4f}"
    return f"{counted(spent.calls, 'call')}, {counted(spent.tokens, 'token')}, {cost}"


def _briefly(said: Reading) -> Iterator[Block]:
    fields = [item for item in said.evidence if item.path != "reasoning"]
    reason = next((item for item in said.evidence if item.path == "reasoning"), None)
    if fields:
        first = fields[0]
        why = ("", "") if reason is None else (reason.expected, reason.observed)
        rows = [
            (Span(who), Span(inert(word, NAME)), Span(f'"{inert(text, _REASON)}"', Style.QUOTED))
            for who, word, text in zip(_ARMS, (first.expected, first.observed), why, strict=True)
        ]
        yield Table(("answer", inert(first.path, NAME), "says why"), tuple(rows))
    differ = [inert(item.path, NAME) for item in fields if item.expected != item.observed]
    told = f"they differ in {len(differ)} of {counted(len(fields), 'field')}"
    yield Paragraph((Span(f"{told}{': ' * bool(differ)}{', '.join(differ)}"),))


def _answers(said: Reading) -> Iterator[Block]:
    fields = [item for item in said.evidence if item.path != "reasoning"]
    yield Table(("field", *_ARMS, ""), tuple(_rows(fields)))
    for item in said.evidence:
        if item.path == "reasoning":
            for who, text in zip(_ARMS, (item.expected, item.observed), strict=True):
                quoted = Span(f'"{inert(text, QUOTE)}"', Style.QUOTED)
                yield Paragraph((Span(f"{who} says why: "), quoted))


def _worth(signal: Signal, said: Reading) -> Iterator[Block]:
    """Yield the score of a probe, what it counts for, and who answered."""
    level = "over" if signal.alarmed else "below"
    score = f"{signal.code}: score {said.score:.2f}, {level} its threshold, which is {signal.status}"
    found = signal.alarmed and signal.finds
    worth = "a finding; it causes no action" if found else "one probe never acts and is no finding"
    yield Paragraph((Span(score), Span(f"; {worth}", Style.QUIET)))
    models = ", ".join(inert(model, NAME) for model in dict.fromkeys(said.models))
    if said.surrogate:
        told = f"answered by {models}, a model that the recording does not name: it says nothing about that agent"
        yield Paragraph((Span(told, Style.WARN),))
    else:
        yield Paragraph((Span(f"answered by {models}, a model of the session itself"),))


def _rows(evidence: Iterable[Evidence]) -> Iterator[tuple[Span, ...]]:
    for item in evidence:
        shadow, session = inert(item.expected, QUOTE), inert(item.observed, QUOTE)
        differs = Span("") if shadow == session else Span("differs", Style.WARN)
        yield Span(inert(item.path, NAME)), Span(shadow), Span(session), differs


def _failure(failure: Failure) -> Paragraph:
    cause = failure.cause.replace("_", " ")
    return Paragraph((Span(f"no answer ({cause}): {inert(failure.detail, QUOTE)}", Style.WARN),))
