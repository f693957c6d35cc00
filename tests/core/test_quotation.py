"""A quotation shows nothing that the whole text, scrubbed, does not show."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from theodolite.core.event import GoalStated, ToolCallProposed
from theodolite.core.quotation import MARK, Hidden, Whole, spliced
from theodolite.core.redaction import DenyAll, Redacted, Scrubber


class Planted(NamedTuple):
    text: str
    scrubbed: str


class KnowsWholes:
    """Knows what is secret in some whole texts, and nothing in any piece of them."""

    name = "wholes"
    version = "1"

    def __init__(self, *known: Planted) -> None:
        self._known = {planted.text: planted.scrubbed for planted in known}

    def text(self, value: str, secrets: Collection[str] = ()) -> Redacted:
        del secrets
        return Redacted(self._known.get(value, value))

    def field(self, name: str, value: str) -> Redacted:
        return DenyAll().field(name, value)


def planted(parts: list[tuple[str, str]]) -> Planted:
    """Put secrets between clear words: one after each."""
    text = "".join(clear + secret for clear, secret in parts)
    return Planted(text, "".join(clear + ("[REDACTED:KEY]" if secret else "") for clear, secret in parts))


def of(alphabet: str, least: int = 0) -> st.SearchStrategy[str]:
    return st.text(alphabet, min_size=least, max_size=7)


# Of one alphabet, so that it is hard to tell which is which; and of two, where nothing is doubtful.
ALIKE = st.lists(st.tuples(of("ab "), of("ab ")), min_size=1, max_size=4).map(planted)
APART = st.lists(st.tuples(of("abc ", 1), of("xyz", 1)), min_size=1, max_size=4).map(planted)


def shown(planted: Planted, start: int, end: int) -> str:
    """Return a quotation of a text, which the session holds."""
    scrubber = Scrubber(KnowsWholes(planted), (), [GoalStated(text=planted.text)])
    return scrubber.quote(planted.text[start:end])


def places(planted: Planted) -> list[tuple[int, int]]:
    size = len(planted.text)
    return [(start, end) for start in range(size) for end in range(start + 1, size + 1)]


@given(ALIKE)
def test_no_quotation_of_any_length_at_any_offset_shows_more_than_the_whole_does(planted: Planted) -> None:
    visible = MARK.split(planted.scrubbed)
    for start, end in places(planted):
        for run in MARK.split(shown(planted, start, end)):
            assert any(run in clear for clear in visible), (start, end)


@given(APART)
def test_where_nothing_is_doubtful_a_quotation_loses_the_secret_and_no_more(planted: Planted) -> None:
    for start, end in places(planted):
        quoted = planted.text[start:end]
        kept = "".join(char for char in quoted if char in "abc ")
        assert MARK.sub("", shown(planted, start, end)) == kept


def test_a_quotation_says_what_it_does_not_show() -> None:
    text = planted([("the key is ", "xyzzy-plugh"), (" and more", "")])
    assert shown(text, 4, 16) == "key is [REDACTED:KEY]"
    assert shown(text, 13, 18) == "[REDACTED:KEY]"
    assert shown(text, 22, 28) == " and m"


def test_each_mark_stands_for_something() -> None:
    whole = Whole("xaya, z", "[REDACTED:ONE]a[REDACTED:TWO], [REDACTED:THREE]")
    assert [next(whole.over(secret)).shown for secret in "xyz"] == [
        "[REDACTED:ONE]",
        "[REDACTED:TWO]",
        "[REDACTED:THREE]",
    ]
    side_by_side = Whole("xy!", "[REDACTED:ONE][REDACTED:TWO]!")
    assert [next(side_by_side.over(secret)).shown for secret in "xy"] == ["[REDACTED:ONE]", "[REDACTED:TWO]"]


def test_a_text_that_is_periodic_and_secret_is_hidden_whole() -> None:
    whole = Whole("a " + "x" * 1000 + " b", "a [REDACTED:KEY] b")
    assert list(whole.over("x" * 10))[-1] == Hidden(0, 10, "[REDACTED:TEXT]")
    assert list(whole.over("y")) == []


class Changing(DenyAll):
    """Writes its own marks."""

    def text(self, value: str, secrets: Collection[str] = ()) -> Redacted:
        del secrets
        return Redacted(value.replace("xyzzy plugh", "<secret>"))


@pytest.mark.parametrize(
    ("quoted", "passed"),
    [
        ("the word xyzzy plugh!", "the word <secret>!"),
        ("xyzzy", "[REDACTED:TEXT]"),
        ("xyzzy plug", "[REDACTED:TEXT]"),
        ("the word", "the word"),
    ],
)
def test_of_a_redactor_with_marks_of_its_own_a_quotation_shows_what_is_left_in_the_whole(
    quoted: str, passed: str
) -> None:
    assert Scrubber(Changing(), (), [GoalStated(text="Say the word xyzzy plugh!")]).quote(quoted) == passed


@pytest.mark.parametrize(
    "scrubbed",
    ["", "ab", "b[REDACTED:A]", "[REDACTED:A]abc", "ab[REDACTED:A]bc", "[REDACTED:A]x[REDACTED:B]"],
)
def test_what_is_not_the_given_text_with_marks_shows_nothing_else(scrubbed: str) -> None:
    whole = Whole("abc", scrubbed)
    assert list(whole.over("bc")) == [Hidden(0, 2, "[REDACTED:TEXT]")]
    assert whole.shows("bc") == ("bc" in scrubbed)


def test_a_short_piece_is_shown_if_a_text_shows_it_and_a_long_one_if_all_do() -> None:
    key, clear = Planted("xyzzy-plugh", "[REDACTED:KEY]"), Planted("xyzzy-plugh!", "xyzzy-plugh!")
    scrubber = Scrubber(KnowsWholes(key), (), [GoalStated(text=key.text), GoalStated(text=clear.text)])
    assert scrubber.quote("xyz") == "xyz"
    assert scrubber.quote("zzy-plugh") == "[REDACTED:KEY]"


def test_a_short_name_is_held_against_no_other_text() -> None:
    scrubber = Scrubber(KnowsWholes(Planted("xyzzy-plugh", "[REDACTED:KEY]")), (), [GoalStated(text="xyzzy-plugh")])
    assert scrubber.quote("xyz", name=True) == "xyz"
    assert scrubber.quote("zzy-plugh", name=True) == "[REDACTED:KEY]"


def test_what_arguments_hide_by_their_names_is_not_quoted_from_them() -> None:
    call = ToolCallProposed(tool="login", arguments={"password": "xyzzy", "user": "bob"})
    known = Planted('{"password":"xyzzy","user":"bob"}', '{"password":"[REDACTED:KEY]","user":"bob"}')
    scrubber = Scrubber(KnowsWholes(known), (), [call])
    assert (scrubber.quote("xyzzy"), scrubber.quote("bob")) == ("[REDACTED:KEY]", "bob")


def test_overlapping_spans_are_one() -> None:
    assert spliced("abcdef", [Hidden(1, 3, "X"), Hidden(2, 5, "Y"), Hidden(5, 6, "Z")]) == "aXZ"
