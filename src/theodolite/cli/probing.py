"""Probes of recorded sessions, from the arguments to the exit status."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator
from functools import partial

from theodolite.cli.answered import Answered
from theodolite.cli.asking import check_models, of_recordings
from theodolite.cli.asking import settings_of as asked_settings
from theodolite.cli.choices import Form
from theodolite.cli.estimating import estimated
from theodolite.cli.exits import FINDING, NOT_JUDGED, NOTHING
from theodolite.cli.judging import Judging, Verb, probed, wired
from theodolite.cli.judging import Request as Judgeable
from theodolite.cli.output import Show, involved, spared
from theodolite.cli.recordings import probed_before
from theodolite.cli.unprobed import Prompts, Unprobed
from theodolite.config.settings import Settings
from theodolite.core.errors import ConfigError
from theodolite.core.reader import Unreadable
from theodolite.core.reading import Failure
from theodolite.detectors.behavior.probe import ProbeType
from theodolite.readers.detection import find_recordings
from theodolite.reports.document import ProbedReport, ProbeVerdict
from theodolite.reports.escaping import inert
from theodolite.reports.findings import findings
from theodolite.reports.layout import Block, Heading, Paragraph, Span, Style, counted
from theodolite.reports.probe_verdict import WORDS, came_to, of_probes
from theodolite.reports.probes import probe_blocks, probe_signals, used, verdict_blocks
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
    """Return the settings under which recordings are probed. Raises ConfigError where nobody is named to answer."""
    settings = asked_settings(request.config, model=request.model, system=request.system)
    if not request.paths:
        raise ConfigError(
            "no recording is named to probe: give its path, as in theodolite probe session.json --model local; --gate "
            "alone goes without"
        )
    if not settings.panel.subject:
        raise ConfigError(
            "no model is named to answer: give --model, as --model local for the embedded one, or name a subject under "
            "[panel] in the settings"
        )
    if request.estimate and request.form is not Form.TEXT:
        raise ConfigError("an estimate has no other form than text: leave --format out")
    if not request.estimate:
        check_models(settings)
    return settings


def probe_recordings(request: Request) -> int:
    """Probe, write the report, and return the exit status. Raises TheodoliteError and KeyboardInterrupt."""
    settings = settings_of(request)
    files = find_recordings(request.paths)
    settings = of_recordings(settings, probes=request.probes, before=probed_before(files))
    spared(request.output, *files, *involved(request, settings))
    counts = Answered()
    with wired(settings, request, asks=not request.estimate, answered=counts) as instrument:
        if request.estimate:
            return estimated(request, instrument, files, only=request.session, probes=request.probes)
        judging = Judging(PROBE, request, instrument, files, only=request.session)
        answered = _Answered()
        road = partial(probed, reason="theodolite probe", answered=counts, probes=request.probes)
        judging.report(road, answered, text=partial(_Text, judging.prompts))
    if request.form is Form.JSONL or request.output is not None:
        judging.say_result()
    if answered.found:
        return FINDING
    return NOTHING if answered.all and not judging.totals.unread else NOT_JUDGED


class _Answered:
    """Notes whether of every session something follows, and that there was one; `found`: a probe found something."""

    def __init__(self) -> None:
        self.found = False
        self._sessions = 0
        self._answered = 0

    @property
    def all(self) -> bool:
        return 0 < self._sessions == self._answered

    def take(self, sighting: Sighting, origin: Origin) -> Origin:
        self._sessions += 1
        self.found |= any(map(of_probes, findings(sighting)))
        came = came_to(sighting)
        failed = any(isinstance(signal.said, Failure) for signal in probe_signals(sighting))
        self._answered += came is not None and came.verdict is ProbeVerdict.NOTHING_FOUND and not failed
        return origin

    def result(self, *, complete: bool) -> Triaged:
        del complete
        return Triaged()


class _Text:
    """The report for people: of each session both answers, then what was not read, what was used, and a verdict."""

    def __init__(self, prompts: Prompts, show: Show) -> None:
        self._show = show
        self._unprobed = Unprobed(prompts)
        self._told: list[Block] = []
        self._verdicts: list[ProbedReport | None] = []
        self._parts: list[Unreadable] = []

    def add(self, item: Sighting | Unreadable, origin: Origin = NOWHERE) -> None:
        if isinstance(item, Sighting):
            self._unprobed.add(item, origin)
            if self._verdicts:  # that of a single session closes the report
                self._told.extend(verdict_blocks(self._verdicts[-1]))
            self._told.extend(probe_blocks(item))
            self._verdicts.append(came_to(item))
        self._parts += (item.unreadable if isinstance(item, Sighting) else (item,))[: PARTS - len(self._parts)]

    def end(self, totals: Totals, run: Run) -> None:
        self._show(self._blocks(totals, run))

    def _blocks(self, totals: Totals, run: Run) -> Iterator[Block]:
        if not run.complete:
            yield Paragraph((Span("The probing was stopped: this is what was answered until then.", Style.WARN),), 0)
        yield from self._told
        if len(self._verdicts) > 1:
            yield from verdict_blocks(self._verdicts[-1])
        if self._unprobed.count:
            yield Heading((Span("What was not probed", Style.STRONG),))
            yield from self._unprobed.blocks()
        if totals.unread:
            yield Heading((Span("What could not be read", Style.STRONG),))
            yield from self._unread(totals.unread)
        yield Heading((Span("Used", Style.STRONG),))
        if run.asked is not None:
            yield Paragraph((Span(used(run.asked)),))
        if run.store:
            yield Paragraph((Span(f"{counted(run.records, 'record')} kept in {inert(run.store)}"),))
        yield Heading((Span("Verdict", Style.STRONG),))
        yield from self._verdict()

    def _verdict(self) -> Iterator[Block]:
        """Yield in a line what it all comes to: of one session in full, of several how many came to what."""
        found = [one for one in self._verdicts if one is not None]
        if len(self._verdicts) == len(found) == 1:
            yield from verdict_blocks(found[0])
            return
        counts = Counter(one.verdict for one in found)
        told = [f"{counts[verdict]:,} {words}" for verdict, words in WORDS.items() if counts[verdict]]
        if len(found) < len(self._verdicts):
            told.append(f"{len(self._verdicts) - len(found):,} not probed")
        sessions = counted(len(self._verdicts), "session")
        yield Paragraph((Span(f"{sessions}: {', '.join(told)}" if told else "no session was probed"),))

    def _unread(self, count: int) -> Generator[Block, None, None]:
        for part in self._parts:
            yield Paragraph((Span(inert(place(part)), Style.STRONG), Span(inert(part.reason))))
        more = count - sum(part.parts for part in self._parts)
        if more > 0:
            yield Paragraph((Span(f"{counted(more, 'more part')}: see --format json", Style.QUIET),))
