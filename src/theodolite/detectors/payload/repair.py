"""What would make a call fit its contract: steps that are shown to help, offered and never taken in silence.

A plan has only steps that follow from the contract: a name that it declares and the call lacks, a type that it asks
for, a default that it states. It is offered only if the arguments are accepted after it, and no step can be left out.
Nothing is guessed: "00713" stays where text is due, and becomes no number where one is, since no JSON number is written
so. What is accepted already has no plan.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import StrEnum
from itertools import islice
from types import MappingProxyType

import msgspec
from msgspec import UNSET, Struct

from theodolite.contracts.digest import canonical
from theodolite.contracts.direction import FORBIDS
from theodolite.contracts.document import child, is_list, is_object
from theodolite.contracts.document import tokens as steps_of
from theodolite.contracts.nodes import Node, expand, named, type_of, types_of
from theodolite.contracts.splitting import split
from theodolite.contracts.surface import speaking
from theodolite.core.contract import Contract
from theodolite.core.errors import EventError
from theodolite.detectors.payload.conversion import TEXT, TIMES, fitting, meant
from theodolite.detectors.payload.values import plain

__all__ = ("Op", "Plan", "Step", "apply", "distance", "mending", "plan")

# Says what is wrong with arguments, in any words.
_Faults = Callable[[object], AbstractSet[Hashable]]
# Steps of a plan, and places that are looked at (our choice): a call that needs more was meant for another contract.
STEPS, PLACES, LEVELS = 16, 2_000, 40
# Steps that are tried by themselves where there is no plan (our choice: a finding of each is what a model is told).
FEW = 8
# Two names are one name misspelt where at most a third of the longer one differs (our choice; see `distance`).
ALIKE = 1 / 3
# Longer names are not compared, nor more pairs of letters in all: it costs time, and is no slip.
NAME, LETTERS = 64, 300_000


class Op(StrEnum):
    """What a step does to one place of the arguments."""

    RENAME = "rename"
    UNWRAP = "unwrap"
    COERCE = "coerce"
    DROP = "drop"
    FILL = "fill"


class Step(Struct, frozen=True):
    """One change of the arguments at a place (RFC 6901, in the arguments as they are after the steps before it).

    `to` is the new name of a `rename`, the type that an `unwrap` or `coerce` leads to, the default of a `fill` as JSON,
    and empty for a `drop`. It is always the contract's own text.
    """

    op: Op
    pointer: str
    to: str = ""


class Plan(Struct, frozen=True):
    """Steps that make arguments acceptable, in the order in which they are taken."""

    steps: tuple[Step, ...]


def distance(one: str, other: str) -> float:
    """Return how far two names are apart: edits in the longer one, 0 for the same name and 1 for another.

    An edit puts in, takes away or replaces a character, or swaps two neighbors. Case, `_` and `-` do not count. Names
    of more than 64 characters are 1 apart. Cost: the product of both lengths.
    Source: F. Damerau, A technique for computer detection and correction of spelling errors, Communications of the ACM
    7, 1964; R. Lowrance and R. Wagner, An extension of the string-to-string correction problem, Journal of the ACM 22,
    1975, in the form in which no part is edited twice.

    >>> distance("user_id", "userId"), distance("emial", "email"), distance("name", "owner")
    (0.0, 0.2, 0.8)
    """
    if max(len(one), len(other)) > NAME:
        return float(one != other)
    mine, theirs = _folded(one), _folded(other)
    if mine == theirs:
        return 0.0
    before: list[int] = []
    here = list(range(len(theirs) + 1))
    for row, letter in enumerate(mine, 1):
        older, before, here = before, here, [row]
        for column, same in enumerate(theirs, 1):
            cost = min(before[column] + 1, here[-1] + 1, before[column - 1] + (letter != same))
            if row > 1 < column and letter == theirs[column - 2] and same == mine[row - 2]:
                cost = min(cost, older[column - 2] + 1)
            here.append(cost)
    return here[-1] / max(len(mine), len(theirs))


def plan(
    contract: Contract, documents: Mapping[str, object], arguments: object, valid: Callable[[object], bool]
) -> Plan | None:
    """Return the plan that makes arguments acceptable, or None where they are, or where none is found.

    `valid` says whether arguments are accepted; it is asked once for the arguments, and at most 18 times for plans.
    The arguments are not changed. Cost: at most 2,000 places of the arguments, and the questions.

    >>> from theodolite.core.contract import Location, Origin, Part
    >>> schema = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}
    >>> tool = Contract(name="t", origin=Origin.MCP, parts=(Part(location=Location.ARGUMENTS, schema=schema),))
    >>> found = plan(tool, {}, {"Aeg": "7"}, lambda value: value == {"age": 7})
    >>> [(step.op.value, step.pointer, step.to) for step in found.steps]
    [('rename', '/Aeg', 'age'), ('coerce', '/age', 'integer')]
    """
    if valid(arguments):
        return None
    value, strange = plain(arguments)
    # One more than a plan may have says that there are too many.
    steps = () if strange else tuple(islice(_Search().steps(contract, documents, value), STEPS + 1))
    if not steps or len(steps) > STEPS or not _helps(steps, value, valid):
        return None
    # From the last on, since a later step may stand below what an earlier one made.
    for step in reversed(steps):
        fewer = tuple([one for one in steps if one is not step])
        if fewer and _helps(fewer, value, valid):
            steps = fewer
    return Plan(steps)


def mending(
    contract: Contract,
    documents: Mapping[str, object],
    arguments: object,
    wrong: _Faults,
    before: AbstractSet[Hashable],
) -> tuple[Step, ...]:
    """Return the steps that each by itself take away something that is wrong, and add nothing: at most eight.

    They are for arguments that have no plan, such as those of which one fault can be mended and another one not.
    `wrong` says what is wrong with arguments, in any words, and `before` is what it says of these. It is asked at most
    eight times, and not at all where more than eight things are wrong: it takes long then, and a model is not told all
    of them.

    >>> from theodolite.core.contract import Location, Origin, Part
    >>> schema = {"properties": {"age": {"type": "integer"}}, "required": ["age", "name"]}
    >>> tool = Contract(name="t", origin=Origin.MCP, parts=(Part(location=Location.ARGUMENTS, schema=schema),))
    >>> wrong = lambda value: {"no name"} if value == {"age": 7} else {"no name", "no number"}
    >>> [(step.op.value, step.pointer) for step in mending(tool, {}, {"age": "7"}, wrong, {"no name", "no number"})]
    [('coerce', '/age')]
    """
    value, strange = plain(arguments)
    if strange or len(before) > FEW:
        return ()
    steps = islice(_Search().steps(contract, documents, value), FEW)
    return tuple([step for step in steps if _mends(step, value, before, wrong)])


def _mends(step: Step, value: object, before: AbstractSet[Hashable], wrong: _Faults) -> bool:
    try:
        return wrong(_applied((step,), value)) < before
    except EventError:  # it is one for what an earlier step has made
        return False


def apply(found: Plan, arguments: object) -> object:
    """Return new arguments, with the steps of a plan taken; what was given is not changed.

    Raises EventError where a step does not fit the arguments: the plan was made for others. Mappings of other classes
    become dicts, tuples lists.

    >>> apply(Plan((Step(Op.DROP, "/extra"),)), {"id": 1, "extra": 2})
    {'id': 1}
    """
    value, strange = plain(arguments)
    if strange:
        raise EventError("these arguments are no JSON, so that no step fits them: make a plan for others")
    return _applied(found.steps, value)


class _Place(Struct, frozen=True):
    """What a contract says of one value: schemas that it must satisfy, and those that it may be chosen to satisfy."""

    must: tuple[Node, ...]
    may: tuple[Node, ...] = ()

    @property
    def types(self) -> frozenset[str]:
        types = types_of([one for node in self.must for one in expand(node)])
        if self.may and (some := frozenset[str]().union(*[types_of(expand(node)) for node in self.may]) & types):
            return some
        return types

    def opened(self) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
        """Return all schemas that speak of the value, in the same two kinds."""
        # Each once, however many ways lead to it: else they would double with each level.
        must = {id(one.schema): one for node in self.must for one in expand(node)}
        return tuple(must.values()), tuple(
            [one for one in speaking([*must.values(), *self.may]) if id(one.schema) not in must]
        )


class _Search:
    """Looks for steps in the arguments of one call; counts what it looks at."""

    def __init__(self) -> None:
        self._left = PLACES
        self._letters = LETTERS

    def steps(self, contract: Contract, documents: Mapping[str, object], arguments: object) -> Iterator[Step]:
        """Yield all steps that the contract suggests, each as after those before it."""
        found = split(contract, arguments)
        absent = {part.name: _Place((Node(part.schema, documents),)) for part in found.absent}
        given: dict[str, object] = {steps_of(one)[0]: None for one in found.unknown if one.count("/") == 1}
        yield from [Step(Op.DROP, one) for one in found.unknown if one.count("/") > 1]
        renamed = self._renames(given, absent)
        for name in given:
            yield Step(Op.RENAME, child("", name), renamed[name]) if name in renamed else Step(Op.DROP, child("", name))
        for one in found.given:
            place = _Place((Node(one.part.schema, documents),))
            yield from self._value(one.pointer.__add__, "", one.value, place)
        body = next(iter(contract.bodies), None)
        if body is not None and found.body is not UNSET:
            place = _Place((Node(body.schema, documents),))
            yield from self._value(found.where, "", found.body, place, {} if found.base else absent)
        for part in found.absent:
            if part.required and part.name not in renamed.values():
                yield from _filled(child("", part.name), absent[part.name])

    def _renames(self, unknown: Mapping[str, object], absent: Mapping[str, object]) -> dict[str, str]:
        """Return which name was meant by which: the nearest one for both, and no other as near."""
        near: dict[tuple[str, str], float] = {}
        # The two least distances of each name, on either side.
        least: dict[tuple[bool, str], list[float]] = {}
        for name, other in ((name, other) for name in unknown for other in absent):
            self._letters -= 1 + (len(name) * len(other) if max(len(name), len(other)) <= NAME else 0)
            if self._letters < 0:
                break
            if (apart := distance(name, other)) <= ALIKE:
                near[name, other] = apart
                for side in ((True, name), (False, other)):
                    least[side] = sorted([*least.get(side, ()), apart])[:2]
        return {
            name: other
            for (name, other), apart in near.items()
            if _sole(apart, least[True, name]) and _sole(apart, least[False, other])
        }

    def _value(
        self,
        where: Callable[[str], str],
        pointer: str,
        value: object,
        place: _Place,
        beside: Mapping[str, _Place] = MappingProxyType({}),
    ) -> Iterator[Step]:
        """Yield the steps of one value. `beside` are parameters that a field may have been meant for."""
        self._left -= 1
        if self._left < 0 or pointer.count("/") > LEVELS:
            return
        types = place.types
        if type_of(value) not in types:
            fit = fitting(value, types)
            if fit is None:
                return
            kind, value = fit
            yield Step(Op.UNWRAP if kind in {"object", "array"} else Op.COERCE, where(pointer), kind)
        elif _quoted_word(value, place) is not None:
            yield Step(Op.UNWRAP, where(pointer), "string")
        if is_object(value):
            yield from self._object(where, pointer, value, place, beside)
        elif is_list(value):
            must, may = place.opened()
            for index, item in enumerate(value[: max(self._left, 0)]):
                inner = _Place(_items(must, index), _items(may, index))
                yield from self._value(where, f"{pointer}/{index}", item, inner)

    def _object(
        self,
        where: Callable[[str], str],
        pointer: str,
        value: dict[str, object],
        place: _Place,
        beside: Mapping[str, _Place],
    ) -> Iterator[Step]:
        must, may = place.opened()
        declared = dict.fromkeys([name for one in (*must, *may) for name in named(one.keywords.get("properties"))])
        places = {name: _Place(_named(must, name), _named(may, name)) for name in declared}
        required = {name for one in must for name in _texts(one.keywords.get("required"))}
        unknown = {name: inner for name, inner in value.items() if name not in places}
        moved = [name for name in unknown if where(child(pointer, name)) != child(where(pointer), name)]
        absent = {name: one for name, one in {**beside, **places}.items() if name not in value}
        renamed = self._renames({name: one for name, one in unknown.items() if name not in moved}, absent)
        closed = any(_shuts(one) for one in (*must, *may))
        for name, inner in islice(value.items(), max(self._left, 0)):
            at = child(pointer, name)
            if name in renamed:
                to = renamed[name]
                yield Step(Op.RENAME, where(at), to)
                if to in places:
                    yield from self._value(where, child(pointer, to), inner, places[to])
                else:
                    yield from self._value(str, child("", to), inner, beside[to])
            elif name in places:
                null = inner is None and name not in required and "null" not in places[name].types
                if null or any(one.keywords.get("not") == FORBIDS for one in places[name].opened()[0]):
                    yield Step(Op.DROP, where(at))
                else:
                    yield from self._value(where, at, inner, places[name])
            elif closed:
                yield Step(Op.DROP, where(at))
            else:
                yield from self._value(where, at, inner, _Place(_rest(must), _rest(may)))
        for name in sorted(required - value.keys() - {*renamed.values()}):
            if name in places:
                yield from _filled(where(child(pointer, name)), places[name])


def _sole(apart: float, least: Sequence[float]) -> bool:
    """Whether a distance is the least, and the only one that is."""
    return all(apart < rival for rival in least[1:]) and apart == least[0]


def _quoted_word(value: object, place: _Place) -> str | None:
    """Return the text that a text is the JSON of, where it is one of the values that are due and the whole is not."""
    if not isinstance(value, str) or not value.startswith('"') or len(value) > TEXT:
        return None
    listed = [one.keywords.get("enum") for one in place.opened()[0]]
    words = {word for values in listed for word in _texts(values)}
    decoded: object = value
    try:
        for _ in range(TIMES):
            decoded = meant(decoded, "string") if isinstance(decoded, str) and decoded not in words else decoded
    except ValueError:
        return None
    return decoded if isinstance(decoded, str) and decoded in words and value not in words else None


def _filled(pointer: str, place: _Place) -> Iterator[Step]:
    """Yield the step that gives a place the default of its contract, where it has one."""
    for node in place.opened()[0]:
        if "default" in node.keywords:
            yield Step(Op.FILL, pointer, canonical(node.keywords["default"]).decode())
            return


def _named(nodes: Iterable[Node], name: str) -> tuple[Node, ...]:
    found = [(one, named(one.keywords.get("properties"))) for one in nodes]
    return tuple([one.child(properties[name]) for one, properties in found if name in properties])


def _rest(nodes: Iterable[Node]) -> tuple[Node, ...]:
    return tuple(
        [one.child(one.keywords["additionalProperties"]) for one in nodes if "additionalProperties" in one.keywords]
    )


def _items(nodes: Iterable[Node], index: int) -> tuple[Node, ...]:
    found: list[Node] = []
    for one in nodes:
        prefix = one.keywords.get("prefixItems")
        if is_list(prefix) and index < len(prefix):
            found.append(one.child(prefix[index]))
        elif "items" in one.keywords:
            found.append(one.child(one.keywords["items"]))
    return tuple(found)


def _shuts(node: Node) -> bool:
    return any(node.keywords.get(keyword) is False for keyword in ("additionalProperties", "unevaluatedProperties"))


def _texts(value: object) -> list[str]:
    return [text for text in value if isinstance(text, str)] if is_list(value) else []


def _helps(steps: Sequence[Step], arguments: object, valid: Callable[[object], bool]) -> bool:
    try:
        return valid(_applied(steps, arguments))
    except EventError:
        return False


def _applied(steps: Iterable[Step], value: object) -> object:
    for step in steps:
        value = _taken(step, steps_of(step.pointer), value)
    return value


def _taken(step: Step, tokens: Sequence[str], value: object) -> object:
    """Return a value with one step taken below it; what is on the way is copied."""
    if len(tokens) > 1 or (tokens and step.op in {Op.UNWRAP, Op.COERCE}):
        first, rest = tokens[0], tokens[1:]
        if is_object(value) and first in value:
            return {**value, first: _taken(step, rest, value[first])}
        if is_list(value) and first.isdecimal() and int(first) < len(value):
            place = int(first)
            return [*value[:place], _taken(step, rest, value[place]), *value[place + 1 :]]
    elif step.op in {Op.UNWRAP, Op.COERCE}:
        return _converted(step, value)
    elif is_object(value) and tokens:
        name = tokens[0]
        if step.op is Op.FILL and name not in value:
            return {**value, name: msgspec.json.decode(step.to)}
        if step.op is Op.DROP and name in value:
            return {key: one for key, one in value.items() if key != name}
        if step.op is Op.RENAME and name in value and step.to not in value:
            return {step.to if key == name else key: one for key, one in value.items()}
    raise EventError(f"the step {step.op} does not fit these arguments: make a plan for them")


def _converted(step: Step, value: object) -> object:
    if step.op is Op.COERCE and step.to == "string" and isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    try:
        return meant(value if isinstance(value, str) else "", step.to)
    except ValueError:
        raise EventError(f"the step {step.op} does not fit these arguments: make a plan for them") from None


def _folded(name: str) -> str:
    return name.casefold().replace("_", "").replace("-", "")
