"""Recordings that score otherwise than those of the artefact: the scan says so, at its end, and finds nothing by it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from typer.testing import Result

from theodolite.core.calibration import Band, Calibration, Dataset, Population
from theodolite.core.reading import Status

Run = Callable[..., Result]


def recorded(number: int, *, model: str = "m-1") -> dict[str, object]:
    """A session in the labeled form in which a file is read, as its user wants."""
    return {
        "session_id": f"s-{number}",
        "goal": f"Summarize the report in notes-{number}.txt.",
        "model": model,
        "suite": "shop",
        "events": [
            {"turn": 0, "role": "assistant", "tool": "read_file", "args": {"path": f"notes-{number}.txt"}, "text": ""},
            {"turn": 0, "role": "tool", "tool": "read_file", "text": f"Figures: {number * 37}."},
            {"turn": 1, "role": "assistant", "text": "It holds figures."},
        ],
    }


@pytest.fixture
def sessions(home: Path) -> Callable[..., Path]:
    def write(count: int, *, model: str = "m-1") -> Path:
        path = home / "sessions.jsonl"
        path.write_text("".join(json.dumps(recorded(n, model=model)) + "\n" for n in range(count)), encoding="utf-8")
        return path

    return write


@pytest.fixture
def artefact(home: Path) -> Callable[..., Path]:
    """Return what writes an artefact whose clean sessions had scores between these two."""

    def write(low: float, high: float) -> Path:
        made = Calibration(
            schema=1,
            id="shop-7",
            status=Status.REFERENCE,
            alpha=0.01,
            date="2026-11-30",
            dataset=Dataset(name="shop"),
            versions={"fusion": "1"},
            bands={"fusion.call": Band(alert=0.999)},
            agents=("shop",),
            models=("m-1",),
            population=Population(code="fusion.call", n=200, high=high, over=19, low=low, under=50),
        )
        path = home / "calibration.json"
        path.write_bytes(made.document())
        return path

    return write


def test_a_scan_says_at_its_end_that_it_is_time_to_calibrate_anew_and_finds_nothing_by_it(
    theodolite: Run, sessions: Callable[..., Path], artefact: Callable[..., Path]
) -> None:
    path, calibration = str(sessions(40)), str(artefact(0.9, 0.95))
    done = theodolite("scan", path, "--calibration", calibration)
    assert done.exit_code == 0
    said = " ".join(done.stdout.split())
    assert said.index("recalibrate: the highest scores of these 40 sessions lie lower than") > said.index("Summary")
    assert "theodolite calibrate SESSIONS --out calibration.json" in said
    assert [line for line in done.stderr.splitlines() if line.startswith("recalibrate: ")]
    page = theodolite("scan", path, "--calibration", calibration, "--format", "html")
    assert "recalibrate: the highest scores of these 40 sessions lie lower than" in page.stdout


def test_the_document_has_the_figures_and_is_the_same_by_several_processes(
    theodolite: Run, sessions: Callable[..., Path], artefact: Callable[..., Path]
) -> None:
    path, calibration = str(sessions(400)), str(artefact(0.9, 0.95))
    alone, together = [
        json.loads(theodolite("scan", path, "--calibration", calibration, "-f", "json", "-j", jobs).stdout)["summary"]
        for jobs in ("1", "2")
    ]
    assert alone["population"] == together["population"]
    assert alone["population"].pop("e_value") > 200
    assert alone["population"] == {"sessions": 400, "recalibrate": True, "direction": "lower"}
    assert alone["findings"] == {}


def test_sessions_that_are_as_they_were_are_not_told_of(
    theodolite: Run, sessions: Callable[..., Path], artefact: Callable[..., Path]
) -> None:
    done = theodolite("scan", str(sessions(40)), "--calibration", str(artefact(0.0, 1.0)), "--format", "json")
    assert "recalibrate" not in done.stderr
    assert json.loads(done.stdout)["summary"]["population"]["recalibrate"] is False


@pytest.mark.parametrize(("count", "model"), [(9, "m-1"), (40, "m-2")])
def test_of_a_handful_of_sessions_and_of_those_of_other_models_nothing_is_told(
    theodolite: Run, sessions: Callable[..., Path], artefact: Callable[..., Path], count: int, model: str
) -> None:
    path, calibration = str(sessions(count, model=model)), str(artefact(0.9, 0.95))
    done = theodolite("scan", path, "--calibration", calibration)
    assert "recalibrate" not in done.stdout + done.stderr


def test_without_an_artefact_there_is_no_such_figure(theodolite: Run, sessions: Callable[..., Path]) -> None:
    done = theodolite("scan", str(sessions(3)), "--format", "json")
    assert json.loads(done.stdout)["summary"]["population"] is None


def test_an_artefact_with_its_ends_the_wrong_way_round_is_refused(
    theodolite: Run, sessions: Callable[..., Path], artefact: Callable[..., Path]
) -> None:
    calibration = artefact(0.1, 0.2)
    document = msgspec.json.decode(calibration.read_bytes(), type=dict[str, msgspec.Raw])
    ends = {"code": "fusion.call", "n": 9, "high": 0.1, "over": 1, "low": 0.2, "under": 1}
    calibration.write_bytes(msgspec.json.encode({**document, "population": ends}))
    done = theodolite("scan", str(sessions(3)), "--calibration", str(calibration))
    assert done.exit_code == 2
    assert "low 0.2 is above high 0.1 - at `$.population`" in done.stderr


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_the_sessions_that_an_artefact_was_fitted_to_are_no_others(theodolite: Run, home: Path, jobs: str) -> None:
    """What a scan counts is what the fit counted, to the last digit that matters."""
    lines = [json.dumps({**recorded(n), "kind": "clean"}) + "\n" for n in range(120)]
    (home / "clean.jsonl").write_text("".join(lines), encoding="utf-8")
    theodolite("calibrate", "clean.jsonl", "--alpha", "0.1", "--out", "c.json", "--date", "2026-11-30")
    done = theodolite("scan", "clean.jsonl", "--calibration", "c.json", "--format", "json", "--jobs", jobs)
    told = json.loads(done.stdout)["summary"]["population"]
    assert (told["sessions"], told["recalibrate"]) == (120, False)
    assert told["e_value"] <= 1.0
