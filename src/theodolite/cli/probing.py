"""Probes of recorded sessions, from the arguments to the exit status."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path

from msgspec import Struct

from theodolite.cli.asking import with_model, with_system
from theodolite.cli.choices import Form
from theodolite.cli.exits import NOT_JUDGED, NOTHING, say
from theodolite.cli.output import reporting, write_blocks
from theodolite.cli.recordings import Recordings
from theodolite.config.settings import nearest, read_settings
from theodolite.config.wiring import Instrument, wire
from theodolite.core.errors import ConfigError
from theodolite.core.reader import Recorded
from theodolite.core.reading import Failure
from theodolite.readers.detection import find_recordings
from theodolite.reports.layout import Block, Heading, Paragraph, Span, Style, counted
from theodolite.reports.pages import pages_of
from theodolite.reports.probes import probe_blocks, probe_signals, used
from theodolite.reports.timeline import thresholds
from theodolite.reports.totals import Run, Totals
from theodolite.runtime.estimate import Estimate
from theodolite.runtime.replay import Sighting, replay

__all__ = ("Request", "probe_recordings")


class Request(Struct, frozen=True, kw_only=True):
    """What was asked for: the arguments of `probe`."""

    paths: tuple[Path, ...]
    model: str | None = None
    system: Path | None = None
    session: str | None = None
    estimate: bool = False
    form: Form = Form.TEXT
    output: Path | None = None
    store: Path | None = None
    config: Path | None = None
    reader: str | None = None


def probe_recordings(request: Request) -> int:
    """Probe, write the report, and return the exit status. Raises TheodoliteError and KeyboardInterrupt."""
    settings = with_model(read_settings(request.config), request.model)
    if not settings.panel.subject:
        raise ConfigError("no model is named to answer: give --model, or name a subject under [panel] in the settings")
    settings = with_system(settings, request.system)
    files = find_recordings(request.paths)
    store = None if request.estimate else request.store
    with wire(settings, store=store, asks=not request.estimate) as instrument:
        held = Recordings(files, instrument.readers, reader=request.reader, kept=instrument.store)
        if request.estimate:
            return _estimate(request, instrument, held)
        return _probe(request, instrument, held)


def _read(request: Request, held: Recordings) -> Iterator[Recorded]:
    """Yield what the files hold of the session that is asked for, or all of it."""
    seen: dict[str, None] = {}
    for file in held.files:
        for item in held.read(file):
            if item.session:
                seen[item.session] = None
            if request.session in {None, item.session}:
                yield item
    if request.session is not None and request.session not in seen:
        raise ConfigError(f"no recording holds a session {request.session!r}; {nearest(request.session, list(seen))}")


def _estimate(request: Request, instrument: Instrument, held: Recordings) -> int:
    estimate = Estimate()
    for _ in replay(_read(request, held), instrument.monitor, estimate):
        pass
    name = instrument.settings.panel.subject
    price = instrument.settings.models[name].price
    cost = "its price is not set: name one as [models.NAME] price"
    if price is not None:
        about = price.of(input_tokens=estimate.input_tokens, output_tokens=estimate.output_tokens)
        cost = f"about {about:,.4f} by the price of [models.{name}]"
    calls = f"{counted(estimate.sessions, 'session')} to probe with {name}: {counted(estimate.calls, 'call')}"
    tokens = f"{estimate.input_tokens:,} input and {estimate.output_tokens:,} output tokens"
    lines = (f"{calls}, about {tokens} (four characters a token).", f"Cost: {cost}. Nobody was asked.")
    write_blocks([Paragraph((Span(line),), 0) for line in lines], sys.stdout.buffer, terminal=sys.stdout.isatty())
    return NOTHING if estimate.sessions else NOT_JUDGED


def _probe(request: Request, instrument: Instrument, held: Recordings) -> int:
    from theodolite.runtime.prober import Prober  # noqa: PLC0415 - an event loop, which an estimate does without

    totals, monitor = Totals(), instrument.monitor
    run = Run(version=version("theodolite"))
    sightings: list[Sighting] = []
    lines = thresholds(monitor.fleet.bands, monitor.fleet.calibration)
    with reporting(request.form, request.output, pages_of(monitor.detectors), lines) as report:
        with Prober(monitor.fleet.panel, reason="theodolite probe") as prober:
            for item in replay(_read(request, held), monitor, prober):
                origin = held.origin(item.session)
                totals.add(item, origin)
                if request.form is not Form.TEXT:
                    report.add(item, origin)
                if isinstance(item, Sighting):
                    sightings.append(item)
        if request.form is not Form.TEXT:
            report.end(totals, run)
    if request.form is Form.TEXT:
        _tell(request, _told(sightings, instrument))
    for part in totals.unreadable:
        say(f"not read: {part.file}:{part.line}: {part.reason}")
    return _status(sightings)


def _told(sightings: Iterable[Sighting], instrument: Instrument) -> Iterator[Block]:
    for sighting in sightings:
        yield from probe_blocks(sighting)
    yield Heading((Span("Used", Style.STRONG),))
    yield Paragraph((Span(used(instrument.monitor.fleet.purse.spent)),))


def _tell(request: Request, blocks: Iterator[Block]) -> None:
    if request.output is None:
        write_blocks(blocks, sys.stdout.buffer, terminal=sys.stdout.isatty())
        return
    with request.output.open("wb") as stream:
        write_blocks(blocks, stream, terminal=False)


def _status(sightings: Iterable[Sighting]) -> int:
    said = [probe_signals(sighting) for sighting in sightings]
    answered = bool(said) and all(
        signals and not any(isinstance(signal.said, Failure) for signal in signals) for signals in said
    )
    return NOTHING if answered else NOT_JUDGED
