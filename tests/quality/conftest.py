"""How often a thing came, with n and an exact interval: told at the end of a long run, on however many processes.

What is counted for a page of docs/evidence stands among the benchmarks, which are found as they find each other.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from theodolite.stats.interval import clopper_pearson

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

_MEASURED = "measured"
_KEPT = ("passed", "failed", "xfailed", "xpassed")


@pytest.fixture
def measured(record_property: Callable[[str, object], None]) -> Callable[[str, int, int], None]:
    """Return what notes that of n sessions k did something."""

    def note(what: str, count: int, of: int) -> None:
        low, high = clopper_pearson(count, of)
        record_property(_MEASURED, f"{what}: {count} of {of} = {count / of:.4f} (95 %: {low:.4f} to {high:.4f})")

    return note


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tell what the long forms noted: a short form has too few sessions to be quoted."""
    ended = [one for kind in _KEPT for one in terminalreporter.getreports(kind)]
    told = [
        (one.nodeid.rpartition("::")[2], value)
        for one in ended
        if isinstance(one, pytest.TestReport) and one.when == "call" and "evidence" in one.keywords
        for name, value in one.user_properties
        if name == _MEASURED
    ]
    if told:
        terminalreporter.section("measured")
        for test, value in told:
            terminalreporter.write_line(f"{test}: {value}")
