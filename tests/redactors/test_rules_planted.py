"""Whatever stands around it, a thing of a known kind does not survive."""

from __future__ import annotations

import base64
import string
from hashlib import sha512

import phonenumbers
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from phonenumbers import PhoneNumberFormat, PhoneNumberType

from theodolite.redactors.rules import RuleRedactor
from theodolite.redactors.rules.randomness import looks_random

REDACTOR = RuleRedactor()

LETTERS = string.ascii_letters
WORD = LETTERS + string.digits
AROUND = st.text("abc XYZ 019 éß字я \n\t.,;:!?()[]{}<>\"'/|*#&%$@+-\u200b", max_size=30)
BEFORE = st.sampled_from([" ", "\n", "\t", "(", '"', "'", "<", ": "])
AFTER = st.sampled_from([" ", "\n", "\t", ")", '"', "'", ">", ", ", ". ", "; ", "!"])


def words(alphabet: str, least: int, most: int) -> SearchStrategy[str]:
    return st.text(alphabet, min_size=least, max_size=most)


def drawn(length: int) -> SearchStrategy[str]:
    """Draw as a generator of keys does, which Hypothesis itself avoids."""
    return st.integers().map(lambda seed: sha512(str(seed).encode()).hexdigest()[:length]).filter(looks_random)


def in_groups(digits: str, size: int, by: str) -> str:
    return by.join(digits[at : at + size] for at in range(0, len(digits), size))


def with_luhn_digit(digits: str) -> str:
    doubled = [int(digit) * (2 - at % 2) for at, digit in enumerate(reversed(digits))]
    return digits + str(-sum(value - 9 if value > 9 else value for value in doubled) % 10)


def with_check_digits(country: str, account: str) -> str:
    value = int("".join(str(int(char, 36)) for char in f"{account}{country}00"))
    return f"{country}{98 - value % 97:02}{account}"


def web_token(payload: bytes) -> str:
    encoded = base64.urlsafe_b64encode(b'{"sub":"' + payload + b'"}').decode().rstrip("=")
    return f"eyJhbGciOiJIUzI1NiJ9.{encoded}.{encoded[:20]}"


def card(prefix: str, rest: str, by: str) -> str:
    return in_groups(with_luhn_digit(prefix + rest), 4, by)


def account(country: str, number: str, by: str) -> str:
    return in_groups(with_check_digits(country, number[: 18 if country == "DE" else 23]), 4, by)


def social_security_number(area: int, group: int, serial: int, by: str) -> str:
    return f"{area:03}{by}{group:02}{by}{serial:04}"


def octets(least: int, most: int) -> SearchStrategy[str]:
    return st.integers(least, most).map(str)


