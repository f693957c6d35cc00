"""The laws of shelves."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from theodolite.core.shelf import Shelf
from theodolite.core.text import printable
from theodolite.testing.checks.law import broken, run, unraised
from theodolite.testing.sessions import HOSTILE_TEXTS

__all__ = ("CHECKS", "ShelfFixture", "Shelved", "check_shelf")

_WORKERS, _EACH = 4, 25
# Bytes in a row that two sealed texts have in common by chance as good as never: the length of a SHA-256.
_PIECE = 32


class Shelved(NamedTuple):
    """A shelf, how to open what it holds once more, and how to read its raw bytes (None: it lives in memory alone)."""

    shelf: Shelf
    reopen: Callable[[], Shelf] | None = None
    raw: Callable[[], bytes] | None = None


@dataclass(frozen=True, kw_only=True)
class ShelfFixture:
    """A shelf under test.

    `factory` makes an empty one in a new place each time; a durable one comes with what opens that place again, also
    while the first is open, and with what reads all bytes that lie there.
    """

    factory: Callable[[], Shelved]


def check_shelf(factory: Callable[[], Shelved], *, skips: Mapping[str, str] | None = None) -> None:
    """Run every law of shelves on what the factory makes.

    `skips` maps the name of a law to the reason why it cannot hold. Raises AssertionError for a broken law, ConfigError
    for a skip of an unknown law or without a reason.
    """
    run(CHECKS, ShelfFixture(factory=factory), skips or {})


def check_holds(fixture: ShelfFixture) -> None:
    """Check that each session is held as it was kept last, byte for byte, whatever its id and its bytes are."""
    sessions = {f"s {printable(text)}": text.encode("utf-8", "surrogatepass") for text in HOSTILE_TEXTS}
    sessions |= {"": b"", "empty": b"", "zero": b"\0" * 9, "S-1": b"upper", "s-1": b"lower", "large": b"x" * 1_000_000}
    with _made(fixture, "holds") as shelf:
        for session, saved in sessions.items():
            shelf.keep(session, b"older")
            shelf.keep(session, saved)
        _same("holds", shelf, sessions.values(), "keep each of some sessions twice, then held()")


def check_drops(fixture: ShelfFixture) -> None:
    """Check that what was dropped is not held, that the rest is, and that nobody minds what was never there."""
    with _made(fixture, "drops") as shelf:
        for session in ("s-1", "s-2", "s-3"):
            shelf.keep(session, session.encode())
        for session in ("s-2", "s-2", "nobody"):
            shelf.drop(session)
        how = "keep s-1, s-2 and s-3, drop s-2 twice, then held()"
        _same("drops", shelf, (b"s-1", b"s-3"), how)
        shelf.keep("s-2", b"again")
        _same("drops", shelf, (b"s-1", b"s-3", b"again"), f"{how}, keep s-2 once more")


def check_calm(fixture: ShelfFixture) -> None:
    """Check that sessions may be kept and dropped while `held` is read, as `Monitor.recover` does."""
    with _made(fixture, "calm") as shelf:
        before = [f"s-{number}".encode() for number in range(20)]
        for saved in before:
            shelf.keep(saved.decode(), saved)
        seen: list[bytes] = []
        for saved in shelf.held():
            seen.append(saved)
            if saved in before:
                shelf.keep(f"new {saved.decode()}", b"new")
                shelf.drop(saved.decode())
        lost = sorted(set(before) - set(seen))
        if lost:
            what = f"{len(lost)} sessions are not yielded that were held before and after {lost[0]!r} was asked for"
            raise broken("calm", shelf, what, reproduce="drop each session when held() yields it, and keep another")


def check_durable(fixture: ShelfFixture) -> None:
    """Check that whoever opens the place anew finds what `keep` and `drop` left, though nobody closed it."""
    shelved = fixture.factory()
    if shelved.reopen is None:
        return
    how = "keep s-1 and s-2, drop s-1, and open the place once more"
    with unraised("durable", shelved.shelf, reproduce=how):
        for session in ("s-1", "s-2"):
            shelved.shelf.keep(session, session.encode())
        shelved.shelf.drop("s-1")
        _same("durable", shelved.reopen(), (b"s-2",), how)


def check_sealed(fixture: ShelfFixture) -> None:
    """Check that nothing of what is held can be read where it lies, and that what was dropped has left no byte."""
    shelved = fixture.factory()
    if shelved.raw is None:
        return
    text = b"Please find the account number DE89 3704 0044 0532 0130 00."
    with unraised("sealed", shelved.shelf, reproduce="keep a session, drop it"):
        shelved.shelf.keep("another", b"another")
        before = shelved.raw()
        shelved.shelf.keep("the-name-of-a-session", text * 20)
        held = shelved.raw()
        for what, part in {"the text": text, "the id": b"the-name-of-a-session"}.items():
            if part in held:
                raise broken("sealed", shelved.shelf, f"{what} can be read", reproduce="keep a session, read its file")
        shelved.shelf.drop("the-name-of-a-session")
        after = shelved.raw()
        pieces = (held[place : place + _PIECE] for place in range(len(held) - _PIECE + 1))
        if any(piece in after and piece not in before for piece in pieces):
            what = "bytes of a session that was dropped are still there"
            raise broken("sealed", shelved.shelf, what, reproduce="keep a session, drop it, read all files")


def check_threads(fixture: ShelfFixture) -> None:
    """Check that several threads may keep, drop and read at once, each session on one of them."""
    with _made(fixture, "threads") as shelf:

        def work(worker: int) -> None:
            for number in range(_EACH):
                shelf.keep(f"own-{worker}", f"{worker}: {number}".encode())
                shelf.keep(f"short-{worker}", b"short")
                list(shelf.held())
                shelf.drop(f"short-{worker}")

        how = f"keep and drop from {_WORKERS} threads at once, {_EACH} times each"
        with unraised("threads", shelf, reproduce=how), ThreadPoolExecutor(_WORKERS) as pool:
            list(pool.map(work, range(_WORKERS)))
        _same("threads", shelf, [f"{worker}: {_EACH - 1}".encode() for worker in range(_WORKERS)], how)


@contextmanager
def _made(fixture: ShelfFixture, law: str) -> Generator[Shelf, None, None]:
    shelf = fixture.factory().shelf
    if list(shelf.held()):
        raise broken(law, shelf, "a new shelf is not empty", reproduce="read held() of a new shelf")
    with unraised(law, shelf, reproduce="keep sessions with hostile ids and contents, and drop some"):
        yield shelf


def _same(law: str, shelf: Shelf, wanted: Iterable[bytes], how: str) -> None:
    found, expected = sorted(shelf.held()), sorted(wanted)
    if found != expected:
        odd = next((saved for saved in found if saved not in expected), b"")[:40]
        what = f"held() yields {len(found)} sessions, and not the {len(expected)} that were kept last; one is {odd!r}"
        raise broken(law, shelf, what, reproduce=how)


CHECKS = (check_holds, check_drops, check_calm, check_durable, check_sealed, check_threads)
