"""A call in words: what was asked for before it, where each of its arguments came from, its score and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from theodolite.core.intent import Origin
from theodolite.core.reading import Evidence
from theodolite.reports.document import ArgumentReport, CallReport, GoalReport, StepReport
from theodolite.reports.escaping import inert
from theodolite.reports.layout import Block, Paragraph, Span, Style, Table
from theodolite.reports.limits import ARGUMENTS, NAME, PATH, PIECES, QUOTE, SAID
from theodolite.reports.reasons import because
from theodolite.reports.shapes import alone, misfit
from theodolite.reports.words import ORIGINS

__all__ = (
    "Paths",
    "asked",
    "call_blocks",
    "came_from",
    "goal_blocks",
    "goal_line",
    "highest",
    "listed",
    "misfit_lines",
    "nearest",
    "paths_of",
    "shown_as_argument",
    "why",
)

# Columns of a label and its colon.
_LABEL = 10
# Evidence of these kinds says where the value of an argument came from; any other says something else of its place.
_ORIGINS = "hijack."

Paths = Mapping[int, frozenset[str]]
"""The places of the arguments whose origin is known, by the seq of their call."""


def call_blocks(
    call: CallReport, steps: Mapping[int, StepReport], *, wrong: Sequence[Evidence] = (), indent: int = 5
) -> Iterator[Block]:
    """Yield a call with its score, a line for each of its arguments, and why it has that score.

    `wrong` is where it diverges from its contract; where that alone alarmed, the score is told without its reasons.
    """
    tool = inert(call.tool, NAME) or "(no name)"
    spans = [Span(f"{tool} (event {call.seq})", Style.STRONG)]
    spans += [] if call.score is None else [Span(f", score {call.score:.2f}")]
    spans.append(Span(", allowed") if call.allowed else Span(", REFUSED", Style.BAD))
    yield _line("call", *spans, indent=indent)
    arguments = listed(call.arguments or ())
    if arguments:
        cells = [(_span(item.path), Span(item.role), _source(item, steps)) for item in arguments]
        yield Table(("", "", ""), tuple(cells), indent=indent + _LABEL)
    more = len(call.arguments or ()) - len(arguments)
    if more:
        rest = f"... and {more} more arguments: --format json has all"
        yield _line("", Span(rest, Style.QUIET), indent=indent)
    yield from misfit_lines("shape", wrong, indent=indent)
    if call.score is not None and not alone(call):
        yield _line("why", Span(why(call)), indent=indent)


def misfit_lines(label: str, wrong: Sequence[Evidence], *, before: str = "", indent: int = 5) -> Iterator[Block]:
    """Yield where something diverges from its contract, a line each, the first eight; each begins with `before`."""
    for item in wrong[:PIECES]:
        yield _line(label, Span(f"{before}{misfit(item)}"), indent=indent)
    if len(wrong) > PIECES:
        rest = f"... and {len(wrong) - PIECES} more: --format json has all"
        yield _line("", Span(rest, Style.QUIET), indent=indent)


def goal_blocks(goals: Sequence[GoalReport], before: int, *, indent: int = 5) -> Iterator[Block]:
    """Yield what the user had asked for before an event: the first of it, and the last."""
    said = asked(goals, before)
    for goal in said[:1]:
        yield goal_line("goal", goal, indent=indent)
    if said and said[-1].text != said[0].text:
        yield goal_line("later", said[-1], indent=indent)


def goal_line(label: str, goal: GoalReport, *, indent: int = 5) -> Paragraph:
    """Return a line about what the user said."""
    said = Span(f'"{inert(goal.text, QUOTE)}"', Style.QUOTED)
    return _line(label, said, Span(f" (event {goal.seq})"), indent=indent)


def asked(goals: Iterable[GoalReport], before: int) -> list[GoalReport]:
    """Return what the user had said before an event."""
    return [goal for goal in goals if goal.seq < before]


def listed(arguments: Sequence[ArgumentReport]) -> list[ArgumentReport]:
    """Return the arguments that are told, in order: of many the first, those from untrusted text before others."""
    if len(arguments) <= ARGUMENTS:
        return list(arguments)
    return sorted(arguments, key=lambda item: item.origin is not Origin.TOOL_RESULT)[:ARGUMENTS]


def came_from(argument: ArgumentReport, steps: Mapping[int, StepReport]) -> tuple[str, str]:
    """Return whose a value is, and what is known of the event that held it: its tool, empty where it has none."""
    step = None if argument.seq is None else steps.get(argument.seq)
    tool = "" if step is None else inert(step.tool, NAME)
    return ORIGINS[argument.origin], tool


def why(call: CallReport) -> str:
    """Return what made the score of a call."""
    told = because(call.reasons)
    more = f", and {len(told) - SAID} more" if len(told) > SAID else ""
    return ", ".join(told[:SAID]) + more or "no term of it stands out"


def highest(calls: Iterable[CallReport]) -> CallReport | None:
    """Return the call with the highest score, of equals the first; None where none has a score."""
    return max((call for call in calls if call.score is not None), key=_scored, default=None)


def nearest(call: CallReport, threshold: float | None = None) -> str:
    """Return in a line which call came nearest to an alarm; `threshold` is the score that would have been one."""
    least = "" if threshold is None else f", alarms from {threshold:.2f}"
    return f"{inert(call.tool, NAME) or '(no name)'} (event {call.seq}), score {_scored(call):.2f}{least}"


def _scored(call: CallReport) -> float:
    return 0.0 if call.score is None else call.score


def paths_of(calls: Iterable[CallReport]) -> Paths:
    """Return where the arguments of these calls stand."""
    return {call.seq: frozenset(item.path for item in call.arguments or ()) for call in calls}


def shown_as_argument(item: Evidence, told: Paths) -> bool:
    """Whether all that a piece of evidence says of an argument is told with its call: where its value came from."""
    return (
        item.kind.startswith(_ORIGINS) and bool(item.path) and any(item.path in told.get(seq, ()) for seq in item.seqs)
    )


def _span(path: str) -> Span:
    return Span(inert(path, PATH) or "(all)")


def _source(item: ArgumentReport, steps: Mapping[int, StepReport]) -> Span:
    whose, tool = came_from(item, steps)
    event = "" if item.seq is None else f"event {item.seq}{f' ({tool})' * bool(tool)}: "
    within = "a link or an address in it, " if item.within else ""
    return Span(f"{within}from {event}{whose}", Style.WARN if item.origin is Origin.TOOL_RESULT else Style.PLAIN)


def _line(label: str, *spans: Span, indent: int) -> Paragraph:
    name = f"{label}:" if label else ""
    return Paragraph((Span(f"{name:<{_LABEL}}", Style.QUIET), *spans), indent=indent, hang=_LABEL)
