"""The picture of an artefact: which code it shows, and what happens where something is missing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from theodolite.core.assessment import Assessment
from theodolite.core.calibration import Calibration
from theodolite.core.errors import ConfigError
from theodolite.reports.calibration.image import imaged

resvg_py = pytest.importorskip("resvg_py", reason="the extra png is not installed")

Made = Callable[..., Calibration]
Measured = Callable[..., Assessment]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what the renderer gets to see."""
    seen: list[str] = []
    render = resvg_py.svg_to_bytes

    def watched(*, svg_string: str, background: str, style_sheet: str, zoom: float) -> bytes:
        seen.append(svg_string)
        return bytes(render(svg_string=svg_string, background=background, style_sheet=style_sheet, zoom=zoom))

    monkeypatch.setattr(resvg_py, "svg_to_bytes", watched)
    return seen


def test_it_is_a_picture_and_equal_for_equal_artefacts(artefact: Made) -> None:
    picture = imaged(artefact())
    assert picture.startswith(b"\x89PNG\r\n\x1a\n")
    assert int.from_bytes(picture[16:20], "big") > int.from_bytes(picture[20:24], "big") > 600
    assert imaged(artefact()) == picture


def test_the_fused_score_is_drawn_before_others(artefact: Made, assessment: Measured, drawn: list[str]) -> None:
    imaged(artefact(assessments=(assessment("a.x"), assessment())))
    assert "ROC curve of fusion.call" in drawn[-1]
    assert "a.x" not in drawn[-1]
    imaged(artefact(assessments=(assessment("a.x", curve=(), bins=()), assessment("a.y", curve=()))))
    assert "Drifted sessions by the score of a.y" in drawn[-1]
    assert "ROC" not in drawn[-1]


def test_an_artefact_with_nothing_to_draw_says_where_and_what_to_do(bare: Calibration) -> None:
    with pytest.raises(ConfigError, match=r"/assessments: no curve and no bin .* --format text shows what it has"):
        imaged(bare)


WITHOUT_RESVG = """
import sys
sys.modules["resvg_py"] = None
from theodolite.core.calibration import Calibration, Dataset
from theodolite.core.reading import Status
from theodolite.reports.calibration.image import imaged
try:
    imaged(
        Calibration(
            schema=1, id="x", status=Status.REFERENCE, alpha=0.1, date="d", dataset=Dataset(name="n"), versions={},
            bands={},
        )
    )
except ImportError as error:
    print(type(error).__name__, error)
"""


def test_without_the_extra_it_says_how_to_get_it() -> None:
    said = subprocess.run(
        [sys.executable, "-c", WITHOUT_RESVG], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    assert said == (
        "MissingExtraError reports as pictures need an extra that is not installed: pip install 'theodolite[png]'\n"
    )
