"""Why a call has its score: the terms of the score in words, from what was said of the call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from theodolite.core.reading import Reading, Signal
from theodolite.core.text import printable
from theodolite.reports.document import ReasonReport
from theodolite.reports.escaping import inert
from theodolite.reports.limits import QUOTE

__all__ = ("FUSED", "because", "reasons", "score")

FUSED = "fusion.call"
"""The code whose score is that of the call."""

# The code that the fused score starts from: its facts are terms in log-odds, named as in `features/stakes.py`. Each in
# words where it raises the score, and where it lowers it.
_BASE = "hijack.call"
_WORDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "acting_margin": (
            "it has more in common with untrusted text than with the goal, and it acts",
            "the goal explains it better than untrusted text does",
        ),
        "reading_margin": (
            "it has more in common with untrusted text than with the goal, and it only reads",
            "the goal explains it better than untrusted text does, and it only reads",
        ),
        "delegated_margin": (
            "the goal hands the work to a text",
            "the goal hands the work to a text, which then may ask for this",
        ),
        "referred_margin": (
            "untrusted text that the goal may have referred the agent to explains it",
            "the goal may have referred the agent to the text that explains it",
        ),
        "carried_link": (
            "a link out of untrusted text stands in what it writes",
            "a link out of untrusted text stands in what it writes",
        ),
        "authority": (
            "a password or a command comes from untrusted text",
            "a password or a command comes from untrusted text",
        ),
    }
)
# The same of a margin whose passage is known, which it is from the alarm line on. Below, no text was quoted that would
# explain the call: its words may stand in many, and its arguments in none.
_PASSAGE = f"{_BASE.partition('.')[0]}.passage"
_QUOTED: Mapping[str, str] = MappingProxyType(
    {
        "acting_margin": "untrusted text of event {} explains it better than the goal does, and it acts",
        "reading_margin": "untrusted text of event {} explains it better than the goal does, and it only reads",
    }
)
# Below this a term is written as 0.0, and is no reason for anything.
_LEAST = 0.05


def score(signals: Iterable[Signal]) -> float | None:
    """Return the score of the call that these were said of; None where no fusion spoke."""
    fused = _said(signals, FUSED)
    return None if fused is None else fused.score


def reasons(signals: Sequence[Signal]) -> tuple[ReasonReport, ...]:
    """Return the terms of the score of a call, what raised it most first; none where it has no score.

    Of the code that the score starts from, each of its own terms is one. What else was fused is a term as a whole.
    """
    fused = _said(signals, FUSED)
    if fused is None:
        return ()
    found = [*_own(_said(signals, _BASE)), *_others(fused, signals)]
    return tuple(sorted(found, key=lambda item: -item.added))


def because(told: Sequence[ReasonReport]) -> list[str]:
    """Return reasons as they are written for people; of a kept report the words are those of its time.

    >>> because([ReasonReport(code="a.b", term="heat", added=1.25, text="it is hot")])
    ['it is hot (+1.2)']
    """
    return [f"{inert(item.text, QUOTE)} ({item.added:+.1f})" for item in told if abs(item.added) >= _LEAST]


def _said(signals: Iterable[Signal], code: str) -> Reading | None:
    """Return the highest reading of a code."""
    found = [signal.said for signal in signals if isinstance(signal.said, Reading) and signal.code == code]
    return max(found, key=lambda reading: reading.score, default=None)


def _own(base: Reading | None) -> Iterator[ReasonReport]:
    if base is None:
        return
    passage = next((item.seqs[0] for item in base.evidence if item.kind == _PASSAGE and len(item.seqs) > 1), None)
    for fact in base.facts:
        if not isinstance(fact.value, float):
            continue
        otherwise = fact.name.replace("_", " ")
        raised, lowered = _WORDS.get(fact.name, (otherwise, otherwise))
        if passage is not None:
            raised = _QUOTED.get(fact.name, raised).format(passage)
        yield ReasonReport(code=_BASE, term=fact.name, added=fact.value, text=lowered if fact.value < 0.0 else raised)


def _others(fused: Reading, signals: Iterable[Signal]) -> Iterator[ReasonReport]:
    """Yield what the fusion added to that; its facts are named as the codes, with `_` for the dot."""
    codes = {signal.code.replace(".", "_"): signal.code for signal in signals}
    for fact in fused.facts:
        code = codes.get(fact.name, "")
        if isinstance(fact.value, float) and fact.value and code not in {"", _BASE, FUSED}:
            yield ReasonReport(code=code, term=fact.name, added=fact.value, text=f"what {printable(code)} says of it")
