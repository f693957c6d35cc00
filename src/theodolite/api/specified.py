"""The forms in which a guard takes the document that it holds calls against."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Protocol

from msgspec import Struct

from theodolite.contracts import read
from theodolite.core.arguments import is_mapping, is_sequence
from theodolite.core.contract import Contracts
from theodolite.core.errors import ConfigError
from theodolite.core.text import brief
from theodolite.readers.specification import Progress, content, parse

__all__ = ("Model", "Published", "Spec", "contracts_of", "published")

# Documents that are kept read, and bytes of their text: what is read of them takes some ten times that (our choice).
_KEPT, _ROOM = 8, 16_000_000
# What the ending of a name says of how text is read.
_ENDINGS = (".json", ".yaml", ".yml")


class Model(Protocol):
    """A class that says which JSON Schema its instances have, as a model of Pydantic does."""

    def model_json_schema(self) -> Mapping[str, object]:
        """Return the schema."""
        ...


Spec = Mapping[str, object] | Sequence[object] | Contracts | Path | Model
"""A document, Contracts that were read before, the file of a document, or a class with a JSON Schema."""


class Published(Struct, frozen=True):
    """What a file publishes: its contracts, and the pointers to keys that stand in it more than once."""

    contracts: Contracts
    duplicates: tuple[str, ...] = ()


class _Cache:
    """The documents that were read last, by their content: settings, commands and guards read the same ones."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: OrderedDict[tuple[str, ...], tuple[int, Published]] = OrderedDict()

    def find(self, key: tuple[str, ...]) -> Published | None:
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
        return None if found is None else found[1]

    def keep(self, key: tuple[str, ...], size: int, made: Published) -> None:
        with self._lock:
            self._kept[key] = size, made
            while self._kept and (len(self._kept) > _KEPT or sum(one for one, _ in self._kept.values()) > _ROOM):
                self._kept.popitem(last=False)


_CACHE = _Cache()


def published(data: bytes, *, source: str, name: str = "schema", progress: Progress | None = None) -> Published:
    """Return what a document publishes; `source` is what errors call it, `name` that of a plain JSON Schema.

    What was read lately is not read again: the same bytes are the same contracts. At most 8 documents, of 16 MB
    together, are kept for the life of the process. Safe for threads.

    `progress` is told how many bytes are read, and of how many; what follows, to sort out the operations, takes as
    long again and more, and is one step.

    Raises ConfigError, with the source and the place in it, for what is none.

    >>> text = b'[{"name": "add", "inputSchema": {}}]'
    >>> published(text, source="a.json").contracts is published(text, source="b.json").contracts
    True
    """
    ending = next((one for one in _ENDINGS if source.endswith(one)), "")
    key = (hashlib.sha256(data).hexdigest(), ending, name)
    found = _CACHE.find(key)
    if found is None:
        specification = parse(data, name=source, progress=progress)
        try:
            contracts = read(specification.document, name=name)
        except ConfigError as error:
            raise ConfigError(f"{source}: {error}") from error
        found = Published(contracts, specification.duplicates)
        _CACHE.keep(key, len(data), found)
    return found


def contracts_of(spec: object) -> Contracts:
    """Return the contracts of a document in any form that a guard takes.

    Raises ConfigError for what is no document, and for what is wrong in it, with the place.

    >>> [*contracts_of([{"name": "add", "inputSchema": {}}]).contracts]
    ['add']
    """
    if isinstance(spec, Contracts):
        return spec
    if isinstance(spec, Path):
        return published(content(spec), source=str(spec), name=spec.stem).contracts
    if is_mapping(spec) or is_sequence(spec):
        return read(spec)
    schema: object = getattr(spec, "model_json_schema", None)
    if isinstance(spec, type) and callable(schema):
        return read(schema(), name=spec.__name__)
    hint = "load text with json.loads or yaml.safe_load, and give a file as pathlib.Path(...)"
    if callable(schema):
        hint = "give the model's class, and not an instance of it"
    raise ConfigError(f"spec is a document as a mapping, a list of tools, or a Path, not {brief(spec)}: {hint}")
