"""What `theodolite pin` does."""

from __future__ import annotations

import sys
from pathlib import Path

from msgspec.structs import replace

from theodolite.cli.exits import NOTHING
from theodolite.cli.grades import Graded, Told
from theodolite.cli.guarding import account_of, loaded, tell
from theodolite.cli.output import spared
from theodolite.contracts.difference import Change
from theodolite.contracts.pinning import Pins, pinned, read, verify, write
from theodolite.core.errors import ConfigError
from theodolite.core.text import brief
from theodolite.reports.escaping import inert
from theodolite.reports.layout import counted

__all__ = ("added", "verified")


def added(files: tuple[Path, ...], to: Path) -> int:
    """Pin the contracts of files, and say how many; return the exit status."""
    spared(to, *files, option="--to")
    pins = _read(to) if to.exists() else Pins()
    fresh = {file.as_posix(): pinned(loaded(file)) for file in files}
    _write(to, write(replace(pins, sources={**pins.sources, **fresh})))
    for source, one in fresh.items():
        sys.stdout.write(f"{inert(source)}: {counted(len(one.pins), 'contract')} pinned in {inert(str(to))}\n")
    return NOTHING


def verified(files: tuple[Path, ...], pins: Path, form: Told, fail_on: Graded) -> int:
    """Tell what changed since the contracts of files were pinned; return the exit status."""
    kept = _read(pins).sources
    sources = [file.as_posix() for file in files] or list(kept)
    changes, names = list[Change](), list[str]()
    for source in sources:
        if source not in kept:
            others = ", ".join(brief(one) for one in kept) or "nothing"
            raise ConfigError(f"{pins} has no pins of {source}, but of {others}: `theodolite pin add` makes them")
        contracts = loaded(Path(source))
        label = f"{source}: " if len(sources) > 1 else ""
        changes += [replace(one, contract=label + one.contract) for one in verify(kept[source], contracts)]
        names += [label + name for name in dict.fromkeys([*kept[source].pins, *contracts.contracts])]
    return tell(account_of("pin verify", tuple(sources) or (str(pins),), tuple(names), changes, fail_on), form)


def _read(pins: Path) -> Pins:
    try:
        data = pins.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"{pins}: cannot be read ({error.strerror}): name the file that `theodolite pin add` wrote"
        ) from error
    return read(data, str(pins))


def _write(to: Path, data: bytes) -> None:
    """Put a file in its place as a whole, or not at all."""
    fresh = to.with_name(f".{to.name}.new")
    try:
        fresh.write_bytes(data)
        fresh.replace(to)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise ConfigError(f"{to}: cannot be written ({error.strerror}): name another file with --to") from error
