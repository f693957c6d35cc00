"""The reference pages name everything that there is: keys, options, events, fields, codes, statuses."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from msgspec import Struct

import theodolite
from theodolite.config.settings import PolicySettings, Settings, StoreSettings
from theodolite.config.wiring import wire
from theodolite.core.calibration import Band, Calibration
from theodolite.core.event import HOST_EVENTS, AnyEvent, Event
from theodolite.core.labels import Label, Labeled
from theodolite.core.reading import Status
from theodolite.core.store import Head, Record, Registry
from theodolite.detectors.payload.drift import CODE
from theodolite.reports.document import Document

PAGES = Path(__file__).parents[2] / "docs" / "reference"
EXPLAINED = Path(theodolite.__file__).parent / "reports" / "codes"


def _page(name: str) -> str:
    return (PAGES / f"{name}.md").read_text(encoding="utf-8")


def _fields(kind: type[Struct]) -> set[str]:
    return {field.encode_name for field in msgspec.structs.fields(kind)}


def _unnamed(names: set[str], page: str) -> list[str]:
    return sorted(name for name in names if f"`{name}`" not in page)


def test_the_configuration_page_names_every_key() -> None:
    page = _page("configuration")
    with theodolite.load() as monitor:
        own = [getattr(detector, "settings", None) for detector in monitor.detectors]
    for kind in (Settings, PolicySettings, StoreSettings, *[kind for kind in own if kind is not None]):
        keys = _fields(kind) - {"folder"}
        missing = [key for key in keys if f"{key} =" not in page and f".{key}]" not in page and f"[{key}" not in page]
        assert not missing, (kind.__name__, missing)


def test_the_calibration_page_names_every_key_and_status() -> None:
    page = _page("calibration")
    assert not _unnamed(_fields(Calibration) | _fields(Band) | {status.value for status in Status}, page)


def test_the_events_page_names_every_type_and_field() -> None:
    page = _page("events")
    kinds: tuple[type[Event], ...] = get_args(AnyEvent)
    fields = {field for kind in HOST_EVENTS for field in _fields(kind)} - {"foreign"}
    assert not _unnamed({kind.__name__ for kind in kinds} | fields, page)


def test_the_records_page_names_every_field() -> None:
    assert not _unnamed(_fields(Record) | _fields(Head) | _fields(Registry), _page("records"))


def test_the_labels_page_names_every_key_and_every_reader_that_has_labels() -> None:
    with wire(Settings(plugins=False)) as instrument:
        readers = {reader.name for reader in instrument.readers if isinstance(reader, Labeled)}
    assert len(readers) > 1
    assert not _unnamed(_fields(Label) | readers, _page("labels"))


def test_the_output_page_names_every_key() -> None:
    schema = msgspec.json.schema(Document)
    keys = {key for kind in schema["$defs"].values() for key in kind.get("properties", {})}
    assert len(keys) > 30
    assert not _unnamed(keys, _page("output"))


def test_each_code_has_a_page_and_a_line_in_the_table() -> None:
    with wire(
        Settings(plugins=False, detectors={"behavior": {"enabled": True}, "margin": {"enabled": True}})
    ) as instrument:
        codes = {*instrument.monitor.fleet.bands, "monitor.failure", CODE, "guard.lint", "contract.change"}
    assert codes == {file.name.removesuffix(".md") for file in EXPLAINED.iterdir()}
    assert not [code for code in codes if f"/{code}.md)" not in _page("codes")]


@pytest.mark.parametrize(
    "command",
    [
        *[[verb] for verb in ("demo", "scan", "probe", "report", "explain", "doctor")],
        *[["models", verb] for verb in ("pull", "list", "path")],
        *[["guard", verb] for verb in ("lint", "check", "diff", "drift")],
        *[["pin", verb] for verb in ("add", "remove", "verify")],
        *[["dataset", verb] for verb in ("agentdojo", "label")],
        *[["store", verb] for verb in ("verify", "heads", "export", "erase", "expire")],
    ],
    ids=" ".join,
)
def test_the_command_line_page_names_every_option(command: list[str]) -> None:
    shown = subprocess.run(
        [Path(sys.executable).with_name("theodolite"), *command, "--help"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    options = {word.strip(",│") for word in shown.split() if word.startswith("--")} - {"--help"}
    page = _page("cli")
    assert f"theodolite {' '.join(command)}" in page
    assert not [option for option in options if option.rstrip(".") not in page], options
