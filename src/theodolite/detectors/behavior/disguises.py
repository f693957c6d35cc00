"""What a text may stand for: its letters in plain ASCII, and what its escapes, base64, hexadecimal and words decode to.

All of it works on bytes with methods that run in C, and is linear in the text. Nothing here knows what is looked for.
Sources: the look-alikes are a selection of Unicode's confusables.txt (UTS 39), those of the letters A to F, H, T, O, I
and L and of digits; the words for letters are those of the NATO alphabet.
"""

from __future__ import annotations

import binascii
import codecs
import re
import string
import unicodedata
from collections.abc import Iterator, Mapping
from html import unescape

import msgspec

from theodolite.core.arguments import is_mapping, is_sequence

__all__ = (
    "DIGITS",
    "NATO",
    "SIGNS",
    "alike",
    "from_base64",
    "from_hex",
    "from_words",
    "joined",
    "letters",
    "octets_in_base64",
    "plain",
    "rotated",
    "unbroken",
    "unescaped",
    "unmarked",
    "unspelled",
)

DIGITS: Mapping[str, bytes] = dict(
    zip("0123456789", b"zero one two three four five six seven eight nine".split(), strict=True)
)
"""Words for digits."""

NATO: Mapping[str, bytes] = dict(
    zip("abcdefht", b"alpha bravo charlie delta echo foxtrot hotel tango".split(), strict=True)
)
"""Words for letters."""

SIGNS = tuple(b"dash hyphen minus slash underscore dot period colon comma space then and".split())
"""Words for what stands between characters."""

_SAID_OF = b"uppercase lowercase capital small letter digit number".split()
_WORDS = (
    *[(word, digit.encode()) for digit, word in DIGITS.items()],
    *[(word, letter.encode()) for letter, word in NATO.items()],
    (b"alfa", b"a"),
    *[(word, b"") for word in (*SIGNS, *_SAID_OF)],
)

# By what they look like, code points in hexadecimal: as signs one could not tell them apart here.
_LOOKING_LIKE = {
    "a": "430 251 3b1 1d00 13aa a4ee 2c81",
    "b": "432 44c 185 3b2 299 253 13f4 a4d0 2c83 df",
    "c": "441 3f2 1d04 188 13df a4da 2ca5",
    "d": "501 1d05 257 111 13a0 a4d3",
    "e": "435 454 3b5 1d07 25b 13ac a4f0 2c89",
    "f": "493 192 a730 3dd a4dd",
    "h": "4bb 43d 3b7 29c 570 13bb a4e7 2c8f",
    "t": "442 3c4 1d1b 13a2 a4d4 2ca7",
    "o": "43e 3bf 585 1d0f f8 2c9f a4f3",
    "i": "456 3b9 131 26a",
    "l": "4cf 29f",
    "3": "437 292 21d",
    "4": "447",
    "5": "1bd",
    "6": "431",
}
_LOOKALIKES = {
    form: shown
    for shown, codes in _LOOKING_LIKE.items()
    for code in codes.split()
    for form in (chr(int(code, 16)), chr(int(code, 16)).upper())
}
# Letters that Unicode gives no plain form: in circles, in squares, and of flags. Tag characters show nothing at all.
_STYLED = (0x1F150, 0x1F170, 0x1F1E6)
_TAGS = range(0xE0020, 0xE007F)

# Characters of which none has a form in ASCII; after the last of them come only tags.
_HAN = (range(0x3400, 0xA000), range(0xAC00, 0xD7A4), range(0x20000, 0x110000))

_ALNUM = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_ALL = bytes(range(256))
_NO_LETTERS = bytes(set(_ALL) - set(_ALNUM))
_HEX = b"0123456789ABCDEFabcdef"
_NO_HEX = bytes(set(_ALL) - set(_HEX))
# No letter o, i or l is in a hexadecimal number, so that whoever writes one in it means the digit.
_ALIKE = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZoil", b"abcdefgh1jk1mn0pqrstuvwxyz011")
_ROT13 = bytes.maketrans(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", b"NOPQRSTUVWXYZABCDEFGHIJKLMnopqrstuvwxyzabcdefghijklm"
)
# By byte: "a" for each character of a run.
_CODED = bytes([97 if code in _ALNUM + b"+/_-=%&#;\\" else 0 for code in range(256)])
_PRINTED = bytes([97 if code in string.printable.encode() else 0 for code in _ALL])
# The signs of base64, those of its form for URLs as the plain ones, and nothing else.
_BASE64 = bytes([code if code in _ALNUM + b"+/" else b"\0+/"[b"-_".find(bytes([code])) + 1] for code in range(256)])
# Ten characters in base64 are 14 letters, and ten is the shortest run that counts.
_CODED_RUN, _PRINTED_RUN = b"a" * 14, b"a" * 10

