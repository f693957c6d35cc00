"""The checker: arguments and results against their contracts, exactly, by one engine for every form of contract."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice

from jsonschema_rs import ValidationError, Validator
from msgspec import UNSET, Struct
from msgspec.structs import replace

from theodolite.contracts.nodes import Node
from theodolite.contracts.splitting import Split, Splitter
from theodolite.core.arguments import is_mapping, is_sequence, pointer
from theodolite.core.contract import Contract, Contracts, Divergence, Kind, Location, Part, Schema
from theodolite.core.errors import ConfigError
from theodolite.core.text import brief
from theodolite.detectors.payload.compiling import Compiler
from theodolite.detectors.payload.covering import cover, cover_call
from theodolite.detectors.payload.declared import Declarations
from theodolite.detectors.payload.kinds import Path, Place, tell, unnamed
from theodolite.detectors.payload.locating import Locating, Spot
from theodolite.detectors.payload.pruning import WIDTH, Pruned, prune, windows
from theodolite.detectors.payload.values import few, plain, vouch, word

__all__ = ("MAX_ERRORS", "Checker")

MAX_ERRORS = 100
"""Findings of one call that are listed."""

_PARAMETERS = frozenset({Location.PATH, Location.QUERY, Location.HEADER, Location.COOKIE})
# Characters of a contract's own text that a finding shows.
_SHOWN = 200
# Errors that are looked through for the best of a few thousand: more are not told of anyway.
_LISTED = 4 * MAX_ERRORS
# Errors that are listed to find out whether something else would do: the engine needs some 15 us for each.
_TRIED = 4_000


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
    locating: Locating


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
        self._locating = Locating(self._compiler)
        self._operations = {name: self._operation(contract) for name, contract in contracts.contracts.items()}
        for alias, name in contracts.aliases.items():
            self._operations.setdefault(alias, self._operations[name])
        self._declarations = Declarations()
        self._try_results()

    def _operation(self, contract: Contract) -> _Operation:
        ready = [self._ready(part, contract) for part in contract.parts]
        bodies = sorted(
            [one for one in ready if one.part.location is Location.BODY], key=lambda one: _rank(one.part.media_type)
        )
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
        return _Ready(part=part, validator=validator, valid=valid, quick=quick, locating=self._locating)

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
        if operation.opaque:
            return ()
        if location is None and not media_type and _accepted(operation.quick, arguments):
            return ()
        if operation.tool is not None:
            return _read_and_told(operation.tool, arguments)
        if location is Location.BODY:
            return _body(operation.bodies, arguments, media_type)
        # Read once, before anything is looked up in it: what is no plain JSON may have code of its own.
        arguments, strange = _read(arguments, location or Location.ARGUMENTS)
        return strange or _call(operation, arguments, location, media_type)

    def observe(
        self, name: str, arguments: object, *, location: Location | None = None, media_type: str = ""
    ) -> tuple[Divergence, ...]:
        """Return what of a call its contract does not declare, though it may not forbid it (`Declarations.observe`).

        Takes what `check` takes. None of it denies, and it is no part of the check: it costs a walk in Python, about
        2 us for each value. What is no JSON is not looked at: `check` tells of it.
        """
        operation = self._operations.get(name)
        value, strange = _read(arguments, Location.ARGUMENTS)
        if operation is None or operation.opaque or strange:
            return ()
        if operation.tool is not None:
            return self._observed(operation.tool, value, "")
        if location is Location.BODY:
            return self._observed(_body_of(operation.bodies, media_type), value, "")
        given = operation.splitter.split(value)
        found = self._observed(_body_of(operation.bodies, media_type), given.body, "")
        return tuple([replace(one, pointer=given.where(one.pointer)) for one in found])

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
        published = contract.results
        for wanted in (status, f"{status[:1]}XX", "default") if status else ("", "200", "2XX", "201", "default"):
            here = [part for part in published if part.status.upper() == wanted.upper()]
            if here:
                bodies = sorted(
                    [self._ready(part, contract) for part in here], key=lambda one: _rank(one.part.media_type)
                )
                return _body(tuple(bodies), value, media_type)
        return ()


def _call(
    operation: _Operation, arguments: object, location: Location | None, media_type: str
) -> tuple[Divergence, ...]:
    """Return the findings of the parts of an operation, or of its parameters of one location."""
    if location is None:
        return _several(operation, operation.splitter.split(None if arguments is UNSET else arguments), media_type)
    given: dict[object, object] = dict(arguments) if is_mapping(arguments) else {}
    parts = [one for one in operation.parameters.values() if one.part.location is location]
    return tuple(found for one in parts for found in _one(one, given.get(one.part.name, UNSET), _below(one.part)))


def _several(operation: _Operation, given: Split, media_type: str) -> tuple[Divergence, ...]:
    """Return the findings of the parts of an operation, where they stand in the arguments."""
    found = [_undeclared(where) for where in given.unknown]
    for one in given.given:
        found.extend(_one(operation.parameters[one.part.location, one.part.name], one.value, one.pointer))
    found.extend(_missing(part, _below(part)) for part in given.absent if part.required)
    of_body = _body(operation.bodies, given.body, media_type)
    found.extend(replace(fault, pointer=given.where(fault.pointer)) for fault in of_body)
    # What denies goes first, so that the cap takes none of it.
    return tuple(sorted(found, key=lambda fault: not fault.denies)[: MAX_ERRORS + 1])


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
    return () if ready.valid(value) else _listed(ready, value, prefix)


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


def _fits(published: str, given: str) -> bool:
    """Whether a published media type, or range of them, takes one that was given; parameters do not count."""
    ours, theirs = (text.partition(";")[0].strip().lower() for text in (published, given))
    kind, _, rest = ours.partition("/")
    return ours in {"", "*/*", theirs} or (rest == "*" and theirs.startswith(f"{kind}/"))


def _rank(media_type: str) -> int:
    plain_type = media_type.partition(";")[0].strip().lower()
    if plain_type == "application/json":
        return 0
    return 1 if plain_type.endswith("+json") else 2 if plain_type.endswith("*") else 3


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


def _listed(ready: _Ready, value: object, prefix: str) -> tuple[Divergence, ...]:
    """Return the findings of a value that the validator has refused. At least one of them denies."""
    found: list[Divergence] = []
    cut = False
    for copy in windows(value):
        cut = cut or bool(copy.cuts)
        if not ready.valid(copy.value):
            if (spot := ready.locating.spot(ready.part.schema, copy.value)) is not None:
                return _spotted(ready, spot, copy, prefix)
            errors = islice((e for e in ready.validator.iter_errors(copy.value) if not copy.caused(e)), _LISTED)
            found = list(islice(tell(errors, _place(ready, copy, prefix)), MAX_ERRORS + 1))
            if found:
                break
    if not any(one.denies for one in found):
        place, first = _place(ready, Pruned(value=value, cuts={}), prefix), list(_first(ready.validator, value))
        found = list(islice(tell(first, place), MAX_ERRORS + 1))
        if not found:  # a refusal is never without a finding, whatever there is to say of it
            found = [unnamed(error, place) for error in first] or [_refused(ready.part, prefix)]
    if cut or len(found) > MAX_ERRORS:
        found = [*found[:MAX_ERRORS], _more(ready.part, prefix)]
    return tuple(found)


def _spotted(ready: _Ready, spot: Spot, copy: Pruned, prefix: str) -> tuple[Divergence, ...]:
    """Return the findings at one place of a value, or that nothing that is declared there accepts it."""
    for key in copy.original(spot.path):
        prefix = pointer(prefix, key)
    if spot.validator is not None:
        part = replace(ready.part, schema=spot.schema, pointer="")
        there = replace(ready, part=part, validator=spot.validator, valid=spot.validator.is_valid)
        return _listed(there, spot.value, prefix)
    return (
        Divergence(
            kind=Kind.UNION_NO_MATCH,
            location=ready.part.location,
            pointer=prefix,
            expected="one of what is declared here",
            observed=word(spot.value),
            schema_pointer=ready.part.pointer,
        ),
    )


def _first(validator: Validator, value: object) -> Iterator[ValidationError]:
    """Yield the first error alone: the engine lists all errors before it gives one away."""
    try:
        validator.validate(value)
    except ValidationError as error:
        yield error


def _refused(part: Part, prefix: str) -> Divergence:
    return Divergence(
        kind=Kind.CONTRACT_ERROR,
        location=part.location,
        pointer=prefix,
        expected="what the contract accepts",
        observed="something else",
        schema_pointer=part.pointer,
    )


def _more(part: Part, prefix: str) -> Divergence:
    """Return what says that not everything was listed."""
    return Divergence(
        kind=Kind.TOO_LARGE,
        location=part.location,
        pointer=prefix,
        expected=f"at most {MAX_ERRORS} findings, of {WIDTH} entries each",
        observed="perhaps more",
        denies=False,
    )


def _place(ready: _Ready, copy: Pruned, prefix: str) -> Place:
    part, validator = ready.part, ready.validator
    room = [_TRIED]

    def fits(path: Path, other: object) -> bool:
        if room[0] < 0:
            return False
        start = prune(other, most=WIDTH)
        whole = _replaced(copy.value, path, start.value)
        if not ready.locating.lists(part.schema, whole):
            return ready.valid(whole)
        errors = list(validator.iter_errors(whole))
        room[0] -= len(errors)
        here = [error for error in errors if tuple(error.instance_path[: len(path)]) == path]
        return all(start.caused(error, path) for error in here)

    reference = part.schema.get("$ref") if isinstance(part.schema, Mapping) else None
    below = isinstance(reference, str) and "#/" in reference
    return Place(
        value=copy.value,
        fits=fits,
        original=copy.original,
        location=part.location,
        prefix=prefix,
        origin="" if below else part.pointer,
    )


def _replaced(value: object, path: Path, other: object) -> object:
    """Return a value with another one at a path; what is on the way there is copied, the rest shared."""
    if not path:
        return other
    key, below = path[0], path[1:]
    if is_mapping(value):
        return {**value, key: _replaced(value.get(key), below, other)}
    if is_sequence(value) and isinstance(key, int):
        return [*value[:key], _replaced(value[key], below, other), *value[key + 1 :]]
    return value
