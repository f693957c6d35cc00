"""Where each argument value of a call first stood: in the user's words, in a tool result, or nowhere before.

The simple form: a value comes from a text when all its words stood there. It sees neither quotation nor encoding nor
values put together from several results; such values count as the model's own, and so does what the index has
forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from theodolite.core.intent import ArgumentOrigin, Origin
from theodolite.features.index import WordIndex, words_of

__all__ = ("origins",)

# Values beyond these bounds are texts that the model wrote; no recorded call that we have read has over 8 values.
_VALUES = 64
_VALUE = 4096
# Sentences that one value may touch: its rarest words decide, and mostly the first of them.
_VISITS = 256


def origins(index: WordIndex, values: Iterable[tuple[str, str]]) -> tuple[ArgumentOrigin, ...]:
    """Return the origin of each (JSON Pointer, text) of a call, in order; of the first 64.

    Each value costs the sentences that hold its rarest words, up to 256 of them beyond the first word's.

    >>> index = WordIndex()
    >>> index.trust("Pay Anna.")
    >>> index.distrust(3, "Her account is DE44.")
    >>> [(origin.path, origin.origin.value, origin.seq) for origin in origins(index, [("/to", "DE44"), ("/n", "9")])]
    [('/to', 'tool_result', 3), ('/n', 'model', None)]
    """
    parts = [(path, words_of(text[:_VALUE])) for path, text in islice(values, _VALUES)]
    counts = index.counts(word for _, words in parts for word in words)
    return tuple([_origin(index, path, words, counts) for path, words in parts])


def _origin(index: WordIndex, path: str, words: Sequence[str], counts: Mapping[str, int]) -> ArgumentOrigin:
    if words and all(word in index.goal for word in words):
        return ArgumentOrigin(path=path, origin=Origin.USER)
    common: set[int] | None = None
    visits = 0
    for word in sorted(words, key=counts.__getitem__):
        visits += counts[word]
        if common is not None and (not common or visits > _VISITS):
            break
        seqs = {index.sentence(number).seq for number in index.held(word)}
        common = seqs if common is None else common & seqs
    if not common:
        return ArgumentOrigin(path=path, origin=Origin.MODEL)
    return ArgumentOrigin(path=path, origin=Origin.TOOL_RESULT, seq=min(common))
