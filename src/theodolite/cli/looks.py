"""In which forms a calibration artefact is shown."""

from __future__ import annotations

from enum import StrEnum

__all__ = ("Look",)


class Look(StrEnum):
    """The forms of an artefact: with pictures in html, and as pictures alone in png."""

    TEXT = "text"
    JSON = "json"
    HTML = "html"
    PNG = "png"
