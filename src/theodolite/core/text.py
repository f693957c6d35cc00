"""Text that can be written anywhere: without lone surrogates, which no UTF-8 file, database or terminal takes."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import force_setattr

__all__ = ("brief", "encodable", "printable", "spell_out")


# Characters of a value that an error shows: enough to find it by, and less than any key has.
_SHOWN = 20


def brief(value: object) -> str:
    """Return a value as an error may show it: its first 20 characters, and of what has no text its type.

    >>> print(brief("warm"), brief("x" * 30), brief(3), brief([]))
    'warm' 'xxxxxxxxxxxxxxxxxxxx…' 3 list
    """
    if isinstance(value, str):
        return repr(value if len(value) <= _SHOWN else f"{value[:_SHOWN]}\N{HORIZONTAL ELLIPSIS}")
    if value is None or isinstance(value, bool | float):
        return repr(value)
    return repr(value) if isinstance(value, int) and abs(value) < 10**_SHOWN else type(value).__name__


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
