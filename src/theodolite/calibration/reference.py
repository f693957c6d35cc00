"""The artefact that comes with the package: thresholds of others' sessions, for who has none of their own yet."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from theodolite.core.calibration import Calibration

__all__ = ("shipped",)

_FILE = "reference.json"


@cache
def shipped() -> Calibration:
    """Return it. Reads its file once.

    It is REFERENCE and vouches for nobody: `theodolite calibrate --reference` made it of the AgentDojo runs of nine
    models (docs/evidence/reference-calibration.md), and thresholds do not transfer by themselves.

    >>> shipped().status.value, shipped().dataset.name
    ('REFERENCE', 'AgentDojo runs, train')
    """
    return Calibration.load(files("theodolite.calibration").joinpath(_FILE).read_bytes(), _FILE)
