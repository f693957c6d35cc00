r"""The words of one session: the user's, those of records that nobody else writes, and each sentence of other text.

Both folds that ask where the words of a call stood before, the margin and the provenance, read this one index. What
stands in untrusted text in base64, hexadecimal, percent-encoding, HTML entities or escapes is read as well, in its
place; characters are compared as they look (NFKC), without those that show nothing, and account and telephone numbers
with and without the spaces that group them.

Limits. Scripts without spaces are compared by whole runs of up to 64 characters. Of a long result only the first and
last 256 sentences are read, and of the session only the newest 1,024 to 1,536 sentences: who controls that much text
can push a sentence out.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from operator import attrgetter

from msgspec import Struct

from theodolite.features.encodings import decoded
from theodolite.features.spelling import joined, may_group, numbers, odd, shown

__all__ = ("Sentence", "Spoken", "WordIndex", "caseless", "words_of")

# Bounds on memory and time. Among the results of recorded AgentDojo sessions 99 in 100 have at most 142 sentences, of
# the sentences 1 in 100,000 is longer than 256 characters, and no goal has over 48 words.
_SENTENCE = 256
_PER_TEXT = 256
_GENERATION = 512
_GENERATIONS = 3
_WINDOW = _SENTENCE * _PER_TEXT
_GOAL_WORDS = 8192
_VISITS = 256
_VALUES = 64
_ECHOED = 16

_GROUPS = len("+1 23 45")
_WORD_LENGTH = 64
_WORD = re.compile(rf"[^\W_]{{1,{_WORD_LENGTH}}}")
# ASCII alone, by byte: letters and digits in lower case, or all as "a"; what is neither is a space.
_SPACED = bytes([code if re.match(rb"[a-z0-9]", bytes([code])) else ord(" ") for code in bytes(range(256)).lower()])
_MARKED = bytes([code if code == ord(" ") else ord("a") for code in _SPACED])
_LONGER = b"a" * (_WORD_LENGTH + 1)
# It starts with one set of characters, which the engine looks for at twice the speed of an alternation.
_BREAK = re.compile(r"[.!?\n。！？](?:(?<=[.!?])\s+|(?<=[\n。！？])[\s。！？]*)")  # noqa: RUF001 - the stops of Chinese are meant


class Sentence(Struct, frozen=True, array_like=True, gc=False):
    """Where a sentence stands, in characters of the text of event `seq`, and how many different words it has."""

    seq: int
    start: int
    end: int
    words: int


_SEQ: Callable[[Sentence], int] = attrgetter("seq")
_START: Callable[[Sentence], int] = attrgetter("start")


class Spoken(Struct, frozen=True, gc=False):
    """The words of the values and of the tool's name (`named`) of one call, and in how many sentences they stand.

    Found once, read by all folds.
    """

    words: dict[str, tuple[str, ...]]
    counts: dict[str, int]
    named: tuple[str, ...] = ()


class _Generation(Struct, array_like=True):
    """Up to 512 sentences, and for each word the sentences that hold it, by their number here.

    The numbers are tuples, which the garbage collector soon passes over; lists it would walk, session by session.
    """

    sentences: list[Sentence] = []
    places: dict[str, tuple[int, ...]] = {}


class WordIndex(Struct, kw_only=True):
    """The goal, the own records and the untrusted text of one session, by word.

    `lost` counts the untrusted sentences that were left out or forgotten; of the middle of a text beyond 131,072
    characters each 256 characters count as one. State: saved and restored with the session; at most 1,536 sentences,
    8,192 words of the goal (or its newest text whole), as many of records, and the calls not yet answered: 12 MB where
    every word is new. Cost: linear in new text, of which all beyond 131,072 characters is only copied.
    """

    goal: dict[str, bool] = {}
    records: dict[str, int] = {}
    generations: list[_Generation] = []
    echoes: list[tuple[str, ...]] = []
    answered: bool = False
    lost: int = 0

    def trust(self, text: str) -> None:
        """Take what the user asks for. A later text amends the goal; beyond 8,192 words the oldest are forgotten."""
        new: dict[str, bool] = {}
        for _, _, words in _sentences(text):
            new.update(words)
        for word in new:
            self.goal.pop(word, None)
        self.goal.update(new)
        # One text is always held whole: otherwise the same text, untrusted, could explain more than the goal.
        _forget(self.goal, max(_GOAL_WORDS, len(new)))

    def record(self, seq: int, text: str) -> None:
        """Take a result that nobody but the operator or the user could write; the newest 8,192 words are held."""
        for _, _, words in _sentences(text):
            self.records.update(dict.fromkeys(words, seq))
        _forget(self.records, _GOAL_WORDS)

    def distrust(self, seq: int, text: str) -> None:
        """Index the untrusted text of event `seq`. What repeats the calls just made is left out: it is their echo."""
        self.answered = True
        plain = _unescaped(text)
        spans, lost = _read(plain)
        self.lost += lost
        for start, end, words in _worded(plain, spans):
            new = self._without_echo(words) if self.echoes else words
            if new:
                self._add(Sentence(seq, start, end, len(new)), new)
        for start, end, plain in decoded(text[: 2 * _WINDOW]):
            for word in _pieces(plain):
                self._add(Sentence(seq, start, end, len(word)), word)

    def expect_echo(self, parts: Sequence[tuple[str, ...]]) -> None:
        """Remember the words of a call until its results are in: they will repeat it. Call it before the results."""
        if self.answered:
            self.echoes, self.answered = [], False
        self.echoes += parts[: _ECHOED - len(self.echoes)]

    def _without_echo(self, words: dict[str, bool]) -> dict[str, bool]:
        for value in self.echoes:
            common = words.keys() & value
            # Four words in five: a field's label before the value is no reason to miss an echo.
            if common and 5 * len(common) >= 4 * min(len(words), len(value)):
                words = {word: True for word in words if word not in common}
        return words

    def _add(self, sentence: Sentence, words: Iterable[str]) -> None:
        if not self.generations or len(self.generations[-1].sentences) >= _GENERATION:
            # The oldest generation goes as one: to forget costs nothing that grows with what is kept.
            kept = self.generations[1 - _GENERATIONS :]
            self.lost += sum(len(old.sentences) for old in self.generations) - sum(len(old.sentences) for old in kept)
            self.generations = [*kept, _Generation()]
        newest = self.generations[-1]
        number = (len(newest.sentences),)
        newest.sentences.append(sentence)
        places = newest.places
        for word in words:
            places[word] = places[word] + number if word in places else number

    def __len__(self) -> int:
        """Return how many sentences are held."""
        return sum([len(generation.sentences) for generation in self.generations])

    def spoken(self, values: Iterable[str], most: int, name: Sequence[Sequence[str]] = ()) -> Spoken:
        """Return the words of the first 64 values, of each up to `most` characters, and their counts.

        `name` are the words of the tool's name, each with its other forms: of these the one that was said is counted.
        """
        words = {value: words_of(value[:most]) for value in islice(values, _VALUES)}
        named = tuple(dict.fromkeys(map(self._said, name)))
        return Spoken(words, self.counts(chain(named, *words.values())), named)

    def _said(self, forms: Sequence[str]) -> str:
        """Return the form that the goal holds, or else most sentences do; the first one where none does."""
        if len(forms) == 1:
            return forms[0]
        asked = next(filter(self.goal.__contains__, forms), None)
        return asked or max(forms, key=self.counts(forms).__getitem__)

    def counts(self, words: Iterable[str]) -> dict[str, int]:
        """Return in how many sentences each word stands, in the case of `words_of`."""
        counts = dict.fromkeys(words, 0)
        for generation in self.generations:
            places = generation.places
            for word in counts.keys() & places.keys():
                counts[word] += len(places[word])
        return counts

    def first(self, words: Sequence[str], counts: Mapping[str, int]) -> Sentence | None:
        """Return where all these words first stood in one event's text: the sentence there of the rarest of them.

        The rarest words decide, up to 256 sentences beyond those of the first.
        """
        if not all(map(counts.__getitem__, words)):  # of most texts that the model wrote one word is new
            return None
        if len(words) == 1:
            return min(self._held(words[0]), key=_SEQ)
        rarest = sorted(words, key=counts.__getitem__)
        least: list[Sentence] = []
        common: set[int] | None = None
        visits = 0
        for word in rarest:
            visits += counts[word]
            if common is not None and (not common or visits > _VISITS):
                break
            held = self._held(word)
            if common is None:
                least, common = held, set(map(_SEQ, held))
            else:
                common = common.intersection(map(_SEQ, held))
        if not common:
            return None
        seq = min(common)
        return next(sentence for sentence in least if sentence.seq == seq)

    def near(
        self,
        seq: int,
        start: int,
        words: Iterable[str],
        *,
        before: int = 0,
        after: int = 0,
        without: Iterable[str] = (),
    ) -> bool:
        """Whether the sentence that starts there in that event's text, or so many around it, hold any of these words.

        Sentences of that text alone count. The sentence itself may hold no word of `without`.
        """
        for generation in reversed(self.generations):
            sentences, places = generation.sentences, generation.places
            first = bisect_left(sentences, seq, key=_SEQ)
            end = bisect_right(sentences, seq, first, key=_SEQ)
            starts = list(map(_START, sentences[first:end]))
            if start in starts:
                number = first + starts.index(start)
                around = set(range(max(first, number - before), min(end, number + after + 1)))
                close = not all(map(around.isdisjoint, filter(None, map(places.get, words))))
                return close and not any(number in places.get(word, ()) for word in without)
        return False

    def _held(self, word: str) -> list[Sentence]:
        held: list[Sentence] = []
        for generation in self.generations:
            numbers = generation.places.get(word)
            if numbers is not None:
                held += map(generation.sentences.__getitem__, numbers)
        return held

    def weigh(
        self, parts: Iterable[Sequence[str]], counts: Mapping[str, int]
    ) -> Iterator[tuple[float, float, dict[int, float]]]:
        """Yield how rare the words of each part of a call are: all, those that the goal holds, and by sentence.

        The IDF of this session, as a share: 1 where no sentence holds the word, near 0 where all do.
        """
        most, goal = len(self) + 2, self.goal
        scale = math.log(most)
        layers = [(place * _GENERATION, generation.places) for place, generation in enumerate(self.generations)]
        for part in parts:
            whole, known = 0.0, 0.0
            weighed: dict[int, float] = {}
            for word in part:
                count = counts[word]
                rarity = math.log(most / (count + 1)) / scale if count else 1.0
                whole += rarity
                if word in goal:
                    known += rarity
                for first, places in layers if count else ():
                    numbers: Iterable[int] = places.get(word, ())
                    if first:
                        numbers = [first + number for number in numbers]
                    if weighed:
                        for number in numbers:
                            weighed[number] = weighed.get(number, 0.0) + rarity
                    else:
                        weighed = dict.fromkeys(numbers, rarity)
            yield whole, known, weighed

    def sentence(self, number: int) -> Sentence:
        """Return the sentence of a number that `weigh` gave; it holds until the next text."""
        return self.generations[number // _GENERATION].sentences[number % _GENERATION]


def words_of(text: str) -> tuple[str, ...]:
    """Return the words of a text as the index knows them: without case, in order, each once."""
    if len(text) >= _GROUPS and not text.isalnum():
        text = joined(text)
    spaced = _spaced(text)
    return tuple(dict.fromkeys(_WORD.findall(caseless(shown(text))) if spaced is None else spaced.split()))


def caseless(text: str) -> str:
    """Return the text without case, each character in its place: of all of Unicode one alone grows in lower case."""
    return text.replace("İ", "i").lower()


def _forget(words: dict[str, bool] | dict[str, int], most: int) -> None:
    """Drop the words that were put in first, until so many are left."""
    for word in list(islice(words, max(0, len(words) - most))):
        del words[word]


def _pieces(plain: str) -> Iterator[tuple[str, ...]]:
    """Yield the words of the sentences of a decoded text."""
    for _, _, words in _sentences(plain):
        yield tuple(words)


def _sentences(text: str) -> Iterator[tuple[int, int, dict[str, bool]]]:
    """Yield start, end and words of the sentences of a text; of a long one those at its two ends."""
    text = _unescaped(text)
    return _worded(text, _read(text)[0])


def _unescaped(text: str) -> str:
    """Return a text of the same length: a line break that a serializer escaped is one, a folded line is none."""
    return text.replace("\\\n", "  ").replace("\\n", " \n")


def _worded(text: str, spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int, dict[str, bool]]]:
    """Yield the spans that hold words, each with its words.

    The words are keys, not a set, so that what is saved has the same order in every process.
    """
    spaced = _spaced(text)
    strange = spaced is None and odd(text)
    folded = caseless(text) if spaced is None and not strange else ""
    grouped = may_group(text)
    for start, end in spans:
        if strange:
            found = _WORD.findall(caseless(shown(text[start:end])))
        else:
            found = _WORD.findall(folded, start, end) if spaced is None else spaced[start:end].split()
        if grouped:
            found += numbers(text, start, end)
        if found:
            yield start, end, dict.fromkeys(found, True)


def _read(text: str) -> tuple[list[tuple[int, int]], int]:
    """Return the spans of a text that are read, of a long one those at its two ends; and how many are left out."""
    if len(text) > 2 * _WINDOW:
        spans = _spans(text, 0, _WINDOW)[:_PER_TEXT] + _spans(text, len(text) - _WINDOW, len(text))
        lost = -(-(len(text) - 2 * _WINDOW) // _SENTENCE)
    else:
        spans = _spans(text, 0, len(text))
        lost = max(0, len(spans) - 2 * _PER_TEXT)
    if len(spans) > 2 * _PER_TEXT:
        spans = spans[:_PER_TEXT] + spans[-_PER_TEXT:]
    return spans, lost


def _spans(text: str, start: int, stop: int) -> list[tuple[int, int]]:
    """Return the spans between breaks; a longer run than 256 characters is cut, at a space where there is one."""
    spans: list[tuple[int, int]] = []
    for end, after in [*[found.span() for found in _BREAK.finditer(text, start, stop)], (stop, stop)]:
        while end - start > _SENTENCE:
            # Where there is no space, between words; a run without an end is cut in the middle.
            cut = text.rfind(" ", start, start + _SENTENCE) + 1 or _between(text, start) or start + _SENTENCE
            spans.append((start, cut))
            start = cut
        if start < end:
            spans.append((start, end))
        start = after
    return spans


def _between(text: str, start: int) -> int:
    """Return where the last word that begins within 256 characters begins, if it is not the first."""
    place = start + _SENTENCE
    while place > start and text[place - 1].isalnum():
        place -= 1
    return place if place > start else 0


def _spaced(text: str) -> str | None:
    """Return a text without case, and with a space for each character that is in no word, for `split` to find words.

    So it costs a quarter of what the pattern costs. None where the pattern has to: where letters are not of ASCII, or
    a word may be longer than 64 characters.
    """
    if not text.isascii():
        return None
    letters = text.encode("ascii")
    if len(text) > _WORD_LENGTH and _LONGER in letters.translate(_MARKED):
        return None
    return letters.translate(_SPACED).decode("ascii")
