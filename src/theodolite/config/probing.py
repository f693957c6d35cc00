"""The parts that probe, wired: the operator's own probes, their map of tools, and what gates say of models."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from msgspec.structs import replace

from theodolite.config.settings import Settings, read_named
from theodolite.core.calibration import Calibration
from theodolite.core.detector import AnyDetector
from theodolite.core.errors import ConfigError
from theodolite.core.fusion import AnyFusion
from theodolite.detectors.behavior.detector import BehaviorDetector
from theodolite.detectors.behavior.library import ProbeLibrary, shipped
from theodolite.detectors.fusion import HijackFusion
from theodolite.detectors.fusion import shipped as shipped_fusion

__all__ = ("fused", "gated", "library_of")


def library_of(file: str, settings: Settings) -> ProbeLibrary:
    """Return the library that comes with the package, and the operator's probes with it where a file has some."""
    if not file:
        return shipped()
    path = Path(settings.folder) / file
    try:
        text = read_named(path).decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"detectors.behavior.probes: {path} cannot be read: {error}") from error
    return shipped().extended(text, str(path))


def gated(detectors: Iterable[AnyDetector], calibration: Calibration | None) -> list[AnyDetector]:
    """Return the detectors, of which the one that probes knows the gates of an artefact."""
    gates = {} if calibration is None else calibration.gates
    return [one.with_gates(gates) if isinstance(one, BehaviorDetector) else one for one in detectors]


def fused(*, probes: bool) -> AnyFusion:
    """Return the fusion. Where sessions are probed, what that comes to counts beside their calls."""
    if not probes:
        return HijackFusion()
    return HijackFusion(replace(shipped_fusion(), processes=(BehaviorDetector.name,)))
