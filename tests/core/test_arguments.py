from __future__ import annotations

import copy
import datetime as dt
import decimal
import enum
import inspect
import json
import math
import sys
import threading
import time
import uuid
from collections import ChainMap, OrderedDict, UserDict, defaultdict
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Never, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from theodolite.core.arguments import (
    MAX_DEPTH,
    MAX_FOREIGN,
    MAX_POINTER,
    Foreign,
    freeze,
    is_mapping,
    is_sequence,
    leaves,
    pointer,
    thaw,
)
from theodolite.core.errors import EventError
from theodolite.testing.strategies import arguments


class Word(str, enum.Enum):  # noqa: UP042 - not a StrEnum, and that is the point
    """As hosts name their tools: `str(Word.SEND)` is not what it says in JSON."""

    SEND = "send"


class Level(enum.IntEnum):
    HIGH = 3


class Shouting(str):
    __slots__ = ()

    def __str__(self) -> str:
        return self.upper()


def bent(value: object) -> tuple[object, tuple[Foreign, ...]]:
    raw, foreign = freeze({"a": value})
    return thaw(raw)["a"], foreign


json_values: st.SearchStrategy[object] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda below: st.lists(below, max_size=4) | st.dictionaries(st.text(max_size=3), below, max_size=4),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=3), json_values, max_size=4))
def test_json_comes_back_as_it_went_in(given_arguments: dict[str, object]) -> None:
    before = copy.deepcopy(given_arguments)
    raw, foreign = freeze(given_arguments)
    assert (thaw(raw), foreign) == (before, ())
    assert given_arguments == before
    assert json.loads(bytes(raw)) == before


@given(st.dictionaries(st.text(max_size=3), json_values, max_size=4))
def test_freezing_what_was_thawed_changes_no_byte(given_arguments: dict[str, object]) -> None:
    raw, _ = freeze(given_arguments)
    assert freeze(thaw(raw)) == (raw, ())


@given(arguments())
def test_what_is_not_json_is_bent_into_json_once_and_named(given_arguments: dict[str, object]) -> None:
    raw, foreign = freeze(given_arguments)
    assert freeze(thaw(raw)) == (raw, ())
    assert len(foreign) <= MAX_FOREIGN
    assert all(place.path.startswith("/") and len(place.path) <= MAX_POINTER for place in foreign)


@given(arguments())
def test_the_caller_s_object_is_neither_changed_nor_held(given_arguments: dict[str, object]) -> None:
    before = repr(given_arguments)
    raw, _ = freeze(given_arguments)
    kept = bytes(raw)
    assert repr(given_arguments) == before
    given_arguments["added later"] = "x"
    thawed = thaw(raw)
    thawed["and this"] = []
    assert bytes(raw) == kept
    assert "and this" not in thaw(raw)


FOREIGN: list[tuple[object, str, str]] = [
    (math.nan, "<NaN>", "NaN"),
    (math.inf, "<Infinity>", "Infinity"),
    (-math.inf, "<Infinity>", "Infinity"),
    (b"bytes", "<bytes>", "bytes"),
    (bytearray(b"x"), "<bytearray>", "bytearray"),
    ({1, 2}, "<set>", "set"),
    (frozenset({1}), "<frozenset>", "frozenset"),
    (dt.date(2026, 11, 29), "<date>", "date"),
    (decimal.Decimal("1.10"), "<Decimal>", "Decimal"),
    (uuid.UUID(int=0), "<UUID>", "UUID"),
    (1 + 2j, "<complex>", "complex"),
    (object, "<type>", "type"),
    (len, "<builtin_function_or_method>", "builtin_function_or_method"),
    (iter([1]), "<list_iterator>", "list_iterator"),
    ("a\ud800", "<lone_surrogate>", "lone_surrogate"),
    (10**4300, "<huge_int>", "huge_int"),
    (-(10**5000), "<huge_int>", "huge_int"),
]


