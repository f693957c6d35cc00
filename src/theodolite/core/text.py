"""Text that can be written anywhere: without lone surrogates, which no UTF-8 file, database or terminal takes."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import force_setattr

__all__ = ("encodable", "printable", "spell_out")


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


def spell_out(struct: Struct, *names: str) -> None:
    """Spell out the lone surrogates in some text fields of a Struct that is being made."""
    for name in names:
        text = getattr(struct, name)
        if not encodable(text):
            force_setattr(struct, name, printable(text))
