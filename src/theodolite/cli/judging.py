"""Recordings judged one after the other, into a report, to their end or until somebody stops it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from theodolite.cli.answered import Answered, foreseen
from theodolite.cli.choices import Form
from theodolite.cli.exits import say
from theodolite.cli.output import Show, reporting
from theodolite.cli.progress import Progress
from theodolite.cli.recordings import Recordings
from theodolite.cli.stopping import Stop
from theodolite.cli.unprobed import Prompts
from theodolite.cli.waiting import Waiting
from theodolite.config.plugins import PluginWarning
from theodolite.config.settings import Settings, nearest, trusted_tools
from theodolite.config.wiring import Instrument, wire
from theodolite.core.calibration import Calibration
from theodolite.core.errors import ConfigError, TheodoliteError
from theodolite.core.event import SessionEnded, ToolCallProposed, ToolsDeclared
from theodolite.core.reader import Recorded, Unreadable
from theodolite.core.text import printable
from theodolite.reports.layout import counted
from theodolite.reports.pages import pages_of
from theodolite.reports.probes import used
from theodolite.reports.text import tally
from theodolite.reports.timeline import thresholds
from theodolite.reports.totals import Origin, Report, Run, Totals
from theodolite.reports.triage import Triaged
from theodolite.runtime.population import PopulationWatch
from theodolite.runtime.purse import Spent
from theodolite.runtime.replay import Sighting, replay

__all__ = ("Judged", "Judging", "Request", "Taking", "Verb", "alone", "probed", "wired")


# Sessions that were cut short which are named.
_NAMED = 5


class Request(Struct, frozen=True, kw_only=True):
    """What `scan` and `probe` may be asked for alike."""

    paths: tuple[Path, ...]
    form: Form = Form.TEXT
    output: Path | None = None
    store: Path | None = None
    config: Path | None = None
    reader: str | None = None
    model: str | None = None
    system: Path | None = None


class Verb(Struct, frozen=True):
    """What is done, in the words of its lines: to scan, scanning, judged."""

    name: str
    doing: str
    done: str


@contextmanager
def wired(
    settings: Settings,
    request: Request,
    *,
    calibration: Path | Calibration | None = None,
    asks: bool = True,
    answered: Answered | None = None,
) -> Generator[Instrument, None, None]:
    """Give the instrument, and say in a line each which plug-ins were left out.

    Without `asks` nobody is asked and nothing is kept; `answered` counts what models answer. Raises what `wire` does,
    and ConfigError for a reader that is not there.
    """
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", PluginWarning)
        if not asks:
            settings = replace(settings, store=replace(settings.store, path="", raw_events=""))
        instrument = wire(
            settings,
            store=request.store if asks else None,
            calibration=calibration,
            asks=asks,
            heard=None if answered is None else answered.heard,
        )
    for warning in said:
        say(f"warning: {warning.message}")
    with instrument:
        names = [reader.name for reader in instrument.readers]
        if request.reader is not None and request.reader not in names:
            raise ConfigError(f"no reader is named {request.reader!r}: {nearest(request.reader, names)}")
        yield instrument


class Taking(Protocol):
    """What a verb does with each session before that is reported."""

    def take(self, sighting: Sighting, origin: Origin) -> Origin:
        """Return what is known of a session beside what was judged of it."""
        ...

    def result(self, *, complete: bool) -> Triaged:
        """Return what told new findings from others; `complete` says that all was seen."""
        ...


class Judging:
    """The sessions of some recordings on their way into a report.

    `totals` counts what was reported. A stop, by a signal or by an error, ends it: what came to its end until then is
    reported, what is half-read or half-answered is not. `prompts` are those of the sessions that were read.
    """

    def __init__(
        self, verb: Verb, request: Request, instrument: Instrument, files: Sequence[Path], *, only: str | None = None
    ) -> None:
        self.totals = Totals()
        self.instrument = instrument
        self.stop = Stop()
        self.held = Recordings(files, instrument.readers, reader=request.reader, kept=instrument.store)
        streams = request.form is not Form.TEXT and request.output is None
        self.progress = Progress(files, doing=verb.doing, streams=streams)
        self.cut: dict[str, int] = {}
        self.prompts = Prompts(instrument.settings)
        self._verb = verb
        self._request = request
        self._only = only
        self._ended: set[str] = set()
        self._told: set[str] = set()
        self._unmet = set(instrument.settings.tools)
        fleet = instrument.monitor.fleet
        self._population = PopulationWatch.of(fleet.calibration, fleet.speakers)

    def report(self, judged: Judged, taking: Taking, *, text: Callable[[Show], Report] | None = None) -> None:
        """Judge all, and write the report. Raises what stopped it, when that was told.

        `text` makes the report for people, where it is not the one of a scan.
        """
        fleet, form, output = self.instrument.monitor.fleet, self._request.form, self._request.output
        scores = thresholds(fleet.bands, fleet.calibration)
        pages = pages_of(self.instrument.monitor.detectors)
        with self.stop, reporting(form, output, pages, scores, text=text) as report:
            self._write(report, judged, taking, self._run(scores))
        if self.held.continued:
            say(_continued(self.held.continued, self._store, self._verb.name))
        if self._population is not None and (words := self._population.state.words):
            say(words)

    def say_result(self) -> None:
        """Say in a line what it came to."""
        say(_line(self.totals))

    def recorded(self) -> Generator[Recorded, None, None]:
        """Yield what the files hold. One of an unknown form stops it where it was named, not in a folder."""
        for file in self.held.files:
            try:
                for item in self.progress.counting(self.held.read(file, self.progress.reached)):
                    if isinstance(item, SessionEnded):
                        self._ended.add(item.session)
                    if self._wanted(item.session) or (isinstance(item, Unreadable) and not item.session):
                        self._meet(item)
                        yield item
            except ConfigError as error:
                if file in self._request.paths:
                    raise
                yield Unreadable(file=str(file), line=0, reason=str(error).removeprefix(f"{file} "))
            self.progress.filed()
        if self._only is not None and self._only not in self.held.origins:
            known = nearest(self._only, list(self.held.origins))
            raise ConfigError(f"no recording holds a session {self._only!r}; {known}")

    def _meet(self, item: Recorded) -> None:
        """Note the prompt, and the tools that are declared or called, of those that the settings name."""
        self.prompts.note(item)
        if isinstance(item, ToolsDeclared):
            self._unmet.difference_update([tool.name for tool in item.tools])
        elif isinstance(item, ToolCallProposed):
            self._unmet.discard(item.tool)

    def _wanted(self, session: str) -> bool:
        return self._only in {None, session}

    def _run(self, scores: dict[str, float]) -> Run:
        fitted = self.instrument.monitor.fleet.calibration
        return Run(
            version=version("theodolite"),
            calibration=fitted.id if fitted else None,
            store=self._store,
            thresholds=scores,
            trusted=trusted_tools(self.instrument.settings.tools),
        )

    def _write(self, report: Report, judged: Judged, taking: Taking, run: Run) -> None:
        store = self.instrument.store
        try:
            with self.progress, closing(judged(self)) as sightings:
                for item in sightings:
                    if self._whole(item):
                        self._take(item, report, taking)
            self.stop.check()
            if store is not None:
                store.flush()
                run = replace(run, records=self.held.records)
        except (KeyboardInterrupt, TheodoliteError) as stop:
            if self.totals.sessions or isinstance(stop, KeyboardInterrupt):
                triage = taking.result(complete=False)
                report.end(self.totals, replace(self._asking(run), complete=False, store="", triage=triage))
                self._say_stopped()
            raise
        # Where a scan was stopped, or nothing was read, nobody knows which names nobody would have met.
        unmet = tuple(sorted(self._unmet)) if self.totals.sessions else ()
        report.end(self.totals, replace(self._asking(run), triage=taking.result(complete=True), unmet=unmet))

    def _asking(self, run: Run) -> Run:
        """Return what there is to say of the scan, with what was used of models until now."""
        reuse = self.instrument.monitor.fleet.reuse
        population = None if self._population is None else self._population.state
        run = replace(run, asked=self._asked, repeatable=reuse.hits + reuse.misses, known=reuse.hits)
        return replace(run, population=population)

    def _whole(self, item: Sighting | Unreadable) -> bool:
        """Whether a session came to its end before the stop, if there was one."""
        if self.stop.error is None or isinstance(item, Unreadable):
            return True
        return item.session in self._ended and item.session not in self.cut

    def _take(self, item: Sighting | Unreadable, report: Report, taking: Taking) -> None:
        origin = self.held.origin(item.session)
        if isinstance(item, Sighting):
            origin = taking.take(item, origin)
            self._told.add(item.session)
            self._count(item)
        self.totals.add(item, origin)
        report.add(item, origin)
        self.progress.sessions = self.totals.sessions

    def _count(self, item: Sighting) -> None:
        """Count a session that was read whole in its population."""
        if self._population is not None and not item.unreadable:
            said = [signal for decision in item.decisions for signal in decision.signals]
            self._population.take(item.agent, item.models, self._population.highest(said))

    @property
    def _asked(self) -> Spent | None:
        """What was used of models; None where nobody was there to be asked."""
        asks = bool(self.instrument.settings.panel.subject)
        return self.instrument.monitor.fleet.purse.spent if asks else None

    @property
    def _store(self) -> str:
        """The name of the file in which evidence is kept, or nothing."""
        if self.instrument.store is None:
            return ""
        settings = self.instrument.settings
        return str(self._request.store or Path(settings.folder, settings.store.path))

    def _say_stopped(self) -> None:
        """Say what was done, and how to go on."""
        kept, asked = self.instrument.store is not None, self._asked
        used_up = "" if asked is None else f" Asked of models: {used(asked)}."
        done = f"{self._verb.done}{' and kept' if kept else ''}"
        say(f"stopped: what was {done} until here is {_line(self.totals)}{used_up}")
        for name, answered in list(self.cut.items())[:_NAMED]:
            if answered:
                probes = counted(answered, "probe")
                say(f"cut short: {probes} of {printable(name)} had answers, which are not reported: it is begun anew")
        origins = self.held.origins.items()
        waiting = [origin.file for name, origin in origins if name not in self._told and self._wanted(name)]
        files = [printable(str(file)) for file in self.held.files]
        at = files.index(waiting[0]) if waiting else self.progress.files
        if at < len(files) and len(files) > 1:
            other = ", with another --store, since this one holds what was kept" if kept else ""
            through = f"{at:,} of {counted(len(files), 'file')} {'is' if at == 1 else 'are'} done"
            say(f"to go on: {through}; {self._verb.name} again from {files[at]} on{other}")


Judged = Callable[[Judging], Generator[Sighting | Unreadable, None, None]]
"""Who judges what was recorded."""


def alone(under: Judging) -> Generator[Sighting | Unreadable, None, None]:
    """Judge in this process, and ask nobody."""
    yield from replay(under.stop.until(under.recorded()), under.instrument.monitor)


def probed(
    under: Judging, *, reason: str, answered: Answered, probes: int = 1
) -> Generator[Sighting | Unreadable, None, None]:
    """Judge in this process, and have each session probed when it is over, so many times."""
    from theodolite.runtime.prober import Prober  # noqa: PLC0415 - an event loop, which nobody else needs

    fleet = under.instrument.monitor.fleet
    with Prober(fleet.panel, reason=reason, probes=probes) as prober:
        foresees = partial(foreseen, instrument=under.instrument)
        waiting = Waiting(prober, answered, foresees, under.stop, under.progress)
        under.cut = waiting.cut
        yield from replay(under.stop.until(under.recorded()), under.instrument.monitor, waiting)
        under.stop.check()  # what is still under way is cancelled, and not waited for


def _line(totals: Totals) -> str:
    return "".join(span.text for span in tally(totals))


def _continued(sessions: Sequence[str], store: str, verb: str) -> str:
    more = f" and {len(sessions) - 1:,} more" if len(sessions) > 1 else ""
    return (
        f"warning: {store} held records of the session {sessions[0]}{more} before this {verb}: the new records "
        f"follow them in the same chain. To keep two apart, give each a store of its own"
    )
