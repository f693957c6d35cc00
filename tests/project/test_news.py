"""News fragments have the form that changelog.d/README.md gives."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FRAGMENTS = sorted(file for file in (ROOT / "changelog.d").iterdir() if file.name != "README.md")
NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*\.(?:added|changed|fixed|removed|security)\.md\Z")


def test_there_is_news() -> None:
    assert FRAGMENTS


@pytest.mark.parametrize("file", FRAGMENTS, ids=lambda file: file.name)
def test_a_fragment_is_one_paragraph_of_whole_sentences(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert NAME.match(file.name), f"{file.name} is not what-it-is-about.kind.md; changelog.d/README.md has the kinds"
    assert text.strip()
    assert text == text.strip() + "\n", "no blank lines at the ends"
    assert "\n\n" not in text, "one paragraph"
    assert text[0].isupper() or text[0] == "`", "begins like a sentence"
    assert text.rstrip().endswith("."), "ends like a sentence"
    assert len(text) <= 600, "longer than news; the docs are the place"
