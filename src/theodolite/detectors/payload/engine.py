"""The checker: arguments and results against their contracts, exactly, by one engine for every form of contract."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from jsonschema_rs import Validator
from msgspec import UNSET, Struct
from msgspec.structs import replace

from theodolite.contracts.nodes import Node
from theodolite.contracts.splitting import Split, Splitter
from theodolite.core.arguments import pointer
from theodolite.core.contract import Contract, Contracts, Divergence, Kind, Location, Part, Schema
from theodolite.core.errors import ConfigError
from theodolite.core.text import brief
from theodolite.detectors.payload.compiling import Compiler
from theodolite.detectors.payload.covering import cover, cover_call
from theodolite.detectors.payload.declared import Declarations
from theodolite.detectors.payload.listing import MAX_ERRORS, Listing
from theodolite.detectors.payload.locating import Locating
from theodolite.detectors.payload.places import Places
from theodolite.detectors.payload.values import few, plain, vouch

__all__ = ("Checker",)

_PARAMETERS = frozenset({Location.PATH, Location.QUERY, Location.HEADER, Location.COOKIE})
# Characters of a contract's own text that a finding shows.
_SHOWN = 200


class _Quick:
    """Accepts values in one pass: `accepts` is the method of a validator that is compiled when it is first asked.

    A False, or a ValueError, says that the long way is to be taken. What is wrong with a schema has shown before.
    """

    def __init__(
        self, compiler: Compiler, make: Callable[[], Schema | None], instead: Callable[[object], bool]
    ) -> None:
        self._compiler = compiler
        self._make = make
        self._instead = instead
        self.accepts: Callable[[object], bool] = self._begin

    def _begin(self, value: object) -> bool:
        self.accepts = self._made()
        return self.accepts(value)

    def _made(self) -> Callable[[object], bool]:
        try:
            schema = self._make()
            return self._instead if schema is None else self._compiler.compile_own(schema).is_valid
        except (ConfigError, RecursionError):  # the engine has limits of its own, on patterns for one; so has Python
            return self._instead


class _Ready(Struct, frozen=True, kw_only=True):
    """A part with its validator, whose own method is `valid`: that saves a look-up."""

    part: Part
    validator: Validator
    valid: Callable[[object], bool]
    quick: _Quick
    listing: Listing


class _Operation(Struct, frozen=True, kw_only=True):
    """The parts of one contract; the bodies with the plainest JSON first. `quick` is for all that a call holds.

    Of one that is `opaque` nothing is published, and nothing is judged.
    """

    splitter: Splitter
    tool: _Ready | None
    bodies: tuple[_Ready, ...]
    parameters: Mapping[tuple[Location, str], _Ready]
    quick: _Quick
    opaque: bool = False


class Checker:
    """Checks calls and results against contracts.

    All schemas are compiled here: a contract that cannot be checked is a ConfigError now (see `Compiler.compile`), with
    the pointer, and not at the first call. It may be shared by threads. `formats` makes a mismatch of a `format` deny.
    Without it `check` does not look at formats: JSON Schema 2020-12 (validation, section 7.2.1) makes them annotations,
    and OpenAPI leaves the list of them open, so that values that servers take would be refused.

    Cost of `check` for a valid call: some twice the engine alone, for looking at what a contract does not ask about
    (`covering.cover`) and for counting (`values.few`): 1 us for five fields, 4 us for 1.7 kB of JSON, 23 us for 8 kB
    with 200 objects; the first call of an operation takes some 10 ms more.

    >>> from theodolite.contracts import read
    >>> schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    >>> checker = Checker(read([{"name": "add", "inputSchema": schema}]))
    >>> checker.check("add", {"a": 1})
    ()
    >>> [(found.kind.value, found.pointer, found.expected, found.observed) for found in checker.check("add", {"a": {}})]
    [('type_mismatch', '/a', 'integer', 'object')]
    """

    def __init__(self, contracts: Contracts, *, formats: bool = False) -> None:
        self.contracts = contracts
        self._compiler = Compiler(contracts.documents, formats=formats)
        places = Places()
        self._locating = Locating(self._compiler, places)
        self._operations = {name: self._operation(contract) for name, contract in contracts.contracts.items()}
        for alias, name in contracts.aliases.items():
            self._operations.setdefault(alias, self._operations[name])
        self._results: dict[tuple[str, str], tuple[_Ready, ...]] = {}
        self._declarations = Declarations(places)
        self._try_results()

    def _operation(self, contract: Contract) -> _Operation:
        ready = [self._ready(part, contract) for part in contract.parts]
        bodies = [one for part in contract.bodies for one in ready if one.part is part]
        parameters = [one for one in ready if one.part.location in _PARAMETERS]
        body = bodies[0].part if bodies else None
        flat = partial(cover_call, [one.part for one in parameters], body, self.contracts.documents)
        tool = next((one for one in ready if one.part.location is Location.ARGUMENTS), None)
        return _Operation(
            splitter=Splitter(contract),
            tool=tool,
            bodies=tuple(bodies),
            parameters={(one.part.location, one.part.name): one for one in parameters},
            quick=_Quick(self._compiler, flat, lambda _: False) if tool is None else tool.quick,
            opaque=contract.opaque,
        )

    def _try_results(self) -> None:
        """Compile the schemas of all results as one, which takes a fifth of the time; each again when it is used."""
        results = [(part, contract) for contract in self.contracts.contracts.values() for part in contract.results]
        if not self._compiler.takes([part.schema for part, _ in results]):
            for part, contract in results:  # which of them it was
                self._ready(part, contract)

    def _ready(self, part: Part, contract: Contract) -> _Ready:
        what = f"the {part.location} of {brief(contract.name)}"
        validator = self._compiler.compile(part.schema, where=part.pointer, what=what)
        valid = validator.is_valid
        make = partial(cover, part.schema, self.contracts.documents)
        quick = _Quick(self._compiler, make, lambda value: vouch(value) and valid(value))
        listing = Listing(part=part, validator=validator, locating=self._locating)
        return _Ready(part=part, validator=validator, valid=valid, quick=quick, listing=listing)

    def check(
        self, name: str, arguments: object, *, location: Location | None = None, media_type: str = ""
    ) -> tuple[Divergence, ...]:
        """Return where a call diverges from its contract; nothing where it does not, nor of a tool without a schema.

        `arguments` are those of the whole call, split among the parts of an operation; with a `location` they are what
        goes there, such as the body alone. UNSET stands for none at all, None for null. `media_type` is that of the
        body where several are published; the first JSON one else. Raises nothing for any arguments.

        At most 100 findings that deny, and then one that says so. Of arrays and objects with more than 500 entries the
        first faulty stretch is listed.
        """
        operation = self._operations.get(name)
        if operation is None:
            return (_unknown(),)
        if location is None and not media_type and _accepted(operation.quick, arguments):
            return ()
        if operation.opaque:
            return ()
        if operation.tool is not None:
            return _read_and_told(operation.tool, arguments)
        if location is Location.BODY:
            return _body(operation.bodies, arguments, media_type)
        # Read once, before anything is looked up in it: what is no plain JSON may have code of its own.
        arguments, strange = _read(arguments, location or Location.ARGUMENTS)
        return strange or _call(operation, arguments, location, media_type)

    def accepts(self, name: str, arguments: object) -> bool:
        """Whether nothing of a call denies, which takes less than to list what does (`check`)."""
        operation = self._operations.get(name)
        if operation is None or operation.opaque or _accepted(operation.quick, arguments):
            return operation is not None
        value, strange = _read(arguments, Location.ARGUMENTS)
        if strange:
            return False
        if operation.tool is not None:
            return operation.tool.valid({} if value is UNSET else value)
        given = _split(operation, value, None)
        body = operation.bodies[0] if operation.bodies else None
        fits = body is None or (not body.part.required if given.body is UNSET else body.valid(given.body))
        values = [(operation.parameters[one.part.location, one.part.name], one.value) for one in given.given]
        absent = any(part.required for part in given.absent)
        return fits and not absent and not given.twice and all(ready.valid(one) for ready, one in values)

    def observe(
        self, name: str, arguments: object, *, location: Location | None = None, media_type: str = ""
    ) -> tuple[Divergence, ...]:
        """Return what of a call its contract does not declare, though it may not forbid it (`Declarations.observe`).

        Takes what `check` takes, parameters too. None of it denies, and it is no part of the check: it costs a walk in
        Python, about 2 us for each value. What is no JSON is not looked at: `check` tells of it.
        """
        operation = self._operations.get(name)
        value, strange = _read(arguments, Location.ARGUMENTS)
        if operation is None or operation.opaque or strange:
            return ()
        if operation.tool is not None:
            return self._observed(operation.tool, value, "")
        if location is Location.BODY:
            return self._observed(_body_of(operation.bodies, media_type), value, "")
        given = _split(operation, value, location)
        found = self._observed(_body_of(operation.bodies, media_type), given.body, "") if location is None else ()
        told = [replace(one, pointer=given.where(one.pointer)) for one in found]
        for one in given.given:
            if location is None or one.part.location is location:
                ready = operation.parameters[one.part.location, one.part.name]
                told.extend(self._observed(ready, one.value, one.pointer))
        return tuple([replace(one, pointer=_within(one.pointer, location)) for one in told])

    def _observed(self, ready: _Ready | None, value: object, prefix: str) -> tuple[Divergence, ...]:
        if ready is None or value is UNSET:
            return ()
        node = Node(ready.part.schema, self.contracts.documents)
        return self._declarations.observe(node, value, ready.part.location, prefix)

    def check_result(
        self, name: str, value: object, *, status: str = "", media_type: str = ""
    ) -> tuple[Divergence, ...]:
        """Return where what came back diverges from what was published; nothing where nothing was, for that status.

        `status` is that of HTTP; a result that is published for it goes before one for its range ("2XX"), and that
        before "default".
        """
        contract = self.contracts.find(name)
        if contract is None:
            return (_unknown(),)
        published = _of_status(contract.results, status.upper())
        if not published:
            return ()
        key = (contract.name, published[0].status)
        if key not in self._results:
            self._results[key] = tuple([self._ready(part, contract) for part in sorted(published, key=Part.plainness)])
        return _body(self._results[key], value, media_type)


def _of_status(results: Sequence[Part], status: str) -> list[Part]:
    """Return the results that are published for a status, or for the likeliest where none is named."""
    for wanted in (status, f"{status[:1]}XX", "DEFAULT") if status else ("", "200", "2XX", "201", "DEFAULT"):
        if here := [part for part in results if part.status.upper() == wanted]:
            return here
    return []


def _call(
    operation: _Operation, arguments: object, location: Location | None, media_type: str
) -> tuple[Divergence, ...]:
    """Return the findings of the parts of an operation, or of its parameters of one location, where they stand."""
    given = _split(operation, arguments, location)
    found = [_undeclared(where) for where in given.unknown] + [_twice(where) for where in given.twice]
    for one in given.given:
        found.extend(_one(operation.parameters[one.part.location, one.part.name], one.value, one.pointer))
    found.extend(
        _missing(part, _below(part))
        for part in given.absent
        if part.required and (location is None or part.location is location)
    )
    if location is None:
        of_body = _body(operation.bodies, given.body, media_type)
        found.extend(replace(fault, pointer=given.where(fault.pointer)) for fault in of_body)
    # What denies goes first, so that the cap takes none of it.
    first = sorted(found, key=lambda fault: not fault.denies)[: MAX_ERRORS + 1]
    return tuple([replace(one, pointer=_within(one.pointer, location)) for one in first] if location else first)


def _split(operation: _Operation, arguments: object, location: Location | None) -> Split:
    """Return what of the arguments, or of those of one location, goes where."""
    none = arguments is UNSET
    if location is None:
        return operation.splitter.split(None if none else arguments)
    return operation.splitter.split({} if none else {location.value: arguments})


def _within(where: str, location: Location | None) -> str:
    """Return a pointer as it is within what goes to one location."""
    return where if location is None else where.removeprefix(f"/{location}")


def _body(bodies: tuple[_Ready, ...], value: object, media_type: str) -> tuple[Divergence, ...]:
    """Return the findings of a body, of the media type that was given, or else the first."""
    if not bodies:
        return () if value is UNSET or value is None else (_undeclared(""),)
    chosen = _body_of(bodies, media_type)
    return (_other_type(bodies),) if chosen is None else _found(chosen, value)


def _body_of(bodies: tuple[_Ready, ...], media_type: str) -> _Ready | None:
    return next((one for one in bodies if not media_type or _fits(one.part.media_type, media_type)), None)


def _found(ready: _Ready, value: object) -> tuple[Divergence, ...]:
    """Return the findings of a value as a whole: in one pass where there are none."""
    return () if _accepted(ready.quick, value) else _read_and_told(ready, value)


def _read_and_told(ready: _Ready, value: object) -> tuple[Divergence, ...]:
    value, strange = _read(value, ready.part.location)
    return strange or _one(ready, value, "")


def _read(value: object, location: Location) -> tuple[object, tuple[Divergence, ...]]:
    """Return a value as plain JSON, with the findings of what of it is none. UNSET stays what it is."""
    return (value, ()) if value is UNSET or vouch(value) else plain(value, location)


def _accepted(quick: _Quick, value: object) -> bool:
    try:
        return few(value) and quick.accepts(value)
    except (ValueError, OverflowError):  # what the engine meets and does not know: see `values.vouch`
        return False


def _one(ready: _Ready, value: object, prefix: str) -> tuple[Divergence, ...]:
    """Return the findings of one value of plain JSON against its part."""
    part = ready.part
    if value is UNSET:
        if part.location is not Location.ARGUMENTS:
            return (_missing(part, prefix),) if part.required else ()
        value = {}
    return () if ready.valid(value) else ready.listing.of(value, prefix)


def _below(part: Part) -> str:
    return pointer("", part.name)


def _other_type(parts: Sequence[_Ready]) -> Divergence:
    expected = " or ".join(sorted({one.part.media_type for one in parts}))
    return Divergence(
        kind=Kind.WRONG_CONTENT_TYPE,
        location=parts[0].part.location,
        pointer="",
        expected=expected[:_SHOWN],
        observed="another content type",
        keyword="content",
    )


def _undeclared(where: str) -> Divergence:
    return Divergence(kind=Kind.UNDECLARED_FIELD, pointer=where, expected="absent", observed="present", denies=False)


def _twice(where: str) -> Divergence:
    return Divergence(
        kind=Kind.UNKNOWN_FIELD, pointer=where, expected="one value for a parameter or field", observed="another value"
    )


def _fits(published: str, given: str) -> bool:
    """Whether a published media type, or range of them, takes one that was given; parameters do not count."""
    ours, theirs = (text.partition(";")[0].strip().lower() for text in (published, given))
    kind, _, rest = ours.partition("/")
    return ours in {"", "*/*", theirs} or (rest == "*" and theirs.startswith(f"{kind}/"))


def _unknown() -> Divergence:
    return Divergence(
        kind=Kind.UNKNOWN_OPERATION, pointer="", expected="a published operation", observed="another name"
    )


def _missing(part: Part, where: str) -> Divergence:
    return Divergence(
        kind=Kind.MISSING_REQUIRED,
        location=part.location,
        pointer=where,
        expected="present",
        observed="absent",
        keyword="required",
        schema_pointer=part.pointer,
    )
