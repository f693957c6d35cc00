"""What heads that were kept elsewhere show of the store that they were taken from."""

from __future__ import annotations

import pytest
from msgspec import Raw
from msgspec.structs import replace

from theodolite.core.store import Entry, Head, Kind, Problem, verify
from theodolite.stores.memory import MemoryStore

KEY = b"a key that only the operator has"


def entry(session: str, text: str = "true") -> Entry:
    return Entry(session=session, at=1.0, kind=Kind.DECISION, payload=Raw(f'{{"text":"{text}"}}'.encode()))


def made(*sessions: str, key: bytes | None = KEY, text: str = "true") -> MemoryStore:
    store = MemoryStore(key, salts=lambda: "5a" * 16)
    for session in sessions:
        store.append(entry(session, text))
    return store


def problems(store: MemoryStore, kept: list[Head], key: bytes | None = KEY) -> list[Problem]:
    return list(verify(store, key, kept).problems)


SCRIPT = ("s-1", "s-2", "s-1", "s-2")


@pytest.mark.parametrize("key", [KEY, None])
def test_heads_of_every_age_lie_on_the_chain_of_a_store_that_went_on(key: bytes | None) -> None:
    store = MemoryStore(key)
    kept: list[Head] = []
    for session in SCRIPT:
        store.append(entry(session))
        kept += store.heads()
    store.erase("s-1")
    store.append(entry("s-3"))
    assert problems(store, kept, key) == []


@pytest.mark.parametrize("key", [KEY, None])
@pytest.mark.parametrize("older", [SCRIPT[:3], SCRIPT[:1], ()])
def test_an_older_copy_lacks_what_was_kept(older: tuple[str, ...], key: bytes | None) -> None:
    kept = list(made(*SCRIPT, key=key).heads())
    copy = made(*older, key=key)
    assert verify(copy, key).intact
    assert ("s-2", 1) in {(problem.session, problem.n) for problem in problems(copy, kept, key)}
    assert problems(copy, list(copy.heads()), key) == []


def test_a_chain_computed_anew_has_another_record_there() -> None:
    kept = list(made(*SCRIPT, key=None).heads())
    forged = made(*SCRIPT, key=None, text="forged")
    assert verify(forged).intact
    found = problems(forged, kept, None)
    assert {(problem.session, problem.n) for problem in found} == {("s-1", 1), ("s-2", 1)}
    assert {problem.what for problem in found} == {"it is another record than the head kept elsewhere says"}


def test_a_session_removed_before_another_shows_in_the_place_of_the_other() -> None:
    kept = [head for head in made(*SCRIPT, key=None).heads() if head.session == "s-2"]
    without = made("s-2", "s-2", key=None)
    assert verify(without).intact
    assert [problem.what for problem in problems(without, kept, None)] == [
        "the sessions before it are not those of its head that was kept elsewhere"
    ]


def test_a_session_that_began_elsewhere_in_time_shows() -> None:
    store = made(*SCRIPT)
    kept = [replace(head, position=head.position + 1) for head in store.heads()]
    assert {problem.session for problem in problems(store, kept)} == {"s-1", "s-2"}


@pytest.mark.parametrize("key", [KEY, None])
def test_what_cannot_be_shown_is_what_came_after_the_heads(key: bytes | None) -> None:
    store = made(*SCRIPT, key=key)
    alone, kept = verify(store, key).unshown, verify(store, key, store.heads()).unshown
    assert alone != kept
    assert not any("emptied" in limit or "another store" in limit or "compare with" in limit for limit in kept)
    assert any("the heads kept elsewhere" in limit for limit in kept)
