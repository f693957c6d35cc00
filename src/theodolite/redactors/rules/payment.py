"""Payment cards and bank accounts: found by shape, believed by their check digits."""

from __future__ import annotations

import re
from collections.abc import Iterator

from theodolite.redactors.rules.span import Kind, Span
from theodolite.redactors.rules.view import View, holds

__all__ = ("cards", "ibans")

# Issuer prefixes with the lengths that they use. Source: ISO/IEC 7812-1; the issuers' published ranges.
_ISSUERS = tuple(
    (re.compile(prefix), frozenset(lengths))
    for prefix, lengths in (
        (r"4", (13, 16, 19)),  # Visa
        (r"5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720", (16,)),  # Mastercard
        (r"3[47]", (15,)),  # American Express
        (r"30[0-5]|3095|3[689]", range(14, 20)),  # Diners Club
        (r"35(?:2[89]|[3-8])", range(16, 20)),  # JCB
        (r"6011|64[4-9]|65|62|81", range(16, 20)),  # Discover, UnionPay
        (r"50(?:18|20|38)|5893|6304|67(?:59|6[1-3])", range(13, 20)),  # Maestro
        (r"220[0-4]", range(16, 20)),  # Mir
        (r"60[68]|508|353|356|9792", (16,)),  # RuPay, Hipercard, Troy
    )
)
_SHORTEST = 13

# In the usual groups, of which the first has four digits or more, a card is found behind other numbers as well; hence
# the look ahead. In any other groups, only where nothing else is in the row: else each group would have to be tried.
_FIRST = r"[2-9](?<![0-9A-Za-z][2-9])(?<![0-9]\.[2-9])"
_USUAL = re.compile(rf"{_FIRST}(?=(?P<rest>[0-9]{{3,18}}(?:[ -][0-9]{{2,15}}){{0,6}}))")
_ALONE = re.compile(rf"{_FIRST}(?<![0-9][ -][2-9])(?P<rest>(?:[ -]?[0-9]){{12,18}})(?!(?:[ -]?|\.)[0-9]|[A-Za-z])")
# As tables, forms and people set them apart: a tab, two spaces, ` - ` or a plus. Only in the groups that are
# printed on cards, and with nothing else in the row, for such columns of numbers are common.
_SET_APART = re.compile(
    r"[2-9][0-9]{3}(?P<by>[ \t]{1,3}| - |[+])"
    r"(?:[0-9]{4}(?P=by)[0-9]{4}(?P=by)[0-9]{4}(?:(?P=by)[0-9]{3})?|[0-9]{6}(?P=by)[0-9]{4,5})"
    r"(?!(?:[ \t]{1,3}| - |[+.])?[0-9]|[A-Za-z])"
)
_APART_SIGNS = ("\t", "  ", " - ", "+")
_IN_ROW = re.compile(r"(?:[0-9A-Za-z.+]|[0-9](?:[ \t]{1,3}| - ))\Z")
_ENOUGH = re.compile(r"[0-9](?:[ -]?[0-9]){12}")
_IN_A_WORD = re.compile(r"[0-9A-Za-z]|\.[0-9]")
_NO_DIGIT = re.compile(r"[^0-9]+")
_DOUBLED = str.maketrans("0123456789", "0246813579")


def cards(view: View) -> Iterator[Span]:
    """Find card numbers: 13 to 19 digits, also in groups, with an issuer's prefix and a right Luhn digit.

    One in ten rows of digits with such a prefix and length passes by chance.
    """
    chars = view.chars
    if holds(chars, _APART_SIGNS):
        yield from _set_apart(chars)
    if not _ENOUGH.search(chars):
        return
    done = 0
    for pattern in (_USUAL, _ALONE):
        for found in pattern.finditer(chars):
            start, end = found.start(), found.end("rest")
            if end - start < _SHORTEST or start < done:
                continue
            if length := _card_length(chars[start:end], chars[end : end + 2]):
                done = start + length
                yield Span(start, done, Kind.CARD)


def _set_apart(chars: str) -> Iterator[Span]:
    for found in _SET_APART.finditer(chars):
        start, end = found.span()
        digits = _NO_DIGIT.sub("", found[0])
        if (
            len(digits) in _lengths(digits)
            and _passes_luhn(digits)
            and not _IN_ROW.search(chars, max(0, start - 4), start)
        ):
            yield Span(start, end, Kind.CARD)


