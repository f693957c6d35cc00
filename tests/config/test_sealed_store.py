"""`[store] profile = "encrypted"` and `keep`: from the file to the store."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from msgspec import Raw
from msgspec.structs import replace

from theodolite.config.settings import Settings, StoreSettings, age, read_settings
from theodolite.config.wiring import wire
from theodolite.core.errors import ConfigError, MissingExtraError
from theodolite.core.redaction import Profile
from theodolite.core.store import Entry, Kind, verify
from theodolite.stores.memory import MemoryStore
from theodolite.stores.sealing import SealedStore, Sealer

KEY = "a key that only the operator has"
ENTRY = Entry(session="s-1", at=1.0, kind=Kind.EVENT, payload=Raw(b'"the secret word"'))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "key").write_text(f"{KEY}\n", encoding="utf-8")
    text = '[store]\npath = "evidence.db"\nprofile = "encrypted"\nkey_file = "key"\n'
    (tmp_path / "theodolite.toml").write_text(text, encoding="utf-8")
    return read_settings(tmp_path / "theodolite.toml")


def test_what_is_kept_is_sealed_with_the_key_and_scrubbed_as_ever(settings: Settings, tmp_path: Path) -> None:
    with wire(settings) as instrument:
        assert isinstance(instrument.store, SealedStore)
        record = instrument.store.append(ENTRY, durable=True)
        assert instrument.monitor.fleet.redactor.text("write to bob@example.com") == "write to [REDACTED:EMAIL]"
        assert verify(instrument.store, KEY.encode()).intact
    assert b"secret" not in b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert bytes(Sealer(KEY.encode()).opened(record) or b"") == b'"the secret word"'


def test_without_a_key_file_there_is_nothing_to_seal_with() -> None:
    settings = Settings(store=StoreSettings(path="evidence.db", profile=Profile.ENCRYPTED))
    with pytest.raises(ConfigError, match=r"needs store\.key_file"):
        wire(settings)


def test_without_the_extra_nothing_is_opened(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.hashes", None)
    with pytest.raises(MissingExtraError, match=r"theodolite\[sealing\]"):
        wire(settings)
    assert not (tmp_path / "evidence.db").exists()


def test_a_store_that_is_given_open_keeps_what_it_is_given(settings: Settings) -> None:
    store = MemoryStore()
    with wire(settings, store=store) as instrument:
        assert instrument.store is store


@pytest.mark.parametrize(("text", "seconds"), [("1h", 3_600), ("0d", 0), ("90d", 7_776_000), ("12w", 7_257_600)])
def test_an_age_is_a_number_of_hours_days_or_weeks(text: str, seconds: float) -> None:
    assert age(text) == seconds


@pytest.mark.parametrize("text", ["90", "d", " 1d", "1.5d", "-1d", "1m", "1d1h", "1234567d", "\u0661d"])
def test_what_is_no_age_is_told_with_its_place(tmp_path: Path, text: str) -> None:
    (tmp_path / "theodolite.toml").write_text(f'[store]\nkeep = "{text}"\n', encoding="utf-8")
    with pytest.raises(ConfigError, match=r"store: .* is no age: give a number of hours, days or weeks"):
        read_settings(tmp_path / "theodolite.toml")


def test_only_a_live_instrument_holds_sessions_on_the_shelf(settings: Settings, tmp_path: Path) -> None:
    shelved = replace(settings, store=replace(settings.store, shelf="shelf"))
    with wire(shelved) as scanning:
        assert scanning.monitor.fleet.shelf is None
    assert not (tmp_path / "shelf").exists()
    with wire(shelved, live=True) as live:
        assert live.monitor.fleet.shelf is not None
        assert live.monitor.recover() == ()
    assert (tmp_path / "shelf").stat().st_mode & 0o077 == 0


def test_a_shelf_without_a_key_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"store\.shelf needs store\.key_file"):
        wire(Settings(store=StoreSettings(shelf="shelf")), live=True)
