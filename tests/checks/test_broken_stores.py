"""Each law of stores catches a store that breaks it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext

import pytest
from msgspec import Raw
from msgspec.structs import replace

from theodolite.core.errors import StoreError
from theodolite.core.store import (
    Entry,
    Head,
    Kind,
    Record,
    Registry,
    seal_erasure,
    seal_head,
    seal_record,
    seal_registry,
)
from theodolite.core.text import encodable
from theodolite.testing.checks.law import name_of
from theodolite.testing.checks.store import CHECKS, Opened, StoreFixture, check_store

KEY = bytes(range(32))


class Disk:
    """What outlives a store."""

    def __init__(self) -> None:
        self.chains: dict[str, list[Record]] = {}
        self.salts = 0


class Honest:
    """Keeps records in memory and writes them to a disk when asked: the store that every mutant here was once."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.chains = {session: list(chain) for session, chain in disk.chains.items()}
        self.lock: threading.RLock | nullcontext[None] = threading.RLock()
        self.closed = False

    def append(self, entry: Entry, *, durable: bool = False) -> Record:
        with self.lock:
            self.check(entry)
            chain = self.chains.setdefault(entry.session, [])
            record = self.seal(entry, chain)
            chain.append(record)
            if durable:
                self.write()
            return record

    def check(self, entry: Entry) -> None:
        if self.closed or not all(map(encodable, (entry.session, *entry.codes))):
            raise StoreError("this entry cannot be kept: mend it, or open the store again")
        written = self.disk.chains.get(entry.session, [])
        if written != self.chains.get(entry.session, [])[: len(written)]:
            raise StoreError("another store writes this session: open it again")

    def salt(self) -> str:
        self.disk.salts += 1
        return f"{self.disk.salts:032x}"

    def seal(self, entry: Entry, chain: list[Record]) -> Record:
        previous = chain[-1].hash if chain else ""
        return seal_record(entry, n=len(chain), previous=previous, salt=self.salt())

    def write(self) -> None:
        self.disk.chains.update({session: list(chain) for session, chain in self.chains.items()})

    def read(
        self,
        *,
        session: str | None = None,
        since: float | None = None,
        until: float | None = None,
        code: str | None = None,
    ) -> Iterator[Record]:
        with self.lock:
            kept = [record for name in sorted(self.chains) for record in self.chains[name]]
        for record in kept:
            if (
                session in {None, record.session}
                and (since is None or self.early(since, record.at))
                and (until is None or record.at <= until)
                and (code is None or code in record.codes)
            ):
                yield record

    def early(self, since: float, at: float) -> bool:
        return since <= at

    def head(self, session: str) -> Head | None:
        return next((head for head in self.heads() if head.session == session), None)

    def heads(self) -> Iterator[Head]:
        link = ""
        with self.lock:
            ends = [chain[-1] for chain in self.chains.values() if chain]
        for position, record in enumerate(ends):
            head = seal_head(record, position=position, before=link, key=self.key())
            link = head.link
            yield head

    def key(self) -> bytes | None:
        return KEY

    def registry(self) -> Registry | None:
        heads = list(self.heads())
        return seal_registry(count=len(heads), link=heads[-1].link if heads else "", key=self.key())

    def flush(self) -> None:
        with self.lock:
            self.write()

    def ready(self) -> None:
        if self.closed:
            raise StoreError("closed")

    def erase(self, session: str, *, reason: str = "") -> int:
        with self.lock:
            chain = self.chains.get(session, [])
            full = [record.n for record in chain if record.payload is not None and record.kind is not Kind.ERASURE]
            for n in full:
                chain[n] = self.without_payload(chain[n])
            if full:
                self.tell(len(full), chain, reason)
            self.write()
            return len(full)

    def tell(self, payloads: int, chain: list[Record], reason: str) -> None:
        last, salt = chain[-1], self.salt()
        n, previous = last.n + 1, last.hash
        chain.append(
            seal_erasure(last.session, at=9.0, payloads=payloads, n=n, previous=previous, salt=salt, reason=reason)
        )

    def without_payload(self, record: Record) -> Record:
        return replace(record, payload=None, salt=None)

    def close(self) -> None:
        if not self.closed:
            self.flush()
        self.closed = True


