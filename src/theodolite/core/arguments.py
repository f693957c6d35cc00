"""The arguments of a call as JSON bytes, and what in them was not JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeGuard

import msgspec
from msgspec import Raw, Struct

from theodolite.core.errors import EventError
from theodolite.core.text import encodable, printable

__all__ = ("Foreign", "freeze", "is_mapping", "is_sequence", "leaves", "pointer", "thaw")

# Deeper values crash the JSON Schema engine (at about 10,000 levels) and the encoder (at Python's recursion limit);
# no published tool contract that we have read nests beyond 30.
MAX_DEPTH = 100
# A report needs a few places, not all of a million.
MAX_FOREIGN = 16

_ATOMS = frozenset({int, bool, type(None)})
_ENCODER = msgspec.json.Encoder()
_DECODER: msgspec.json.Decoder[dict[str, object]] = msgspec.json.Decoder(dict[str, object])


class Foreign(Struct, frozen=True, array_like=True, gc=False):
    """One value that JSON cannot say: its JSON Pointer and the name of its Python type or fault."""

    path: str
    type: str


def pointer(path: str, key: object) -> str:
    """Return the JSON Pointer (RFC 6901) of `key` below `path`.

    >>> pointer("/a", "x/y")
    '/a/x~1y'
    """
    return f"{path}/{str(key).replace('~', '~0').replace('/', '~1')}"


def freeze(arguments: Mapping[str, object]) -> tuple[Raw, tuple[Foreign, ...]]:
    """Return the JSON of a mapping and the places where it had to be bent to become JSON.

    Never raises and never holds or changes what it is given. Foreign values are replaced by their type name in angle
    brackets; at most 16 places are listed. Linear in the size of the value.

    >>> raw, foreign = freeze({"a": 1, "b": float("nan")})
    >>> bytes(raw), foreign
    (b'{"a":1,"b":"<NaN>"}', (Foreign(path='/b', type='NaN'),))
    """
    if _is_json(arguments, MAX_DEPTH):
        return Raw(_ENCODER.encode(arguments)), ()
    bent = _Bending()
    copy = bent.value(arguments, "", MAX_DEPTH)
    return Raw(_ENCODER.encode(copy)), tuple(bent.found)


def thaw(raw: Raw) -> dict[str, object]:
    """Return a fresh copy of arguments that are JSON. Raises EventError when they are not one JSON object."""
    try:
        return _DECODER.decode(raw)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise EventError(
            f"arguments given as JSON must be one JSON object: {error}. Leave them UNSET where the model wrote no JSON."
        ) from error


def leaves(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the JSON Pointer and text of every string and number in a decoded value, in order.

    Truth values and nulls carry no origin worth tracing and are passed over.
    """
    if is_mapping(value):
        for key, item in value.items():
            yield from leaves(item, pointer(path, key))
    elif is_sequence(value):
        for index, item in enumerate(value):
            yield from leaves(item, f"{path}/{index}")
    elif isinstance(value, str):
        yield path, value
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
    if kind in _ATOMS:
        return True
    if isinstance(value, str):
        return kind is str and encodable(value)
    if isinstance(value, float):
        return kind is float and math.isfinite(value)
    if room == 0:
        return False
    if kind is dict and is_mapping(value):
        return all(isinstance(k, str) and encodable(k) and _is_json(v, room - 1) for k, v in value.items())
    return kind is list and is_sequence(value) and all(_is_json(item, room - 1) for item in value)


class _Bending:
    """Copies a value into JSON and notes each place where it had to be bent."""

    def __init__(self) -> None:
        self.found: list[Foreign] = []
        self.above: set[int] = set()

    def _note(self, kind: str, path: str) -> str:
        if len(self.found) < MAX_FOREIGN:
            self.found.append(Foreign(printable(path), kind))
        return f"<{kind}>"

    def value(self, value: object, path: str, room: int) -> object:
        """Return `value` as JSON; `room` is how many levels more there may be."""
        if not (is_mapping(value) or is_sequence(value)):
            return self._scalar(value, path)
        if room == 0 or id(value) in self.above:
            return self._note("cycle" if room else "too_deep", path)
        self.above.add(id(value))
        try:
            if is_mapping(value):
                return self.mapping(value, path, room)
            return [self.value(item, f"{path}/{i}", room - 1) for i, item in enumerate(value)]
        finally:
            self.above.discard(id(value))

    def mapping(self, value: Mapping[object, object], path: str, room: int) -> dict[str, object]:
        """Return a mapping as JSON: keys become text."""
        self.above.add(id(value))
        copy: dict[str, object] = {}
        for key, item in value.items():
            below = pointer(path, key)
            if not isinstance(key, str):
                self._note(f"{type(key).__name__}_key", below)
            elif not encodable(key):
                self._note("lone_surrogate_key", below)
            copy[printable(str(key))] = self.value(item, below, room - 1)
        return copy

    def _scalar(self, value: object, path: str) -> object:
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return str(value) if encodable(value) else self._note("lone_surrogate", path)
        if isinstance(value, int):
            return int(value)
        if isinstance(value, float):
            if math.isfinite(value):
                return float(value)
            return self._note("NaN" if math.isnan(value) else "Infinity", path)
        return self._note(type(value).__name__, path)
