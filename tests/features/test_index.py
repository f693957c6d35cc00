"""The index reads ASCII text in a faster way: it finds what the patterns find."""

from __future__ import annotations

import json
import re
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from theodolite.features.index import WordIndex, words_of

# Letters of ASCII and beyond, what is in no word, and what ends a sentence; also words about as long as one may be.
PIECES = st.sampled_from(
    ["a", "B", "9", "_", "-", " ", "\t", "\x1c", "\n", ". ", "! ", "@", "\\n", "\\\n", "0" * 63, "b" * 64]
)
ASCII = st.lists(PIECES, max_size=40).map("".join)
BEYOND = st.lists(st.one_of(PIECES, st.sampled_from("éİßΣ。 \u200b٣²\ud800")), max_size=40).map("".join)


def sentences(text: str) -> list[set[str]]:
    """Return the words of each sentence of a text."""
    index = WordIndex()
    index.distrust(1, text)
    if not index.generations:
        return []
    (held,) = index.generations
    return [
        {word for word, numbers in held.places.items() if number in numbers} for number in range(len(held.sentences))
    ]


UNSEEN = "\u00ad\u180e\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2061\u2062\u2063\u2064\ufeff"


@given(ASCII | BEYOND)
def test_words_are_runs_of_letters_and_digits_without_case_of_up_to_64(text: str) -> None:
    seen = "".join(letter for letter in text if letter not in UNSEEN)
    plain = unicodedata.normalize("NFKC", seen).replace("İ", "i").lower()
    assert words_of(text) == tuple(dict.fromkeys(re.findall(r"[^\W_]{1,64}", plain)))


@given(ASCII)
def test_a_letter_beyond_ascii_changes_no_sentence_but_its_own(text: str) -> None:
    assert sentences(f"{text}\né") == [*sentences(f"{text}\n"), {"é"}]


@given(ASCII)
def test_a_word_of_more_than_64_letters_changes_no_sentence_but_its_own(text: str) -> None:
    assert sentences(f"{text}\n{'x' * 65}") == [*sentences(f"{text}\n"), {"x" * 64, "x"}]


def test_lines_that_a_serializer_escaped_are_left_out_and_counted_as_lines() -> None:
    lines = "\n".join([f"line {number}" for number in range(600)])
    plain, escaped = WordIndex(), WordIndex()
    plain.distrust(1, lines)
    escaped.distrust(1, json.dumps(lines))
    assert (plain.lost, escaped.lost) == (88, 88)
    assert len(plain) == len(escaped) == 512
