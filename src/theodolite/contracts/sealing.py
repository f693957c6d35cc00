"""The hash of one contract, by what was agreed and not by how it was filed."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec
from msgspec import Struct, structs

from theodolite.contracts.digest import canonical
from theodolite.contracts.nodes import Node
from theodolite.core.contract import Contract, Part, Schema

__all__ = ("Sealing", "seal")

# A reference as the canonical form writes it: inside of text the quotes would have a backslash before them.
_REFERENCE = re.compile(rb'"\$ref":("(?:[^"\\]|\\.)*")')


def seal(contract: Contract, documents: Mapping[str, object]) -> str:
    """Return the hash of one contract: see `Sealing.seal`.

    >>> from theodolite.core.contract import Location, Origin
    >>> def tool(reference):
    ...     part = Part(location=Location.ARGUMENTS, schema={"$ref": reference})
    ...     return Contract(name="t", origin=Origin.MCP, parts=(part,))
    >>> one = seal(tool("urn:a#/x"), {"urn:a": {"x": {"type": "object"}}})
    >>> one == seal(tool("urn:b#/y"), {"urn:b": {"y": {"type": "object"}}})
    True
    """
    return Sealing(documents).seal(contract)


class _Written(Struct, frozen=True, gc=False):
    """A schema, its canonical form in the pieces between its references, and those, absolute."""

    schema: Schema
    pieces: tuple[bytes, ...]
    references: tuple[str, ...]


_Update = Callable[[bytes], None]


class Sealing:
    """Hashes contracts of the same documents; each schema is written out once."""

    def __init__(self, documents: Mapping[str, object]) -> None:
        self._documents = documents
        self._known: dict[str, _Written | None] = {}

    def seal(self, contract: Contract) -> str:
        """Return the SHA-256 of what a contract says: name, words, annotations, schemas and all that they lead to.

        References count by what they lead to, in the order in which they are met; one that leads nowhere counts as it
        is written. Linear in the number of schemas that the contract leads to.
        """
        met = dict.fromkeys(["", *self._reached([contract])])
        names = {reference: f'"$ref":"#{place}"'.encode() for place, reference in enumerate(met)}
        agreed = {key: getattr(contract, key) for key in _AGREED}
        hashed = hashlib.sha256(canonical(agreed))
        for part in (*contract.parts, *contract.results):
            hashed.update(canonical({**structs.asdict(part), "schema": "", "pointer": ""}))
            self._add(hashed.update, self._write(part.schema, ""), names)
        for reference in met:
            written = self._at(reference)
            if written is not None:
                self._add(hashed.update, written, names)
        return hashed.hexdigest()

    def reached(self, contracts: Iterable[Contract]) -> dict[str, Schema]:
        """Return the schemas that contracts lead to, by absolute reference, in the order in which they are met."""
        found = [(reference, self._at(reference)) for reference in self._reached(contracts)]
        return {reference: written.schema for reference, written in found if written is not None}

    def _reached(self, contracts: Iterable[Contract]) -> dict[str, None]:
        parts: list[Part] = [part for contract in contracts for part in (*contract.parts, *contract.results)]
        met = dict.fromkeys([one for part in parts for one in self._write(part.schema, "").references])
        waiting = list(met)
        for reference in waiting:  # which grows
            written = self._at(reference)
            for below in written.references if written is not None else ():
                if below not in met:
                    met[below] = None
                    waiting.append(below)
        return met

    def _at(self, reference: str) -> _Written | None:
        if reference not in self._known:
            target = Node({"$ref": reference}, self._documents).followed()
            self._known[reference] = None if target is None else self._write(target.schema, target.base)
        return self._known[reference]

    @staticmethod
    def _write(schema: Schema, base: str) -> _Written:
        pieces = _REFERENCE.split(canonical([schema]))
        references = [msgspec.json.decode(one, type=str) for one in pieces[1::2]]
        absolute = [f"{base}{one}" if one.startswith("#") else one for one in references]
        return _Written(schema, tuple(pieces[::2]), tuple(absolute))

    def _add(self, update: _Update, written: _Written, names: Mapping[str, bytes]) -> None:
        """Hash a schema with its references by the order in which they were met."""
        for piece, reference in _paired(written):
            update(piece)
            if reference is not None:
                lost = self._at(reference) is None
                update(canonical({"$ref": reference})[1:-1] if lost else names[reference])


_AGREED = ("name", "title", "description", "method", "path", "annotations")


def _paired(written: _Written) -> Iterator[tuple[bytes, str | None]]:
    references = iter(written.references)
    for piece in written.pieces:
        yield piece, next(references, None)