SECRETS: dict[str, SearchStrategy[str]] = {
    "EMAIL": st.builds(
        "{}@{}.{}".format,
        st.from_regex(r"\A[a-z0-9]+([._+-][a-z0-9é字]+){0,2}\Z"),
        st.from_regex(r"\A[a-z0-9]+(-[a-z0-9]+)?(\.[a-zéя]+){0,2}\Z"),
        st.sampled_from(["com", "org", "de", "co.uk", "museum", "рф", "xn--p1ai"]),
    ),
    "CARD": st.builds(
        card,
        st.sampled_from(["4111", "5500", "2223", "6011", "6200"]),
        words(string.digits, 11, 11),
        st.sampled_from(["", " ", "-"]),
    ),
    "IBAN": st.builds(
        account,
        st.sampled_from(["DE", "FR"]),
        words(string.digits + string.ascii_uppercase, 23, 23),
        st.sampled_from(["", " "]),
    ),
    "SSN": st.builds(
        social_security_number,
        st.integers(1, 665),
        st.integers(1, 99),
        st.integers(1, 9999),
        st.sampled_from(["-", " "]),
    ),
    "IPV4": st.builds("{}.{}.{}.{}".format, octets(1, 126), octets(0, 255), octets(0, 255), octets(0, 255)),
    "IPV6": st.ip_addresses(v=6, network="2000::/3").map(str),
    "JWT": st.binary(max_size=40).map(web_token),
    "AWS": words(string.ascii_uppercase + "234567", 16, 16).map("AKIA{}".format),
    "GITHUB": words(WORD, 36, 36).map("ghp_{}".format),
    "OPENAI": drawn(48).map("sk-{}".format),
    "ANTHROPIC": drawn(80).map("sk-ant-api03-{}".format),
    "GOOGLE": words(WORD + "_-", 35, 35).map("AIza{}".format),
    "SLACK": st.builds("xoxb-{}-{}".format, words(string.digits, 12, 12), words(WORD, 24, 24)),
    "PRIVATE_KEY": words(WORD + "+/", 64, 64).map("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----".format),
}
ASSIGNED: dict[str, SearchStrategy[str]] = {
    'password = "{}"': words(WORD + "!#$%&()*+,-./:;<=>?@[]^_{|}~ ", 9, 20).map(lambda word: f"q{word}7"),
    "password={}": words(WORD + "!#$%*+-./:=?@^_~", 9, 20).map(lambda word: f"q{word}7"),
    "My password is {}": words(WORD + "!#%*+-_", 9, 20).map(lambda word: f"q{word}7"),
    '{{"token": "{}"}}': drawn(24),
    "API_KEY={}": drawn(20),
    "Authorization: Bearer {}": drawn(30),
    "https://bob:{}@example.com/": words(WORD + "!$*+-_.~", 4, 20),
}


@pytest.mark.parametrize("kind", SECRETS)
@given(st.data())
def test_a_thing_of_each_kind_does_not_survive(kind: str, data: st.DataObject) -> None:
    secret = data.draw(SECRETS[kind])
    text = "".join([data.draw(AROUND), data.draw(BEFORE), secret, data.draw(AFTER), data.draw(AROUND)])
    assume(text.count(secret) == 1)
    assert secret not in REDACTOR.text(text)


@pytest.mark.parametrize("form", ASSIGNED)
@given(st.data())
def test_what_is_assigned_to_a_telling_name_does_not_survive(form: str, data: st.DataObject) -> None:
    secret = data.draw(ASSIGNED[form])
    text = "".join([data.draw(AROUND), "\n", form.format(secret), "\n", data.draw(AROUND)])
    assume(text.count(secret) == 1)
    assert secret not in REDACTOR.text(text)


KINDS_OF_NUMBER = (PhoneNumberType.FIXED_LINE, PhoneNumberType.MOBILE, PhoneNumberType.TOLL_FREE, PhoneNumberType.VOIP)


@pytest.mark.parametrize("region", sorted(phonenumbers.SUPPORTED_REGIONS))
def test_numbers_of_every_region_are_found_in_international_form(region: str) -> None:
    for kind in KINDS_OF_NUMBER:
        number = phonenumbers.example_number_for_type(region, kind)
        if number is None:
            continue
        for form in (PhoneNumberFormat.INTERNATIONAL, PhoneNumberFormat.E164):
            written = phonenumbers.format_number(number, form)
            assert REDACTOR.text(f"Call {written}, please") == "Call [REDACTED:PHONE], please"
            assert REDACTOR.text(f"Call 00{written[1:]}, please") == "Call [REDACTED:PHONE], please"


@pytest.mark.parametrize("region", ["US", "CA", "GB", "DE", "FR", "NL", "CH", "AT", "SE", "AU"])
def test_numbers_of_the_known_regions_are_found_in_national_form(region: str) -> None:
    for kind in (PhoneNumberType.FIXED_LINE, PhoneNumberType.MOBILE):
        number = phonenumbers.example_number_for_type(region, kind)
        assert number is not None
        written = phonenumbers.format_number(number, PhoneNumberFormat.NATIONAL)
        assert REDACTOR.text(f"Call {written}, please") == "Call [REDACTED:PHONE], please"
