"""Evidence that holds: records in a chain per session, heads and a registry that show what is missing.

A record's hash covers its place, time, kind, codes, the digest of its salted payload, and the hash before it. The
payload can be erased with its salt and the chain still holds; the erasure is itself a record, which counts what it
took. A head row names the newest record of each session, the sessions stand in a chain of their own, and the registry
counts them, from 0 in a new store on.

*Without a key*, `verify` finds what was not made to fit: a record that was changed, removed, reordered or added, a
payload that was changed or taken without an erasure, a head or a registry that does not match. Whoever can write the
store can compute all of this anew, and then nothing shows: not a change, not a cut tail, not a removed session, not an
erasure that nobody asked for, not a store that was emptied.

*With the key*, heads and registry are sealed, and each of these is found, if it was done without the key. Not found is
what was sealed with this key once and is put back: older copies of the rows, or another store in this one's place.

*With heads kept elsewhere*, with or without the key, the records up to each of them are held to it, and so are the
sessions before its own: older copies that lack one of them are found. What came later may be missing still.
"""

from __future__ import annotations

import hashlib
import hmac
import math
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Protocol, runtime_checkable

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from theodolite.core.errors import StoreError
from theodolite.core.text import printable

__all__ = (
    "Entry",
    "Erasure",
    "Head",
    "Indexed",
    "Kind",
    "Problem",
    "ReadableStore",
    "Record",
    "Registry",
    "Store",
    "Verification",
    "seal_erasure",
    "seal_head",
    "seal_record",
    "seal_registry",
    "verify",
)

_ENCODER = msgspec.json.Encoder()

# 128 bits: a salt has to be guessed before an erased payload can be. Of one length, so that the digest of salt and
# payload says where the one ends: the beginning of a payload does not pass for salt.
SALT_BYTES = 16


class Kind(StrEnum):
    """What a record keeps."""

    DECISION = "decision"
    EVENT = "event"
    COVERAGE = "coverage"
    ERASURE = "erasure"


class Entry(Struct, frozen=True, kw_only=True, gc=False):
    """Something to be kept: already redacted, as JSON. `codes` are what it can be found by.

    Of an erasure there is no entry: `Store.erase` makes its record.
    """

    session: str
    at: float
    kind: Kind
    payload: Raw
    codes: tuple[str, ...] = ()


