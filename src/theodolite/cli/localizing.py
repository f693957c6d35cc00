"""Which message of a recorded session carries its drift, from the arguments to the exit status."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path

from msgspec import Struct

from theodolite.cli.answered import Answered, foreseen
from theodolite.cli.asking import of_recordings
from theodolite.cli.choices import Form
from theodolite.cli.estimating import estimated
from theodolite.cli.exits import FINDING, NOT_JUDGED, NOTHING, say
from theodolite.cli.judging import wired
from theodolite.cli.output import involved, spared
from theodolite.cli.pending import awaited
from theodolite.cli.probing import Request, settings_of
from theodolite.cli.progress import Display, span
from theodolite.cli.recordings import Recordings, probed_before
from theodolite.cli.telling import tell
from theodolite.config.settings import nearest
from theodolite.config.wiring import Instrument
from theodolite.core.detector import Asker
from theodolite.core.errors import ConfigError
from theodolite.core.policy import Decision
from theodolite.core.reader import Recorded, Unreadable
from theodolite.core.reading import Failure
from theodolite.detectors.behavior.arms import ProbeCase
from theodolite.detectors.behavior.detector import BehaviorDetector
from theodolite.detectors.behavior.localization import Ground, Localization, fragments, most_calls
from theodolite.readers.detection import find_recordings
from theodolite.reports.escaping import inert
from theodolite.reports.layout import Block, Heading, Paragraph, Span, Style, Table, counted
from theodolite.reports.limits import NAME, QUOTE
from theodolite.reports.probes import DETECTOR, probe_signals, used
from theodolite.runtime.drive import attempt
from theodolite.runtime.estimate import Estimate
from theodolite.runtime.localize import DRAWS, Culprit, Located, located, worst
from theodolite.runtime.meter import Meter
from theodolite.runtime.opened import opened
from theodolite.runtime.purse import Spent
from theodolite.runtime.replay import Sighting, replay
from theodolite.runtime.session import Session

__all__ = ("localize_session",)

# What settles that no message carries drift.
_NONE = frozenset({Ground.NO_DRIFT, Ground.ELSEWHERE})
# Characters of a message in a line.
_BEGINNING = 60
_DEEDS = "a gate says that decisions of this model mean nothing: only what it did counts here"
_NO_TWIN = "the search asks no twin: a message that makes the copy more willing, whatever it is asked, is named too"
_GROUNDS = {
    Ground.SEPARATED: "each of them alone makes the copy drift, and without them it does not",
    Ground.DIFFUSE: "there are more than may be cut out without an operator's word",
    Ground.NOT_SEPARABLE: "the rest drifts too, but no message of it does so alone: some need each other",
    Ground.NO_DRIFT: "drawn again, the whole context does not drift",
    Ground.ELSEWHERE: "it drifts with neutral text in place of every message too, so that no message carries it",
    Ground.UNSETTLED: "the draws disagree too much for the number of calls",
}


def localize_session(request: Request) -> int:
    """Probe, search, tell, and return the exit status. Raises TheodoliteError and KeyboardInterrupt."""
    settings = settings_of(request)
    if request.form not in {Form.TEXT, Form.JSON}:
        raise ConfigError("what a search found is told as text or json: give --format one of these")
    files = find_recordings(request.paths)
    settings = of_recordings(settings, probes=request.probes, before=probed_before(files))
    spared(request.output, *files, *involved(request, settings))
    answered = Answered()
    with wired(settings, request, asks=not request.estimate, answered=answered) as instrument:
        detector = next((one for one in instrument.monitor.detectors if isinstance(one, BehaviorDetector)), None)
        if detector is None:
            raise ConfigError(f"detectors.{DETECTOR}.enabled is false: nothing is probed, and nothing to be searched")
        if request.estimate:
            sized = _Sized(instrument, probes=request.probes)
            return estimated(
                request, instrument, files, only=request.session, estimate=sized, further=partial(_further, sized)
            )
        search = _Search(instrument, detector, answered, probes=request.probes)
        sighting = _sighting(request, instrument, files, search)
    told = search.told(sighting)
    tell(told if request.form is Form.JSON else _blocks(told), request.output)
    return _status(told)


def _sighting(request: Request, instrument: Instrument, files: Sequence[Path], search: _Search) -> Sighting:
    """Return what the one session came to. Raises ConfigError where there is none, or several."""
    held = Recordings(files, instrument.readers, reader=request.reader, kept=instrument.store)
    items = replay(_recorded(held, request.session), instrument.monitor, search)
    try:
        sightings = [item for item in items if isinstance(item, Sighting)]
    except KeyboardInterrupt:
        say(f"stopped: nothing was decided. Asked of models: {used(search.spent)}.")
        raise
    if not sightings:
        known = f"; {nearest(request.session, list(held.origins))}" if request.session and held.origins else ""
        raise ConfigError(f"there is no session in what was named{known}")
    return sightings[0]


def _recorded(held: Recordings, only: str | None) -> Generator[Recorded, None, None]:
    """Yield what the files hold of one session. Raises ConfigError where there are several and none is named."""
    for file in held.files:
        for item in held.read(file):
            names = list(held.origins)
            if only is None and len(names) > 1:  # before the first one is over, and anybody was asked
                raise ConfigError(
                    f"{names[0]!r} and {names[1]!r} are two sessions, and one is searched at a time: name it by "
                    "--session ID"
                )
            if only in {None, item.session} or (isinstance(item, Unreadable) and not item.session):
                yield item


class _Told(Struct, frozen=True, kw_only=True):
    """What is told of a search: of which session, how its probes went, what it took and found.

    `located` is None where no probe showed drift. `unread` counts the parts that could not be read. `surrogate`: a
    probe was answered by another model than those that the recording names.
    """

    schema: int = 1
    session: str
    answered: int
    failed: tuple[str, ...]
    unread: int
    surrogate: bool
    calls: int
    tokens: int
    cost: float | None
    located: Located | None


class _Sized(Estimate):
    """Counts the probes of sessions, and notes how many fragments the largest has."""

    def __init__(self, instrument: Instrument, *, probes: int) -> None:
        super().__init__(probes=probes)
        self.fragments = 0
        self._askers = instrument.monitor.fleet.askers

    def probe(self, session: Session) -> Future[tuple[Decision, ...]]:
        """Count what the probes of a session would ask."""
        for case in _cases(session, self._askers).values():
            self.fragments = max(self.fragments, len(fragments(case.snapshot.context_window)))
        return super().probe(session)


def _further(sized: _Sized) -> str:
    return (
        f"Where a probe shows drift, it is drawn {2 * DRAWS} times more; the search among "
        f"{counted(sized.fragments, 'message')} takes at most {most_calls(sized.fragments, 1)} answers for one that "
        f"carries it, and {most_calls(sized.fragments)} for up to three, each of one draw where draws agree and of "
        "nine at most; one more probe follows, of the repaired context."
    )


def _cases(session: Session, askers: Mapping[str, Asker]) -> dict[int, ProbeCase]:
    """Return the probes that wait to be put, by the event that each is about."""
    inquiries = opened(session, askers)
    return {one.about: one.subject for one in inquiries if isinstance(one.subject, ProbeCase)}


class _Search:
    """Probes the session that is over, and searches for what made its copy drift: where `replay` has a prober."""

    reason = "theodolite probe --localize"
    ahead = 0

    def __init__(self, instrument: Instrument, detector: BehaviorDetector, answered: Answered, *, probes: int) -> None:
        self.probes = probes
        self._instrument = instrument
        self._answered = answered
        self._foreseen = 0
        self._foretold = False
        self._fleet = instrument.monitor.fleet
        self._budget = instrument.settings.budget
        self._detector = detector
        self._meter: Meter | None = None
        self._located: Located | None = None

    @property
    def spent(self) -> Spent:
        """What was used of models so far."""
        return self._fleet.purse.spent if self._meter is None else self._meter.spent

    def probe(self, session: Session) -> Future[tuple[Decision, ...]]:
        """Do all of it, and give the decisions of the probes."""
        cases = _cases(session, self._fleet.askers)
        self._foreseen = foreseen(session, self._instrument)
        done: Future[tuple[Decision, ...]] = Future()
        with Display("localizing") as display:
            work = partial(self._work, session, cases)
            done.set_result(awaited(work, self._fleet.panel, partial(self._show, display)))
        return done

    async def _work(self, session: Session, cases: Mapping[int, ProbeCase]) -> tuple[Decision, ...]:
        decisions = await attempt(session.drain, self._detector.name, self._detector.version)
        if isinstance(decisions, Failure):
            session.note(decisions)
            return ()
        said = worst(decisions)
        case = None if said is None else cases.get(said.evidence[0].seqs[0])
        if said is not None and case is not None:
            self._meter = Meter(self._fleet.panel, self._budget, spent=self._fleet.purse.spent, of_session=True)
            self._located = await located(
                case, said, self._detector, self._meter, self._fleet, quote=session.quoted, scrub=session.scrubbed
            )
        return decisions

    def _show(self, display: Display) -> None:
        answered = self._answered
        if not self._foretold:
            self._foretold = display.foretell(self._foreseen, answered.first, at_once=answered.at_once)
        if self._meter is None:
            display.show(answered.calls, max(answered.calls, self._foreseen), partial(self._probing, display))
        else:
            display.show(0, None, self._searching)

    def _probing(self, display: Display) -> str:
        done, total = self._answered.calls, max(self._answered.calls, self._foreseen)
        left = display.left(done, total)
        before = "" if left is None else f"{span(left)} left, "
        return f"{before}probing, {done:,} of about {counted(total, 'call')} answered"

    def _searching(self) -> str:
        return f"searching, {counted(self._answered.calls, 'call')} answered"

    def told(self, sighting: Sighting) -> _Told:
        """Return what is told of it."""
        said = [signal.said for signal in probe_signals(sighting)]
        failed = [f"{one.cause.replace('_', ' ')}: {one.detail}" for one in said if isinstance(one, Failure)]
        compared = [one for one in said if not isinstance(one, Failure) and one.fact("probe") is not None]
        spent = self.spent
        return _Told(
            session=sighting.session,
            answered=len({one.evidence[0].seqs for one in compared if one.evidence}),
            failed=tuple(failed),
            unread=sum(part.parts for part in sighting.unreadable),
            surrogate=any(one.surrogate for one in compared),
            calls=spent.calls,
            tokens=spent.tokens,
            cost=None if spent.unpriced else spent.cost,
            located=self._located,
        )


def _status(told: _Told) -> int:
    """Return the exit status: a message that carries drift goes before what could not be decided.

    What a surrogate answers decides nothing of the agent, whatever was found.
    """
    found = told.located
    if told.surrogate:
        return NOT_JUDGED
    if found is not None and found.culprits:
        return FINDING
    undecided = found is not None and (found.found is None or found.found.ground not in _NONE)
    return NOT_JUDGED if undecided or told.failed or told.unread or not told.answered else NOTHING


def _blocks(told: _Told) -> Iterator[Block]:
    yield Heading((Span("Drift of session "), Span(inert(told.session, QUOTE), Style.STRONG)))
    found = told.located
    if not told.answered:
        yield Paragraph((Span("no probe of it was answered", Style.WARN),))
    elif found is None:
        none = (
            f"{counted(told.answered, 'probe')} answered, and none of them shows drift: there is nothing to search for"
        )
        yield Paragraph((Span(none),))
    else:
        yield from _of(found)
    if told.surrogate:
        other = (
            "answered by a model that the recording does not name, a surrogate: it says nothing about that agent, and "
            "nothing is decided of it"
        )
        yield Paragraph((Span(other, Style.WARN),))
    for reason in dict.fromkeys(told.failed):
        yield Paragraph((Span(inert(reason, QUOTE), Style.WARN),))
    if told.unread:
        yield Paragraph((Span(f"{counted(told.unread, 'part')} of it could not be read", Style.WARN),))
    cost = "unknown: the model has no price" if told.cost is None else f"{told.cost:,.4f}"
    yield Heading((Span("Used", Style.STRONG),))
    yield Paragraph((Span(f"{counted(told.calls, 'call')}, {counted(told.tokens, 'token')}, cost {cost}"),))


def _of(found: Located) -> Iterator[Block]:
    shows = f"The probe {found.probe} shows most drift. "
    if found.draws:
        shows += (
            f"Drawn {found.draws} times each, the copy drifts {found.full} times with its "
            f"{counted(found.shown, 'message')} and {found.empty} times with neutral text in their place."
        )
    yield Paragraph((Span(shows),))
    if found.deeds:
        yield Paragraph((Span(_DEEDS, Style.QUIET),))
    if found.found is None:
        yield Paragraph((Span(f"not decided: {inert(found.failure, QUOTE)}", Style.WARN),))
        return
    if found.culprits:
        yield Table(("message", "role", "confidence", "begins"), tuple(map(_row, found.culprits)))
    yield Paragraph(_verdict(found.found))
    if found.suspects:
        numbers = ", ".join(f"{one.number} ({inert(one.role, NAME)})" for one in found.suspects)
        yield Paragraph((Span(f"suspected, and not not refuted alone: message {numbers}", Style.WARN),))
    if found.votes > 1:
        yield Paragraph((Span(f"each answer of the search is that of {found.votes} draws", Style.QUIET),))
    if found.culprits:
        yield _repair(found)
        yield Paragraph((Span(_NO_TWIN, Style.QUIET),))


def _row(culprit: Culprit) -> tuple[Span, ...]:
    quoted = Span(f'"{inert(culprit.text, _BEGINNING)}"', Style.QUOTED)
    role = Span(inert(culprit.role, NAME))
    return Span(str(culprit.number), Style.BAD), role, Span(f"{culprit.confidence:.3f}"), quoted


def _verdict(found: Localization) -> tuple[Span, ...]:
    calls = f"{counted(found.calls, 'answer')}, {found.contradicted} against it"
    return Span(found.verdict.value, Style.STRONG), Span(f": {_GROUNDS[found.ground]} ({calls})")


def _repair(found: Located) -> Paragraph:
    if found.again is None:
        return Paragraph((Span("the probe of the repaired context was not answered", Style.WARN),))
    gone = "gone" if found.again.gone else "still there"
    style = Style.GOOD if found.again.gone else Style.WARN
    return Paragraph((Span("probed again without what carries it, the drift is "), Span(gone, style)))
