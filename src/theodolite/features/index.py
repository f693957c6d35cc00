r"""The words of one session: the user's, those of records that nobody else writes, and each sentence of other text.

Both folds that ask where the words of a call stood before, the margin and the provenance, read this one index. What
stands in untrusted text in base64, hexadecimal, percent-encoding or HTML entities is read as well, in its place.

Limits. Scripts without spaces are compared by whole runs of up to 64 characters. Of a long result only the first and
last 256 sentences are read, and of the session only the newest 1,024 to 1,536 sentences: who controls that much text
can push a sentence out.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from operator import attrgetter

from msgspec import Struct

from theodolite.features.encodings import decoded

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


class Spoken(Struct, frozen=True, gc=False):
    """The words of the values of one call, and in how many sentences they and those of its tool's name stand.

    Found once, read by all folds.
    """

    words: dict[str, tuple[str, ...]]
    counts: dict[str, int]


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
        return sum(len(generation.sentences) for generation in self.generations)

    def spoken(self, values: Iterable[str], most: int, beside: Iterable[str] = ()) -> Spoken:
        """Return the words of the first 64 values, of each up to `most` characters, and their counts.

        Words that stand `beside` them, in the name of the tool, are counted too.
        """
        words = {value: words_of(value[:most]) for value in islice(values, _VALUES)}
        return Spoken(words, self.counts(chain(beside, *words.values())))

    def counts(self, words: Iterable[str]) -> dict[str, int]:
        """Return in how many sentences each word stands, in the case of `words_of`."""
        counts = dict.fromkeys(words, 0)
        for generation in self.generations:
            places = generation.places
            for word in counts:
                held = places.get(word)
                if held is not None:
                    counts[word] += len(held)
        return counts

    def first(self, words: Sequence[str], counts: Mapping[str, int]) -> Sentence | None:
        """Return where all these words first stood in one event's text: the sentence there of the rarest of them.

        The rarest words decide, up to 256 sentences beyond those of the first.
        """
        if not all(map(counts.__getitem__, words)):  # of most texts that the model wrote one word is new
            return None
        rarest = sorted(words, key=counts.__getitem__)
        common: set[int] | None = None
        visits = 0
        for word in rarest:
            visits += counts[word]
            if common is not None and (not common or visits > _VISITS):
                break
            seqs = {sentence.seq for sentence in self._held(word)}
            common = seqs if common is None else common & seqs
        if not common:
            return None
        seq = min(common)
        return next(sentence for sentence in self._held(rarest[0]) if sentence.seq == seq)

    def near(self, seq: int, start: int, words: Iterable[str]) -> bool:
        """Whether the sentence that starts there in that event's text, or the one before, holds any of these words."""
        for generation in reversed(self.generations):
            sentences = generation.sentences
            for number in range(bisect_left(sentences, seq, key=attrgetter("seq")), len(sentences)):
                if sentences[number].seq != seq:
                    break
                if sentences[number].start == start:
                    same = {number, number - 1} if number and sentences[number - 1].seq == seq else {number}
                    places = generation.places
                    return any(not same.isdisjoint(places.get(word, ())) for word in words)
        return False

    def _held(self, word: str) -> list[Sentence]:
        return [
            generation.sentences[number]
            for generation in self.generations
            for number in generation.places.get(word, ())
        ]

    def weigh(self, words: Iterable[tuple[str, float]]) -> dict[int, float]:
        """Return, by number, each sentence that holds one of the words, with the weights of all that it holds."""
        weighed: dict[int, float] = {}
        for word, weight in words:
            for place, generation in enumerate(self.generations):
                first = place * _GENERATION
                for number in generation.places.get(word, ()):
                    weighed[first + number] = weighed.get(first + number, 0.0) + weight
        return weighed

    def sentence(self, number: int) -> Sentence:
        """Return the sentence of a number that `weigh` gave; it holds until the next text."""
        return self.generations[number // _GENERATION].sentences[number % _GENERATION]


def words_of(text: str) -> tuple[str, ...]:
    """Return the words of a text as the index knows them: without case, in order, each once."""
    spaced = _spaced(text)
    return tuple(dict.fromkeys(_WORD.findall(caseless(text)) if spaced is None else spaced.split()))


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
    folded = caseless(text) if spaced is None else ""
    for start, end in spans:
        found = _WORD.findall(folded, start, end) if spaced is None else spaced[start:end].split()
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
            cut = text.rfind(" ", start, start + _SENTENCE) + 1 or start + _SENTENCE
            spans.append((start, cut))
            start = cut
        if start < end:
            spans.append((start, end))
        start = after
    return spans


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
