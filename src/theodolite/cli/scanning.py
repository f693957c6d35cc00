"""From recordings to a report."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from datetime import date
from importlib.metadata import version
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from theodolite.cli.asking import with_model, with_system, without_models
from theodolite.cli.cautions import cautions
from theodolite.cli.choices import Form, Reached
from theodolite.cli.exits import FINDING, NOT_JUDGED, NOTHING, say
from theodolite.cli.output import reporting
from theodolite.cli.parallel import Plan, judge
from theodolite.cli.progress import Progress
from theodolite.cli.recordings import Recordings
from theodolite.cli.triaging import Baseline, triage_of
from theodolite.config.plugins import PluginWarning
from theodolite.config.settings import Settings, nearest, read_settings
from theodolite.config.wiring import Instrument, wire
from theodolite.core.errors import ConfigError, TheodoliteError
from theodolite.core.policy import Action, Outcome, highest
from theodolite.core.reader import Recorded, Unreadable
from theodolite.core.text import printable
from theodolite.readers.detection import find_recordings
from theodolite.reports.layout import counted
from theodolite.reports.pages import pages_of
from theodolite.reports.text import tally, triage_lines
from theodolite.reports.timeline import thresholds
from theodolite.reports.totals import Report, Run, Totals
from theodolite.reports.triage import Triage
from theodolite.runtime.purse import Spent
from theodolite.runtime.replay import Sighting, replay

__all__ = ("Request", "scan_recordings", "status")


# What a SQLite file begins with: https://www.sqlite.org/fileformat.html, section 1.2.
SQLITE = b"SQLite format 3\0"


class Request(Struct, frozen=True, kw_only=True):
    """What was asked for: the arguments of `scan`. `today` says which suppressions are in force."""

    paths: tuple[Path, ...]
    today: date
    form: Form = Form.TEXT
    output: Path | None = None
    jobs: int = 1
    store: Path | None = None
    calibration: Path | None = None
    config: Path | None = None
    reader: str | None = None
    baseline: Path | None = None
    write_baseline: Path | None = None
    suppressions: Path | None = None
    model: str | None = None
    system: Path | None = None
    probes: bool = True
    fail_on: Reached | None = None


def scan_recordings(request: Request) -> int:
    """Scan, write the report, and return the exit status. Raises TheodoliteError and KeyboardInterrupt."""
    settings = with_system(with_model(read_settings(request.config), request.model), request.system)
    if not request.probes:
        settings = without_models(settings)
    triage = triage_of(request.baseline, request.suppressions, request.today)
    files = find_recordings(request.paths)
    _spare(request, files)
    baseline = None if request.write_baseline is None else Baseline(request.write_baseline)
    totals = Totals()
    fail_on = None if request.fail_on is None else Action(request.fail_on)
    with _wired(settings, request) as instrument:
        _check(request, instrument)
        for caution in cautions(instrument, fail_on):
            say(f"warning: {caution}")
        held = Recordings(files, instrument.readers, reader=request.reader, kept=instrument.store)
        fleet = instrument.monitor.fleet
        lines = thresholds(fleet.bands, fleet.calibration)
        with reporting(request.form, request.output, pages_of(instrument.monitor.detectors), lines) as report:
            _Scan(request, instrument, held, totals, triage, baseline).write(report)
        if held.continued:
            say(_continued(held.continued, _store(request, instrument)))
    if request.form is Form.JSONL or request.output is not None:
        say(_line(totals))
        for line in triage_lines(totals, triage.result(complete=True)):
            say(line)
    if baseline is not None:
        say(f"{counted(baseline.write(), 'finding')} written to the baseline {request.write_baseline}")
    return status(totals, fail_on)


def status(totals: Totals, fail_on: Action | None = None) -> int:
    """Return the exit status of a scan: a new finding before what could not be judged.

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
    named = (
        request.store,
        request.calibration,
        request.config,
        request.baseline,
        request.write_baseline,
        request.suppressions,
    )
    others = [*files, *(path for path in named if path is not None)]
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
    if request.jobs > 1 and instrument.settings.panel.subject:
        raise ConfigError("models are asked from one process: leave --jobs out, or add --no-probes")


