"""How a call, or a result, diverges from its contract: in plain words, with the place and both types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from theodolite.core.contract import Kind
from theodolite.core.reading import Evidence, Reading
from theodolite.reports.document import CallReport, SignalReport
from theodolite.reports.escaping import inert
from theodolite.reports.limits import CALLS, NAME, PATH, QUOTE
from theodolite.reports.reasons import FUSED
from theodolite.runtime.replay import Sighting

__all__ = ("Misfits", "about_shape", "alone", "misfit", "misfits", "misfits_of", "words")

Misfits = Mapping[int, Sequence[Evidence]]
"""What diverges from a contract, by the seq of the call or result that does."""

_DETECTOR = "payload"
_SHAPE = f"{_DETECTOR}.shape"
_WORDS: Mapping[str, str] = MappingProxyType(
    {
        Kind.MISSING_REQUIRED: "a field that has to be there is missing",
        Kind.UNKNOWN_FIELD: "a field is there that the contract does not know and does not allow",
        Kind.TYPE_MISMATCH: "a value has another type",
        Kind.NULL_NOT_ALLOWED: "null stands where it is not allowed",
        Kind.DOUBLE_ENCODED: "text stands where the JSON in it would fit",
        Kind.ENUM_MISMATCH: "a value is none of those to choose from",
        Kind.CONST_MISMATCH: "a value is not the only one that is allowed",
        Kind.FORMAT_MISMATCH: "a text is not of the format",
        Kind.RANGE_MISMATCH: "a number is outside of what is allowed",
        Kind.LENGTH_MISMATCH: "a value is too short or too long",
        Kind.PATTERN_MISMATCH: "a text does not match the pattern",
        Kind.NOT_UNIQUE: "a list has an item twice",
        Kind.DEPENDENCY_MISSING: "a field is missing that another one asks for",
        Kind.CONTAINS_MISMATCH: "a list has too few or too many items of a kind",
        Kind.UNION_NO_MATCH: "a value fits none of several schemas",
        Kind.UNION_AMBIGUOUS: "a value fits more than one schema where it must fit one",
        Kind.FORBIDDEN: "something is there that must not be",
        Kind.READ_ONLY_SENT: "a field is sent that the server sets itself",
        Kind.WRONG_CONTENT_TYPE: "the body has a media type that is not taken",
        Kind.NOT_JSON: "something is no JSON",
        Kind.TOO_LARGE: "there is more than can be checked",
        Kind.TOO_DEEP: "a value is nested too deeply to be checked",
        Kind.REGEX_LIMIT: "a pattern took too long to be checked",
        Kind.CONTRACT_ERROR: "the contract could not be checked there",
        Kind.UNKNOWN_OPERATION: "no such tool is on offer",
        Kind.UNDECLARED_FIELD: "a field is there that the contract does not know, though it allows it",
    }
)


def words(kind: str) -> str:
    """Return in plain words how a value diverges; nothing for a kind that is not known.

    >>> words("type_mismatch")
    'a value has another type'
    """
    return _WORDS.get(kind, "")


def about_shape(code: str) -> bool:
    """Whether a code, or a kind of evidence, is about the shape of a call, and not about who wanted it."""
    return code.partition(".")[0] == _DETECTOR


def misfit(item: Evidence, seqs: Sequence[int] = ()) -> str:
    """Return a piece of evidence of a known kind on one line; `seqs` are the events to name, the first ten.

    >>> misfit(Evidence(kind="payload.type_mismatch", path="/n", expected="integer", observed="array"))
    'a value has another type: at /n, expected "integer", observed "array" (payload.type_mismatch)'
    """
    # A call of a tool that does not exist is wrong at no place of its arguments.
    top = [] if _kind(item) == Kind.UNKNOWN_OPERATION else ["at the top"]
    where = [f"at {inert(item.path, PATH)}"] if item.path else top
    types = [
        f'{label} "{inert(text, QUOTE)}"'
        for label, text in (("expected", item.expected), ("observed", item.observed))
        if text
    ]
    named = ", ".join([inert(item.kind, NAME), *(f"event {seq}" for seq in seqs[:CALLS])])
    return f"{words(_kind(item))}: {', '.join([*where, *types])} ({named})"


def misfits(sighting: Sighting) -> Misfits:
    """Return what diverges in a session, alarmed or not."""
    return _gathered(
        (made.about, signal.said.evidence)
        for made in sighting.decisions
        for signal in made.signals
        if isinstance(signal.said, Reading)
    )


def misfits_of(signals: Iterable[SignalReport]) -> Misfits:
    """Return the same of a session as a document has it."""
    return _gathered((signal.about, signal.evidence) for signal in signals)


def alone(call: CallReport) -> bool:
    """Whether the shape of a call alarmed and its score did not: then the score is no reason for anything."""
    return _SHAPE in call.signals and FUSED not in call.signals


def _gathered(found: Iterable[tuple[int, Iterable[Evidence]]]) -> Misfits:
    kept: dict[int, list[Evidence]] = {}
    for about, evidence in found:
        for item in evidence:
            if about_shape(item.kind) and _kind(item) in _WORDS:
                kept.setdefault(about, []).append(item)
    return kept


def _kind(item: Evidence) -> str:
    return item.kind.partition(".")[2]
