"""What an artefact is worth on sessions that it was not fitted to, from the arguments to the exit status."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from theodolite.calibration.assess import assess
from theodolite.calibration.table import Table
from theodolite.cli.answered import Answered
from theodolite.cli.calibrating import Replayed, Watch, check_sessions, readable, replay_sessions, settings_of
from theodolite.cli.choices import Form
from theodolite.cli.exits import FINDING, NOT_JUDGED, NOTHING, say
from theodolite.cli.judging import wired
from theodolite.cli.labeled import Dataset, hash_of, labels_in
from theodolite.cli.output import involved, spared
from theodolite.cli.progress import Progress
from theodolite.cli.stopping import Stop
from theodolite.cli.telling import tell
from theodolite.config.grading import artefact_of
from theodolite.core.assessment import Share, Threshold, Verdict, Verified
from theodolite.core.calibration import Calibration
from theodolite.core.errors import CalibrationError
from theodolite.detectors.behavior.detector import BehaviorDetector
from theodolite.detectors.fusion import SESSION
from theodolite.readers.detection import find_recordings
from theodolite.reports.calibration.verification import verdict_blocks, verification
from theodolite.stats.conformal import at_least_so_many, least
from theodolite.stats.interval import exact_lower

__all__ = ("verify_rates",)

# How often an artefact that keeps its promise is refuted in any of its codes.
_LEVEL = 0.05


def verify_rates(request: Replayed, path: Path) -> int:
    """Replay, count, tell, and return the exit status. Raises TheodoliteError and KeyboardInterrupt."""
    artefact = artefact_of(path)
    if not artefact.bands:
        raise CalibrationError(f"{path} has no thresholds, so that there is no rate to verify")
    settings = settings_of(request)
    files = find_recordings(request.paths)
    spared(request.output, *files, *involved(request, settings))
    answered = Answered()
    table = Table()
    with wired(settings, request, calibration=path, answered=answered) as instrument:
        files = readable(files, request, instrument)
        if hash_of(files) == artefact.dataset.sha256:
            say("warning: these are the sessions that it was fitted to: what they say of it proves nothing")
        sessions = Dataset(
            files,
            instrument.readers,
            labels_in(request.labels),
            reader=request.reader,
            known_good=request.known_good,
        )
        progress, stop = Progress(files, doing="replaying"), Stop()
        with stop, progress:
            pieces = sessions.pieces(frozenset(), progress)
            for lines in replay_sessions(pieces, instrument, request, Watch(progress, stop, answered)):
                for line in lines:
                    if line.sample is not None:
                        table.add(line.sample)
    check_sessions(sessions, table, request)
    left = [code for code in artefact.bands if _of_probes(code)]
    if left:
        say(f"not verified: {', '.join(left)}: nobody is put probes here")
    _tell_strangers(artefact, table)
    found = tuple(_verified(artefact, table))
    told = verification(artefact, found) if request.form is Form.JSON else verdict_blocks(artefact, found)
    tell(told, request.output)
    return _status(artefact, found)


def _verified(artefact: Calibration, table: Table) -> Iterator[Verified]:
    """Yield what is found of each code that calls have. Each has its share of the 5 %, so that all have no more."""
    codes = [code for code in artefact.bands if not _of_probes(code)]
    for code in codes:
        threshold = artefact.thresholds.get(code)
        alpha = artefact.alpha if threshold is None else threshold.alpha
        band = artefact.bands[code]
        # Where the fitted one is over 1 no score alarms, and the highest there is is only shown.
        never = threshold is not None and threshold.alert > band.alert == 1.0
        assessment = assess(code, threshold.alert if threshold and never else band.alert, table, alpha)
        verdict = _verdict(assessment.whole.false_alarms, alpha, threshold, _LEVEL / len(codes))
        yield Verified(code=code, alpha=alpha, assessment=assessment, verdict=verdict)


def _of_probes(code: str) -> bool:
    """Whether a code is said of probes, which nobody puts here."""
    return code == SESSION or code.partition(".")[0] == BehaviorDetector.name


def _verdict(alarms: Share, alpha: float, threshold: Threshold | None, level: float) -> Verdict:
    """Return what so many alarms say of alpha: whether the promise makes them too improbable.

    It is over what the threshold was fitted to as well, so that a rate somewhat above alpha refutes nothing.
    """
    if threshold is not None and threshold.n >= least(alpha):
        refuted = at_least_so_many(alarms.k, alarms.n, threshold.n, alpha) < level
    else:
        refuted = alarms.n > 0 and exact_lower(alarms.k, alarms.n, level) > alpha
    if refuted:
        return Verdict.REFUTED
    return Verdict.HELD if alarms.n >= least(alpha) else Verdict.TOO_FEW


def _tell_strangers(artefact: Calibration, table: Table) -> None:
    """Say of which agents and models the artefact knows nothing: their sessions say what it does to strangers."""
    for what, known, seen in (
        ("agent", artefact.agents, set(table.agents)),
        ("model", artefact.models, set(table.models)),
    ):
        strange = sorted(seen - {"", *known})
        if strange:
            more = f" and {len(strange) - 1:,} more" if len(strange) > 1 else ""
            say(f"warning: the artefact was not fitted for the {what} {strange[0]}{more}: there it is STALE")


def _status(artefact: Calibration, found: tuple[Verified, ...]) -> int:
    acting = [one for one in found if artefact.bands[one.code].acts] or list(found)
    if any(one.verdict is Verdict.REFUTED for one in found):
        return FINDING
    return NOTHING if any(one.verdict is Verdict.HELD for one in acting) else NOT_JUDGED
