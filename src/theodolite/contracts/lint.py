"""What of a contract can be checked and what cannot, and what makes it hard for an agent to keep to it.

The list of codes is closed. What is not checked comes first: a guard that passes a call must not mean that nobody
looked. Each schema is told once for each code, where it is first met, however many operations share it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import partial
from itertools import count
from operator import itemgetter
from typing import NamedTuple

from msgspec import Struct

from theodolite.contracts.document import child, is_list, is_object
from theodolite.contracts.nodes import EVERY_TYPE, Node, expand, named, type_of, types_of
from theodolite.contracts.registry import FILE, FILE_BACK, REPEATED
from theodolite.contracts.surface import PLACES, below, speaking
from theodolite.contracts.tools import BUILT_IN
from theodolite.core.contract import Contract, Contracts, Location, Part
from theodolite.core.text import brief

__all__ = ("Flaw", "Lint", "Note", "Severity", "lint")


class Severity(StrEnum):
    """How much a note matters: what is not checked, what misleads agents, what would help them."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Flaw(StrEnum):
    """What is wrong with a contract; its severity is a property of it."""

    NOT_CHECKED = "not_checked"
    REPEATED_NAME = "repeated_name"
    UNRESOLVED = "unresolved_reference"
    REQUIRED_UNDECLARED = "required_undeclared"
    NO_TYPE = "no_type"
    OPEN_OBJECT = "open_object"
    ARRAY_OF_ANYTHING = "array_of_anything"
    AMBIGUOUS_NAME = "ambiguous_name"
    ALIKE_NAMES = "alike_names"
    NO_DESCRIPTION = "no_description"
    NO_RESULT = "no_result"
    FIELD_UNDESCRIBED = "field_undescribed"
    UNNAMED_ENUM = "unnamed_enum"
    NO_EXAMPLE = "no_example"
    TAKES_UNDECLARED = "takes_undeclared"
    BINARY = "binary"
    PROVIDER_TOOL = "provider_tool"
    UNNAMED_OPERATION = "unnamed_operation"

    @property
    def severity(self) -> Severity:
        """Return how much it matters."""
        if self in _ERRORS:
            return Severity.ERROR
        return Severity.WARNING if self in _WARNINGS else Severity.NOTE


_ERRORS = frozenset({Flaw.NOT_CHECKED, Flaw.UNRESOLVED})
_WARNINGS = frozenset(
    {
        Flaw.REPEATED_NAME,
        Flaw.REQUIRED_UNDECLARED,
        Flaw.NO_TYPE,
        Flaw.OPEN_OBJECT,
        Flaw.ARRAY_OF_ANYTHING,
        Flaw.AMBIGUOUS_NAME,
        Flaw.ALIKE_NAMES,
        Flaw.NO_DESCRIPTION,
    }
)
# Gaps that are no fault of whoever wrote the contract, or leave nothing unchecked; all others are errors.
_GAPS: Mapping[str, Flaw] = {
    REPEATED: Flaw.REPEATED_NAME,
    BUILT_IN: Flaw.PROVIDER_TOOL,
    FILE: Flaw.BINARY,
    FILE_BACK: Flaw.BINARY,
}
_BINARY = "it is binary: it is not looked into"
# What says what a text looks like, or shows one.
_SHOWN = frozenset({"example", "examples", "default", "enum", "const", "format", "pattern"})
# A text that says which number of an enumeration means what.
_NAMES = frozenset({"description", "x-enum-varnames", "x-enumNames", "x-enum-descriptions"})


class Note(Struct, frozen=True, kw_only=True):
    """One flaw, where it is, and what to do about it. `pointer` leads into the values of that location."""

    flaw: Flaw
    contract: str
    location: Location | None = None
    pointer: str = ""
    what: str = ""


class Lint(Struct, frozen=True, kw_only=True):
    """What was found, and how much of a document can be checked.

    `operations` are all that the document has, `checked` those of which something is checked or which take nothing,
    `partly` those among them with a gap. `fields` are named fields and parameters of requests, at every depth, each
    once in an operation; `typed` those whose schema allows not everything. A tool without a schema is not checked.
    """

    notes: tuple[Note, ...]
    operations: int
    checked: int
    partly: int
    fields: int
    typed: int


