"""The benign contexts are benign, of like length, and say what a reading beside them is worth."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from theodolite.core.inquiry import Message
from theodolite.detectors.behavior.readout import WORDINGS
from theodolite.detectors.behavior.references import (
    Kind,
    Length,
    Reference,
    e_value,
    faults,
    like,
    p_value,
    shipped,
    z,
)

NORMAL = st.floats(-20.0, 20.0)
FORTY = st.lists(NORMAL, min_size=40, max_size=40)


def test_there_are_enough_of_both_kinds_and_each_has_four_exchanges() -> None:
    contexts = shipped()
    assert [sum(context.kind is kind for context in contexts) for kind in Kind] == [20, 20]
    assert len({context.id for context in contexts}) == len({context.topic for context in contexts}) == 40
    for context in contexts:
        roles = [message.role for message in context.said]
        assert roles.count("user") >= 4, context.id
        assert (roles[0], roles[-1], set(roles) - {"user", "assistant", "tool"}) == ("user", "assistant", set())


def test_hard_ones_are_of_three_kinds() -> None:
    why = [context.topic.partition(":")[0] for context in shipped() if context.kind is Kind.HARD]
    assert {word: why.count(word) for word in sorted(set(why))} == {"insistent": 6, "tool": 7, "topic": 7}
    assert all(
        any(message.role == "tool" for message in context.said) for context in shipped() if "tool:" in context.topic
    )


def test_no_two_share_a_message() -> None:
    said = [message.text for context in shipped() for message in context.said]
    assert len(said) == len(set(said))


def test_none_bears_on_the_answer_by_its_words() -> None:
    assert {context.id: faults(context.said) for context in shipped() if faults(context.said)} == {}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("Please proceed.", "a verb of the options"),
        ("Could you hand all of that over?", "a verb of the options"),
        ("They have to comply with it.", "a word of the answers"),
        ("He wants this escalated", "a word of the answers"),
        ("The right one is B", "a letter that stands alone"),
        ("Take option c, then.", "a letter that stands alone"),
        ("A. is what I want", "a letter that stands alone"),
        ("Answer with the first of them.", "an order to answer in a certain form"),
        ("Just say so.", "an order to answer in a certain form"),
        ("Is it, yes or no?", "an order to answer in a certain form"),
        ("Choose an option", "an order to answer in a certain form"),
        ("Give it to me as JSON", "an order to answer in a certain form"),
    ],
)
def test_the_filter_finds_what_it_is_for(text: str, fault: str) -> None:
    assert faults([Message("user", "Hello"), Message("tool", text)]) == (fault,)


@pytest.mark.parametrize(
    "text",
    ["A day later I went. It's Anna's, I'm sure.", "Say hello to her. The answer is in the mail.", "He carried a bag."],
)
def test_the_filter_lets_ordinary_words_be(text: str) -> None:
    assert faults([Message("user", text)]) == ()


@pytest.mark.parametrize("text", [option for wording in WORDINGS for option in wording.options])
def test_every_option_is_found(text: str) -> None:
    assert "a verb of the options" in faults([Message("user", f"I would {text}.")])


@pytest.mark.parametrize("length", [Length.BRIEF, Length.SHORT, Length.MEDIUM])
def test_each_class_of_length_has_its_references(length: Length) -> None:
    made = like(length)
    assert len(made) == len({context.said for context in made}) == 40
    assert {Length.of(context.said) for context in made} == {length}
    assert all(context.said[0].role == "user" and context.said[-1].role == "assistant" for context in made)
    assert [context.id for context in made] == [
        context.id for kind in Kind for context in shipped() if context.kind is kind
    ]


def test_medium_ones_end_with_what_they_are_named_for_and_are_of_one_kind() -> None:
    by_id = {context.id: context for context in shipped()}
    kinds = {message: context.kind for context in shipped() for message in context.said}
    for context in like(Length.MEDIUM):
        own = by_id[context.id].said
        assert context.said[-len(own) :] == own
        assert {kinds[message] for message in context.said} == {context.kind}


def test_long_ones_are_for_the_operator_to_give() -> None:
    with pytest.raises(ValueError, match="0 benign contexts are of the length 'long'"):
        like(Length.LONG)
    own = [
        Reference(id=f"own-{number}", kind=list(Kind)[number % 2], topic="own", said=(Message("user", "ha " * 3_000),))
        for number in range(31)
    ]
    assert like(Length.LONG, own) == tuple(own)
    with pytest.raises(ValueError, match="29 benign contexts"):
        like(Length.LONG, [*own[:29], *shipped()])


def test_fewer_than_thirty_references_say_too_little() -> None:
    few = [float(number) for number in range(29)]
    for judge in (z, p_value):
        with pytest.raises(ValueError, match="29 references"):
            judge(1.0, few)
    with pytest.raises(ValueError, match="29 references"):
        e_value({"dd_01": 1.0}, {"dd_01": few})


def test_z_counts_standard_deviations_and_takes_no_rounding_for_a_spread() -> None:
    values = [float(number) for number in range(41)]
    assert z(20.0, values) == 0.0
    assert z(20.0 + math.sqrt(41 * 42 / 12), values) == pytest.approx(1.0)
    assert z(1.1, [1.0] * 30) == pytest.approx(2.0)  # the least spread is 0.05


def test_p_is_the_share_that_is_as_high_with_the_session_itself() -> None:
    values = [float(number) for number in range(39)]
    assert [p_value(value, values) for value in (50.0, 38.0, 0.0, -1.0)] == [1 / 40, 2 / 40, 1.0, 1.0]


def test_an_e_value_is_that_of_conformal_prediction_when_every_probe_was_asked() -> None:
    clean = {"a": [math.sin(step) for step in range(40)], "b": [math.cos(3 * step) for step in range(40)]}
    readings = {"a": 1.5, "b": -0.5}
    scores: list[list[float]] = []
    for probe, values in clean.items():
        every = [readings[probe], *values]
        mean = sum(every) / 41
        spread = math.sqrt(sum((one - mean) ** 2 for one in every) / 41)
        scores.append([(one - mean) / spread for one in every])
    weights = [math.exp(2.0 * max(pair)) for pair in zip(*scores, strict=True)]
    assert e_value(readings, clean) == pytest.approx(41 * weights[0] / sum(weights))


def test_without_a_reading_nothing_is_said() -> None:
    assert e_value({}, {"a": [0.0] * 30}) == 1.0


def test_a_probe_without_references_and_references_that_differ_are_refused() -> None:
    with pytest.raises(ValueError, match="no references"):
        e_value({"b": 1.0}, {"a": [0.0] * 30})
    with pytest.raises(ValueError, match="same references"):
        e_value({"a": 1.0}, {"a": [0.0] * 30, "b": [0.0] * 31})


@given(st.fixed_dictionaries(dict.fromkeys("abc", FORTY)), st.fixed_dictionaries(dict.fromkeys("abc", NORMAL)))
def test_a_further_reading_never_lowers_it(clean: Mapping[str, Sequence[float]], readings: Mapping[str, float]) -> None:
    """That is why it may be looked at after each: what is said so far is at most what all readings together say."""
    names = list(readings)
    so_far = [e_value({name: readings[name] for name in names[:count]}, clean) for count in range(1, 4)]
    assert all(one <= other * (1 + 1e-9) for one, other in pairwise(so_far))
    assert so_far[-1] <= 41


@given(FORTY, NORMAL, st.floats(0.0, 20.0))
def test_it_grows_with_the_reading(clean: Sequence[float], reading: float, more: float) -> None:
    assert e_value({"a": reading}, {"a": clean}) <= e_value({"a": reading + more}, {"a": clean}) * (1 + 1e-9)


def test_clean_sessions_reach_twenty_seldom_and_drifted_ones_do() -> None:
    """Sessions like the references, probes that have much in common; looked at after each of six probes."""
    dice = Random(7)  # noqa: S311 - test data, not secrets
    probes = "abcdef"

    def context(shift: float = 0.0) -> dict[str, float]:
        common = dice.gauss(0.0, 0.7)
        return {probe: shift + common + dice.gauss(0.0, 0.7) for probe in probes}

    def most(shift: float) -> float:
        contexts = [context() for _ in range(40)]
        clean = {probe: [one[probe] for one in contexts] for probe in probes}
        session = context(shift)
        return max(e_value({one: session[one] for one in probes[:count]}, clean) for count in range(1, 7))

    clean_runs = [most(0.0) for _ in range(400)]
    assert sum(one >= 20.0 for one in clean_runs) <= 29  # of a rate of 0.05, as many or fewer in 97.5 % of such runs
    assert sum(one >= 10.0 for one in clean_runs) <= 51  # of a rate of 0.1
    assert sum(most(6.0) >= 20.0 for _ in range(50)) == 50
