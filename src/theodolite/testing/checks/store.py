"""The laws of stores."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Generator, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
from msgspec import Raw

from theodolite.core.errors import StoreError
from theodolite.core.store import Entry, Erasure, Kind, Record, Store, seal_record, verify
from theodolite.core.text import printable
from theodolite.testing.checks.law import broken, run, unraised
from theodolite.testing.sessions import HOSTILE_TEXTS

__all__ = ("CHECKS", "Opened", "StoreFixture", "check_store")

_WORKERS, _EACH = 4, 25
_REASON = "asked for by the person it is about"


class Opened(NamedTuple):
    """A store, and how to open what it has kept once more (None: it lives in memory alone)."""

    store: Store
    reopen: Callable[[], Store] | None = None


@dataclass(frozen=True, kw_only=True)
class StoreFixture:
    """A store under test.

    `factory` opens an empty store in a new place each time; a durable one comes with what opens that place again, also
    while the first is open. `key` is the key that these stores seal with. `opened` gives the payload of an entry back
    from its record, where a store does not keep it as it is.
    """

    factory: Callable[[], Opened]
    key: bytes | None = None
    opened: Callable[[Record], Raw | None] = operator.attrgetter("payload")


def check_store(
    factory: Callable[[], Opened],
    *,
    key: bytes | None = None,
    opened: Callable[[Record], Raw | None] = operator.attrgetter("payload"),
    skips: Mapping[str, str] | None = None,
) -> None:
    """Run every law of stores on what the factory opens. `key` and `opened` are those of `StoreFixture`.

    `skips` maps the name of a law to the reason why it cannot hold. Raises AssertionError for a broken law, ConfigError
    for a skip of an unknown law or without a reason.
    """
    run(CHECKS, StoreFixture(factory=factory, key=key, opened=opened), skips or {})


def check_seals(fixture: StoreFixture) -> None:
    """Check that `append` returns the entry sealed behind the newest record of its session."""
    with _opened(fixture) as (store, _):
        previous: dict[str, Record] = {}
        for entry in _ENTRIES:
            record = store.append(entry)
            last = previous.get(entry.session)
            n, before = (0, "") if last is None else (last.n + 1, last.hash)
            with unraised("seals", store, reproduce=_SCRIPT):
                kept = msgspec.structs.replace(entry, payload=record.payload)
                sealed = seal_record(kept, n=n, previous=before, salt=record.salt or "")
            if record != sealed or fixture.opened(record) != entry.payload:
                what = f"the record of entry {n} of {entry.session} is not seal_record(entry, n={n}, previous=...)"
                raise broken("seals", store, what, reproduce=_SCRIPT)
            previous[entry.session] = record


def check_salts(fixture: StoreFixture) -> None:
    """Check that each payload has a salt of its own, which makes sure that an erased one cannot be guessed."""
    with _opened(fixture) as (store, _):
        salts = [store.append(_entry("s-1")).salt or "" for _ in range(20)]
        if len(set(salts)) < len(salts):
            what = "equal payloads get equal salts"
            raise broken("salts", store, what, reproduce="append one entry twenty times and look at the salts")


def check_keeps(fixture: StoreFixture) -> None:
    """Check that `read` yields what `append` returned, session by session, in the order of n."""
    with _opened(fixture) as (store, _):
        kept = [store.append(entry) for entry in _ENTRIES]
        found = list(store.read())
        if sorted(found, key=_place) != sorted(kept, key=_place):
            raise broken("keeps", store, "read() yields other records than append() returned", reproduce=_SCRIPT)
        sessions = [session for session, _ in itertools.groupby(found, key=lambda record: record.session)]
        if len(sessions) > len(set(sessions)) or any(
            [record.n for record in found if record.session == session] != list(range(count))
            for session, count in _counts(kept).items()
        ):
            what = "read() does not yield one session after the other, each in the order of n"
            raise broken("keeps", store, what, reproduce=_SCRIPT)


def check_finds(fixture: StoreFixture) -> None:
    """Check that `read` yields exactly what fits session, time (both ends included) and code, alone and together."""
    with _opened(fixture) as (store, _):
        kept = [store.append(entry) for entry in _ENTRIES]
        moments = (None, 2.0, 3.5, 99.0)
        for session, since, until, code in itertools.product(
            (None, "s-1", "nobody"), moments, moments, (None, "a.x", "b.y", "nothing.at_all")
        ):
            found = list(store.read(session=session, since=since, until=until, code=code))
            fits = [
                record
                for record in kept
                if session in {None, record.session}
                and (since is None or since <= record.at)
                and (until is None or record.at <= until)
                and (code is None or code in record.codes)
            ]
            if sorted(found, key=_place) != sorted(fits, key=_place):
                asked = f"read(session={session!r}, since={since}, until={until}, code={code!r})"
                what = f"{asked} yields {len(found)} records, and not the {len(fits)} that fit"
                raise broken("finds", store, what, reproduce=_SCRIPT)


def check_heads(fixture: StoreFixture) -> None:
    """Check that a new store has no head and a registry of 0 sessions, and a full one those of its newest records."""
    with _opened(fixture) as (store, _):
        if any([list(store.read()), list(store.heads()), store.head("s-1")]):
            raise broken("heads", store, "a new store is not empty", reproduce="read a new store")
        fresh = store.registry()
        if fresh is None or fresh.count:
            what = "a new store has no registry of 0 sessions, so that an emptied one passes for it"
            raise broken("heads", store, what, reproduce="read the registry of a new store")
        newest = {record.session: record for record in map(store.append, _ENTRIES)}
        heads = list(store.heads())
        ends = {head.session: (head.n, head.hash) for head in heads}
        registry = store.registry()
        faults = {
            "heads() are not those of the newest records": ends
            != {session: (record.n, record.hash) for session, record in newest.items()},
            "heads() are not in the order of the first records": [head.session for head in heads] != list(newest)
            or [head.position for head in heads] != list(range(len(heads))),
            "head() is not what heads() says": [store.head(head.session) for head in heads] != heads,
            "head() knows a session that has no record": store.head("nobody") is not None,
            "the registry does not count the sessions": registry is None or registry.count != len(newest),
        }
        for fault in [what for what, wrong in faults.items() if wrong]:
            raise broken("heads", store, fault, reproduce=_SCRIPT)


def check_verifies(fixture: StoreFixture) -> None:
    """Check that `verify` finds nothing wrong with the store's own key, and much with another one, from the start."""
    with _opened(fixture) as (store, _):
        for entries, how in (((), "verify a new store"), (_ENTRIES, _SCRIPT)):
            for entry in entries:
                store.append(entry)
            problems = verify(store, fixture.key, store.heads()).problems
            if problems:
                raise broken("verifies", store, f"verify() finds {problems[0]}", reproduce=how)
            if fixture.key is not None and verify(store, fixture.key + b"x").intact:
                raise broken("verifies", store, "it is intact under another key: nothing is sealed", reproduce=how)