def lint(contracts: Contracts) -> Lint:
    """Return the flaws of contracts, those of one contract together, and the coverage of the checks.

    A schema that can be reached in several ways is told of where the way is shortest, in the order of the document.
    Linear in the places of all requests, at most 200,000 for one part of an operation.

    >>> from theodolite.core.contract import Origin
    >>> part = Part(location=Location.ARGUMENTS, schema={"type": "object", "properties": {"id": {}}})
    >>> tool = Contract(name="get", origin=Origin.MCP, parts=(part,), description="Get one.")
    >>> told = lint(Contracts(contracts={"get": tool}, digest=""))
    >>> print(told.typed, "of", told.fields, [str(note.flaw) for note in told.notes if note.pointer == "/id"])
    0 of 1 ['no_type', 'field_undescribed']
    """
    gaps = [
        Note(flaw=_GAPS.get(gap.reason, Flaw.NOT_CHECKED), contract=gap.contract, pointer=gap.pointer, what=gap.reason)
        for gap in contracts.gaps
        if gap.reason != FILE  # which the note of the field says
    ]
    reader = _Reader(contracts.documents)
    theirs = {gap.contract for gap in contracts.gaps if gap.reason == BUILT_IN}
    ours = [contract for contract in contracts.contracts.values() if contract.name not in theirs]
    notes = [note for contract in ours for note in reader.contract(contract)]
    torn = {gap.contract for gap in contracts.gaps if gap.reason != REPEATED}
    checked = [one.name for one in ours if not one.opaque and (not one.parts or any(map(_asks, one.parts)))]
    return Lint(
        notes=(*gaps, *notes),
        operations=len({*contracts.contracts, *filter(None, torn)}),
        checked=len(checked),
        partly=len(torn & {*checked}),
        fields=reader.fields,
        typed=reader.typed,
    )


class _Reader:
    """Walks through contracts, and remembers which schemas it has told of."""

    def __init__(self, documents: Mapping[str, object]) -> None:
        self._documents = documents
        self._told: set[tuple[object, ...]] = set()
        self.fields = self.typed = 0

    def contract(self, contract: Contract) -> Iterator[Note]:
        about = partial(Note, contract=contract.name)
        if not contract.description and not contract.title:
            yield about(flaw=Flaw.NO_DESCRIPTION, what="say what it does and when to use it")
        if contract.method and contract.name == f"{contract.method} {contract.path}":
            yield about(flaw=Flaw.UNNAMED_OPERATION, what="give it an operationId: it is called by its path")
        if not contract.results:
            yield about(flaw=Flaw.NO_RESULT, what="describe what comes back")
        where: dict[str, set[Location]] = {}
        for part in contract.parts:
            for name in [part.name] if part.name else self._declared(part):
                where.setdefault(name, set()).add(part.location)
        for name, places in where.items():
            if len(places) > 1:
                what = f"it stands in {' and '.join(sorted(places))}: a flat argument of that name could be either"
                yield about(flaw=Flaw.AMBIGUOUS_NAME, pointer=child("", name), what=what)
        for part in contract.parts:
            yield from self._part(contract, part)

    def _declared(self, part: Part) -> list[str]:
        group = speaking([Node(part.schema, self._documents)])
        return list(dict.fromkeys([name for one in group for name in named(one.keywords.get("properties"))]))

    def _part(self, contract: Contract, part: Part) -> Iterator[Note]:
        """Yield the flaws of a part, each at the shortest way to it, in the order of the document."""
        start = child("", part.name) if part.name else ""
        seen: set[frozenset[int]] = set()
        found: list[tuple[tuple[int, ...], Note]] = []
        waiting = deque([_Place(start, [Node(part.schema, self._documents)], bool(start))])
        while waiting and len(seen) < PLACES:
            here = waiting.popleft()
            group = speaking(here.nodes)
            key = frozenset([id(one.schema) for one in group])
            # A reference or `true` is no schema of its own: what one leads to is shared, the other told where it is.
            own = sorted([id(one.schema) for one in group if one.schema is not True and [*one.keywords] != ["$ref"]])
            typed = any(types_of(expand(one)) != EVERY_TYPE for one in here.nodes)
            self.fields += here.is_field
            self.typed += here.is_field and typed
            undescribed = here.is_field and not (here.pointer == start and part.description)
            for flaw, at, what in _flaws(group, typed=typed, undescribed=undescribed, is_root=not here.pointer):
                pointer = f"{here.pointer}{at}"
                place = (flaw, contract.name, part.location, pointer)
                mark = (flaw, at, *own) if own else place
                if mark not in self._told and place not in self._told:
                    self._told |= {mark, place}
                    note = Note(flaw=flaw, contract=contract.name, location=part.location, pointer=pointer, what=what)
                    found.append((here.order, note))
            if key not in seen:
                seen.add(key)
                waiting.extend(map(here.below, count(), below(group).items()))
        yield from [note for _, note in sorted(found, key=itemgetter(0))]


