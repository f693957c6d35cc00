"""The forms in which a guard takes the document that it holds calls against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from theodolite.contracts import read
from theodolite.core.arguments import is_mapping, is_sequence
from theodolite.core.contract import Contracts
from theodolite.core.errors import ConfigError
from theodolite.core.text import brief
from theodolite.readers.specification import Specifications

__all__ = ("Model", "Spec", "contracts_of")


class Model(Protocol):
    """A class that says which JSON Schema its instances have, as a model of Pydantic does."""

    def model_json_schema(self) -> Mapping[str, object]:
        """Return the schema."""
        ...


Spec = Mapping[str, object] | Sequence[object] | Contracts | Path | Model
"""A document, Contracts that were read before, the file of a document, or a class with a JSON Schema."""


def contracts_of(spec: object) -> Contracts:
    """Return the contracts of a document in any form that a guard takes.

    Raises ConfigError for what is no document, and for what is wrong in it, with the place.

    >>> [*contracts_of([{"name": "add", "inputSchema": {}}]).contracts]
    ['add']
    """
    if isinstance(spec, Contracts):
        return spec
    if isinstance(spec, Path):
        document = Specifications().load(spec).document
        try:
            return read(document, name=spec.stem)
        except ConfigError as error:
            raise ConfigError(f"{spec}: {error}") from error
    if is_mapping(spec) or is_sequence(spec):
        return read(spec)
    schema: object = getattr(spec, "model_json_schema", None)
    if isinstance(spec, type) and callable(schema):
        return read(schema(), name=spec.__name__)
    hint = "load text with json.loads or yaml.safe_load, and give a file as pathlib.Path(...)"
    if callable(schema):
        hint = "give the model's class, and not an instance of it"
    raise ConfigError(f"spec is a document as a mapping, a list of tools, or a Path, not {brief(spec)}: {hint}")
