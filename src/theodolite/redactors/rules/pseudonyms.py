"""Placeholders with a keyed tag: one value can be followed through sessions without being shown."""

from __future__ import annotations

import hashlib
import hmac
import re
from ipaddress import AddressValueError, IPv6Address

from theodolite.core.errors import ConfigError
from theodolite.redactors.rules.span import PLACEHOLDER, Kind, placeholder
from theodolite.redactors.rules.view import View

__all__ = ("Pseudonyms",)

_SHORTEST, _DIGITS, _LONGEST = 4, 4, 16
# Source: NIST SP 800-107, section 5.3.4: 16 bytes are the least that lets HMAC-SHA256 be as strong as its key.
_KEY_BYTES = 16
# The operator's key also seals records; what is derived from it by a name (RFC 5869, expand) tells nothing about it.
_PURPOSE = b"theodolite pseudonyms 1"

# What is not a value: whole texts, and what a field was refused for.
_UNTAGGED = frozenset({Kind.TEXT, Kind.UNKNOWN_FIELD, Kind.UNKNOWN_VALUE})
_NO_DIGIT = re.compile(r"[^0-9]+")
_NO_LETTER_OR_DIGIT = re.compile(r"[^0-9A-Z]+")
_TRUNK = "(0)"
_NORTH_AMERICAN = 10  # digits of a number without its country code, which is 1


class Pseudonyms:
    """Makes the tags of a key: `length` hexadecimal digits of HMAC-SHA256 over the value.

    One value has one tag: in any session, under any kind of placeholder, however it is spelled. Spaces, hyphens,
    disguises and, where it means nothing, case do not count. The same subscriber with and without the country code is
    two values, except in North America.

    Two given values share a tag with probability 16 ** -length, 1 in 65,536 by default. Among n values some two do with
    about n ** 2 / (2 * 16 ** length): 1 % at 37 values by default, at 9,300 with 8 digits.

    Limits: who holds the key can try out guesses, and finds what is guessable (a PIN, a card number of which the ends
    are known) whatever the length; who has the records alone cannot. Who may put text into sessions and read what is
    kept of them can compare his guesses' tags as well. A text can hold what looks like a tag: it passes as it is.

    Raises ConfigError for a key under 16 bytes, and for a length outside of 4 to 16.

    >>> tags = Pseudonyms(b"an operator's secret key")
    >>> tags.placeholder(Kind.IBAN, "DE89 3704 0044 0532 0130 00")
    '[IBAN:f86a]'
    >>> tags.placeholder(Kind.IBAN, "de89370400440532013000")
    '[IBAN:f86a]'
    """

    def __init__(self, key: bytes, *, length: int = _DIGITS) -> None:
        if len(key) < _KEY_BYTES:
            raise ConfigError(f"a key of {len(key)} bytes is too short for pseudonyms: give at least {_KEY_BYTES}")
        if not _SHORTEST <= length <= _LONGEST:
            raise ConfigError(f"a pseudonym has {_SHORTEST} to {_LONGEST} hexadecimal digits, not {length}")
        self._key = hmac.digest(key, _PURPOSE, hashlib.sha256)
        self._length = length
        kinds = "|".join(sorted(set(Kind) - _UNTAGGED))
        self.placeholders = re.compile(rf"{PLACEHOLDER.pattern}|\[(?:{kinds}):[0-9a-f]{{{length}}}\]")

    def placeholder(self, kind: Kind, value: str) -> str:
        """Return what stands in the place of a value of this kind."""
        if kind in _UNTAGGED:
            return placeholder(kind)
        # A lone surrogate that a caller passes is a value like another.
        plain = _normal(kind, View(value).chars).encode("utf-8", "surrogatepass")
        return f"[{kind}:{hmac.digest(self._key, plain, hashlib.sha256).hex()[: self._length]}]"


def _normal(kind: Kind, value: str) -> str:
    """Return the one spelling of a value."""
    if kind is Kind.IBAN:
        return _NO_LETTER_OR_DIGIT.sub("", value.upper())
    if kind in {Kind.CARD, Kind.SSN}:
        return _NO_DIGIT.sub("", value)
    if kind is Kind.PHONE:
        return _dialled(value)
    if kind is Kind.IPV6:
        return _compressed(value)
    if kind is Kind.PRIVATE_KEY:
        return "".join(value.split())
    return value.casefold() if kind in {Kind.EMAIL, Kind.CANARY} else value


def _dialled(value: str) -> str:
    digits = _NO_DIGIT.sub("", value.replace(_TRUNK, ""))
    if digits.startswith("00"):
        return digits[2:]
    return f"1{digits}" if len(digits) == _NORTH_AMERICAN and digits[0] > "1" and "+" not in value else digits


def _compressed(value: str) -> str:
    try:
        return IPv6Address(value).compressed
    except AddressValueError:
        return value.lower()
