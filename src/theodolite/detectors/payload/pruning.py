"""A part of a large value that the engine can list the errors of in time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from jsonschema_rs import ValidationError, ValidationErrorKind
from msgspec import Struct

from theodolite.core.arguments import is_mapping, is_sequence
from theodolite.detectors.payload.kinds import Path

__all__ = ("WIDTH", "Pruned", "prune", "windows")

# Entries of one array or object, and values in all, that are looked at together. The engine needs some 15 us for each
# error that it lists, and lists all: 5,000 errors take 75 ms.
WIDTH = 500
_ROOM = 5_000


class Pruned(Struct, frozen=True, kw_only=True):
    """A copy with some entries of its long arrays and objects, and where these began in the original."""

    value: object
    cuts: Mapping[Path, int]

    def original(self, path: Path) -> Path:
        """Return the path in the original of a path in the copy."""
        found: list[str | int] = []
        for place, key in enumerate(path):
            found.append(key + self.cuts.get(path[:place], 0) if isinstance(key, int) else key)
        return tuple(found)

    def caused(self, error: ValidationError, above: Path = ()) -> bool:
        """Whether an error may come from the cut alone: what is asked of a container as a whole.

        `above` is where the copy stands in the value that the error is of.
        """
        path = tuple(error.instance_path)[len(above) :]
        whole = isinstance(error.kind, _WHOLE) and path in self.cuts
        return whole or (isinstance(error.kind, _UNIONS) and any(cut[: len(path)] == path for cut in self.cuts))


_WHOLE = (
    ValidationErrorKind.Required,
    ValidationErrorKind.MinItems,
    ValidationErrorKind.MinProperties,
    ValidationErrorKind.Contains,
    ValidationErrorKind.Enum,
    ValidationErrorKind.Constant,
    ValidationErrorKind.Not,
)
_UNIONS = (ValidationErrorKind.OneOfMultipleValid,)


def _longest(value: object) -> int:
    """Return the length of the longest array or object in a value. Linear."""
    most, todo = 0, [value]
    while todo:
        one = todo.pop()
        below = one.values() if is_mapping(one) else one if is_sequence(one) else ()
        most = max(most, len(below))
        todo.extend(item for item in below if is_mapping(item) or is_sequence(item))
    return most


def prune(value: object, window: int = 0, most: int = _ROOM) -> Pruned:
    """Return a copy with at most 500 entries of each container, from the 500 * `window`th on, and some `most` in all.

    Containers that are no longer than that are whole, unless there is no room for them.
    """
    cuts: dict[Path, int] = {}
    room = [most]

    def copy(one: object, path: Path) -> object:
        room[0] -= 1
        if not (is_mapping(one) or is_sequence(one)):
            return one
        size = len(one)
        width = min(WIDTH, max(room[0], 1))
        start = WIDTH * window if size > WIDTH and WIDTH * window < size else 0
        if size > width:
            cuts[path] = start
        if is_mapping(one):
            return {str(k): copy(v, (*path, str(k))) for k, v in islice(one.items(), start, start + width)}
        return [copy(item, (*path, place)) for place, item in enumerate(islice(one, start, start + width))]

    return Pruned(value=copy(value, ()), cuts=cuts)


def windows(value: object) -> Iterator[Pruned]:
    """Yield copies that together show every entry of the longest containers."""
    for window in range(_longest(value) // WIDTH + 1):
        yield prune(value, window)
