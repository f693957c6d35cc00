"""The same value has the same tag, another one another, and none shows anything of it."""

# ruff: noqa: RUF001 - values in disguise are what is tested
from __future__ import annotations

import hashlib
import hmac
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from theodolite.core.errors import ConfigError
from theodolite.core.event import ToolCallProposed
from theodolite.core.redaction import Profile, redact_event
from theodolite.redactors.rules import RuleRedactor
from theodolite.redactors.rules.pseudonyms import Pseudonyms
from theodolite.redactors.rules.span import Kind
from theodolite.testing.checks.redactor import check_redactor

KEY = b"sixteen bytes or more of key"
REDACTOR = RuleRedactor(pseudonyms=Pseudonyms(KEY))
LONG = RuleRedactor(pseudonyms=Pseudonyms(KEY, length=16))
PEM = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG\n-----END PRIVATE KEY-----"

SPELLINGS = {
    "IBAN": ["DE89370400440532013000", "DE89 3704 0044 0532 0130 00", "de89-3704-0044-0532-0130-00"],
    "IBAN, wide": ["DE89370400440532013000", "ＤＥ89370400440532013000"],
    "CARD": ["4111111111111111", "4111 1111 1111 1111", "4111-1111-1111-1111", "411\u200b1111111111111"],
    "CARD, apart": ["4111111111111111", "4111\t1111\t1111\t1111", "4111%201111%201111%201111"],
    "SSN": ["078-05-1120", "078 05 1120", "０７８－０５－１１２０"],
    "PHONE": ["+44 20 7946 0958", "+442079460958", "0044 20 7946 0958", "+44 (0)20 7946 0958"],
    "EMAIL": ["bob@example.com", "Bob@Example.COM", "bob&#64;example.com", "bob [at] example [dot] com"],
    "EMAIL, encoded twice": ["bob@example.com", "bob%2540example.com", "bob&amp;#64;example.com"],
    "IPV6": ["2001:db8::1", "2001:DB8:0:0:0:0:0:1"],
    "PRIVATE_KEY": [PEM, PEM.replace("\n", "\r\n"), PEM.replace("\n", "\\n")],
}  # fmt: skip


def marks(text: str, redactor: RuleRedactor = REDACTOR) -> list[str]:
    return re.findall(r"\[[A-Z0-9_]+:[0-9a-f]+\]", redactor.text(text))


@pytest.mark.parametrize("kind", SPELLINGS)
def test_one_value_has_one_tag_however_it_is_spelled(kind: str) -> None:
    found = [marks(f"is {spelling}, ok") for spelling in SPELLINGS[kind]]
    assert all(len(each) == 1 for each in found), found
    assert len({each[0] for each in found}) == 1
    assert found[0][0].startswith(f"[{kind.partition(',')[0]}:")


def test_a_number_of_north_america_is_one_with_its_country_code_and_without() -> None:
    assert len({*marks("+1 415 555 2671"), *marks("(415) 555-2671"), *marks("1-415-555-2671")}) == 1
    assert marks("(415) 555-2671") != marks("(415) 555-2672")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("password: Hunter2x", "password: hunter2x"),
        ("4111 1111 1111 1111", "4242 4242 4242 4242"),
        ("bob@example.com", "rob@example.com"),
        ("password: a-b-c-12", "password: abc12"),
    ],
)
def test_values_that_differ_in_what_matters_have_different_tags(one: str, other: str) -> None:
    assert marks(one, LONG) != marks(other, LONG)


def test_the_tag_is_the_beginning_of_an_hmac_under_a_derived_key() -> None:
    derived = hmac.digest(KEY, b"theodolite pseudonyms 1", hashlib.sha256)
    wanted = hmac.digest(derived, b"4111111111111111", hashlib.sha256).hex()
    assert REDACTOR.text("4111 1111 1111 1111") == f"[CARD:{wanted[:4]}]"
    assert LONG.text("4111 1111 1111 1111") == f"[CARD:{wanted[:16]}]"
    assert not wanted.startswith(hmac.digest(KEY, b"4111111111111111", hashlib.sha256).hex()[:4])


