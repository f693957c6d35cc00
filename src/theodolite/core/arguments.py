"""The arguments of a call as JSON bytes, and what in them was not JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeGuard

import msgspec
from msgspec import Raw, Struct

from theodolite.core.errors import EventError
from theodolite.core.text import encodable, printable

__all__ = ("FAULTS", "Foreign", "freeze", "is_mapping", "is_sequence", "leaves", "pointer", "thaw")

# Deeper values crash the JSON Schema engine (at about 10,000 levels) and the encoder (at Python's recursion limit);
# no published tool contract that we have read nests beyond 30.
MAX_DEPTH = 100
# A report needs a few places, not all of a million.
MAX_FOREIGN = 16
# Every place below a long key repeats it: unbounded, the places of a small text could fill the memory.
MAX_POINTER = 512
# What Python reads back without being told otherwise (`sys.get_int_max_str_digits`); JSON itself has no limit.
MAX_DIGITS = 4_300
_LARGEST: int = 10**MAX_DIGITS - 1

FAULTS = (ArithmeticError, AttributeError, LookupError, OSError, RuntimeError, TypeError, ValueError)
"""What a host's own mapping or sequence may raise when it is read: it is then unreadable, and the call still counts."""

_ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
_ENCODER = msgspec.json.Encoder()
_DECODER: msgspec.json.Decoder[dict[str, object]] = msgspec.json.Decoder(dict[str, object])


class Foreign(Struct, frozen=True, array_like=True, gc=False):
    """One value that JSON cannot say: its JSON Pointer and the name of its Python type or fault."""

    path: str
    type: str


def pointer(path: str, key: str | int) -> str:
    """Return the JSON Pointer (RFC 6901) of `key` below `path`; what goes beyond 512 characters is cut off.

    >>> pointer("/a", "x/y")
    '/a/x~1y'
    """
    if path.endswith(_ELLIPSIS):
        return path
    name = key if isinstance(key, int) else key[:MAX_POINTER].replace("~", "~0").replace("/", "~1")
    below = f"{path}/{name}"
    return below if len(below) <= MAX_POINTER else below[: MAX_POINTER - 1] + _ELLIPSIS


def freeze(arguments: Mapping[str, object]) -> tuple[Raw, tuple[Foreign, ...]]:
    """Return the JSON of a mapping and the places where it had to be bent to become JSON.

    Never holds or changes the mapping, and raises nothing for it unless its own code raises something of its own kind.
    Foreign values are replaced by their type name in angle
    brackets, keys become text; at most 16 places are listed. Linear in the size of the value. Raises EventError for
    what is no mapping.

    >>> raw, foreign = freeze({"a": 1, "b": float("nan")})
    >>> bytes(raw), foreign
    (b'{"a":1,"b":"<NaN>"}', (Foreign(path='/b', type='NaN'),))
    """
    try:
        if _is_json(arguments, MAX_DEPTH) and is_mapping(arguments):
            return Raw(_ENCODER.encode(arguments)), ()
    except (RuntimeError, TypeError, ValueError):
        pass  # another thread changed it meanwhile: what follows copies first
    if not is_mapping(arguments):
        kind = type(arguments).__name__
        hint = ": json.loads it first, as with the arguments of OpenAI's calls" if kind == "str" else ""
        raise EventError(f"arguments must be a mapping, or JSON as msgspec.Raw, not {kind}{hint}")
    bent = _Bending()
    copy = bent.value(arguments, "", MAX_DEPTH)
    return Raw(_ENCODER.encode(copy if isinstance(copy, dict) else {})), tuple(bent.found)


def thaw(raw: Raw, what: str = "arguments") -> dict[str, object]:
    """Return a fresh copy of what is JSON. Raises EventError, which calls it `what`, when it is not one JSON object."""
    try:
        return _DECODER.decode(raw)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise EventError(
            f"{what} given as JSON must be one JSON object: {error}. Leave them UNSET where there is none."
        ) from error


