"""Whether two schemas say the same in the same words."""

from __future__ import annotations

from theodolite.contracts.dialects import EVERY_KEYWORD, Holds
from theodolite.contracts.digest import canonical
from theodolite.contracts.document import is_list, is_object
from theodolite.contracts.nodes import Node

__all__ = ("LEVELS", "alike", "same")

LEVELS = 80
"""How deep schemas are compared (our choice): no contract that we have read is deeper."""

# A keyword that has one schema below it.
_ONE = "not"


def same(one: Node, other: Node, keyword: str) -> bool:
    """Whether both have a keyword and mean the same by it.

    >>> same(Node({"contains": {"const": 1}}), Node({"contains": {"const": 1.0}}), "contains")
    True
    """
    if keyword not in one.keywords or keyword not in other.keywords:
        return False
    return _values((one, other), keyword, (one.keywords[keyword], other.keywords[keyword]), set(), 0)


def alike(one: Node, other: Node, seen: set[tuple[int, int]] | None = None, depth: int = 0) -> bool:
    """Whether two schemas say the same, in the same words, with references followed, at most 80 levels deep."""
    seen = set() if seen is None else seen
    key = (id(one.schema), id(other.schema))
    if key in seen:
        return True
    if depth > LEVELS:
        return False
    seen.add(key)
    mine, theirs = one.followed(), other.followed()
    if (mine is None) != (theirs is None) or (mine and theirs and not alike(mine, theirs, seen, depth + 1)):
        return False
    if isinstance(one.schema, bool) or isinstance(other.schema, bool):
        return one.schema is other.schema
    ignored = {"$ref"} if mine else set[str]()
    names = one.schema.keys() - ignored
    return names == other.schema.keys() - ignored and all(
        _values((one, other), name, (one.schema[name], other.schema[name]), seen, depth) for name in names
    )


def _values(
    both: tuple[Node, Node], keyword: str, values: tuple[object, object], seen: set[tuple[int, int]], depth: int
) -> bool:
    """Whether a keyword means the same: what is no schema counts as it is written."""
    mine, theirs = values
    if keyword not in EVERY_KEYWORD:
        return canonical([mine]) == canonical([theirs])
    one, other = both
    if is_object(mine) and is_object(theirs):
        if EVERY_KEYWORD[keyword] not in {Holds.MAP, Holds.MIXED}:
            return alike(one.child(mine), other.child(theirs), seen, depth + 1)
        return mine.keys() == theirs.keys() and all(
            _values(both, _ONE, (mine[name], theirs[name]), seen, depth + 1) for name in mine
        )
    if is_list(mine) and is_list(theirs):
        return len(mine) == len(theirs) and all(
            _values(both, _ONE, pair, seen, depth + 1) for pair in zip(mine, theirs, strict=True)
        )
    return canonical([mine]) == canonical([theirs])