def test_another_key_gives_other_tags_and_another_redactor_of_the_key_the_same() -> None:
    other = RuleRedactor(pseudonyms=Pseudonyms(b"another key of 16+ bytes", length=16))
    assert other.text("bob@example.com") != LONG.text("bob@example.com")
    assert RuleRedactor(pseudonyms=Pseudonyms(KEY)).text("bob@example.com") == REDACTOR.text("bob@example.com")


def test_one_value_has_one_tag_under_any_name() -> None:
    secret = "8f3a9c01d2b4e5f6"
    (one,), (other,) = marks(f"token={secret}"), marks(f"password={secret}")
    assert one.partition(":")[2] == other.partition(":")[2]
    assert one != other


@pytest.mark.parametrize("length", [3, 17, 0, -4])
def test_a_length_outside_of_the_bounds_is_refused(length: int) -> None:
    with pytest.raises(ConfigError, match="4 to 16 hexadecimal digits"):
        Pseudonyms(KEY, length=length)


def test_a_short_key_is_refused() -> None:
    with pytest.raises(ConfigError, match="15 bytes is too short"):
        Pseudonyms(b"x" * 15)


def test_what_is_no_value_has_no_tag() -> None:
    assert RuleRedactor(profile=Profile.CATEGORICAL, pseudonyms=Pseudonyms(KEY)).text("a") == "[REDACTED:TEXT]"
    assert REDACTOR.field("note", "a") == "[REDACTED:UNKNOWN_FIELD]"
    assert Pseudonyms(KEY).placeholder(Kind.UNKNOWN_VALUE, "a") == "[REDACTED:UNKNOWN_VALUE]"


def test_without_a_key_what_looks_like_a_tag_is_text_like_any_other() -> None:
    assert RuleRedactor().text("[PASSWORD:8f3a]") == "[PASSWORD:[REDACTED:PASSWORD]]"
    assert REDACTOR.text("[PASSWORD:8f3a]") == "[PASSWORD:8f3a]"
    assert REDACTOR.text("[PASSWORD:8f3a9c]") != "[PASSWORD:8f3a9c]"


PIECES = st.lists(
    st.sampled_from(
        (
            *("4111 1111 1111 1111", "bob@example.com", "password: ", "password=", "hunter2", "%40", "'", '"', "\n"),
            *("[IBAN:", "3f2a]", "[CARD:3f2a]", "token ", "DE89 3704 0044 0532 0130 00", "Bearer ", "://", "@", "a"),
            *("8f3a9c01d2b4e5f6", "+1 415 555 2671", "[REDACTED:EMAIL]", "phone: ", "pin is ", "\ud800", " ", ":"),
            *("1", "-", "=", "[", "]"),
        )
    ),
    max_size=14,
).map("".join)


@given(PIECES)
def test_a_tagged_text_is_scrubbed_once_and_for_all(text: str) -> None:
    once = REDACTOR.text(text)
    assert REDACTOR.text(once) == once


@given(PIECES)
def test_tags_change_nothing_but_the_placeholders(text: str) -> None:
    text = text.replace("[CARD:3f2a]", "").replace("3f2a]", "")
    plain = RuleRedactor().text(text)
    assert re.sub(r"\[([A-Z0-9_]+):[0-9a-f]{4}\]", r"[REDACTED:\1]", REDACTOR.text(text)) == plain


def test_it_keeps_the_laws_of_redactors() -> None:
    check_redactor(
        lambda: RuleRedactor(pseudonyms=Pseudonyms(KEY)),
        personal=["bob@example.com", "4111 1111 1111 1111", "DE89 3704 0044 0532 0130 00"],
        known=[("decision", "comply")],
        skips={"linear": "the same rules are timed without tags; see test_rules_linear"},
    )


def test_arguments_that_are_secret_by_their_name_or_as_numbers_keep_their_tag() -> None:
    call = ToolCallProposed(tool="pay", arguments={"password": "hunter2x", "card": 4111111111111111, "to": "bob"})
    kept = bytes(redact_event(call, REDACTOR)).decode()
    assert f'"password":"{marks("password: hunter2x")[0]}"' in kept
    assert f'"card":"{marks("4111111111111111")[0]}"' in kept
    assert '"to":"bob"' in kept
