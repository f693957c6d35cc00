"""What the fields of a value may hold, when it is made. msgspec checks what it decodes, and nothing that code makes."""

from __future__ import annotations

import math
from functools import cache
from typing import Literal, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct
from msgspec.structs import force_setattr

from theodolite.core.errors import EventError
from theodolite.core.surrogates import spell_out

__all__ = ("hold",)


def hold(struct: Struct) -> None:
    """Hold each field of a Struct that is being made to its type, `arguments` excepted.

    Lists become tuples, words members of their closed list, whole numbers floats where one is meant; lone surrogates
    are spelled out. Raises EventError for what then still does not fit, and for a number that is not finite.
    """
    for name, hint, plain in _fields(type(struct)):
        value = getattr(struct, name)
        if type(value) not in plain:
            try:
                value = msgspec.convert(value, hint)
            except ValueError as error:
                raise EventError(f"{type(struct).__name__}.{name}: {error}; leave out what is not known") from None
            value = str.__str__(value) if isinstance(value, str) and str in plain else value
            force_setattr(struct, name, value)
        if type(value) is str:
            spell_out(struct, name)
        elif type(value) is float and not math.isfinite(value):
            raise EventError(f"{type(struct).__name__}.{name}: {value} is not a number; leave out what is not known")


@cache
def _fields(kind: type[Struct]) -> tuple[tuple[str, object, frozenset[type]], ...]:
    """Return each field of a Struct with its hint and the types that need no conversion."""
    hints = get_type_hints(kind)
    # Arguments take anything that is a mapping, and have their own way into JSON.
    names = [name for name in kind.__struct_fields__ if name != "arguments"]
    return tuple([(name, hints[name], _plain(hints[name])) for name in names])


def _plain(hint: object) -> frozenset[type]:
    parts = () if get_origin(hint) in {tuple, Literal} else get_args(hint) or (hint,)
    return frozenset([part for part in parts if isinstance(part, type)])
