"""Errors in settings hold no key that was written in the wrong place, and are ConfigErrors whatever was written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from theodolite.config.models import chosen
from theodolite.config.settings import Settings, read_settings
from theodolite.config.wiring import load, read_key, wire
from theodolite.core.errors import ConfigError, TheodoliteError

KEY = "sk-live-0123456789abcdefghijklmnopqrstuv/+ABCDEF"
MODEL = '[models.a]\nkind = "openai"\nmodel = "m"\n{}\n[panel]\nsubject = "a"\n'


def untyped(call: Callable[..., object]) -> Callable[..., object]:
    """Return a callable as those see it who check no types."""
    return call


def fault(folder: Path, text: str) -> str:
    path = folder / "theodolite.toml"
    path.write_text(f"plugins = false\n{text}", encoding="utf-8")
    (folder / "key").write_bytes(b"0123456789abcdef" * 2)
    with pytest.raises(ConfigError) as raised:
        wire(read_settings(path), live=True)
    return str(raised.value).replace(str(folder), "")


def test_a_key_in_the_place_of_its_file_is_not_shown(tmp_path: Path) -> None:
    said = fault(tmp_path, f'[store]\nkey_file = "{KEY}"')
    assert "store.key_file" in said
    assert "not the key itself" in said
    assert not any(KEY[at : at + 6] in said for at in range(len(KEY) - 5))


def test_a_key_in_the_place_of_its_variable_is_not_shown(tmp_path: Path) -> None:
    said = fault(tmp_path, MODEL.format(f'api_key_env = "{KEY}"'))
    assert said.startswith("/theodolite.toml: models.a: ")
    assert "api_key_env" in said
    assert "not the key itself" in said
    assert not any(KEY[at : at + 6] in said for at in range(len(KEY) - 5))


@pytest.mark.parametrize(
    "text",
    [
        f'[panel]\nsubject = "{KEY}"',
        f'[models.a]\nkind = "{KEY}"',
        f'redactor = "{KEY}"',
        f'[store]\npath = "s"\nkind = "{KEY}"',
        f'[store]\nprofile = "{KEY}"',
        f'[store]\nkeep = "{KEY}"',
        f'[policy]\ndefault = "{KEY}"',
        f'[policy.modes]\nhijack = "{KEY}"',
        f'[policy.modes]\n"{KEY}" = "warn"',
        f'[tools]\na = "{KEY}"',
        f'[tools]\na.effect = "{KEY}"',
        f'"{KEY}" = 1',
        f'[detectors.hijack]\nenabled = "{KEY}"',
        f'[detectors.hijack]\n"{KEY}" = 1',
        f'[detectors.anomaly]\n"{KEY}" = 1',
        f'[detectors."{KEY}"]\nenabled = true',
        MODEL.format(f'"{KEY}" = 1'),
    ],
)
def test_of_any_other_value_no_more_than_the_beginning_is_shown(tmp_path: Path, text: str) -> None:
    said = fault(tmp_path, text)
    assert KEY[:21] not in said
    assert KEY[-21:] not in said


def test_a_model_that_is_none_is_shown_by_its_beginning() -> None:
    with pytest.raises(ConfigError) as raised:
        chosen(KEY, [])
    assert KEY[:21] not in str(raised.value)


@pytest.mark.parametrize("value", ["a\\u0000b", "x" * 5_000], ids=["NUL", "long"])
@pytest.mark.parametrize("setting", ["store.path", "store.key_file", "store.raw_events", "store.shelf", "calibration"])
def test_a_path_that_no_file_can_have_is_a_fault_of_the_setting(tmp_path: Path, setting: str, value: str) -> None:
    table, _, name = setting.rpartition(".")
    key = 'key_file = "key"\n' if name in {"raw_events", "shelf"} else ""
    said = fault(tmp_path, f'{"[store]" if table else ""}\n{key}{name} = "{value}"')
    assert said.startswith(f"/theodolite.toml: {setting} names no file that can be: ")
    assert len(said) < 300


@pytest.mark.parametrize("path", ["\0", "a\0b", "x" * 5_000, "\ud800", 3, b"a.toml", ["a.toml"]])
def test_settings_that_no_file_can_hold_are_a_fault_of_the_caller(path: object) -> None:
    with pytest.raises(ConfigError, match=r"(cannot be read|is the path of a file)") as raised:
        untyped(load)(path)
    assert len(str(raised.value)) < 400
    assert "\0" not in str(raised.value)


@pytest.mark.parametrize("path", ["\0", "x" * 5_000, "\ud800", KEY])
def test_a_key_file_that_cannot_be_is_told_without_its_name(path: str) -> None:
    with pytest.raises(ConfigError, match="cannot be read: ") as raised:
        read_key(Path(path))
    assert path not in str(raised.value)


@pytest.mark.parametrize("path", ["\0", "x" * 5_000])
def test_a_store_or_calibration_of_the_command_line_is_an_error_of_ours(path: str) -> None:
    with pytest.raises(TheodoliteError):
        wire(Settings(plugins=False), store=Path(path))
    with pytest.raises(TheodoliteError):
        wire(Settings(plugins=False), calibration=Path(path))
