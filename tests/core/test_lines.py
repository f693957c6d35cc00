from __future__ import annotations

import time
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.json import Decoder

from theodolite.core.errors import EventError
from theodolite.core.lines import Line, decode, first_keys, lines, session_name
from theodolite.core.reader import Unreadable

BOM = b"\xef\xbb\xbf"
NONE: set[str] = set()


def test_lines_come_with_their_numbers_and_without_ends_blanks_and_byte_order_mark() -> None:
    data = BOM + b' {"a":1} \r\n\n\t\r\n[]\n"last"'
    assert list(lines(BytesIO(data), "f")) == [Line(1, b'{"a":1}'), Line(4, b"[]"), Line(5, b'"last"')]


def test_a_byte_order_mark_counts_only_at_the_beginning() -> None:
    assert list(lines(BytesIO(b"1\n" + BOM + b"2"), "f")) == [Line(1, b"1"), Line(2, BOM + b"2")]


def test_a_line_that_is_too_long_is_reported_and_the_next_one_read() -> None:
    data = b"x" * 11 + b"\n" + b"y" * 10 + b"\n" + b"z" * 200_000 + b"\nlast\n" + b"w" * 11
    said = "the line is longer than 10 bytes"
    assert list(lines(BytesIO(data), "f", 10)) == [
        Unreadable(file="f", line=1, reason=said),
        Line(2, b"y" * 10),
        Unreadable(file="f", line=3, reason=said),
        Line(4, b"last"),
        Unreadable(file="f", line=5, reason=said),
    ]


def test_a_line_that_is_not_utf8_is_reported_with_the_place() -> None:
    found = list(lines(BytesIO('"é"\n'.encode() + b'"\xe9"\n"ok"'), "f"))
    assert found == [
        Line(1, '"é"'.encode()),
        Unreadable(file="f", line=2, reason="not UTF-8: byte 1 of it"),
        Line(3, b'"ok"'),
    ]


@given(st.lists(st.binary(max_size=12).filter(lambda line: b"\n" not in line)))
def test_every_line_that_is_not_blank_is_yielded_or_reported_once(parts: list[bytes]) -> None:
    found = list(lines(BytesIO(b"\n".join(parts)), "f", 8))
    numbers = [item.number if isinstance(item, Line) else item.line for item in found]
    kept = [n for n, part in enumerate(parts, 1) if part.strip() and not (n == 1 and part.strip() == BOM)]
    assert numbers == sorted(set(numbers))
    # A line of blanks alone is passed over unless it is too long.
    assert set(kept) <= set(numbers)


@pytest.mark.parametrize(
    ("head", "keys"),
    [
        (b'{"a":1,"b":{"c":2},"d":[{"e":3}]}', {"a", "b", "d"}),
        (BOM + b' \n[ {"role": "user", "content": "a: \\"b\\": {"}, {"x": 1}]', {"role", "content"}),
        (b'{"a":"cut off here: \\"b\\": ', {"a"}),
        (b'{"a":1,"cut', {"a"}),
        (b'{"a":"\\', {"a"}),
        (b'{"a":1}\n{"b":2}', {"a"}),
        (b'[[{"a":1}]]', NONE),
        (b'["a", "b"]', NONE),
        (b'"a":1', NONE),
        (b"", NONE),
    ],
)
def test_the_first_keys_are_those_of_the_first_object_as_far_as_it_goes(head: bytes, keys: set[str]) -> None:
    assert first_keys(head) == keys


@pytest.mark.parametrize("flood", [b'"', b'\\"', b"{", b'{"a":', b":", b"}", b'"\\'])
def test_first_keys_of_hostile_heads_take_linear_time(flood: bytes) -> None:
    def seconds(size: int) -> float:
        head = b'{"k":' + flood * (size // len(flood))
        start = time.perf_counter()
        first_keys(head)
        return time.perf_counter() - start

    seconds(2**14)
    assert min(seconds(2**17) for _ in range(3)) < 16 * max(min(seconds(2**15) for _ in range(3)), 1e-3)


@given(st.binary())
def test_any_head_has_some_keys_or_none(head: bytes) -> None:
    assert isinstance(first_keys(head), frozenset)


class _Wanted(Struct):
    a: Raw | UnsetType = UNSET


@pytest.mark.parametrize("key", [b"a", b"b"])
def test_a_value_that_nests_too_deeply_is_refused_whether_it_is_wanted_or_not(key: bytes) -> None:
    with pytest.raises(EventError, match="nested too deeply"):
        decode(Decoder(_Wanted), b'{"%b":' % key + b"[" * 200_000)


@given(st.text(st.sampled_from('a\\"u\ud83d\ude00\ud800\udfffé') | st.characters(), max_size=20))
def test_text_with_lone_surrogates_is_read_as_text_that_can_be_written(text: str) -> None:
    data = text.encode("utf-16-be", "surrogatepass")
    units = [int.from_bytes(data[at : at + 2]) for at in range(0, len(data), 2)]
    said = data.decode("utf-16-be", "surrogatepass")  # two halves side by side are one character
    read = decode(Decoder(str), b'"%b"' % b"".join(b"\\u%04x" % unit for unit in units))
    assert read == said.encode("utf-8", "backslashreplace").decode()


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("a/b/monday.jsonl", "monday"),
        ("monday.v2.json.gz", "monday.v2"),
        ("monday", "monday"),
        (".jsonl", ".jsonl"),
        ("", "recording"),
    ],
)
def test_a_session_without_a_name_is_named_after_the_file(file: str, name: str) -> None:
    assert session_name(file) == name
