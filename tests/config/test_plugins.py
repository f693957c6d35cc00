"""Plug-ins from packages that are made up on the spot; a real one is installed in `tests/plugin_package`."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from theodolite.config.plugins import GROUPS, SWITCH, PluginWarning, plugins
from theodolite.config.settings import Settings, StoreSettings
from theodolite.config.wiring import wire
from theodolite.core.errors import ConfigError, StoreError
from theodolite.core.event import TurnEnded

DETECTOR = """
from theodolite.testing.fakes import QuietDetector

class Watcher(QuietDetector):
    def __init__(self):
        super().__init__(name="watcher")

not_a_class = "watcher"
"""
ENTRY = """
[theodolite.detectors]
watcher = {module}:Watcher
"""

Offer = Callable[[str, str, str], None]


@pytest.fixture
def offer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Offer]:
    """Install a package by hand: a module, and the entry points that name it."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    made: list[str] = []

    def install(module: str, source: str, entry_points: str) -> None:
        (tmp_path / f"{module}.py").write_text(source, encoding="utf-8")
        information = tmp_path / f"{module}-1.0.dist-info"
        information.mkdir()
        (information / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n", encoding="utf-8"
        )
        (information / "entry_points.txt").write_text(entry_points.format(module=module), encoding="utf-8")
        importlib.invalidate_caches()
        made.append(module)

    yield install
    for module in made:
        sys.modules.pop(module, None)


def names(settings: Settings) -> list[str]:
    with wire(settings) as instrument:
        return [detector.name for detector in instrument.monitor.detectors]


def test_a_plug_in_is_found_and_wired_beside_our_own(offer: Offer) -> None:
    offer("watching", DETECTOR, ENTRY)
    assert "watcher" in plugins("theodolite.detectors")
    found = names(Settings())
    assert {"hijack", "shadow_memory", "watcher"} <= set(found)
    with wire(Settings()) as instrument:
        assert instrument.monitor.session("s-1").observe(TurnEnded()).allowed


def test_a_plug_in_may_be_left_out_by_its_name(offer: Offer) -> None:
    offer("watching", DETECTOR, ENTRY)
    assert "watcher" not in names(Settings(detectors={"watcher": {"enabled": False}}))
    with pytest.raises(ConfigError, match=r"detectors\.watcher takes no settings but 'enabled', not 'window'"):
        names(Settings(detectors={"watcher": {"window": 3}}))


def test_a_plug_in_takes_settings_of_its_own_strictly(offer: Offer) -> None:
    source = """
from msgspec import Struct
from theodolite.testing.fakes import QuietDetector

class Wanted(Struct, forbid_unknown_fields=True):
    window: int = 8

class Watcher(QuietDetector):
    settings = Wanted

    def __init__(self, wanted):
        super().__init__(name="watcher", version=str(wanted.window))
"""
    offer("watching", source, ENTRY)
    with wire(Settings(detectors={"watcher": {"window": 3}})) as instrument:
        assert {detector.name: detector.version for detector in instrument.monitor.detectors}["watcher"] == "3"
    with pytest.raises(ConfigError, match=r"'detectors\.watcher\.windw'; did you mean 'detectors\.watcher\.window'\?"):
        wire(Settings(detectors={"watcher": {"windw": 3}}))