def check_append_only(fixture: StoreFixture) -> None:
    """Check that no later append changes what was kept before."""
    with _opened(fixture) as (store, _):
        before = [store.append(entry) for entry in _ENTRIES]
        for entry in _ENTRIES:
            store.append(entry)
        found = {_place(record): record for record in store.read()}
        changed = [_place(record) for record in before if found.get(_place(record)) != record]
        if changed:
            what = f"records {changed[:3]} are gone or changed after more were appended"
            raise broken("append_only", store, what, reproduce=f"{_SCRIPT}, twice")


def check_exact(fixture: StoreFixture) -> None:
    """Check that any text, number and JSON comes back as it went in."""
    with _opened(fixture) as (store, _):
        texts = [printable(text) for text in HOSTILE_TEXTS]
        moments = (0.0, -1.5, 0.1 + 0.2, 1.7e9 + 1e-6, 5e-324, 1.7e308)
        kept: list[Record] = []
        for place, text in enumerate(texts):
            payload = Raw(msgspec.json.encode({"text": text, "deep": [[[place]]], "none": None}))
            entry = Entry(session=f"s {text}", at=moments[place % len(moments)], kind=Kind.EVENT, payload=payload)
            for codes in ((), (f"c.{text}", "c.d", "c.d"), ("z.z", "a.a")):
                with unraised("exact", store, reproduce=f"append an entry with the text {text!r}"):
                    kept.append(store.append(msgspec.structs.replace(entry, codes=codes)))
        store.flush()
        found = {_place(record): record for record in store.read()}
        other = [record.session for record in kept if found.get(_place(record)) != record]
        if other or not verify(store, fixture.key).intact:
            what = f"records of session {other[:1]} come back changed, or do not verify"
            raise broken("exact", store, what, reproduce="append an entry with that text and read it")


