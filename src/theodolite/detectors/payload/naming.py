"""Which names of a call are its contract's own words, and which it made up; which known name one may be meant for.

A made-up name may be hostile, and may be a secret that was put in the wrong place: whoever shows it cuts it short, and
whoever keeps it keeps `*` instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from msgspec import Struct

from theodolite.contracts.document import tokens as steps_of
from theodolite.contracts.nodes import Node
from theodolite.contracts.splitting import Splitter
from theodolite.core.contract import Contract, Contracts, Divergence, Group, Location
from theodolite.core.text import brief
from theodolite.detectors.payload.places import Places

__all__ = ("MADE_UP", "Name", "Naming", "meant", "nearest")

MADE_UP = "*"
"""What stands for an index, and for a name that a contract does not declare."""

# Characters of a name that it is compared by (our choice): more is no name, and to compare takes their square.
_COMPARED = 64
# Names that are offered to who called for none, and how alike they must be (our choice; the cutoff is difflib's own).
_OFFERED, _ALIKE = 5, 0.6
_ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
_LOCATIONS = {one.value: one for one in (Location.PATH, Location.QUERY, Location.HEADER, Location.COOKIE)}
_BODY = Location.BODY.value

_Nodes = tuple[Node, ...]


class Name(Struct, frozen=True):
    """One name on the way to a place, as the contract spells it, and whether the contract declares it.

    `below` are the schemas of what stands there, as far as they are known.
    """

    text: str
    declared: bool
    below: _Nodes = ()


class Naming:
    """Tells the names that contracts declare from those that calls make up; keeps what was worked out of each schema.

    Declared is what stands in `properties` at the place, by whatever branch of whatever union, a parameter, and, of a
    field that is missing, its name: rules ask for it. Not what a pattern or `additionalProperties` takes: those names
    are the call's. What only a `$dynamicRef` or an anchor leads to counts as made up.

    Cost: some 50 us for each schema that is met for the first time, 2 us for each name then. Ask of divergences alone.
    """

    def __init__(self, contracts: Contracts) -> None:
        self._contracts = contracts  # which have to outlive what is kept of their schemas
        self._places = Places()
        self._splitters: dict[str, Splitter] = {}

    def names(self, operation: str, one: Divergence) -> tuple[Name, ...]:
        """Return the names that lead to where a call of an operation diverges."""
        tokens = steps_of(one.pointer)
        contract = self._contracts.find(operation)
        if contract is None:
            return tuple([Name(token, declared=False) for token in tokens])
        found = list(self._led(contract, tokens))
        if found and one.pointer.endswith(_ELLIPSIS):  # a name that was cut off, whoever's it is
            found[-1] = Name(tokens[-1], declared=False)
        elif found and one.kind.group is Group.MISSING_REQUIRED:
            found[-1] = Name(tokens[-1], declared=True)
        return tuple(found)

    def place(self, operation: str, one: Divergence) -> str:
        """Return the pointer of a place as it may be kept: nothing in it is made up by the call.

        `*` stands for each index and each name that is not declared, one for all below what nothing is known of; a
        place that stands within itself, as in a tree, is the first of them. So there are no more places than the
        contract has ways to its schemas.

        >>> from theodolite.contracts import read
        >>> from theodolite.core.contract import Kind
        >>> fields = {"kids": {"items": {"$ref": "#"}}, "ages": {"additionalProperties": {"type": "null"}}}
        >>> naming = Naming(read([{"name": "add", "inputSchema": {"properties": fields}}]))
        >>> naming.place("add", Divergence(kind=Kind.TYPE_MISMATCH, pointer="/kids/3/kids/0/ages/alice@example.com"))
        '/kids/*/ages/*'
        """
        kept: list[str] = []
        met: dict[tuple[int, ...], int] = {}
        unknown = False
        for name in self.names(operation, one):
            if unknown and not name.declared and kept[-1] == MADE_UP:
                continue
            kept.append(name.text.replace("~", "~0").replace("/", "~1") if name.declared else MADE_UP)
            unknown = not name.below
            key = tuple([id(node.schema) for node in name.below])
            if key in met:
                del kept[met[key] :]
                met = {other: length for other, length in met.items() if length <= len(kept)}
            elif key:
                met[key] = len(kept)
        if kept and one.kind.group is Group.UNKNOWN_FIELD:
            kept[-1] = MADE_UP
        return "".join([f"/{name}" for name in kept])

    def _led(self, contract: Contract, tokens: list[str]) -> Iterator[Name]:
        """Yield the names of a way, each with the schemas that stand below it."""
        splitter = self._splitters.get(contract.name)
        if splitter is None:
            splitter = self._splitters[contract.name] = Splitter(contract)
        documents = self._contracts.documents
        if splitter.whole is not None:
            here: _Nodes = (Node(splitter.whole.schema, documents),)
        else:
            here = tuple([Node(part.schema, documents) for part in contract.parts if part.location is Location.BODY])
            first, tokens = self._entered(splitter, here, tokens)
            yield from first
            here = first[-1].below if first else ()
        for token in tokens:
            name = self._inside(here, token)
            yield name
            here = name.below

    def _inside(self, here: _Nodes, token: str) -> Name:
        table = self._places.table(here)
        below = table.named(token) or ()
        if token.isdecimal():
            below += table.item(int(token))
        return Name(token, token in table.properties, tuple([node for node in below if node.keywords]))

    def _entered(self, splitter: Splitter, body: _Nodes, tokens: list[str]) -> tuple[list[Name], list[str]]:
        """Return the names that say to which part of an operation a way leads, and the rest of the way.

        By the rules of `Splitter`; where two of them could be meant, what either declares is declared.
        """
        if not tokens:
            return [], []
        token, rest = tokens[0], tokens[1:]
        field = self._inside(body, token)
        if token == _BODY:
            return [Name(token, declared=True, below=(*body, *field.below))], rest
        if token in _LOCATIONS and rest:
            parameter = self._parameter(splitter, token, rest[0])
            if parameter is not None:
                return [Name(token, declared=True), parameter], rest[1:]
        for part in splitter.named(token):
            return [Name(part.name, declared=True, below=(self._node(part.schema), *field.below))], rest
        if token in _LOCATIONS:
            return [Name(token, declared=True, below=field.below)], rest
        return [field if field.declared else self._addressed(splitter, body, token) or field], rest

    def _addressed(self, splitter: Splitter, body: _Nodes, token: str) -> Name | None:
        """Return the name that says its own location: "path.id", "id__path", "body.id"."""
        word, dot, name = token.partition(".")
        if not dot or word not in {*_LOCATIONS, _BODY}:
            name, _, word = token.rpartition("__")
        found = self._inside(body, name) if word == _BODY else self._parameter(splitter, word, name)
        if found is None:
            return None
        text = f"{word}.{found.text}" if dot else f"{found.text}__{word}"
        return Name(text, declared=found.declared, below=found.below)

    def _parameter(self, splitter: Splitter, word: str, name: str) -> Name | None:
        location = _LOCATIONS.get(word)
        part = None if location is None else splitter.parameter(location, name)
        return None if part is None else Name(part.name, declared=True, below=(self._node(part.schema),))

    def _node(self, schema: object) -> Node:
        return Node({}, self._contracts.documents).child(schema)


def nearest(name: object, known: Iterable[str]) -> tuple[tuple[str, ...], bool]:
    """Return the known names that one is most like, and True; or the first five of them, and False, where none is.

    Cost: some 10 us for each name that is known.

    >>> nearest("creatUser", ["createUser", "deleteTeam"]), nearest(None, ["a"])
    ((('createUser',), True), (('a',), False))
    """
    names = list(known)
    near = get_close_matches(name[:_COMPARED], names, n=_OFFERED, cutoff=_ALIKE) if isinstance(name, str) else []
    return tuple(near or names[:_OFFERED]), bool(near)


def meant(name: object, contracts: Contracts) -> str:
    """Return what to tell a person who named no operation of some contracts: which it may have been.

    >>> from theodolite.contracts import read
    >>> print(meant("ad", read([{"name": "add", "inputSchema": {}}])))
    did you mean 'add'?
    """
    names, near = nearest(name, (*contracts.contracts, *contracts.aliases))
    if not names:
        return "nor has it any other"
    listed = ", ".join([brief(one) if len(one) > _COMPARED else repr(one) for one in names])
    return f"did you mean {listed}?" if near else f"it has, for instance, {listed}"
