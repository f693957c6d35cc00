"""What is shown of the file of an artefact, how two files differ, and what the exit status says."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
import typer
from msgspec.structs import replace

from theodolite.cli.calibration_showing import differ, show
from theodolite.cli.choices import ShortForm
from theodolite.cli.exits import answering
from theodolite.cli.looks import Look
from theodolite.core.assessment import Assessment, Bin, Share, Slice
from theodolite.core.calibration import Band, Calibration, Dataset
from theodolite.core.errors import CalibrationError, ConfigError
from theodolite.core.reading import Status

PNG = b"\x89PNG\r\n\x1a\n"
Caught = pytest.CaptureFixture[str]


def _artefact(**fields: object) -> Calibration:
    some = Share(1, 20, 0.001, 0.249)
    part = Slice(name="all", false_alarms=some, found=some, precision=some, enough=True)
    made = Calibration(
        schema=1,
        id="bank-2026-11",
        status=Status.CALIBRATED,
        alpha=0.05,
        date="2026-11-20",
        dataset=Dataset(name="bank assistant \N{EM DASH} reviewed", counts={"clean": 412}),
        versions={"fusion": "1"},
        bands={"fusion.call": Band(alert=0.91)},
        agents=("bank",),
        models=("m-1",),
        assessments=(Assessment(code="fusion.call", alert=0.91, whole=part, bins=(Bin(0.0, 1.0, some),)),),
    )
    return replace(made, **fields).signed()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return the file of an artefact."""
    path = tmp_path / "bank.calibration.json"
    path.write_bytes(_artefact().document())
    return path


def test_text_goes_to_standard_output(file: Path, capsys: Caught) -> None:
    assert show(file, Look.TEXT) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("bank-2026-11, fitted on 2026-11-20\n  CALIBRATED: it was fitted")
    assert not shown.err


def test_json_is_the_artefact_itself_in_ascii(file: Path, capsys: Caught) -> None:
    assert show(file, Look.JSON) == 0
    written = capsys.readouterr().out
    assert written.isascii()
    assert Calibration.load(written.encode(), "shown") == _artefact()


def test_a_page_and_a_picture_go_to_a_file_and_a_line_says_so(file: Path, tmp_path: Path, capsys: Caught) -> None:
    assert show(file, Look.HTML, tmp_path / "a.html") == 0
    assert (tmp_path / "a.html").read_bytes().startswith(b"<!DOCTYPE html>")
    assert capsys.readouterr().err == "bank-2026-11, fitted on 2026-11-20: CALIBRATED\n"
    pytest.importorskip("resvg_py", reason="the extra png is not installed")
    assert show(file, Look.PNG, tmp_path / "a.png") == 0
    assert (tmp_path / "a.png").read_bytes().startswith(PNG)


def test_where_there_is_nothing_to_draw_no_file_is_touched(file: Path, tmp_path: Path) -> None:
    pytest.importorskip("resvg_py", reason="the extra png is not installed")
    file.write_bytes(_artefact(assessments=()).document())
    kept = tmp_path / "a.png"
    kept.write_bytes(b"kept")
    with pytest.raises(ConfigError, match="nothing to draw"):
        show(file, Look.PNG, kept)
    assert kept.read_bytes() == b"kept"


@pytest.mark.parametrize("form", list(Look))
def test_the_artefact_is_never_written_over(file: Path, form: Look) -> None:
    before = file.read_bytes()
    with pytest.raises(ConfigError, match="is what this command reads"):
        show(file, form, file)
    with pytest.raises(ConfigError, match="is what this command reads"):
        differ(file, file, ShortForm.TEXT, file)
    assert file.read_bytes() == before


def test_a_file_that_is_no_artefact_is_an_error_of_use(tmp_path: Path, capsys: Caught) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text('{"schema": 1, "id": 7}', encoding="utf-8")
    for path in (broken, tmp_path / "absent.json", tmp_path):
        with pytest.raises(typer.Exit) as left, answering():
            show(path, Look.TEXT)
        assert left.value.exit_code == 2
        assert str(path) in capsys.readouterr().err


def test_an_artefact_that_somebody_changed_is_refused(file: Path) -> None:
    document = json.loads(file.read_text(encoding="utf-8"))
    document["bands"]["fusion.call"]["alert"] = 0.5
    file.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(CalibrationError, match="somebody changed it"):
        show(file, Look.TEXT)


def test_two_equal_artefacts_exit_with_0(file: Path, capsys: Caught) -> None:
    assert differ(file, file, ShortForm.TEXT) == 0
    assert capsys.readouterr().out == "bank-2026-11 -> bank-2026-11: they say the same\n"


def test_two_that_differ_exit_with_1_and_say_how(file: Path, tmp_path: Path, capsys: Caught) -> None:
    other = tmp_path / "other.json"
    other.write_bytes(_artefact(bands={"fusion.call": Band(alert=0.8)}).document())
    assert differ(file, other, ShortForm.TEXT) == 1
    assert "alarms earlier" in capsys.readouterr().out
    assert differ(file, other, ShortForm.JSON, tmp_path / "diff.json") == 1
    assert capsys.readouterr().err == "bank-2026-11 -> bank-2026-11: 1 difference\n"
    [change] = msgspec.json.decode((tmp_path / "diff.json").read_bytes())["changes"]
    assert change == {
        "about": "thresholds",
        "name": "fusion.call",
        "detail": "alert",
        "before": 0.91,
        "after": 0.8,
        "effect": "alarms earlier",
    }


def test_coefficients_as_deep_as_a_file_may_have_them_are_shown(file: Path, capsys: Caught) -> None:
    deep: object = 1
    for _ in range(5):
        deep = [deep]
    file.write_bytes(_artefact(coefficients={"behavior": {"w": deep}}).document())
    for form in (Look.TEXT, Look.JSON, Look.HTML):
        assert show(file, form) == 0
    assert differ(file, file, ShortForm.TEXT) == 0
    assert "w/0/0/0/0" in capsys.readouterr().out
