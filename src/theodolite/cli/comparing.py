"""Recordings judged twice, by an artefact and by the one that it may take the place of: what would change."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from theodolite.cli.asking import settings_of as asked_settings
from theodolite.cli.asking import without_models
from theodolite.cli.cautions import cautions
from theodolite.cli.choices import Form, Jobs
from theodolite.cli.exits import FINDING, NOT_JUDGED, NOTHING, say
from theodolite.cli.judging import wired
from theodolite.cli.output import involved, opened, spared, write_blocks
from theodolite.cli.parallel import BATCH, Whole, in_order, items_of, pieces
from theodolite.cli.pool import pooled
from theodolite.cli.progress import Progress
from theodolite.cli.recordings import Recordings
from theodolite.cli.scanning import Request
from theodolite.cli.stopping import Stop
from theodolite.config.plugins import PluginWarning
from theodolite.config.settings import Settings
from theodolite.config.wiring import Instrument, wire
from theodolite.core.errors import ConfigError
from theodolite.core.reader import Recorded, Unreadable
from theodolite.readers.detection import find_recordings
from theodolite.reports.comparison import Changes, ChangesJSON, ChangesText, Compared, Comparison, compared
from theodolite.reports.layout import counted
from theodolite.runtime.replay import Sighting, replay

__all__ = ("NONE", "Pair", "compare_batch", "compare_recordings")

NONE = "none"
"""What is named in the place of an artefact: the detectors' own thresholds."""


class Pair(Struct, frozen=True):
    """What a worker needs to know: the settings, and the artefacts before and after; "" stands for none."""

    settings: Settings
    before: str
    after: str


class _Both(NamedTuple):
    before: Instrument
    after: Instrument


class _Answer(Struct):
    """What became of a batch. `unread` counts sessions that neither side could judge."""

    compared: list[Compared]
    unread: int = 0


_ENCODER = msgspec.json.Encoder()
_ANSWER = msgspec.json.Decoder(_Answer)
_SESSIONS = msgspec.json.Decoder(list[msgspec.Raw])


def compare_recordings(request: Request, old: str) -> int:
    """Judge recordings twice, tell what would change, and return the exit status: 1 where anything would.

    `old` is the path of the artefact that is in force, or `none`. Memory is that of one session, and of a batch for
    each process. Raises TheodoliteError, and KeyboardInterrupt when it is stopped: what was compared is then told.
    """
    _check(request)
    settings = without_models(asked_settings(request.config, model=None, system=None))
    after = request.calibration or (Path(settings.folder, settings.calibration) if settings.calibration else None)
    if after is None:
        raise ConfigError(
            "--compare holds an artefact against another, and none is named that is to be in force: add --calibration "
            "NEW, or name one in the settings"
        )
    files = find_recordings(request.paths)
    before = None if old == NONE else Path(old)
    spared(request.output, *files, *involved(request, settings), *([] if before is None else [before]))
    settings = replace(settings, calibration="", store=replace(settings.store, path="", raw_events="", shelf=""))
    with wired(settings, request, calibration=after) as instrument:
        pair = _ENCODER.encode(Pair(settings, "" if before is None else str(before), str(after)))
        both = _both(pair)  # what is wrong with either artefact is told before anything is read
        for caution in cautions(instrument):
            say(f"warning: {caution}")
        held = Recordings(files, instrument.readers, reader=request.reader)
        summary = _told(request, both, pair, held)
    if request.output is not None:
        changed = f"{summary.sessions_changed:,} of {counted(summary.sessions, 'session')}"
        stops = f"{counted(summary.stopped, 'call')} stopped, {summary.let_through:,} let through"
        say(f"something would change in {changed}: {stops}")
    if summary.sessions_changed:
        return FINDING
    return NOT_JUDGED if summary.unread or not summary.sessions else NOTHING


def _check(request: Request) -> None:
    """Raise ConfigError for what a comparison does not take."""
    if request.form not in {Form.TEXT, Form.JSON}:
        raise ConfigError(f"--compare has the forms text and json, not {request.form}: it is no report of a scan")
    given = {
        "--store": request.store,
        "--model": request.model,
        "--system": request.system,
        "--baseline": request.baseline,
        "--write-baseline": request.write_baseline,
        "--suppressions": request.suppressions,
        "--fail-on": request.fail_on,
        "--calls": request.calls or None,
    }
    for option, value in given.items():
        if value is not None:
            raise ConfigError(
                f"{option} is for a scan that reports what it found, and --compare says what would change: "
                "leave one of the two out"
            )


