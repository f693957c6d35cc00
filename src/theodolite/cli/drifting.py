"""What `theodolite guard drift` does."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct, structs

from theodolite.cli.choices import ShortForm
from theodolite.cli.exits import FINDING, NOT_JUDGED, NOTHING, say
from theodolite.cli.guarding import loaded
from theodolite.cli.judging import Request, wired
from theodolite.cli.output import opened, spared, write_blocks
from theodolite.cli.progress import Progress
from theodolite.cli.recordings import Recordings
from theodolite.config.settings import Settings
from theodolite.core.contract import Contracts, Divergence, Kind
from theodolite.core.errors import ConfigError
from theodolite.core.event import SessionEnded, ToolCallProposed, ToolsDeclared
from theodolite.core.policy import Outcome
from theodolite.core.reader import Recorded, Unreadable
from theodolite.core.reading import Failure
from theodolite.core.text import printable
from theodolite.core.window import Window
from theodolite.detectors.payload.detector import PayloadDetector, PayloadSettings, PayloadState
from theodolite.detectors.payload.drift import CODE, Rate, ShapeDrift, Shift
from theodolite.detectors.payload.naming import Naming
from theodolite.readers.detection import find_recordings
from theodolite.reports.escaping import ascii_json
from theodolite.reports.layout import Block, Heading, Paragraph, Span, Style, Table, counted

__all__ = ("Calls", "Counting", "DriftAccount", "RateAccount", "Rise", "Share", "drifted")

# Rates that a report for people shows (our choice).
SHOWN = 20
# Contracts that sessions declare of which the names are known (our choice): as many as the detector keeps compiled.
_KEPT = 256
_EXITS = {Outcome.CLEAN: NOTHING, Outcome.FINDING: FINDING}


class Share(Struct, frozen=True, kw_only=True):
    """A share of calls, `k` of `n`, and the bounds of its interval of 95 %."""

    k: int
    n: int
    low: float
    high: float

    @classmethod
    def of(cls, rate: Rate) -> Share:
        """Return a rate with its bounds written out."""
        low, high = rate.interval
        return cls(k=rate.k, n=rate.n, low=low, high=high)

    def __str__(self) -> str:
        """Return it in words."""
        return f"{self.k:,} of {self.n:,} ({100 * self.low:.1f} to {100 * self.high:.1f} %)" if self.n else "none yet"


class RateAccount(Struct, frozen=True, kw_only=True):
    """How often calls of an operation diverged at a place in one way: in the baseline, and since.

    `baseline_from` is the call of the operation with which the baseline begins: the first one, and after a rise the one
    after that which showed it, since what is usual is learned anew then.
    """

    operation: str
    pointer: str
    kind: Kind
    baseline_from: int = 1
    before: Share
    now: Share


class Rise(Struct, frozen=True, kw_only=True):
    """A rate that has risen, since which call of its operation, and with which evidence."""

    operation: str
    pointer: str
    kind: Kind
    before: Share
    now: Share
    since: int
    evidence: float


class DriftAccount(Struct, frozen=True, kw_only=True):
    """What the verb has to say. `operations` has how often each was called, of the calls that count."""

    schema: Literal[1] = 1
    verb: Literal["guard drift"] = "guard drift"
    files: tuple[str, ...]
    spec: str
    outcome: Outcome
    baseline: int
    facts: dict[str, int]
    operations: dict[str, int]
    rates: tuple[RateAccount, ...]
    rises: tuple[Rise, ...]


class _Session(Struct, kw_only=True):
    """What is known of a session: its tools, and of which operations the last call failed."""

    state: PayloadState
    failing: set[str] = msgspec.field(default_factory=set)


class Counting:
    """Counts the calls of sessions, each against its contract; of failures in a row the first.

    A call that follows a failed one of its operation in its session is a retry as likely as not, and no trial of its
    own; the first that fits ends the row. A call of a tool that is in no contract has no rate: it is counted aside.
    """

    def __init__(self, contracts: Contracts | None, *, baseline: int, observe: bool) -> None:
        self.drift = ShapeDrift(baseline=baseline)
        self.rises: list[Shift] = []
        self.facts: Counter[str] = Counter()
        self.operations: Counter[str] = Counter()
        self._contracts = contracts
        self._observes = observe
        self._detector = PayloadDetector(PayloadSettings(observe=observe), contracts=contracts)
        self._sessions: dict[str, _Session] = {}
        self._namings: dict[int, Naming] = {}

    def take(self, item: Recorded) -> None:
        """Take what was read."""
        if isinstance(item, Unreadable):
            self.facts["unreadable"] += item.parts
            return
        session = self._sessions.get(item.session)
        if session is None:
            self.facts["sessions"] += 1
            session = self._sessions[item.session] = _Session(state=self._detector.begin())
        if isinstance(item, ToolsDeclared) and self._contracts is None:
            self._detector.update(session.state, item, Window())
        elif isinstance(item, ToolCallProposed):
            self._call(session, item)
        elif isinstance(item, SessionEnded):
            del self._sessions[item.session]

    def _call(self, session: _Session, call: ToolCallProposed) -> None:
        self.facts["calls"] += 1
        found = self._detector.divergences(session.state, call)
        if found is None or isinstance(found, Failure):
            self.facts["not checked"] += 1
            return
        if any(one.kind is Kind.UNKNOWN_OPERATION for one in found):
            self.facts["of unknown tools"] += 1
            return
        contract = None if self._contracts is None else self._contracts.find(call.tool)
        held = self._detector.held(session.state, call.tool)
        self._count(session, call.tool if contract is None else contract.name, found, held)

    def _count(self, session: _Session, operation: str, found: tuple[Divergence, ...], held: Contracts | None) -> None:
        denying = [one for one in found if one.denies]
        found = found if self._observes else tuple(denying)
        retry = operation in session.failing
        session.failing.discard(operation)
        if denying:
            session.failing.add(operation)
        if retry:
            self.facts["retries"] += 1
            return
        self.operations[operation] += 1
        kept = [structs.replace(one, pointer=self._place(operation, one, held)) for one in found]
        self.rises += self.drift.update(operation, kept)

    def _place(self, operation: str, one: Divergence, held: Contracts | None) -> str:
        """Return a place without a name that a call made up."""
        if held is None:
            return ""
        naming = self._namings.get(id(held))
        if naming is None:
            if len(self._namings) >= _KEPT:
                self._namings.clear()
            # It keeps the contracts too, so that nothing else is known by their number meanwhile.
            naming = self._namings[id(held)] = Naming(held)
        return naming.place(operation, one)

    def account(self, files: tuple[str, ...], spec: str) -> DriftAccount:
        """Return what it came to."""
        rates = [
            RateAccount(
                operation=name,
                pointer=pointer,
                kind=kind,
                baseline_from=self.drift.operations[name].calls - before.n - now.n + 1,
                before=Share.of(before),
                now=Share.of(now),
            )
            for name, pointer, kind, before, now in self.drift.rates()
        ]
        rates.sort(key=lambda one: (-_latest(one), one.operation, one.pointer, one.kind))
        past = sum(calls > self.drift.baseline for calls in self.operations.values())
        judged = past and not self.facts["unreadable"]
        words = ("sessions", "calls", "retries", "of unknown tools", "not checked", "unreadable")
        return DriftAccount(
            files=files,
            spec=spec,
            outcome=Outcome.FINDING if self.rises else Outcome.CLEAN if judged else Outcome.NOT_ENOUGH_EVIDENCE,
            baseline=self.drift.baseline,
            facts={**{word: self.facts[word] for word in words}, "counted": self.operations.total(), "past": past},
            operations=dict(sorted(self.operations.items())),
            rates=tuple(rates),
            rises=tuple([_rise(shift) for shift in self.rises]),
        )


class Calls(Struct, frozen=True, kw_only=True):
    """Which calls are to be counted, and how: the arguments of `guard drift`."""

    paths: tuple[Path, ...]
    spec: Path | None = None
    baseline: int = 500  # that of ShapeDrift, which says why
    observe: bool = False
    reader: str | None = None


def drifted(calls: Calls, form: ShortForm, output: Path | None = None) -> int:
    """Tell how often recorded calls diverge, and whether that rose; return the exit status."""
    paths, spec, reader = calls.paths, calls.spec, calls.reader
    # A plain schema is that of the tool which its file is named after, as in the settings.
    contracts = None if spec is None else loaded(spec, name=spec.stem)
    files = find_recordings(paths)
    spared(output, *files, *([] if spec is None else [spec]))
    counting = Counting(contracts, baseline=calls.baseline, observe=calls.observe)
    with wired(Settings(), Request(paths=paths, reader=reader), asks=False) as instrument:
        for item in _recorded(files, paths, Recordings(files, instrument.readers, reader=reader)):
            counting.take(item)
    account = counting.account(tuple(map(str, files)), "" if spec is None else str(spec))
    with opened(output) as stream:
        if form is ShortForm.JSON:
            stream.write(ascii_json(msgspec.json.encode(account)) + b"\n")
        else:
            write_blocks(_blocks(account), stream, terminal=output is None and sys.stdout.isatty())
    if output is not None:
        say(f"{counted(len(files), 'file')}: {_verdict(account).text}")
    return _EXITS.get(account.outcome, NOT_JUDGED)


def _recorded(files: list[Path], named: tuple[Path, ...], held: Recordings) -> Iterator[Recorded]:
    """Yield what the files hold, and say what of them cannot be read.

    Raises ConfigError for a file of an unknown form that was named; one in a folder is unreadable.
    """
    with Progress(files, doing="checking") as progress:
        for file in files:
            for item in progress.counting(_readable(file, named, held, progress)):
                if isinstance(item, Unreadable):
                    say(f"warning: {item.file}{f' line {item.line}' if item.line else ''}: {item.reason}")
                yield item
            progress.filed()


def _readable(file: Path, named: tuple[Path, ...], held: Recordings, progress: Progress) -> Iterator[Recorded]:
    try:
        yield from held.read(file, progress.reached)
    except ConfigError as error:
        if file in named:
            raise
        yield Unreadable(file=printable(str(file)), line=0, reason=str(error).removeprefix(f"{file} "))


def _rise(shift: Shift) -> Rise:
    return Rise(
        operation=shift.operation,
        pointer=shift.pointer,
        kind=shift.kind,
        before=Share.of(shift.before),
        now=Share.of(shift.now),
        since=shift.since,
        evidence=shift.evidence,
    )


def _latest(one: RateAccount) -> float:
    rate = one.now if one.now.n else one.before
    return rate.k / max(1, rate.n)


def _blocks(account: DriftAccount) -> Iterator[Block]:
    """Yield the account for people: what rose, then the rates."""
    facts = account.facts
    files = counted(len(account.files), "file")
    against = f"against {account.spec}" if account.spec else "against the tools that each session declares"
    yield Heading((Span(f"{files} {against}: ", Style.STRONG), _verdict(account)))
    retries = f"{facts['retries']:,} {'retry' if facts['retries'] == 1 else 'retries'}"
    aside = ", ".join([retries, *[f"{facts[word]:,} {word}" for word in ("of unknown tools", "not checked")]])
    count = f"{facts['counted']:,} {'counts' if facts['counted'] == 1 else 'count'}"
    read = f"{counted(facts['sessions'], 'session')}, {counted(facts['calls'], 'call')}"
    yield Paragraph((Span(f"{read}: {count}; {aside}"),))
    if not facts["counted"]:
        need = "no call has a contract that it can be held against"
        yield Paragraph((Span(f"{need}{': name one with --spec' * (not account.spec)}", Style.WARN),))
    elif not facts["past"]:
        need = f"no operation was called more than {counted(account.baseline, 'time')}, so that nothing can have risen"
        yield Paragraph((Span(f"{need}: give more, or a smaller --baseline", Style.WARN),))
    if account.rises:
        yield Heading((Span(CODE, Style.BAD),))
    for rise in account.rises:
        place = f"{rise.operation} {rise.pointer or '/'} {rise.kind}: "
        rose = f"from {rise.before} to {rise.now}, since call {rise.since:,}"
        yield Paragraph((Span(place, Style.STRONG), Span(rose)))
    if account.rates:
        yield Heading((Span("Rates, with intervals of 95 %"),))
        usual = f"the first {counted(account.baseline, 'call')} of an operation"
        if any(one.baseline_from > 1 for one in account.rates[:SHOWN]):
            usual += ", and of a place that has risen as many after that: what is usual there is learned anew"
        yield Paragraph((Span(f"The baseline is {usual}."),))
        head = ("operation", "place", "kind", "baseline", "since then")
        yield Table(head, tuple([_row(one) for one in account.rates[:SHOWN]]))
    if len(account.rates) > SHOWN:
        yield Paragraph((Span(f"... and {len(account.rates) - SHOWN:,} more: --format json has all", Style.QUIET),))


def _row(one: RateAccount) -> tuple[Span, ...]:
    before = f"{one.before}, from call {one.baseline_from:,}" if one.baseline_from > 1 else str(one.before)
    return tuple(map(Span, (one.operation, one.pointer or "/", one.kind.value, before, str(one.now))))


def _verdict(account: DriftAccount) -> Span:
    if account.rises:
        return Span(counted(len(account.rises), "rise"), Style.BAD)
    if account.outcome is Outcome.CLEAN:
        return Span("nothing has risen", Style.GOOD)
    return Span("not enough to judge", Style.WARN)