class _Scan:
    """A scan under way."""

    def __init__(  # noqa: PLR0917 - all that one scan is about
        self,
        request: Request,
        instrument: Instrument,
        held: Recordings,
        totals: Totals,
        triage: Triage,
        baseline: Baseline | None,
    ) -> None:
        self._request = request
        self._instrument = instrument
        self._held = held
        self._totals = totals
        self._triage = triage
        self._baseline = baseline
        self._judged: set[str] = set()
        streams = request.form is not Form.TEXT and request.output is None
        self._progress = Progress(held.files, streams=streams)

    def write(self, report: Report) -> None:
        """Judge all, and write the report: of what was judged, where the scan is stopped."""
        fitted = self._instrument.monitor.fleet.calibration
        store = self._instrument.store
        run = Run(
            version=version("theodolite"),
            calibration=fitted.id if fitted else None,
            store=_store(self._request, self._instrument),
        )
        try:
            with self._progress, closing(_judged(self._recorded(), self._request, self._instrument)) as sightings:
                for item in sightings:
                    self._take(item, report)
            if store is not None:
                store.flush()
                run = replace(run, records=self._held.records)
            run = replace(run, asked=self._asked())
        except (KeyboardInterrupt, TheodoliteError) as stop:
            if self._totals.sessions or isinstance(stop, KeyboardInterrupt):
                result = self._triage.result(complete=False)
                report.end(self._totals, replace(run, complete=False, store="", triage=result, asked=self._asked()))
                self._say_stopped()
            raise
        report.end(self._totals, replace(run, triage=self._triage.result(complete=True)))

    def _take(self, item: Sighting | Unreadable, report: Report) -> None:
        origin = self._held.origin(item.session)
        if isinstance(item, Sighting):
            origin = replace(origin, marks=self._triage.marks(item))
            if self._baseline is not None:
                self._baseline.add(item, origin)
            self._judged.add(item.session)
        self._totals.add(item, origin)
        report.add(item, origin)
        self._progress.sessions = self._totals.sessions

    def _asked(self) -> Spent | None:
        """Return what was used of models; None where nobody was there to be asked."""
        asks = bool(self._instrument.settings.panel.subject)
        return self._instrument.monitor.fleet.purse.spent if asks else None

    def _say_stopped(self) -> None:
        """Say what was done, and how to go on."""
        kept = self._instrument.store is not None
        say(f"stopped: what was judged{' and kept' if kept else ''} until here is {_line(self._totals)}")
        waiting = [origin.file for name, origin in self._held.origins.items() if name not in self._judged]
        files = [printable(str(file)) for file in self._held.files]
        at = files.index(waiting[0]) if waiting else self._progress.files
        if at < len(files):
            other = ", with another --store, since this one holds what was kept" if kept else ""
            done = f"{at:,} of {counted(len(files), 'file')} {'is' if at == 1 else 'are'} done"
            say(f"to go on: {done}; scan again from {files[at]} on{other}")

    def _recorded(self) -> Iterator[Recorded]:
        """Yield what the files hold. One of an unknown form stops the scan where it was named, not in a folder."""
        progress = self._progress
        for file in self._held.files:
            try:
                yield from progress.counting(self._held.read(file, progress.reached))
            except ConfigError as error:
                if file in self._request.paths:
                    raise
                yield Unreadable(file=str(file), line=0, reason=str(error).removeprefix(f"{file} "))
            progress.filed()


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


def _judged(
    recorded: Iterator[Recorded], request: Request, instrument: Instrument
) -> Generator[Sighting | Unreadable, None, None]:
    if instrument.settings.panel.subject:
        from theodolite.runtime.prober import Prober  # noqa: PLC0415 - an event loop, which nobody else needs

        with Prober(instrument.monitor.fleet.panel, reason="theodolite scan") as prober:
            yield from replay(recorded, instrument.monitor, prober)
        return
    if request.jobs == 1:
        yield from replay(recorded, instrument.monitor)
        return
    calibration = "" if request.calibration is None else str(request.calibration)
    plan = Plan(settings=instrument.settings, calibration=calibration, keeps=instrument.store is not None)
    yield from judge(recorded, plan, jobs=request.jobs, store=instrument.store)


def _line(totals: Totals) -> str:
    return "".join(span.text for span in tally(totals))
