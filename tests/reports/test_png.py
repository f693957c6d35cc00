"""The picture of the timelines: that it shows them, and what happens where something is missing."""

from __future__ import annotations

import re
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from functools import partial
from io import BytesIO

import pytest

from theodolite.core.errors import MissingExtraError
from theodolite.core.policy import Outcome
from theodolite.core.reading import Signal
from theodolite.reports import png
from theodolite.reports.png import DRAWN, PNGWriter, has_fonts
from theodolite.reports.totals import Run, Totals
from theodolite.reports.writer import WriterReport
from theodolite.runtime.replay import Sighting

resvg_py = pytest.importorskip("resvg_py", reason="the extra png is not installed")
SMALL = 1.0  # half the size in which it is drawn: a picture is read slowly here

Alarm = Callable[..., Signal]
Saw = Callable[..., Sighting]
PAPER, RED = b"\xfc\xfb\xf8", b"\xa3\x2a\x1e"


def _picture(*items: Sighting) -> bytes:
    stream, totals = BytesIO(), Totals()
    report = WriterReport(PNGWriter(stream), thresholds={"margin.untrusted": 0.6})
    for item in items:
        totals.add(item)
        report.add(item)
    report.end(totals, Run(version="1.0"))
    return stream.getvalue()


def _pixels(picture: bytes) -> tuple[int, int, bytes]:
    """Return the width, the height and the red, green and blue of each pixel of a PNG that resvg made."""
    assert picture.startswith(b"\x89PNG\r\n\x1a\n")
    at, data, size = 8, b"", (0, 0)
    while at < len(picture):
        (length,) = struct.unpack(">I", picture[at : at + 4])
        kind, body = picture[at + 4 : at + 8], picture[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, color = struct.unpack(">IIBB", body[:10])
            size = (width, height)
            assert (depth, color) == (8, 6)
        elif kind == b"IDAT":
            data += body
        at += 12 + length
    return (*size, _unfiltered(zlib.decompress(data), size[0] * 4))


def _unfiltered(data: bytes, row: int) -> bytes:
    """Undo the filters of PNG (RFC 2083, section 6), and drop what is said of transparency."""
    above, pixels = bytearray(row), bytearray()
    for start in range(0, len(data), row + 1):
        kind, line = data[start], bytearray(data[start + 1 : start + 1 + row])
        for at in range(row):
            left, up = (line[at - 4] if at >= 4 else 0), above[at]
            corner = above[at - 4] if at >= 4 else 0
            guess = left + up - corner
            near = min((left, up, corner), key=lambda value: abs(guess - value))
            line[at] = (line[at] + (0, left, up, (left + up) // 2, near)[kind]) & 255
        pixels += line
        above = line
    return b"".join([bytes(pixels[at : at + 3]) for at in range(0, len(pixels), 4)])


def test_it_shows_the_alarms_of_a_session_on_paper(saw: Saw, alarm: Alarm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(png, "ZOOM", SMALL)
    width, height, pixels = _pixels(_picture(saw((alarm(),), ())))
    colors = [pixels[at : at + 3] for at in range(0, len(pixels), 3)]
    assert (width, len(colors)) == (png.WIDTH * SMALL, width * height)
    assert colors.count(PAPER) > len(colors) // 2
    assert colors.count(RED) > 10


def test_only_sessions_with_findings_that_count_are_drawn_and_no_more_than_a_few(saw: Saw, alarm: Alarm) -> None:
    def height(*items: Sighting) -> int:
        picture = _picture(*items)
        return int.from_bytes(picture[20:24], "big")

    found, clean = saw((alarm(),)), saw((), outcome=Outcome.CLEAN)
    assert height(clean) == height() < height(found) == height(found, clean) < height(found, found)
    assert height(*([found] * DRAWN)) == height(*([found] * (DRAWN + 5)))


def test_equal_sessions_give_equal_pictures(saw: Saw, alarm: Alarm) -> None:
    assert _picture(saw((alarm(),))) == _picture(saw((alarm(),)))


def test_without_a_font_the_shapes_are_drawn_all_the_same(
    saw: Saw, alarm: Alarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No font of the system is read here, as where there is none."""
    monkeypatch.setattr(png, "ZOOM", SMALL)
    monkeypatch.setattr(resvg_py, "svg_to_bytes", partial(resvg_py.svg_to_bytes, skip_system_fonts=True))
    assert not has_fonts()
    _, _, pixels = _pixels(_picture(saw((alarm(),))))
    assert pixels.count(RED) > 10


def test_nothing_that_a_session_says_is_loaded_into_a_picture(
    saw: Saw, alarm: Alarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows what the renderer gets to see."""
    seen: list[str] = []
    render = resvg_py.svg_to_bytes

    def watched(*, svg_string: str, background: str, style_sheet: str, zoom: float) -> bytes:
        seen.append(svg_string)
        return bytes(render(svg_string=svg_string, background=background, style_sheet=style_sheet, zoom=zoom))

    monkeypatch.setattr(resvg_py, "svg_to_bytes", watched)
    _picture(saw((alarm(),), session="<image href='/etc/hostname'/>", agent="]]><style>@import 'x'</style>"))
    assert "&lt;image href=&#x27;/etc/hostname&#x27;/&gt;" in seen[-1]
    assert not re.search(r"<image|<style|<use|<!", seen[-1])


WITHOUT_RESVG = """
import sys, io
sys.modules["resvg_py"] = None
from theodolite.reports.png import PNGWriter
try:
    PNGWriter(io.BytesIO())
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
    assert issubclass(MissingExtraError, ImportError)