def check_refuses(fixture: StoreFixture) -> None:
    """Check that what cannot be kept is a StoreError and leaves all as it was: text not in UTF-8, an erasure."""
    with _opened(fixture) as (store, _):
        kept = [store.append(entry) for entry in _ENTRIES]
        erasure = msgspec.structs.replace(_entry("s-1"), kind=Kind.ERASURE)
        for entry in (_entry("s-1\ud800"), _entry("s-1", codes=("c.\udfff",)), erasure):
            try:
                store.append(entry)
            except StoreError:
                continue
            except Exception as error:
                what = f"it raises {type(error).__name__}, not StoreError, for an entry that cannot be kept"
                raise broken("refuses", store, what, reproduce=f"append {entry!r}") from error
            raise broken("refuses", store, "it takes an entry that cannot be kept", reproduce=f"append {entry!r}")
        store.flush()
        if sorted(store.read(), key=_place) != sorted(kept, key=_place) or not verify(store, fixture.key).intact:
            raise broken("refuses", store, "a refused entry left something behind", reproduce="append, then read()")


def check_erases(fixture: StoreFixture) -> None:
    """Check that `erase` takes the payloads and salts of one session for good, and leaves one record of that, and why.

    And that all chains hold, and an erasure of nothing leaves nothing.
    """
    with _opened(fixture) as (store, reopen):
        kept = [store.append(entry) for entry in _ENTRIES]
        counts = _counts(kept)
        store.flush()
        erased = store.erase("s-1", reason=_REASON)
        store.append(_entry("s-1", at=50.0), durable=True)
        if (erased, store.erase("nobody"), store.head("nobody")) != (counts["s-1"], 0, None):
            raise broken("erases", store, "it does not count what it erased", reproduce=f"{_SCRIPT}, then erase('s-1')")
        with ExitStack() as stack:
            for reader in (store, *([stack.enter_context(closing(reopen()))] if reopen else [])):
                found = list(reader.read())
                full = {_place(record) for record in found if record.payload is not None and record.salt is not None}
                gone = {_place(record) for record in found if record.payload is None and record.salt is None}
                first = {("s-1", n) for n in range(counts["s-1"])}
                rest = {_place(record) for record in kept} - first | {("s-1", counts["s-1"] + more) for more in (0, 1)}
                said = [(*_place(record), _reason(record)) for record in found if record.kind is Kind.ERASURE]
                if (gone, full) != (first, rest) or said != [("s-1", counts["s-1"], _REASON)]:
                    what = "payloads of the session are left, others are gone, or no record says so and why"
                    raise broken("erases", store, what, reproduce=f"{_SCRIPT}, then erase('s-1') and append once more")
                for problem in verify(reader, fixture.key).problems:
                    what = f"after an erasure verify() finds {problem}"
                    raise broken("erases", store, what, reproduce=f"{_SCRIPT}, then erase('s-1') and append once more")


def check_threads(fixture: StoreFixture) -> None:
    """Check that several threads may append, read and flush at once, to one session and to several."""
    with _opened(fixture) as (store, _):

        def work(worker: int) -> list[Record]:
            kept: list[Record] = []
            for place in range(_EACH):
                kept += [store.append(_entry(session)) for session in ("shared", f"own-{worker}")]
                if place % 10 == worker:
                    store.flush()
                    list(store.read(session="shared"))
                    list(store.heads())
            return kept

        how = f"append from {_WORKERS} threads at once, {_EACH} times each, to one session and to one each"
        with unraised("threads", store, reproduce=how), ThreadPoolExecutor(_WORKERS) as pool:
            kept = [record for records in pool.map(work, range(_WORKERS)) for record in records]
        store.flush()
        found = list(store.read())
        if sorted(found, key=_place) != sorted(kept, key=_place) or not verify(store, fixture.key).intact:
            what = f"{len(kept)} records were appended, {len(found)} are there, or a chain is broken"
            raise broken("threads", store, what, reproduce=how)


def check_durable(fixture: StoreFixture) -> None:
    """Check that whoever opens the place anew sees what a durable append returned, though nobody flushed or closed."""
    with _opened(fixture) as (store, reopen):
        for entry in _ENTRIES:
            record = store.append(entry, durable=True)
            _survives("durable", store, reopen, [record], "append(entry, durable=True)")


def check_flushes(fixture: StoreFixture) -> None:
    """Check that whoever opens the place anew sees all that was appended before `flush` returned."""
    with _opened(fixture) as (store, reopen):
        kept = [store.append(entry) for entry in _ENTRIES]
        store.flush()
        _survives("flushes", store, reopen, kept, f"{_SCRIPT}, then flush()")


