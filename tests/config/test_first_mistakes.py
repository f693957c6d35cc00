"""What a person gets wrong first in a settings file is told with the file, the key, and what may stand there."""

from __future__ import annotations

from pathlib import Path

import pytest

from theodolite.config.settings import Settings, read_settings
from theodolite.config.wiring import wire
from theodolite.core.errors import CalibrationError, ConfigError


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
            "FILE: detectors.anomaly.task must be text, not a whole number. ",
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
        ("send = 'wite'", "tools.send: 'wite' is none of read, write, unknown."),
        ("send = 'Write'", "tools.send: 'Write' is none of read, write, unknown."),
        (
            "send.effect = 'wite'",
            "tools.send.effect: 'wite' is none of read, write, unknown.",
        ),
        (
            "send.arguments = {to = 'targt'}",
            "a value in tools.send.arguments: 'targt' is none of target, command, ",
        ),
        (
            "send.operation = 'net'",
            "tools.send.operation: 'net' is none of file_read, file_write, ",
        ),
        (
            "send.target = 'net'",
            "tools.send.target: 'net' is none of workdir, system_path, ",
        ),
        (
            "send.destination = 'net'",
            "tools.send.destination: 'net' is none of none, localhost, ",
        ),
        (
            "send.provenance = 'net'",
            "tools.send.provenance: 'net' is none of user, repo, ",
        ),
        (
            "send.flow = 'net'",
            "tools.send.flow: 'net' is none of none, local_to_local, ",
        ),
        ("send.outside = 'no'", "tools.send.outside must be true or false, not text."),
        ("send.efect = 'write'", "unknown key 'tools.send.efect'; did you mean 'tools.send.effect'?"),
        ("send.arguments = 3", "tools.send.arguments must be a table, not a whole number."),
        (
            "send.trusted = true",
            "unknown key 'tools.send.trusted'; known: tools.send.arguments, tools.send.destination, ",
        ),
        ("send = 3", "tools.send must be text or a table, not a whole number."),
        ('"a.b".efect = "read"', "unknown key 'tools.a.b.efect'; did you mean 'tools.a.b.effect'?"),
    ],
)
def test_a_rule_of_a_tool_is_told_what_may_stand_there(tmp_path: Path, text: str, said: str) -> None:
    assert fault(tmp_path, f"[tools]\n{text}").startswith(f"FILE: {said}")


def test_a_mode_of_a_detector_is_told_what_may_stand_there(tmp_path: Path) -> None:
    said = "FILE: policy.modes.hijack: 'warm' is none of enforce, warn, observe."
    assert fault(tmp_path, "[policy.modes]\nhijack = 'warm'").startswith(said)


@pytest.mark.parametrize(
    ("text", "key", "meant"),
    [
        ("hold = true", "hold", "'policy.hold'"),
        ("[store]\nhold = true", "store.hold", "'policy.hold'"),
        ("hodl = true", "hodl", "'policy.hold'"),
        ("modes = {}", "modes", "'policy.modes'"),
        ("outside = false", "outside", "'tools.NAME.outside'"),
        ("[store]\nenabled = false", "store.enabled", "'detectors.NAME.enabled'"),
        ("base_url = 'x'", "base_url", "'models.NAME.base_url'"),
        ("calls = 3", "calls", "'budget.session.calls' or 'budget.fleet.calls' or 'budget.day.calls'"),
        ("[policy]\nmode = 'warn'", "policy.mode", "'policy.modes'"),
        ("[budget]\ncalls = 3", "budget.calls", "'budget.session.calls' or 'budget.fleet.calls' or 'budget.day.calls'"),
    ],
)
def test_a_key_in_the_wrong_table_is_known_by_its_last_name(tmp_path: Path, text: str, key: str, meant: str) -> None:
    assert fault(tmp_path, text) == f"FILE: unknown key '{key}'; did you mean {meant}?"


def test_the_table_of_a_detector_belongs_below_detectors(tmp_path: Path) -> None:
    said = fault(tmp_path, "[hijack]\nenabled = false")
    assert said == (
        "FILE: unknown key 'hijack'; known: budget, calibration, detectors, models, panel, plugins, policy, redactor, "
        "store, tools"
    )


@pytest.mark.parametrize(
    ("text", "line"), [("[policy]\nhold = True", 3), ("plugin = FALSE", 2), ("[tools.x]\noutside =  False # ours", 3)]
)
def test_true_and_false_in_capital_letters_are_known(tmp_path: Path, text: str, line: int) -> None:
    said = fault(tmp_path, text)
    assert said.startswith("FILE is not TOML: ")
    assert f"(at line {line}," in said
    assert said.endswith("; true and false are written in small letters")


@pytest.mark.parametrize("text", ["x = yes", "x = 'True", "a = true\nb ="])
def test_other_faults_of_toml_are_not_taken_for_that(tmp_path: Path, text: str) -> None:
    assert "small letters" not in fault(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[panel]\nsubject = 'nobody'", "FILE: panel.subject: no model is named 'nobody'; known: none"),
        ("[store]\nprofile = 'encrypted'", "FILE: store.profile = 'encrypted' needs store.key_file: "),
        ("[store]\nkey_file = 'nowhere'", "FILE: store.key_file: the key file "),
        ("[store]\nraw_events = 'raw'", "FILE: store.raw_events needs store.key_file: "),
        ("[store]\npath = 'x.db'\nkind = 'sqlit'", "FILE: store.kind: there is no store 'sqlit'; "),
        (
            "[detectors.anomaly]\ntask = 'foo'",
            "FILE: detectors.anomaly.task: no word of 'foo' is understood; known: admin,",
        ),
        ("[models.shop]\nkind = 'openai'", "FILE: models.shop: 'model' is missing. "),
        ("[store]\nkeep = 'long'", "FILE: store: 'long' is no age: "),
    ],
)
def test_what_does_not_fit_together_names_the_file_too(tmp_path: Path, text: str, said: str) -> None:
    assert fault(tmp_path, text).startswith(said)


def test_a_calibration_of_the_settings_that_is_not_there_names_the_settings(tmp_path: Path) -> None:
    path = tmp_path / "theodolite.toml"
    path.write_text("plugins = false\ncalibration = 'nowhere.json'", encoding="utf-8")
    with pytest.raises(CalibrationError) as raised:
        wire(read_settings(path))
    assert str(raised.value).startswith(
        f"{path}: calibration: the calibration {tmp_path / 'nowhere.json'} cannot be read"
    )
    with pytest.raises(CalibrationError, match=r"^the calibration other\.json cannot be read"):
        wire(read_settings(path), calibration=Path("other.json"))


@pytest.mark.parametrize("task", ["", "readonly", "Read-Only research", "the support desk", "focused_readonly"])
def test_a_task_with_a_word_that_is_understood_is_taken(tmp_path: Path, task: str) -> None:
    path = tmp_path / "theodolite.toml"
    path.write_text(f"plugins = false\n[detectors.anomaly]\ntask = '{task}'\npolicy = 'house-7'", encoding="utf-8")
    with wire(read_settings(path)).monitor as monitor:
        assert "anomaly" in {detector.name for detector in monitor.detectors}
