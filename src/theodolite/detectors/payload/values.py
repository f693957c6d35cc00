"""Whether a Python value is JSON that the engine may be given, and where it is not.

The engine looks only at what a schema names, crashes the process at some ten thousand levels, and takes NaN for a value
like any other. So a value is vouched for first, at the engine's own speed: by a schema that names everything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from enum import Enum
from functools import cache
from gc import get_referents
from types import MappingProxyType

from jsonschema_rs import Draft202012Validator

from theodolite.core.arguments import FAULTS, MAX_DEPTH, is_mapping, is_sequence, pointer
from theodolite.core.contract import Divergence, Kind, Location
from theodolite.core.text import encodable, printable

__all__ = ("LEVELS", "MAX_NODES", "TEXT", "few", "plain", "vouch", "word")

# Values in one call, each counted as often as it is met (our choice): the engine takes some ms for so many, and Python
# a tenth of a second.
MAX_NODES = 200_000
# A report needs a few places, not all of a million.
_MOST = 100
# Some text: comparing it makes the engine read the strings, which is how it meets lone surrogates.
TEXT = "\x00theodolite"
# References in what is checked without another look (our choice). Reading them all takes 0.2 ms at most.
_FEW, _LEVEL = 20_000, 20_000 // MAX_DEPTH
# Containers that are looked into at once (our choice): more than a level of a usual body holds. Of a list that is met
# over and over so many copies are held for a moment.
_AT_ONCE = 256
# What `json.loads` makes, and tuples.
_PLAIN = frozenset({dict, list, tuple, str, int, float, bool, type(None), Decimal})


def few(value: object) -> bool:
    """Whether what a value leads to is so little that a walk over it soon ends: the engine may be given it.

    One list that holds another twice, and so on 60 times, is met 2^60 times by whoever walks over it, as the engine
    does. At most 20,000 references, each counted as often as it is met; a level counts as 200. Objects of a host lead
    to their classes, and so to more than that. Runs no code of the value's own. Cost: 10 ns for each reference.

    >>> shared = [1]
    >>> for _ in range(60): shared = [shared, shared]
    >>> few(shared), few([[1], {"a": [2]}])
    (False, True)
    """
    level = get_referents(value)
    room = _FEW
    while size := len(level):
        room -= size + _LEVEL
        if room < 0:
            return False
        level = get_referents(*level) if size <= _AT_ONCE else _below(level, _FEW)
    return True


def _below(level: list[object], most: int) -> list[object]:
    """Return what some values hold, or the first of it that are more than `most`."""
    found: list[object] = []
    for start in range(0, len(level), _AT_ONCE):
        found += get_referents(*level[start : start + _AT_ONCE])
        if len(found) > most:
            break
    return found


def _all_plain(value: object) -> bool:
    """Whether there is nothing but plain types in a value, and of them no more than 200,000, on 100 levels."""
    level = [value]
    met = 0
    for _ in range(MAX_DEPTH + 2):
        if not level:
            return True
        if not _PLAIN.issuperset(map(type, level)):
            return False
        level = _below(level, MAX_NODES)
        met += len(level)
        if met > MAX_NODES:
            return False
    return False


def vouch(value: object) -> bool:
    """Whether a value is JSON as it stands, no more than 100 levels deep and with no more than 200,000 values in it.

    A False says only that `plain` has to look: named tuples and subclasses of str and int are not vouched for, and are
    no fault. True never errs, but for one thing: a finite Decimal counts as the number that it is, since `json.loads`
    makes them on request, and the engine reads them exactly.

    Cost: about 50 ns for each value in it, half of it in Python.

    >>> vouch({"a": [1, 2.5, None]}), vouch({"a": float("nan")}), vouch({"a": {1: 2}})
    (True, False, False)
    """
    try:
        return _all_plain(value) and _whole().is_valid(value)
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
        except FAULTS:
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
        if isinstance(
            value, Decimal
        ):  # plainly, as the engine knows it; not as a float, to which a large one is infinite
            number = Decimal(value)
            if not number.is_finite():
                self._strange("NaN" if number.is_nan() else "Infinity")
            return number
        if isinstance(value, float):
            if not math.isfinite(value):
                self._strange("NaN" if math.isnan(value) else "Infinity")
            return float.__float__(value)
        self._strange(type(value).__name__)
        return None


def word(value: object) -> str:
    """Return the JSON type of a value; "integer" for a number that is whole, as JSON Schema has it.

    >>> word(1.0), word(1.5), word(True), word({})
    ('integer', 'number', 'boolean', 'object')
    """
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, Decimal):
        return "integer" if value.is_finite() and value == value.to_integral_value() else "number"
    if isinstance(value, float):
        return "integer" if value.is_integer() else "number"
    if isinstance(value, Enum) and not isinstance(value, str | int):
        return word(value.value)
    for kind, name in _WORDS:
        if isinstance(value, kind):
            return name
    return "null" if value is None else printable(type(value).__name__)


_WORDS = ((str, "string"), (int, "integer"), (Mapping, "object"), (list, "array"), (tuple, "array"))
