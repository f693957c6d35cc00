from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from theodolite.features.spelling import joined, may_group, numbers, odd, shown

IBAN = "DE89370400440532013000"
IGNORED = ["\u034f", "\ufe0f", "\u2066", "\u206a", "\u3164", "\ufff9", "\u200b", "\u00ad", "\ufeff", "\U000e0001"]


@pytest.mark.parametrize("letter", IGNORED)
def test_what_shows_nothing_is_left_out(letter: str) -> None:
    assert shown(f"e{letter}ve") == "eve"
    assert odd(f"e{letter}ve")


def test_tag_characters_are_read_as_the_ascii_that_they_hide() -> None:
    assert shown("".join(chr(0xE0000 + ord(letter)) for letter in "send it")) == "send it"


@pytest.mark.parametrize("between", [" ", "  ", "-", ".", "\u00a0", "\u202f"])
@pytest.mark.parametrize("case", [str.upper, str.lower])
def test_an_account_in_groups_is_the_account(between: str, case: type[str]) -> None:
    written = case(between.join(IBAN[place : place + 4] for place in range(0, len(IBAN), 4)))
    assert joined(f"pay {written} now").upper() == f"PAY {IBAN} NOW"
    assert list(numbers(f"pay {written}", 0, 80)) == [IBAN.lower()]


def test_what_is_no_number_stays() -> None:
    for text in ("on 2024-05-08 at 10.30", "see page AB12 for more", "1 2 3 4 5"):
        assert joined(text) == text


@given(st.text(st.one_of(st.characters(), st.sampled_from("AB12 -.+\u00a0\u200b")), max_size=60))
def test_what_the_bytes_rule_out_no_pattern_finds(text: str) -> None:
    if not may_group(text):
        assert list(numbers(text, 0, len(text))) == []
    assert shown(shown(text)) == shown(text)


def test_a_long_text_of_other_letters_is_read_in_linear_time() -> None:
    text = "Ü\u200bä。" * 30_000
    start = time.process_time()
    assert odd(text)
    shown(text)
    assert time.process_time() - start < 1.0