_PIECES = 2
# Our choice: an answer with more encoded words than these is read in plain letters alone.
_WORDS_READ = 1_024
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});?")
_ESCAPES = b"nrtbf"
# Of a letter, a digit and a sign in ASCII the first hexadecimal digit, and of a letter beyond it in UTF-8.
_FIRST = b"234567cCdDeEfF89aAbB"
# How a digit is named by its code point; two letters alone stand in much base64.
_NAMED = b"U+003"


class _Forms(dict[int, str]):
    """The plain form of each character that was met. Made anew for each text: there are a million characters."""

    def __missing__(self, code: int) -> str:
        form = self[code] = _form(code)
        return form


class _Meanings(dict[str, str]):
    """What each entity that was met stands for."""

    def __missing__(self, entity: str) -> str:
        meaning = self[entity] = unescape(entity)
        return meaning


def plain(text: str) -> bytes:
    r"""Return a text in ASCII: each character in its plain form, and none where it has none.

    >>> plain("\uff34\u041d\u200b-\u2460\u00e9 \u4e2d")
    b'Th-1e '
    """
    return text.encode() if text.isascii() else text.translate(_Forms()).encode()


def _form(code: int) -> str:
    char = chr(code)
    if code in _TAGS:
        return chr(code - 0xE0000)
    # Han and Hangul have no plain form, and of each hundred thousand different signs one by one costs 0.1 s.
    if code >= _HAN[-1].start or any(code in signs for signs in _HAN):
        return ""
    for first in _STYLED:
        if first <= code < first + 26:
            return chr(ord("a") + code - first)
    pieces: list[str] = []
    for piece in unicodedata.normalize("NFKD", char):
        digit = unicodedata.digit(piece, None)
        if piece.isascii():
            pieces.append(piece)
        else:
            pieces.append(_LOOKALIKES.get(piece, "") if digit is None else str(digit))
    return "".join(pieces)


def letters(raw: bytes) -> bytes:
    """Return the letters and digits of a text, in their case."""
    return raw.translate(None, _NO_LETTERS)


def alike(told: bytes) -> bytes:
    """Return letters and digits in lower case, with those that look like a digit as it.

    >>> alike(b"THl0O")
    b'th100'
    """
    return told.translate(_ALIKE)


def rotated(raw: bytes) -> bytes:
    """Return a text with each letter moved by thirteen places."""
    return raw.translate(_ROT13)


def joined(text: str) -> bytes:
    """Return the strings of a JSON text in one line, those of each key side by side first; nothing if it is no JSON.

    What is told in pieces stands in neighboring blocks of content, with names of fields in between.

    >>> joined('[{"type": "text", "text": "TH-01"}, {"type": "text", "text": "23"}]')
    b'texttext TH-0123 textTH-01text23'
    """
    if not text.lstrip().startswith(("[", "{")):
        return b""
    try:
        open_values: list[tuple[object, object]] = [("", msgspec.json.decode(text))]
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return b""
    by_key: dict[object, list[str]] = {}
    in_order: list[str] = []
    while open_values:
        key, value = open_values.pop()
        if isinstance(value, str):
            by_key.setdefault(key, []).append(value)
            in_order.append(value)
        elif is_mapping(value):
            open_values += reversed(list(value.items()))
        elif is_sequence(value):
            open_values += [(key, item) for item in reversed(value)]
    if len(in_order) < _PIECES:
        return b""
    return plain(" ".join([*["".join(told) for told in by_key.values()], "".join(in_order)]))


def unescaped(raw: bytes) -> bytes:
    r"""Return a text with its entities, percent signs and backslashes read, each kind once; nothing if it has none.

    >>> unescaped(b"%54&#72;&dash;\\u0031 U+0032")
    b'TH1 2'
    """
    read = raw
    if b"&" in read:
        meanings = _Meanings()
        read = plain(_ENTITY.sub(lambda found: meanings[found[0]], read.decode()))
    if b"\\" in read or _NAMED in read:
        read = _backslashes(read)
    if b"%" in read:
        # What reads \x runs in C; what is no escape it leaves out.
        marked = read.replace(b"\\", b"")
        for digit in _FIRST:
            marked = marked.replace(bytes([37, digit]), bytes([92, 120, digit]))
        octets = marked.decode("unicode_escape", "ignore")
        read = plain(octets.encode("latin-1").decode(errors="ignore"))
    return b"" if read == raw else read


