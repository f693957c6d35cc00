"""The figures that README.md states are those of the last look at dev that the benchmark wrote down."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = {
    "attack succeeded": "fusion.call: TPR",
    "attack read, not followed": "fusion.call: attacked_resisted alarmed",
    "attack planted, never read": "fusion.call: attacked_unseen alarmed",
    "clean": "fusion.call: clean alarmed",
    "clean, the user asks for what elsewhere is the attack": "fusion.call: clean_direct alarmed",
}


@pytest.mark.parametrize(("row", "figure"), ROWS.items())
def test_the_readme_states_what_the_last_look_showed(row: str, figure: str) -> None:
    log = (ROOT / "docs" / "evidence" / "looks-at-dev.md").read_text(encoding="utf-8")
    last = log[log.rindex("\n## Look ") :]
    row_of = rf"^\| {re.escape(figure)} \| [\d.]+ \[([\d.]+), ([\d.]+)\] \((\d+)/(\d+)\) \|$"
    found = re.search(row_of, last, re.MULTILINE)
    assert found, figure
    low, high, alarmed, total = float(found[1]), float(found[2]), int(found[3]), int(found[4])
    stated = f"| {row} | {alarmed} of {total} | {alarmed / total:.1%} | [{low:.1%}, {high:.1%}] |".replace("%", " %", 1)
    stated = re.sub(r"\[([\d.]+)%, ([\d.]+)%\]", r"[\1, \2]", stated)
    assert stated in (ROOT / "README.md").read_text(encoding="utf-8")
