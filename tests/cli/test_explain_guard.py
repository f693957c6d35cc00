"""`theodolite explain` of every code that `guard` and `pin` print, and of every kind of evidence of the payload."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from pathlib import Path

import pytest
from typer.testing import Result

import theodolite.cli
from theodolite.contracts.difference import Grade
from theodolite.contracts.lint import Flaw
from theodolite.core.contract import Kind
from theodolite.reports.pages import kinds

Run = Callable[..., Result]


def _rules() -> Iterator[str]:
    """Yield the rules of findings as verbs write them, wherever one is made: a code, or what one begins with."""
    for file in sorted(Path(theodolite.cli.__file__).parent.glob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("Found"):
                yield from [text for one in node.keywords if one.arg == "rule" for text in _texts(one.value, tree)]


def _texts(value: ast.expr, tree: ast.Module) -> Iterator[str]:
    """Yield a text, or the beginning of one; for a name those that are given to it in its module."""
    if isinstance(value, ast.Name):
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == value.id:
                yield from _texts(node.value, tree)
    elif isinstance(value, ast.JoinedStr):
        yield from _texts(value.values[0], tree)
    else:
        assert isinstance(value, ast.Constant), f"what is the rule {ast.unparse(value)}?"
        yield str(value.value)


FIXED = sorted({rule for rule in _rules() if not rule.endswith(".")})
PAGES = {"payload": "payload.shape", "guard": "guard.lint", "contract": "contract.change"}
OWN: dict[str, Iterable[StrEnum]] = {"payload": Kind, "guard": Flaw, "contract": Grade}
CODES = sorted({*FIXED, *[f"{family}.{word.value}" for family, words in OWN.items() for word in words]})


def test_the_families_of_codes_that_verbs_make_are_those_that_are_tried_here() -> None:
    assert {rule.partition(".")[0] for rule in _rules()} == set(PAGES)


@pytest.mark.parametrize("code", CODES)
def test_every_code_that_is_printed_opens_a_page_that_says_what_it_is(theodolite: Run, code: str) -> None:
    done = theodolite("explain", code)
    assert done.exit_code == 0
    assert done.stdout.startswith(f"# {PAGES[code.partition('.')[0]]}\n")
    assert any(f"`{code}`" in line for line in done.stdout.splitlines() if line.startswith("| "))


@pytest.mark.parametrize("family", PAGES)
def test_a_page_explains_no_code_that_nobody_prints(family: str) -> None:
    begin = f"{family}."
    assert {kind for kind in kinds() if kind.startswith(begin)} == {code for code in CODES if code.startswith(begin)}


def test_the_page_of_what_verbs_print_is_listed(theodolite: Run) -> None:
    listed = [line.split()[0] for line in theodolite("explain").stdout.splitlines()[1:]]
    assert set(PAGES.values()) <= set(listed)
