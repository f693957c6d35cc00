"""Each law of shelves is broken by a shelf of its own, and by that one alone it is caught."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from theodolite.core.errors import StoreError
from theodolite.testing.checks import shelf
from theodolite.testing.checks.law import Check, name_of
from theodolite.testing.fakes import MemoryShelf


class Kept:
    """Honest: what lies in `place` is what a file would hold; a shelf may be opened there again."""

    def __init__(self, place: dict[str, bytes] | None = None) -> None:
        self.place: dict[str, bytes] = {} if place is None else place

    def keep(self, session: str, saved: bytes) -> None:
        self.place[self.name(session)] = self.sealed(saved)

    def drop(self, session: str) -> None:
        self.place.pop(self.name(session), None)

    def held(self) -> Iterator[bytes]:
        yield from [self.sealed(saved) for saved in list(self.place.values())]

    def name(self, session: str) -> str:
        return session.encode().hex()

    def sealed(self, saved: bytes) -> bytes:
        return bytes([byte ^ 0x55 for byte in saved])

    def raw(self) -> bytes:
        return b"".join([name.encode() + saved for name, saved in self.place.items()])


class KeepsTheFirst(Kept):
    def keep(self, session: str, saved: bytes) -> None:
        self.place.setdefault(self.name(session), self.sealed(saved))


class CaseBlind(Kept):
    def name(self, session: str) -> str:
        return session.lower()


class KeepsEmptyOnesOut(Kept):
    def keep(self, session: str, saved: bytes) -> None:
        if saved:
            super().keep(session, saved)


class DropsNothing(Kept):
    def drop(self, session: str) -> None:
        pass


class MindsWhatWasNeverThere(Kept):
    def drop(self, session: str) -> None:
        del self.place[self.name(session)]


class Restless(Kept):
    def held(self) -> Iterator[bytes]:
        for saved in self.place.values():
            yield self.sealed(saved)


class Forgetful(Kept):
    """What it keeps is in the place only when it is closed, which nobody does."""

    def __init__(self, place: dict[str, bytes] | None = None) -> None:
        super().__init__(dict(place or {}))


class Open(Kept):
    def sealed(self, saved: bytes) -> bytes:
        return saved


class Telling(Kept):
    def name(self, session: str) -> str:
        return session


class PutsAside(Kept):
    """What it drops is held no longer, and lies beside under another name."""

    def drop(self, session: str) -> None:
        name = self.name(session)
        if name in self.place:
            self.place[f"aside {name}"] = self.place.pop(name)

    def held(self) -> Iterator[bytes]:
        yield from [self.sealed(saved) for name, saved in list(self.place.items()) if not name.startswith("aside")]


class OneAtATime(Kept):
    """Fails where two threads are in it at once."""

    busy = False

    def keep(self, session: str, saved: bytes) -> None:
        if self.busy:
            raise RuntimeError("two at once")
        self.busy = True
        time.sleep(0.0005)  # the others go on meanwhile
        super().keep(session, saved)
        self.busy = False


def fixture(made: Callable[[dict[str, bytes]], Kept]) -> shelf.ShelfFixture:
    def factory() -> shelf.Shelved:
        place: dict[str, bytes] = {}
        opened = made(place)
        return shelf.Shelved(opened, lambda: made(place), opened.raw)

    return shelf.ShelfFixture(factory=factory)


@pytest.mark.parametrize(
    ("made", "law"),
    [
        (KeepsTheFirst, "holds"),
        (CaseBlind, "holds"),
        (KeepsEmptyOnesOut, "holds"),
        (DropsNothing, "drops"),
        (MindsWhatWasNeverThere, "drops"),
        (Restless, "calm"),
        (Forgetful, "durable"),
        (Open, "sealed"),
        (Telling, "sealed"),
        (PutsAside, "sealed"),
        (OneAtATime, "threads"),
    ],
)
def test_a_broken_shelf_is_caught_by_its_law(made: Callable[[dict[str, bytes]], Kept], law: str) -> None:
    [check] = [check for check in shelf.CHECKS if name_of(check) == law]
    with pytest.raises(AssertionError, match=rf"{made.__name__} breaks the law '{law}'"):
        check(fixture(made))


@pytest.mark.parametrize("check", shelf.CHECKS, ids=name_of)
def test_an_honest_shelf_breaks_no_law(check: Check[shelf.ShelfFixture]) -> None:
    check(fixture(Kept))
    check(shelf.ShelfFixture(factory=lambda: shelf.Shelved(MemoryShelf())))


def test_all_laws_run_in_one_call_and_a_broken_one_ends_it() -> None:
    shelf.check_shelf(lambda: shelf.Shelved(MemoryShelf()))
    shelf.check_shelf(lambda: shelf.Shelved(Open(), None, None), skips={"durable": "it is for a test"})


def test_a_shelf_that_raises_breaks_the_law() -> None:
    class Full(MemoryShelf):
        def keep(self, session: str, saved: bytes) -> None:
            raise StoreError(f"no room for {session}: {len(saved)}")

    with pytest.raises(AssertionError, match="breaks the law 'holds': it raised StoreError: no room"):
        shelf.check_shelf(lambda: shelf.Shelved(Full()))
