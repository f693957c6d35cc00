"""`theodolite explain` of every code that `guard` and `pin` print, and of every kind of evidence of the payload."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import Result

import theodolite.cli
from theodolite.contracts.difference import Grade
from theodolite.contracts.lint import Flaw
from theodolite.core.contract import Kind
from theodolite.reports.pages import codes, kinds

Run = Callable[..., Result]
PRINTED = {
    "payload": ("payload.shape", [kind.value for kind in Kind]),
    "guard": ("guard.lint", [flaw.value for flaw in Flaw]),
    "contract": ("contract.change", [grade.value for grade in Grade]),
}
WORDS = [(f"{family}.{word}", page) for family, (page, words) in PRINTED.items() for word in words]


def _rules() -> Iterator[str]:
    """Yield what the rules of findings begin with, wherever a verb makes one."""
    for file in Path(theodolite.cli.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Found":
                for keyword in node.keywords:
                    if keyword.arg == "rule":
                        yield ast.unparse(keyword.value).lstrip("f").strip("'\"")


def test_the_families_of_codes_that_verbs_make_are_those_that_are_tried_here() -> None:
    assert {rule.partition(".")[0] for rule in _rules()} == set(PRINTED)


@pytest.mark.parametrize(("code", "opens"), WORDS, ids=[code for code, _ in WORDS])
def test_every_code_that_is_printed_opens_a_page_that_says_what_it_is(theodolite: Run, code: str, opens: str) -> None:
    done = theodolite("explain", code)
    assert done.exit_code == 0
    assert done.stdout.startswith(f"# {opens}\n")
    assert any(f"`{code}`" in line for line in done.stdout.splitlines() if line.startswith("| "))


@pytest.mark.parametrize("family", PRINTED)
def test_a_page_explains_no_code_that_nobody_prints(family: str) -> None:
    _, words = PRINTED[family]
    told = {kind for kind in kinds() if kind.startswith(f"{family}.")} - set(codes())
    assert told == {f"{family}.{word}" for word in words}


def test_the_page_of_what_verbs_print_is_listed(theodolite: Run) -> None:
    listed = [line.split()[0] for line in theodolite("explain").stdout.splitlines()[1:]]
    assert {opens for opens, _ in PRINTED.values()} <= set(listed)
