"""Labeled sessions, replayed as live ones are, into samples: by this process, by several, or by a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait

import msgspec
from msgspec import Struct

from theodolite.calibration.sample import Sample, sampled
from theodolite.cli.choices import Jobs
from theodolite.cli.parallel import BATCH, Plan, Whole, instrument_of, items_of
from theodolite.cli.pool import Pool, pooled
from theodolite.core.labels import Label
from theodolite.core.reader import Recorded, Unreadable
from theodolite.runtime.monitor import Monitor
from theodolite.runtime.replay import Probing, Sighting, replay

__all__ = ("Line", "Piece", "Sampling", "probed", "sample_batch", "samples")


class Piece(Struct, frozen=True):
    """A session that is to be replayed: all of it, its place in the dataset, and its label."""

    whole: Whole
    place: tuple[int, int]
    label: Label


class Line(Struct, frozen=True, omit_defaults=True):
    """What became of the session in that place: its sample, or why it has none."""

    place: tuple[int, int]
    sample: Sample | None = None
    why: str = ""


class Sampling(Struct, frozen=True):
    """What a worker needs to know: the plan of a scan, and the codes that a fusion may hear of a call."""

    plan: Plan
    parts: tuple[str, ...] = ()


class _Task(Struct):
    place: tuple[int, int]
    label: Label
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
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            yield from [one.result() for one in done]
    while waiting:
        done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
        yield from [one.result() for one in done]


def _decoded(answer: bytes) -> list[Line]:
    return _LINE.decode_lines(answer)


def _batches(pieces: Iterable[Piece]) -> Iterator[bytes]:
    batch: list[bytes] = []
    items = 0
    for piece in pieces:
        task = _Task(place=piece.place, label=piece.label, session=msgspec.Raw(piece.whole.encoded()))
        batch.append(_ENCODER.encode(task))
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
        lines.append(_line(judged, task.place, task.label, sampling.parts))
    return _ENCODER.encode_lines(lines)


def _line(
    judged: Iterable[Sighting | Unreadable], place: tuple[int, int], label: Label, parts: tuple[str, ...]
) -> Line:
    """Return what is kept of a session: its sample; or why there is none: no threshold is of what was read in part."""
    sightings = [one for one in judged if isinstance(one, Sighting)]
    if len(sightings) != 1 or sightings[0].unreadable:
        return Line(place, why="a part of it could not be read")
    known = label.known
    if known is None:
        return Line(place, why="nobody knows what it is")
    return Line(
        place, sample=sampled(sightings[0], known, place=place, task=label.task, slices=label.slices, parts=parts)
    )


def probed(pieces: Iterable[Piece], monitor: Monitor, prober: Probing, parts: tuple[str, ...]) -> Iterator[list[Line]]:
    """Yield what became of the sessions, each probed when it is over; several may be under way at once."""
    under: dict[str, Piece] = {}

    def recorded() -> Iterator[Recorded]:
        for piece in pieces:
            under[piece.whole.session] = piece
            yield from items_of(piece.whole.encoded())

    for judged in replay(recorded(), monitor, prober):
        piece = under.pop(judged.session, None)
        if piece is not None:
            yield [_line([judged], piece.place, piece.label, parts)]
