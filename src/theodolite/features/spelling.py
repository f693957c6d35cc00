"""One spelling for what looks alike: plain forms of letters, without what shows nothing; numbers without their groups.

Characters are those that Unicode calls default ignorable (DerivedCoreProperties.txt, version 15) with the interlinear
marks; tag characters, which show nothing and read as ASCII, are read as that. Accounts are grouped as ISO 13616 prints
them, and telephone numbers as E.123, by spaces of any width, points or hyphens.

Limits. Letters of another script that look alike are kept apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from unicodedata import is_normalized, normalize

__all__ = ("joined", "may_group", "numbers", "odd", "shown")

_IGNORED = (
    *((0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F)),
    *((0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF)),
    *((0xFFA0, 0xFFA0), (0xFFF0, 0xFFFB), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF)),
)
_TAGS = 0xE0000
# Each is a sentence in one character, which a text of them would make eighteen times as long.
_SENTENCES = (0xFDFA, 0xFDFB)
_PLAIN: Mapping[int, int | None] = {
    **{code: None for first, last in _IGNORED for code in range(first, last + 1)},
    **{_TAGS + code: code for code in range(0x20, 0x7F)},
    **dict.fromkeys(_SENTENCES, ord(" ")),
}
# Ranges, not a list of characters, which the engine would try one by one.
_ODD = re.compile(f"[\ufdfa\ufdfb{''.join(f'{chr(first)}-{chr(last)}' for first, last in _IGNORED)}]")
_BETWEEN = r"[ .\u00a0\u2009\u202f-]{1,2}"
_GROUPED = re.compile(
    rf"\b[A-Z]{{2}}[0-9]{{2}}(?:{_BETWEEN}[0-9A-Z]{{4}}){{2,7}}(?:{_BETWEEN}[0-9A-Z]{{1,4}})?\b"
    rf"|\+[0-9]{{1,4}}(?:{_BETWEEN}[0-9]{{2,5}}){{2,6}}\b",
    re.IGNORECASE,
)
_SEPARATORS = re.compile(_BETWEEN)
# By byte: "A" for each letter, "0" for each digit, a space for what stands between groups. How such a number starts.
_SHAPED = bytes.maketrans(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-.?", b"A" * 52 + b"0" * 10 + b"   "
)
_IBAN, _PHONE = b"AA00 ", b"+0"


def odd(text: str) -> bool:
    """Whether a text may look like another one."""
    return not text.isascii() and (_ODD.search(text) is not None or not is_normalized("NFKC", text))


def shown(text: str) -> str:
    """Return a text as it looks: each character in its plain form (NFKC), without those that show nothing.

    >>> shown("e\u200bve@ev\u00adil.\uff45xample")
    'eve@evil.example'
    """
    if text.isascii():
        return text
    if _ODD.search(text):
        text = text.translate(_PLAIN)
    return text if is_normalized("NFKC", text) else normalize("NFKC", text)


def may_group(text: str) -> bool:
    """Whether a text may hold a number in groups, which bytes tell at a twentieth of what the pattern costs."""
    shape = text.encode("ascii", "replace").translate(_SHAPED)
    return _IBAN in shape or _PHONE in shape


def joined(text: str) -> str:
    """Return a text with its numbers without groups.

    >>> joined("pay DE89 3704 0044 0532 0130 00 now")
    'pay DE89370400440532013000 now'
    """
    return _GROUPED.sub(_number, text) if may_group(text) else text


def numbers(text: str, start: int, end: int) -> Iterator[str]:
    """Yield the numbers in groups between two places of a text, without their groups and in lower case."""
    for found in _GROUPED.finditer(text, start, end):
        yield _number(found).lower()


def _number(found: re.Match[str]) -> str:
    return _SEPARATORS.sub("", found[0]).removeprefix("+")
