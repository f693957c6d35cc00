"""Labeled sessions, replayed as live ones are, into samples: by this process, by several, or by a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import Future

import msgspec
from msgspec import Struct

from theodolite.calibration.sample import Sample, sampled
from theodolite.cli.choices import Jobs
from theodolite.cli.parallel import BATCH, Plan, Whole, instrument_of, items_of
from theodolite.cli.pool import Pool, pooled
from theodolite.core.labels import Known, Label
from theodolite.core.reader import Recorded, Unreadable
from theodolite.reports.triage import Suppression, all_false
from theodolite.runtime.monitor import Monitor
from theodolite.runtime.replay import Probing, Sighting, replay

__all__ = ("Line", "Piece", "Sampling", "probed", "sample_batch", "samples")


class Piece(Struct, frozen=True):
    """A session that is to be replayed: all of it, its place in the dataset, and its label.

    `unlabeled`: nobody has said what it is, but its findings may all be marked as false alarms.
    """

    whole: Whole
    place: tuple[int, int]
    label: Label
    unlabeled: bool = False


class Line(Struct, frozen=True, omit_defaults=True):
    """What became of the session in that place: its sample, or why it has none.

    One that was `unlabeled` has a sample where marks of false alarm say that it is clean.
    """

    place: tuple[int, int]
    sample: Sample | None = None
    why: str = ""
    unlabeled: bool = False


class Sampling(Struct, frozen=True):
    """What a worker needs to know: the plan of a scan, the codes that a fusion may hear of a call, marks of triage."""

    plan: Plan
    parts: tuple[str, ...] = ()
    marks: tuple[Suppression, ...] = ()


class _Task(Struct):
    place: tuple[int, int]
    label: Label
    unlabeled: bool
    session: msgspec.Raw


_ENCODER = msgspec.json.Encoder()
_TASKS = msgspec.json.Decoder(list[_Task])
_LINE = msgspec.json.Decoder(Line)


def samples(pieces: Iterable[Piece], sampling: Sampling, jobs: Jobs) -> Iterator[list[Line]]:
    """Yield what became of the sessions, some at a time, as they come to their end: in whichever order.

    Raises TheodoliteError when a worker dies.
    """
    plan = _ENCODER.encode(sampling)
    if jobs.alone:
        for batch in _batches(pieces):
            yield _decoded(sample_batch(plan, batch))
        return
    with pooled(jobs) as pool:
        yield from map(_decoded, _worked(pool, plan, _batches(pieces)))


def _worked(pool: Pool, plan: bytes, batches: Iterable[bytes]) -> Iterator[bytes]:
    waiting: set[Future[bytes]] = set()
    for batch in batches:
        waiting.add(pool.submit(sample_batch, plan, batch))
        if len(waiting) > pool.ahead:
            done = pool.done(waiting)
            waiting -= done
            yield from [one.result() for one in done]
    while waiting:
        done = pool.done(waiting)
        waiting -= done
        yield from [one.result() for one in done]


def _decoded(answer: bytes) -> list[Line]:
    return _LINE.decode_lines(answer)


def _batches(pieces: Iterable[Piece]) -> Iterator[bytes]:
    batch: list[bytes] = []
    items = 0
    for piece in pieces:
        session = msgspec.Raw(piece.whole.encoded())
        batch.append(_ENCODER.encode(_Task(piece.place, piece.label, piece.unlabeled, session)))
        items += len(piece.whole.items)
        if items >= BATCH:
            yield b"[%b]" % b",".join(batch)
            batch, items = [], 0
    if batch:
        yield b"[%b]" % b",".join(batch)


def sample_batch(plan: bytes, batch: bytes) -> bytes:
    """Return the lines of a batch, encoded. Pure but for the instrument, which is wired once in each process."""
    sampling = msgspec.json.decode(plan, type=Sampling)
    monitor = instrument_of(_ENCODER.encode(sampling.plan)).monitor
    lines: list[Line] = []
    for task in _TASKS.decode(batch):
        judged = list(replay(items_of(bytes(task.session)), monitor))
        lines.append(_line(judged, task, sampling.parts, sampling.marks))
    return _ENCODER.encode_lines(lines)


def _line(
    judged: Iterable[Sighting | Unreadable], of: Piece | _Task, parts: tuple[str, ...], marks: tuple[Suppression, ...]
) -> Line:
    """Return what is kept of a session: its sample; or why there is none: no threshold is of what was read in part."""
    place, label = of.place, of.label
    sightings = [one for one in judged if isinstance(one, Sighting)]
    if len(sightings) != 1 or sightings[0].unreadable:
        return Line(place, why="a part of it could not be read", unlabeled=of.unlabeled)
    known = label.known
    if of.unlabeled and all_false(sightings[0], marks):
        known = Known.CLEAN
    if known is None:
        return Line(place, why="nobody knows what it is", unlabeled=of.unlabeled)
    sample = sampled(sightings[0], known, place=place, task=label.task, slices=label.slices, parts=parts)
    return Line(place, sample=sample, unlabeled=of.unlabeled)


def probed(
    pieces: Iterable[Piece],
    monitor: Monitor,
    prober: Probing,
    parts: tuple[str, ...],
    marks: tuple[Suppression, ...] = (),
) -> Iterator[list[Line]]:
    """Yield what became of the sessions, each probed when it is over; several may be under way at once."""
    under: dict[str, Piece] = {}

    def recorded() -> Iterator[Recorded]:
        for piece in pieces:
            under[piece.whole.session] = piece
            yield from items_of(piece.whole.encoded())

    for judged in replay(recorded(), monitor, prober):
        piece = under.pop(judged.session, None)
        if piece is not None:
            yield [_line([judged], piece, parts, marks)]
