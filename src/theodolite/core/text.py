"""Text that can be written anywhere: without lone surrogates, which no UTF-8 file, database or terminal takes."""

from __future__ import annotations

__all__ = ("encodable", "printable")


def encodable(text: str) -> bool:
    """Whether the text is free of lone surrogates."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def printable(text: str) -> str:
    r"""Return the text with each lone surrogate spelled out.

    >>> print(printable("a\ud800b"))
    a\ud800b
    """
    return text if encodable(text) else text.encode("utf-8", "backslashreplace").decode()
