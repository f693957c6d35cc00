"""What a score is worth: bands, the artefact that replaces them, and the grading of a reading into a signal."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from theodolite.core.arguments import is_mapping, is_sequence
from theodolite.core.assessment import Assessment, Threshold
from theodolite.core.errors import CalibrationError
from theodolite.core.gate import Gate
from theodolite.core.reading import Failure, Level, Reading, Signal, Status

__all__ = ("Band", "Calibration", "Dataset", "Population", "grade", "in_force")


class Band(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """The thresholds of one code.

    `alert` and `strong` are scores in [0, 1]; a code without `strong` never gets that far by itself. Scores within
    `width` of `alert` are ambiguous. `status` is what these numbers rest on when no artefact replaces them, `source`
    says it in words. `acts`: an alarm may cause an action. `finds`: an alarm counts as a finding.

    Raises ValueError when the thresholds are out of range or out of order, or the status is not one that a detector can
    have of itself: EXACT, REFERENCE or UNCALIBRATED.
    """

    alert: float
    strong: float | None = None
    width: float = 0.0
    status: Status = Status.UNCALIBRATED
    acts: bool = True
    finds: bool = True
    source: str = ""

    def __post_init__(self) -> None:
        if not (0.0 < self.alert <= (1.0 if self.strong is None else self.strong) <= 1.0):
            raise ValueError(f"need 0 < alert <= strong <= 1, not alert={self.alert}, strong={self.strong}")
        if not 0.0 <= self.width <= 1.0:
            raise ValueError(f"width {self.width} is outside [0, 1]")
        if self.status not in {Status.EXACT, Status.REFERENCE, Status.UNCALIBRATED}:
            raise ValueError(f"a band is EXACT, REFERENCE or UNCALIBRATED by itself, not {self.status}")

    def level(self, score: float) -> Level:
        """Return how far a score in [0, 1] gets."""
        if self.strong is not None and score >= self.strong:
            return Level.STRONG
        return Level.NOTABLE if score >= self.alert else Level.CLEAR

    def ambiguous(self, score: float) -> bool:
        """Whether a score is so near to `alert` that a second opinion may be asked for."""
        return self.width > 0.0 and abs(score - self.alert) <= self.width


class Dataset(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """What an artefact was fitted on."""

    name: str
    version: str = ""
    sha256: str = ""
    counts: dict[str, int] = {}


_NOBODY: Mapping[str, str] = MappingProxyType({})
# Counts beyond this are none: a float holds no larger one exactly.
_MOST = 2**53


class Population(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """Where the highest scores of the clean sessions lay, to tell when those that are monitored are of another kind.

    Of `n` clean sessions at most `over` had a score of `code` above `high`, and at most `under` one below `low`: where
    the two are scores of these sessions, their ranks, so that those that are equal to it are counted along.
    Raises ValueError for counts that are none, and for a `low` that is above `high`.
    """

    code: str
    n: int
    high: float
    over: int
    low: float
    under: int

    def __post_init__(self) -> None:
        if not (0 < self.n <= _MOST and 0 <= self.over <= self.n and 0 <= self.under <= self.n):
            raise ValueError(f"{self.over} and {self.under} of {self.n} sessions are no counts")
        if not self.low <= self.high:
            raise ValueError(f"low {self.low} is above high {self.high}")


class Calibration(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """Thresholds with what they were fitted on: an artefact in JSON that a person can read.

    `versions` maps each detector to the version it was fitted for, `probes` is that of the probe library and `library`
    that of this package. `agents` and `models` name those in the dataset; a CALIBRATED artefact vouches for no other,
    and for the codes in `thresholds` that held-back folds confirm. `rests` has, by code, the detectors beside its own
    whose scores it is made of: where one has another version it is STALE. `coefficients` are those that a detector of
    that name takes in place of its own. `assessments` say what the thresholds do on the dataset, `warnings` what that
    does not support. `gates` has what was found out of each model, by its name: whether it can be measured under the
    operator's policy. `digest` is the SHA-256 of all else but the gates: an artefact that is CALIBRATED without it was
    not written by `theodolite calibrate`, or was changed since.
    """

    schema: Literal[1]
    id: str
    status: Status
    alpha: float
    date: str
    dataset: Dataset
    versions: dict[str, str]
    bands: dict[str, Band]
    agents: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    library: str = ""
    probes: str = ""
    thresholds: dict[str, Threshold] = {}
    rests: dict[str, tuple[str, ...]] = {}
    coefficients: dict[str, dict[str, object]] = {}
    population: Population | None = None
    assessments: tuple[Assessment, ...] = ()
    warnings: tuple[str, ...] = ()
    gates: dict[str, Gate] = {}
    digest: str = ""

    def __post_init__(self) -> None:
        if not 0.0 < self.alpha < 1.0:
            raise ValueError(f"alpha {self.alpha} is outside (0, 1)")
        if self.status not in {Status.CALIBRATED, Status.REFERENCE}:
            raise ValueError(f"an artefact is CALIBRATED or REFERENCE, not {self.status}")
        if self.status is Status.CALIBRATED and not (self.agents and self.models):
            raise ValueError("a CALIBRATED artefact must name the agents and models of its dataset")
        if _deep(self.coefficients):
            raise ValueError(f"coefficients are nested deeper than {_DEEPEST} levels, which no detector takes")
        for name, gate in self.gates.items():
            if gate.model != name:
                raise ValueError(f"the gate of {name!r} is that of {gate.model!r}: keep it under its own model")

    @classmethod
    def load(cls, document: bytes, name: str) -> Calibration:
        """Return the artefact of a JSON document called `name`. Raises CalibrationError with the place of the fault."""
        try:
            artefact = msgspec.json.decode(document, type=cls)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise CalibrationError(
                f"{name} is not a calibration artefact: {error}. Its form is on the page docs/reference/calibration.md."
            ) from error
        if artefact.status is Status.CALIBRATED and artefact.digest != artefact.signed().digest:
            raise CalibrationError(
                f"{name} says that it is CALIBRATED, and `theodolite calibrate` did not write it, or somebody changed "
                "it since: calibrate anew, or set its status to REFERENCE, with which it grades and cannot restrict"
            )
        return artefact

    def document(self) -> bytes:
        """Return the artefact as the file that `load` reads."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"

    def signed(self) -> Calibration:
        """Return this artefact with the digest of what it says. It shows a change, and proves no author."""
        document = msgspec.json.encode(replace(self, digest="", gates={}), order="sorted")
        return replace(self, digest=hashlib.sha256(document).hexdigest())

    def vouches(self, code: str) -> bool:
        """Whether held-back folds confirm the rate of a code: where it says so of any, only of those."""
        threshold = self.thresholds.get(code)
        return threshold.confirmed if threshold is not None else not self.thresholds

    def names(self, agent: str, models: Collection[str]) -> bool:
        """Whether a session of that agent and those models may be like those it was fitted to, by what it names.

        One that is CALIBRATED vouches for no session that names no model; one that names no agent, or no model, was
        fitted to sessions that do not.
        """
        if self.status is Status.CALIBRATED and not models:
            return False
        return (not self.agents or agent in self.agents) and (not self.models or set(models) <= set(self.models))

    def current(self, detector: str, wired: Mapping[str, str]) -> bool:
        """Whether it was fitted for the version of a detector that is wired, and of those that its codes rest on."""
        under = [name for code, names in self.rests.items() if code.partition(".")[0] == detector for name in names]
        return all(self.versions.get(name) == wired.get(name) for name in (detector, *under) if name in wired)

    def covers(self, said: Reading, agent: str, models: Collection[str], wired: Mapping[str, str] = _NOBODY) -> bool:
        """Whether this artefact was fitted for that detector version and, if CALIBRATED, for that agent and model.

        Of a probe it is also about the version of the library.
        """
        if self.versions.get(said.detector) != said.version or not self.current(said.detector, wired):
            return False
        asked_from = said.fact("library")
        if self.probes and isinstance(asked_from, str) and asked_from != self.probes:
            return False
        if self.status is Status.REFERENCE:
            return True
        asked = {*models, *said.models}
        return agent in self.agents and bool(asked) and asked <= set(self.models)


