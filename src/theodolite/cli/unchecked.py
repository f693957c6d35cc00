"""The parts of contracts that no check takes: what a guard refuses a document for, told before it does."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from theodolite.core.contract import Contracts, Location
from theodolite.core.errors import ConfigError
from theodolite.detectors.payload.compiling import Compiler

__all__ = ("Unchecked", "unchecked")

_SUBJECT = "it"


class Unchecked(Struct, frozen=True, kw_only=True):
    """A part of a contract that cannot be checked, where it stands in the document, and why.

    Without a contract it is the document as a whole.
    """

    contract: str = ""
    location: Location | None = None
    pointer: str = ""
    why: str


def unchecked(contracts: Contracts, advance: Callable[[int, int], None] | None = None) -> tuple[Unchecked, ...]:
    """Return the parts of contracts, and results, that cannot be compiled; nothing where a guard takes the document.

    Results too are compiled each by itself, which a guard does when it first has one. `advance` is told how many are
    done, and of how many.
    """
    try:
        compiler = Compiler(contracts.documents)
    except ConfigError as error:
        return (Unchecked(why=str(error)),)
    every = [
        (contract.name, part)
        for contract in contracts.contracts.values()
        for part in (*contract.parts, *contract.results)
    ]
    found: list[Unchecked] = []
    for done, (name, part) in enumerate(every):
        if advance is not None:
            advance(done, len(every))
        try:
            compiler.compile(part.schema, where=part.pointer, what=_SUBJECT)
        except ConfigError as error:
            why = str(error).removeprefix(f"{_SUBJECT}: ")
            found.append(Unchecked(contract=name, location=part.location, pointer=part.pointer, why=why))
    return tuple(found)