class Unchained(Honest):
    def seal(self, entry: Entry, chain: list[Record]) -> Record:
        return replace(super().seal(entry, chain), previous="")


class Unsalted(Honest):
    def seal(self, entry: Entry, chain: list[Record]) -> Record:
        previous = chain[-1].hash if chain else ""
        return seal_record(entry, n=len(chain), previous=previous, salt=bytes(16).hex())


class Mixing(Honest):
    """Reads in the order of time, whatever the session."""

    def read(
        self,
        *,
        session: str | None = None,
        since: float | None = None,
        until: float | None = None,
        code: str | None = None,
    ) -> Iterator[Record]:
        found = super().read(session=session, since=since, until=until, code=code)
        yield from sorted(found, key=lambda record: record.at)


class Excluding(Honest):
    """Leaves out what came at the very moment that was asked for."""

    def early(self, since: float, at: float) -> bool:
        return since < at


class Headless(Honest):
    """Knows the head of every session, that of nobody included."""

    def head(self, session: str) -> Head | None:
        return super().head(session) or next(self.heads(), None)


class Unborn(Honest):
    """Has no registry before it has a session."""

    def registry(self) -> Registry | None:
        return super().registry() if self.chains else None


class Sorting(Honest):
    """Gives its heads by name."""

    def heads(self) -> Iterator[Head]:
        yield from sorted(super().heads(), key=lambda head: head.session)


class Unsealed(Honest):
    def key(self) -> bytes | None:
        return None


class Compacting(Honest):
    """Keeps the last eight records of all."""

    def append(self, entry: Entry, *, durable: bool = False) -> Record:
        record = super().append(entry, durable=durable)
        for chain in self.chains.values():
            for place, old in enumerate(chain[:-2]):
                chain[place] = self.without_payload(old)
        return record


class Rounding(Honest):
    """Keeps time in microseconds."""

    def append(self, entry: Entry, *, durable: bool = False) -> Record:
        record = super().append(entry, durable=durable)
        self.chains[entry.session][-1] = replace(record, at=round(record.at, 6))
        return record


class Unguarded(Honest):
    """Lets the encoder's own error through."""

    def check(self, entry: Entry) -> None:
        entry.session.encode()
        "".join(entry.codes).encode()
        if self.closed:
            raise StoreError("closed")


class Overfull(Honest):
    """Has counted the entry before it refuses it."""

    def check(self, entry: Entry) -> None:
        try:
            super().check(entry)
        except StoreError:
            self.chains["s-1"].append(self.seal(replace(entry, session="s-1", codes=()), self.chains["s-1"]))
            raise


class Hiding(Honest):
    """Takes the payload and leaves the salt, with which it can be guessed."""

    def without_payload(self, record: Record) -> Record:
        return replace(record, payload=None)


class Silent(Honest):
    """Takes payloads and says nothing of it."""

    def tell(self, payloads: int, chain: list[Record], reason: str) -> None:
        pass


class Curt(Honest):
    """Does not say why it took payloads."""

    def tell(self, payloads: int, chain: list[Record], reason: str) -> None:
        del reason
        super().tell(payloads, chain, "")


class Boasting(Honest):
    """Says that it took more than it did."""

    def tell(self, payloads: int, chain: list[Record], reason: str) -> None:
        super().tell(payloads + 1, chain, reason)


class Believing(Honest):
    """Takes it from anybody that something was erased."""

    def seal(self, entry: Entry, chain: list[Record]) -> Record:
        return super().seal(replace(entry, kind=Kind.EVENT) if entry.kind is Kind.ERASURE else entry, chain)


class Racing(Honest):
    """Leaves the door open while it seals."""

    def __init__(self, disk: Disk) -> None:
        super().__init__(disk)
        self.lock = nullcontext()
        self.turn = threading.Barrier(2)

    def seal(self, entry: Entry, chain: list[Record]) -> Record:
        record = super().seal(entry, chain)
        if threading.current_thread() is not threading.main_thread():
            try:
                self.turn.wait(0.05)
            except threading.BrokenBarrierError:
                self.turn.reset()
        return record


