"""The arguments of a call, split into the parts of its contract."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Final

from msgspec import UNSET, Struct, UnsetType

from theodolite.contracts.document import child, is_object, tokens
from theodolite.core.arguments import is_mapping
from theodolite.core.contract import Contract, Location, Part

__all__ = ("Given", "Split", "Splitter", "split")

# In this order a flat name finds its parameter. The words are those of OpenAPI's `in`.
_ORDER: Final = (Location.PATH, Location.QUERY, Location.HEADER, Location.COOKIE)
_PLACES: Final = {location.value: location for location in (*_ORDER, Location.BODY)}


class Given(Struct, frozen=True, gc=False):
    """The value of one part, and the pointer to it in the arguments."""

    part: Part
    value: object
    pointer: str


class Split(Struct, frozen=True, kw_only=True, gc=False):
    """What of the arguments goes where.

    `given` has a value for each part that got one: the arguments as a whole of a tool, or the parameters of an
    operation; `absent` are its other parameters. `body` is UNSET where none is given. `unknown` are the pointers to the
    arguments that belong to nothing, `twice` to those whose place another one has taken. `where` leads a pointer within
    the body back into the arguments.
    """

    given: tuple[Given, ...] = ()
    absent: tuple[Part, ...] = ()
    body: object | UnsetType = UNSET
    unknown: tuple[str, ...] = ()
    twice: tuple[str, ...] = ()
    base: str = ""
    moved: Mapping[str, str] = {}

    def where(self, pointer: str) -> str:
        """Return where in the arguments stands what a pointer leads to in the body.

        >>> Split(body={"id": {"a": 1}}, moved={"id": "/body.id"}).where("/id/a")
        '/body.id/a'
        """
        if self.moved and pointer:
            first, slash, rest = pointer[1:].partition("/")
            place = self.moved.get(tokens(f"/{first}")[0])
            if place is not None:
                return f"{place}{slash}{rest}"
        return f"{self.base}{pointer}"


class Splitter:
    """Splits the arguments of calls of one contract; holds what can be worked out beforehand.

    What a tool is called with is one part. For an operation, each argument finds its place by the first rule that fits:

    1. `path`, `query`, `header` and `cookie` hold the parameters of that place, where the value is an object. If a
       parameter has that very name, this holds only when all entries name parameters of the place, and if the operation
       has a body, only when one entry does (or there is none); otherwise the word is a name like others.
    2. `body` is the body as a whole, of whatever type. If a parameter has that very name, or the body declares such a
       field, this holds only when the value is an object and no other argument is left for the body.
    3. "path.id", "body.id" and "id__path" name place and parameter, unless a parameter or field has that very name.
    4. A flat name is the parameter of that name, in the order path, query, header, cookie, that has no value yet.
       Names of headers are the same whatever their case (RFC 9110, section 5.1).
    5. The rest are fields of the body, where there is a body that is not given as a whole; else they are `unknown`, or
       given `twice`, if their parameter or field has a value already.

    So a name that both path and body have goes to the path; the body's is given as "body.id", within `body`, or flat
    beside a "path.id". A required body of which nothing is given is an empty object, since flat arguments cannot say
    otherwise; where there are no arguments at all (None), there is no body either. Arguments that are no object are the
    body. Values are neither converted nor parsed: 5 is checked against the schema as 5, though it travels as text, in
    forms too.

    A call costs time in proportion to the number of arguments, not to their size: about 2 µs for a handful of flat ones
    that are declared.
    """

    def __init__(self, contract: Contract) -> None:
        bodies = [part for part in contract.parts if part.location is Location.BODY]
        self.whole = next((part for part in contract.parts if part.location is Location.ARGUMENTS), None)
        self.parameters = tuple(part for place in _ORDER for part in contract.parts if part.location is place)
        self.fields = contract.fields
        self.has_body = bool(bodies)
        self.needs_body = any(part.required for part in bodies)
        self._placed = {_key(part.location, part.name): part for part in self.parameters}
        self._named: dict[str, list[Part]] = {}
        for part in self.parameters:
            self._named.setdefault(part.name.lower(), []).append(part)
        # What rules 4 and 5 alone speak of: parameters that are the only ones of their name, and other fields.
        alone = {parts[0].name: parts[0] for parts in self._named.values() if len(parts) == 1}
        self._plain: dict[object, tuple[Part, str] | None] = {
            name: (alone[name], child("", name)) if name in alone else None
            for name in {*alone, *self.fields}
            if not _speaks(name) and (name in alone or name.lower() not in self._named)
        }

    def split(self, arguments: object) -> Split:
        """Return what of the arguments goes where. Never raises, and changes nothing of what it is given."""
        if self.whole is not None:
            return Split(given=(Given(self.whole, arguments, ""),))
        if arguments is None:
            return Split(absent=self.parameters)
        if is_object(arguments) and (found := self._flat(arguments)) is not None:
            return found
        if is_mapping(arguments):
            return _Sorting(self, arguments).result()
        if self.has_body:
            return Split(absent=self.parameters, body=arguments)
        return Split(absent=self.parameters, unknown=("",))

    def _flat(self, arguments: dict[str, object]) -> Split | None:
        """Return what goes where if rules 4 and 5 alone decide, in one pass; else None."""
        given: list[Given] = []
        fields = 0
        for name, value in arguments.items():
            plain = self._plain.get(name, self)
            if plain is None or (plain is self and self._is_field(name, value)):
                fields += 1
            elif plain is self or not isinstance(plain, tuple):
                return None
            else:
                given.append(Given(plain[0], value, plain[1]))
        absent = self.parameters
        if given:
            absent = () if len(given) == len(absent) else tuple(part for part in absent if part.name not in arguments)
        body: object | UnsetType = UNSET
        if fields or self.needs_body:
            body = {name: arguments[name] for name in arguments if not self._plain.get(name)} if given else arguments
        return Split(given=tuple(given), absent=absent, body=body)

    def _is_field(self, name: object, value: object) -> bool:
        """Whether a name that is not declared, or that a rule speaks of, is a field of the body all the same."""
        if not self.has_body or not isinstance(name, str):
            return False
        if name == "body":
            return name in self.fields and name not in self._named and not is_mapping(value)
        return not _speaks(name) and name.lower() not in self._named

    def parameter(self, place: Location, name: object) -> Part | None:
        """Return the parameter of that place and name."""
        return self._placed.get(_key(place, name)) if isinstance(name, str) else None

    def named(self, name: object) -> list[Part]:
        """Return the parameters of that name, in the order in which they are given values."""
        if not isinstance(name, str) or not self._named:
            return []
        return [
            part for part in self._named.get(name.lower(), ()) if part.name == name or part.location is Location.HEADER
        ]


class _Sorting:
    """The arguments of one call on their way to the parts of the contract."""

    def __init__(self, splitter: Splitter, arguments: Mapping[object, object]) -> None:
        self._splitter = splitter
        self._given: dict[tuple[Location, str], Given] = {}
        self._fields: dict[object, object] = {}
        self._moved: dict[str, str] = {}
        self._unknown: list[str] = []
        self._twice: list[str] = []
        self._left = dict(arguments)

    def result(self) -> Split:
        """Return what went where, rule by rule."""
        for name in [name for name in self._left if isinstance(name, str) and name in _PLACES]:
            self._group(name)
        for name in [name for name in self._left if isinstance(name, str) and ("." in name or "__" in name)]:
            self._addressed(name)
        if self._splitter.parameters:
            for argument in list(self._left):
                self._flat(argument)
        body, base = self._body()
        parameters = self._splitter.parameters
        given = tuple(self._given.values())
        return Split(
            given=given,
            absent=tuple(part for part in parameters if _key(part.location, part.name) not in self._given),
            body=body,
            unknown=tuple(self._unknown),
            twice=tuple(self._twice),
            base=base,
            moved=self._moved,
        )

    def _group(self, word: str) -> None:
        """Rule 1."""
        place, entries = _PLACES[word], self._left[word]
        if place is Location.BODY or not is_mapping(entries):
            return
        known = sum(self._splitter.parameter(place, name) is not None for name in entries)
        if self._splitter.named(word):
            taken = 0 < known == len(entries)
        else:
            taken = known > 0 or not entries or not self._splitter.has_body
        if taken:
            del self._left[word]
            for entry, value in entries.items():
                self._give(self._splitter.parameter(place, entry), value, child("", word, str(entry)))

    def _addressed(self, name: str) -> None:
        """Rule 3."""
        if self._splitter.named(name) or name in self._splitter.fields:
            return
        word, dot, rest = name.partition(".")
        if not dot or word not in _PLACES:
            rest, _, word = name.rpartition("__")
        place = _PLACES.get(word)
        if place is Location.BODY and self._splitter.has_body and rest:
            self._fields[rest] = self._left.pop(name)
            self._moved[rest] = child("", name)
        elif place is not None and (part := self._splitter.parameter(place, rest)) is not None:
            self._give(part, self._left.pop(name), child("", name))

    def _flat(self, name: object) -> None:
        """Rule 4."""
        for part in self._splitter.named(name):
            if _key(part.location, part.name) not in self._given:
                self._give(part, self._left.pop(name), child("", str(name)))
                return

    def _give(self, part: Part | None, value: object, pointer: str) -> None:
        if part is None:
            self._unknown.append(pointer)
        elif (key := _key(part.location, part.name)) in self._given:
            self._twice.append(pointer)
        else:
            self._given[key] = Given(part, value, pointer)

    def _rest(self, declared: Container[object]) -> None:
        """Take what is left for nothing that it could belong to."""
        for name in self._left:
            (self._twice if name in declared or self._splitter.named(name) else self._unknown).append(
                child("", str(name))
            )

    def _body(self) -> tuple[object | UnsetType, str]:
        """Rules 2 and 5: the body, and the pointer to it."""
        splitter, left = self._splitter, self._left
        if not splitter.has_body:
            self._rest(())
            return UNSET, ""
        if "body" in left and ("body" not in splitter.fields or self._alone(left["body"])):
            body = left.pop("body")
            self._rest({*splitter.fields, *(body if is_mapping(body) else ())})
            self._twice.extend(self._moved.values())
            self._moved = {}
            return body, "/body"
        if not self._fields and not left and not splitter.needs_body:
            return UNSET, ""
        # What is given by its place wins over what is given flat.
        self._twice.extend(child("", str(name)) for name in left if name in self._fields)
        return {**left, **self._fields}, ""

    def _alone(self, value: object) -> bool:
        return is_mapping(value) and len(self._left) == 1 and not self._fields


def split(contract: Contract, arguments: object) -> Split:
    """Return what of the arguments of a call goes to which part of its contract, by the rules of `Splitter`.

    >>> from theodolite.contracts import read
    >>> item = {"parameters": [{"name": "id", "in": "path", "schema": {"type": "integer"}}]}
    >>> body = {"content": {"application/json": {"schema": {"properties": {"id": {}, "name": {}}}}}}
    >>> paths = {"/pets/{id}": {**item, "put": {"requestBody": body}}}
    >>> contract = read({"openapi": "3.0.3", "paths": paths}).find("PUT /pets/{id}")
    >>> found = split(contract, {"id": 7, "body.id": 8, "name": "Rex"})
    >>> found.given[0].value, found.body, found.where("/id")
    (7, {'name': 'Rex', 'id': 8}, '/body.id')
    """
    return Splitter(contract).split(arguments)


def _speaks(name: str) -> bool:
    """Whether one of rules 1 to 3 may speak of a name."""
    return name in _PLACES or "." in name or "__" in name


def _key(place: Location, name: str) -> tuple[Location, str]:
    return place, name.lower() if place is Location.HEADER else name