def _card_length(row: str, behind: str) -> int:
    """Return how many characters at the beginning of a row are a card, the longest if there are several."""
    groups = row.replace("-", " ").split(" ")
    digits = "".join(groups)
    lengths = _lengths(digits)
    length = size = 0
    for separators, group in enumerate(groups):
        size += len(group)
        end = size + separators
        if size in lengths and _passes_luhn(digits[:size]) and not _goes_on(row[end : end + 2] or behind):
            length = end
    return length


def _goes_on(behind: str) -> bool:
    return _IN_A_WORD.match(behind) is not None


def _lengths(digits: str) -> frozenset[int]:
    """Return the lengths of cards that begin so."""
    for prefix, lengths in _ISSUERS:
        if prefix.match(digits):
            return lengths
    return frozenset()


def _passes_luhn(digits: str) -> bool:
    """Check the last digit (ISO/IEC 7812-1, annex B)."""
    odd = digits[-1::-2]
    even = digits[-2::-2].translate(_DOUBLED)
    return sum(map(int, odd + even)) % 10 == 0


# Source: the IBAN registry of SWIFT (ISO 13616), and the countries that use the form without being in it.
_LENGTHS: dict[str, str] = dict(
    re.findall(
        "([A-Z]{2}):([0-9]{2})",
        "AD:24 AE:23 AL:28 AT:20 AZ:28 BA:20 BE:16 BG:22 BH:22 BI:27 BR:29 BY:28 CH:21 CR:22 CY:28 CZ:24 DE:22 DJ:27 "
        "DK:18 DO:28 EE:20 EG:29 ES:24 FI:18 FK:18 FO:18 FR:27 GB:22 GE:22 GI:23 GL:18 GR:27 GT:28 HN:28 HR:21 HU:28 "
        "IE:22 IL:23 IQ:23 IS:26 IT:27 JO:30 KW:30 KZ:20 LB:28 LC:32 LI:21 LT:20 LU:20 LV:21 LY:25 MC:27 MD:24 ME:22 "
        "MK:19 MN:20 MR:27 MT:31 MU:30 NI:28 NL:18 NO:15 OM:23 PK:24 PL:28 PS:29 PT:25 QA:29 RO:24 RS:22 RU:33 SA:24 "
        "SC:31 SD:18 SE:24 SI:19 SK:24 SM:27 SO:23 ST:25 SV:28 TL:23 TN:24 TR:26 UA:29 VA:22 VG:24 XK:20 YE:30 "
        "AO:25 BF:28 BJ:28 CF:27 CG:27 CI:28 CM:27 CV:25 DZ:26 GA:27 GQ:27 GW:25 IR:26 KM:27 MA:28 MG:27 ML:28 MZ:25 "
        "NE:28 SN:28 TD:27 TG:28",
    )
)
# Found by its check digits, for digits are rarer than letters; the country stands before them.
_CHECK_DIGITS = re.compile(
    r"[0-9](?<=[A-Za-z]{2}[0-9])(?<![0-9A-Za-z][A-Za-z]{2}[0-9])[0-9](?=[ \t+-]{0,2}[0-9A-Za-z])"
)
_WHOLE = {
    length: re.compile(
        rf"[A-Z]{{2}}[0-9]{{2}}(?:[ \t+-]{{0,2}}[0-9A-Z]){{{int(length) - 4}}}(?![0-9A-Z])", re.IGNORECASE
    )
    for length in set(_LENGTHS.values())
}
_SEPARATORS = str.maketrans("", "", " \t+-")
_VALUES = {ord("A") + value - 10: str(value) for value in range(10, 36)}


def ibans(view: View) -> Iterator[Span]:
    """Find international bank account numbers, also in groups, whose length and check digits are right."""
    chars = view.chars
    for found in _CHECK_DIGITS.finditer(chars):
        start = found.start() - 2
        length = _LENGTHS.get(chars[start : start + 2].upper())
        whole = _WHOLE[length].match(chars, start) if length else None
        if whole and _passes_mod_97(whole[0].translate(_SEPARATORS).upper()):
            yield Span(*whole.span(), Kind.IBAN)


def _passes_mod_97(number: str) -> bool:
    """Check the two digits after the country (ISO 7064, MOD 97-10)."""
    return int((number[4:] + number[:4]).translate(_VALUES)) % 97 == 1
