"""Hypothesis strategies for events, sessions, answers and entries.

Needs hypothesis: `pip install 'theodolite[testing]'`.
"""

from __future__ import annotations

from msgspec import UNSET, Raw
from msgspec.json import encode

from theodolite.core.errors import MissingExtraError
from theodolite.core.event import (
    AnyEvent,
    AnyHostEvent,
    ApprovalGiven,
    CanaryChecked,
    CanaryVerdict,
    Channel,
    Cleared,
    ContextCompacted,
    GoalStated,
    HandedOff,
    InquirySettled,
    MessageObserved,
    ModelCalled,
    ProbeRequested,
    SessionEnded,
    Source,
    SystemPromptSet,
    Tool,
    ToolCallProposed,
    ToolResultObserved,
    ToolsDeclared,
    TurnEnded,
)
from theodolite.core.reading import Cause, Evidence, Fact, Failure, Reading
from theodolite.core.store import Entry, Kind
from theodolite.core.text import printable
from theodolite.testing.sessions import HOSTILE_TEXTS, stamped

try:
    from hypothesis import strategies as st
except ImportError as error:
    raise MissingExtraError(extra="testing", needed_for="the strategies of theodolite.testing") from error

__all__ = (
    "arguments",
    "entries",
    "events",
    "failures",
    "host_events",
    "own_events",
    "readings",
    "sessions",
    "texts",
)

_WORDS = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
_CODES = st.builds("{}.{}".format, _WORDS, _WORDS)
_SCORES = st.floats(0.0, 1.0)
_COUNTS = st.integers(0, 10**6)
_NAMES = st.sampled_from(("list_bills", "send_money", "readFile", "web.search", "", "\u00e9t\u00e9"))


def texts(*, surrogates: bool = True) -> st.SearchStrategy[str]:
    """Return text of all kinds, hostile text among it; with lone surrogates unless told otherwise."""
    found = st.one_of(st.text(st.characters(), max_size=60), st.sampled_from(HOSTILE_TEXTS))
    return found if surrogates else found.map(printable)


def arguments() -> st.SearchStrategy[dict[str, object]]:
    """Return arguments as hosts pass them: JSON, and what JSON cannot say."""
    scalars: st.SearchStrategy[object] = st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), texts(), st.binary(max_size=8), st.datetimes()
    )
    nested = st.recursive(
        scalars,
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts(), inner, max_size=3)),
        max_leaves=6,
    )
    return st.dictionaries(texts(), nested, max_size=4)


def host_events() -> st.SearchStrategy[AnyHostEvent]:
    """Return events of any type that a host may bring, not stamped; fields are missing where they may be."""
    shown = {"channel": st.sampled_from(Channel), "source": st.sampled_from(Source)}
    maybe_text = st.one_of(st.just(UNSET), texts())
    maybe_count = st.one_of(st.just(UNSET), _COUNTS)
    maybe_share = st.one_of(st.just(UNSET), _SCORES)
    return st.one_of(
        st.builds(SystemPromptSet, prompt_hash=st.from_regex(r"[0-9a-f]{64}", fullmatch=True), length=_COUNTS, **shown),
        st.builds(ToolsDeclared, tools=st.lists(_tools(), max_size=3).map(tuple), **shown),
        st.builds(GoalStated, text=texts(), **shown),
        st.builds(MessageObserved, role=st.sampled_from(("system", "user", "assistant")), text=maybe_text, **shown),
        st.builds(
            ModelCalled,
            model=texts(),
            temperature=maybe_share,
            top_p=maybe_share,
            input_tokens=maybe_count,
            output_tokens=maybe_count,
            **shown,
        ),
        st.builds(
            ToolCallProposed,
            tool=st.one_of(_NAMES, texts()),
            arguments=st.one_of(st.just(UNSET), arguments()),
            call=_WORDS,
            **shown,
        ),
        st.builds(ToolResultObserved, tool=_NAMES, text=maybe_text, call=_WORDS, error=st.booleans(), **shown),
        st.builds(TurnEnded, **shown),
        st.builds(ContextCompacted, before=maybe_count, after=maybe_count, **shown),
        st.builds(HandedOff, to=texts(), child=texts(), **shown),
        st.builds(ApprovalGiven, call=_WORDS, operator=texts(), **shown),
        st.builds(SessionEnded, reason=texts(), **shown),
    )


def own_events() -> st.SearchStrategy[AnyEvent]:
    """Return events that only this package makes, not stamped."""
    answers = st.lists(st.one_of(readings(), failures()), max_size=3).map(tuple)
    plain = texts(surrogates=False)
    return st.one_of(
        st.builds(ProbeRequested, reason=plain),
        st.builds(InquirySettled, asker=_WORDS, about=_COUNTS, said=answers, first=st.none() | readings()),
        st.builds(
            CanaryChecked, contract=_WORDS, checked=st.sampled_from(Channel), verdict=st.sampled_from(CanaryVerdict)
        ),
        st.builds(Cleared, operator=plain, reason=plain),
    )


def events() -> st.SearchStrategy[AnyEvent]:
    """Return events of any type, not stamped."""
    return st.one_of(host_events(), own_events())


def sessions(*, max_size: int = 30) -> st.SearchStrategy[tuple[AnyEvent, ...]]:
    """Return stamped sessions of events that a host may bring, in any order whatever."""
    return st.lists(host_events(), max_size=max_size).map(lambda found: tuple(stamped(found)))


def readings(detector: str = "d", version: str = "1", codes: tuple[str, ...] = ()) -> st.SearchStrategy[Reading]:
    """Return readings of a detector, of the given codes or of any."""
    plain = texts(surrogates=False)
    evidence = st.builds(
        Evidence,
        kind=_CODES,
        seqs=st.lists(_COUNTS, max_size=3).map(tuple),
        path=plain,
        expected=plain,
        observed=plain,
    )
    return st.builds(
        Reading,
        detector=st.just(detector),
        version=st.just(version),
        code=st.sampled_from(codes) if codes else _CODES,
        score=_SCORES,
        evidence=st.lists(evidence, max_size=2).map(tuple),
        models=st.lists(_WORDS, max_size=2).map(tuple),
        facts=st.lists(st.builds(Fact, _WORDS, st.one_of(_SCORES, _WORDS)), max_size=2).map(tuple),
        surrogate=st.booleans(),
    )


def failures(detector: str = "d", version: str = "1") -> st.SearchStrategy[Failure]:
    """Return failures of a detector."""
    return st.builds(
        Failure,
        detector=st.just(detector),
        version=st.just(version),
        cause=st.sampled_from(Cause),
        detail=texts(surrogates=False),
    )


def entries(*, session: str | None = None) -> st.SearchStrategy[Entry]:
    """Return entries for a store, of one session or of a few."""
    payloads = st.dictionaries(_WORDS, st.one_of(st.none(), _COUNTS, texts(surrogates=False)), max_size=3)
    return st.builds(
        Entry,
        session=st.sampled_from(("s-1", "s-2", "\u00e9'; --")) if session is None else st.just(session),
        at=st.floats(0.0, 4e9),
        kind=st.sampled_from([kind for kind in Kind if kind is not Kind.ERASURE]),
        payload=payloads.map(encode).map(Raw),
        codes=st.lists(_CODES, max_size=3).map(tuple),
    )


def _tools() -> st.SearchStrategy[Tool]:
    hint = st.one_of(st.none(), st.booleans())
    return st.builds(
        Tool, name=st.one_of(_NAMES, texts()), description=texts(), read_only=hint, destructive=hint, open_world=hint
    )