# Of coefficients: a detector has numbers by name, or by name of what they are about. Our choice, with room.
_DEEPEST = 16


def _deep(given: object) -> bool:
    """Whether values are nested deeper than anybody writes them."""
    level = [given]
    for _ in range(_DEEPEST):
        inside: list[object] = []
        for value in level:
            if is_mapping(value):
                inside += value.values()
            elif is_sequence(value):
                inside += value
        level = inside
    return bool(level)


def in_force(code: str, band: Band, calibration: Calibration | None) -> Band:
    """Return the band that grades a code: the artefact's where it has the code, else the detector's own.

    Exact codes are never recalibrated.
    """
    if calibration is None or band.status is Status.EXACT:
        return band
    return calibration.bands.get(code, band)


def grade(
    said: Reading | Failure,
    bands: Mapping[str, Band],
    calibration: Calibration | None = None,
    *,
    agent: str = "",
    models: Collection[str] = (),
    wired: Mapping[str, str] = _NOBODY,
) -> Signal:
    """Return what a reading is worth: by the artefact where it has the code, else by the detector's own band.

    `agent` and `models` are those of the session, `wired` has the versions of all detectors. A reading whose code has
    no band is graded as a failure of its detector elsewhere (Session); here it raises KeyError. Exact codes are never
    recalibrated.

    >>> band = Band(alert=0.6, source="an estimate")
    >>> signal = grade(Reading(detector="d", version="1", code="d.x", score=0.7), {"d.x": band})
    >>> signal.level.value, signal.status.value
    ('notable', 'UNCALIBRATED')
    """
    if isinstance(said, Failure):
        return Signal(said=said)
    own = bands[said.code]
    band = in_force(said.code, own, calibration)
    status: Status = own.status
    used = None
    if calibration is not None and band is not own:
        used = calibration.id
        covered = calibration.covers(said, agent, models, wired)
        status = (
            (calibration.status if calibration.vouches(said.code) else Status.REFERENCE) if covered else Status.STALE
        )
    return Signal(
        said=said,
        level=band.level(said.score),
        status=status if said.vouched else Status.UNCALIBRATED,
        ambiguous=band.ambiguous(said.score),
        acts=band.acts and not said.surrogate,
        finds=band.finds and not said.surrogate,
        calibration=used,
    )
