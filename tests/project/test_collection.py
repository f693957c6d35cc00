"""Each process that collects the tests gives them the same names: workers that run them together rely on it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def _collecting(seed: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "tests"],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": str(seed)},
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_two_processes_a_second_apart_collect_the_same_tests() -> None:
    first = _collecting(seed=1)
    time.sleep(1.1)  # what a name takes from the clock differs by then
    second = _collecting(seed=2)
    names = [process.communicate(timeout=120)[0].splitlines() for process in (first, second)]
    collected = [[name for name in lines if "::" in name] for lines in names]
    assert len(collected[0]) > 1000
    assert collected[0] == collected[1]
