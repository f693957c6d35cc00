"""What is said of a document that does not decode holds nothing of it."""

from __future__ import annotations

import json
from enum import Enum
from typing import Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from theodolite.core.faults import place_of

SECRET = "hunter2"


class _Kind(Enum):
    """What a field may be."""

    OPEN = "open"


class _Order(Struct, forbid_unknown_fields=True, tag="order"):
    kind: _Kind = _Kind.OPEN
    side: Literal["buy", "sell"] = "buy"
    count: int = 0
    notes: dict[str, int] = {}
    kinds: dict[_Kind, int] = {}
    within: list[_Order] = []


class _Refund(Struct, tag="refund"):
    """Another one, so that the tag is looked at."""


def told(document: bytes) -> str:
    try:
        msgspec.json.decode(document, type=_Order | _Refund)
    except (msgspec.DecodeError, RecursionError) as error:
        return place_of(error)
    raise AssertionError(f"{document!r} was decoded")


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        ('{"type":"order","kind":"%s"}', "a value that is not allowed - at $.kind"),
        ('{"type":"order","side":"%s"}', "a value that is not allowed - at $.side"),
        ('{"type":"%s"}', "a value that is not allowed - at $.type"),
        ('{"type":"order","%s":1}', "a key that is not known"),
        ('{"type":"order","within":[{"type":"order","%s":1}]}', "a key that is not known"),
        ('{"type":"order","count":"%s"}', "Expected int, got str - at $.count"),
        ('{"type":"order","notes":{"%s":"x"}}', "Expected int, got str - at $.notes[...]"),
        ('{"type":"order","kinds":{"%s":1}}', "a value that is not allowed - at $.kinds"),
        (
            '{"type":"order","within":[{"type":"order","kind":"%s"}]}',
            "a value that is not allowed - at $.within[0].kind",
        ),
        ("%s", "JSON is malformed: invalid character (byte 0)"),
        ('"%s"', "Expected object, got str"),
        ('{"%s":1}', "Object missing required field type"),
    ],
)
@pytest.mark.parametrize(
    "secret", [SECRET, f"${SECRET}", f"x` - at `$.{SECRET}", f"x' - at `$.{SECRET}`", f"x\n{SECRET}"]
)
def test_the_place_is_told_and_no_value(document: str, fault: str, secret: str) -> None:
    if document == "%s":
        secret = SECRET
    said = told((document % json.dumps(secret)[1:-1]).encode())
    assert SECRET not in said
    assert said == fault


def test_what_nests_too_deeply_is_told() -> None:
    assert told(b'{"type":"order","notes":' + b"[" * 100_000) in {
        "nested too deeply to be read",
        "Expected object, got array - at $.notes",
    }
    with pytest.raises(RecursionError) as raised:
        msgspec.json.decode(b"[" * 100_000)
    assert place_of(raised.value) == "nested too deeply to be read"


@given(
    st.sampled_from(
        [
            '{"type":"order","kind":%s}',
            '{"type":"order",%s:1}',
            '{"type":%s}',
            '{"type":"order","kinds":{%s:1}}',
            "[%s]",
        ]
    ),
    st.text(max_size=20),
)
def test_two_documents_with_other_values_are_told_in_the_same_words(document: str, text: str) -> None:
    other = "Q" + text
    assert told((document % json.dumps(f"{SECRET}{text}")).encode()) == told((document % json.dumps(other)).encode())
