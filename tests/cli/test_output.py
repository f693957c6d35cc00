"""Where a report may go: never over what a command reads or keeps."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

import pytest
from msgspec import Struct
from msgspec.structs import fields, replace
from typer.testing import Result

from theodolite.cli import probing, scanning
from theodolite.cli.output import involved, spared
from theodolite.config.models import LocalSettings
from theodolite.config.settings import Settings, StoreSettings
from theodolite.core.errors import ConfigError

Run = Callable[..., Result]

REQUESTS: tuple[type[Struct], ...] = (scanning.Request, probing.Request)


def _requests() -> Iterator[tuple[type[Struct], str]]:
    """Yield each field of each request that names files, but the output."""
    for kind in REQUESTS:
        for field in fields(kind):
            if "Path" in str(field.type) and field.name != "output":
                yield kind, field.name


SETTINGS: dict[str, Callable[[str], Settings]] = {
    "store.path": lambda name: Settings(store=StoreSettings(path=name)),
    "store.key_file": lambda name: Settings(store=StoreSettings(key_file=name)),
    "calibration": lambda name: Settings(calibration=name),
    "models.x.model": lambda name: Settings(models={"x": LocalSettings(model=name)}),
}
FOLDERS: dict[str, Callable[[str], Settings]] = {
    "store.raw_events": lambda name: Settings(store=StoreSettings(raw_events=name)),
    "store.shelf": lambda name: Settings(store=StoreSettings(shelf=name)),
}


def _refused(output: Path, *others: Path) -> None:
    with pytest.raises(ConfigError, match=r"is what this command reads or keeps: name another file"):
        spared(output, *others)


@pytest.mark.parametrize(("kind", "field"), list(_requests()), ids=lambda value: getattr(value, "__module__", value))
def test_every_path_among_the_arguments_is_spared(tmp_path: Path, kind: type[Struct], field: str) -> None:
    path = tmp_path / "there"
    needed = {"paths": (), "today": date(2026, 1, 1)}
    given = {name: needed[name] for name in needed if name in kind.__struct_fields__}
    request = kind(**{**given, field: (path,) if field == "paths" else path})
    _refused(path, *involved(request, Settings()))
    for bare in (kind(**given), kind(**{**given, "output": path})):
        spared(path, *involved(bare, Settings()))


def test_the_requests_name_paths_at_all() -> None:
    assert {"paths", "store", "config", "system"} <= {name for _, name in _requests()}
    assert {"calibration", "baseline", "write_baseline", "suppressions"} <= {name for _, name in _requests()}


@pytest.mark.parametrize("setting", [*SETTINGS, *FOLDERS])
def test_every_path_of_the_settings_is_spared(tmp_path: Path, setting: str) -> None:
    settings = replace({**SETTINGS, **FOLDERS}[setting]("there"), folder=str(tmp_path))
    request = probing.Request(paths=())
    _refused(tmp_path / "there", *involved(request, settings))
    spared(tmp_path / "elsewhere", *involved(request, settings))
    if setting in FOLDERS:
        (tmp_path / "there").mkdir()
        _refused(tmp_path / "there" / "any", *involved(request, settings))


@pytest.mark.parametrize("name", ["theodolite.toml", "theodolite-suppressions.toml"])
def test_what_a_command_looks_for_by_itself_is_spared(home: Path, name: str) -> None:
    _refused(home / name, *involved(probing.Request(paths=()), Settings()))


def test_a_report_may_stand_beside_the_recordings(recordings: Path) -> None:
    request = probing.Request(paths=(recordings,))
    spared(recordings / "report.html", *sorted(recordings.iterdir()), *involved(request, Settings()))


@pytest.mark.parametrize("ending", ["-wal", "-shm", "-journal"])
def test_what_a_database_has_beside_it_is_spared(tmp_path: Path, ending: str) -> None:
    _refused(tmp_path / f"e.db{ending}", tmp_path / "e.db")


def test_other_names_of_the_same_file_do_not_help(recordings: Path, tmp_path: Path) -> None:
    file = recordings / "clean.json"
    (tmp_path / "link").symlink_to(file)
    os.link(file, tmp_path / "hard")
    for name in ("link", "hard", "recordings/../recordings/clean.json"):
        _refused(tmp_path / name, file)
    (tmp_path / "ring").symlink_to("ring")
    spared(tmp_path / "ring", file)


def test_any_database_is_spared(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "other.db") as database:
        database.execute("create table t (x)")
    database.close()
    with pytest.raises(ConfigError, match="may be evidence"):
        spared(tmp_path / "other.db")


@pytest.mark.parametrize(
    "command",
    [
        ("probe", "{clean}", "--model", "local", "--output", "{clean}"),
        ("probe", "{clean}", "--model", "local", "--store", "e.db", "--output", "e.db"),
        ("probe", "{clean}", "--model", "local:{clean}", "--output", "{clean}"),
        ("probe", "{clean}", "--model", "local", "--estimate", "--output", "{clean}"),
        ("scan", "{clean}", "--output", "{clean}"),
        ("scan", "{clean}", "--system", "p.txt", "--output", "p.txt"),
        ("scan", "{clean}", "--store", "e.db", "--write-baseline", "e.db"),
        ("scan", "{clean}", "--output", "x", "--write-baseline", "x"),
        ("report", "{clean}", "--output", "{clean}"),
    ],
)
def test_every_verb_spares_what_it_reads(
    theodolite: Run, recordings: Path, home: Path, command: tuple[str, ...]
) -> None:
    clean = recordings / "clean.json"
    (home / "p.txt").write_text("You help.", encoding="utf-8")
    before = {file: file.read_bytes() for file in (clean, home / "p.txt")}
    done = theodolite(*(part.format(clean=clean) for part in command))
    assert (done.exit_code, done.stdout) == (2, "")
    assert "is what this command reads or keeps: name another file" in done.stderr
    assert {file: file.read_bytes() for file in before} == before
    assert not (home / "e.db").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, a device that takes nothing")
@pytest.mark.parametrize("arguments", [("-f", "json"), ("-f", "html"), ()])
def test_an_output_that_takes_no_more_is_a_line_with_its_name(
    theodolite: Run, recordings: Path, arguments: tuple[str, ...]
) -> None:
    done = theodolite("scan", recordings / "clean.json", "--output", "/dev/full", *arguments)
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1].startswith("error: the output cannot be written to /dev/full (No space left")
