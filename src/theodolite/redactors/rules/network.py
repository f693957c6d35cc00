"""IP addresses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import AddressValueError, IPv4Address, IPv6Address

from theodolite.redactors.rules.span import Kind, Span
from theodolite.redactors.rules.view import View

__all__ = ("ipv4_addresses", "ipv6_addresses")

_FOUR = re.compile(
    r"[0-9](?<![0-9A-Za-z][0-9])(?<![0-9]\.[0-9])(?<![A-Za-z]/[0-9])"
    r"[0-9]{0,2}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}(?![0-9A-Za-z]|\.[0-9])"
)
_SAYS_NUMBER = re.compile(
    r"(?:(?:\bv|\bver|version|release|build|firmware|sections?|chapter|§)[_.\"']{0,3} ?[:=-]? ?[\"']?"
    r"|[=<>~!]= ?|[~^])\Z",
    re.IGNORECASE,
)
_LONGEST_SAYING = len('firmware__" = "')


def ipv4_addresses(view: View) -> Iterator[Span]:
    """Find dotted quads of valid octets.

    A bare `1.2.3.4` is taken for an address. It is a version or section where the text says so: behind `v`, `version`,
    `section`, `==` and the like, or a product's name and a slash, as in `Chrome/120.0.0.0`. Nobody's are `0.0.0.0` and
    the machine's own, `127.0.0.1`.
    """
    chars = view.chars
    if chars.count(".") < 3:  # noqa: PLR2004 - an address has three dots
        return
    for found in _FOUR.finditer(chars):
        start, end = found.span()
        if _is_ipv4(found[0]) and not _SAYS_NUMBER.search(chars[max(0, start - _LONGEST_SAYING) : start]):
            yield Span(start, end, Kind.IPV4)


def _is_ipv4(written: str) -> bool:
    try:
        address = IPv4Address(written)
    except AddressValueError:
        return False
    return not (address.is_unspecified or address.is_loopback)


_WORD = re.compile(r"[0-9A-Za-z]")
_RUN = re.compile(r"[0-9A-Fa-f:.]{3,}+")
_FEWEST_COLONS = 6  # in the long form with an IPv4 address at its end
_LONGEST_IPV6 = len("0000:0000:0000:0000:0000:ffff:255.255.255.255")
# First group. Source: IANA, "Internet Protocol Version 6 Address Space": global, local, link-local, multicast.
_ASSIGNED = ((0x2000, 0x3FFF), (0xFC00, 0xFDFF), (0xFE80, 0xFEBF), (0xFF00, 0xFFFF))
_ADDRESSES_WITHIN = ("::ffff:", "64:ff9b::")
"""Mapped and translated IPv4 addresses (RFC 4291, 6052)."""


def ipv6_addresses(view: View) -> Iterator[Span]:
    """Find IPv6 addresses, with `ipaddress` as the judge of runs of hexadecimal digits and colons.

    The short form counts only for addresses that someone can have: neither `::1` nor the unassigned ones that slices
    (`rows[::2]`) and paths (`a::b`) of source code look like.
    """
    chars = view.chars
    if not _may_hold_ipv6(chars):
        return
    for found in _RUN.finditer(chars):
        if not _may_hold_ipv6(found[0]):
            continue
        start, end = _trimmed(chars, *found.span())
        if end - start <= _LONGEST_IPV6 and _is_ipv6(chars[start:end]):
            yield Span(start, end, Kind.IPV6)


def _may_hold_ipv6(chars: str) -> bool:
    return "::" in chars or chars.count(":") >= _FEWEST_COLONS


def _trimmed(chars: str, start: int, end: int) -> tuple[int, int]:
    """Take off a word before the address, its label's colon, and the end of the sentence."""
    if start and _WORD.match(chars, start - 1):
        start = chars.index(":", start)
    if chars[start] == ":" and not chars.startswith("::", start):
        start += 1
    if _WORD.match(chars, end):
        return start, start
    while end > start and (chars[end - 1] == "." or (chars[end - 1] == ":" and chars[end - 2] != ":")):
        end -= 1
    return start, end


def _is_ipv6(written: str) -> bool:
    try:
        address = IPv6Address(written)
    except AddressValueError:
        return False
    if "::" not in written or written.lower().startswith(_ADDRESSES_WITHIN):
        return True
    first_group = int(address) >> 112
    return any(low <= first_group <= high for low, high in _ASSIGNED)
