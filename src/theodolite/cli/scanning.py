"""From recordings to a report."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from datetime import date
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from theodolite.cli.answered import Answered
from theodolite.cli.asking import of_recordings, without_models
from theodolite.cli.asking import settings_of as asked_settings
from theodolite.cli.cautions import cautions
from theodolite.cli.choices import Form, Jobs, Reached
from theodolite.cli.exits import FINDING, NOT_JUDGED, NOTHING, say
from theodolite.cli.judging import Judged, Judging, Verb, alone, probed, wired
from theodolite.cli.judging import Request as Judgeable
from theodolite.cli.output import involved, spared
from theodolite.cli.parallel import Plan, judge
from theodolite.cli.triaging import Baseline, triage_of
from theodolite.config.models import lacking
from theodolite.config.settings import Settings
from theodolite.config.wiring import Instrument
from theodolite.core.errors import ConfigError
from theodolite.core.policy import Action, Outcome, highest
from theodolite.core.reader import Unreadable
from theodolite.readers.detection import find_recordings
from theodolite.reports.layout import counted
from theodolite.reports.pages import pages_of
from theodolite.reports.text import TextReport, triage_lines
from theodolite.reports.totals import Origin, Totals
from theodolite.reports.triage import Triage, Triaged
from theodolite.runtime.replay import Sighting

__all__ = ("Request", "scan_recordings", "status")

SCAN = Verb("scan", "scanning", "judged")


class Request(Judgeable, frozen=True, kw_only=True):
    """What was asked for: the arguments of `scan`. `today` says which suppressions are in force.

    `calls`: each call is to be told.
    """

    today: date
    jobs: Jobs = Jobs()
    calibration: Path | None = None
    baseline: Path | None = None
    write_baseline: Path | None = None
    suppressions: Path | None = None
    probes: bool = True
    fail_on: Reached | None = None
    calls: bool = False


def scan_recordings(request: Request) -> int:
    """Scan, write the report, and return the exit status. Raises TheodoliteError and KeyboardInterrupt."""
    if request.calls and request.form is not Form.TEXT:
        raise ConfigError("--calls is for text: leave it out; json and jsonl always tell of every call")
    settings = asked_settings(request.config, model=request.model, system=request.system)
    settings = of_recordings(settings) if request.probes else without_models(settings)
    lacks = lacking(settings.panel, settings.models, Path(settings.folder))
    if lacks:  # a scan tells what it can without probes
        say(f"warning: {lacks}; until then no session is probed")
    triage = triage_of(request.baseline, request.suppressions, request.today)
    files = find_recordings(request.paths)
    spared(request.output, *files, *involved(request, settings))
    # A baseline may be written anew in its place; --output was told apart from it just now.
    kept = involved(replace(request, write_baseline=None, baseline=None), settings)
    spared(request.write_baseline, *files, *kept, option="--write-baseline")
    baseline = None if request.write_baseline is None else Baseline(request.write_baseline)
    fail_on = None if request.fail_on is None else Action(request.fail_on)
    answered = Answered()
    with wired(settings, request, calibration=request.calibration, answered=answered) as instrument:
        _check(request, instrument)
        for caution in cautions(instrument, fail_on):
            say(f"warning: {caution}")
        judging = Judging(SCAN, request, instrument, files)
        pages = pages_of(instrument.monitor.detectors)
        text = partial(TextReport, pages=pages, calls=True) if request.calls else None
        judging.report(_judged(request, settings, answered), _Triaging(triage, baseline), text=text)
    if request.form is Form.JSONL or request.output is not None:
        judging.say_result()
        for line in triage_lines(judging.totals, triage.result(complete=True)):
            say(line)
    if baseline is not None:
        say(f"{counted(baseline.write(), 'finding')} written to the baseline {request.write_baseline}")
    return status(judging.totals, fail_on)


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


def _check(request: Request, instrument: Instrument) -> None:
    if not request.jobs.alone and instrument.settings.store.raw_events:
        raise ConfigError("store.raw_events records a session from one process: leave --jobs out, or raw_events")
    if not request.jobs.alone and instrument.settings.panel.subject:
        raise ConfigError("models are asked from one process: leave --jobs out, or add --no-probes")


class _Triaging:
    """Marks the findings of each session that are not new, and collects those of a baseline."""

    def __init__(self, triage: Triage, baseline: Baseline | None) -> None:
        self._triage = triage
        self._baseline = baseline

    def take(self, sighting: Sighting, origin: Origin) -> Origin:
        marked = replace(origin, marks=self._triage.marks(sighting))
        if self._baseline is not None:
            self._baseline.add(sighting, marked)
        return marked

    def result(self, *, complete: bool) -> Triaged:
        return self._triage.result(complete=complete)


def _judged(request: Request, settings: Settings, answered: Answered) -> Judged:
    """Return who judges: this process, with models or without, or several."""
    if settings.panel.subject:
        return partial(probed, reason="theodolite scan", answered=answered)
    return alone if request.jobs.alone else partial(_split, request=request)


def _split(under: Judging, *, request: Request) -> Generator[Sighting | Unreadable, None, None]:
    instrument = under.instrument
    calibration = "" if request.calibration is None else str(request.calibration)
    plan = Plan(settings=instrument.settings, calibration=calibration, keeps=instrument.store is not None)
    with closing(under.recorded()) as recorded:
        yield from under.stop.until(judge(recorded, plan, jobs=request.jobs, store=instrument.store))
