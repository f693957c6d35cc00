"""Whether all that one schema accepts is accepted by another one; where that cannot be shown, why.

Sound, not complete: with nothing missed every value that the left accepts is accepted by the right, except that names
which the right declares and the left leaves open are told, not refused (`Why.DECLARED`). Where nothing can be shown,
such as for two patterns, it is missed. Recursion through references is taken by coinduction: while a pair is being
compared it counts as shown, since the values below it are smaller.

Source: the rules follow those of A. Habib, A. Shinnar, M. Hirzel and M. Pradel, Finding data compatibility bugs with
JSON subschema checking, ISSTA 2021, without its normal form, which can grow exponentially.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import islice

from msgspec import Struct

from theodolite.contracts.digest import canonical
from theodolite.contracts.document import child, is_list
from theodolite.contracts.likeness import LEVELS, alike, same
from theodolite.contracts.nodes import EVERY_TYPE, Node, expand, named, types_of
from theodolite.contracts.nodes import type_of as kind_of
from theodolite.contracts.plain import NOT_COMPARED, WHOLE_NUMBER
from theodolite.contracts.rules import RULES
from theodolite.contracts.surface import speaking
from theodolite.contracts.wording import changed, shown

__all__ = ("Inclusion", "Missed", "Why")

# Pairs of places that are compared (our choice): a document of 13 MB has some 300,000 places.
STEPS = 2_000_000
# How often one pair is compared again, where what was found rests on pairs that are not shown yet (our choice): a
# schema that leads back to itself in many ways would double the work with each level.
_AGAIN = 32
# Places of one pair that are told of (our choice): schemas that lead to each other have more ways than anybody reads.
_KEPT = 500
# Schemas of one place on the left times those on the right (our choice): each is compared with each.
_TOGETHER = 40_000
# What is compared as it is written, because no rule says which of two is narrower.
_AS_WRITTEN = ("dependencies", "discriminator", "readOnly", WHOLE_NUMBER)
_WHOLE = ("unevaluatedProperties", "unevaluatedItems")
_OBJECT = frozenset({"object"})
# One schema for each type, to split a union of types by.
_TYPED = {kind: Node({"type": "number" if kind == "fraction" else kind}) for kind in sorted(EVERY_TYPE)}
_Nodes = tuple[Node, ...]


_GONE = "an alternative is gone, or accepts less"


class Why(StrEnum):
    """Why a value that the left accepts may be refused by the right."""

    NARROWER = "narrower"
    DECLARED = "declared"


class Missed(Struct, frozen=True):
    """A place where the right may refuse what the left accepts: JSON Pointer into the value, `*` for any name or item.

    `keyword` is what the right asks there, `what` says how both differ.
    """

    pointer: str
    keyword: str
    what: str
    why: Why = Why.NARROWER

    def below(self, token: str) -> Missed:
        """Return the same, seen from one level higher."""
        return Missed(f"{token}{self.pointer}", self.keyword, self.what, self.why)


_Found = tuple[Missed, ...]
_Key = tuple[frozenset[int], frozenset[int]]


class _Resting(Struct, gc=False):
    """What was found of a pair, which is true if the pair of that level is, or of a level in between.

    It counts while all of them are under way: when one of them fails, all that was found since it began is dropped.
    """

    found: _Found
    left: _Nodes
    right: _Nodes
    level: int


class Inclusion:
    """Compares schemas and remembers what it has compared; made once for two sets of documents.

    The work is bounded: beyond two million pairs, 80 levels, 32 times the same pair or 40,000 pairs at one place, all
    that is left is missed. Of one pair 500 places are told of. Cost of a pair: linear in its keywords, quadratic in
    branches of a union.

    >>> narrow, wide = Node({"type": "integer"}), Node({"type": "number", "minimum": 0})
    >>> [(missed.keyword, missed.what) for missed in Inclusion().missed(narrow, wide)]
    [('minimum', 'none -> 0')]
    """

    def __init__(self, steps: int = STEPS) -> None:
        self._steps = steps
        self._known: dict[_Key, tuple[_Found, _Nodes, _Nodes]] = {}
        self._under_way: dict[_Key, int] = {}
        self._resting: dict[_Key, _Resting] = {}
        self._assumed = LEVELS
        self._tried: dict[_Key, int] = {}

    def missed(self, left: Node, right: Node) -> tuple[Missed, ...]:
        """Return where the right may refuse what the left accepts; nothing where it refuses none of it."""
        return self._within(expand(left), expand(right))

    def _within(self, left: _Nodes, right: _Nodes) -> _Found:
        left, mine = _saying(left)
        right = _saying([node for node in right if node.schema is not True and id(node.schema) not in mine])[0]
        if not right or not types_of(left):
            return ()
        key = (mine, frozenset([id(node.schema) for node in right]))
        known = self._known.get(key)
        if known is not None:
            return known[0]
        if (level := self._under_way.get(key)) is not None:
            self._assumed = min(self._assumed, level)
            return ()
        resting = self._resting.get(key)
        if resting is not None:
            self._assumed = min(self._assumed, resting.level)
            return resting.found
        self._steps -= 1
        depth = len(self._under_way)
        tried = self._tried[key] = self._tried.get(key, 0) + 1
        if self._steps < 0 or depth >= LEVELS or tried > _AGAIN or len(left) * len(right) > _TOGETHER:
            self._assumed = 0  # not to be remembered: elsewhere there may be room
            return (Missed("", "", "too large or too deep to compare"),)
        return self._compared(key, left, right, depth)

    def _compared(self, key: _Key, left: _Nodes, right: _Nodes, depth: int) -> _Found:
        outer, self._assumed = self._assumed, LEVELS
        self._under_way[key] = depth
        before = len(self._resting)
        found = _few(dict.fromkeys(self._all(left, right)))
        del self._under_way[key]
        since = list(islice(reversed(self._resting), len(self._resting) - before))
        if not _shown(found):
            # What was shown in between may rest on this pair.
            for one in since:
                del self._resting[one]
            self._known[key] = (found, left, right)  # with the schemas, whose ids these are
        elif self._assumed >= depth:
            for one in since:
                rested = self._resting.pop(one)
                self._known[one] = (rested.found, rested.left, rested.right)
            self._known[key] = (found, left, right)
        else:
            for one in since:
                self._resting[one].level = min(self._resting[one].level, self._assumed)
            self._resting[key] = _Resting(found, left, right, self._assumed)
        self._assumed = min(outer, self._assumed if self._assumed < depth else LEVELS)
        return found

    def _all(self, left: _Nodes, right: _Nodes) -> Iterator[Missed]:
        types = types_of(left)
        if any(node.schema is False for node in right):
            yield Missed("", "", "nothing is accepted any more")
            return
        yield from _typed(left, right, types)
        for node in right:
            for rule in RULES:
                if rule.types & types:
                    yield from [Missed(*one) for one in rule.broken(left, node, types)]
            yield from self._written(left, node)
            yield from self._logical(left, node)
        if "object" in types:
            yield from self._names(left, right)
        if "array" in types:
            yield from self._items(left, right)

    # -- what is compared as it is written --

    def _written(self, left: _Nodes, node: Node) -> Iterator[Missed]:
        for keyword in _AS_WRITTEN:
            if keyword in node.keywords and not any(same(one, node, keyword) for one in left):
                yield Missed("", keyword, "not as it was")
        if NOT_COMPARED in node.keywords and not any(same(one, node, NOT_COMPARED) for one in left):
            words = " and ".join(sorted(named(node.keywords[NOT_COMPARED])))
            yield Missed("", words, "not compared: what it means is not known")
        if "contains" in node.keywords and not any(_contains(one, node) for one in left):
            yield Missed("", "contains", "not as it was, or not as often")
        lost = node.keywords.get("$ref") if node.followed() is None else None
        if lost is not None and not any(one.keywords.get("$ref") == lost for one in left):
            yield Missed("", "$ref", "leads nowhere that is known")
        for keyword in _WHOLE:
            if keyword in node.keywords and not any(alike(one, node) for one in left):
                yield Missed("", keyword, "not as it was, or what it counts is not")
        if "if" in node.keywords:
            yield from self._conditional(left, node)

    def _conditional(self, left: _Nodes, node: Node) -> Iterator[Missed]:
        for one in left:
            if same(one, node, "if") and not any(
                self._within(expand(one.child(one.keywords.get(arm))), expand(node.child(node.keywords.get(arm))))
                for arm in ("then", "else")
            ):
                return
        if "then" in node.keywords or "else" in node.keywords:
            yield Missed("", "if", "a condition is new or not as it was")

    # -- unions --

    def _logical(self, left: _Nodes, node: Node) -> Iterator[Missed]:
        if is_list(branches := node.keywords.get("anyOf")):
            yield from self._any(left, [node.child(branch) for branch in branches], "anyOf")
        if is_list(branches := node.keywords.get("oneOf")) and not self._alternatives(left, node):
            several = [node.child(branch) for branch in branches]
            if _apart(several):
                yield from self._any(left, several, "oneOf")
            else:
                yield Missed("", "oneOf", "not as it was, and its alternatives may overlap")
        if "not" in node.keywords:
            wanted = expand(node.child(node.keywords["not"]))
            refused = [one.child(one.keywords["not"]) for one in left if "not" in one.keywords]
            if all(self._within(wanted, expand(one)) for one in refused):
                yield Missed("", "not", "refuses what was not refused")
        for name, schema in named(node.keywords.get("dependentSchemas")).items():
            wanted = expand(node.child(schema))
            given = [one for one in left if name in named(one.keywords.get("dependentSchemas"))]
            if all(
                self._within(expand(one.child(named(one.keywords["dependentSchemas"])[name])), wanted) for one in given
            ):
                yield Missed(child("", name), "dependentSchemas", "asks more of what stands beside it")

    def _alternatives(self, left: _Nodes, node: Node) -> bool:
        """Whether the left has the same exclusive alternatives, one by one."""
        wanted = node.keywords["oneOf"]
        for one in left:
            mine = one.keywords.get("oneOf")
            if is_list(mine) and is_list(wanted) and len(mine) == len(wanted):
                pairs = [(expand(one.child(a)), expand(node.child(b))) for a, b in zip(mine, wanted, strict=True)]
                if not any(self._within(a, b) or self._within(b, a) for a, b in pairs):
                    return True
        return False

    def _any(self, left: _Nodes, branches: Sequence[Node], keyword: str) -> _Found:
        told = [self._somewhere(left, branches)]
        for several in _parts(left) if told[0] else ():
            told.append(self._each(left, several, branches, keyword))
            if not told[-1]:
                return ()
        # A way that takes nothing for granted is best, and then one that names what was not declared.
        shown = next((found for found in reversed(told) if _shown(found)), None)
        if shown is not None:
            return shown
        return told[-1] if len(told) > 1 or len(branches) == 1 else (Missed("", keyword, _GONE),)

    def _each(self, left: _Nodes, parts: Sequence[_Nodes], branches: Sequence[Node], keyword: str) -> _Found:
        found: list[Missed] = []
        for place, part in enumerate(parts):
            likely = [*branches[place : place + 1], *branches[:place], *branches[place + 1 :]]
            told = self._somewhere((*left, *part), likely)
            if not _shown(told) and len(parts) != len(branches):
                told = (Missed("", keyword, _GONE),)
            found += told
        return tuple(found)

    def _somewhere(self, left: _Nodes, branches: Sequence[Node]) -> _Found:
        """Return what is missed in a branch that takes all of the left, or else in the first branch."""
        told: list[_Found] = []
        for branch in branches:
            told.append(self._within(left, expand(branch)))
            if not told[-1]:
                return ()
        if not told:
            return (Missed("", "anyOf", "nothing is accepted any more"),)
        return next((found for found in told if _shown(found)), told[0])

    # -- objects and arrays --

    def _names(self, left: _Nodes, right: _Nodes) -> Iterator[Missed]:
        declared = {name for one in speaking(left) for name in named(one.keywords.get("properties"))}
        open_to_any = not any(_closed(one) for one in left)
        for node in right:
            if "propertyNames" in node.keywords:
                wanted = node.child(node.keywords["propertyNames"])
                names = [one.child(one.keywords.get("propertyNames")) for one in left]
                told = self._within((_TYPED["string"], *_together(names)), expand(wanted))
                yield from [Missed("/*", "propertyNames", missed.what) for missed in told]
            if "patternProperties" in node.keywords:
                yield from self._patterned(left, node)
                continue
            properties, rest = named(node.keywords.get("properties")), _rest(node)
            for name in sorted({*properties, *(declared if rest is not None else ())}):
                target = node.child(properties[name]) if name in properties else rest
                if target is None or target.schema is True:
                    continue
                if name in declared or not open_to_any:
                    yield from self._below(name, [_at(one, name) for one in left], target)
                else:
                    yield Missed(child("", name), "properties", "declared now", Why.DECLARED)
            if rest is not None:
                yield from self._below("*", [_rest(one) if _sole(one) else None for one in left], rest)

    def _patterned(self, left: _Nodes, node: Node) -> Iterator[Missed]:
        """Compare names that patterns choose with those of a schema that has the same names and patterns."""
        patterns, properties = named(node.keywords["patternProperties"]), named(node.keywords.get("properties"))
        for one in left:
            mine = named(one.keywords.get("patternProperties"))
            if mine.keys() == patterns.keys() and named(one.keywords.get("properties")).keys() == properties.keys():
                for pattern in sorted(patterns):
                    yield from self._below("*", [one.child(mine[pattern])], node.child(patterns[pattern]))
                for name in sorted(properties):
                    yield from self._below(name, [_at(one, name)], node.child(properties[name]))
                if (rest := _rest(node)) is not None:
                    yield from self._below("*", [_rest(one)], rest)
                return
        yield Missed("", "patternProperties", "other names or patterns than before")

    def _items(self, left: _Nodes, right: _Nodes) -> Iterator[Missed]:
        for node in right:
            length = max(len(_prefix(one)) for one in (*left, node)) if _ruled(node) else 0
            for place in range(length):
                yield from self._below(str(place), [_item(one, place) for one in left], _item(node, place))
            if "items" in node.keywords:
                yield from self._below("*", [one.child(one.keywords.get("items")) for one in left], _item(node, None))

    def _below(self, name: str, left: Iterable[Node | None], right: Node) -> list[Missed]:
        token = child("", name)
        return [missed.below(token) for missed in self._within(_together(left), expand(right))]


def _typed(left: _Nodes, right: _Nodes, types: frozenset[str]) -> Iterator[Missed]:
    for node in right:
        if "type" in node.keywords:
            allowed = types_of([Node({"type": node.keywords["type"]})])
            if not types <= allowed:
                yield Missed("", "type", f"{_words(types)} -> {_words(allowed)}")
    finite = _values(left)
    for node in right:
        wanted = _values([node])
        if wanted is not None and (finite is None or not finite.keys() <= wanted.keys()):
            values = list(wanted.values())
            what = f"any -> {shown(values)}" if finite is None else changed(list(finite.values()), values)
            yield Missed("", "const" if "const" in node.keywords else "enum", what)


def _values(nodes: Iterable[Node]) -> dict[bytes, object] | None:
    """Return the values that are left, by their canonical form, where they are listed at all."""
    values: dict[bytes, object] | None = None
    for node in nodes:
        keywords = node.keywords
        lists: list[Sequence[object]] = [[keywords["const"]]] if "const" in keywords else []
        if is_list(listed := keywords.get("enum")):
            lists.append(listed)
        for one in lists:
            these = {canonical([value]): value for value in one}
            values = these if values is None else {key: value for key, value in values.items() if key in these}
    types = types_of(nodes) if values is None else frozenset[str]()
    if values is None and types <= {"null", "boolean"}:
        every = [value for value in (None, False, True) if kind_of(value) in types]
        return {canonical([value]): value for value in every}
    return values


def _words(types: frozenset[str]) -> str:
    if {"integer", "fraction"} <= types:
        types = types - {"integer"}
    names = ["number" if kind == "fraction" else kind for kind in types]
    return "any" if types >= EVERY_TYPE - {"integer"} else " or ".join(sorted(names)) or "nothing"


def _saying(nodes: Iterable[Node]) -> tuple[_Nodes, frozenset[int]]:
    """Return nodes without those that are references and nothing else, whose targets are among them; and the ids."""
    told = {id(node.schema): node for node in nodes if [*node.keywords] != ["$ref"] or node.followed() is None}
    return tuple(told.values()), frozenset(told)


def _few(found: Iterable[Missed]) -> _Found:
    """Return at most as many as are kept of one pair, those that refuse first: none of them is taken for shown."""
    every = tuple(found)
    return every if len(every) <= _KEPT else tuple(sorted(every, key=lambda missed: missed.why is Why.DECLARED)[:_KEPT])


def _shown(found: _Found) -> bool:
    return all(missed.why is Why.DECLARED for missed in found)


def _parts(left: _Nodes) -> Iterator[list[_Nodes]]:
    """Yield ways to take the left apart: by the branches of each union, and by types."""
    for one in left:
        for keyword in ("anyOf", "oneOf"):
            if is_list(branches := one.keywords.get(keyword)):
                yield [expand(one.child(branch)) for branch in branches]
    types = types_of(left)
    if 1 < len(types) < len(EVERY_TYPE):
        yield [(_TYPED[kind],) for kind in sorted(types) if kind != "integer" or "fraction" not in types]


def _apart(branches: Sequence[Node]) -> bool:
    """Whether no value can satisfy two of them: by their types, or by a name that all must have with other values."""
    opened = [expand(branch) for branch in branches]
    return all(
        not types_of(one) & types_of(other) or _told_apart(one, other)
        for place, one in enumerate(opened)
        for other in opened[:place]
    )


def _told_apart(one: _Nodes, other: _Nodes) -> bool:
    if not (types_of(one) == types_of(other) == _OBJECT):
        return False
    for name in _required(one) & _required(other):
        mine = _values(_together([_at(node, name) for node in one]))
        theirs = _values(_together([_at(node, name) for node in other]))
        if mine is not None and theirs is not None and not mine.keys() & theirs.keys():
            return True
    return False


def _required(nodes: _Nodes) -> set[object]:
    found: set[object] = set()
    for node in nodes:
        if is_list(names := node.keywords.get("required")):
            found |= {name for name in names if isinstance(name, str)}
    return found


def _at(node: Node, name: object) -> Node | None:
    """Return what a schema asks of the value of a name, never too much; None where it asks nothing."""
    properties = named(node.keywords.get("properties"))
    if isinstance(name, str) and name in properties:
        return node.child(properties[name])
    return _rest(node) if _sole(node) else None


def _rest(node: Node) -> Node | None:
    """Return what is asked of names that are not declared; None where that is nothing."""
    rest = node.child(node.keywords.get("additionalProperties"))
    return None if rest.schema is True or rest.schema == {} else rest


def _sole(node: Node) -> bool:
    return "patternProperties" not in node.keywords


def _closed(node: Node) -> bool:
    return _rest(node) is not None or not _sole(node)


def _prefix(node: Node) -> Sequence[object]:
    return prefix if is_list(prefix := node.keywords.get("prefixItems")) else ()


def _ruled(node: Node) -> bool:
    return "items" in node.keywords or "prefixItems" in node.keywords


def _item(node: Node, place: int | None) -> Node:
    prefix = _prefix(node)
    return node.child(prefix[place] if place is not None and place < len(prefix) else node.keywords.get("items"))


def _together(nodes: Iterable[Node | None]) -> _Nodes:
    found = [one for node in nodes if node is not None for one in expand(node)]
    return tuple({id(node.schema): node for node in found}.values()) or (Node(schema=True),)


def _contains(one: Node, other: Node) -> bool:
    """Whether a schema asks for as many of the same items as another one, or more."""
    if not same(one, other, "contains"):
        return False
    least = canonical([one.keywords.get("minContains", 1)]) == canonical([other.keywords.get("minContains", 1)])
    return least and ("maxContains" not in other.keywords or same(one, other, "maxContains"))
