"""Small faults planted in a value at every depth: what a model leaves out, makes up, mistypes, or encodes twice."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from enum import StrEnum
from random import Random
from typing import NamedTuple

from tests.quality.payload.bodies import Flat, Written
from tests.quality.payload.published import Json, elements, members, token

__all__ = ("Fault", "Mutation", "changed", "mutations", "sampled")

INVENTED = "invented_field"
_OTHERS: Mapping[str, Json] = {
    "string": "x", "integer": 7, "fraction": 1.5, "boolean": True, "object": {"x": 1}, "array": ["x"],
    "empty object": {}, "empty array": [],
}  # fmt: skip


class Fault(StrEnum):
    """What was done to a value."""

    NONE = "none"
    DROP = "drop"
    TYPE = "type"
    VALUE = "value"
    UNKNOWN = "unknown"
    NULL = "null"
    DOUBLE_ENCODE = "double-encode"
    READ_ONLY = "read-only"


class Mutation(NamedTuple):
    """A value with one fault, where it is, and what exactly was done there."""

    fault: Fault
    detail: str
    pointer: str
    value: Json
    rules: Flat

    @property
    def depth(self) -> int:
        """How many levels below the whole value the fault is."""
        return self.pointer.count("/")


class _Place(NamedTuple):
    keys: tuple[str | int, ...]
    value: Json
    holder: Json

    @property
    def pointer(self) -> str:
        return "".join(f"/{token(key)}" for key in self.keys)


_Faulty = tuple[Fault, str, str, Json]


def mutations(written: Written) -> Iterator[Mutation]:
    """Yield every mutation of a value: one fault each, the value otherwise the same (and shared, never changed)."""
    for place in _places(written.value, (), None):
        for fault, detail, below, value in _at(place, written):
            yield Mutation(fault, detail, place.pointer + below, value, written.rules.get(place.pointer, ()))


def changed(root: Json, keys: tuple[str | int, ...], value: Json) -> Json:
    """Return a value that differs at one place."""
    if not keys:
        return value
    first, *rest = keys
    if isinstance(root, dict) and isinstance(first, str):
        return {**root, first: changed(root.get(first), tuple(rest), value)}
    assert isinstance(root, list)
    assert isinstance(first, int)
    return [*root[:first], changed(root[first], tuple(rest), value), *root[first + 1 :]]


def sampled(found: list[Mutation], most: int, seed: str) -> list[Mutation]:
    """Return at most so many mutations, those of each fault and depth in turn. The same seed gives the same."""
    if len(found) <= most:
        return found
    heaps: dict[tuple[Fault, int], list[Mutation]] = {}
    for one in found:
        heaps.setdefault((one.fault, one.depth), []).append(one)
    dice = Random(seed)  # noqa: S311 - test data
    for heap in heaps.values():
        dice.shuffle(heap)
    kept: list[Mutation] = []
    while len(kept) < most:
        kept.extend(heap.pop() for heap in heaps.values() if heap)
    return kept[:most]


def _places(value: Json, keys: tuple[str | int, ...], holder: Json) -> Iterator[_Place]:
    yield _Place(keys, value, holder)
    if isinstance(value, dict):
        for name, below in value.items():
            yield from _places(below, (*keys, name), value)
    elif isinstance(value, list):
        for index, below in enumerate(value):
            yield from _places(below, (*keys, index), value)


def _at(place: _Place, written: Written) -> Iterator[_Faulty]:
    root, keys, value = written.value, place.keys, place.value
    rules = written.rules.get(place.pointer, ())
    for fault, detail, new in (*_types(value), *_encodings(value), *_values(value, rules)):
        yield fault, detail, "", changed(root, keys, new)
    if isinstance(place.holder, dict):
        without = {name: entry for name, entry in place.holder.items() if name != keys[-1]}
        required = any(keys[-1] in elements(rule.get("required")) for rule in written.rules.get(_above(place), ()))
        yield Fault.DROP, "required" if required else "optional", "", changed(root, keys[:-1], without)
    if isinstance(value, dict):
        yield Fault.UNKNOWN, "invented", f"/{INVENTED}", changed(root, keys, {**value, INVENTED: "x"})
        for name in value:
            for other in (f"{name}s", name.swapcase()):
                new = {other if key == name else key: entry for key, entry in value.items()}
                yield Fault.UNKNOWN, "renamed", f"/{token(other)}", changed(root, keys, new)
        hidden = written.read_only.get(place.pointer, {})
        for name, detail, new in _absent(value, rules, hidden):
            yield Fault.VALUE, detail, f"/{token(name)}", changed(root, keys, new)
        for name, entry in hidden.items():
            yield Fault.READ_ONLY, "sent", f"/{token(name)}", changed(root, keys, {**value, name: entry})


def _above(place: _Place) -> str:
    return "".join(f"/{token(key)}" for key in place.keys[:-1])


def _types(value: Json) -> Iterator[tuple[Fault, str, Json]]:
    own = _type(value)
    for kind, other in _OTHERS.items():
        if kind != own and other != value:
            yield Fault.TYPE, f"{own} to {kind}", other
    if isinstance(value, int) and not isinstance(value, bool):
        yield Fault.TYPE, "integer to whole fraction", float(value)
    yield Fault.TYPE, "wrapped in an array", [value]
    if isinstance(value, list) and value:
        yield Fault.TYPE, "unwrapped from its array", value[0]
    if value is not None:
        yield Fault.NULL, f"{own} to null", None


def _encodings(value: Json) -> Iterator[tuple[Fault, str, Json]]:
    yield Fault.DOUBLE_ENCODE, _type(value), json.dumps(value)
    if isinstance(value, dict | list):
        yield Fault.DOUBLE_ENCODE, "twice", json.dumps(json.dumps(value))


def _values(value: Json, rules: Flat) -> Iterator[tuple[Fault, str, Json]]:
    if isinstance(value, str):
        found = _texts(value, rules)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        found = _numbers(value, rules)
    elif isinstance(value, list):
        found = _arrays(value, rules)
    elif isinstance(value, dict):
        found = _objects(value, rules)
    else:
        found = iter(())
    for detail, new in found:
        if new != value:
            yield Fault.VALUE, detail, new


def _texts(value: str, rules: Flat) -> Iterator[tuple[str, Json]]:
    yield "empty", ""
    yield "other case", value.swapcase()
    yield "blank before", f" {value}"
    yield "line after", f"{value}\n"
    yield "other text", "no such value"
    for rule in rules:
        if isinstance(most := rule.get("maxLength"), int):
            yield "longest", value.ljust(most, "a")[:most]
            yield "too long", value.ljust(most + 1, "a")[: most + 1]
            yield "too long in wide characters", "\N{GRINNING FACE}" * (most + 1)
            yield "longest in wide characters", "\N{GRINNING FACE}" * most
        if isinstance(least := rule.get("minLength"), int) and least:
            yield "too short", value[: least - 1]


def _numbers(value: float, rules: Flat) -> Iterator[tuple[str, Json]]:
    yield "negative", -value if value else -1
    yield "fraction", value + 0.5
    yield "large", 2**53 + 1
    yield "very large", 10**30
    yield "zero", 0
    for rule in rules:
        for keyword, step in (("minimum", -1), ("maximum", 1), ("exclusiveMinimum", -1), ("exclusiveMaximum", 1)):
            bound = rule.get(keyword)
            if isinstance(bound, int | float) and not isinstance(bound, bool):
                yield f"at {keyword}", bound
                yield f"beyond {keyword}", bound + step


def _arrays(value: list[Json], rules: Flat) -> Iterator[tuple[str, Json]]:
    if value:
        yield "an element twice", [*value, value[-1]]
        yield "backward", value[::-1]
        for keyword, more in (("maxItems", 1), ("maxItems", 0), ("minItems", -1), ("minItems", 0)):
            for rule in rules:
                bound = rule.get(keyword)
                if isinstance(bound, int) and 0 <= bound + more <= 2_000:
                    filled = [*value, *[value[-1]] * (bound + more)]
                    yield f"{keyword} and {more}", filled[: bound + more]
    aliens: tuple[Json, ...] = (None, 7, "x", {})
    for alien in aliens:
        yield "an element of another kind", [*value, alien]


def _objects(value: dict[str, Json], rules: Flat) -> Iterator[tuple[str, Json]]:
    yield "an empty name", {**value, "": 1}
    yield "a name in wide characters", {**value, "\N{GRINNING FACE}": 1}
    for rule in rules:
        if isinstance(most := rule.get("maxProperties"), int) and most <= 2_000:
            sample = next(iter(value.values()), "x")
            yield "too many properties", {**value, **{f"key_{index}": sample for index in range(most + 1)}}


def _absent(value: dict[str, Json], rules: Flat, hidden: Mapping[str, Json]) -> Iterator[tuple[str, str, Json]]:
    for rule in rules:
        for name, _ in members(rule.get("properties")):
            if name not in value and name not in hidden:
                yield name, "an absent property as null", {**value, name: None}
                yield name, "an absent property as an object", {**value, name: {"x": 1}}


def _type(value: Json) -> str:
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    if isinstance(value, str):
        return "string"
    if isinstance(value, int | float):
        return "integer" if isinstance(value, int) else "fraction"
    return "object" if isinstance(value, dict) else "array"
