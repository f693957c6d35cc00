"""Every code that can be said has a page, and every page says what it should."""

from __future__ import annotations

from pathlib import Path

import pytest

import theodolite
from theodolite.config.settings import Settings
from theodolite.config.wiring import wire
from theodolite.reports.pages import codes, page

PARTS = ("## Why it matters", "## An example", "## What to do", "## Limits")


def _shipped() -> list[str]:
    with wire(Settings(plugins=False)) as instrument:
        return sorted(code for detector in instrument.monitor.detectors for code in detector.bands)


def test_every_code_of_a_shipped_detector_has_its_page() -> None:
    assert _shipped()
    assert set(_shipped()) <= set(codes())


def test_every_page_belongs_to_a_code_that_can_be_said() -> None:
    assert set(codes()) == {*_shipped(), "monitor.failure"}


@pytest.mark.parametrize("code", codes())
def test_a_page_says_what_it_means_in_a_line_and_what_to_do(code: str) -> None:
    known = page(code)
    assert known is not None
    assert known.text.startswith(f"# {code}\n")
    assert known.meaning.endswith(".")
    assert len(known.meaning) <= 120
    assert all(part in known.text for part in PARTS)


def test_the_failures_of_all_detectors_share_a_page() -> None:
    failed = page("margin.failure")
    assert failed is not None
    assert failed.code == "monitor.failure"


@pytest.mark.parametrize("code", ["", "nobody.knows", "../pages", "margin.untrusted.md"])
def test_what_has_no_page_gives_none(code: str) -> None:
    assert page(code) is None


def test_the_pages_ship_with_the_package() -> None:
    folder = Path(theodolite.__file__).parent / "reports" / "codes"
    assert sorted(file.stem for file in folder.glob("*.md")) == list(codes())
