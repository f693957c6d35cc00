"""Contracts that somebody agreed to, kept so that a later change of them is seen, and graded.

A pin holds the contract itself beside its hash: a hash alone tells that something changed, not what. Of the documents
only those schemas are kept that a pinned contract leads to. The hash is of what was agreed, not of how it was filed:
renaming a component, or moving a schema to another document, changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec
from msgspec import Struct, structs

from theodolite.contracts.difference import Change, Grade, Memory, compare
from theodolite.contracts.digest import Fingerprints, fingerprint
from theodolite.contracts.document import is_object, pointer_of, step, tokens
from theodolite.core.contract import Contract, Contracts, Schema
from theodolite.core.errors import ConfigError
from theodolite.core.faults import place_of
from theodolite.core.text import brief

__all__ = ("FORM", "Pin", "Pinned", "Pins", "pinned", "read", "verify", "write")

FORM: Literal[1] = 1
"""The number of the file's form; a file with another one is not read."""

_Documents = Mapping[str, object]


class Pin(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One contract as it was agreed to, and its hash (SHA-256 of the canonical form)."""

    sha256: str
    contract: Contract


class Pinned(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was agreed to of one source: contracts by name, and what they lead to by the reference that leads there.

    `sha256` is that of all of it as it stands in a file: what no hash of a contract covers must not change either.
    """

    pins: Mapping[str, Pin]
    schemas: Mapping[str, Schema] = {}
    sha256: str = ""


class Pins(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a pin file says: what is pinned, by the name of the source that it is from."""

    theodolite_pins: Literal[1] = FORM
    sources: Mapping[str, Pinned] = {}


def pinned(contracts: Contracts) -> Pinned:
    """Return pins of all contracts of one source."""
    prints = Fingerprints(contracts.documents)
    return Pinned(
        pins={
            name: Pin(sha256=prints.of(contract), contract=contract)
            for name, contract in sorted(contracts.contracts.items())
        },
        schemas=prints.reached(contracts.contracts.values()),
    )


def verify(pins: Pinned, contracts: Contracts) -> tuple[Change, ...]:
    """Return what changed since the contracts of a source were pinned: nothing where every hash is the pinned one.

    A contract whose hash is another one has a change at least, of words where no other is seen.
    """
    before = _documents(pins.schemas)
    memory, prints = Memory(), Fingerprints(contracts.documents)
    found: list[Change] = []
    for name in sorted({*pins.pins, *contracts.contracts}):
        old, new = pins.pins.get(name), contracts.contracts.get(name)
        if old is None:
            found.append(Change(grade=Grade.WIDENING, contract=name, what="added: it is not pinned"))
        elif new is None:
            found.append(Change(grade=Grade.BREAKING, contract=name, what="removed"))
        elif old.sha256 != prints.of(new):
            changes = compare(old.contract, new, before, contracts.documents, memory)
            same = Change(grade=Grade.TEXT_ONLY, contract=name, what="written in another way, to the same effect")
            found += changes or [same]
    return tuple(found)


def write(pins: Pins) -> bytes:
    """Return the file of pins: JSON with keys in order, so that version control shows what changed."""
    hashed = {name: structs.replace(one, sha256=_whole(one)) for name, one in pins.sources.items()}
    whole = structs.replace(pins, sources=hashed)
    return msgspec.json.format(msgspec.json.encode(whole, order="sorted"), indent=1) + b"\n"


def read(data: bytes, where: str) -> Pins:
    """Return the pins of a file, checked: each hash must be that of the contract beside it.

    Raises ConfigError, which names the file `where`, for what is no pin file, is one of another form, or was changed.
    """
    try:
        form = msgspec.json.decode(data, type=_Form).theodolite_pins
        if form != FORM:
            raise ConfigError(
                f"{where}: pins of form {brief(form)}; this version reads form {FORM}: move it away and pin again"
            )
        pins = msgspec.json.decode(data, type=Pins)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ConfigError(
            f"{where}: no file of pins: {place_of(error)}; restore it, or move it away, look at the contracts, and "
            "make another one with `theodolite pin add`"
        ) from error
    for source, one in pins.sources.items():
        if one.sha256 != _whole(one):
            raise ConfigError(
                f"{where}: the pins from {brief(source)} do not fit their hash: the file was changed by hand, or by "
                "somebody; restore it, or look at the contracts and pin them again"
            )
        prints = Fingerprints(_documents(one.schemas))
        for name, kept in one.pins.items():
            if kept.contract.name != name or kept.sha256 != prints.of(kept.contract):
                raise ConfigError(
                    f"{where}: the pin of {brief(name)} from {brief(source)} does not fit its hash: the file was "
                    "changed by hand, or by somebody; restore it, or look at the contract and pin it again"
                )
    return pins


class _Form(Struct):
    theodolite_pins: object


def _whole(one: Pinned) -> str:
    return fingerprint([msgspec.to_builtins(one.pins, order="sorted"), one.schemas])


def _documents(schemas: Mapping[str, Schema]) -> _Documents:
    """Return documents in which each reference leads to its schema; what leads into another one finds it there."""
    documents: dict[str, object] = {}
    for reference in sorted(schemas, key=len):
        uri, _, fragment = reference.partition("#")
        schema = schemas[reference]
        steps = tokens(pointer_of(fragment))
        if not steps:
            documents[uri] = {**schema} if is_object(schema) else schema  # what others are put into
            continue
        node: object = documents.setdefault(uri, {})
        for token in steps[:-1]:
            node = node.setdefault(token, {}) if is_object(node) else step(node, token)
        if is_object(node):
            node.setdefault(steps[-1], schema)
    return documents
