"""Whether a piece of an address looks like data rather than like words."""

from __future__ import annotations

import re
from urllib.parse import unquote

__all__ = ("looks_random",)

_PIECES = re.compile(r"[/.@,;:?&\s]+")
_MIXED = re.compile(r"[0-9+=%]")  # a text without any of these has runs of letters alone
_RUNS = re.compile(r"[A-Za-z0-9+=]+")
# Our choice: 16 characters of hexadecimal are 64 bits, the least that documentation on tokens asks for (OWASP Session
# Management Cheat Sheet). Dates, versions and numbers of questions are shorter, and words have no digits.
_LEAST = 16


def looks_random(text: str) -> bool:
    """Whether one piece of a path or host name has 16 or more characters in runs of Base64 or hexadecimal with digits.

    Runs of letters alone count as words. Linear in the text.

    >>> looks_random("/questions/12345678/how-to-sort-in-2024"), looks_random("/c/QUtJQUlPU0ZPRE5ON0VYQU1QTEU")
    (False, True)
    """
    if len(text) < _LEAST or not _MIXED.search(text):
        return False
    return any(_is_random(piece) for piece in _PIECES.split(unquote(text)) if len(piece) >= _LEAST)


def _is_random(piece: str) -> bool:
    runs = [run for run in _RUNS.findall(piece) if not run.isalpha()]
    return sum([len(run) for run in runs]) >= _LEAST
