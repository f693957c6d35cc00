"""The checker: arguments and results against their contracts, exactly, by one engine for every form of contract."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice

from jsonschema_rs import ValidationError, Validator
from msgspec import UNSET, Struct

from theodolite.core.arguments import is_mapping, is_sequence, pointer
from theodolite.core.contract import Contract, Contracts, Divergence, Kind, Location, Part
from theodolite.core.errors import ConfigError
from theodolite.detectors.payload.compiling import Compiler
from theodolite.detectors.payload.kinds import Path, Place, tell
from theodolite.detectors.payload.pruning import Pruned, windows
from theodolite.detectors.payload.values import plain, vouch

__all__ = ("MAX_ERRORS", "Checker")

MAX_ERRORS = 100
"""Findings of one call that are listed."""

# Where the arguments as they were given are the value: the rest are parameters, one by one.
_WHOLE = frozenset({Location.ARGUMENTS, Location.BODY, Location.RESULT})
# Errors that are looked through for the best of a few thousand: more are not told of anyway.
_LISTED = 4 * MAX_ERRORS


class _Ready(Struct, frozen=True):
    """A part with its validator; `valid` is the validator's own method, which saves a look-up."""

    part: Part
    validator: Validator
    valid: Callable[[object], bool]


class Checker:
    """Checks calls and results against contracts.

    All schemas are compiled here: a contract that cannot be checked is a ConfigError now (see `Compiler.compile`), with
    the pointer, and not at the first call. It may be shared by threads. `formats` makes a mismatch of a `format` deny.
    Without it `check` does not look at formats: JSON Schema 2020-12 (validation, section 7.2.1) makes them annotations,
    and OpenAPI leaves the list of them open, so that values that servers take would be refused.

    Cost of `check` for a valid call: that of the engine alone, and some 25 ns for each value in it (`values.vouch`).

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
        self._parts: dict[str, tuple[_Ready, ...]] = {}
        self._only: dict[str, _Ready] = {}
        for name, contract in contracts.contracts.items():
            parts = self._parts[name] = tuple([self._ready(part, contract) for part in contract.parts])
            if len(parts) == 1 and parts[0].part.location in _WHOLE:
                self._only[name] = parts[0]
        for alias, name in contracts.aliases.items():
            if alias not in contracts.contracts and name in self._only:
                self._only[alias] = self._only[name]
        self._try_results()

    def _try_results(self) -> None:
        """Compile the schemas of all results as one, which takes a fifth of the time; each again when it is used."""
        results = [(part, contract) for contract in self.contracts.contracts.values() for part in contract.results]
        if not results:
            return
        try:
            self._compiler.compile({"anyOf": [part.schema for part, _ in results]}, where="", what="the results")
        except ConfigError:
            for part, contract in results:  # which of them it was
                self._ready(part, contract)
            raise

    def _ready(self, part: Part, contract: Contract) -> _Ready:
        what = f"the {part.location} of {contract.name!r}"
        validator = self._compiler.compile(part.schema, where=part.pointer, what=what)
        return _Ready(part, validator, validator.is_valid)

    def check(
        self, name: str, arguments: object, *, location: Location | None = None, media_type: str = ""
    ) -> tuple[Divergence, ...]:
        """Return where a call diverges from its contract; nothing where it does not.

        `arguments` are those of the whole call, split among the parts of an operation; with a `location` they are what
        goes there, such as the body alone. UNSET stands for none at all, None for null. `media_type` is that of the body
        where several are published; the first JSON one else. Raises nothing for any arguments.

        At most 100 findings that deny, and then one that says so. Of arrays and objects with more than 500 entries the
        first faulty stretch is listed.
        """
        only = self._only.get(name)
        if only is not None and location in {None, only.part.location} and not media_type:
            if vouch(arguments) and only.valid(arguments):
                return ()
            return self._one(only, arguments)
        contract = self.contracts.find(name)
        if contract is None:
            return (_unknown(),)
        parts = self._chosen(self._parts[contract.name], media_type)
        if isinstance(parts, Divergence):
            return (parts,)
        if location is not None:
            parts = [ready for ready in parts if ready.part.location is location]
            if location in _WHOLE:
                return tuple(found for ready in parts for found in self._one(ready, arguments))
        return self._several(parts, arguments)

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
                parts = self._chosen(tuple([self._ready(part, contract) for part in here]), media_type)
                return (parts,) if isinstance(parts, Divergence) else self._one(parts[0], value)
        return ()

    def _chosen(self, parts: tuple[_Ready, ...], media_type: str) -> list[_Ready] | Divergence:
        """Return the parts with one body among them: that of the media type, else the first that is JSON."""
        whole = [ready for ready in parts if ready.part.location in _WHOLE]
        if not media_type and len(whole) < 2:  # noqa: PLR2004 - there is nothing to choose from
            return list(parts)
        fitting = [ready for ready in whole if _fits(ready.part.media_type, media_type)]
        if media_type and whole and not fitting:
            expected = " or ".join(sorted({ready.part.media_type for ready in whole}))
            return Divergence(
                kind=Kind.WRONG_CONTENT_TYPE,
                location=whole[0].part.location,
                pointer="",
                expected=expected[:200],
                observed="another content type",
                keyword="content",
            )
        chosen = min(fitting or whole, key=lambda ready: _rank(ready.part.media_type)) if whole else None
        return [ready for ready in parts if ready is chosen or ready.part.location not in _WHOLE]

    def _several(self, parts: list[_Ready], arguments: object) -> tuple[Divergence, ...]:
        """Return the findings of the parts of an operation."""
        given, strange = (arguments, ()) if vouch(arguments) else plain(arguments)
        if strange:
            return strange
        found: list[Divergence] = []
        values = dict(given) if is_mapping(given) else {}
        body = None
        for ready in parts:
            part = ready.part
            if part.location in _WHOLE:
                body = ready
            elif part.name in values:
                found.extend(self._one(ready, values.pop(part.name), f"/{part.name}"))
            elif part.required:
                found.append(_missing(part, pointer("", part.name)))
        if body is not None:
            rest = values if is_mapping(given) else given
            found.extend(self._one(body, rest))
        return tuple(found[:MAX_ERRORS])

    def _one(self, ready: _Ready, value: object, prefix: str = "") -> tuple[Divergence, ...]:
        """Return the findings of one value against its part."""
        part = ready.part
        if value is UNSET:
            if part.location is not Location.ARGUMENTS:
                return (_missing(part, prefix),) if part.required else ()
            value = {}
        if not vouch(value):
            value, strange = plain(value, part.location)
            if strange:
                return strange
        if ready.valid(value):
            return ()
        return _listed(ready, value, prefix)


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
            errors = islice((e for e in ready.validator.iter_errors(copy.value) if not copy.caused(e)), _LISTED)
            found = list(islice(tell(errors, _place(ready, copy, prefix)), MAX_ERRORS + 1))
            if found:
                break
    if not found:
        whole = Pruned(value=value, cuts={})
        found = list(islice(tell(_first(ready.validator, value), _place(ready, whole, prefix)), MAX_ERRORS + 1))
    if cut or len(found) > MAX_ERRORS:
        found = [*found[:MAX_ERRORS], _more(ready.part, prefix)]
    return tuple(found)


def _first(validator: Validator, value: object) -> Iterator[ValidationError]:
    """Yield the first error alone: the engine lists all errors before it gives one away."""
    try:
        validator.validate(value)
    except ValidationError as error:
        yield error


def _more(part: Part, prefix: str) -> Divergence:
    """Return what says that not everything was listed."""
    return Divergence(
        kind=Kind.TOO_LARGE,
        location=part.location,
        pointer=prefix,
        expected=f"at most {MAX_ERRORS} findings, of {500} entries",
        observed="perhaps more",
        denies=False,
    )


def _place(ready: _Ready, copy: Pruned, prefix: str) -> Place:
    part, validator = ready.part, ready.validator

    def fits(path: Path, other: object) -> bool:
        errors = validator.iter_errors(_replaced(copy.value, path, other))
        return not any(tuple(error.instance_path[: len(path)]) == path for error in errors)

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
