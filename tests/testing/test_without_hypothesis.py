"""Without hypothesis the test kit works, but for the strategies, which say what to install."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys
sys.modules["hypothesis"] = None
import theodolite.testing.fakes, theodolite.testing.sessions, theodolite.testing.checks.detector
try:
    import theodolite.testing.strategies
except ImportError as error:
    print(type(error).__name__, error)
"""


def test_the_strategies_name_the_extra() -> None:
    ran = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert ran.stdout == (
        "MissingExtraError the strategies of theodolite.testing need an extra that is not installed: "
        "pip install 'theodolite[testing]'\n"
    )
