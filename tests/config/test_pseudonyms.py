from __future__ import annotations

import sys
from pathlib import Path

import pytest

from theodolite.config.settings import Settings, StoreSettings, read_settings
from theodolite.config.wiring import wire
from theodolite.core.errors import ConfigError
from theodolite.core.redaction import Profile
from theodolite.redactors.rules import Pseudonyms, RuleRedactor

KEY = b"0123456789abcdef0123456789abcdef"
SAID = "write to bob@example.com"


def settings(folder: Path, lines: str) -> Settings:
    (folder / "key").write_bytes(KEY + b"\n")
    (folder / "theodolite.toml").write_text(f"[store]\n{lines}\n", encoding="utf-8")
    return read_settings(folder / "theodolite.toml")


def passed(settings: Settings) -> str:
    with wire(settings) as instrument:
        return instrument.monitor.fleet.redactor.text(SAID)


def test_with_a_key_placeholders_carry_a_tag_of_the_length_that_was_asked_for(tmp_path: Path) -> None:
    four = passed(settings(tmp_path, 'key_file = "key"\npseudonyms = true'))
    assert four == RuleRedactor(pseudonyms=Pseudonyms(KEY)).text(SAID)
    nine = passed(settings(tmp_path, 'key_file = "key"\npseudonyms = true\npseudonym_digits = 9'))
    assert nine.startswith(four.removesuffix("]"))
    assert len(nine) == len(four) + 5


@pytest.mark.parametrize("lines", ['key_file = "key"', 'key_file = "key"\npseudonym_digits = 9', ""])
def test_without_the_setting_nothing_changes(tmp_path: Path, lines: str) -> None:
    assert passed(settings(tmp_path, lines)) == "write to [REDACTED:EMAIL]"


def test_without_free_text_there_is_nothing_to_tag(tmp_path: Path) -> None:
    chosen = settings(tmp_path, 'key_file = "key"\npseudonyms = true\nprofile = "categorical"')
    assert chosen.store.profile is Profile.CATEGORICAL
    assert passed(chosen) == "[REDACTED:TEXT]"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("pseudonyms = true", "store.pseudonyms needs store.key_file"),
        ('key_file = "key"\npseudonyms = true\npseudonym_digits = 3', "store.pseudonym_digits: .* 4 to 16"),
        ('key_file = "key"\npseudonyms = true\npseudonym_digits = 17', "store.pseudonym_digits: .* 4 to 16"),
        ("pseudonyms = 4", "store.pseudonyms must be true or false, not a whole number"),
        ("pseudonym = true", "did you mean 'store.pseudonyms'"),
    ],
)
def test_what_cannot_be_is_an_error_that_names_the_setting(tmp_path: Path, lines: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        wire(settings(tmp_path, lines))


def test_a_redactor_that_makes_no_tags_cannot_be_asked_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "key").write_bytes(KEY)
    (tmp_path / "denying.py").write_text("from theodolite.core.redaction import DenyAll\n", encoding="utf-8")
    info = tmp_path / "denying-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: denying\nVersion: 1\n", encoding="utf-8")
    (info / "entry_points.txt").write_text("[theodolite.redactors]\nnone = denying:DenyAll\n", encoding="utf-8")
    monkeypatch.delenv("THEODOLITE_PLUGINS", raising=False)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    store = StoreSettings(pseudonyms=True, key_file="key")
    with pytest.raises(ConfigError, match="the redactor 'none' makes none; choose 'rules'"):
        wire(Settings(redactor="none", store=store, folder=str(tmp_path)))
