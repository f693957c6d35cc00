from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from theodolite.contracts.digest import canonical, fingerprint
from theodolite.contracts.document import child, encoded, find, fragment, is_list, is_object, own_copy, pointer_of

numbers = st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | st.text() | st.sampled_from([":1.0,", "[2e3"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


def shuffled(value: object) -> object:
    """Return the value with the keys the other way round, and whole numbers below 2**53 as floats."""
    if is_object(value):
        return {key: shuffled(value[key]) for key in reversed(value)}
    if is_list(value):
        return [shuffled(entry) for entry in value]
    return float(value) if type(value) is int and abs(value) < 2**53 else value


@given(values)
def test_neither_order_nor_the_form_of_a_number_counts(value: object) -> None:
    assert canonical(shuffled(value)) == canonical(value)
    assert json.loads(canonical(value)) == value


@given(values, values)
def test_what_differs_has_another_fingerprint(one: object, other: object) -> None:
    assert (fingerprint(one) == fingerprint(other)) is _same(one, other)


def _same(one: object, other: object) -> bool:
    """Whether two values are equal as JSON: true is no number."""
    if is_object(one) and is_object(other):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if is_list(one) and is_list(other):
        return len(one) == len(other) and all(map(_same, one, other))
    return isinstance(one, bool) is isinstance(other, bool) and one == other


@given(values)
def test_a_copy_is_equal_and_another(value: object) -> None:
    copy = own_copy(value)
    assert copy == value
    if is_list(value) or is_object(value):
        assert copy is not value


@given(st.lists(st.text(), max_size=4), values)
def test_a_pointer_leads_back(keys: list[str], value: object) -> None:
    document: object = value
    for key in reversed(keys):
        document = {key: document, f"{key}x": None}
    pointer = child("", *keys)
    assert find(document, pointer) == value
    assert pointer_of(fragment(pointer)) == pointer
    assert encoded(fragment(pointer)) == fragment(pointer)
    assert fragment(pointer).isascii()


@pytest.mark.parametrize("pointer", ["/b", "/a/2", "/a/-1", "/a/01x", "/a/x", "/a/0/b", "a", "/a/\N{SUPERSCRIPT TWO}"])
def test_a_pointer_that_leads_nowhere_is_told(pointer: str) -> None:
    document: Mapping[str, object] = {"a": [1, 2]}
    assert find(document, pointer, None) is None
    with pytest.raises(KeyError):
        find(document, pointer)