class _Place(NamedTuple):
    """A place in the values of a part, what is said of it, and where it stands in the document, level by level."""

    pointer: str
    nodes: list[Node]
    is_field: bool
    order: tuple[int, ...] = ()

    def below(self, number: int, item: tuple[str, list[Node]]) -> _Place:
        """Return a place below, by its name as `surface.below` writes it."""
        name, nodes = item
        return _Place(f"{self.pointer}{name[1:]}", nodes, name[0] == ".", (*self.order, number))


def _asks(part: Part) -> bool:
    return part.schema is not True and part.schema != {}


def _flaws(
    group: tuple[Node, ...], *, typed: bool, undescribed: bool, is_root: bool
) -> Iterator[tuple[Flaw, str, str]]:
    """Yield the flaws of one place: what it is, where below the place, and what to do."""
    said: dict[str, object] = {}
    for one in group:
        said = {**one.keywords, **said}
        if "$ref" in one.keywords and one.followed() is None:
            yield Flaw.UNRESOLVED, "", "a $ref leads nowhere: what it stands for is not checked"
    if not typed:
        binary = said.get("format") == "binary" or "contentMediaType" in said or "contentEncoding" in said
        untyped = Flaw.NO_TYPE, "", "give it a type: now it takes everything"
        yield (Flaw.BINARY, "", _BINARY) if binary else untyped
    if undescribed and not said.get("description") and not said.get("title"):
        yield Flaw.FIELD_UNDESCRIBED, "", "say what it is"
    if said.get("type") == "object" or (typed and "properties" in said):
        yield from _objects(said, group, is_root=is_root)
    if any(one.keywords.get("type") == "array" for one in group) and not said.keys() & {"items", "prefixItems"}:
        yield Flaw.ARRAY_OF_ANYTHING, "", "say what its items are"
    yield from _values(said)


def _objects(said: Mapping[str, object], group: tuple[Node, ...], *, is_root: bool) -> Iterator[tuple[Flaw, str, str]]:
    names = {name for one in group for name in named(one.keywords.get("properties"))}
    ruled = {"additionalProperties", "patternProperties", "unevaluatedProperties", "propertyNames"} & said.keys()
    if not names and not any(is_object(said[keyword]) for keyword in ruled):
        yield Flaw.OPEN_OBJECT, "", "name its fields, or say what their values are"
    elif is_root and not any(said.get(keyword) is False for keyword in ruled):
        yield Flaw.TAKES_UNDECLARED, "", "additionalProperties: false would refuse names that nobody declared"
    for one in group:
        listed = one.keywords.get("required")
        for name in listed if is_list(listed) else ():
            if isinstance(name, str) and name not in names and not ruled & {"patternProperties"}:
                yield Flaw.REQUIRED_UNDECLARED, child("", name), "it is required and nowhere declared"
    folded: dict[str, str] = {}
    for name in sorted(names):
        other = folded.setdefault(name.casefold().replace("_", "").replace("-", ""), name)
        if other != name:
            yield Flaw.ALIKE_NAMES, child("", name), f"it differs from {brief(other)} in its spelling alone"


def _values(said: Mapping[str, object]) -> Iterator[tuple[Flaw, str, str]]:
    values = said.get("enum")
    if is_list(values) and len(values) > 1 and not any(said.get(keyword) for keyword in _NAMES):
        if any(type_of(value) in {"integer", "fraction"} for value in values):
            yield Flaw.UNNAMED_ENUM, "", "say which number means what"
    elif said.get("type") == "string" and not said.keys() & _SHOWN and not said.get("description"):
        yield Flaw.NO_EXAMPLE, "", "show one, or give it a format: any text is accepted"
