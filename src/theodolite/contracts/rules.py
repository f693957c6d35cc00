"""Rules for the keywords of a schema that need no look into another one: which old limits imply a new one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

from msgspec import UNSET

from theodolite.contracts.document import child, is_list
from theodolite.contracts.nodes import Node, named
from theodolite.contracts.wording import changed, shown

__all__ = ("RULES", "Rule")

_NUMBERS = frozenset({"integer", "fraction"})
_STRINGS, _ARRAYS, _OBJECTS = frozenset({"string"}), frozenset({"array"}), frozenset({"object"})
# Formats all of whose values another format has too: OpenAPI 3.1, section 4.4 (data types).
_FORMATS = frozenset({("int32", "int64"), ("float", "double"), ("int32", "double")})
_Broken = Iterator[tuple[str, str, str]]


class Rule(NamedTuple):
    """What a group of keywords asks: of which types, and where that goes beyond what was asked before."""

    types: frozenset[str]
    broken: Callable[[Sequence[Node], Node, frozenset[str]], _Broken]


def _limits(left: Sequence[Node], node: Node, types: frozenset[str]) -> _Broken:
    """Compare bounds and multiples of numbers."""
    asked = node.keywords
    for keyword, opposite, sign in (("minimum", "exclusiveMinimum", 1), ("maximum", "exclusiveMaximum", -1)):
        shut = max([sign * bound for bound in _numbers(left, keyword)], default=-math.inf)
        ajar = max([sign * bound for bound in _numbers(left, opposite)], default=-math.inf)
        if (bound := _number(asked.get(keyword))) is not None and max(shut, ajar) < sign * bound:
            yield _changed(left, node, keyword)
        if (bound := _number(asked.get(opposite))) is not None and not (ajar >= sign * bound or shut > sign * bound):
            yield _changed(left, node, opposite)
    step = _number(asked.get("multipleOf"))
    if step is not None and not (step == 1 and "fraction" not in types & _NUMBERS):
        known = [Fraction(str(one)) / Fraction(str(step)) for one in _numbers(left, "multipleOf") if step]
        if not any(share.denominator == 1 for share in known):
            yield _changed(left, node, "multipleOf")


def _least(*keywords: str) -> Callable[[Sequence[Node], Node, frozenset[str]], _Broken]:
    """Return the rule of two keywords, for the least and the most of a count."""
    low, high = keywords

    def broken(left: Sequence[Node], node: Node, types: frozenset[str]) -> _Broken:
        del types
        least, most = _number(node.keywords.get(low)), _number(node.keywords.get(high))
        if least is not None and max(_numbers(left, low), default=0) < least:
            yield _changed(left, node, low)
        if most is not None and min(_numbers(left, high), default=math.inf) > most:
            yield _changed(left, node, high)

    return broken


def _texts(left: Sequence[Node], node: Node, types: frozenset[str]) -> _Broken:
    """Compare what nobody can order: patterns, formats, and what a text is an encoding of."""
    for keyword in ("pattern", "format", "contentEncoding", "contentMediaType", "contentSchema"):
        if keyword not in node.keywords or (keyword == "pattern" and "string" not in types):
            continue
        mine, wanted = [one.keywords[keyword] for one in left if keyword in one.keywords], node.keywords[keyword]
        widens = isinstance(wanted, str) and any((one, wanted) in _FORMATS for one in mine if isinstance(one, str))
        if wanted not in mine and not widens:
            yield _changed(left, node, keyword)


def _unique(left: Sequence[Node], node: Node, types: frozenset[str]) -> _Broken:
    del types
    if node.keywords.get("uniqueItems") is True and not any(one.keywords.get("uniqueItems") is True for one in left):
        yield _changed(left, node, "uniqueItems")


def _required(left: Sequence[Node], node: Node, types: frozenset[str]) -> _Broken:
    del types
    known = {name for one in left for name in _names(one.keywords.get("required"))}
    for name in _names(node.keywords.get("required")):
        if name not in known:
            yield child("", name), "required", "required now"
    for name, names in named(node.keywords.get("dependentRequired")).items():
        beside = {one for other in left for one in _names(named(other.keywords.get("dependentRequired")).get(name))}
        if missing := [one for one in _names(names) if one not in beside | known]:
            yield child("", name), "dependentRequired", f"needs {shown(missing)} beside it now"


RULES: Sequence[Rule] = (
    Rule(_NUMBERS, _limits),
    Rule(_STRINGS, _least("minLength", "maxLength")),
    Rule(_STRINGS | _NUMBERS, _texts),
    Rule(_ARRAYS, _least("minItems", "maxItems")),
    Rule(_ARRAYS, _unique),
    Rule(_OBJECTS, _least("minProperties", "maxProperties")),
    Rule(_OBJECTS, _required),
)
"""Every rule that compares keywords of one place. Each is asked with all that the left says there."""


def _changed(left: Sequence[Node], node: Node, keyword: str) -> tuple[str, str, str]:
    before = next((one.keywords[keyword] for one in left if keyword in one.keywords), UNSET)
    return "", keyword, changed(before, node.keywords[keyword])


def _numbers(nodes: Iterable[Node], keyword: str) -> list[float]:
    found = [_number(node.keywords.get(keyword)) for node in nodes]
    return [one for one in found if one is not None]


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _names(value: object) -> list[str]:
    return [name for name in value if isinstance(name, str)] if is_list(value) else []
