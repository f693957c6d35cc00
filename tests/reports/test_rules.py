"""Every rule that a report about contracts names says what it means and what to do."""

from __future__ import annotations

import pytest

from theodolite.contracts.difference import Grade
from theodolite.contracts.lint import Flaw
from theodolite.core.contract import Kind
from theodolite.reports.rules import RULES, rule

NAMES = [
    *[f"payload.{kind}" for kind in Kind],
    *[f"guard.{flaw}" for flaw in Flaw],
    *[f"contract.{grade}" for grade in Grade],
    "guard.repeated_key",
    "payload.repeated_key",
]


def test_each_rule_is_known_and_no_other() -> None:
    assert sorted(RULES) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_rule_is_told_in_sentences(name: str) -> None:
    for text in (rule(name).meaning, rule(name).remedy):
        assert text.endswith(".")
        assert text[0].isupper()
        assert "{" not in text
        assert text.isascii()
