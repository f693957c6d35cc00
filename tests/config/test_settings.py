from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from theodolite.config.settings import PolicySettings, Settings, StoreSettings, nearest, read_settings
from theodolite.core.errors import ConfigError
from theodolite.core.intent import Effect
from theodolite.core.policy import Mode
from theodolite.core.redaction import Profile

EVERYTHING = """
calibration = "fitted.json"
redactor = "rules"
plugins = false

[policy]
default = "observe"
hold = true
fail_closed = true

[policy.modes]
margin = "enforce"

[store]
path = "evidence.db"
kind = "sqlite"
profile = "categorical"
key_file = "key"
raw_events = "sessions"

[detectors.shadow_memory]
enabled = false
window_size = 4

[tools]
send_money = "write"
"get balance" = "read"
"""


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "theodolite.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_every_setting_is_read(tmp_path: Path) -> None:
    assert read_settings(written(tmp_path, EVERYTHING)) == Settings(
        policy=PolicySettings(default=Mode.OBSERVE, modes={"margin": Mode.ENFORCE}, hold=True, fail_closed=True),
        store=StoreSettings(
            path="evidence.db",
            kind="sqlite",
            profile=Profile.CATEGORICAL,
            key_file="key",
            raw_events="sessions",
        ),
        detectors={"shadow_memory": {"enabled": False, "window_size": 4}},
        tools={"send_money": Effect.WRITE, "get balance": Effect.READ},
        calibration="fitted.json",
        redactor="rules",
        plugins=False,
        folder=str(tmp_path),
        file=str(tmp_path / "theodolite.toml"),
    )


def test_an_empty_file_is_the_defaults(tmp_path: Path) -> None:
    path = written(tmp_path, "")
    assert read_settings(path) == Settings(folder=str(tmp_path), file=str(path))


def test_the_file_of_the_working_folder_is_read_where_no_other_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert read_settings() == Settings()
    written(tmp_path, "plugins = false")
    assert read_settings() == Settings(plugins=False, file="theodolite.toml")


@pytest.mark.parametrize(
    ("text", "key", "meant"),
    [
        ("polcy = {}", "polcy", "policy"),
        ("calibraton = 'x'", "calibraton", "calibration"),
        ("plugin = true", "plugin", "plugins"),
        ("[policy]\nhodl = true", "policy.hodl", "policy.hold"),
        ("[policy]\nfail_close = true", "policy.fail_close", "policy.fail_closed"),
        ("[store]\npaht = 'x'", "store.paht", "store.path"),
        ("[store]\nkeyfile = 'x'", "store.keyfile", "store.key_file"),
        ("zzz = true\n[polici]", "zzz", None),
    ],
)
def test_an_unknown_key_names_the_nearest_valid_one(tmp_path: Path, text: str, key: str, meant: str | None) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigError) as raised:
        read_settings(path)
    assert str(raised.value).startswith(f"{path}: unknown key '{key}'; ")
    if meant is None:
        assert "known: budget, calibration, " in str(raised.value)
    else:
        assert str(raised.value).endswith(f"did you mean '{meant}'?")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("plugins = 'no'", "plugins must be true or false, not text"),
        ("calibration = 3", "calibration must be text, not a whole number"),
        ("policy = 3", "policy must be a table, not a whole number"),
        ("[policy]\nhold = 1", r"policy\.hold must be true or false, not a whole number"),
        (
            "[policy]\ndefault = 'enforced'",
            r"policy\.default: 'enforced' is none of enforce, warn, observe",
        ),
        (
            "[policy.modes]\nmargin = 'warm'",
            r"policy\.modes\.margin: 'warm' is none of enforce, warn, observe",
        ),
        ("[policy]\nmodes = 'warn'", r"policy\.modes must be a table, not text"),
        (
            "[store]\nprofile = 'all'",
            r"store\.profile: 'all' is none of standard, categorical, encrypted",
        ),
        ("[tools]\nsend = 'wite'", r"tools\.send: 'wite' is none of read, write, unknown"),
        ("[tools]\nsend = 3", r"tools\.send must be text or a table, not a whole number"),
        ("tools = []", "tools must be a table, not a list"),
        ("[detectors]\nmargin = true", r"detectors\.margin must be a table, not true or false"),
    ],
)
def test_a_value_of_the_wrong_kind_is_told_with_its_place(tmp_path: Path, text: str, fault: str) -> None:
    with pytest.raises(ConfigError, match=rf"theodolite\.toml: {fault}\. The keys and values are on the page docs/"):
        read_settings(written(tmp_path, text))


@pytest.mark.parametrize(
    "text", ["x =", "x = 1\nx = 2", "[a\n", "a = " + "[" * 5000, "a = " + "9" * 5000, "\ufeffx = 1"]
)
def test_what_is_no_toml_is_told(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match=r"theodolite\.toml is not TOML: "):
        read_settings(written(tmp_path, text))


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.toml", tmp_path, written(tmp_path, b"x = '\xff'")):
        with pytest.raises(ConfigError, match="cannot be read: "):
            read_settings(path)


def test_the_folder_of_the_file_is_no_setting(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="unknown key 'folder'; paths are relative to the file itself"):
        read_settings(written(tmp_path, "folder = '/etc'"))


@settings(max_examples=50)
@given(st.binary(max_size=60))
def test_no_bytes_raise_anything_but_a_config_error(tmp_path_factory: pytest.TempPathFactory, document: bytes) -> None:
    path = written(tmp_path_factory.mktemp("any"), document)
    try:
        read_settings(path)
    except ConfigError as error:
        assert str(path) in str(error)  # noqa: PT017 - either it is read or it is told


@pytest.mark.parametrize(
    ("name", "expected"),
    [("margn", "did you mean 'margin'?"), ("zzz", "known: margin, rules"), ("", "known: margin, rules")],
)
def test_the_nearest_name_is_named_and_else_all_of_them(name: str, expected: str) -> None:
    assert nearest(name, ["rules", "margin"]) == expected
