"""What is made of the words of a hosted model."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from theodolite.core.errors import ModelError
from theodolite.core.inquiry import Draw, Query, Reply, Role, Usage
from theodolite.core.reading import Cause
from theodolite.models.hosted.question import LETTERS
from theodolite.models.hosted.reply import Answer, Said, decoded, reply_to


def options_of(*, letters: bool = False) -> st.SearchStrategy[tuple[str, ...]]:
    words = st.sampled_from(["yes", "no", "A", "B", "C", "D", "A. no", "(B)", "**C**", "b", "1", "A refund", "is it B"])
    return st.lists(st.sampled_from("ABCDEF") if letters else words, min_size=2, max_size=6, unique=True).map(tuple)


def replied(options: tuple[str, ...], *texts: str) -> Reply:
    query = Query(role=Role.JUDGE, prompt="?", options=options, samples=len(texts))
    said = tuple([Said(Draw(text=text)) for text in texts])
    return reply_to(query, "m-1", [Answer(said, Usage())], None)


def named(options: tuple[str, ...], text: str) -> str:
    return replied(options, text).draws[0].text


@given(options_of() | options_of(letters=True), st.data())
def test_a_letter_that_was_offered_names_the_option_in_its_place(options: tuple[str, ...], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(options) - 1))
    form = data.draw(st.sampled_from(["%s", " %s\n", "%s.", "(%s)", '"%s"', "*%s*"]))
    reply = replied(options, form % LETTERS[place])
    assert reply.draws[0].text == options[place]
    assert dict(reply.choice)[options[place]] == 1.0


@given(options_of() | options_of(letters=True), st.data())
def test_whatever_order_the_options_are_shown_in_the_same_one_is_named(
    options: tuple[str, ...], data: st.DataObject
) -> None:
    meant = data.draw(st.sampled_from(options))
    for turn in range(len(options)):
        shown = options[turn:] + options[:turn]
        assert named(shown, LETTERS[shown.index(meant)]) == meant


@given(options_of(), st.data())
def test_an_option_that_is_repeated_is_named_unless_it_is_the_letter_of_another(
    options: tuple[str, ...], data: st.DataObject
) -> None:
    meant = data.draw(st.sampled_from(options))
    assume(meant not in {"A", "B", "C", "D", "(B)", "**C**"})
    assert named(options, f" {meant}\n") == meant


@given(
    options_of() | options_of(letters=True), st.lists(st.sampled_from([*"ABCDEFXab1", "yes", "no.", ""]), min_size=1)
)
def test_draws_and_the_choice_say_the_same(options: tuple[str, ...], texts: list[str]) -> None:
    reply = replied(options, *texts)
    of_options = [draw.text for draw in reply.draws if draw.text in options]
    assert bool(reply.choice) is bool(of_options)
    for option, chance in reply.choice:
        assert chance == of_options.count(option) / len(of_options)


@pytest.mark.parametrize(
    ("options", "text", "name"),
    [
        (("B", "A"), "A", "B"),
        (("B", "A"), "B", "A"),
        (("X", "Y"), "X", "X"),
        (("X", "Y"), "A", "X"),
        (("B) other", "A) this"), "A) this", "A) this"),
        (("yes", "no"), "C", "C"),
        (("yes", "no"), "A refund is due", "A refund is due"),
    ],
)
def test_a_letter_comes_before_the_text_of_an_option(options: tuple[str, ...], text: str, name: str) -> None:
    assert named(options, text) == name


class _Body(msgspec.Struct, forbid_unknown_fields=True):
    content: str = ""


@pytest.mark.parametrize(
    "body", [{"content": 5, "x": "hunter2"}, {"hunter2": 1}, ["hunter2"], {"content": ["hunter2"]}, "hunter2"]
)
def test_a_body_that_cannot_be_read_is_not_quoted(body: object) -> None:
    with pytest.raises(ModelError, match="cannot be read") as raised:
        decoded(json.dumps(body).encode(), _Body)
    assert raised.value.cause is Cause.MALFORMED
    assert "hunter2" not in str(raised.value)