def _told(request: Request, both: _Both, pair: bytes, held: Recordings) -> Comparison:
    """Compare, and write what would change as it comes. Raises what stopped it, when that was told."""
    ids = [one.monitor.fleet.calibration for one in both]
    before, after = [None if one is None else one.id for one in ids]
    changes = Changes(version("theodolite"), before, after)
    fleet = both.after.monitor.fleet
    streams = request.form is Form.JSON and request.output is None
    progress, stop = Progress(held.files, doing="comparing", streams=streams), Stop()
    with stop, opened(request.output) as stream:
        text = ChangesText(fleet.policy, [speaker.name for speaker in fleet.speakers])
        told = ChangesJSON(stream) if request.form is Form.JSON else text
        with progress:
            read = _read(request, held, progress, changes)
            batches = _batches(pieces(stop.until(read)), stop, changes)
            twice = _compared(batches, pair, request.jobs, changes)
            for item in (_placed(one, held) for one in twice):
                changes.add(item)
                progress.sessions = changes.sessions
                if item.differs:
                    told.add(item.change)
        summary = changes.summary(complete=stop.error is None)
        told.end(summary)
        if told is text:
            terminal = request.output is None and stream.isatty()
            write_blocks(text.blocks, stream, terminal=terminal)
        if stop.error is not None:
            say(f"stopped: what was compared until here is {counted(summary.sessions, 'session')}")
        stop.check()
    return summary


def _placed(item: Compared, held: Recordings) -> Compared:
    return replace(item, change=replace(item.change, file=held.origin(item.change.session_id).file))


def _read(request: Request, held: Recordings, progress: Progress, changes: Changes) -> Iterator[Recorded]:
    """Yield what the files hold. One of an unknown form stops it where it was named, not in a folder."""
    for file in held.files:
        try:
            yield from progress.counting(held.read(file, progress.reached))
        except ConfigError as error:
            if file in request.paths:
                raise
            changes.unread += 1
            say(f"warning: {error}")
        progress.filed()


def _compared(batches: Iterable[bytes], pair: bytes, jobs: Jobs, changes: Changes) -> Iterator[Compared]:
    """Yield the sessions that were judged twice, in the order in which they end."""
    if jobs.alone:
        yield from _decoded((compare_batch(pair, batch) for batch in batches), changes)
        return
    with pooled(jobs) as pool:
        yield from _decoded(in_order(compare_batch, pair, batches, pool), changes)


def _decoded(answers: Iterable[bytes], changes: Changes) -> Iterator[Compared]:
    for answer in map(_ANSWER.decode, answers):
        changes.unread += answer.unread
        yield from answer.compared


def _batches(wholes: Iterable[Whole | Unreadable], stop: Stop, changes: Changes) -> Iterator[bytes]:
    """Yield batches of whole sessions; none that was cut short by a stop."""
    batch: list[bytes] = []
    items = 0
    for whole in wholes:
        if isinstance(whole, Unreadable):
            changes.unread += whole.parts
            continue
        if stop.error is not None:
            continue
        batch.append(whole.encoded())
        items += len(whole.items)
        if items >= BATCH:
            yield b"[%b]" % b",".join(batch)
            batch, items = [], 0
    if batch:
        yield b"[%b]" % b",".join(batch)


def compare_batch(pair: bytes, batch: bytes) -> bytes:
    """Return the encoded answer to a batch. Pure but for the instruments, which are wired once in each process."""
    both = _both(pair)
    answer = _Answer(compared=[])
    for session in _SESSIONS.decode(batch):
        items = list(items_of(bytes(session)))
        was, now = [_seen(items, one) for one in both]
        if was is None or now is None:
            answer.unread += 1
        else:
            answer.unread += sum(part.parts for part in now.unreadable)
            answer.compared.append(compared(was, now))
    return _ENCODER.encode(answer)


def _seen(items: Iterable[Recorded], instrument: Instrument) -> Sighting | None:
    sightings = [one for one in replay(items, instrument.monitor) if isinstance(one, Sighting)]
    return sightings[0] if len(sightings) == 1 else None


@lru_cache(maxsize=1)
def _both(encoded: bytes) -> _Both:
    pair = msgspec.json.decode(encoded, type=Pair)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PluginWarning)  # of each plug-in that is left out a line has been said
        sides = [wire(pair.settings, calibration=Path(path) if path else None) for path in (pair.before, pair.after)]
    return _Both(*sides)
