"""The same scan over several processes.

This process reads, and cuts what it reads into batches of whole sessions; workers judge them; their answers are taken
in the order of the batches, so that the report is that of one process. Batches and answers travel as JSON, and what a
worker would keep travels back with its answer: one process writes to the store.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from functools import lru_cache
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from theodolite.cli.choices import Jobs
from theodolite.cli.pool import Pool, pooled
from theodolite.config.settings import Settings
from theodolite.config.wiring import Instrument, wire
from theodolite.core.event import AnyEvent, SessionEnded
from theodolite.core.reader import Recorded, Unreadable
from theodolite.core.store import Entry, Store
from theodolite.runtime.replay import Sighting, elsewhere, goes_on, replay
from theodolite.stores.memory import MemoryStore

__all__ = ("Plan", "Whole", "batches", "in_order", "instrument_of", "items_of", "judge", "judge_batch", "pieces")

# Events of a batch: enough work to pay for its journey, and few enough that the batches in flight are small.
BATCH = 500


class Plan(Struct, frozen=True, kw_only=True):
    """What a worker needs to know. `keeps`: what it would keep in a store is wanted."""

    settings: Settings
    calibration: str = ""
    keeps: bool = False


class _Item(Struct, omit_defaults=True):
    event: AnyEvent | None = None
    unreadable: Unreadable | None = None


class _Piece(Struct, omit_defaults=True):
    """All of one session, or a part that belongs to none."""

    session: list[_Item] = []
    apart: Unreadable | None = None


class _Verdict(Struct, omit_defaults=True):
    sighting: Sighting | None = None
    unreadable: Unreadable | None = None


class _Answer(Struct):
    verdicts: list[_Verdict]
    entries: list[Entry]


_ENCODER = msgspec.json.Encoder()
_PIECES = msgspec.json.Decoder(list[_Piece])
_SESSION = msgspec.json.Decoder(list[_Item])
_ANSWER = msgspec.json.Decoder(_Answer)


def judge(
    recorded: Iterable[Recorded], plan: Plan, *, jobs: Jobs, store: Store | None = None
) -> Iterator[Sighting | Unreadable]:
    """Yield what `replay` yields, in the same order, judged by that many processes or by a cluster.

    Raises StoreError where `store` cannot keep what it should, and TheodoliteError when a worker dies.
    """
    with pooled(jobs) as pool:
        answers = in_order(judge_batch, _ENCODER.encode(plan), batches(recorded), pool)
        for answer in map(_ANSWER.decode, answers):
            for entry in answer.entries:
                if store is not None:
                    store.append(entry)
            for verdict in answer.verdicts:
                item = verdict.sighting or verdict.unreadable
                if item is not None:
                    yield item


def in_order(
    work: Callable[[bytes, bytes], bytes], plan: bytes, batches: Iterable[bytes], pool: Pool
) -> Iterator[bytes]:
    """Yield what `work` makes of a plan and each batch, in the order of the batches; few are under way at once."""
    waiting: deque[Future[bytes]] = deque()
    for batch in batches:
        waiting.append(pool.submit(work, plan, batch))
        if len(waiting) > pool.ahead:
            pool.done({waiting[0]})
            yield waiting.popleft().result()
    while waiting:
        pool.done({waiting[0]})
        yield waiting.popleft().result()


def batches(recorded: Iterable[Recorded], size: int = BATCH) -> Iterator[bytes]:
    """Yield batches of whole sessions, each of at least `size` items, in the order in which the sessions end."""
    batch = _Batch()
    for piece in pieces(recorded):
        if isinstance(piece, Unreadable):
            batch.apart(piece)
        else:
            batch.session(piece.items)
        if batch.items >= size:
            yield batch.take()
    if batch.items:
        yield batch.take()


def pieces(recorded: Iterable[Recorded]) -> Iterator[Whole | Unreadable]:
    """Yield whole sessions in the order in which they end, and what belongs to none as it comes.

    A session is over where `replay` says so. Holds those that are not, whole.
    """
    under: dict[str, list[bytes]] = {}
    lost: set[str] = set()  # sessions, "" for any, of which something could not be read since the last one was over
    ended: str | None = None
    for item in recorded:
        if ended is not None and not goes_on(ended, item):
            yield Whole(ended, under.pop(ended))
            ended = None
            lost.clear()
        if not isinstance(item, Unreadable):
            begun = [_gap(item.session)] if lost & {"", item.session} else []
            under.setdefault(item.session, begun).append(_ENCODER.encode(_Item(event=item)))
        elif item.session in under:
            under[item.session].append(_ENCODER.encode(_Item(unreadable=item)))
        else:
            yield item
            lost.add(item.session)
            for name in under if not item.session else ():
                under[name].append(_gap(name))
        if isinstance(item, SessionEnded):
            ended = item.session
    for left in sorted(under, key=lambda session: session != ended):
        yield Whole(left, under[left])


def _gap(session: str) -> bytes:
    """Return what stands in a session for a part that is told apart from it."""
    return _ENCODER.encode(_Item(unreadable=elsewhere(session)))


class Whole(Struct, frozen=True):
    """All of a session, its items encoded."""

    session: str
    items: list[bytes]

    def encoded(self) -> bytes:
        """Return the items as one JSON array, which `items_of` reads."""
        return b"[%b]" % b",".join(self.items)


def items_of(encoded: bytes) -> Iterator[Recorded]:
    """Yield what a session consists of."""
    return _items(_SESSION.decode(encoded))


class _Batch:
    """Pieces, encoded, until they are taken."""

    def __init__(self) -> None:
        self.items = 0
        self._pieces: list[bytes] = []

    def session(self, items: Sequence[bytes]) -> None:
        self.items += len(items)
        self._pieces.append(b'{"session":[%b]}' % b",".join(items))

    def apart(self, item: Unreadable) -> None:
        self.items += 1
        self._pieces.append(_ENCODER.encode(_Piece(apart=item)))

    def take(self) -> bytes:
        pieces, self._pieces, self.items = self._pieces, [], 0
        return b"[%b]" % b",".join(pieces)


def judge_batch(plan: bytes, batch: bytes) -> bytes:
    """Return the encoded answer to a batch. Pure but for the instrument, which is wired once."""
    instrument, kept = _wired(plan)
    verdicts: list[_Verdict] = []
    for piece in _PIECES.decode(batch):
        verdicts += [_Verdict(unreadable=piece.apart)] * (piece.apart is not None)
        verdicts += map(_verdict, replay(_items(piece.session), instrument.monitor))
    return _ENCODER.encode(_Answer(verdicts=verdicts, entries=[] if kept is None else kept.take()))


def _verdict(judged: Sighting | Unreadable) -> _Verdict:
    return _Verdict(sighting=judged) if isinstance(judged, Sighting) else _Verdict(unreadable=judged)


def instrument_of(plan: bytes) -> Instrument:
    """Return the instrument of an encoded plan, wired once in each process."""
    return _wired(plan)[0]


@lru_cache(maxsize=1)
def _wired(encoded: bytes) -> tuple[Instrument, _Outbox | None]:
    plan = msgspec.json.decode(encoded, type=Plan)
    settings = replace(plan.settings, store=replace(plan.settings.store, path=""))
    kept = _Outbox() if plan.keeps else None
    return wire(settings, store=kept, calibration=Path(plan.calibration) if plan.calibration else None), kept


def _items(session: Iterable[_Item]) -> Iterator[Recorded]:
    for item in session:
        found = item.event or item.unreadable
        if found is not None:
            yield found


class _Outbox(MemoryStore):
    """What a worker would keep, until it is taken."""

    def take(self) -> list[Entry]:
        """Return what was kept, session by session, in the order in which they began, and begin anew."""
        entries = [
            Entry(session=record.session, at=record.at, kind=record.kind, payload=record.payload, codes=record.codes)
            for head in self.heads()
            for record in self.read(session=head.session)
            if record.payload is not None
        ]
        super().__init__()
        return entries
