"""`theodolite doctor`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import msgspec
import pytest
from typer.testing import Result

from theodolite.cli.health import Health

Run = Callable[..., Result]
Shell = Callable[..., CompletedProcess[str]]


def test_it_says_what_is_here_and_that_it_works(theodolite: Run) -> None:
    done = theodolite("doctor")
    assert done.exit_code == 0
    for part in ("Python", "SQLite", "openai-chat", "fusion.call alarms at", "nothing is kept", "All is well."):
        assert part in done.stdout


def test_its_json_says_the_same_strictly(theodolite: Run) -> None:
    health = msgspec.json.decode(theodolite("doctor", "--format", "json").stdout, type=Health)
    assert health.wal
    assert health.import_ms > 0
    assert health.packages["theodolite"] != "missing"
    assert {detector.name for detector in health.detectors} >= {"anomaly", "fusion", "hijack", "shadow_memory"}
    bands = {detector.name: [band.code for band in detector.bands] for detector in health.detectors}
    assert bands["fusion"] == ["fusion.call", "fusion.session"]


def test_settings_here_are_found_and_no_store_is_made(theodolite: Run, home: Path) -> None:
    text = '[store]\npath = "evidence.db"\nprofile = "categorical"\n[detectors.shadow_memory]\nenabled = false\n'
    (home / "theodolite.toml").write_text(text, encoding="utf-8")
    health = msgspec.json.decode(theodolite("doctor", "-f", "json").stdout, type=Health)
    assert health.config == "theodolite.toml"
    assert health.store is not None
    assert (health.store.path, health.store.profile, health.store.keyed) == ("evidence.db", "categorical", False)
    names = {detector.name for detector in health.detectors}
    assert "fusion" in names
    assert "shadow_memory" not in names
    assert not (home / "evidence.db").exists()


def test_what_a_setting_cannot_do_is_a_warning_and_all_is_not_well(theodolite: Run, home: Path) -> None:
    text = (
        '[policy]\nhold = true\nmodes = {margin = "observe"}\n[tools]\nsend = "write"\n'
        "[detectors.anomaly]\nenabled = false\n[detectors.fusion]\nenabled = false\n"
        "[detectors.payload]\nenabled = false\n"
    )
    (home / "theodolite.toml").write_text(text, encoding="utf-8")
    done = theodolite("doctor")
    assert done.exit_code == 0
    assert "WARNING: policy.hold can refuse no call" in done.stdout
    assert "warn, but margin observe" in done.stdout
    assert "All is well." not in done.stdout
    policy = msgspec.json.decode(theodolite("doctor", "-f", "json").stdout, type=Health).policy
    assert policy is not None
    assert (policy.hold, policy.fail_closed, policy.tools) == (True, False, 1)


def test_tools_that_are_trusted_are_named_and_have_no_effect_of_that(theodolite: Run, home: Path) -> None:
    text = '[tools]\nsend = "write"\n[tools.wiki]\noutside = false\n[tools.crm]\noutside = false\neffect = "read"\n'
    (home / "theodolite.toml").write_text(text, encoding="utf-8")
    said = theodolite("doctor").stdout
    assert "  tools        2 with an effect\n" in said
    assert "  By the settings only you and the user write what these tools return: crm, wiki.\n" in said
    policy = msgspec.json.decode(theodolite("doctor", "-f", "json").stdout, type=Health).policy
    assert policy is not None
    assert (policy.tools, policy.trusted) == (2, ("crm", "wiki"))


@pytest.mark.parametrize(
    ("text", "readable"),
    [("[policy]\nhodl = true", False), ("[policy]\nhold = true\n[detectors.x]\nenabled=true", True)],
)
def test_of_broken_settings_no_defaults_are_told_as_if_they_held(
    theodolite: Run, home: Path, text: str, *, readable: bool
) -> None:
    (home / "theodolite.toml").write_text(text, encoding="utf-8")
    said = theodolite("doctor").stdout
    assert ("Policy\n" in said, "nothing is kept" in said) == (readable, readable)
    assert "hold         no" not in said
    for title in ("Readers", "Detectors", "calibration"):
        assert title not in said
    health = msgspec.json.decode(theodolite("doctor", "-f", "json").stdout, type=Health)
    assert (health.policy is None, health.store is None) == (not readable, not readable)


def test_thresholds_are_shown_as_they_are(theodolite: Run) -> None:
    assert "fusion.session alarms at 0.995, strong at 0.9995, REFERENCE" in theodolite("doctor").stdout


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[policy]\nhodl = true", "did you mean 'policy.hold'?"),
        ("[detectors.margins]\nenabled = true", "did you mean 'margin'?"),
        ('[store]\nkey_file = "nowhere"', "store.key_file: the key file cannot be read"),
        ('[store]\npath = "no/such/folder/store.db"', "no/such/folder does not exist"),
        ('calibration = "nowhere.json"', "nowhere.json cannot be read"),
        ("not toml", "is not TOML"),
    ],
)
def test_broken_settings_are_2_and_say_what_is_wrong(theodolite: Run, home: Path, text: str, said: str) -> None:
    (home / "theodolite.toml").write_text(text, encoding="utf-8")
    done = theodolite("doctor")
    assert done.exit_code == 2
    assert said in " ".join(done.stdout.split())
    assert "The configuration is broken" in done.stdout
    health = msgspec.json.decode(theodolite("doctor", "-f", "json").stdout, type=Health)
    assert len(health.broken) == 1


def test_a_plug_in_that_cannot_be_loaded_is_named_and_stops_no_scan(
    shell: Shell, tmp_path: Path, recordings: Path
) -> None:
    info = tmp_path / "broken-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text("[theodolite.detectors]\nbroken = nowhere_at_all:It\n", encoding="utf-8")
    done = shell("doctor", PYTHONPATH=str(tmp_path), THEODOLITE_PLUGINS="1")
    assert done.returncode == 0
    assert "LEFT OUT: plug-in left out: nowhere_at_all:It" in done.stdout
    assert "Warning" not in done.stderr
    for jobs in ("1", "2"):
        files = (recordings / "clean.json", "--jobs", jobs)
        scanned = shell("scan", *files, PYTHONPATH=str(tmp_path), THEODOLITE_PLUGINS="1")
        assert scanned.returncode == 0
        assert scanned.stderr.startswith("warning: plug-in left out: nowhere_at_all:It")
        assert scanned.stderr.count("\n") == 1


def test_it_says_how_many_contracts_calls_are_held_against(theodolite: Run, home: Path) -> None:
    assert "none of yours" in theodolite("doctor").stdout
    (home / "tools.json").write_text('[{"name": "a", "inputSchema": {}}, {"name": "b"}]', encoding="utf-8")
    (home / "theodolite.toml").write_text('[detectors.payload]\ncontracts = ["tools.json"]\n', encoding="utf-8")
    held = msgspec.json.decode(theodolite("doctor", "-f", "json").stdout, type=Health).contracts
    assert held is not None
    assert (held.files, held.contracts, held.gaps) == (("tools.json",), 2, 1)
    assert "2 operations of 1 file, 1 place not checked" in " ".join(theodolite("doctor").stdout.split())
    (home / "tools.json").unlink()
    done = theodolite("doctor")
    assert done.exit_code == 2
    assert "BROKEN: theodolite.toml: detectors.payload.contracts: tools.json cannot be read" in done.stdout
