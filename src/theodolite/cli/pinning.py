"""What `theodolite pin` does."""

from __future__ import annotations

import os
import sys
from collections.abc import Container, Mapping
from pathlib import Path

from msgspec.structs import replace

from theodolite.cli.bodies import is_input
from theodolite.cli.exits import NOTHING
from theodolite.cli.grades import Graded, Told
from theodolite.cli.guarding import account_of, loaded, tell
from theodolite.cli.output import spared
from theodolite.cli.replacing import alone, put, target_of
from theodolite.contracts.difference import Change
from theodolite.contracts.pinning import Pinned, Pins, pinned, read, verify, write
from theodolite.core.errors import ConfigError
from theodolite.core.policy import Outcome
from theodolite.core.text import brief
from theodolite.reports.escaping import inert
from theodolite.reports.layout import counted

__all__ = ("added", "removed", "verified")


def added(files: tuple[Path, ...], to: Path) -> int:
    """Pin the contracts of files, and say how many; return the exit status."""
    spared(to, *files, option="--to")
    target = target_of(to, "--to")
    sources = {_source(file, to): file for file in files}
    fresh = {source: pinned(loaded(file)) for source, file in sources.items()}
    with alone(target, "--to"):
        pins = _read(to) if target.exists() else Pins()
        put(target, write(replace(pins, sources={**pins.sources, **fresh})), "--to")
    for source, file in sources.items():
        count = counted(len(fresh[source].pins), "contract")
        sys.stdout.write(f"{inert(str(file))}: {count} pinned in {inert(str(to))}\n")
    return NOTHING


def removed(files: tuple[Path, ...], pins: Path) -> int:
    """Take the pins of files away, whether these are still there or not; return the exit status."""
    target = target_of(pins, "--pins")
    sources = {_source(file, pins): file for file in files}
    with alone(target, "--pins"):
        held = _read(pins)
        for source, file in sources.items():
            _known(source, file, pins, held)
        put(target, write(replace(held, sources=_without(held.sources, sources))), "--pins")
    for source, file in sources.items():
        count = counted(len(held.sources[source].pins), "contract")
        sys.stdout.write(f"{inert(str(file))}: {count} no longer pinned in {inert(str(pins))}\n")
    return NOTHING


def verified(files: tuple[Path, ...], pins: Path, form: Told, fail_on: Graded, output: Path | None = None) -> int:
    """Tell what changed since the contracts of files were pinned; return the exit status.

    What can be read is told of before a ConfigError is raised for what cannot.
    """
    held = _read(pins)
    places = {_source(file, pins): file for file in files} or {one: _place(one, pins) for one in held.sources}
    spared(output, pins, *places.values())
    changes, where, names = list[Change](), list[str](), list[str]()
    told, faults = list[str](), list[str]()
    for source, file in places.items():
        _known(source, file, pins, held)
    for source, file in places.items():
        try:
            contracts = loaded(file)
        except ConfigError as error:
            faults.append(str(error))
            continue
        label = f"{file.as_posix()}: " if len(places) > 1 else ""
        kept = held.sources[source]
        found = [replace(one, contract=label + one.contract) for one in verify(kept, contracts)]
        changes += found
        where += [file.as_posix()] * len(found)
        names += [label + name for name in dict.fromkeys([*kept.pins, *contracts.contracts])]
        told.append(file.as_posix())
    code = NOTHING
    if told or not faults:
        account = account_of("pin verify", tuple(told) or (str(pins),), tuple(names), changes, fail_on)
        placed = tuple([replace(one, file=file) for one, file in zip(account.found, where, strict=True)])
        outcome = Outcome.FAILED if faults else account.outcome
        code = tell(replace(account, found=placed, outcome=outcome), form, output)
    if faults:
        sys.stdout.flush()
        raise ConfigError("; ".join(faults))
    return code


def _source(file: Path, pins: Path) -> str:
    """Return the name by which pins know a file: its path from the folder that they are in, wherever one is."""
    if is_input(file):
        raise ConfigError("contracts are pinned by the path of their file: name one instead of -")
    whole = file.parent.resolve() / file.name
    try:
        return Path(os.path.relpath(whole, pins.parent.resolve())).as_posix()
    except ValueError:  # another drive
        return whole.as_posix()


def _place(source: str, pins: Path) -> Path:
    return Path(os.path.normpath(pins.parent / source))


def _known(source: str, file: Path, pins: Path, held: Pins) -> None:
    if source not in held.sources:
        others = ", ".join(brief(_place(one, pins).as_posix()) for one in held.sources) or "nothing"
        raise ConfigError(f"{pins} has no pins of {file}, but of {others}: `theodolite pin add` makes them")


def _without(sources: Mapping[str, Pinned], gone: Container[str]) -> dict[str, Pinned]:
    return {name: one for name, one in sources.items() if name not in gone}


def _read(pins: Path) -> Pins:
    try:
        data = pins.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"{pins}: cannot be read ({error.strerror}): name the file that `theodolite pin add` wrote"
        ) from error
    return read(data, str(pins))
