"""What a caller gives, looked at where it is given: what is wrong, where, and what belongs there instead."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TypeGuard, TypeVar

import msgspec
from msgspec import Struct

from theodolite.core.errors import ConfigError
from theodolite.core.text import brief, encodable

__all__ = (
    "FAULTS",
    "able",
    "called",
    "listed",
    "listed_of",
    "of_kind",
    "seconds",
    "secret_bytes",
    "sound",
    "word",
    "worded",
)

FAULTS = (ArithmeticError, AttributeError, LookupError, OSError, RuntimeError, TypeError, ValueError)
"""What an object of the caller's may raise when it is looked at."""

# As many as the hash that a secret keys gives half of: RFC 2104, section 3.
_LEAST_SECRET = 16
# A wait of more seconds than this is a mistake: a leap year of them.
_LONGEST = 366 * 86_400

_T = TypeVar("_T")


def of_kind(name: str, given: object, kind: type[_T]) -> _T:
    """Return what is of a kind. Raises ConfigError for what is not, and for the kind itself in place of one."""
    if isinstance(given, kind):
        return given
    raise ConfigError(f"{name} is a {kind.__name__}, not {_shown(given)}")


def able(name: str, given: object, *methods: str) -> None:
    """Raise ConfigError for what has not these methods, and for a class in place of what is made of it."""
    for method in methods:
        if isinstance(given, type) or not callable(_attribute(given, method)):
            raise ConfigError(f"{name} has no method {method}: give an object that has, not {_shown(given)}")


def worded(name: str, given: object, *attributes: str) -> None:
    """Raise ConfigError for what has not these attributes, each a text that is not empty."""
    for attribute in attributes:
        try:
            word(attribute, _attribute(given, attribute))
        except ConfigError as error:
            raise ConfigError(f"{name} has no {attribute} that records could carry: {error}") from None


def sound(name: str, given: Struct) -> None:
    """Raise ConfigError for a Struct with a field of another type than it declares, or a number that is not finite."""
    try:
        plain: object = msgspec.to_builtins(given, str_keys=True)
        msgspec.convert(plain, type(given), str_keys=True)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"{name} is a {type(given).__name__} with what does not belong there: {error}") from None
    for field in given.__struct_fields__:
        value: object = getattr(given, field)
        if isinstance(value, float) and not math.isfinite(value):
            raise ConfigError(f"{field} of the {name} is a number, not {value}")


def called(name: str, given: object) -> None:
    """Raise ConfigError for what cannot be called."""
    if not callable(given):
        raise ConfigError(f"{name} is a function, not {_shown(given)}")


def word(name: str, given: object) -> str:
    """Return a text that is not empty. Raises ConfigError for anything else, and for one that cannot be written."""
    if isinstance(given, str) and given:
        if not encodable(given):
            raise ConfigError(f"{name} has a lone surrogate, which no record takes: {ascii(given)[:40]}; leave it out")
        return given
    raise ConfigError(f"{name} is a text that is not empty, not {_shown(given)}")


def seconds(name: str, given: object) -> float:
    """Return a number of seconds over 0. Raises ConfigError for anything else, and for more than a year."""
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0.0 < given <= _LONGEST:
        raise ConfigError(f"{name} is a number of seconds over 0, not {brief(given)}")
    return float(given)


def listed_of(name: str, given: object, kind: type[_T]) -> tuple[_T, ...]:
    """Return the items of an iterable that are all of a kind. Raises ConfigError for anything else."""
    if not _several(given):
        raise ConfigError(f"{name} is a list, not {_shown(given)}")
    return tuple([of_kind(name, one, kind) for one in given])


def listed(name: str, given: Iterable[_T]) -> tuple[_T, ...]:
    """Return the items of an iterable. Raises ConfigError for what is none, and for a text or a mapping."""
    items: object = given
    if not _several(items):
        raise ConfigError(f"{name} is a list, not {_shown(given)}")
    return tuple(given)


def secret_bytes(given: object) -> bytes | None:
    """Return a secret, None where there is none. Raises ConfigError for no bytes, or too few; it is not quoted."""
    if given is None or (isinstance(given, bytes) and len(given) >= _LEAST_SECRET):
        return given
    raise ConfigError(f"secret is at least {_LEAST_SECRET} random bytes, or left out: one is then made in each run")


def _several(given: object) -> TypeGuard[Iterable[object]]:
    return isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping)


def _attribute(given: object, name: str) -> object:
    """Return an attribute, None where there is none; one whose own code fails is none, and is not quoted."""
    try:
        value: object = getattr(given, name, None)
    except FAULTS:
        return None
    return value


def _shown(given: object) -> str:
    return f"the class {given.__name__}: make one" if isinstance(given, type) else brief(given)
