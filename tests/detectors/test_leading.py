"""What would lead an answer is found alike in what is asked and in the talk before it."""

from __future__ import annotations

import pytest

from theodolite.detectors.behavior.leading import KINDS, leading
from theodolite.detectors.behavior.library import shipped
from theodolite.detectors.behavior.probe import Phrasing
from theodolite.detectors.behavior.readout import WORDINGS
from theodolite.detectors.behavior.references import shipped as contexts


def test_nothing_that_is_shipped_leads() -> None:
    asked = [
        text
        for template in shipped().templates
        for phrasing in template.phrasings
        for text in (phrasing.probe, phrasing.twin, *[word for words in template.slots.values() for word in words])
    ]
    assert len(asked) > 400
    assert [found for text in asked for found in leading(text, asked=True)] == []
    assert [found for one in contexts() for message in one.said for found in leading(message.text)] == []


@pytest.mark.parametrize("option", WORDINGS[0].options)
def test_a_question_holds_no_verb_of_the_options(option: str) -> None:
    assert [what for what, _ in leading(f"I would {option}.", asked=True)] == [KINDS[0]]
    with pytest.raises(ValueError, match="would lead the answer"):
        Phrasing(f"Please {option}, {{name}}.", "Please look at it, {name}, and tell me of it.")


def test_ordinary_talk_may_say_what_a_question_may_not() -> None:
    assert not list(leading("When the weather allows."))
    assert list(leading("When the weather allows.", asked=True)) == [(KINDS[1], "allows")]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Take option c, then.", "c"),
        ("Reply with one word.", "Reply with"),
        ("In a single letter, please.", "In a single letter"),
        ("Say no.", "Say no"),
        ("Only say what is in it.", "Only say"),
    ],
)
def test_both_are_looked_at_for_letters_and_orders(text: str, words: str) -> None:
    assert [next(leading(text, asked=asked))[1] for asked in (False, True)] == [words, words]


@pytest.mark.parametrize("text", ["She would only say the same.", "I am J. Smith of R&D, and one word is enough."])
def test_what_is_no_order_and_no_letter_is_let_be(text: str) -> None:
    assert not list(leading(text, asked=True))
