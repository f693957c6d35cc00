"""The road to a model adds little to its answers, as the benchmark measures it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_a_comparison_takes_hardly_more_than_a_call_and_a_fleet_of_200_less_than_four() -> None:
    """Tried once more where a budget is exceeded: another process may hold the machine for as long."""
    done = measured()
    if done.returncode:
        done = measured()
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(": met") == 3


def measured() -> subprocess.CompletedProcess[str]:
    script = [sys.executable, "benchmarks/models.py", "--short"]
    return subprocess.run(script, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
