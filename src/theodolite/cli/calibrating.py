"""From labeled sessions to a calibration artefact, and to what an artefact is worth on other sessions."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import partial
from importlib.metadata import version
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from theodolite.calibration.fit import Terms, calibrated, parts_in
from theodolite.calibration.sample import Sample
from theodolite.calibration.table import Table
from theodolite.cli.answered import Answered, foreseen
from theodolite.cli.asking import check_models, of_recordings, without_models
from theodolite.cli.asking import settings_of as asked_settings
from theodolite.cli.choices import Form, Jobs
from theodolite.cli.exits import NOT_JUDGED, NOTHING, say
from theodolite.cli.judging import Request as Judgeable
from theodolite.cli.judging import wired
from theodolite.cli.labeled import Dataset as Sessions
from theodolite.cli.labeled import hash_of, labels_in
from theodolite.cli.output import involved, spared
from theodolite.cli.parallel import Plan
from theodolite.cli.progress import Progress
from theodolite.cli.replacing import alone, put, target_of
from theodolite.cli.resuming import Kept, kept_beside, partial_of
from theodolite.cli.sampling import Line, Piece, Sampling, probed, samples
from theodolite.cli.stopping import Stop
from theodolite.cli.telling import tell
from theodolite.cli.triaging import read_marks
from theodolite.cli.waiting import Waiting
from theodolite.config.grading import artefact_of
from theodolite.config.settings import Settings
from theodolite.config.wiring import Instrument
from theodolite.core.calibration import Calibration, Dataset
from theodolite.core.errors import ConfigError
from theodolite.core.gate import Gate
from theodolite.core.labels import Known, Label
from theodolite.core.reading import Status
from theodolite.detectors.behavior.library import shipped
from theodolite.readers.detection import find_recordings, open_recording
from theodolite.reports.calibration.parts import blocks
from theodolite.reports.layout import counted
from theodolite.reports.triage import Suppression

__all__ = (
    "PROBES",
    "Replayed",
    "Request",
    "Watch",
    "calibrate_sessions",
    "check_sessions",
    "readable",
    "replay_sessions",
    "settings_of",
)

# A share of sessions below this cannot be measured: it takes two million of them.
_LEAST = 1e-6
# Sessions that a warning names. Our choice.
_NAMED = 3

PROBES = 20
"""Probes a session where a model is there: as many as a live session is put at most by default."""


class Replayed(Judgeable, frozen=True, kw_only=True):
    """How labeled sessions are replayed: what `calibrate` and `calibrate verify` may be asked for alike.

    `calibration` is the artefact that grades them, if one does.
    """

    labels: tuple[Path, ...] = ()
    known_good: bool = False
    jobs: Jobs = Jobs()
    probes: int = PROBES
    calibration: Path | None = None


class Request(Replayed, frozen=True, kw_only=True):
    """What was asked for: the arguments of `calibrate`. `suppressions` has marks of false alarm."""

    out: Path
    alpha: float
    day: str
    name: str = ""
    edition: str = ""
    agent: str = ""
    agent_model: str = ""
    reference: bool = False
    anew: bool = False
    suppressions: Path | None = None


class Watch(Struct, frozen=True):
    """Who is told how far it is, who may stop it, and who counts what models answer."""

    progress: Progress
    stop: Stop
    answered: Answered


class _Work(Struct):
    """What samples depend on: where any of it is another, they are others."""

    files: tuple[str, list[str]]
    labels: list[Label]
    marks: list[tuple[str | None, ...]]
    known_good: bool
    reader: str | None
    settings: Settings
    gates: Mapping[str, Gate]
    probes: int
    versions: Mapping[str, str]
    library: str


def calibrate_sessions(request: Request) -> int:
    """Replay, fit, write the artefact, tell of it, and return the exit status.

    Raises TheodoliteError, and KeyboardInterrupt when it is stopped: what was done until then is kept.
    """
    if not _LEAST <= request.alpha <= 0.5:  # noqa: PLR2004 - half of all clean sessions is no alarm
        raise ConfigError(f"--alpha {request.alpha:g}: it is a share of clean sessions, from {_LEAST:g} to 0.5")
    day, out = _day(request.day), target_of(request.out, "--out")
    settings = settings_of(request)
    marks = read_marks(request.suppressions)
    if request.suppressions is not None and not marks:
        say(f"warning: no suppression in {request.suppressions} says `false_alarm = true`, so that none is a mark")
    files = _files(request, out)
    spared(request.output, *files, partial_of(out), *involved(request, settings))
    marked = [] if request.suppressions is None else [request.suppressions]
    spared(request.out, *files, *request.labels, *marked, option="--out")
    before = artefact_of(out) if out.exists() else None
    answered = Answered()
    with wired(settings, request, calibration=_gates_alone(before, settings), answered=answered) as instrument:
        labels = labels_in(request.labels)
        files = readable(files, request, instrument)
        sessions = Sessions(
            files,
            instrument.readers,
            labels,
            reader=request.reader,
            known_good=request.known_good,
            marked=bool(marks),
        )
        sha256 = hash_of(files)
        with kept_beside(out, _work(request, instrument, labels, marks, (sha256, files)), anew=request.anew) as kept:
            _kept(sessions, kept, instrument, request, answered, marks=marks)
            table = Table.of(_samples(kept, sessions, request))
            check_sessions(sessions, table, request)
            _tell_alarms(table, instrument)
            if hash_of(files) != sha256:
                kept.remove()
                raise ConfigError("a recording was changed while it was read: copy those that grow, and begin again")
            artefact = calibrated(table, _terms(request, instrument, day, _dataset(request, sessions, sha256)))
            artefact = _written(out, artefact, reference=request.reference)
            kept.remove()
    tell(artefact if request.form is Form.JSON else blocks(artefact), request.output)
    say(f"written to {request.out}: {artefact.status}, fitted to {counted(len(table), 'session')}")
    return NOTHING if artefact.status is Status.CALIBRATED or request.reference else NOT_JUDGED


def _files(request: Request, out: Path) -> list[Path]:
    """Return the recordings: of a folder not what this command itself reads and writes there.

    A link to a file that is there too, or to one that was named before, is that file.
    """
    named = [path for path in request.paths if not path.is_dir()]
    own = {path.resolve() for path in (out, partial_of(out), *request.labels)}
    found: dict[Path, Path] = {}
    for file in find_recordings(request.paths):
        real = file.resolve()
        if file in named or real not in own:
            found.setdefault(real, file)
    if not found:
        raise ConfigError("there is no recording beside what this command itself reads and writes: name one")
    return list(found.values())


def _dataset(request: Request, sessions: Sessions, sha256: str) -> Dataset:
    return Dataset(
        name=request.name or ", ".join([path.name or str(path) for path in request.paths]),
        version=request.edition,
        sha256=sha256,
        counts={key: count for key, count in sorted(sessions.counts.items()) if count},
    )


def _written(out: Path, artefact: Calibration, *, reference: bool) -> Calibration:
    """Write the artefact, with the gates that the one has that is there by now; return it.

    Raises ConfigError rather than put one in the place of a CALIBRATED one that is less: it may be in force.
    """
    with alone(out, "--out"):
        if out.exists():
            known = artefact_of(out)
            if known.status is Status.CALIBRATED is not artefact.status and not reference:
                for warning in artefact.warnings:
                    say(f"warning: {warning}")
                raise ConfigError(f"{out} is CALIBRATED, and what would take its place is not: name another --out")
            artefact = replace(artefact, gates=known.gates)
        put(out, artefact.document(), "--out")
    return artefact


def settings_of(request: Replayed) -> Settings:
    """Return the settings that sessions are replayed under: nothing is kept, and nobody asked whom nobody named.

    Raises ConfigError.
    """
    settings = asked_settings(request.config, model=request.model, system=request.system)
    if request.model is None:
        settings = without_models(settings)
    else:
        settings = of_recordings(settings, probes=request.probes)
        check_models(settings)
        if not request.jobs.alone:
            raise ConfigError("models are asked from one process: leave --jobs out, or --model")
    return replace(settings, store=replace(settings.store, path="", raw_events="", shelf=""))


def _gates_alone(before: Calibration | None, settings: Settings) -> Calibration:
    """Return an artefact that holds nothing but the gates of the one before: sessions are read without any fit."""
    asked = bool(settings.panel.subject)
    named = artefact_of(Path(settings.folder) / settings.calibration) if settings.calibration and asked else None
    gates = {**({} if named is None else named.gates), **({} if before is None else before.gates)}
    return Calibration(
        schema=1,
        id="gates",
        status=Status.REFERENCE,
        alpha=0.5,
        date="",
        dataset=Dataset(name=""),
        versions={},
        bands={},
        gates=gates,
    )


def _work(
    request: Request,
    instrument: Instrument,
    labels: Mapping[str, Label],
    marks: Iterable[Suppression],
    files: tuple[str, Sequence[Path]],
) -> str:
    fleet = instrument.monitor.fleet
    work = _Work(
        files=(files[0], [str(file) for file in files[1]]),
        labels=[labels[name] for name in sorted(labels)],
        # Of a mark what it is about: until when it hides findings, and who says so, makes no other sample.
        marks=[(one.fingerprint, one.code, one.session, one.agent, one.tool) for one in marks],
        known_good=request.known_good,
        reader=request.reader,
        settings=replace(instrument.settings, calibration=""),
        gates={} if fleet.calibration is None or not request.model else fleet.calibration.gates,
        probes=request.probes if request.model else 0,
        versions=_versions(instrument),
        library=version("theodolite"),
    )
    return hashlib.sha256(msgspec.json.encode(work, order="sorted")).hexdigest()


def _versions(instrument: Instrument) -> dict[str, str]:
    """Return the version of each detector, fusion and verifier."""
    return dict(instrument.monitor.fleet.versions)


def _terms(request: Request, instrument: Instrument, day: str, dataset: Dataset) -> Terms:
    fleet = instrument.monitor.fleet
    return Terms(
        id=f"{day}-{dataset.sha256[:12]}-{request.alpha:g}",
        date=day,
        alpha=request.alpha,
        dataset=dataset,
        bands=fleet.bands,
        versions=_versions(instrument),
        library=version("theodolite"),
        probes=shipped().version if request.model else "",
        probed=request.model is not None,
        reference=request.reference,
    )


def readable(files: Sequence[Path], request: Replayed, instrument: Instrument) -> list[Path]:
    """Return the files that are recordings: of a folder others are left out, with a word. Raises ConfigError."""
    found: list[Path] = []
    for file in files:
        try:
            next(iter(open_recording(file, instrument.readers, name=request.reader)), None)
        except ConfigError as error:
            if file in request.paths:
                raise
            say(f"warning: left out: {error}")
        else:
            found.append(file)
    if not found:
        raise ConfigError("none of these files is a recording")
    return found


def _tell_alarms(table: Table, instrument: Instrument) -> None:
    """Say how many sessions that count as clean are findings by the thresholds that ship: somebody should look."""
    fleet = instrument.monitor.fleet
    for code, band in fleet.bands.items():
        scores = table.scores(code)
        alarmed = sum(scores[row] >= band.alert for row in table.rows(Known.CLEAN))
        if alarmed and band.finds:
            say(
                f"warning: {counted(alarmed, 'session')} that count as clean are findings of {code} by its own "
                f"threshold ({band.alert:.3g}): look whether they are, since thresholds are put above most of them"
            )


def check_sessions(sessions: Sessions, table: Table, request: Replayed) -> None:
    """Say what was left out. Raises ConfigError where nothing is left to fit to."""
    for name in sorted(sessions.labels.keys() - sessions.met)[:_NAMED]:
        say(f"warning: a label is about the session {name!r}, which is in none of these recordings")
    if sessions.copies:
        say(f"warning: {sessions.copies:,} of the sessions are there already, word for word, and are left out")
    if sessions.unread:
        say(f"warning: {counted(sessions.unread, 'part')} could not be read; `theodolite scan` says which")
    unlabeled = sessions.counts["unlabeled"]
    advice = (
        "say what they are with `theodolite dataset label` and --labels FILE, or, if you know that all are good, add "
        "--known-good"
    )
    if not table.rows(Known.CLEAN) and request.known_good:
        raise ConfigError("no clean session could be read in these recordings; `theodolite scan` on them says why")
    if not table.rows(Known.CLEAN):
        raise ConfigError(f"no session is known to be clean, and a threshold is above clean sessions: {advice}")
    if unlabeled:
        say(f"warning: {counted(unlabeled, 'session')} without a label left out: {advice}")


def _samples(kept: Kept, sessions: Sessions, request: Request) -> Iterator[Sample]:
    """Yield the samples of what is kept, in the order of the dataset; say how many sessions have none.

    Those that name no agent or no model are of the one that was named. Counts those that had no label: it depends on
    their findings what they are.
    """
    why: Counter[str] = Counter()
    marked = 0
    models = (request.agent_model,) if request.agent_model else ()
    for line in kept.lines():
        if line.unlabeled:
            marked += line.sample is not None
            sessions.counts["unlabeled" if line.sample is None else str(line.sample.known)] += 1
        elif line.sample is None:
            why[line.why] += 1
        if line.sample is not None:
            sample = line.sample
            yield replace(sample, agent=sample.agent or request.agent, models=sample.models or models)
    if marked:
        say(f"{counted(marked, 'session')} without a label counted as clean, since each finding is a false alarm")
    for reason, count in why.items():
        say(f"warning: {counted(count, 'session')} left out: {reason}")


def replay_sessions(
    pieces: Iterator[Piece],
    instrument: Instrument,
    request: Replayed,
    watch: Watch,
    marks: tuple[Suppression, ...] = (),
) -> Iterator[list[Line]]:
    """Yield what became of the sessions, as they come to their end, until it is stopped."""
    if request.model is None:
        calibration = "" if request.calibration is None else str(request.calibration)
        plan = Plan(settings=replace(instrument.settings, calibration=""), calibration=calibration)
        sampling = Sampling(plan, parts_in(instrument.monitor.fleet.bands), marks)
        yield from samples(watch.stop.until(pieces), sampling, request.jobs)
    else:
        waiting = partial(Waiting, answered=watch.answered, stop=watch.stop, progress=watch.progress)
        yield from _probed(watch.stop.until(pieces), instrument, request.probes, waiting, marks)
    watch.stop.check()


def _kept(
    sessions: Sessions,
    kept: Kept,
    instrument: Instrument,
    request: Request,
    answered: Answered,
    *,
    marks: tuple[Suppression, ...],
) -> None:
    """Replay what is not done, and keep it. Raises KeyboardInterrupt when it is stopped, and says how to go on."""
    progress, stop = Progress(sessions.files, doing="replaying"), Stop()
    before = len(kept.done)
    if before:
        say(f"going on: {counted(before, 'session')} of a run that was interrupted are done")
    try:
        with stop, progress:
            pieces = sessions.pieces(frozenset(kept.done), progress)
            watch = Watch(progress, stop, answered)
            for lines in replay_sessions(pieces, instrument, request, watch, marks):
                kept.add(lines)
                progress.sessions += len(lines)
    except KeyboardInterrupt:
        say(f"stopped: {counted(before + progress.sessions, 'session')} are done; the same command goes on from there")
        raise


def _probed(
    pieces: Iterator[Piece],
    instrument: Instrument,
    probes: int,
    made: Callable[..., Waiting],
    marks: tuple[Suppression, ...],
) -> Iterator[list[Line]]:
    from theodolite.runtime.prober import Prober  # noqa: PLC0415 - an event loop, which nobody else needs

    fleet = instrument.monitor.fleet
    with Prober(fleet.panel, reason="theodolite calibrate", probes=probes) as prober:
        waiting = made(prober, foresees=partial(foreseen, instrument=instrument))
        for lines in probed(pieces, instrument.monitor, waiting, parts_in(fleet.bands), marks):
            # One that was cut short is begun anew when it goes on.
            yield [line for line in lines if line.sample is None or line.sample.session not in waiting.cut]


def _day(text: str) -> str:
    try:
        day = date.fromisoformat(text).isoformat()
    except ValueError:
        day = ""
    if day != text:
        raise ConfigError(f"--date is a day as 2026-11-30, not {text!r}")
    return day
