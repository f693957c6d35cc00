"""Every code that can be said has a page, and every page says what it should."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import theodolite
from theodolite.config.settings import Settings
from theodolite.config.wiring import wire
from theodolite.detectors.payload.drift import CODE
from theodolite.reports.pages import codes, page, references_of

PARTS = ("## Why it matters", "## An example", "## What to do", "## Limits", "## References")
# The lists that each page has a word on, and what an entry of each is called.
LISTS = {
    "OWASP Top 10 for LLM Applications 2025": r"LLM(0[1-9]|10):2025",
    "OWASP Agentic AI Threats and Mitigations": r"T([1-9]|1[0-7])",
    "OWASP Top 10 for Agentic Applications 2026": r"ASI(0[1-9]|10)",
    "MITRE ATLAS": r"AML\.T\d{4}(\.\d{3})?",
}


def _shipped() -> list[str]:
    asking: dict[str, dict[str, object]] = {"behavior": {"enabled": True}, "margin": {"enabled": True}}
    with wire(Settings(plugins=False, detectors=asking)) as instrument:
        return sorted(instrument.monitor.fleet.bands)


def test_every_code_of_a_shipped_detector_has_its_page() -> None:
    assert _shipped()
    assert set(_shipped()) <= set(codes())


def test_every_page_belongs_to_a_code_that_can_be_said() -> None:
    # The last ones are said of many sessions, and of contracts, and so by no detector.
    assert set(codes()) == {*_shipped(), "monitor.failure", CODE, "guard.lint", "contract.change"}


@pytest.mark.parametrize("code", codes())
def test_a_page_says_what_it_means_in_a_line_and_what_to_do(code: str) -> None:
    known = page(code)
    assert known is not None
    assert known.text.startswith(f"# {code}\n")
    assert known.meaning.endswith(".")
    assert len(known.meaning) <= 120
    assert all(part in known.text for part in PARTS)


@pytest.mark.parametrize("code", codes())
def test_a_page_names_an_entry_of_each_list_or_says_that_none_fits(code: str) -> None:
    known, named = page(code), references_of(code)
    assert known is not None
    assert named
    for framework, pattern in LISTS.items():
        entries = [reference for reference in named if reference.framework == framework]
        assert entries or f"| {framework} | none fits |" in known.text, (code, framework)
        assert all(re.fullmatch(pattern, reference.id) and reference.title for reference in entries)
    assert {reference.framework for reference in named} <= set(LISTS)
    assert len({reference.tag for reference in named}) == len(named)
    assert all(re.fullmatch(r"[\w/.:-]+", reference.tag) for reference in named)


def test_one_entry_has_one_title() -> None:
    named = {(reference.id, reference.title) for code in codes() for reference in references_of(code)}
    assert len(named) == len({name for name, _ in named})


def test_a_page_that_a_plug_in_brings_may_name_entries_too() -> None:
    table = "## References\n\n| list | id | title |\n|---|---|---|\n| L | L1 | One |\n| M | none fits | so |\n"
    brought = {"x.y": f"# x.y\n\nIt means x.\n\n{table}\n## More\n\n| no | such | row |\n"}
    (reference,) = references_of("x.y", brought)
    assert (reference.framework, reference.id, reference.title) == ("L", "L1", "One")
    assert references_of("x.y", {"x.y": "# x.y\n\nNothing.\n"}) == ()
    assert references_of("nobody.knows") == ()


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
