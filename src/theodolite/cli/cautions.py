"""What was asked for and cannot happen: said before anybody relies on it."""

from __future__ import annotations

from theodolite.config.wiring import Instrument
from theodolite.core.calibration import Calibration
from theodolite.core.detector import AnyDetector
from theodolite.core.fusion import AnyFusion
from theodolite.core.policy import Action, Mode, highest
from theodolite.core.reading import Status
from theodolite.core.redaction import Profile

__all__ = ("cautions", "reach")


def reach(instrument: Instrument) -> Action:
    """Return the highest action that any loaded code can reach, under the policy and the calibration in force."""
    fleet = instrument.monitor.fleet
    fitted = fleet.calibration
    reached = [Action.LOG_ONLY]
    for detector in fleet.speakers:
        if fleet.policy.mode(detector.name) is Mode.OBSERVE:
            continue
        for code in detector.bands:
            band = fleet.in_force[code]
            if band.acts:
                reached.append(Action.ELEVATED_REVIEW)
            if band.acts and band.strong is not None and _vouches(fitted, code, detector):
                reached.append(Action.RESTRICTED_MODE)
    return highest(reached)


def _vouches(fitted: Calibration | None, code: str, detector: AnyDetector | AnyFusion) -> bool:
    """Whether an artefact can make a signal of this code CALIBRATED."""
    if fitted is None or fitted.status is not Status.CALIBRATED or detector.bands[code].status is Status.EXACT:
        return False
    return code in fitted.bands and fitted.versions.get(detector.name) == detector.version


def cautions(instrument: Instrument, fail_on: Action | None = None) -> tuple[str, ...]:
    """Return what to know before relying on `fail_on`, or on `hold` in the settings."""
    most = reach(instrument)
    said: list[str] = []
    if fail_on is not None and highest((most, fail_on)) is not most:
        what = "asks for any action" if most is Action.LOG_ONLY else f"asks for more than {most}"
        need = (
            "it takes an artefact of status CALIBRATED with a strong threshold for a code that acts (--calibration)"
            if fail_on is Action.RESTRICTED_MODE
            else "it takes a detector whose code acts, in mode warn or enforce, or a --calibration that lets one act"
        )
        said.append(
            f"--fail-on {fail_on} can never be reached: no code that is loaded {what}; {need}. "
            "To exit with 1 for any finding, leave --fail-on out"
        )
    if instrument.settings.policy.hold and most is Action.LOG_ONLY:
        said.append(
            "policy.hold can refuse no call: no code that is loaded acts; it takes a detector whose code acts, in mode "
            "warn or enforce, or a calibration that lets one act. `theodolite doctor` lists the codes"
        )
    store = instrument.settings.store
    if store.profile is Profile.ENCRYPTED and store.raw_events:
        said.append(
            "store.raw_events writes whole sessions unsealed, beside payloads that store.profile = 'encrypted' seals"
        )
    return tuple(said)