def check_ready(fixture: StoreFixture) -> None:
    """Check that a store which keeps what it is given says that it is ready, before, meanwhile and after."""
    how = f"{_SCRIPT}, and ask ready() after each and after flush()"
    with _opened(fixture) as (store, _), unraised("ready", store, reproduce=how):
        store.ready()
        for entry in _ENTRIES:
            store.append(entry)
            store.ready()
        store.flush()
        store.ready()


def check_closes(fixture: StoreFixture) -> None:
    """Check that `close` keeps all that was appended, and that an append after it is kept too, or is a StoreError."""
    with _opened(fixture) as (store, reopen):
        kept = [store.append(entry) for entry in _ENTRIES]
        store.close()
        how = f"{_SCRIPT}, then close(), then append again"
        try:
            late = store.append(_entry("s-1", at=60.0), durable=True)
        except StoreError:
            pass
        except Exception as error:
            what = f"a closed store raises {type(error).__name__}, not StoreError"
            raise broken("closes", store, what, reproduce=how) from error
        else:
            kept.append(late)
        _survives("closes", store, reopen, kept, how)


def check_forks(fixture: StoreFixture) -> None:
    """Check that of two writers to one session one gets a StoreError, and that the chain has no fork."""
    with _opened(fixture) as (store, reopen):
        if reopen is None:
            return
        kept = [store.append(_entry("s-1"), durable=True)]
        how = "open the place twice and append to one session by the first, the second, and the first"
        second = reopen()
        refused = False
        for writer in (second, store, second):
            try:
                kept.append(writer.append(_entry("s-1"), durable=True))
            except StoreError:
                refused = True
        with suppress(StoreError):
            second.close()
        if not refused:
            raise broken("forks", store, "two writers to one session are both served", reproduce=how)
        with closing(reopen()) as reader:
            found = list(reader.read())
            if found != kept or not verify(reader, fixture.key).intact:
                what = f"of {len(kept)} acknowledged records {len(found)} are there, or the chain is broken"
                raise broken("forks", store, what, reproduce=how)


CHECKS: tuple[Callable[[StoreFixture], None], ...] = (
    check_seals,
    check_salts,
    check_keeps,
    check_finds,
    check_heads,
    check_verifies,
    check_append_only,
    check_exact,
    check_refuses,
    check_erases,
    check_threads,
    check_durable,
    check_flushes,
    check_ready,
    check_closes,
    check_forks,
)
"""Every law of stores."""


@contextmanager
def _opened(fixture: StoreFixture) -> Generator[Opened, None, None]:
    opened = fixture.factory()
    try:
        yield opened
    finally:
        with suppress(StoreError):  # what a store says when it is closed is for check_closes to judge
            opened.store.close()


def _survives(law: str, store: Store, reopen: Callable[[], Store] | None, kept: Iterable[Record], how: str) -> None:
    with ExitStack() as stack:
        reader = store if reopen is None else stack.enter_context(closing(reopen()))
        found = {_place(record): record for record in reader.read()}
    lost = [_place(record) for record in kept if found.get(_place(record)) != record]
    if lost:
        raise broken(law, store, f"records {lost[:3]} are lost or changed", reproduce=f"{how}, then open it anew")


def _entry(session: str, at: float = 1.0, codes: tuple[str, ...] = ()) -> Entry:
    return Entry(session=session, at=at, kind=Kind.DECISION, payload=Raw(b'{"action":"log_only"}'), codes=codes)


def _place(record: Record) -> tuple[str, int]:
    return record.session, record.n


def _reason(record: Record) -> str:
    return msgspec.json.decode(record.payload or b"{}", type=Erasure).reason


def _counts(records: Iterable[Record]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for record in records:
        counts[record.session] = counts.get(record.session, 0) + 1
    return counts


# Three sessions in turns, of unlike length; their names do not sort in the order of their first records.
_ENTRIES = tuple(
    [
        Entry(
            session=session,
            at=float(place),
            kind=(Kind.DECISION, Kind.EVENT, Kind.COVERAGE)[place % 3],
            payload=Raw(msgspec.json.encode({"place": place})),
            codes=codes,
        )
        for place, (session, codes) in enumerate(
            [
                ("s-2", ()),
                ("s-1", ("a.x",)),
                ("s-2", ("a.x", "b.y")),
                ("s-0", ("b.y",)),
                ("s-1", ()),
                ("s-1", ("b.y", "a.x")),
                ("s-2", ("a.x",)),
            ]
        )
    ]
)
_SCRIPT = "append the entries of three sessions in turns"
