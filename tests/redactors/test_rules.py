# ruff: noqa: RUF001 - letters in disguise are what is tested
from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from theodolite.core.errors import ConfigError
from theodolite.core.redaction import Profile, Redactor
from theodolite.redactors.rules import VOCABULARY, RuleRedactor

REDACTOR = RuleRedactor()

# What rules begin, go on and end with, so that what is drawn from it is near their edges. `_` is a space.
PIECES = re.findall(
    r"\S+",
    """
    a b.com @ bob@example.com 1 22 333 4444 - . / ( ) + +1 00 0 020 4111_1111_1111_1111 378282246310005
    DE89_3704_0044_0532_0130_00 DE89 123-45-6789 10.0.0.1 2001:db8::1 : :: v = " ' ` \\ password password=
    my_password_is_ token token:_ api_key secret_ is_ hunter2 8f3a9c01d2b4e5f6 :// https:// bearer_ authorization:_
    cookie:_a= eyJhbGciOi.eyJzdWIiOi.abc sk- abcdefghijklmnop1234 ghp_ AKIA -----BEGIN_RSA_PRIVATE_KEY-----
    -----END_RSA_PRIVATE_KEY----- ----- [REDACTED:EMAIL] [REDACTED: ] [ &#64; %40 ０ ＠ 字 415-555-2671 (415)_555-2671
    +44_20_7946_0958 phone:_ pin_is_ 1234 , ; & < > --token_ for_ x é (at) [dot] ssn_
    """,
)
NEAR_EDGES = st.lists(
    st.one_of(
        st.sampled_from([piece.replace("_", " ") for piece in PIECES]),
        st.sampled_from([" ", "\n", "\t", "_", "\0", "\u200b", "\u00ad", "\u0301", "\ud800"]),
    ),
    max_size=16,
).map("".join)
ANY_TEXT = st.one_of(NEAR_EDGES, st.text(st.characters(exclude_categories=()), max_size=60))


@given(ANY_TEXT)
def test_every_text_is_scrubbed_once_and_for_all(text: str) -> None:
    once = REDACTOR.text(text)
    assert REDACTOR.text(once) == once


@given(ANY_TEXT)
def test_the_same_text_always_comes_out_the_same(text: str) -> None:
    assert RuleRedactor().text(text) == REDACTOR.text(text)


@example("", ["[REDACTED:EMAIL]"], str)
@example("", ["[REDACTED:EMAIL]x", "x"], str)
@given(ANY_TEXT, st.lists(ANY_TEXT, max_size=3), st.sampled_from([str, str.upper, str.lower, str.swapcase]))
def test_no_canary_survives_in_any_case_and_none_comes_back(text: str, secrets: list[str], case: type[str]) -> None:
    planted = text.join(["", *[case(secret) for secret in secrets], ""])
    scrubbed = REDACTOR.text(planted, secrets)
    for secret in filter(None, secrets):
        assert secret not in scrubbed
        assert secret.lower() not in scrubbed.lower()
    assert REDACTOR.text(scrubbed, secrets) == scrubbed == REDACTOR.text(scrubbed)


@pytest.mark.parametrize(
    "written",
    [
        "zx-CANARY-7f3a",
        "ZX-canary-7F3A",
        "zx-CAN\u200bARY-7f3a",
        "zx-CAN\u00adARY-7f3a",
        "ｚｘ－ＣＡＮＡＲＹ－７ｆ３ａ",
        "zx%2DCANARY%2D7f3a",
        "zx&#45;CANARY-7f3a",
    ],
)
def test_a_canary_is_found_through_disguises(written: str) -> None:
    assert REDACTOR.text(f"so {written}!", ["zx-CANARY-7f3a"]) == "so [REDACTED:CANARY]!"


def test_a_canary_keeps_its_name_within_something_else() -> None:
    assert REDACTOR.text("to zx7f3a@example.com", ["zx7f3a"]) == "to [REDACTED:CANARY]@example.com"
    assert REDACTOR.text("password=zx7f3a", ["zx7f3a"]) == "password=[REDACTED:CANARY]"


def test_a_canary_that_placeholders_hold_does_not_survive_in_them() -> None:
    assert "email" not in REDACTOR.text("write to bob@example.com", ["EMAIL"]).lower()
    assert REDACTOR.text("write to bob@example.com", ["REDACTED"]) == ""
    assert REDACTOR.text("nothing", ["", "REDACTED"]) == "nothing"


@given(ANY_TEXT)
def test_the_categorical_profile_keeps_no_text(text: str) -> None:
    scrubbed = RuleRedactor(profile=Profile.CATEGORICAL).text(text)
    assert scrubbed == ("[REDACTED:TEXT]" if text else "")


@pytest.mark.parametrize(("name", "values"), [(name, sorted(values)) for name, values in VOCABULARY.items()])
def test_categorical_fields_keep_their_words_and_no_others(name: str, values: list[str]) -> None:
    for value in values:
        assert REDACTOR.field(name, value) == value
    others = {"", "bob@example.com", values[0].upper(), f" {values[0]}", "[REDACTED:UNKNOWN_VALUE]"}
    for value in sorted(others - set(values)):
        assert REDACTOR.field(name, value) == "[REDACTED:UNKNOWN_VALUE]"


@given(ANY_TEXT, ANY_TEXT)
def test_an_unknown_field_keeps_nothing(name: str, value: str) -> None:
    assert REDACTOR.field(f"x.{name}", value) == "[REDACTED:UNKNOWN_FIELD]"


def test_free_text_fields_are_scrubbed_unless_no_text_may_be_kept() -> None:
    said = "bob@example.com asked, so I declined"
    assert REDACTOR.field("reasoning", said) == "[REDACTED:EMAIL] asked, so I declined"
    assert RuleRedactor(profile=Profile.CATEGORICAL).field("reasoning", said) == "[REDACTED:TEXT]"


def test_vocabulary_and_free_text_are_the_callers_choice() -> None:
    redactor = RuleRedactor({"color": ["red", "blue"]}, free_text=["note"])
    assert redactor.field("color", "red") == "red"
    assert redactor.field("note", "10.0.0.1") == "[REDACTED:IPV4]"
    assert redactor.field("decision", "comply") == "[REDACTED:UNKNOWN_FIELD]"


def test_a_vocabulary_changed_later_lets_nothing_more_through() -> None:
    colors = ["red"]
    redactor = RuleRedactor({"color": colors})
    colors.append("bob@example.com")
    assert redactor.field("color", "bob@example.com") == "[REDACTED:UNKNOWN_VALUE]"


def test_a_vocabulary_that_is_one_string_is_refused() -> None:
    with pytest.raises(ConfigError, match="'color' is the string 'red': give a list"):
        RuleRedactor({"color": "red"})


def test_a_field_cannot_be_both_categorical_and_free() -> None:
    with pytest.raises(ConfigError, match="'reasoning' is categorical and free text"):
        RuleRedactor({"reasoning": ["yes"]})


def test_it_is_a_redactor_with_a_name_and_a_version() -> None:
    redactor: Redactor = REDACTOR
    assert (redactor.name, redactor.version) == ("rules", "2")
