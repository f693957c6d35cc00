"""Text that a serializer escaped: the letter of an escaped line break must not hide what comes behind it."""

from __future__ import annotations

import json

import pytest

from theodolite.redactors.rules import RuleRedactor

SECRETS = {
    "API_KEY": "AKIAIOSFODNN7EXAMPLE",
    "CARD": "4111 1111 1111 1111",
    "IBAN": "GB29NWBK60161331926819",
    "IPV4": "192.168.1.7",
    "SSN": "536-22-1234",
    "EMAIL": "bob@example.com",
    "PHONE": "+44 20 7946 0958",
}


@pytest.mark.parametrize("before", ["\n", "\r\n", "\t"])
@pytest.mark.parametrize(("kind", "secret"), SECRETS.items())
def test_what_follows_an_escaped_break_is_found(kind: str, secret: str, before: str) -> None:
    text = json.dumps(f"first line{before}{secret}{before}last line")
    assert RuleRedactor().text(text) == text.replace(secret, f"[REDACTED:{kind}]")


def test_a_lone_surrogate_is_spelled_out() -> None:
    assert RuleRedactor().text("a\ud800b") == "a\\ud800b"


def test_a_path_with_backslashes_stays() -> None:
    assert RuleRedactor().text("C:\\new\\temp\\readme.txt") == "C:\\new\\temp\\readme.txt"
