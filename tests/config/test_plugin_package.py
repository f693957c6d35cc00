"""A real package of plug-ins, built and installed as any other: found, checked, used; a broken one harms nobody."""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from theodolite.config.plugins import SWITCH, PluginWarning, plugins
from theodolite.config.settings import Settings, StoreSettings
from theodolite.config.wiring import wire
from theodolite.core.calibration import Band
from theodolite.core.errors import ConfigError
from theodolite.core.event import MessageObserved
from theodolite.core.reading import Reading, Signal
from theodolite.core.redaction import Profile
from theodolite.core.verifier import Case
from theodolite.testing.checks.asker import check_asker
from theodolite.testing.checks.detector import check_detector
from theodolite.testing.checks.reader import check_reader
from theodolite.testing.checks.redactor import check_redactor
from theodolite.testing.checks.store import Opened, check_store

PACKAGE = Path(__file__).parents[1] / "plugin_package"
NAME = "theodolite_example"


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the package and unpack its wheel: what an installer does, and no network is needed."""
    folder = tmp_path_factory.mktemp("plugin")
    shutil.copytree(PACKAGE, folder / "source")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=folder / "source", check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(folder / "site")
    return folder / "site"


@pytest.fixture
def installed(site: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv(SWITCH, raising=False)
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])
    importlib.invalidate_caches()
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == NAME]:
        del sys.modules[name]


def _calls(count: int) -> bytes:
    lines = [json.dumps({"tool": "send_money", "arguments": {"amount": number}}) for number in range(count)]
    return "\n".join(["#tool-calls", *lines, ""]).encode()


def _shouts() -> Iterator[MessageObserved]:
    yield MessageObserved(role="assistant", text="PAY NOW!")


@pytest.mark.usefixtures("installed")
def test_every_kind_is_found_by_its_entry_point() -> None:
    found = {group: sorted(plugins(f"theodolite.{group}")) for group in ("verifiers", "stores", "readers")}
    assert found == {"verifiers": ["agreeing"], "stores": ["counting"], "readers": ["tool-calls"]}


@pytest.mark.usefixtures("installed")
def test_a_broken_plugin_warns_and_the_others_are_there() -> None:
    with pytest.warns(PluginWarning, match=r"theodolite_example\.broken:BrokenDetector: ImportError: libshout") as told:
        assert sorted(plugins("theodolite.detectors")) == ["shouting"]
    assert len(told) == 1
    with pytest.warns(PluginWarning, match=r"theodolite_example\.redactor:MARK is not a class"):
        assert sorted(plugins("theodolite.redactors")) == ["lengths"]


@pytest.mark.usefixtures("installed")
def test_all_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "0")
    assert plugins("theodolite.detectors") == {}
    assert NAME not in sys.modules


@pytest.mark.usefixtures("installed")
@pytest.mark.filterwarnings("ignore::theodolite.config.plugins.PluginWarning")
def test_each_obeys_the_laws_of_its_port() -> None:
    check_detector(plugins("theodolite.detectors")["shouting"], alarming={"shouting.capitals": _shouts})
    said = Reading(detector="shouting", version="1", code="shouting.capitals", score=0.9)
    check_asker(
        plugins("theodolite.verifiers")["agreeing"],
        [Case(signal=Signal(said=said))],
        bands={"shouting.capitals": Band(alert=0.9)},
    )
    check_store(lambda: Opened(plugins("theodolite.stores")["counting"]()))
    check_reader(plugins("theodolite.readers")["tool-calls"], {"three calls": _calls(3)}, long=_calls)
    check_redactor(plugins("theodolite.redactors")["lengths"])


@pytest.mark.usefixtures("installed")
@pytest.mark.filterwarnings("ignore::theodolite.config.plugins.PluginWarning")
def test_the_configuration_wires_them() -> None:
    instrument = wire(Settings(redactor="lengths"))
    assert "tool-calls" in [reader.name for reader in instrument.readers]
    with instrument, instrument.monitor.session("s-1") as session:
        (signal,) = session.observe(MessageObserved(role="assistant", text="PAY NOW!")).signals
    assert signal.code == "shouting.capitals"
    assert signal.alarmed


@pytest.mark.usefixtures("installed")
@pytest.mark.filterwarnings("ignore::theodolite.config.plugins.PluginWarning")
def test_without_free_text_no_redactor_of_a_plugin_lets_any_pass() -> None:
    with wire(Settings(redactor="lengths", store=StoreSettings(profile=Profile.CATEGORICAL))) as instrument:
        assert instrument.monitor.fleet.redactor.text("PAY NOW!") == "[REDACTED:TEXT]"


@pytest.mark.usefixtures("installed")
@pytest.mark.filterwarnings("ignore::theodolite.config.plugins.PluginWarning")
def test_the_configuration_names_the_store_of_a_plugin() -> None:
    with wire(Settings(store=StoreSettings(kind="counting", path="anywhere"))) as instrument:
        assert type(instrument.store).__name__ == "CountingStore"
    with pytest.raises(ConfigError, match="did you mean 'counting'"):
        wire(Settings(store=StoreSettings(kind="countin", path="anywhere")))


@pytest.mark.usefixtures("installed")
def test_the_configuration_can_leave_them_out() -> None:
    instrument = wire(Settings(plugins=False))
    assert "shouting" not in [detector.name for detector in instrument.monitor.detectors]
    assert NAME not in sys.modules


def test_without_the_package_there_are_no_plugins() -> None:
    assert all(NAME not in kind.__module__ for kind in plugins("theodolite.readers").values())
