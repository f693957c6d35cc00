"""Tables of words, written as text."""

from __future__ import annotations

__all__ = ("table",)


def table(words: str) -> frozenset[str]:
    """Return the words of a text as a set.

    >>> sorted(table("read write"))
    ['read', 'write']
    """
    return frozenset(words.split())
