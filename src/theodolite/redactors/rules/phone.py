"""Telephone numbers: candidates by shape, validity by the metadata of `phonenumbers`.

`PhoneNumberMatcher` is not used: it takes 50 to 190 µs for a candidate, which an adversary can repeat every twelve
characters. The patterns that it judges by are, compiled once for each country, at about 1 µs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from phonenumbers import COUNTRY_CODE_TO_REGION_CODE, PhoneMetadata

from theodolite.redactors.rules.span import Kind, Span
from theodolite.redactors.rules.view import View, holds

__all__ = ("TRUNK_REGIONS", "international_phones", "national_phones")

TRUNK_REGIONS = ("GB", "DE", "FR", "NL", "CH", "AT", "SE", "AU")
"""Regions whose numbers are known in their national form, which begins with 0. North America's are known as well."""

_FEWEST, _MOST = 7, 15  # digits; the most by ITU-T E.164, the fewest of a whole number with its country code

_FEWEST_NATIONAL, _MOST_NATIONAL = 8, 12  # with the 0; what is shorter is more often a date or an id

# At most three separators in a row, as in "(0)20" or " - ", and at most 18 digits: bounded, so linear. They are looked
# ahead at, since another number may begin among them.
_INTERNATIONAL = re.compile(
    r"(?:\+[ ]?|00(?<![0-9A-Za-z.+/=#-]00)[ -]?)(?=(?P<digits>\(?[1-9](?:[ ./()-]{0,3}[0-9]){6,17}))"
)
_SUBSCRIBER = re.compile(r"[0-9]{3}[ .-]?[0-9]{4}")
_GROUPED = re.compile(
    r"[0-9](?<![0-9A-Za-z.+=#$-][0-9])(?<![A-Za-z/]/[0-9])"
    r"(?:(?<=1)[ .-][0-9])?[0-9]{2}(?P<by>[ .-])[0-9]{3}(?P=by)[0-9]{4}(?![0-9A-Za-z]|[-.=][0-9])"
)
_BRACKETED = re.compile(r"\([0-9]{3}\)[ -]?[0-9]{3}[ .-]?[0-9]{4}(?![0-9A-Za-z]|[-.=][0-9])")
_ONE = re.compile(r"(?:\A|[^0-9A-Za-z])(1[ .-]?)\Z")
_TRUNK = re.compile(
    r"0(?<![0-9A-Za-z]0)(?<![-.+=#$]0)(?<![0-9]:0)(?<![A-Za-z/]/0)[1-9][0-9]{0,4}(?P<by>\)[ -]?|[ ./-])[0-9]{2,9}"
    r"(?:(?P<next>[ .-])[0-9]{2,8}(?:(?P=next)[0-9]{2,8}){0,3})?(?![0-9A-Za-z]|[./=:-][0-9])"
)
_NAMED = re.compile(
    r"(?:phone|telefon|whatsapp|tel(?<![a-z]tel)|mob(?:ile)?(?<![a-z]mob)(?<![a-z]mobile)|cell(?<![a-z]cell)|fax|handy)"
    r"(?:[ _-](?:number|no\.?|nr\.?))?[\"'\\*]{0,4}[ ]{0,3}(?:[.:=#]|is|at)?[ ]{0,3}[\"'\\*]{0,4}"
    r"(?P<number>[0-9]{3}[ .-]?[0-9]{4}|[0-9]{9,13})(?![0-9a-z]|[./=-][0-9])"
)
_NAMES = ("phone", "tel", "mob", "cell", "fax", "whatsapp", "handy")
_DIGITS = re.compile(r"[0-9]+")
_WORD = re.compile(r"[0-9A-Za-z]")
_ENOUGH = re.compile(rf"[0-9](?:[ ./()-]{{0,3}}[0-9]){{{_FEWEST - 1}}}")
_TRUNK_IN_BRACKETS = "(0)"
_DECIMAL = re.compile(r"[0-9]+\.[0-9]+")
_DATE = re.compile(r"[0-3][0-9]([ ./-])[01][0-9]\1(?:19|20)[0-9]{2}")
_ZIP = re.compile(r"[0-9]{5}-[0-9]{4}")  # US postal codes: those of New England begin with a 0
_NORTH_AMERICA = 1


def international_phones(view: View) -> Iterator[Span]:
    """Find the numbers of any country that are written with `+` or `00`."""
    chars = view.chars
    if "+" not in chars and "00" not in chars:
        return
    done = 0
    for found in _INTERNATIONAL.finditer(chars):
        start, end = found.span("digits")
        plus = chars[found.start()] == "+"
        in_word = bool(_WORD.match(chars, end))
        if start >= done and (length := _international_length(found["digits"], in_word=in_word, plus=plus)):
            done = start + length
            yield Span(found.start(), done, Kind.PHONE)


def national_phones(view: View) -> Iterator[Span]:
    """Find grouped numbers of North America and of `TRUNK_REGIONS`, and bare digits that are called a telephone number.

    Ten digits alone are an epoch or an order.
    """
    if not _ENOUGH.search(view.chars):
        return
    yield from _north_american(view.chars)
    yield from _national(view.chars)
    yield from _named(view.lower)


