from __future__ import annotations

import string
from random import Random
from uuid import UUID

import pytest

from theodolite.redactors.rules.randomness import looks_random

HEXADECIMAL = "0123456789abcdef"
LETTERS_AND_DIGITS = string.ascii_letters + string.digits


@pytest.mark.parametrize(
    ("alphabet", "length", "least"),
    [
        (HEXADECIMAL, 10, 0.80),
        (HEXADECIMAL, 12, 0.90),
        (HEXADECIMAL, 16, 0.98),
        (HEXADECIMAL, 32, 0.999),
        (LETTERS_AND_DIGITS, 16, 0.90),
        (LETTERS_AND_DIGITS, 20, 0.94),
        (LETTERS_AND_DIGITS, 32, 0.99),
    ],
)
def test_most_drawn_strings_look_random(alphabet: str, length: int, least: float) -> None:
    draw = Random(7)  # noqa: S311 - a test set, the same each time
    found = sum(looks_random("".join(draw.choices(alphabet, k=length))) for _ in range(2000))
    assert found / 2000 >= least


def test_every_uuid_looks_random() -> None:
    draw = Random(7)  # noqa: S311 - a test set, the same each time
    assert all(looks_random(str(UUID(int=draw.getrandbits(128)))) for _ in range(2000))


@pytest.mark.parametrize(
    "written",
    [
        "",
        "a1",
        "hunter2",
        "sha256",
        "v1.2.3",
        "project-2024",
        "getTokenValue",
        "MAX_TOKENS",
        "my-api-key-1",
        "1732900000",
    ],
)
def test_names_and_numbers_do_not_look_random(written: str) -> None:
    assert not looks_random(written)


def test_a_word_of_a_megabyte_is_judged_by_its_beginning() -> None:
    assert looks_random("1a7b3d9e" * 125_000)
    assert not looks_random("a" * 1_000_000 + "1a7b3d9e")
