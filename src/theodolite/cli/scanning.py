"""From recordings to a report."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from theodolite.cli.cautions import cautions
from theodolite.cli.choices import Form, Reached
from theodolite.cli.exits import FINDING, NOT_JUDGED, NOTHING, say
from theodolite.cli.output import reporting
from theodolite.cli.parallel import Plan, judge
from theodolite.cli.progress import Progress
from theodolite.cli.recordings import Recordings
from theodolite.config.plugins import PluginWarning
from theodolite.config.settings import Settings, nearest, read_settings
from theodolite.config.wiring import Instrument, wire
from theodolite.core.errors import ConfigError, TheodoliteError
from theodolite.core.policy import Action, Outcome, highest
from theodolite.core.reader import Recorded, Unreadable
from theodolite.readers.detection import find_recordings
from theodolite.reports.pages import pages_of
from theodolite.reports.text import tally
from theodolite.reports.totals import Report, Run, Totals
from theodolite.runtime.replay import Sighting, replay

__all__ = ("Request", "scan_recordings", "status")


# What a SQLite file begins with: https://www.sqlite.org/fileformat.html, section 1.2.
SQLITE = b"SQLite format 3\0"


class Request(Struct, frozen=True, kw_only=True):
    """What was asked for: the arguments of `scan`."""

    paths: tuple[Path, ...]
    form: Form = Form.TEXT
    output: Path | None = None
    jobs: int = 1
    store: Path | None = None
    calibration: Path | None = None
    config: Path | None = None
    reader: str | None = None
    fail_on: Reached | None = None


def scan_recordings(request: Request) -> int:
    """Scan, write the report, and return the exit status. Raises TheodoliteError and KeyboardInterrupt."""
    settings = read_settings(request.config)
    files = find_recordings(request.paths)
    _spare(request, files)
    totals = Totals()
    fail_on = None if request.fail_on is None else Action(request.fail_on)
    with _wired(settings, request) as instrument:
        _check(request, instrument)
        for caution in cautions(instrument, fail_on):
            say(f"warning: {caution}")
        held = Recordings(files, instrument.readers, reader=request.reader, kept=instrument.store)
        with reporting(request.form, request.output, pages_of(instrument.monitor.detectors)) as report:
            _scan(request, instrument, held, report, totals)
        if held.continued:
            say(_continued(held.continued, _store(request, instrument)))
    if request.form is Form.JSONL or request.output is not None:
        say(_line(totals))
    return status(totals, fail_on)


def status(totals: Totals, fail_on: Action | None = None) -> int:
    """Return the exit status of a scan: a finding before what could not be judged.

    With `fail_on` a session counts as found when its action reaches it, and only then.
    """
    if fail_on is None:
        found = totals.outcomes[Outcome.FINDING] > 0
    else:
        found = any(highest((action, fail_on)) is action for action, count in totals.actions.items() if count)
    if found:
        return FINDING
    unjudged = totals.outcomes[Outcome.FAILED] or totals.outcomes[Outcome.NOT_ENOUGH_EVIDENCE] or totals.unread
    return NOT_JUDGED if unjudged or not totals.sessions else NOTHING


def _wired(settings: Settings, request: Request) -> Instrument:
    """Return the instrument, and say in a line each which plug-ins were left out."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", PluginWarning)
        instrument = wire(settings, store=request.store, calibration=request.calibration)
    for warning in said:
        say(f"warning: {warning.message}")
    return instrument


def _spare(request: Request, files: Sequence[Path]) -> None:
    """Refuse a report that would take the place of something else. Raises ConfigError."""
    if request.output is None:
        return
    others = [*files, *(path for path in (request.store, request.calibration, request.config) if path is not None)]
    target = request.output.resolve()
    for other in others:
        if target in {other.resolve(), other.with_name(f"{other.name}-wal").resolve()}:
            raise ConfigError(f"--output {request.output} is what this scan reads or keeps: name another file")
    if target.is_file():
        with target.open("rb") as there:
            if there.read(len(SQLITE)) == SQLITE:
                raise ConfigError(f"--output {request.output} is a database, and may be evidence: name another file")


def _check(request: Request, instrument: Instrument) -> None:
    names = [reader.name for reader in instrument.readers]
    if request.reader is not None and request.reader not in names:
        raise ConfigError(f"no reader is named {request.reader!r}: {nearest(request.reader, names)}")
    if request.jobs > 1 and instrument.settings.store.raw_events:
        raise ConfigError("store.raw_events records a session from one process: leave --jobs out, or raw_events")


def _scan(request: Request, instrument: Instrument, held: Recordings, report: Report, totals: Totals) -> None:
    fitted = instrument.monitor.fleet.calibration
    run = Run(
        version=version("theodolite"),
        calibration=fitted.id if fitted else None,
        store=_store(request, instrument),
    )
    try:
        with Progress(len(held.files), streams=request.form is not Form.TEXT and request.output is None) as progress:
            recorded = _recorded(request, held, progress)
            with closing(_judged(recorded, request, instrument)) as sightings:
                for item in sightings:
                    origin = held.origin(item.session)
                    totals.add(item, origin)
                    report.add(item, origin)
                    progress.sessions = totals.sessions
        if instrument.store is not None:
            instrument.store.flush()
            run = replace(run, records=held.records)
    except (KeyboardInterrupt, TheodoliteError) as stop:
        if totals.sessions or isinstance(stop, KeyboardInterrupt):
            report.end(totals, replace(run, complete=False, store=""))
            kept = "" if instrument.store is None else " and kept"
            say(f"stopped: what was judged{kept} until here is {_line(totals)}")
        raise
    report.end(totals, run)


def _store(request: Request, instrument: Instrument) -> str:
    """Return the name of the file in which evidence is kept, or nothing."""
    if instrument.store is None:
        return ""
    return str(request.store or Path(instrument.settings.folder, instrument.settings.store.path))


def _continued(sessions: Sequence[str], store: str) -> str:
    more = f" and {len(sessions) - 1:,} more" if len(sessions) > 1 else ""
    return (
        f"warning: {store} held records of the session {sessions[0]}{more} before this scan: the new records follow "
        "them in the same chain. To keep two scans apart, give each a store of its own"
    )


def _recorded(request: Request, held: Recordings, progress: Progress) -> Iterator[Recorded]:
    """Yield what the files hold. One of an unknown form stops the scan where it was named, not where it was found."""
    for place, file in enumerate(held.files):
        progress.files = place
        try:
            yield from progress.counting(held.read(file))
        except ConfigError as error:
            if file in request.paths:
                raise
            yield Unreadable(file=str(file), line=0, reason=str(error).removeprefix(f"{file} "))


def _judged(
    recorded: Iterator[Recorded], request: Request, instrument: Instrument
) -> Generator[Sighting | Unreadable, None, None]:
    if request.jobs == 1:
        yield from replay(recorded, instrument.monitor)
        return
    calibration = "" if request.calibration is None else str(request.calibration)
    plan = Plan(settings=instrument.settings, calibration=calibration, keeps=instrument.store is not None)
    yield from judge(recorded, plan, jobs=request.jobs, store=instrument.store)


def _line(totals: Totals) -> str:
    return "".join(span.text for span in tally(totals))