def _international_length(written: str, *, in_word: bool, plus: bool) -> int:
    """Return how many characters are the number, by taking groups of digits off its end until what is left is one."""
    if _TRUNK_IN_BRACKETS in written:
        written = written.replace(_TRUNK_IN_BRACKETS, "   ", 1)
    groups = list(_DIGITS.finditer(written))
    digits = "".join([group[0] for group in groups])
    if in_word:
        digits = digits[: len(digits) - len(groups.pop()[0])]
    while groups and len(digits) >= _FEWEST:
        if len(digits) <= _MOST and _is_international(digits, looks_dialled=plus and len(groups) > 1):
            end = groups[-1].end()
            return 0 if _DECIMAL.fullmatch(written, 0, end) else end
        digits = digits[: len(digits) - len(groups.pop()[0])]
    return 0


def _is_international(digits: str, *, looks_dialled: bool) -> bool:
    for length in (1, 2, 3):
        country = int(digits[:length])
        if country in COUNTRY_CODE_TO_REGION_CODE:
            plan = _plan(country)
            number = digits[length:]
            # A plus sign and groups say "telephone" so plainly that the length is enough, as for +1 555 123 4567.
            return plan.is_valid(number) or (looks_dialled and len(number) in plan.lengths)
    return False


def _north_american(chars: str) -> Iterator[Span]:
    """Find numbers in groups. (555) 123-4567 and 555-123-4567 can hardly be anything else, so made-up ones count."""
    if not _SUBSCRIBER.search(chars):
        return
    for found in _GROUPED.finditer(chars):
        start, end = found.span()
        by = found["by"]
        if by == "-" or (
            _plan(_NORTH_AMERICA).is_valid(_digits(found[0])[-10:]) and not (by == " " and _in_row(chars, start, end))
        ):
            yield Span(start, end, Kind.PHONE)
    for found in _BRACKETED.finditer(chars):
        one = _ONE.search(chars, max(0, found.start() - 3), found.start())
        yield Span(one.start(1) if one else found.start(), found.end(), Kind.PHONE)


def _in_row(chars: str, start: int, end: int) -> bool:
    """Whether more numbers stand beside it, as in a table."""
    before, after = chars[max(0, start - 2) : start], chars[end : end + 2]
    return (before[-1:] == " " and before[:1].isdecimal()) or (after[:1] == " " and after[1:].isdecimal())


def _national(chars: str) -> Iterator[Span]:
    for found in _TRUNK.finditer(chars):
        start, end = found.span()
        if found["by"] == "." and not found["next"]:  # a decimal number, such as the seconds of a time
            continue
        if found["by"][0] == ")":
            if chars[start - 1 : start] != "(":
                continue
            start -= 1
        if (
            not (_DATE.match(found[0]) or _ZIP.fullmatch(found[0]))
            and not _in_row(chars, start, end)
            and _is_national(_digits(found[0]))
        ):
            yield Span(start, end, Kind.PHONE)


def _named(lower: str) -> Iterator[Span]:
    if not holds(lower, _NAMES):
        return
    for found in _NAMED.finditer(lower):
        digits = _digits(found["number"])
        if len(digits) == _FEWEST or _is_national(digits) or _plan(_NORTH_AMERICA).is_valid(digits[-10:]):
            yield Span(*found.span("number"), Kind.PHONE)


def _digits(written: str) -> str:
    return "".join(_DIGITS.findall(written))


def _is_national(digits: str) -> bool:
    """Whether it is a valid number, dialled with the leading 0, of a region that we know."""
    fits = digits[0] == "0" and _FEWEST_NATIONAL <= len(digits) <= _MOST_NATIONAL
    return fits and any(plan.pattern.fullmatch(digits, 1) for plan in _trunk_plans())


class _Plan(NamedTuple):
    """The numbers of one country code."""

    pattern: re.Pattern[str]
    lengths: frozenset[int]

    def is_valid(self, number: str) -> bool:
        """Whether it is a number without the trunk 0, or with one that was left in, as in +49 030 123456."""
        return bool(self.pattern.fullmatch(number) or (number[:1] == "0" and self.pattern.fullmatch(number, 1)))


@cache
def _plan(country: int) -> _Plan:
    """Compile what `phonenumbers` knows of a country. Kept, for there are only some 230."""
    patterns: set[str] = set()
    lengths: set[int] = set()
    for region in COUNTRY_CODE_TO_REGION_CODE[country]:
        metadata = PhoneMetadata.metadata_for_region_or_calling_code(country, region)
        if metadata is None or metadata.general_desc is None:
            continue
        lengths.update(metadata.general_desc.possible_length)
        for kind in (
            metadata.fixed_line,
            metadata.mobile,
            metadata.toll_free,
            metadata.premium_rate,
            metadata.shared_cost,
            metadata.personal_number,
            metadata.voip,
            metadata.pager,
            metadata.uan,
            metadata.voicemail,
        ):
            if kind is not None and kind.national_number_pattern:
                patterns.add(f"(?:{kind.national_number_pattern})")
    return _Plan(re.compile("|".join(sorted(patterns))), frozenset(lengths))


@cache
def _trunk_plans() -> tuple[_Plan, ...]:
    known = COUNTRY_CODE_TO_REGION_CODE.items()
    return tuple(_plan(country) for country, regions in known if regions[0] in TRUNK_REGIONS)
