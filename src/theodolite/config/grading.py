"""The calibration artefact that grades what detectors say: the one that was named, fitted for what is wired."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from theodolite.calibration.reference import shipped
from theodolite.config.settings import Settings, nearest
from theodolite.core.calibration import Calibration
from theodolite.core.detector import AnyDetector, Tunable
from theodolite.core.errors import CalibrationError
from theodolite.core.fusion import AnyFusion
from theodolite.core.verifier import Verifier

__all__ = ("SHIPPED", "artefact_of", "fitted", "tuned")

SHIPPED = "shipped"
"""The name of the artefact that comes with the package."""

_S = TypeVar("_S", AnyDetector, AnyFusion)


def fitted(
    given: Path | Calibration | None,
    settings: Settings,
    detectors: Collection[AnyDetector | AnyFusion],
    verifiers: Iterable[Verifier],
    *,
    off: Collection[str],
) -> Calibration | None:
    """Return the artefact that was given, else the one that the settings name, if they do.

    What was fitted for a detector that is `off` does no harm. Raises CalibrationError for an artefact that cannot be
    read, or that is for what is not wired; the settings are named where they named it.
    """
    names = {detector.name for detector in detectors} | {verifier.name for verifier in verifiers}
    codes = {code for detector in detectors for code in detector.bands}
    if isinstance(given, Calibration):
        return given
    if given is not None:
        return _read(given, names, codes, off)
    if not settings.calibration:
        return None
    try:
        return _read(Path(settings.folder) / settings.calibration, names, codes, off)
    except CalibrationError as error:
        if not settings.file:
            raise
        raise CalibrationError(f"{settings.file}: calibration: {error}") from error


def tuned(
    speakers: Collection[_S], artefact: Calibration | None, others: Iterable[AnyDetector | AnyFusion] = ()
) -> list[_S]:
    """Return the detectors or fusions, each with the coefficients that an artefact has for it in this version.

    What fusions rest on are the `others`.

    Raises CalibrationError for coefficients of another form, or of one that takes none.
    """
    wired = {one.name: one.version for one in (*speakers, *others)}
    return [one if artefact is None else _tuned(one, artefact, wired) for one in speakers]


def _tuned(speaker: _S, artefact: Calibration, wired: Mapping[str, str]) -> _S:
    given = artefact.coefficients.get(speaker.name)
    if given is None or not artefact.current(speaker.name, wired):
        return speaker
    if not isinstance(speaker, Tunable):
        raise CalibrationError(f"{artefact.id}: coefficients: {speaker.name} takes none: leave them out")
    try:
        return speaker.tuned(given)
    except ValueError as error:
        raise CalibrationError(f"{artefact.id}: coefficients: {speaker.name}: {error}") from error


def artefact_of(path: Path) -> Calibration:
    """Return the artefact of a file; `shipped`, where no file has that name, is the one that comes with the package.

    Raises CalibrationError for what cannot be read, or is none.
    """
    if path.name == SHIPPED and not path.exists():
        return shipped()
    try:
        document = path.read_bytes()
    except OSError as error:
        raise CalibrationError(
            f"the calibration {path} cannot be read ({error.strerror}): name an artefact of `theodolite calibrate`, or "
            f"`{SHIPPED}`, which comes with the package"
        ) from error
    return Calibration.load(document, str(path))


def _read(path: Path, names: Collection[str], codes: Collection[str], off: Collection[str]) -> Calibration:
    artefact = artefact_of(path)
    _check_known(f"{path}: versions: there is no detector", artefact.versions, names, off)
    _check_known(f"{path}: coefficients: there is no detector", artefact.coefficients, names, off)
    _check_known(f"{path}: bands: no detector has the code", artefact.bands, codes, off)
    return artefact


def _check_known(what: str, named: Iterable[str], known: Collection[str], off: Collection[str]) -> None:
    for name in named:
        if name not in known and name.partition(".")[0] not in off:
            raise CalibrationError(f"{what} {name!r}; {nearest(name, list(known))}")
