from __future__ import annotations

import time

from theodolite.redactors.rules import RuleRedactor
from theodolite.redactors.rules.remembered import Remembered


def test_the_newest_is_kept_and_the_oldest_go_when_there_is_no_room() -> None:
    remembered = Remembered(room=10)
    remembered.put(b"1", "aaaa")
    remembered.put(b"2", "bbbb")
    assert remembered.get(b"1") == "aaaa"
    remembered.put(b"3", "cccc")
    assert (remembered.get(b"1"), remembered.get(b"2"), remembered.get(b"3")) == ("aaaa", None, "cccc")
    remembered.put(b"4", "d" * 100)
    assert (remembered.get(b"1"), remembered.get(b"3"), remembered.get(b"4")) == (None, None, "d" * 100)


def test_what_is_put_again_counts_once() -> None:
    remembered = Remembered(room=10)
    for _ in range(5):
        remembered.put(b"1", "aaaa")
    remembered.put(b"2", "bbbb")
    assert remembered.get(b"1") == "aaaa"


def test_texts_in_another_order_or_cut_elsewhere_are_others() -> None:
    keys = {Remembered.key(texts) for texts in [("ab", "c"), ("a", "bc"), ("c", "ab"), ("abc",), ("ab\ud800", "c")]}
    assert len(keys) == 5


def test_a_long_text_is_scrubbed_once_and_the_same_for_each_set_of_secrets() -> None:
    redactor = RuleRedactor()
    text = "write to bob@example.com, password: hunter2 " * 5000
    begun = time.process_time()
    first = redactor.text(text)
    once = time.process_time() - begun
    begun = time.process_time()
    assert redactor.text(text) == first
    assert time.process_time() - begun < once / 5
    assert "bob" not in first
    assert "write" not in redactor.text(text, ["write"])
    assert redactor.text(text) == first
