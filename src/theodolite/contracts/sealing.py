"""The hash of one contract, by what was agreed and not by how it was filed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec
from msgspec import structs

from theodolite.contracts.digest import canonical, fingerprint
from theodolite.contracts.document import is_list, is_object
from theodolite.contracts.nodes import Node
from theodolite.core.contract import Contract, Part, Schema

__all__ = ("reached", "seal")

# A reference as the canonical form writes it: inside of text the quotes would have a backslash before them.
_REFERENCE = re.compile(rb'"\$ref":("(?:[^"\\]|\\.)*")')


def seal(contract: Contract, documents: Mapping[str, object]) -> str:
    """Return the hash of what a contract says: name, description, annotations, schemas and all that they lead to.

    References count by what they lead to, in the order in which they are met. Linear in what the contract leads to.

    >>> from theodolite.core.contract import Location, Origin
    >>> def tool(reference):
    ...     part = Part(location=Location.ARGUMENTS, schema={"$ref": reference})
    ...     return Contract(name="t", origin=Origin.MCP, parts=(part,))
    >>> one = seal(tool("urn:a#/x"), {"urn:a": {"x": {"type": "object"}}})
    >>> one == seal(tool("urn:b#/y"), {"urn:b": {"y": {"type": "object"}}})
    True
    """
    met = reached([contract], documents)
    names = {reference: f"#{place}" for place, reference in enumerate(met)}
    agreed = {key: getattr(contract, key) for key in ("name", "title", "description", "method", "path", "annotations")}
    return fingerprint(
        {
            **agreed,
            "parts": [_filed(part, names) for part in contract.parts],
            "results": [_filed(part, names) for part in contract.results],
            "schemas": [_renamed(schema, names) for schema in met.values()],
        }
    )


def reached(contracts: Iterable[Contract], documents: Mapping[str, object]) -> dict[str, Schema]:
    """Return the schemas that contracts lead to, by reference, in the order in which they are met."""
    met: dict[str, Schema] = {}
    parts = [part for contract in contracts for part in (*contract.parts, *contract.results)]
    waiting: list[object] = [part.schema for part in reversed(parts)]
    while waiting:
        here = waiting.pop()
        if is_object(here):
            reference = here.get("$ref")
            if isinstance(reference, str) and reference not in met:
                target = Node(here, documents).followed()
                if target is not None:
                    met[reference] = target.schema
                    waiting.append(target.schema)
            waiting += [here[key] for key in sorted(here, reverse=True)]
        elif is_list(here):
            waiting += here[::-1]
    return met


def _filed(part: Part, names: Mapping[str, str]) -> dict[str, object]:
    """Return a part as it counts: without the place where it stands in its document."""
    return {**structs.asdict(part), "schema": _renamed(part.schema, names), "pointer": ""}


def _renamed(value: object, names: Mapping[str, str]) -> str:
    """Return the canonical form of a schema with its references by what they lead to."""

    def name(found: re.Match[bytes]) -> bytes:
        reference = msgspec.json.decode(found[1], type=str)
        return b'"$ref":' + msgspec.json.encode(names.get(reference, reference))

    return _REFERENCE.sub(name, canonical([value])).decode()
