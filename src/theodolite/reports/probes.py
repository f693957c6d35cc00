"""What probes came to, for people: the two answers side by side, and how little or much they say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from theodolite.core.reading import Evidence, Failure, Reading, Signal
from theodolite.reports.escaping import inert
from theodolite.reports.layout import Block, Heading, Paragraph, Span, Style, Table, counted
from theodolite.reports.limits import NAME, QUOTE
from theodolite.runtime.purse import Spent
from theodolite.runtime.replay import Sighting

__all__ = ("DETECTOR", "probe_blocks", "probe_signals", "used")

DETECTOR = "behavior"


def probe_signals(sighting: Sighting) -> tuple[Signal, ...]:
    """Return what the probes of a session came to."""
    signals = (signal for decision in sighting.decisions for signal in decision.signals)
    return tuple([signal for signal in signals if signal.said.detector == DETECTOR])


def probe_blocks(sighting: Sighting) -> Iterator[Block]:
    """Yield each probe of a session with both answers, field by field."""
    signals = probe_signals(sighting)
    yield Heading((Span("Probe of session "), Span(inert(sighting.session, QUOTE), Style.STRONG)))
    if not signals:
        yield Paragraph((Span("it was not probed", Style.WARN),))
    for signal in signals:
        if isinstance(signal.said, Failure):
            yield _failure(signal.said)
        else:
            yield from _answers(signal, signal.said)


def used(spent: Spent) -> str:
    """Return in words what was used of models."""
    cost = f"cost unknown: {inert(spent.unpriced, NAME)} has no price" if spent.unpriced else f"cost {spent.cost:,.4f}"
    return f"{counted(spent.calls, 'call')}, {counted(spent.tokens, 'token')}, {cost}"


def _answers(signal: Signal, said: Reading) -> Iterator[Block]:
    fields = [item for item in said.evidence if item.path != "reasoning"]
    yield Table(("field", "clean shadow", "this session", ""), tuple(_rows(fields)))
    for item in said.evidence:
        if item.path == "reasoning":
            for who, text in (("clean shadow", item.expected), ("this session", item.observed)):
                quoted = Span(f'"{inert(text, QUOTE)}"', Style.QUOTED)
                yield Paragraph((Span(f"{who} says why: "), quoted))
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
