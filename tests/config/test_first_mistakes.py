"""What a person gets wrong first in a settings file is told with the file, the key, and what may stand there."""

from __future__ import annotations

from pathlib import Path

import pytest

from theodolite.config.settings import Settings, read_settings
from theodolite.config.wiring import wire
from theodolite.core.errors import ConfigError


def fault(folder: Path, text: str) -> str:
    path = folder / "theodolite.toml"
    path.write_text(f"plugins = false\n{text}", encoding="utf-8")
    with pytest.raises(ConfigError) as raised:
        wire(read_settings(path))
    return str(raised.value).replace(str(path), "FILE")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[detectors.hijak]", "FILE: detectors: there is no detector 'hijak'; did you mean 'hijack'?"),
        ("[detectors.hijack]\nenabled = 1", "FILE: detectors.hijack.enabled must be true or false, not 1"),
        (
            "[detectors.hijack]\nthreshold = 1",
            "FILE: detectors.hijack takes no settings but 'enabled', not 'threshold'",
        ),
        (
            "[detectors.fusion]\nthreshold = 1",
            "FILE: detectors.fusion takes no settings but 'enabled', not 'threshold'",
        ),
        (
            "[detectors.anomaly]\ntask = 3",
            "FILE: detectors.anomaly: Expected `str`, got `int` - at `detectors.anomaly.task`",
        ),
        (
            "[detectors.shadow_memory]\nwindow_size = 0",
            "FILE: detectors.shadow_memory: window_size must be at least 1, not 0",
        ),
        ("[policy.modes]\nmargn = 'warn'", "FILE: policy.modes: there is no detector 'margn'; did you mean 'margin'?"),
        ("redactor = 'ruls'", "FILE: there is no redactor 'ruls'; did you mean 'rules'?"),
    ],
)
def test_a_fault_that_is_found_while_wiring_names_the_file_and_the_key(tmp_path: Path, text: str, said: str) -> None:
    assert fault(tmp_path, text).startswith(said)


def test_settings_that_no_file_holds_name_none() -> None:
    with pytest.raises(ConfigError, match=r"^detectors: there is no detector 'hijak'"):
        wire(Settings(plugins=False, detectors={"hijak": {}}))


@pytest.mark.parametrize("name", ["file", "folder"])
def test_where_the_settings_were_read_is_no_setting(tmp_path: Path, name: str) -> None:
    assert fault(tmp_path, f"{name} = '/etc'").startswith(f"FILE: unknown key '{name}'; paths are relative to the file")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("send = 'wite'", "tools.send: Invalid enum value 'wite'; one of read, write, unknown."),
        ("send = 'Write'", "tools.send: Invalid enum value 'Write'; one of read, write, unknown."),
        (
            "send.effect = 'wite'",
            "tools.send: Invalid enum value 'wite' - at `tools.send.effect`; one of read, write, unknown.",
        ),
        (
            "send.arguments = {to = 'targt'}",
            "tools.send: Invalid enum value 'targt' - at `tools.send.arguments[...]`; one of target, command, ",
        ),
        (
            "send.operation = 'net'",
            "tools.send: Invalid enum value 'net' - at `tools.send.operation`; one of file_read, file_write, ",
        ),
        (
            "send.target = 'net'",
            "tools.send: Invalid enum value 'net' - at `tools.send.target`; one of workdir, system_path, ",
        ),
        (
            "send.destination = 'net'",
            "tools.send: Invalid enum value 'net' - at `tools.send.destination`; one of none, localhost, ",
        ),
        (
            "send.provenance = 'net'",
            "tools.send: Invalid enum value 'net' - at `tools.send.provenance`; one of user, repo, ",
        ),
        (
            "send.flow = 'net'",
            "tools.send: Invalid enum value 'net' - at `tools.send.flow`; one of none, local_to_local, ",
        ),
        ("send.outside = 'no'", "tools.send: Expected `bool | null`, got `str` - at `tools.send.outside`."),
        ("send.efect = 'write'", "unknown key 'tools.send.efect'; did you mean 'tools.send.effect'?"),
        ("send.arguments = 3", "tools.send: Expected `object`, got `int` - at `tools.send.arguments`."),
        (
            "send.trusted = true",
            "unknown key 'tools.send.trusted'; known: tools.send.arguments, tools.send.destination, ",
        ),
        ('"a.b".efect = "read"', "unknown key 'tools.a.b.efect'; did you mean 'tools.a.b.effect'?"),
    ],
)
def test_a_rule_of_a_tool_is_told_what_may_stand_there(tmp_path: Path, text: str, said: str) -> None:
    assert fault(tmp_path, f"[tools]\n{text}").startswith(f"FILE: {said}")


def test_a_mode_of_a_detector_is_told_what_may_stand_there(tmp_path: Path) -> None:
    said = "FILE: policy.modes.hijack: Invalid enum value 'warm'; one of enforce, warn, observe."
    assert fault(tmp_path, "[policy.modes]\nhijack = 'warm'").startswith(said)


@pytest.mark.parametrize(
    ("text", "key", "meant"),
    [
        ("hold = true", "hold", "'policy.hold'"),
        ("[store]\nhold = true", "store.hold", "'policy.hold'"),
        ("hodl = true", "hodl", "'policy.hold'"),
        ("modes = {}", "modes", "'policy.modes'"),
        ("calls = 3", "calls", "'budget.session.calls' or 'budget.fleet.calls' or 'budget.day.calls'"),
        ("[policy]\nmode = 'warn'", "policy.mode", "'policy.modes'"),
        ("[budget]\ncalls = 3", "budget.calls", "'budget.session.calls' or 'budget.fleet.calls' or 'budget.day.calls'"),
    ],
)
def test_a_key_in_the_wrong_table_is_known_by_its_last_name(tmp_path: Path, text: str, key: str, meant: str) -> None:
    assert fault(tmp_path, text) == f"FILE: unknown key '{key}'; did you mean {meant}?"


def test_the_table_of_a_detector_belongs_below_detectors(tmp_path: Path) -> None:
    said = fault(tmp_path, "[hijack]\nenabled = false")
    assert said.startswith("FILE: unknown key 'hijack'; known: budget, ")
    assert "detectors, " in said
