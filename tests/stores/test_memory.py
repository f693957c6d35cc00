"""The store in memory."""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from theodolite.core.errors import StoreError
from theodolite.core.store import Entry, Kind, Record, seal_head, seal_record, seal_registry, verify
from theodolite.stores.memory import MemoryStore

Entries = Callable[..., Entry]

KEY = b"a key that only the operator has"


def test_append_seals_behind_the_newest_record_of_the_session(entry: Entries) -> None:
    store = MemoryStore(salts=lambda: "00" * 16)
    first, other, second = store.append(entry()), store.append(entry("s-2")), store.append(entry(at=2.0))
    assert first == seal_record(entry(), n=0, previous="", salt="00" * 16)
    assert second == seal_record(entry(at=2.0), n=1, previous=first.hash, salt="00" * 16)
    assert (other.n, other.previous) == (0, "")


def test_each_payload_has_a_salt_of_its_own(entry: Entries) -> None:
    store = MemoryStore()
    salts = {store.append(entry()).salt for _ in range(100)}
    assert len(salts) == 100
    assert all(salt is not None and len(bytes.fromhex(salt)) == 16 for salt in salts)


@pytest.mark.parametrize("key", [None, KEY])
def test_heads_and_registry_are_those_of_the_newest_records(key: bytes | None, entry: Entries) -> None:
    store = MemoryStore(key)
    assert (store.head("s-1"), list(store.heads())) == (None, [])
    assert store.registry() == seal_registry(count=0, link="", key=key)
    store.append(entry("s-2"))
    newest = {"s-1": store.append(entry()), "s-2": store.append(entry("s-2"))}
    first = seal_head(newest["s-2"], position=0, before="", key=key)
    second = seal_head(newest["s-1"], position=1, before=first.link, key=key)
    assert list(store.heads()) == [first, second]
    assert (store.head("s-2"), store.head("s-1")) == (first, second)
    assert store.registry() == seal_registry(count=2, link=second.link, key=key)
    assert verify(store, key).intact


sessions = st.sampled_from(["s-1", "s-2", "", "ü", "a\0b", "' OR 1=1 --"])
codes = st.lists(st.sampled_from(["a.b", "c.d", "e.f"]), max_size=3).map(tuple)
moments = st.floats(0, 5)


@given(
    places=st.lists(st.tuples(sessions, moments, st.just(""), codes), max_size=20),
    session=st.none() | sessions,
    since=st.none() | moments,
    until=st.none() | moments,
    code=st.none() | st.sampled_from(["a.b", "c.d", "nothing"]),
)
def test_read_yields_what_fits_by_session_and_n(
    *,
    entry: Entries,
    places: list[tuple[str, float, str, tuple[str, ...]]],
    session: str | None,
    since: float | None,
    until: float | None,
    code: str | None,
) -> None:
    store = MemoryStore()
    kept = [store.append(entry(*place)) for place in places]
    fit = [
        record
        for record in sorted(kept, key=lambda record: (record.session, record.n))
        if session in {None, record.session}
        and (since is None or since <= record.at)
        and (until is None or record.at <= until)
        and (code is None or code in record.codes)
    ]
    assert list(store.read(session=session, since=since, until=until, code=code)) == fit


def test_what_is_appended_while_reading_is_not_among_what_is_read(entry: Entries) -> None:
    store = MemoryStore()
    kept = [store.append(entry()), store.append(entry("s-2"))]
    reading = store.read()
    first = next(reading)
    store.append(entry())
    store.append(entry("s-3"))
    assert [first, *reading] == kept


def test_erase_takes_payload_and_salt_and_the_chain_holds(entry: Entries) -> None:
    store = MemoryStore(KEY, clock=lambda: 7.0)
    before = [store.append(entry(text="secret")) for _ in range(3)]
    other = store.append(entry("s-2"))
    assert store.erase("s-1") == 3
    *after, erasure = store.read(session="s-1")
    assert (erasure.kind, erasure.at, erasure.previous) == (Kind.ERASURE, 7.0, before[-1].hash)
    assert bytes(erasure.payload or b"") == b'{"payloads":3,"through":2}'
    assert [(record.payload, record.salt) for record in after] == [(None, None)] * 3
    assert [record.hash for record in after] == [record.hash for record in before]
    assert list(store.read(session="s-2")) == [other]
    seen = verify(store, KEY)
    assert (seen.intact, seen.erased) == (True, 3)
    assert (store.erase("s-1"), store.erase("nobody")) == (0, 0)