@pytest.mark.parametrize(("value", "expected", "kind"), FOREIGN, ids=range(len(FOREIGN)))
def test_each_foreign_value_is_named_at_its_place(value: object, expected: str, kind: str) -> None:
    assert bent(value) == (expected, (Foreign("/a", kind),))
    assert bent({"b/c": [0, value]}) == ({"b/c": [0, expected]}, (Foreign("/a/b~1c/1", kind),))


KEPT: list[tuple[object, object]] = [
    (Word.SEND, "send"),
    (Shouting("quiet"), "quiet"),
    (Level.HIGH, 3),
    ((1, (2, 3)), [1, [2, 3]]),
    (OrderedDict(x=1), {"x": 1}),
    (defaultdict(int, x=1), {"x": 1}),
    (UserDict({"x": 1}), {"x": 1}),
    (MappingProxyType({"x": 1}), {"x": 1}),
    (ChainMap({"x": 1}, {"x": 2}), {"x": 1}),
    (True, True),
    (None, None),
    (10**4299, 10**4299),
    (2**64, 2**64),
    (-(2**63) - 1, -(2**63) - 1),
    (-0.0, -0.0),
    (5e-324, 5e-324),
    (1.7976931348623157e308, 1.7976931348623157e308),
]


@pytest.mark.parametrize(("value", "expected"), KEPT, ids=range(len(KEPT)))
def test_what_json_can_say_of_a_subclass_is_kept_and_not_foreign(value: object, expected: object) -> None:
    kept, foreign = bent(value)
    assert (kept, type(kept), foreign) == (expected, type(expected), ())


KEYS: list[tuple[object, str, str]] = [
    (1, "1", "int_key"),
    (1.5, "1.5", "float_key"),
    (True, "True", "bool_key"),
    (None, "None", "NoneType_key"),
    (dt.date(2026, 11, 29), "<date>", "date_key"),
    (10**5000, "<int>", "int_key"),
    ((1, 2), "<tuple>", "tuple_key"),
    ("\udfff", "\\udfff", "lone_surrogate_key"),
]


@pytest.mark.parametrize(("key", "text", "kind"), KEYS, ids=range(len(KEYS)))
def test_keys_become_text_and_are_named(key: object, text: str, kind: str) -> None:
    assert bent({key: 7}) == ({text: 7}, (Foreign(f"/a/{text}", kind),))


def test_keys_that_differ_in_python_only_lose_no_value() -> None:
    kept, foreign = bent({1: "one", "1": "text", dt.date.min: 1, dt.date.max: 2})
    assert kept == {"1": "one", "1#1": "text", "<date>": 1, "<date>#3": 2}
    assert [place.type for place in foreign] == ["int_key", "date_key", "date_key"]


def test_a_name_that_was_made_for_a_doubled_key_may_be_taken() -> None:
    kept, _ = bent({"1#2": "a", "1": "b", 1: "c"})
    assert kept == {"1#2": "a", "1": "b", "1#2#2": "c"}


def test_a_str_subclass_as_a_key_is_its_text() -> None:
    assert bent({Word.SEND: 1}) == ({"send": 1}, ())


def test_cycles_end() -> None:
    mapping: dict[str, object] = {}
    sequence: list[object] = [mapping]
    mapping["back"] = sequence
    assert bent(mapping) == ({"back": ["<cycle>"]}, (Foreign("/a/back/0", "cycle"),))


def test_a_value_that_stands_twice_is_no_cycle() -> None:
    shared = {"x": [math.nan]}
    kept, foreign = bent([shared, shared])
    assert kept == [{"x": ["<NaN>"]}] * 2
    assert [place.type for place in foreign] == ["NaN", "NaN"]


@pytest.mark.parametrize("below", [dict[str, object], list[object]])
@pytest.mark.parametrize("depth", [MAX_DEPTH - 1, MAX_DEPTH, 100_000])
def test_only_what_is_too_deep_is_cut(below: type, depth: int) -> None:
    value: object = "bottom"
    for _ in range(depth):
        value = {"k": value} if below is dict[str, object] else [value]
    raw, foreign = freeze({"k": value})
    assert [place.type for place in foreign] == ["too_deep"] * (depth >= MAX_DEPTH)
    assert (b"bottom" in bytes(raw)) is (depth < MAX_DEPTH)
    assert freeze(thaw(raw)) == (raw, ())