class Lazy(Honest):
    """Takes durable for a wish."""

    def append(self, entry: Entry, *, durable: bool = False) -> Record:
        del durable
        return super().append(entry)


class Buffering(Honest):
    """Keeps the last record back for a fuller group."""

    def flush(self) -> None:
        kept = {session: list(chain[:-1]) for session, chain in self.chains.items()}
        self.disk.chains.update({session: chain for session, chain in kept.items() if chain})


class Fearful(Honest):
    """Is never ready while it has something to write."""

    def ready(self) -> None:
        if self.chains != self.disk.chains:
            raise StoreError("not yet")


class Secretive(Honest):
    """Keeps something else than it was given, and nobody can get it back."""

    def seal(self, entry: Entry, chain: list[Record]) -> Record:
        return super().seal(replace(entry, payload=Raw(b"{}")), chain)


class Dropping(Honest):
    """Lets go of what it has not written yet."""

    def close(self) -> None:
        self.closed = True


class Swallowing(Honest):
    """Takes what comes after it was closed, and writes none of it."""

    def check(self, entry: Entry) -> None:
        if not self.closed:
            super().check(entry)

    def write(self) -> None:
        if not self.closed:
            super().write()


class Forking(Honest):
    """Trusts in being alone."""

    def check(self, entry: Entry) -> None:
        if self.closed or not encodable(entry.session + "".join(entry.codes)):
            raise StoreError("this entry cannot be kept")


class Erasing(Forking):
    """Forgets to write that it erased."""

    def write(self) -> None:
        for session, chain in self.chains.items():
            written = self.disk.chains.setdefault(session, [])
            written.extend(chain[len(written) :])


def _on(made: Callable[[Disk], Honest]) -> StoreFixture:
    def factory() -> Opened:
        disk = Disk()
        return Opened(made(disk), lambda: made(disk))

    return StoreFixture(factory=factory, key=KEY)


MUTANTS: dict[str, dict[str, StoreFixture]] = {
    "seals": {"no previous": _on(Unchained), "another payload": _on(Secretive)},
    "salts": {"one salt": _on(Unsalted)},
    "keeps": {"by time": _on(Mixing)},
    "finds": {"since is left out": _on(Excluding)},
    "heads": {"a head for nobody": _on(Headless), "no registry at first": _on(Unborn), "by name": _on(Sorting)},
    "verifies": {"no seal": _on(Unsealed)},
    "append_only": {"compacts": _on(Compacting)},
    "exact": {"rounds time": _on(Rounding)},
    "refuses": {
        "another error": _on(Unguarded),
        "half a record": _on(Overfull),
        "an erasure that was none": _on(Believing),
    },
    "erases": {
        "leaves the salt": _on(Hiding),
        "in memory alone": _on(Erasing),
        "no record of it": _on(Silent),
        "counts too many": _on(Boasting),
        "no reason": _on(Curt),
    },
    "threads": {"no lock": _on(Racing)},
    "durable": {"not written": _on(Lazy)},
    "flushes": {"one is kept back": _on(Buffering)},
    "ready": {"never before a flush": _on(Fearful)},
    "closes": {"drops the rest": _on(Dropping), "swallows what is late": _on(Swallowing)},
    "forks": {"two writers": _on(Forking)},
}
CASES = [(law, how) for law, mutants in MUTANTS.items() for how in mutants]


@pytest.mark.parametrize(("law", "how"), CASES, ids=[f"{law}: {how}" for law, how in CASES])
def test_a_law_catches_who_breaks_it(law: str, how: str) -> None:
    (check,) = [check for check in CHECKS if name_of(check) == law]
    with pytest.raises(AssertionError, match=f"breaks the law '{law}'.*To see it again: "):
        check(MUTANTS[law][how])


def test_no_law_is_without_its_mutant() -> None:
    assert list(MUTANTS) == [name_of(check) for check in CHECKS]


def test_who_breaks_nothing_passes() -> None:
    check_store(_on(Honest).factory, key=KEY)
