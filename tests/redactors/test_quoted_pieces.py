"""No quotation, of any length and at any offset, shows a part of what the scrub of the whole text takes away."""

from __future__ import annotations

import random
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from theodolite.core.event import GoalStated
from theodolite.core.quotation import MARK
from theodolite.core.redaction import Scrubber
from theodolite.redactors.rules import RuleRedactor
from theodolite.redactors.rules.pseudonyms import Pseudonyms

BASE64 = string.ascii_letters + string.digits + "+/"
PLAIN, TAGGED = RuleRedactor(), RuleRedactor(pseudonyms=Pseudonyms(b"a key of the operator", length=8))


def armored(lines: int, label: str = "RSA PRIVATE KEY") -> str:
    rng = random.Random(lines)  # noqa: S311 - a made-up key
    body = "\n".join("".join(rng.choices(BASE64, k=64)) for _ in range(lines))
    return f"-----BEGIN {label}-----\n{body}\n-----END {label}-----"


SECRETS = {
    "a key of 8 kB": armored(125),
    "a short key": armored(3, "PRIVATE KEY"),
    "a card": "4111 1111 1111 1111",
    "an account": "DE89 3704 0044 0532 0130 00",
    "an address": "anna&#64;example.com",
    "a password": "password: hunter2-correct-horse",
    "a password below": "Password:\n  Tr0ub4dor&3\n",
    "a token": "Authorization: Bearer 8f3a9c01d2b4e5f6a7b8",
    "a row": "4111 1111 1111 1111, 4242 4242 4242 4242",
}
AROUND = st.text("abc XYZ 019 é字 \n.,;:!?()[]<>\"'/|*#@+-\u200b", max_size=40)


def scrubber(text: str, redactor: RuleRedactor) -> Scrubber:
    return Scrubber(redactor, (), [GoalStated(text=text)])


def runs(shown: str) -> list[str]:
    return [run.removesuffix("\N{HORIZONTAL ELLIPSIS}") for run in MARK.split(shown)]


@pytest.mark.parametrize("redactor", [PLAIN, TAGGED], ids=["plain", "tagged"])
@given(st.lists(st.tuples(AROUND, st.sampled_from(sorted(SECRETS))), min_size=1, max_size=3), AROUND, st.data())
def test_a_quotation_shows_only_what_the_whole_text_shows(
    redactor: RuleRedactor, parts: list[tuple[str, str]], end: str, data: st.DataObject
) -> None:
    text = "\n".join(f"{around} {SECRETS[name]}" for around, name in parts) + f"\n{end}"
    visible = MARK.split(redactor.text(text))
    scrub = scrubber(text, redactor)
    for _ in range(8):
        start = data.draw(st.integers(0, len(text) - 1))
        length = data.draw(st.one_of(st.integers(1, 12), st.integers(1, len(text))))
        for run in runs(scrub.quote(text[start : start + length])):
            # A mark that the length of a quotation cuts in two is all that may differ.
            assert any(run in clear for clear in visible) or run.rpartition("[")[0] in redactor.text(text)


@pytest.mark.parametrize("name", [name for name in SECRETS if " key" in name])
def test_no_line_of_a_key_and_no_part_of_one_is_quoted(name: str) -> None:
    key = SECRETS[name]
    scrub = scrubber(f"Here it is:\n{key}\nThanks.", PLAIN)
    for start in range(0, len(key) - 3, 61):
        for length in (3, 7, 8, 64, 240, 5000):
            assert scrub.quote(key[start : start + length]).removesuffix("\nThanks.") == "[REDACTED:PRIVATE_KEY]"


def test_a_quotation_around_a_secret_keeps_the_rest() -> None:
    scrub = scrubber(f"Pay 30 EUR with this:\n{SECRETS['a card']}\nat once.", PLAIN)
    assert scrub.quote("with this:\n4111 11") == "with this:\n[REDACTED:CARD]"
    assert scrub.quote("11\nat once.") == "[REDACTED:CARD]\nat once."
    assert scrub.quote("Pay 30 EUR") == "Pay 30 EUR"


def test_a_piece_of_a_value_carries_the_tag_of_the_whole() -> None:
    text = f"Pay with\n{SECRETS['a card']}\nat once."
    whole = MARK.findall(TAGGED.text(text))
    assert MARK.findall(scrubber(text, TAGGED).quote("1111 1111")) == whole
