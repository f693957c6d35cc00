from __future__ import annotations

from collections.abc import Callable
from io import BytesIO

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from theodolite.core.errors import ConfigError
from theodolite.core.labels import Known, Label, encode_label, read_labels
from theodolite.core.text import encodable

names = st.text(max_size=8).filter(encodable)
labels = st.builds(
    Label,
    session=names.filter(bool),
    known=st.none() | st.sampled_from(Known),
    task=names,
    slices=st.dictionaries(names, names, max_size=2),
    by=names,
    date=st.just("") | st.dates().map(str),
    note=names,
)


@given(st.lists(labels, max_size=8))
def test_what_was_written_is_read_again_and_the_last_word_on_a_session_counts(told: list[Label]) -> None:
    written = b"".join(map(encode_label, told))
    read = read_labels(BytesIO(written), "labels.jsonl")
    assert read.of == {label.session: label for label in told}
    assert (read.torn, read.whole) == (0, len(written))


@given(st.lists(labels, min_size=1, max_size=4), st.data())
def test_a_file_that_was_cut_anywhere_keeps_each_whole_line_and_says_that_one_is_torn(
    told: list[Label], data: st.DataObject
) -> None:
    lines = list(map(encode_label, told))
    rest = lines[-1][: data.draw(st.integers(1, len(lines[-1]) - 2))]
    before = b"".join(lines[:-1])
    read = read_labels(BytesIO(before + rest), "labels.jsonl")
    assert read.of == {label.session: label for label in told[:-1]}
    assert (read.torn, read.whole) == (len(lines), len(before))


def test_a_line_holds_what_is_not_the_default_and_always_the_label() -> None:
    assert encode_label(Label(session="s-1", known=None)) == b'{"session":"s-1","known":null}\n'
    told = Label(session="s-1", known=Known.DRIFTED, slices={"suite": "bank"}, by="mo", date="2026-02-01", note="sent")
    assert msgspec.json.decode(encode_label(told)) == {
        "session": "s-1",
        "known": "drifted",
        "slices": {"suite": "bank"},
        "by": "mo",
        "date": "2026-02-01",
        "note": "sent",
    }


def test_a_file_by_hand_is_read_with_byte_order_mark_blank_lines_and_without_its_last_end() -> None:
    file = b'\xef\xbb\xbf{"session": "a", "known": "clean"}\r\n\r\n  {"session": "b", "known": null}'
    read = read_labels(BytesIO(file), "labels.jsonl")
    assert {name: label.known for name, label in read.of.items()} == {"a": Known.CLEAN, "b": None}
    assert (read.torn, read.whole) == (0, len(file))
    assert read_labels(BytesIO(b""), "labels.jsonl").of == {}


SECRET = "hunter2-7f3a"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b'{"session": "s-1"}', "missing required field known"),
        (b'{"known": "clean"}', "missing required field session"),
        (b'{"session": "s-1", "known": "hunter2-7f3a"}', "a value that is not allowed - at $.known"),
        (b'{"session": "s-1", "known": true}', "$.known"),
        (b'{"session": "s-1", "known": "clean", "hunter2-7f3a": 1}', "a key that is not known"),
        (b'{"session": "", "known": "clean"}', "a value that is not allowed"),
        (b'{"session": "s-1", "known": "clean", "date": "1.2.2026"}', "a value that is not allowed"),
        (b'{"session": "s-1", "known": "clean", "date": "2026-13-01"}', "a value that is not allowed"),
        (b"hunter2-7f3a", "JSON is malformed"),
        (b'{"session": "\xff", "known": null}', "not UTF-8"),
        (b"[" * 5_000, "a value that is not allowed|Expected object|Input data was truncated"),
    ],
)
def test_a_line_that_is_no_label_is_an_error_with_its_number_and_what_to_write(line: bytes, why: str) -> None:
    file = encode_label(Label(session="a", known=None)) + line + b"\n"
    with pytest.raises(ConfigError) as refused:
        read_labels(BytesIO(file), "labels.jsonl")
    said = str(refused.value)
    assert said.startswith("labels.jsonl, line 2 is no label (")
    assert any(part in said for part in why.split("|"))
    assert '{"session": "s-1", "known": "clean"}' in said
    assert SECRET not in said


def test_a_line_without_end_that_goes_on_and_on_is_not_held() -> None:
    with pytest.raises(ConfigError, match="line 1 is longer than 65536 bytes"):
        read_labels(BytesIO(b"x" * 70_000), "labels.jsonl")


def test_what_would_not_be_read_again_is_not_written() -> None:
    name = "x" * (65_536 - len(b'{"session":"","known":null}\n'))
    line = encode_label(Label(session=name, known=None))
    assert list(read_labels(BytesIO(line), "labels.jsonl").of) == [name]
    with pytest.raises(ValueError, match="at most 65536 bytes"):
        encode_label(Label(session=name + "x", known=None))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Label(session="\ud800", known=None),
        lambda: Label(session="s", known=None, note="\udfff"),
        lambda: Label(session="s", known=None, slices={"\ud800": "x"}),
    ],
    ids=["session", "note", "slices"],
)
def test_what_no_file_takes_is_no_label(make: Callable[[], Label]) -> None:
    with pytest.raises(ValueError, match="lone surrogate"):
        make()
