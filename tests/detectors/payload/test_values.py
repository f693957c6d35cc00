from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from decimal import Decimal
from enum import Enum
from pathlib import PurePosixPath
from typing import NamedTuple
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from theodolite.core.contract import Kind
from theodolite.detectors.payload.values import MAX_NODES, plain, vouch, word

TEXT = st.text(st.characters(codec="utf-8"), max_size=5)
ATOMS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
JSON = st.recursive(ATOMS, lambda below: st.lists(below, max_size=3) | st.dictionaries(TEXT, below, max_size=3))
STRANGERS: list[object] = [
    math.nan, -math.inf, b"x", bytearray(b"x"), {1}, frozenset(), 1j, object(), int, range(3), UUID(int=1),
    PurePosixPath("x"), "\ud800", {1: 2}, {None: 1}, {True: 1}, {"\udfff": 1}, {b"x": 1}, Decimal("NaN"), ...,
    msgspec.UNSET, msgspec.Raw(b"1"), memoryview(b"x"),
]  # fmt: skip
FOREIGN = st.sampled_from(STRANGERS)


class Pair(NamedTuple):
    one: int


class Table(Mapping[str, int]):
    def __getitem__(self, key: str) -> int:
        return {"a": 1}[key]

    def __iter__(self) -> Iterator[str]:
        return iter(["a"])

    def __len__(self) -> int:
        return 1


class Broken(Table):
    def __iter__(self) -> Iterator[str]:
        raise RuntimeError("the file is closed")


class Color(Enum):
    RED = "red"


@given(JSON)
def test_json_is_vouched_for_and_copied_as_it_is(value: object) -> None:
    assert vouch(value)
    copy, found = plain(value)
    assert (json.dumps(copy), found) == (json.dumps(value), ())


@given(JSON, FOREIGN, st.booleans())
def test_what_is_no_json_is_vouched_for_nowhere_and_its_place_is_told(
    beside: object,
    foreign: object,
    within: bool,  # noqa: FBT001 - hypothesis gives it
) -> None:
    value = {"a": [beside, foreign]} if within else [{"b": foreign, "c": beside}]
    assert not vouch(value)
    _, found = plain(value)
    assert [one.kind for one in found] == [Kind.NOT_JSON]
    assert found[0].pointer.startswith("/a/1" if within else "/0/b")


@pytest.mark.parametrize(
    ("value", "copy"),
    [(Pair(1), [1]), (Table(), {"a": 1}), (Color.RED, "red"), ((1, 2), [1, 2]), ({Color.RED: 1}, {"red": 1})],
)
def test_what_stands_for_json_becomes_it(value: object, copy: object) -> None:
    assert plain([value]) == ([copy], ())


def test_a_value_that_cannot_be_read_is_told_of() -> None:
    assert not vouch([Broken()])
    assert [(one.pointer, one.observed) for one in plain([Broken()])[1]] == [("/0", "unreadable")]


def test_at_most_a_hundred_places_are_told() -> None:
    assert len(plain([b"x"] * 1_000)[1]) == 100


def test_very_many_values_are_too_many() -> None:
    value = list(range(MAX_NODES + 1))
    assert not vouch(value)
    assert [one.kind for one in plain(value)[1]] == [Kind.TOO_LARGE]
    assert vouch(value[1:])


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (None, "null"), (True, "boolean"), (1, "integer"), (1.0, "integer"), (1.5, "number"), (math.nan, "number"),
        (Decimal(2), "integer"), ("", "string"), ([], "array"), ((), "array"), ({}, "object"), (b"", "bytes"),
        (Color.RED, "string"),
    ],
)  # fmt: skip
def test_types_have_the_names_of_json(value: object, name: str) -> None:
    assert word(value) == name
