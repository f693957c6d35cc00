"""The operator's own texts that may not be kept: a system prompt that a model says again."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate

from theodolite.core.arguments import is_sequence
from theodolite.core.errors import ConfigError
from theodolite.core.quotation import Hidden, spliced

__all__ = ("Confidential", "confidential_of")

MARK = "[REDACTED:SYSTEM_PROMPT]"

# A run of so many words, or of so many letters and digits, is a part of the text and no turn of speech: of English
# prose 32 are some forty characters. Our choice.
_WORDS, _LETTERS = 8, 32
# A text with fewer letters and digits is in many another one by chance.
_LEAST = 8

_WORD = re.compile(r"[^\W_]+")
# A line break of a text that was quoted as code or JSON: its letter is none of the word behind it.
_ESCAPED = ("\\n", "\\r", "\\t")


class Confidential:
    """Texts of which no long run may be kept, in whatever case, spacing and punctuation it is said again.

    A run of eight words, or of 32 letters and digits, is hidden as far as it goes, in whole words; of a text that is
    shorter all of it, and of one with fewer than 8 letters and digits nothing. Linear in what is looked at; a text of
    n characters takes some 100 n bytes. Limits: what is told in other words, in another language, or encoded is not
    found, nor is a text of which every eighth word is another one.

    >>> Confidential(["Never speak of the merger."]).hidden("It says: NEVER  speak, of the merger!")
    'It says: [REDACTED:SYSTEM_PROMPT]!'
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._words: list[_Runs] = []
        self._letters: list[_Runs] = []
        for text in dict.fromkeys(texts):
            words = _words(_unescaped(text))
            letters = "".join(words)
            if len(letters) >= _LEAST:
                self._words.append(_Runs(words, _WORDS))
                self._letters.append(_Runs(letters, _LETTERS))

    def hidden(self, text: str) -> str:
        """Return a text with a mark for each run of one of these."""
        if not self._words:
            return text
        read = _unescaped(text)
        words = _words(read)
        letters = "".join(words)
        by_word = [run for runs in self._words for run in runs.found(words)]
        by_letter = [run for runs in self._letters for run in runs.found(letters)]
        if not (by_word or by_letter):
            return text
        ends = list(accumulate(map(len, words)))
        by_word += [_whole(ends, *run) for run in by_letter]
        places = [found.span() for found in _WORD.finditer(read)]
        return spliced(text, [Hidden(places[first][0], places[last - 1][1], MARK) for first, last in by_word])


class _Runs:
    """The runs of one sequence, of words or of letters, that count: of `least`, or of all where it has fewer."""

    def __init__(self, units: tuple[str, ...] | str, least: int) -> None:
        self._least = min(least, len(units))
        # Of every second half one lies whole in each run that counts, so that few places of a text are looked at.
        self._half = (self._least + 1) // 2
        self._grams = {units[at : at + self._half] for at in range(len(units) - self._half + 1)}

    def found(self, units: tuple[str, ...] | str) -> Iterator[tuple[int, int]]:
        """Yield where such runs begin and end."""
        half, grams = self._half, self._grams
        if not any(units[at : at + half] in grams for at in range(0, len(units) - half + 1, half)):
            return
        first = -1
        for at in range(len(units) - half + 2):
            if len(units) - at >= half and units[at : at + half] in grams:
                first = at if first < 0 else first
            elif first >= 0:
                if at - 1 + half - first >= self._least:
                    yield first, at - 1 + half
                first = -1


def _whole(ends: list[int], first: int, last: int) -> tuple[int, int]:
    """Return the words that a run of letters covers, by where the words end among the letters.

    The word at each end may agree with it by chance in a few letters: then it is none of them.
    """
    start, end = bisect_right(ends, first), bisect_right(ends, last - 1)
    if start < end and ends[start] - first < _LEAST and first > (ends[start - 1] if start else 0):
        start += 1
    if start < end and last - ends[end - 1] < _LEAST and last < ends[end]:
        end -= 1
    return start, end + 1


def _unescaped(text: str) -> str:
    """Return a text, of the same length, without the escapes of line breaks and tabs."""
    if "\\" in text:
        for escape in _ESCAPED:
            text = text.replace(escape, "  ")
    return text


def _words(text: str) -> tuple[str, ...]:
    if text.isascii():
        return tuple(_WORD.findall(text.lower()))
    return tuple([unicodedata.normalize("NFKC", word).casefold() for word in _WORD.findall(text)])


def confidential_of(parts: Iterable[object]) -> Confidential:
    """Return what the parts of an instrument have as `confidential`, a tuple of texts; most have nothing.

    Raises ConfigError where one has something else.
    """
    texts: list[str] = []
    for part in parts:
        given: object = getattr(part, "confidential", ())
        if not is_sequence(given) or not all(isinstance(text, str) for text in given):
            raise ConfigError(f"{type(part).__name__}.confidential is a tuple of texts, and nothing else")
        texts += map(str, given)
    return Confidential(texts)