def _backslashes(raw: bytes) -> bytes:
    marked = raw.replace(b"\0", b"").replace(b"\1", b"")
    marked = marked.replace(b"\\u", b"\0").replace(b"U+", b"\0").replace(b"\\x", b"\1")
    for letter in _ESCAPES:
        marked = marked.replace(bytes([92, letter]), b" ")
    marked = marked.replace(b"\\", b"").replace(b"\0", b"\\u").replace(b"\1", b"\\x")
    read = marked.decode("unicode_escape", "ignore")
    # Of two escapes a character beyond the first 65,536 is made.
    return plain(read.encode("utf-16", "surrogatepass").decode("utf-16", "ignore"))


def from_base64(told: bytes) -> Iterator[bytes]:
    """Yield what letters and digits stand for as base64, by each of the four places where it may begin.

    Of that what can be printed, ten characters or more. ASCII letters and digits have no other sign in base64.
    """
    if len(told) < len(_CODED_RUN):
        return
    for start in range(4):
        filled = b"A" * (-(len(told) - start) % 4)
        yield _readable(binascii.a2b_base64(told[start:] + filled))


def octets_in_base64(octets: bytes) -> tuple[bytes, ...]:
    """Return the letters and digits that octets have in base64, by each of the three places where they may begin.

    >>> octets_in_base64(b"abcdef")
    (b'YWJjZGVm', b'FiY2RlZ', b'hYmNkZW')
    """
    found: list[bytes] = []
    for start in range(3):
        coded = binascii.b2a_base64(bytes(start) + octets, newline=False).rstrip(b"=")
        # The first and the last sign hold bits of what stands beside them, too.
        first = -(-8 * start // 6)
        found.append(letters(coded[first : 8 * (start + len(octets)) // 6]))
    return tuple(found)


def unmarked(raw: bytes) -> bytes:
    r"""Return a text without the marks of hexadecimal digits; nothing if it has none.

    >>> unmarked(b"0x3f, \\x9a")
    b'3f, 9a'
    """
    read = raw.replace(b"0x", b"").replace(b"0X", b"").replace(b"\\x", b"").replace(b"\\X", b"")
    return b"" if read == raw else read


def from_hex(raw: bytes) -> Iterator[bytes]:
    """Yield what hexadecimal digits stand for, by both places where they may begin; of that what can be printed."""
    digits = raw.replace(b"0x", b"").replace(b"0X", b"").translate(None, _NO_HEX)
    for start in range(2):
        size = (len(digits) - start) // 2 * 2
        if size >= 2 * len(_PRINTED_RUN):
            yield _readable(binascii.unhexlify(digits[start : start + size]))


def from_words(raw: bytes) -> bytes:
    """Return what is beyond ASCII in what the first words stand for, each by itself: long runs of base64 or digits."""
    found: list[str] = []
    for word in unbroken(raw).split(b"\n")[:_WORDS_READ]:
        told = letters(word)
        # What base64 says beyond ASCII has its other two signs as well, of which a URL has others.
        coded = [piece for piece in word.translate(_BASE64).split(b"\0") if len(piece) >= len(_CODED_RUN)]
        read = [binascii.a2b_base64(piece + b"A" * (-len(piece) % 4)) for piece in dict.fromkeys((told, *coded))]
        if not told.translate(None, _HEX):
            read.append(binascii.unhexlify(told[: len(told) // 2 * 2]))
        found += [octets.decode(errors="ignore") for octets in read if _is_text(octets)]
    return plain("\n".join(found))


def _is_text(octets: bytes) -> bool:
    """Whether it is UTF-8 beyond ASCII, but for what the filling may have added."""
    try:
        return not codecs.getincrementaldecoder("utf-8")().decode(octets[:-3]).isascii()
    except UnicodeDecodeError:
        return False


def _readable(octets: bytes) -> bytes:
    try:
        text = octets.decode()
    except UnicodeDecodeError:
        return _runs(octets, _PRINTED, _PRINTED_RUN)
    return plain(text)


def unbroken(raw: bytes) -> bytes:
    """Return the words of a text that are long enough to hold an encoded run, each in its own place."""
    return _runs(raw, _CODED, _CODED_RUN)


def _runs(raw: bytes, marking: bytes, enough: bytes) -> bytes:
    marks = raw.translate(marking)
    pieces: list[bytes] = []
    start = marks.find(enough)
    while start >= 0:
        end = marks.find(b"\0", start)
        if end < 0:
            end = len(marks)
        pieces.append(raw[start:end])
        start = marks.find(enough, end)
    return b"\n".join(pieces)


def unspelled(told: bytes) -> bytes:
    """Return letters and digits with words for digits and letters as these, and without those for signs.

    >>> unspelled(b"ThreeFoxtrotDashNine")
    b'3f9'
    """
    read = told.lower()
    for word, meaning in _WORDS:
        read = read.replace(word, meaning)
    return read
