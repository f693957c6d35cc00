"""Probes of recorded sessions, from the arguments to the exit status."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from functools import partial

from theodolite.cli.asking import of_recordings, with_model, with_system
from theodolite.cli.choices import Form
from theodolite.cli.estimating import estimated
from theodolite.cli.exits import FINDING, NOT_JUDGED, NOTHING
from theodolite.cli.judging import Judging, Verb, probed, wired
from theodolite.cli.judging import Request as Judgeable
from theodolite.cli.output import Show, involved, spared
from theodolite.config.settings import Settings, read_settings
from theodolite.core.errors import ConfigError
from theodolite.core.reader import Unreadable
from theodolite.core.reading import Failure, Reading
from theodolite.detectors.behavior.probe import ProbeType
from theodolite.readers.detection import find_recordings
from theodolite.reports.escaping import inert
from theodolite.reports.findings import Finding, findings
from theodolite.reports.layout import Block, Heading, Paragraph, Span, Style, counted
from theodolite.reports.probes import DETECTOR, probe_blocks, probe_signals, used
from theodolite.reports.session import place
from theodolite.reports.totals import NOWHERE, Origin, Run, Totals
from theodolite.reports.triage import Triaged
from theodolite.runtime.replay import Sighting

__all__ = ("PROBES", "Request", "probe_recordings", "settings_of")

# Probes of a session: one of each type.
PROBES = len(ProbeType)
PROBE = Verb("probe", "probing", "answered")
# Parts that are listed; more are counted, and --format json has them.
PARTS = 50


class Request(Judgeable, frozen=True, kw_only=True):
    """What was asked for: the arguments of `probe`."""

    session: str | None = None
    estimate: bool = False
    probes: int = PROBES


def settings_of(request: Request) -> Settings:
    """Return the settings under which sessions are probed. Raises ConfigError where nobody is named to answer."""
    settings = with_model(read_settings(request.config), request.model)
    if not settings.panel.subject:
        raise ConfigError("no model is named to answer: give --model, or name a subject under [panel] in the settings")
    if not request.paths:
        raise ConfigError("no recording is named to probe: give its path; --gate alone goes without")
    if request.estimate and request.form is not Form.TEXT:
        raise ConfigError("an estimate has no other form than text: leave --format out")
    return of_recordings(with_system(settings, request.system), probes=request.probes)


def probe_recordings(request: Request) -> int:
    """Probe, write the report, and return the exit status. Raises TheodoliteError and KeyboardInterrupt."""
    settings = settings_of(request)
    files = find_recordings(request.paths)
    spared(request.output, *files, *involved(request, settings))
    with wired(settings, request, asks=not request.estimate) as instrument:
        if request.estimate:
            return estimated(request, instrument, files, only=request.session, probes=request.probes)
        judging = Judging(PROBE, request, instrument, files, only=request.session)
        answered = _Answered()
        judging.report(partial(probed, reason="theodolite probe", probes=request.probes), answered, text=_Text)
    if request.form is Form.JSONL or request.output is not None:
        judging.say_result()
    if answered.found:
        return FINDING
    return NOTHING if answered.all and not judging.totals.unread else NOT_JUDGED


class _Answered:
    """Notes whether every session was answered for, and that there was one; `found`: a probe found something."""

    def __init__(self) -> None:
        self.found = False
        self._sessions = 0
        self._answered = 0

    @property
    def all(self) -> bool:
        return 0 < self._sessions == self._answered

    def take(self, sighting: Sighting, origin: Origin) -> Origin:
        signals = probe_signals(sighting)
        self._sessions += 1
        self.found |= any(map(_of_probes, findings(sighting)))
        self._answered += bool(signals) and not any(isinstance(signal.said, Failure) for signal in signals)
        return origin

    def result(self, *, complete: bool) -> Triaged:
        del complete
        return Triaged()


def _of_probes(finding: Finding) -> bool:
    """Whether a finding is that of the probes: their own, or one of the whole session to which they bring most."""
    said = finding.worst.signal.said
    if finding.code != "fusion.session" or not isinstance(said, Reading):
        return finding.code.startswith(f"{DETECTOR}.")
    calls, probes = said.fact("calls"), said.fact(DETECTOR)
    return isinstance(calls, float) and isinstance(probes, float) and probes > calls


def _together(sighting: Sighting) -> Iterator[Block]:
    """Yield what the probes of a session are a finding of under another name than their own."""
    codes = [finding.code for finding in findings(sighting) if _of_probes(finding)]
    for code in codes:
        if not code.startswith(f"{DETECTOR}."):
            yield Paragraph((Span(f"{code}: the probes of this session together are a finding", Style.BAD),))


class _Text:
    """The report for people: of each session both answers, then what could not be read, and what was used."""

    def __init__(self, show: Show) -> None:
        self._show = show
        self._told: list[Block] = []
        self._parts: list[Unreadable] = []

    def add(self, item: Sighting | Unreadable, origin: Origin = NOWHERE) -> None:
        del origin
        if isinstance(item, Sighting):
            self._told.extend(probe_blocks(item))
            self._told.extend(_together(item))
        self._parts += (item.unreadable if isinstance(item, Sighting) else (item,))[: PARTS - len(self._parts)]

    def end(self, totals: Totals, run: Run) -> None:
        self._show(self._blocks(totals, run))

    def _blocks(self, totals: Totals, run: Run) -> Iterator[Block]:
        if not run.complete:
            yield Paragraph((Span("The probing was stopped: this is what was answered until then.", Style.WARN),), 0)
        yield from self._told
        if totals.unread:
            yield Heading((Span("What could not be read", Style.STRONG),))
            yield from self._unread(totals.unread)
        yield Heading((Span("Used", Style.STRONG),))
        if run.asked is not None:
            yield Paragraph((Span(used(run.asked)),))
        if run.store:
            yield Paragraph((Span(f"{counted(run.records, 'record')} kept in {inert(run.store)}"),))

    def _unread(self, count: int) -> Generator[Block, None, None]:
        for part in self._parts:
            yield Paragraph((Span(inert(place(part)), Style.STRONG), Span(inert(part.reason))))
        more = count - sum(part.parts for part in self._parts)
        if more > 0:
            yield Paragraph((Span(f"{counted(more, 'more part')}: see --format json", Style.QUIET),))
