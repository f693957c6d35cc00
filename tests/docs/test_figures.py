"""The figures that README.md states are those that the benchmark prints."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data" / "agentdojo"
ROWS = {
    "attack succeeded": "attacked_succeeded",
    "attack read, not followed": "attacked_resisted",
    "attack planted, never read": "attacked_unseen",
    "clean": "clean",
    "clean, the user asks for what elsewhere is the attack": "clean_direct",
}


@pytest.mark.slow
@pytest.mark.corpus
@pytest.mark.skipif(not DATA.is_dir(), reason="the recorded sessions are not beside this folder: ../shared/data")
def test_the_readme_states_what_the_benchmark_prints() -> None:
    printed = subprocess.run(
        [sys.executable, "benchmarks/margin.py"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=300
    ).stdout
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for row, kind in ROWS.items():
        found = re.search(rf"{kind} +alarms +(\d+) of +(\d+) = +([\d.]+)% .*\[([\d.]+)%, ([\d.]+)%\]", printed)
        assert found, printed
        alarmed, total, rate, low, high = found.groups()
        assert f"| {row} | {alarmed} of {total} | {rate} % | [{low}, {high}] |" in readme
