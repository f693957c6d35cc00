"""What each argument of a call is for, and where its value first stood: with the user, in a record, in a result.

A value comes from a text when all its words stood there, in any case, order and punctuation, as they are or encoded;
of a link it is enough that its host did, since whoever names the host is who is reached. Authority comes from the goal
and from records that nobody else writes. A field in a result that others can write is no record, whatever its label.

Limits. A value that is put together from several results, from parts of words, or in a cipher counts as the model's
own, and so does what the index has forgotten. A value of common words may be found in a text by chance.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from msgspec import Struct

from theodolite.core.intent import ArgumentOrigin, Origin, Role
from theodolite.features.encodings import decoded
from theodolite.features.index import Spoken, WordIndex, words_of
from theodolite.features.roles import Kind, address, host, links, role_of

__all__ = ("origins",)

# Values beyond these bounds are texts that the model wrote; no recorded call that we have read has over 8 values.
_VALUES = 64
_VALUE = 4096
# Links that are traced in one content; more of them make no difference to whom it binds.
_WITHIN = 8
# Decoding is tried on values of no more characters and without a space, as arguments that carry data out are.
_ENCODED = 1_024
_NOTHING: Mapping[str, Role] = {}


def origins(
    index: WordIndex,
    values: Iterable[tuple[str, str]],
    roles: Mapping[str, Role] = _NOTHING,
    spoken: Spoken | None = None,
) -> tuple[ArgumentOrigin, ...]:
    """Return role and origin of each (JSON Pointer, text) of a call, in order; of the first 64.

    Links inside a content that are not the user's follow it. `roles` are those that the operator or the tool's schema
    gives, by argument name; `spoken` are the words of the values, where they are known. Each value costs the sentences
    that hold its rarest words, which are bounded.

    >>> index = WordIndex()
    >>> index.trust("Pay Anna.")
    >>> index.distrust(3, "Her account is DE44.")
    >>> for origin in origins(index, [("/to", "DE44"), ("/n", "9")]):
    ...     origin.role.value, origin.origin.value, origin.seq
    ('target', 'tool_result', 3)
    ('control', 'model', None)
    """
    read = list(islice(values, _VALUES))
    if spoken is None:
        spoken = index.spoken([text for _, text in read], _VALUE)
    found: list[ArgumentOrigin] = []
    for path, text in read:
        role = role_of(path, text, roles)
        found.append(_origin(index, path, text, role, spoken))
        if role is Role.CONTENT:
            found += _within(index, path, text[:_VALUE])
    return tuple(found)


def _origin(index: WordIndex, path: str, value: str, role: Role, spoken: Spoken) -> ArgumentOrigin:
    found = _trace(index, spoken.words[value], spoken.counts)
    if found is None and role is Role.TARGET and address(value) is Kind.LINK:
        found = _trace(index, words_of(host(value)))
    if found is None and len(value) <= _ENCODED and " " not in value:
        traces = (_trace(index, words_of(plain)) for _, _, plain in decoded(value))
        found = next((trace for trace in traces if trace is not None), None)
    return _told(path, role, found)


def _within(index: WordIndex, path: str, value: str) -> Iterator[ArgumentOrigin]:
    """Yield where the links inside a content came from, but for the user's own."""
    for link in islice(dict.fromkeys(links(value)), _WITHIN):
        found = _trace(index, words_of(link)) or _trace(index, words_of(host(link)))
        if found is None or found.origin is not Origin.USER:
            yield _told(path, Role.TARGET, found, within=True)


class _Trace(Struct, frozen=True, gc=False):
    origin: Origin
    seq: int | None = None
    start: int = 0
    end: int = 0


_USER, _MODEL = _Trace(Origin.USER), _Trace(Origin.MODEL)


def _trace(index: WordIndex, words: Sequence[str], counts: Mapping[str, int] | None = None) -> _Trace | None:
    """Return where all these words stood: with the user, in a record, in one result; None if nowhere."""
    if not words:
        return None
    if all(map(index.goal.__contains__, words)):
        return _USER
    if index.records and all(map(index.records.__contains__, words)):
        return _Trace(Origin.RECORD, min(index.records[word] for word in words))
    passage = index.first(words, index.counts(words) if counts is None else counts)
    return None if passage is None else _Trace(Origin.TOOL_RESULT, passage.seq, passage.start, passage.end)


def _told(path: str, role: Role, found: _Trace | None, *, within: bool = False) -> ArgumentOrigin:
    found = found or _MODEL
    return ArgumentOrigin(
        path=path,
        origin=found.origin,
        seq=found.seq,
        role=role,
        start=found.start,
        end=found.end,
        within=within,
    )
