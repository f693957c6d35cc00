"""The contracts that `[detectors.payload]` names: read from their files, once, and made one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TypeVar

from theodolite.api.specified import published
from theodolite.config.settings import Settings, read_named, shown
from theodolite.contracts.digest import fingerprint
from theodolite.core.arguments import is_sequence
from theodolite.core.contract import Contract, Contracts, Gap
from theodolite.core.errors import ConfigError
from theodolite.detectors.payload.engine import Checker

__all__ = ("checked_by", "contracts_of", "merged")

_SETTING = "detectors.payload.contracts"
_T = TypeVar("_T")


def checked_by(make: Callable[..., _T], table: Mapping[str, object], settings: Settings) -> Callable[..., _T]:
    """Return what makes the detector of payloads, with the contracts of the files that its table names.

    Raises ConfigError, with the file and the JSON Pointer, for one that cannot be read or held against.
    """
    named = table.get("contracts")
    files = [Path(settings.folder, name) for name in named if isinstance(name, str)] if is_sequence(named) else []
    if not files:
        return make
    sources = contracts_of(files)
    contracts = merged(sources)

    def made() -> _T:
        try:
            return make(contracts=contracts)
        except ConfigError:
            for file, one in sources.items():  # which of them it was
                _naming(file, partial(Checker, one))
            raise

    return made


def contracts_of(files: list[Path]) -> dict[str, Contracts]:
    """Return the contracts of each file, by its name. A plain JSON Schema is that of the tool its file is named after.

    Raises ConfigError, with the file and the JSON Pointer, for one that cannot be read or is no contract.
    """
    found = dict[str, Contracts]()
    for file in files:
        name = shown(file)
        if name in found:
            raise ConfigError(f"{_SETTING} names {name} twice: leave one out")
        found[name] = _read(file, name)
    return found


def merged(sources: Mapping[str, Contracts]) -> Contracts:
    """Return the contracts of several files as one.

    A "METHOD /path" that two of them have as another name of an operation is none of the two: a call by it would be
    guessed at. It becomes a gap. Raises ConfigError for a name that is in two of them.

    >>> from theodolite.contracts import read
    >>> one = read([{"name": "add", "inputSchema": {}}])
    >>> merged({"a.json": one, "b.json": one})
    Traceback (most recent call last):
    theodolite.core.errors.ConfigError: ... 'add' is in a.json and in b.json: ...
    """
    if len(sources) == 1:
        return next(iter(sources.values()))
    contracts, aliases = dict[str, Contract](), dict[str, str]()
    documents, gaps = dict[str, object](), list[Gap]()
    origin, shared = dict[str, str](), set[str]()
    for file, one in sources.items():
        for name, contract in one.contracts.items():
            # Of the provider's own tool nothing is judged, so that it does not matter whose declaration counts.
            if name in contracts and not (contract.opaque and contracts[name].opaque):
                where = f"{name!r} is in {origin[name]} and in {file}"
                raise ConfigError(f"{_SETTING}: {where}: a call cannot say which is meant; leave one out")
            contracts[name], origin[name] = contract, file
        shared |= aliases.keys() & one.aliases.keys()
        aliases |= one.aliases
        documents |= one.documents
        gaps += one.gaps
    for name in sorted(shared | (aliases.keys() & contracts.keys())):
        gaps.append(Gap(contract=name, pointer="", reason="two files have it: call the operation by its own name"))
        del aliases[name]
    digest = fingerprint(sorted(one.digest for one in sources.values()))
    return Contracts(contracts=contracts, digest=digest, aliases=aliases, documents=documents, gaps=tuple(gaps))


def _read(file: Path, name: str) -> Contracts:
    """Return the contracts in a file. Raises ConfigError, with the setting, where errors name the file alone."""
    try:
        data = read_named(file)
    except ConfigError as error:
        raise ConfigError(f"{_SETTING}: {error}; name a file, relative to that of the settings") from error
    try:
        return published(data, source=name, name=file.stem).contracts
    except ConfigError as error:
        raise ConfigError(f"{_SETTING}: {error}") from error


def _naming(file: str, work: Callable[[], _T]) -> _T:
    try:
        return work()
    except ConfigError as error:
        raise ConfigError(f"{_SETTING}: {file}: {error}") from error
