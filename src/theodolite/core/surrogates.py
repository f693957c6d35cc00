"""Structs whose text can be written anywhere. Apart from `core.text`, which loads no package."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import force_setattr

from theodolite.core.text import encodable, printable

__all__ = ("spell_out",)


def spell_out(struct: Struct, *names: str) -> None:
    """Spell out the lone surrogates in some text fields of a Struct that is being made."""
    for name in names:
        text = getattr(struct, name)
        if not encodable(text):
            force_setattr(struct, name, printable(text))
