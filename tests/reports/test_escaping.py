"""Text of a session shows what it holds and does nothing."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from theodolite.reports.escaping import ascii_json, inert
from theodolite.testing.sessions import HOSTILE_TEXTS

# What GitHub, Azure Pipelines and TeamCity obey when a line of a log holds it.
COMMAND = re.compile(r"(?m)^\s*::[A-Za-z]|##[\w.]*\[")
ANYTHING = (
    st.text(st.characters()) | st.text("ab:#[]\x1b\u202e\u0301\ufe0f\ud800 vso\n") | st.sampled_from(HOSTILE_TEXTS)
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain words, 100 %: [bold]", "plain words, 100 %: [bold]"),
        ("Grüße 你好 한국어 العربية हिन्दी", "Grüße 你好 한국어 العربية हिन्दी"),
        (
            "\x1b]8;;https://evil.example\x1b\\click\x1b]8;;\x1b\\",
            "\\x1b]8;;https://evil.example\\x1b\\click\\x1b]8;;\\x1b\\",
        ),
        ("two\nlines\r\n\tand a tab", r"two\nlines\r\n\tand a tab"),
        ("\x00\x07\x7f\x9b31m", r"\x00\x07\x7f\x9b31m"),
        ("a\u202etxt.exe\u202c", r"a\u202etxt.exe\u202c"),
        ("pay\u200bpal\ufeff\u00ad", r"pay\u200bpal\ufeff\xad"),
        ("\U000e0041\U000e0042", r"\U000e0041\U000e0042"),
        ("x\ufe00\u3164", r"x\ufe00\u3164"),
        ("a\ud800b", r"a\ud800b"),
        ("non\u00a0breaking\u2028line", r"non\xa0breaking\u2028line"),
        ("::error::x", r"\x3a:error\x3a:x"),
        ("##vso[task.complete result=Failed]", r"\x23#vso[task.complete result=Failed]"),
        ("##[error] ##teamcity[x]", r"\x23#[error] \x23#teamcity[x]"),
        ("e" + "\u0301" * 9, "e" + "\u0301" * 4 + r"\u0301" * 5),
    ],
)
def test_what_it_does_is_spelled_out_and_what_it_says_stays(text: str, shown: str) -> None:
    assert inert(text) == shown


@given(ANYTHING)
def test_any_text_is_printable_and_commands_nothing(text: str) -> None:
    shown = inert(text)
    assert shown.isprintable() or not shown
    assert shown.encode().decode() == shown
    assert not COMMAND.search(shown)


@given(ANYTHING)
def test_what_is_inert_stays_as_it_is(text: str) -> None:
    shown = inert(text)
    assert inert(shown) == shown


@given(ANYTHING, st.integers(0, 30))
def test_a_long_text_is_cut_and_says_how_long_it_was(text: str, limit: int) -> None:
    shown = inert(text, limit)
    if len(inert(text)) <= limit:
        assert shown == inert(text)
    else:
        assert shown == f"{inert(text)[:limit]}... [{len(text)} characters]"


def test_a_huge_text_costs_no_more_than_its_beginning() -> None:
    assert len(inert("\x00" * 10_000_000, 100)) < 150


@given(st.recursive(ANYTHING.map(lambda text: text.encode("utf-8", "replace").decode()), st.lists))
def test_json_in_ascii_says_the_same(value: object) -> None:
    written = ascii_json(json.dumps(value, ensure_ascii=False).encode())
    assert json.loads(written) == value
    assert written.isascii()
    assert not COMMAND.search(written.decode())
    assert not set(b"<>&\x7f") & set(written)
