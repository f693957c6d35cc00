"""How a suite runs: in order, with skips that have a reason, and with words that help."""

from __future__ import annotations

import pytest

from theodolite.core.errors import ConfigError
from theodolite.testing.checks import asker, detector, integration, model, reader, redactor, store
from theodolite.testing.checks.law import Check, broken, name_of, run, selected, unraised

SUITES: list[tuple[Check[object], ...]] = [
    module.CHECKS for module in (asker, detector, integration, model, reader, redactor, store)
]


def check_even(fixture: list[int]) -> None:
    if any(number % 2 for number in fixture):
        raise broken("even", fixture, f"{fixture} is odd", reproduce="look at it")


def check_short(fixture: list[int]) -> None:
    if len(fixture) > 3:
        raise broken("short", fixture, "it is long", reproduce="count it")


CHECKS = (check_even, check_short)


def test_all_laws_are_tried_in_order() -> None:
    run(CHECKS, [2, 4], {})
    with pytest.raises(AssertionError, match="'even'"):
        run(CHECKS, [1, 2, 3, 4], {})


def test_a_skipped_law_is_not_tried() -> None:
    run(CHECKS, [1], {"even": "odd numbers are the point here"})
    assert [name_of(check) for check in selected(CHECKS, {"even": "as above"})] == ["short"]


@pytest.mark.parametrize(
    ("skips", "said"),
    [
        ({"quick": "it is slow"}, "there is no law 'quick' to skip; the laws here are even, short"),
        ({"even": " "}, "the skip of the law 'even' has no reason"),
    ],
)
def test_a_skip_without_a_law_or_a_reason_is_refused(skips: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        run(CHECKS, [2], skips)


def test_a_broken_law_says_which_of_what_and_how_to_see_it_again() -> None:
    assert str(broken("even", [1], "it is odd", reproduce="look at it")) == (
        "builtins.list breaks the law 'even': it is odd. To see it again: look at it."
    )


def test_what_is_raised_becomes_a_broken_law() -> None:
    with (
        pytest.raises(AssertionError, match=r"builtins\.int breaks the law 'total': it raised KeyError: 'x'"),
        unraised("total", 3, reproduce="look it up"),
    ):
        raise KeyError("x")


def test_a_law_that_is_broken_inside_keeps_its_own_words() -> None:
    with pytest.raises(AssertionError, match="its own words"), unraised("total", 3, reproduce="?"):
        raise AssertionError("its own words")


def test_every_law_has_a_name_of_its_own_and_says_what_it_is() -> None:
    for checks in SUITES:
        names = [name_of(check) for check in checks]
        assert len(names) == len(set(names))
        assert all(str(check.__doc__).startswith("Check that ") for check in checks)