def test_at_most_sixteen_places_are_listed() -> None:
    _, foreign = freeze({str(n): math.nan for n in range(1000)})
    assert [place.path for place in foreign] == [f"/{n}" for n in range(MAX_FOREIGN)]


class Hostile:
    """Raises whatever is done with it."""

    def __getattribute__(self, name: str) -> Never:
        raise RuntimeError(name)

    def __str__(self) -> str:
        raise RuntimeError("str")

    def __hash__(self) -> int:
        return 1


class HostileMapping(Mapping[str, object]):
    def __getitem__(self, key: str) -> object:
        raise ConnectionError("the database is gone")

    def __iter__(self) -> Iterator[str]:
        raise ConnectionError("the database is gone")

    def __len__(self) -> int:
        return 1


class HostileText(str):
    __slots__ = ()

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:
        raise RuntimeError(encoding, errors)

    def isascii(self) -> bool:
        raise RuntimeError("isascii")

    def __str__(self) -> str:
        raise RuntimeError("str")


class HostileList(list[object]):
    def __iter__(self) -> Iterator[object]:
        raise RuntimeError("iter")


class Changing(dict[str, object]):
    """Grows while it is read, as one that another thread fills does."""

    def items(self) -> Never:
        raise RuntimeError("dictionary changed size during iteration")


UNREADABLE: dict[str, Callable[[], object]] = {
    "object": Hostile,
    "mapping": HostileMapping,
    "list": lambda: HostileList([1]),
    "changing": lambda: Changing(x=1),
}


@pytest.mark.parametrize("kind", UNREADABLE)
def test_an_object_that_raises_is_unreadable_and_its_neighbors_are_kept(kind: str) -> None:
    assert bent([1, UNREADABLE[kind](), 3]) == ([1, "<unreadable>", 3], (Foreign("/a/1", "unreadable"),))


def test_a_hostile_text_is_read_by_the_type_s_own_methods() -> None:
    assert bent([HostileText("x"), {HostileText("k"): 1}]) == (["x", {"k": 1}], ())


def test_a_hostile_key_makes_only_its_mapping_unreadable() -> None:
    assert bent([{Hostile(): "value"}, 1]) == (["<unreadable>", 1], (Foreign("/a/0", "unreadable"),))


def test_arguments_that_cannot_be_read_at_all_are_an_empty_object_and_say_so() -> None:
    raw, foreign = freeze(HostileMapping())
    assert (bytes(raw), foreign) == (b"{}", (Foreign("", "unreadable"),))


@pytest.mark.parametrize("value", [None, [1], "{}", b"{}", 5, Word.SEND])
def test_what_is_no_mapping_is_no_arguments(value: object) -> None:
    with pytest.raises(EventError, match="arguments must be a mapping, or JSON as msgspec"):
        freeze(value)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - as untyped hosts do


MADE: dict[str, Callable[[], object]] = {**UNREADABLE, "huge": lambda: 10**5000}


def made(plan: object) -> object:
    """Return what a plan describes: hypothesis looks at what it makes, and hostile objects let nobody."""
    if isinstance(plan, str) and plan in MADE:
        return MADE[plan]()
    if is_mapping(plan):
        return {key: made(item) for key, item in plan.items()}
    return [made(item) for item in plan] if is_sequence(plan) else plan