class Erasure(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """The payload of an erasure: how many payloads it took, up to which record none is left, and why."""

    payloads: int
    through: int
    reason: str = ""


class Record(Struct, frozen=True, kw_only=True, gc=False):
    """A kept entry in its place. `n` counts from 0 within the session; hashes are hex SHA-256.

    `payload` and `salt` are None, both, once they have been erased. A record says what the store has, right or wrong:
    `holds` tells whether the payload is the one that was sealed, and `verify` whether the record is.
    """

    session: str
    n: int
    at: float
    kind: Kind
    codes: tuple[str, ...]
    payload: Raw | None
    salt: str | None
    digest: str
    previous: str
    hash: str

    @property
    def holds(self) -> bool:
        """Whether the payload is there and is the one of the digest. Costs one SHA-256."""
        if self.payload is None or self.salt is None:
            return False
        return _payload_digest(self.salt, self.payload) == self.digest


class Head(Struct, frozen=True, kw_only=True, gc=False):
    """The newest record of a session, and the session's place among all sessions.

    `position` counts sessions from 0 in the order of their first record; `link` chains them: it covers the session's
    name and the link before it. `seal` is an HMAC-SHA256 over the rest, empty without a key.
    """

    session: str
    position: int
    link: str
    n: int
    hash: str
    seal: str = ""


class Registry(Struct, frozen=True, kw_only=True, gc=False):
    """How many sessions there are, and the last link of their chain, sealed like a head."""

    count: int
    link: str
    seal: str = ""


class ReadableStore(Protocol):
    """What can be read of a store: all that `verify` needs.

    A read gives what is kept and checks no hash: whoever acts on a payload looks at `Record.holds` first.
    """

    def read(
        self,
        *,
        session: str | None = None,
        since: float | None = None,
        until: float | None = None,
        code: str | None = None,
    ) -> Iterator[Record]:
        """Yield the records that fit, as they were at one moment. Raises StoreError.

        `since` and `until` are in seconds since the epoch, both included.
        """
        ...

    def head(self, session: str) -> Head | None:
        """Return the head of a session, or None when nothing was kept of it. Raises StoreError."""
        ...

    def heads(self) -> Iterator[Head]:
        """Yield the heads of all sessions by position. Raises StoreError."""
        ...

    def registry(self) -> Registry | None:
        """Return the registry of sessions, which a new store has too; None when it is gone. Raises StoreError."""
        ...


@runtime_checkable
class Indexed(Protocol):
    """A store that keeps codes beside its records, and can say which of them belong to none: `verify` asks it."""

    def strays(self) -> Iterator[Problem]:
        """Yield a problem for each record that is not there and has codes. Raises StoreError."""
        ...


class Store(ReadableStore, Protocol):
    """Keeps records; never part of a transcript; append-only.

    Laws: `append` seals the entry behind the newest record of its session; what `append(durable=True)` returned, or
    what was appended before `flush` returned, survives the death of the process; (session, n) is unique and a second
    writer to a session is a StoreError; `read` yields by session and n; a store that cannot keep an entry raises
    StoreError and loses nothing acknowledged; only `erase` takes payloads away, and it leaves a record of that. Safe to
    call from several threads.
    """

    def append(self, entry: Entry, *, durable: bool = False) -> Record:
        """Seal and keep an entry. Raises StoreError."""
        ...

    def flush(self) -> None:
        """Return when all that was appended is durable. Raises StoreError."""
        ...

    def ready(self) -> None:
        """Raise the StoreError that the newest attempt to write met, until one succeeds; waits for nothing.

        Where `append` writes behind, this is how somebody learns that it fails who must not go on without evidence.
        """
        ...

    def erase(self, session: str, *, reason: str = "") -> int:
        """Take away the payloads of a session for good and return how many; its chain stays.

        Where there were any, the record of `seal_erasure` is appended in the same step, so that only the session's one
        writer may erase while the session is open. The payloads of erasures stay, the reason in them too. Raises
        StoreError.
        """
        ...

    def close(self) -> None:
        """Flush, and let go of files and threads. Raises StoreError."""
        ...


def seal_record(entry: Entry, *, n: int, previous: str, salt: str) -> Record:
    """Return the record of an entry behind the record whose hash is `previous` ("" for the first).

    `salt` is 16 random bytes in lower-case hexadecimal. Raises StoreError for another one, and where the entry cannot
    be told apart once it is kept: a time that is no number, a lone surrogate, an erasure that is none.
    """
    if entry.kind is Kind.ERASURE:
        raise StoreError(f"an entry of session {entry.session!r} cannot be kept: only erase() records an erasure")
    return _seal(entry, n=n, previous=previous, salt=salt)


def seal_erasure(
    session: str, *, at: float, payloads: int, n: int, previous: str, salt: str, reason: str = ""
) -> Record:
    """Return the record of an erasure that left no payload in the session, behind the record whose hash is `previous`.

    `payloads` counts those that it took. Lone surrogates in `reason` are spelled out. Raises like `seal_record`.
    """
    payload = _ENCODER.encode(Erasure(payloads=payloads, through=n - 1, reason=printable(reason)))
    entry = Entry(session=session, at=at, kind=Kind.ERASURE, payload=Raw(payload))
    return _seal(entry, n=n, previous=previous, salt=salt)


def _counts(payload: Raw, *, payloads: int, n: int) -> bool:
    """Tell whether the payload of an erasure in place `n` says that it took so many, and why, and nothing else."""
    try:
        said = msgspec.json.decode(payload, type=Erasure)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return bytes(payload) == _ENCODER.encode(replace(said, payloads=payloads, through=n - 1))


def _seal(entry: Entry, *, n: int, previous: str, salt: str) -> Record:
    payload = Raw(bytes(entry.payload))  # a copy: the bytes under a Raw may change or be part of something larger
    digest = _payload_digest(salt, payload)
    if digest is None:
        raise StoreError(f"a salt is {SALT_BYTES} bytes in lower-case hexadecimal, not {salt!r}: mend what makes them")
    try:
        at = entry.at + 0.0  # 5 and -0.0 come back from a database as 5.0 and 0.0, and JSON writes each differently
        sealed = _digest(entry.session, n, at, entry.kind, entry.codes, digest, previous)
    except (OverflowError, UnicodeEncodeError) as error:
        raise StoreError(f"an entry of session {entry.session!r} cannot be kept: {error}") from error
    if not math.isfinite(at):
        raise StoreError(f"an entry of session {entry.session!r} cannot be kept: its time is {at}, not a number")
    return Record(
        session=entry.session,
        n=n,
        at=at,
        kind=entry.kind,
        codes=entry.codes,
        payload=payload,
        salt=salt,
        digest=digest,
        previous=previous,
        hash=sealed,
    )


def seal_head(record: Record, *, position: int, before: str, key: bytes | None) -> Head:
    """Return the head of a session whose newest record is given; `before` is the link of the session before it."""
    link = _digest(record.session, before)
    seal = _hmac(key, "head", record.session, position, link, record.n, record.hash)
    return Head(session=record.session, position=position, link=link, n=record.n, hash=record.hash, seal=seal)


def seal_registry(*, count: int, link: str, key: bytes | None) -> Registry:
    """Return the registry of `count` sessions, the last of which has that link."""
    return Registry(count=count, link=link, seal=_hmac(key, "registry", count, link))


def _payload_digest(salt: str, payload: Raw) -> str | None:
    """Return the digest of a salted payload, or None for what was never a salt of ours."""
    try:
        salted = bytes.fromhex(salt)
    except ValueError:
        return None
    if len(salted) != SALT_BYTES or salted.hex() != salt:
        return None
    return hashlib.sha256(salted + bytes(payload)).hexdigest()


def _digest(*parts: object) -> str:
    return hashlib.sha256(_ENCODER.encode(parts)).hexdigest()


def _hmac(key: bytes | None, *parts: object) -> str:
    return "" if key is None else hmac.new(key, _ENCODER.encode(parts), hashlib.sha256).hexdigest()


class Problem(Struct, frozen=True, kw_only=True, gc=False):
    """One thing that is wrong with a store. `n` is the record, where the fault lies in one."""

    session: str
    what: str
    n: int | None = None


class Verification(Struct, frozen=True, kw_only=True, gc=False):
    """What a verification saw. `unshown` says, in words, which faults it could not have found."""

    sessions: int
    records: int
    erased: int
    problems: tuple[Problem, ...]
    unshown: tuple[str, ...]

    @property
    def intact(self) -> bool:
        """Whether nothing was found wrong."""
        return not self.problems


def verify(store: ReadableStore, key: bytes | None = None, kept: Iterable[Head] = ()) -> Verification:
    """Read a whole store and check every hash, place, head and seal that can be checked.

    With `key` the seals are checked too. `kept` are heads of this store that were kept elsewhere: each must still lie
    on its chain. One pass, in memory for one head a session and for those kept. The store may be written to meanwhile:
    what came after the beginning is held only to the heads that came with it. Raises StoreError where the store cannot
    be read.
    """
    check = _Check(store, key, kept)
    check.registry()
    for record in store.read():
        check.record(record)
    check.finish()
    return check.result()


class _Check:
    def __init__(self, store: ReadableStore, key: bytes | None, kept: Iterable[Head]) -> None:
        self.store = store
        self.key = key
        # In this order: what a store that is written to gains between two reads is then more than was counted.
        self.book = store.registry()
        self.heads = {head.session: head for head in store.heads()}
        self.kept: dict[tuple[str, int], list[Head]] = {}
        for head in kept:
            self.kept.setdefault((head.session, head.n), []).append(head)
        self.keeps = bool(self.kept)
        self.problems: list[Problem] = []
        self.last: Record | None = None
        self.seen: set[str] = set()
        self.records = self.erased = 0
        self.uncounted = 0  # payloads of this session that are gone, with no erasure behind them yet

    def _wrong(self, session: str, what: str, n: int | None = None) -> None:
        self.problems.append(Problem(session=session, what=what, n=n))

    def registry(self) -> None:
        """Check the chain of sessions, its end, and the seals."""
        link, place = "", 0
        for head in sorted(self.heads.values(), key=lambda head: head.position):
            link = _digest(head.session, link)
            if (head.position, head.link) != (place, link):
                self._wrong(head.session, "the chain of sessions is broken here: a session before it was removed")
            link, place = head.link, head.position + 1
            self._check_head(head)
        self._check_end(link)
        for kept in [head for heads in self.kept.values() for head in heads]:
            now = self.heads.get(kept.session)
            if now is not None and (now.position, now.link) != (kept.position, kept.link):
                self._wrong(kept.session, "the sessions before it are not those of its head that was kept elsewhere")

    def _check_end(self, link: str) -> None:
        book, count, began = self.book, len(self.heads), False
        if book is None or book.count < count:
            book = self.store.registry()
            began = book is not None and book.count > count
        if book is None:
            self._wrong("", "the registry of sessions is gone")
            return
        if book.count != count and not began:
            self._wrong("", f"the registry counts {book.count} sessions, the store has {count}")
        elif book.link != link and not began:
            self._wrong("", "the registry does not end with the last session")
        if not self._is_sealed(book.seal, "registry", book.count, book.link):
            self._wrong("", "the registry of sessions is not sealed with this key")

    def _check_head(self, head: Head) -> None:
        if not self._is_sealed(head.seal, "head", head.session, head.position, head.link, head.n, head.hash):
            self._wrong(head.session, "its head is not sealed with this key", head.n)

    def _is_sealed(self, seal: str, *parts: object) -> bool:
        return self.key is None or hmac.compare_digest(_hmac(self.key, *parts).encode(), seal.encode())

    def record(self, record: Record) -> None:
        """Check one record against the one before it."""
        last = self.last
        if last is None or last.session != record.session:
            self._end(last)
            last = None
        self.last = record
        self.seen.add(record.session)
        self.records += 1
        expected = (0, "") if last is None else (last.n + 1, last.hash)
        if (record.n, record.previous) != expected:
            self._wrong(
                record.session, f"record {expected[0]} was expected here: removed, reordered or added", record.n
            )
        fields = (record.session, record.n, record.at, record.kind, record.codes, record.digest, record.previous)
        if _digest(*fields) != record.hash:
            self._wrong(record.session, "the record was changed", record.n)
        self._check_payload(record)
        for head in self.kept.pop((record.session, record.n), ()):
            if head.hash != record.hash:
                self._wrong(record.session, "it is another record than the head kept elsewhere says", record.n)

    def _check_payload(self, record: Record) -> None:
        if record.payload is None and record.salt is None:
            self.erased += 1
            self.uncounted += 1
        elif record.payload is None or record.salt is None:
            what = "its salt is gone and its payload is not, or the other way round: no erasure leaves that"
            self._wrong(record.session, what, record.n)
        elif not record.holds:
            self._wrong(record.session, "the payload was changed", record.n)
        if record.kind is Kind.ERASURE and record.payload is not None:
            if not _counts(record.payload, payloads=self.uncounted, n=record.n):
                what = f"of the payloads before it {self.uncounted} more are gone: its erasure says otherwise"
                self._wrong(record.session, what, record.n)
            self.uncounted = 0

    def _end(self, last: Record | None) -> None:
        if last is None:
            return
        if self.uncounted:
            self._wrong(last.session, f"{self.uncounted} payloads are gone without an erasure behind them", last.n)
            self.uncounted = 0
        head = self.heads.get(last.session)
        if head is None or head.n < last.n:
            head = self._newer_head(last, head)
        if head is None:
            self._wrong(last.session, "it has records but no head: its head was removed, or it was added", last.n)
        elif (head.n, head.hash) != (last.n, last.hash):
            self._wrong(last.session, f"its head is record {head.n}: the tail was cut or rewritten", last.n)

    def _newer_head(self, last: Record, head: Head | None) -> Head | None:
        newer = self.store.head(last.session)
        if newer is None or newer == head:
            return head
        self._check_head(newer)
        # Of what was appended after the last record that was read nothing more can be said.
        return newer if newer.n <= last.n else replace(newer, n=last.n, hash=last.hash)

    def finish(self) -> None:
        """Check the last session, and that every head has records, those kept elsewhere too."""
        self._end(self.last)
        for session in sorted(self.heads.keys() - self.seen):
            self._wrong(session, "it has a head but no records: they were removed")
        for session, n in self.kept:
            self._wrong(session, "the record is gone that a head kept elsewhere names", n)
        self.problems.extend(self.store.strays() if isinstance(self.store, Indexed) else ())

    def result(self) -> Verification:
        """Return what was found."""
        return Verification(
            sessions=len(self.heads),
            records=self.records,
            erased=self.erased,
            problems=tuple(self.problems),
            unshown=_unshown(keyed=self.key is not None, keeps=self.keeps),
        )


def _unshown(*, keyed: bool, keeps: bool) -> tuple[str, ...]:
    if keyed and keeps:
        return ("older copies of the head and registry rows put back that are no older than the heads kept elsewhere",)
    if keyed:
        older = "older copies of the head and registry rows put back, or another store that was sealed with this key"
        return (f"{older}: compare with heads kept elsewhere",)
    later = " behind the heads kept elsewhere" if keeps else ""
    return (
        f"without the key: a cut tail or a removed session{later} whose head rows were rewritten to fit",
        f"without the key: a chain that was computed anew{later} after a change",
        "without the key: payloads erased by another hand, with an erasure that was made to fit",
        *(() if keeps else ("without the key: a store that was emptied, or another one in its place",)),
    )
