"""Labeled sessions that are put probes, over a real provider's wire format."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from theodolite.core.calibration import Calibration
from theodolite.detectors.behavior.library import shipped
from theodolite.testing.fakes.policies import TAINT, PolicyModel
from theodolite.testing.provider import Asked, FakeProvider, Says

Run = Callable[..., Result]
Policed = Callable[[PolicyModel], Callable[[Asked], Says]]
DAY = ("--date", "2026-11-30")


def session(number: int, *, drifted: bool) -> dict[str, object]:
    said = f"Notes {number}{f', {TAINT}' if drifted else ''}."
    return {
        "session_id": f"s-{number}",
        "goal": f"Read note {number}.",
        "kind": "attacked_succeeded" if drifted else "clean",
        "model": "m-1",
        "suite": "shop",
        "events": [
            {"turn": 0, "role": "assistant", "tool": "read", "args": {"note": number}, "text": "I will read it."},
            {"turn": 0, "role": "tool", "tool": "read", "text": said},
            {"turn": 1, "role": "assistant", "text": "Done."},
        ],
    }


@pytest.fixture
def data(home: Path) -> Path:
    path = home / "data.jsonl"
    rows = [session(number, drifted=number >= 24) for number in range(30)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_sessions_are_put_probes_and_these_are_calibrated_too(
    theodolite: Run, policed: Policed, shop: Callable[..., Path], data: Path, home: Path
) -> None:
    model = PolicyModel(templates=shipped().templates, policy=6.0, drift=12.0, contract="json")
    with FakeProvider(policed(model)) as provider:
        shop(provider.base_url)
        given = ("--model", "shop", "--probes", "2", "--alpha", "0.2", "--out", "c.json", *DAY)
        done = theodolite("calibrate", str(data), *given)
    assert done.exit_code in {0, 3}, done.stderr
    made = Calibration.load((home / "c.json").read_bytes(), "c.json")
    assert made.probes == "1.0.0"
    assert made.models == ("m-1",)
    assert "fusion.session" in made.thresholds
    assert made.thresholds["fusion.session"].judged == 24
    assert any(code.startswith("behavior.") for code in made.bands)
    assert any("stay estimates, UNCALIBRATED" in warning for warning in made.warnings)
    assert len(provider.asked) >= 30 * 2 * 4
    found = {one.code: one.whole for one in made.assessments}
    # Of the two probes of each drifted session one at least shows it; each is of another type.
    assert sum(whole.found.k for code, whole in found.items() if code.startswith("behavior.")) >= 6
    assert all(whole.false_alarms.k == 0 for code, whole in found.items() if code == "fusion.session")