plans: st.SearchStrategy[object] = st.recursive(
    st.sampled_from([*MADE, object(), math.nan, "\ud800"]) | st.integers() | st.binary(max_size=3),
    lambda below: (
        st.lists(below, max_size=3)
        | st.lists(below, max_size=3).map(tuple)
        | st.dictionaries(st.text(st.characters(), max_size=3) | st.integers() | st.none(), below, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text(st.characters(), max_size=3), plans, max_size=4))
def test_nothing_makes_freezing_raise(plan: dict[str, object]) -> None:
    raw, _ = freeze({key: made(item) for key, item in plan.items()})
    assert freeze(thaw(raw)) == (raw, ())


def test_arguments_that_another_thread_fills_are_read_all_the_same() -> None:
    shared: dict[str, object] = {str(n): n for n in range(200)}
    stop = threading.Event()

    def fill() -> None:
        n = 0
        while not stop.is_set():
            shared[f"more {n % 500}"] = object() if n % 2 else n
            shared.pop(f"more {(n + 250) % 500}", None)
            n += 1

    filler = threading.Thread(target=fill)
    filler.start()
    try:
        for _ in range(100):
            raw, _ = freeze(shared)
            assert thaw(raw)["7"] == 7
    finally:
        stop.set()
        filler.join()


_T = TypeVar("_T")


def frames_down(count: int, work: Callable[[], _T]) -> _T:
    return work() if count == 0 else frames_down(count - 1, work)


def test_near_the_recursion_limit_what_cannot_be_read_is_unreadable_and_nothing_raises() -> None:
    value: object = "bottom"
    for _ in range(MAX_DEPTH - 1):
        value = [value]
    room = sys.getrecursionlimit() - len(inspect.stack(0)) - 100
    raw, foreign = frames_down(room, lambda: freeze({"first": 1, "deep": value}))
    assert thaw(raw)["first"] == 1
    assert [place.type for place in foreign] == ["unreadable"]


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        (b"", "truncated"),
        (b"[1]", "Expected `object`, got `array`"),
        (b"null", "got `null`"),
        (b'{"a":1} x', "trailing"),
        (b'{},"tool":"harmless"', "trailing"),
        (b'{"a": NaN}', "invalid"),
        (b'{"a": "\xff"}', "UTF-8|utf-8"),
        (b'{"a": ' + b"9" * 5000 + b"}", "out of range"),
        (b'{"a": ' + b"[" * 100_000, "recursion|truncated"),
    ],
)
def test_json_that_is_no_object_is_refused_with_the_reason(document: bytes, fault: str) -> None:
    with pytest.raises(EventError, match=f"^arguments given as JSON must be one JSON object: .*({fault})"):
        thaw(Raw(document))
    with pytest.raises(EventError, match=r"^the schema given as JSON"):
        thaw(Raw(document), "the schema")


@pytest.mark.parametrize(
    ("path", "key", "expected"),
    [("", "a", "/a"), ("/a", 0, "/a/0"), ("/a", "", "/a/"), ("", "~/", "/~0~1"), ("/a", "b c", "/a/b c")],
)
def test_pointers_are_those_of_rfc_6901(path: str, key: str | int, expected: str) -> None:
    assert pointer(path, key) == expected


@given(st.lists(st.text(max_size=300) | st.integers(0), max_size=8))
def test_pointers_are_bounded(keys: list[str | int]) -> None:
    path = ""
    for key in keys:
        path = pointer(path, key)
    assert len(path) <= MAX_POINTER


def test_below_a_cut_pointer_every_place_is_called_the_same() -> None:
    cut = pointer("", "k" * 10_000)
    assert cut == f"/{'k' * (MAX_POINTER - 2)}\N{HORIZONTAL ELLIPSIS}"
    assert pointer(cut, 7) == cut


def test_leaves_are_the_texts_and_numbers_in_order() -> None:
    value = {"to": "ann", "n": [1, 2.5, None, True], "below": {"x/y": "z"}, "empty": {}}
    assert list(leaves(value)) == [("/to", "ann"), ("/n/0", "1"), ("/n/1", "2.5"), ("/below/x~1y", "z")]


@pytest.mark.parametrize("leaf", [0, math.nan], ids=["json", "foreign"])
def test_a_long_key_over_many_values_costs_no_more_than_its_text(leaf: float) -> None:
    value = {"k" * 500_000: [leaf] * 50_000}
    began = time.process_time()
    freeze(value)
    assert sum(len(path) for path, _ in leaves(value)) <= 50_000 * MAX_POINTER
    assert time.process_time() - began < 2.0  # the places written out in full would be 25 GB