def leaves(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the JSON Pointer and text of every string and number in a decoded value, in order.

    Truth values and nulls carry no origin worth tracing and are passed over.
    """
    if isinstance(value, str):  # asked first, as most are
        yield path, value
    elif is_mapping(value):
        for key, item in value.items():
            yield from leaves(item, pointer(path, str(key)))
    elif is_sequence(value):
        for index, item in enumerate(value):
            yield from leaves(item, pointer(path, index))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, str(value)


def is_mapping(value: object) -> TypeGuard[Mapping[object, object]]:
    """Whether a value is a mapping, to a type checker of anything to anything."""
    return isinstance(value, Mapping)


def is_sequence(value: object) -> TypeGuard[Sequence[object]]:
    """Whether a value is a list or tuple, to a type checker of anything."""
    return isinstance(value, list | tuple)


def _is_json(value: object, room: int) -> bool:
    """Whether a value is JSON as it stands: the common case, without a copy and without naming any place."""
    kind = type(value)
    if kind is dict and is_mapping(value):
        return room > 0 and all(type(k) is str and encodable(k) and _is_json(v, room - 1) for k, v in value.items())
    if kind is list and is_sequence(value):
        return room > 0 and all(_is_json(item, room - 1) for item in value)
    return _is_atom(value)


def _is_atom(value: object) -> bool:
    """Whether a value is a JSON atom; by its exact type, so that no code of the value's own runs."""
    if type(value) is str:
        return encodable(value)
    if type(value) is int:
        return -_LARGEST <= value <= _LARGEST
    if type(value) is float:
        return math.isfinite(value)
    return value is None or type(value) is bool


class _Bending:
    """Copies a value into JSON and notes each place where it had to be bent."""

    def __init__(self) -> None:
        self.found: list[Foreign] = []
        self.above: set[int] = set()

    def _note(self, kind: str, path: str) -> str:
        kind = printable(kind)
        if len(self.found) < MAX_FOREIGN:
            self.found.append(Foreign(printable(path), kind))
        return f"<{kind}>"

    def value(self, value: object, path: str, room: int) -> object:
        """Return `value` as JSON; `room` is how many levels more there may be."""
        try:
            if is_mapping(value):
                return self._level(value, path, room, lambda: self._mapping(value, path, room - 1))
            if is_sequence(value):
                return self._level(value, path, room, lambda: self._sequence(value, path, room - 1))
            return self._scalar(value, path)
        except FAULTS:
            return self._note("unreadable", path)

    def _level(self, value: object, path: str, room: int, read: Callable[[], object]) -> object:
        if room == 0 or id(value) in self.above:
            return self._note("cycle" if room else "too_deep", path)
        self.above.add(id(value))
        try:
            return read()
        finally:
            self.above.discard(id(value))

    def _sequence(self, value: Sequence[object], path: str, room: int) -> list[object]:
        return [self.value(item, pointer(path, place), room) for place, item in enumerate(value)]

    def _mapping(self, value: Mapping[object, object], path: str, room: int) -> dict[str, object]:
        copy: dict[str, object] = {}
        for key, item in list(value.items()):
            text = self._key(key, path)
            while text in copy:  # two keys that differ in Python only
                text = f"{text}#{len(copy)}"
            copy[text] = self.value(item, pointer(path, text), room)
        return copy

    def _key(self, key: object, path: str) -> str:
        if isinstance(key, str):
            text = str.__str__(key)
            if not encodable(text):
                self._note("lone_surrogate_key", pointer(path, printable(text)))
            return printable(text)
        kind = printable(type(key).__name__)
        text = str(key) if _is_atom(key) else f"<{kind}>"
        self._note(f"{kind}_key", pointer(path, text))
        return text

    def _scalar(self, value: object, path: str) -> object:
        # The types' own methods, not those of a subclass: a member of `class Tool(str, Enum)` is what it says in JSON.
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            text = str.__str__(value)
            return text if encodable(text) else self._note("lone_surrogate", path)
        if isinstance(value, int):
            number = int.__index__(value)
            return number if _is_atom(number) else self._note("huge_int", path)
        if isinstance(value, float):
            real = float.__float__(value)
            return real if math.isfinite(real) else self._note("NaN" if math.isnan(real) else "Infinity", path)
        return self._note(type(value).__name__, path)
