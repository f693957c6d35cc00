"""Payloads that the operator alone can read, in a store that everybody can verify."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from theodolite.core.errors import MissingExtraError, StoreError
from theodolite.core.store import Entry, Kind, Record, verify
from theodolite.stores.memory import MemoryStore
from theodolite.stores.sealing import SealedStore, Sealer
from theodolite.stores.sqlite import SQLiteStore
from theodolite.testing.checks.store import Opened, check_store

Entries = Callable[..., Entry]

SEALER = Sealer(b"a key that only the operator has")
OTHER = Sealer(b"a key that somebody else has")


def test_in_memory_it_obeys_every_law_of_stores(key: bytes) -> None:
    check_store(lambda: Opened(SealedStore(MemoryStore(key), SEALER)), key=key, opened=SEALER.opened)


def test_in_a_file_it_obeys_every_law_of_stores(tmp_path: Path, key: bytes) -> None:
    numbers = itertools.count()

    def fresh(path: Path) -> SealedStore:
        return SealedStore(SQLiteStore(path, key=key), SEALER)

    def opened() -> Opened:
        path = tmp_path / f"{next(numbers)}.db"
        return Opened(fresh(path), lambda: fresh(path))

    check_store(opened, key=key, opened=SEALER.opened)


def test_no_word_of_a_payload_is_in_the_file_and_what_finds_a_record_is(file: Path, key: bytes, entry: Entries) -> None:
    with SQLiteStore(file, key=key) as inner:
        store = SealedStore(inner, SEALER)
        record = store.append(entry("session-17", text="the secret word", codes=("margin.untrusted",)), durable=True)
        content = b"".join(path.read_bytes() for path in file.parent.iterdir())
        assert b"secret" not in content
        assert b"session-17" in content
        assert list(store.read(code="margin.untrusted")) == [record]
        assert bytes(SEALER.opened(record) or b"") == b'{"text":"the secret word"}'


def test_who_has_no_key_verifies_and_erases(key: bytes, entry: Entries) -> None:
    inner = MemoryStore(key)
    record = SealedStore(inner, SEALER).append(entry(text="words"))
    assert verify(inner, key).intact
    assert inner.erase("s-1", reason="asked for") == 1
    (gone, erasure) = inner.read()
    assert (gone.payload, SEALER.opened(gone), gone.digest) == (None, None, record.digest)
    assert SEALER.opened(erasure) == erasure.payload
    assert verify(inner, key).intact


@given(st.binary(max_size=200), st.lists(st.text(max_size=9), max_size=3))
def test_what_is_sealed_opens_to_the_same_bytes(text: bytes, about: list[str]) -> None:
    sealed = SEALER.seal(text, *about)
    assert SEALER.unseal(sealed, *about) == text
    assert SEALER.seal(text, *about) != sealed
    assert len(text) < 4 or text not in sealed


@given(st.data())
def test_a_byte_changed_cut_or_put_in_anywhere_is_told(data: st.DataObject) -> None:
    sealed = SEALER.seal(b"some words of a session", "s-1", "event")
    place = data.draw(st.integers(0, len(sealed) - 1))
    changed = {
        "changed": sealed[:place] + bytes([sealed[place] ^ data.draw(st.integers(1, 255))]) + sealed[place + 1 :],
        "cut": sealed[:place],
        "removed": sealed[:place] + sealed[place + 1 :],
        "added": sealed[:place] + b"A" + sealed[place:],
    }[data.draw(st.sampled_from(["changed", "cut", "removed", "added"]))]
    with pytest.raises(StoreError, match="it is "):
        SEALER.unseal(changed, "s-1", "event")


@pytest.mark.parametrize("about", [(), ("s-2", "event"), ("s-1", "decision"), ("s-1", "event", ""), ("s-1event",)])
def test_what_was_sealed_about_one_thing_does_not_open_about_another(about: tuple[str, ...]) -> None:
    sealed = SEALER.seal(b"words", "s-1", "event")
    with pytest.raises(StoreError, match="put in another's place; keep it as it is"):
        SEALER.unseal(sealed, *about)


def test_another_key_is_named(entry: Entries) -> None:
    record = SealedStore(MemoryStore(), SEALER).append(entry())
    told = (
        rf"record 0 of session 's-1': it is sealed with the key {SEALER.key_id}, and this one is {OTHER.key_id}: give"
    )
    with pytest.raises(StoreError, match=told):
        OTHER.opened(record)


def test_a_forged_key_id_does_not_open_it() -> None:
    sealed = SEALER.seal(b"words").replace(SEALER.key_id.encode(), OTHER.key_id.encode())
    with pytest.raises(StoreError, match="changed, cut, or put"):
        OTHER.unseal(sealed)


def test_payloads_swapped_within_a_session_are_told(entry: Entries) -> None:
    store = SealedStore(MemoryStore(), SEALER)
    one, two = store.append(entry(text="one")), store.append(entry(text="two"))
    assert bytes(SEALER.opened(one) or b"") == b'{"text":"one"}'
    with pytest.raises(StoreError, match="record 0 of session 's-1': the payload was changed; run `theodolite store"):
        SEALER.opened(replace(one, payload=two.payload))


def test_a_payload_from_before_the_profile_was_chosen_is_given_as_it_is(entry: Entries) -> None:
    record: Record = MemoryStore().append(entry(text="older"))
    assert SEALER.opened(record) == record.payload


def test_the_keys_for_heads_names_and_payloads_differ() -> None:
    """One key file makes them all: none of them may be another's, nor the file's own."""
    operator = b"k" * 32
    sealer = Sealer(operator)
    shown = {operator.hex(), sealer.key_id, sealer.name(""), Sealer(b"j" * 32).name(""), sealer.name("a")}
    assert len(shown) == 5


def test_the_sealing_is_aes_gcm_under_a_key_by_hkdf() -> None:
    """Another implementation opens it by what the decision record says: no private trick is in the way."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    derive = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"theodolite 1: sealing").derive
    sealed = msgspec.json.decode(Sealer(b"k" * 32).seal(b"words", "s-1", "event"), type=dict[str, Raw])
    nonce, text = (msgspec.json.decode(sealed[name], type=bytes) for name in ("nonce", "text"))
    assert AESGCM(derive(b"k" * 32)).decrypt(nonce, text, b'["s-1","event"]') == b"words"


def test_without_the_extra_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.hashes", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'theodolite\[sealing\]'"):
        Sealer(b"k" * 32)


def test_an_empty_key_is_refused() -> None:
    with pytest.raises(StoreError, match="the key is empty"):
        Sealer(b"")


def test_strays_of_the_inner_store_are_told(file: Path, key: bytes, change: Callable[..., None]) -> None:
    SQLiteStore(file, key=key).close()
    change(file, "INSERT INTO codes VALUES ('s', 0, 0, 'a.b')")
    with SQLiteStore(file, key=key) as inner:
        assert verify(SealedStore(inner, SEALER), key).problems == verify(inner, key).problems != ()
    assert verify(SealedStore(MemoryStore(key), SEALER), key).intact


def test_a_kind_that_is_no_decision_is_sealed_too() -> None:
    store = SealedStore(MemoryStore(), SEALER)
    for kind in (Kind.DECISION, Kind.EVENT, Kind.COVERAGE):
        record = store.append(Entry(session="s-1", at=1.0, kind=kind, payload=Raw(b'"words"')))
        assert b"words" not in bytes(record.payload or b"")
