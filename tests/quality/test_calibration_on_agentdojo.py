"""An artefact that is fitted to recorded sessions, on sessions of other models, tasks and attacks."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from theodolite.calibration.reference import shipped
from theodolite.cli.main import app
from theodolite.core.assessment import Assessment, Slice, Verdict
from theodolite.core.calibration import Calibration
from theodolite.core.reading import Status
from theodolite.detectors.fusion import CALL
from theodolite.reports.calibration.verification import Verification

DATA = Path(__file__).resolve().parents[2].parent / "shared/data/agentdojo"
DAY = ("--date", "2026-11-30")
pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not DATA.is_dir(), reason="the recorded AgentDojo sessions are not beside this repository"),
]


def run(*arguments: str | Path) -> None:
    done = CliRunner().invoke(app, ["calibrate", *map(str, arguments)])
    assert done.exit_code in {0, 1, 3}, done.stderr


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("calibrations")
    for name in ("train", "dev"):
        run(DATA / f"{name}.jsonl.gz", "--out", folder / f"{name}.json", *DAY)
    told = ("--format", "json", "--output", folder / "told.json")
    run("verify", folder / "train.json", DATA / "dev.jsonl.gz", *told)
    return {file.stem: file for file in folder.glob("*.json")}


def call(found: tuple[Assessment, ...]) -> Assessment:
    return next(one for one in found if one.code == CALL)


def part(assessment: Assessment, name: str) -> Slice:
    return next(one for one in assessment.slices if one.name == name)


def test_at_one_percent_few_clean_sessions_alarm_and_as_much_is_found_as_by_their_own_threshold(
    made: dict[str, Path],
) -> None:
    fitted = Calibration.load(made["train"].read_bytes(), "train")
    assert (fitted.status, fitted.alpha) == (Status.CALIBRATED, 0.01)
    verified = msgspec.json.decode(made["told"].read_bytes(), type=Verification, strict=False).verified
    assert all(one.verdict is Verdict.HELD for one in verified)
    here = call(tuple(one.assessment for one in verified))
    clean = part(here, "kind: clean").false_alarms
    assert clean.n == 180
    assert clean.k <= 4
    own = call(Calibration.load(made["dev"].read_bytes(), "dev").assessments)
    assert here.whole.found.n == own.whole.found.n == 156
    assert abs(here.whole.found.k - own.whole.found.k) / 156 <= 0.05


def test_the_artefact_that_ships_is_what_the_command_makes_of_these_sessions(tmp_path: Path) -> None:
    made = tmp_path / "made.json"
    name = ("--reference", "--name", "AgentDojo runs, train")
    run(DATA / "train.jsonl.gz", "--out", made, *name, *DAY)
    assert made.read_bytes() == shipped().document()