def test_plug_ins_can_be_switched_off_by_setting_and_by_environment(
    offer: Offer, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer("watching", DETECTOR, ENTRY)
    assert "watcher" not in names(Settings(plugins=False))
    monkeypatch.setenv(SWITCH, "0")
    assert "watcher" not in names(Settings())
    assert plugins("theodolite.detectors") == {}
    monkeypatch.setenv(SWITCH, "1")
    assert "watcher" in names(Settings())


def test_none_of_the_code_of_a_plug_in_runs_when_they_are_off(offer: Offer) -> None:
    offer("exploding", "raise SystemExit('it ran')", ENTRY)
    assert "watcher" not in names(Settings(plugins=False))
    assert "exploding" not in sys.modules


@pytest.mark.parametrize(
    ("source", "entry", "told"),
    [
        ("raise RuntimeError('no such host')", "{module}:Watcher", "RuntimeError: no such host"),
        ("import a_module_that_is_not_there", "{module}:Watcher", "ModuleNotFoundError: No module named"),
        ("def broken(:", "{module}:Watcher", "SyntaxError: "),
        ("", "{module}:Watcher", "AttributeError: module"),
        (DETECTOR, "{module}:not_a_class", "is not a class"),
        (DETECTOR, "{module}", "is not a class"),
    ],
)
def test_a_broken_plug_in_warns_with_a_way_out_and_is_left_out(
    offer: Offer, source: str, entry: str, told: str
) -> None:
    offer("broken_one", source, f"[theodolite.detectors]\nbroken = {entry}\n")
    with pytest.warns(PluginWarning, match=rf"^plug-in left out: broken_one.*{told}.*Set THEODOLITE_PLUGINS=0") as seen:
        found = names(Settings())
    assert {"hijack", "shadow_memory"} <= set(found)
    assert "broken" not in found
    assert len(seen) == 1


def test_our_own_keep_their_names(offer: Offer) -> None:
    offer("impostor", DETECTOR, "[theodolite.detectors]\nhijack = {module}:Watcher\n")
    assert "watcher" not in names(Settings())


def test_nobody_takes_the_name_of_the_fusion(offer: Offer) -> None:
    offer("impostor", DETECTOR, "[theodolite.detectors]\nfusion = {module}:Watcher\n")
    off: dict[str, dict[str, object]] = {"hijack": {"enabled": False}}
    for detectors in ({}, off):
        with pytest.warns(PluginWarning, match="the name is taken by the fusion"):
            assert "watcher" not in names(Settings(detectors=detectors))


def test_a_plug_in_that_says_what_another_says_is_refused_with_its_name(offer: Offer) -> None:
    source = DETECTOR.replace('name="watcher"', 'name="hijack"')
    offer("double", source, ENTRY)
    with pytest.raises(ConfigError, match="two detectors, fusions or verifiers are called hijack: leave one out"):
        wire(Settings())


def test_verifiers_readers_redactors_and_stores_are_found_too(offer: Offer, tmp_path: Path) -> None:
    source = """
from theodolite.core.redaction import DenyAll
from theodolite.readers.openai_chat import OpenAIChat
from theodolite.stores.memory import MemoryStore
from theodolite.testing.fakes import ScriptedVerifier

class Judge(ScriptedVerifier):
    def __init__(self):
        super().__init__(codes=frozenset({"margin.untrusted"}), name="judge")

class Reading(OpenAIChat):
    name = "another-chat"

class Silent(DenyAll):
    name = "silent"

    def __init__(self, profile):
        self.profile = profile

class Kept(MemoryStore):
    def __init__(self, path, *, key):
        super().__init__(key)
        self.path = path
"""
    entries = """
[theodolite.verifiers]
judge = {module}:Judge
[theodolite.readers]
another-chat = {module}:Reading
[theodolite.redactors]
silent = {module}:Silent
[theodolite.stores]
kept = {module}:Kept
"""
    offer("everything", source, entries)
    chosen = Settings(redactor="silent", store=StoreSettings(path="kept.here", kind="kept"), folder=str(tmp_path))
    with wire(chosen) as instrument:
        assert [verifier.name for verifier in instrument.monitor.fleet.verifiers] == ["judge"]
        assert "another-chat" in [reader.name for reader in instrument.readers]
        assert instrument.monitor.fleet.redactor.name == "silent"
        assert getattr(instrument.store, "path", None) == tmp_path / "kept.here"


def test_there_is_a_group_for_each_port_that_a_plug_in_may_fill() -> None:
    assert sorted(group.removeprefix("theodolite.") for group in GROUPS) == [
        "detectors",
        "readers",
        "redactors",
        "stores",
        "verifiers",
    ]


BROKEN = """
from theodolite.testing.fakes import QuietDetector, ScriptedVerifier

class Raising(QuietDetector):
    def __init__(self):
        raise RuntimeError("no such host")

class Lacking:
    name = "lacking"
    version = "1"
    reads = frozenset()
    needs = frozenset()

    def begin(self):
        raise AssertionError("never reached")

class Junk(QuietDetector):
    def __init__(self):
        super().__init__(name="junk", bands={"junk.x": 0.5})

class Beginless(QuietDetector):
    def begin(self):
        raise LookupError("no state")

class Updateless:
    name, version, reads, needs, bands = "updateless", "1", frozenset(), frozenset(), {}

class Codeless:
    name, version, subject = "codeless", "1", object

    def inquire(self, subject):
        raise AssertionError(subject)

class Nameless:
    def __init__(self, *args, **kwargs):
        pass
"""


@pytest.mark.parametrize(
    ("group", "kind", "told"),
    [
        ("detectors", "Raising", "the detector 'bad': RuntimeError: no such host"),
        ("detectors", "Lacking", "AttributeError: 'Lacking' object has no attribute 'update'"),
        ("detectors", "Junk", "AttributeError: 'float' object has no attribute 'acts'"),
        ("detectors", "Beginless", "LookupError: no state"),
        ("detectors", "Updateless", "no attribute 'update'"),
        ("detectors", "Nameless", "no attribute 'update'"),
        ("verifiers", "Raising", "the verifier 'bad': RuntimeError: no such host"),
        ("verifiers", "Codeless", "no attribute 'codes'"),
        ("readers", "Raising", "the reader 'bad': RuntimeError: no such host"),
        ("readers", "Nameless", "no attribute 'name'"),
    ],
)
def test_a_plug_in_that_cannot_be_used_warns_and_is_left_out(offer: Offer, group: str, kind: str, told: str) -> None:
    offer("unusable", BROKEN, f"[theodolite.{group}]\nbad = {{module}}:{kind}\n")
    with pytest.warns(PluginWarning, match=rf"^plug-in left out: .*{told}.*Set THEODOLITE_PLUGINS=0") as seen:
        found = names(Settings())
    assert {"hijack", "shadow_memory"} <= set(found)
    assert len(seen) == 1


@pytest.mark.parametrize("kind", ["Raising", "Nameless"])
def test_a_redactor_or_store_that_was_chosen_and_cannot_be_used_is_an_error(offer: Offer, kind: str) -> None:
    offer(
        "unusable",
        BROKEN,
        f"[theodolite.redactors]\nbad = {{module}}:{kind}\n[theodolite.stores]\nbad = {{module}}:{kind}\n",
    )
    with pytest.raises(ConfigError, match="the redactor 'bad' of a plug-in cannot be used: "):
        wire(Settings(redactor="bad"))
    with pytest.raises(StoreError, match="the store 'bad' of a plug-in cannot be opened: "):
        wire(Settings(store=StoreSettings(path="x", kind="bad")))
