"""What a contract does not forbid and yet does not know: fields that it names nowhere, read-only ones, odd formats.

Only 2 of 100 published bodies are closed to further fields, so that a field that a model made up is seldom refused. It
is told all the same, as an observation: apart from the check, since it takes a walk in Python.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

from jsonschema_rs import Draft202012Validator

from theodolite.contracts.nodes import Node
from theodolite.core.arguments import is_mapping, is_sequence, pointer
from theodolite.core.contract import Divergence, Kind, Location
from theodolite.detectors.payload.places import Places
from theodolite.detectors.payload.values import word

__all__ = ("Declarations",)

# Values that are walked over, and observations that are told: the rest of a longer call is not looked at.
_ROOM, _MOST = 5_000, 100
# OpenAPI's own formats of numbers (3.0.4, data types), which the engine does not know.
_BITS = {"int32": 31, "int64": 63}


# The way to a value, backwards: text is made of it only where there is something to tell.
_Trail = tuple["_Trail", str | int] | None
# Schemas, the value that they are of, and the way to it.
_Step = tuple[tuple[Node, ...], object, _Trail]


# A kind, the way to the value, what was due there, and the value.
_Seen = tuple[Kind, _Trail, str, object]


class Declarations:
    """Tells of what a contract does not declare; keeps what was worked out of each schema.

    Cost: about 2 us for each value, after some 50 us for each schema that is met for the first time.
    """

    def __init__(self, places: Places) -> None:
        self._places = places

    def observe(
        self, node: Node, value: object, location: Location = Location.ARGUMENTS, prefix: str = ""
    ) -> tuple[Divergence, ...]:
        """Return what of a value its schema does not declare: at most 100 observations, none of which denies.

        `undeclared_field`, where the schema names fields and this is none of them, nor of a pattern, nor described by
        `additionalProperties`: what any branch of any union names counts as declared. `read_only_sent`, of what OpenAPI
        3 says that it SHOULD NOT be sent, except in a result; where Swagger 2.0 says MUST NOT, the check denies it.
        `format_mismatch`, for the formats that the engine knows, int32 and int64.
        """
        found = islice(self._walk((node,), value, asks=location is not Location.RESULT), _MOST)
        return tuple([_observed(kind, location, _pointer(prefix, at), due, one) for kind, at, due, one in found])

    def _walk(self, nodes: tuple[Node, ...], value: object, *, asks: bool) -> Iterator[_Seen]:
        todo: list[_Step] = [(nodes, value, None)]
        room = _ROOM
        while todo and room:
            room -= 1
            here, one, trail = todo.pop()
            table = self._places.table(here)
            for name in table.formats:
                if not _formed(name, one):
                    yield Kind.FORMAT_MISMATCH, trail, f"format {name[:200]}", one
            if is_mapping(one):
                for key, item in one.items():
                    below = table.named(str(key))
                    if below is None:
                        yield Kind.UNDECLARED_FIELD, (trail, str(key)), "absent", item
                    elif below:
                        if asks and self._places.table(below).read_only:
                            yield Kind.READ_ONLY_SENT, (trail, str(key)), "absent", item
                        todo.append((below, item, (trail, str(key))))
            elif is_sequence(one):
                todo.extend(
                    (table.item(place), item, (trail, place))
                    for place, item in enumerate(one[:room])
                    if table.item(place)
                )


def _pointer(prefix: str, trail: _Trail) -> str:
    keys: list[str | int] = []
    while trail is not None:
        trail, key = trail
        keys.append(key)
    for key in reversed(keys):
        prefix = pointer(prefix, key)
    return prefix


@lru_cache(maxsize=64)
def _format(name: str) -> Draft202012Validator:
    return Draft202012Validator({"format": name}, offline=True, validate_formats=True)


def _formed(name: str, value: object) -> bool:
    """Whether a value has a format, as far as is known of it."""
    if isinstance(value, str):
        return _format(name).is_valid(value)
    if name in _BITS and isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return -(1 << _BITS[name]) <= value < 1 << _BITS[name]
    return True


def _observed(kind: Kind, location: Location, where: str, expected: str, value: object) -> Divergence:
    return Divergence(
        kind=kind, location=location, pointer=where, expected=expected, observed=word(value), denies=False
    )
