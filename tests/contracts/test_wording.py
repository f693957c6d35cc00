"""What is shown of a change of words: bounded, and never the same on both sides."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import UNSET

from theodolite.contracts.wording import changed, replaced

TEXTS = st.text(st.sampled_from('ab \\"\n\u200b\u0430é́e\ufe0f\u202e'), max_size=400)


@given(TEXTS, TEXTS)
@example("cafe\u0301", "caf\u00e9")
@example("\u200b", "\\u200b")
@example("none", "")
@example("paypal", "p\u0430ypal")
@example("x" * 500, "x" * 501)
@example("\U000e0101" * 30, "\U000e0101" * 31)
@example("\U000e0101" * 30 + "a", "\U000e0101" * 30 + "b")
def test_texts_that_differ_look_different_and_are_bounded(before: str, after: str) -> None:
    shown = changed(before, after)
    assert len(shown) <= 400
    assert shown.isprintable()
    assert not set(shown) & set("\u200b\u202e\ufe0f\U000e0101")
    assert shown.count(" -> ") == 1
    if before != after:
        assert shown != changed(before, before)
        mine, _, theirs = shown.partition('" -> "')
        assert mine.strip('"') != theirs.strip('"')


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ("", "x", '"" -> "x"'),
        (UNSET, "x", 'none -> "x"'),
        (True, False, "true -> false"),
        (None, "null", 'null -> "null"'),
        ({"b": 1.0, "a": "ä"}, [1], '{"a":"ä","b":1} -> [1]'),
        ("Reads.", "Reads.\x1b[2J", '"Reads." -> "Reads.\\x1b[2J"'),
        ("Привет", "Пока", '"Привет" -> "Пока"'),
        ("paypal and so on", "p\u0430ypal and so 0n", '"paypal and so on" -> "p\\u0430ypal and so 0n"'),
        ("caf\u00e9", "cafe\u0301", '"caf\\xe9" -> "cafe\\u0301"'),
        ("a -> b", "a->b", '"a -\\x3e b" -> "a->b"'),
        ("a b", "a\u00a0b", '"a b" -> "a\\xa0b"'),
        ("-" * 60 + "a", "-" * 60 + "b", f'"{"-" * 60}a" -> "{"-" * 60}b"'),
        ("-" * 61 + "a", "-" * 61 + "b", f'"…{"-" * 24}a" -> "…{"-" * 24}b"'),
    ],
)
def test_both_sides_are_shown(before: object, after: object, shown: str) -> None:
    assert changed(before, after) == shown


def test_what_is_cut_says_how_much_there_is() -> None:
    assert changed("", "x" * 1_234).endswith('x…" (1,234 characters)')


def test_several_values_of_one_place_are_shown_together() -> None:
    assert replaced(["a"], ["b"]) == '"a" -> "b"'
    assert replaced([], ["b"]) == 'none -> "b"'
    assert replaced(["a", "c"], ["b"]) == '["a","c"] -> "b"'
