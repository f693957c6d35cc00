"""The coefficients of a detector, which may be nested in any way, as one list of names and values."""

from __future__ import annotations

from collections.abc import Iterable

from theodolite.core.arguments import is_mapping, is_sequence, pointer
from theodolite.reports.calibration.figures import amount, number

__all__ = ("atom", "leaves", "places")

# Values of a list that are told in its line.
_TOLD = 8


def places(value: object) -> dict[str, object]:
    """Return each value without parts by its JSON Pointer (RFC 6901), in order; an empty list or table is one too.

    However deep they are nested. Linear in the values.

    >>> places({"weights": {"a": 1, "b": [2, 3]}})
    {'/weights/a': 1, '/weights/b/0': 2, '/weights/b/1': 3}
    """
    found: dict[str, object] = {}
    waiting: list[tuple[str, object]] = [("", value)]
    while waiting:
        path, held = waiting.pop()
        below: Iterable[tuple[str | int, object]] = ()
        if is_mapping(held):
            below = [(str(key), one) for key, one in held.items()]
        elif is_sequence(held):
            below = list(enumerate(held))
        waiting += [(pointer(path, key), one) for key, one in reversed(list(below))]
        if not below:
            found[path] = held
    return found


def leaves(value: object) -> list[tuple[str, str]]:
    """Return the values for people: names with a slash between the levels, and a list of values in one line.

    They are not inert yet.

    >>> leaves({"weights": {"a": 1, "b": [2.5, True, None]}})
    [('weights/a', '1'), ('weights/b', '2.5, true, null')]
    """
    found: list[tuple[str, str]] = []
    waiting: list[tuple[str, object]] = [("", value)]
    while waiting:
        path, held = waiting.pop()
        if is_mapping(held) and held:
            waiting += [(pointer(path, str(key)), one) for key, one in reversed(list(held.items()))]
        elif is_sequence(held) and any(is_mapping(one) or is_sequence(one) for one in held):
            waiting += [(pointer(path, place), one) for place, one in reversed(list(enumerate(held)))]
        elif is_sequence(held):
            more = f" and {len(held) - _TOLD:,} more" if len(held) > _TOLD else ""
            found.append((path[1:], (", ".join([atom(one) for one in held[:_TOLD]]) or "none") + more))
        elif path:
            found.append((path[1:], atom(held)))
    return found


def atom(value: object) -> str:
    """Return a value without parts as it is told; a text is not inert yet.

    >>> atom(2), atom(0.5), atom(True), atom(None), atom("a"), atom({})
    ('2', '0.5', 'true', 'null', 'a', 'none')
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return amount(value)
    if isinstance(value, float):
        return number(value)
    return value if isinstance(value, str) else "none"