def test_a_chain_goes_on_behind_erased_records(entry: Entries) -> None:
    store = MemoryStore()
    store.append(entry())
    store.erase("s-1")
    store.append(entry())
    assert verify(store).intact
    assert store.erase("s-1") == 1
    assert [record.kind is Kind.ERASURE for record in store.read()] == [False, True, False, True]
    assert verify(store).intact


def test_an_erasure_meanwhile_does_not_show_in_what_is_read(entry: Entries) -> None:
    store = MemoryStore()
    kept = [store.append(entry()) for _ in range(3)]
    reading = store.read()
    first = next(reading)
    store.erase("s-1")
    assert [first, *reading] == kept


@pytest.mark.parametrize("salt", ["", "00", "00" * 15, "00" * 17, "AB" * 16, "0 " * 16, "zz" * 16, " " + "00" * 16])
def test_a_salt_of_another_form_is_refused(salt: str, entry: Entries) -> None:
    store = MemoryStore(salts=lambda: salt)
    with pytest.raises(StoreError, match="16 bytes in lower-case hexadecimal"):
        store.append(entry())
    assert list(store.read()) == []


def test_nobody_appends_an_erasure_that_was_none() -> None:
    store = MemoryStore()
    with pytest.raises(StoreError, match=r"only erase\(\) records an erasure"):
        store.append(Entry(session="s-1", at=1.0, kind=Kind.ERASURE, payload=Raw(b'{"payloads":0,"through":-1}')))
    assert list(store.read()) == []


def test_the_caller_cannot_change_what_was_kept() -> None:
    buffer = bytearray(b'{"text":"before"}')
    store = MemoryStore()
    store.append(Entry(session="s-1", at=1.0, kind=Kind.EVENT, payload=Raw(buffer)))
    buffer[9:15] = b"after!"
    assert [bytes(record.payload or b"") for record in store.read()] == [b'{"text":"before"}']
    assert verify(store).intact


@pytest.mark.parametrize("at", [float("nan"), float("inf"), -float("inf")])
def test_a_time_that_is_no_number_is_refused(at: float, entry: Entries) -> None:
    store = MemoryStore()
    with pytest.raises(StoreError, match="its time is"):
        store.append(entry(at=at))
    assert (list(store.read()), store.registry().count) == ([], 0)


@pytest.mark.parametrize("wrong", [{"session": "s\ud800"}, {"codes": ("a.b", "\udfff")}])
def test_a_lone_surrogate_is_refused_and_leaves_nothing_behind(wrong: dict[str, object], entry: Entries) -> None:
    store = MemoryStore()
    with pytest.raises(StoreError, match="cannot be kept"):
        store.append(entry(**wrong))
    assert (list(store.read()), store.registry().count) == ([], 0)
    store.append(entry())
    assert verify(store).intact


def test_an_empty_key_is_refused() -> None:
    with pytest.raises(StoreError, match="the key is empty"):
        MemoryStore(b"")


def test_it_can_be_read_after_it_was_closed(entry: Entries) -> None:
    store = MemoryStore()
    record = store.append(entry(), durable=True)
    store.flush()
    store.close()
    assert list(store.read()) == [record]


def test_threads_that_append_to_one_session_make_one_chain(entry: Entries) -> None:
    store = MemoryStore(KEY)
    kept: list[list[Record]] = [[] for _ in range(4)]

    def work(number: int) -> None:
        for _ in range(200):
            kept[number] += store.append(entry("shared")), store.append(entry(f"own-{number}"))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    found = {(record.session, record.n): record for record in store.read()}
    assert found == {(record.session, record.n): record for record in itertools.chain(*kept)}
    assert len(found) == 4 * 400
    assert verify(store, KEY).intact
