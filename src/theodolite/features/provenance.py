"""What each argument of a call is for, and where its value first stood: with the user, in a record, in a result.

A value comes from a text when all its words stood there, in any case, order and punctuation, as they are or encoded;
of a link it is enough that its host did, since whoever names the host is who is reached. Authority comes from the goal
and from records that nobody else writes. A field in a result that others can write is no record, whatever its label.

A target or a credential that is put together from several texts follows the untrusted one among them, and a longer
target, credential or command the untrusted address inside it. A link inside a content is followed by itself.

Limits. A value that is put together from parts of words, or in a cipher, counts as the model's own, and so does what
the index has forgotten. A value of common words may be found in a text by chance.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from msgspec import Struct

from theodolite.core.intent import ArgumentOrigin, Origin, Role
from theodolite.features.encodings import decoded
from theodolite.features.index import Spoken, WordIndex, words_of
from theodolite.features.roles import Kind, address, addresses, host, links, role_of

__all__ = ("origins",)

# Values beyond these bounds are texts that the model wrote; no recorded call that we have read has over 8 values.
_VALUES = 64
_VALUE = 4096
# Links that are traced in one content; more of them make no difference to whom it binds.
_WITHIN = 8
# Decoding is tried on values of no more characters and without a space, as arguments that carry data out are.
_ENCODED = 1_024
# Of what is put together, so many words: names and addresses are short, and of many words some stand anywhere.
_PARTS = 8
# An amount as JSON has it; texts write it with two digits after the point, or with commas between thousands.
_NUMBER = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,2})?")
_PUT_TOGETHER = frozenset({Role.TARGET, Role.CREDENTIAL})
_AUTHORITY = frozenset({Role.TARGET, Role.CREDENTIAL, Role.COMMAND})
# Values that are looked at to find those: as many as the folds read of a call.
_READ = 4_096
# To look a member up in its enum takes Python 3.11 four times as long as a name of the module: what each call asks for.
_TARGET, _CONTENT, _LINK, _FOREIGN = Role.TARGET, Role.CONTENT, Kind.LINK, Origin.TOOL_RESULT
_NOTHING: Mapping[str, Role] = {}


def origins(
    index: WordIndex,
    values: Iterable[tuple[str, str]],
    roles: Mapping[str, Role] = _NOTHING,
    spoken: Spoken | None = None,
) -> tuple[ArgumentOrigin, ...]:
    """Return role and origin of each (JSON Pointer, text) of a call, in order; of 64, those first that give authority.

    A value that gives authority and stood nowhere comes from where an address inside it stood. Links inside a content
    that are not the user's follow it, as origins of their own.
    `roles` are those that the operator or the tool's schema gives, by argument name; `spoken` are the words of the
    values, where they are known. Each value costs the sentences that hold its rarest words, which are bounded.

    >>> index = WordIndex()
    >>> index.trust("Pay Anna.")
    >>> index.distrust(3, "Her account is DE44.")
    >>> for origin in origins(index, [("/to", "DE44"), ("/n", "9")]):
    ...     origin.role.value, origin.origin.value, origin.seq
    ('target', 'tool_result', 3)
    ('control', 'model', None)
    """
    read = [(path, text, role_of(path, text, roles)) for path, text in islice(values, _READ)]
    if len(read) > _VALUES:
        read = sorted(read, key=_without_authority)[:_VALUES]
    if spoken is None:
        spoken = index.spoken([text for _, text, _ in read], _VALUE)
    found: list[ArgumentOrigin] = []
    for path, text, role in read:
        words = spoken.words.get(text)
        if words is None:
            words = words_of(text[:_VALUE])
            trace = _trace(index, words)
        else:
            trace = _trace(index, words, spoken.counts)
        found.append(_told(path, role, trace or _in_part(index, text, role, words)))
        if role is _CONTENT:
            found += _within(index, path, text[:_VALUE])
    return tuple(found)


def _without_authority(value: tuple[str, str, Role]) -> bool:
    return value[2] not in _AUTHORITY


def _in_part(index: WordIndex, value: str, role: Role, words: Sequence[str]) -> _Trace | None:
    """Return where the host of a link, what is encoded, or the parts of a value that stood nowhere whole came from."""
    found = None
    if role is _TARGET and address(value) is _LINK:
        found = _trace(index, words_of(host(value)))
    if found is None and len(value) <= _ENCODED and " " not in value:
        found = _first(_trace(index, words_of(plain)) for _, _, plain in decoded(value))
    if found is None and _NUMBER.fullmatch(value):
        amount = float(value)
        written = (f"{amount:.2f}", f"{amount:,.2f}", f"{amount:.0f}", f"{amount:,.0f}")
        found = _first(_trace(index, words_of(form)) for form in written if float(form.replace(",", "")) == amount)
    if found is None and role in _AUTHORITY:
        inside = (_reached(index, part) for part in addresses(value[:_VALUE])[:_WITHIN] if part != value)
        found = _first(trace for trace in inside if trace is None or trace.origin is _FOREIGN)
    if found is None and role in _PUT_TOGETHER and len(words) <= _PARTS:
        found = _parts(index, words)
    return found


def _first(traces: Iterable[_Trace | None]) -> _Trace | None:
    return next((trace for trace in traces if trace is not None), None)


def _parts(index: WordIndex, words: Sequence[str]) -> _Trace | None:
    """Return the untrusted passage with the rarest of words that several texts hold between them; None if none do."""
    foreign = [word for word in words if word not in index.goal and word not in index.records]
    counts = index.counts(foreign)
    if not foreign or not all(counts.values()):
        return None
    return _trace(index, [min(foreign, key=counts.__getitem__)], counts)


def _within(index: WordIndex, path: str, value: str) -> Iterator[ArgumentOrigin]:
    """Yield where the links inside a content came from, but for the user's own."""
    for link in list(dict.fromkeys(links(value)))[:_WITHIN]:
        trace = _reached(index, link)
        if trace is None or trace.origin is not Origin.USER:
            yield _told(path, _TARGET, trace, within=True)


def _reached(index: WordIndex, inside: str) -> _Trace | None:
    """Return where an address, or the host of a link, stood."""
    found = _trace(index, words_of(inside))
    return _trace(index, words_of(host(inside))) if found is None and address(inside) is _LINK else found


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
