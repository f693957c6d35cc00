"""Where each argument value of a call first stood: in the user's words, in a tool result, or nowhere before.

The simple form: a value comes from a text when all its words stood there. It sees neither quotation nor encoding nor
values put together from several results; such values count as the model's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from theodolite.core.intent import ArgumentOrigin, Origin

__all__ = ("ProvenanceFold",)

_WORD = re.compile(r"[^\W_]+")
# Bounds on what one session may hold: 100,000 different words are some 2 MB of text; a word that more than 8 results
# share says little about where a value came from; a text beyond a million characters is not read further.
_MAX_WORDS = 100_000
_MAX_RESULTS = 8
_MAX_TEXT = 1_000_000
_USER = -1


class ProvenanceFold(Struct, kw_only=True):
    """An index from words to the events they stood in. Linear in new text, bounded in memory.

    Beyond 100,000 words no new ones are taken, and `full` says so: from then on a value may be put down to the model
    that came from a result.
    """

    seen: dict[str, list[int]] = {}
    full: bool = False

    def user_said(self, text: str) -> None:
        """Take what the user said."""
        self._take(_USER, text)

    def returned(self, seq: int, text: str) -> None:
        """Take what the tool result of event `seq` said."""
        self._take(seq, text)

    def _take(self, seq: int, text: str) -> None:
        seen = self.seen
        for word in set(_WORD.findall(text[:_MAX_TEXT].casefold())):
            places = seen.get(word)
            if places is None:
                if len(seen) >= _MAX_WORDS:
                    self.full = True
                    continue
                seen[word] = [seq]
            elif seq == _USER:
                if _USER not in places:
                    places.insert(0, _USER)
            elif len(places) < _MAX_RESULTS:
                places.append(seq)

    def origins(self, values: Iterable[tuple[str, str]]) -> tuple[ArgumentOrigin, ...]:
        """Return the origin of each (JSON Pointer, text) of a call, in order."""
        return tuple([self._origin(path, _WORD.findall(text[:_MAX_TEXT].casefold())) for path, text in values])

    def _origin(self, path: str, value: Sequence[str]) -> ArgumentOrigin:
        common: set[int] | None = None
        for word in value:
            places = self.seen.get(word, ())
            common = set(places) if common is None else common.intersection(places)
            if not common:
                break
        if not common:
            return ArgumentOrigin(path=path, origin=Origin.MODEL)
        if _USER in common:
            return ArgumentOrigin(path=path, origin=Origin.USER)
        return ArgumentOrigin(path=path, origin=Origin.TOOL_RESULT, seq=min(common))
