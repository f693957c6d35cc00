"""Whether a Python value is JSON that the engine may be given, and where it is not.

The engine looks only at what a schema names, crashes the process at some ten thousand levels, and takes NaN for a value
like any other. So a value is vouched for first, at the engine's own speed: by a schema that names everything.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import Decimal
from enum import Enum
from functools import cache
from types import MappingProxyType
from typing import TypeGuard

from jsonschema_rs import Draft202012Validator

from theodolite.core.arguments import MAX_DEPTH, is_mapping, is_sequence, pointer
from theodolite.core.contract import Divergence, Kind, Location
from theodolite.core.text import encodable, printable

__all__ = ("LEVELS", "MAX_NODES", "TEXT", "few", "plain", "vouch", "word")

# Values in one call, each counted as often as it is met (our choice): the engine takes some ms for so many, and Python
# a tenth of a second.
MAX_NODES = 200_000
# A report needs a few places, not all of a million.
_MOST = 100
# What a host's own mapping or sequence may raise when it is read.
_FAULTS = (ArithmeticError, AttributeError, LookupError, OSError, RuntimeError, TypeError, ValueError)
# Some text: comparing it makes the engine read the strings, which is how it meets lone surrogates.
_CONTAINERS = frozenset({dict, list, tuple})
TEXT = "\x00theodolite"


def few(value: object) -> bool:
    """Whether a value has at most 200,000 values in it, each counted as often as it is met.

    One list that holds another twice, and so on 60 times, is met 2^60 times by whoever walks over it, as the engine
    does. False comes of other classes of containers too, which only `plain` reads, and of what is more than 100 levels
    deep. What the garbage collector does not track holds no containers, and is not looked into. Runs no code of the
    value's own, and none of Python for each value. Cost: some 10 ns for each, nothing for a flat object.

    >>> shared = [1]
    >>> for _ in range(60): shared = [shared, shared]
    >>> few(shared), few([[1], {"a": [2]}])
    (False, True)
    """
    level: list[object] = [value] if gc.is_tracked(value) else []
    met = 0
    for _ in range(MAX_DEPTH + 1):
        if not level:
            return True
        if not _all_plain(level):
            return False
        met += sum(map(len, level))
        if met > MAX_NODES:
            return False
        level = list(filter(gc.is_tracked, gc.get_referents(*level)))
    return not level


def _all_plain(level: list[object]) -> TypeGuard[list[Collection[object]]]:
    return _CONTAINERS.issuperset(map(type, level))


def vouch(value: object) -> bool:
    """Whether a value is JSON as it stands, no more than 100 levels deep and with no more than 200,000 values in it.

    A False says only that `plain` has to look: named tuples and subclasses of str and int are not vouched for, and are
    no fault. True never errs, but for one thing: a finite Decimal counts as the number that it is, since `json.loads`
    makes them on request, and the engine reads them exactly. Enums of text or numbers count as their values.

    Cost: about 50 ns for each value in it, half of it in `few`.

    >>> vouch({"a": [1, 2.5, None]}), vouch({"a": float("nan")}), vouch({"a": {1: 2}})
    (True, False, False)
    """
    try:
        return few(value) and _whole().is_valid(value)
    except (ValueError, OverflowError):  # a type that it does not know, a key that is no text, a lone surrogate
        return False


def _levels() -> Mapping[str, object]:
    """Return schemas that name every place of a value, one for each number of levels: none can recurse any further."""
    containers, atoms = ["object", "array"], ["string", "number", "boolean", "null"]
    levels: dict[str, object] = {"0": {"type": atoms}}
    text = {"type": atoms, "not": {"enum": [TEXT]}}
    for level in range(1, MAX_DEPTH + 1):
        below = {"$ref": f"#/$defs/{level - 1}"}
        inside = {"additionalProperties": below, "items": below, "maxItems": MAX_NODES, "maxProperties": MAX_NODES}
        levels[str(level)] = {"if": {"type": containers}, "then": inside, "else": text}
    return MappingProxyType(levels)


LEVELS = _levels()
"""The definitions that `vouch` goes by: "100" is that of a whole value."""


@cache
def _whole() -> Draft202012Validator:
    return Draft202012Validator({"$ref": f"#/$defs/{MAX_DEPTH}", "$defs": dict(LEVELS)}, offline=True)


def plain(value: object, location: Location = Location.ARGUMENTS) -> tuple[object, tuple[Divergence, ...]]:
    """Return a copy of a value in plain JSON types, and a finding for each place where there is none.

    Mappings of any kind become objects, lists and tuples arrays, subclasses of text and numbers what they are.
    Findings are `not_json` (with the type, or NaN, Infinity, cycle, lone_surrogate, unreadable as what was observed),
    `too_deep` and `too_large`; at most 100 of them. Where there is one, the copy is not to be used. Raises nothing for
    the value unless its own code raises something of its own kind. Linear, about 0.5 us for each value, in a copy.

    >>> plain({"when": {1, 2}})[1][0].pointer, plain({"when": {1, 2}})[1][0].observed
    ('/when', 'set')
    """
    copying = _Copying(location)
    try:
        copy = copying.value(value, MAX_DEPTH)
    except _EnoughError:
        copy = None
    return copy, tuple(copying.found)


class _EnoughError(Exception):
    """There is no point in looking further."""


class _Copying:
    """Copies a value into JSON, and notes what cannot be."""

    def __init__(self, location: Location) -> None:
        self.location = location
        self.found: list[Divergence] = []
        self.path: list[str | int] = []
        self.above: set[int] = set()
        self.nodes = 0

    def _note(self, kind: Kind, expected: str, observed: str) -> None:
        where = ""
        for key in self.path:
            where = pointer(where, key)
        self.found.append(
            Divergence(kind=kind, location=self.location, pointer=where, expected=expected, observed=observed)
        )
        if len(self.found) >= _MOST or kind is Kind.TOO_LARGE:
            raise _EnoughError

    def _strange(self, what: str) -> None:
        self._note(Kind.NOT_JSON, "a JSON value", printable(what))

    def value(self, value: object, room: int) -> object:
        """Return `value` as JSON; `room` is how many levels more there may be."""
        self.nodes += 1
        if self.nodes > MAX_NODES:
            self._note(Kind.TOO_LARGE, f"at most {MAX_NODES:,} values", "more")
        try:
            if is_mapping(value):
                return self._level(value, room, lambda: self._mapping(value, room - 1))
            if is_sequence(value):
                return self._level(value, room, lambda: self._sequence(value, room - 1))
            return self._scalar(value)
        except _FAULTS:
            self._strange("unreadable")
            return None

    def _level(self, value: object, room: int, read: Callable[[], object]) -> object:
        if id(value) in self.above:
            self._strange("cycle")
            return None
        if room == 0:
            self._note(Kind.TOO_DEEP, f"at most {MAX_DEPTH} levels", "more")
            return None
        self.above.add(id(value))
        try:
            return read()
        finally:
            self.above.discard(id(value))

    def _sequence(self, value: Sequence[object], room: int) -> list[object]:
        copy: list[object] = []
        for place, item in enumerate(value):
            self.path.append(place)
            copy.append(self.value(item, room))
            self.path.pop()
        return copy

    def _mapping(self, value: Mapping[object, object], room: int) -> dict[str, object]:
        copy: dict[str, object] = {}
        for key, item in list(value.items()):
            plainly = key.value if isinstance(key, Enum) else key
            text = str.__str__(plainly) if isinstance(plainly, str) else f"<{type(key).__name__}>"
            self.path.append(text)
            if not isinstance(plainly, str):
                self._strange(f"{type(key).__name__}_key")
            elif not encodable(text):
                self._strange("lone_surrogate_key")
            copy[text] = self.value(item, room)
            self.path.pop()
        return copy

    def _scalar(self, value: object) -> object:
        # The types' own methods, not those of a subclass: a member of `class Tool(str, Enum)` is what it says in JSON.
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, Enum) and not isinstance(value, str | int | float):
            value = value.value
        if isinstance(value, str):
            text = str.__str__(value)
            if not encodable(text):
                self._strange("lone_surrogate")
            return text
        if isinstance(value, int):
            return int.__index__(value)
        if isinstance(value, float | Decimal):
            if not math.isfinite(value):
                self._strange("NaN" if math.isnan(value) else "Infinity")
            return value if isinstance(value, Decimal) else float.__float__(value)
        self._strange(type(value).__name__)
        return None


def word(value: object) -> str:
    """Return the JSON type of a value; "integer" for a number that is whole, as JSON Schema has it.

    >>> word(1.0), word(1.5), word(True), word({})
    ('integer', 'number', 'boolean', 'object')
    """
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, float | Decimal):
        return "integer" if math.isfinite(value) and value == math.floor(value) else "number"
    if isinstance(value, Enum) and not isinstance(value, str | int):
        return word(value.value)
    for kind, name in _WORDS:
        if isinstance(value, kind):
            return name
    return "null" if value is None else printable(type(value).__name__)


_WORDS = ((str, "string"), (int, "integer"), (Mapping, "object"), (list, "array"), (tuple, "array"))
