"""What the guard promises for any input at all: functions of bytes that raise where it is not so, and first inputs.

Nothing here needs a fuzzer: `fuzz_payload.py` gives these functions to one.
"""

from __future__ import annotations

import datetime as dt
import decimal
import json
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Protocol

import msgspec

from theodolite.contracts import read
from theodolite.contracts.document import is_list, is_object
from theodolite.core.contract import Contract, Divergence, Kind, Location
from theodolite.core.errors import ConfigError
from theodolite.core.text import encodable
from theodolite.detectors.payload.answering import message
from theodolite.detectors.payload.engine import Checker
from theodolite.detectors.payload.listing import MAX_ERRORS
from theodolite.detectors.payload.repair import apply, plan
from theodolite.readers.specification import parse

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT))  # the documents, and the values for them, are those of the tests

from tests.quality.payload.bodies import Fill, Unsatisfiable, write  # noqa: E402
from tests.quality.payload.published import Document, Json  # noqa: E402

__all__ = ("TARGETS", "BrokenError", "Caller", "Loader")

DOCUMENTS = ROOT / "tests" / "quality" / "payload" / "documents"
SECRET = "secret-value-of-the-call"  # noqa: S105 - it stands for one
"""Stands in values of calls alone, never in a name: it may be in nothing that the guard says."""

_LONGEST = 4_000
_APART = re.compile(r'"(?:pattern|patternProperties|format|dependencies|id|\$schema|\$recursiveRef|\$id|multipleOf)"')
_NOWHERE: type[Exception] = import_module("referencing").exceptions.Unresolvable
_ODD = (_NOWHERE, AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError, re.error)
_VALUES: tuple[Json, ...] = ({}, {"a": 1}, {"a": "x", "b": 2}, {"x": None}, {"name": {"a": [1, "x", {}]}})


def _cycle() -> object:
    value: list[object] = []
    value.append({"again": value})
    return value


def _deep(levels: int) -> object:
    value: list[object] = []
    for _ in range(levels):
        value = [value]
    return value


_FOREIGN: Mapping[str, Callable[[], object]] = {
    "cycle": _cycle,
    "nan": lambda: math.nan,
    "infinity": lambda: math.inf,
    "bytes": lambda: b"x",
    "date": lambda: dt.date(2026, 1, 2),
    "decimal": lambda: decimal.Decimal("1.5"),
    "set": lambda: {1},
    "tuple": lambda: (1, 2),
    "surrogate": lambda: "\ud800",
    "key": lambda: {1: 2},
    "object": object,
    "huge": lambda: 10**5000,
    "unset": lambda: msgspec.UNSET,
    "deep": lambda: _deep(100_000),
    "wide": lambda: [None] * 20_000,
    "long": lambda: "a" * 1_000_000,
}


class Check(Protocol):
    """The guard, or what a test puts in its place."""

    def __call__(
        self, checker: Checker, name: str, arguments: object, /, *, location: Location | None = None
    ) -> tuple[Divergence, ...]: ...


class BrokenError(Exception):
    """The guard does not do what it says."""


class Loader:
    """Bytes of any kind as a published document: contracts that can be called, or a ConfigError that can be read."""

    name = "loader"

    def __init__(self, *, planted: bool) -> None:
        self._planted = planted

    def seeds(self) -> Iterator[bytes]:
        """Yield the documents, as written and operation by operation."""
        for file in sorted(DOCUMENTS.iterdir()):
            yield file.read_bytes()
        for root in _documents().values():
            yield from map(msgspec.json.encode, _parts(root))

    def __call__(self, data: bytes) -> None:
        """Load, and call everything that was loaded with a few arguments."""
        try:
            document = parse(data).document
            if self._planted:
                _stumble(document)
            contracts = read(document if is_object(document) or is_list(document) else [document])
            checker = Checker(contracts)
        except ConfigError as error:
            text = str(error)
            if not text or len(text) > _LONGEST or not encodable(text):
                raise BrokenError(f"a message that cannot be written: {text[:200]!r}") from error
            return
        for name in list(contracts.contracts)[:8]:
            for arguments in (None, {}, [], "x", {"id": 1, "body": {"name": None}}, [{"a": [1, "b", None]}]):
                _sane(checker.check(name, arguments))
                _sane(checker.observe(name, arguments))
            checker.check_result(name, {"a": 1}, status="200")
        again: Json = msgspec.json.decode(msgspec.json.encode(document))
        for name, schema in list(_tools(again))[:4]:
            if name in contracts.contracts:
                _agree(checker, name, schema)


class Caller:
    """Arguments of any kind for a few documents: findings that hold no value of the call, or none.

    An input is JSON: the number of a document, of an operation, of a location, and arguments, in which {"$py": name}
    stands for what JSON has not.
    """

    name = "checker"

    def __init__(self, *, planted: bool, check: Check = Checker.check) -> None:
        self._planted = planted
        self._check = check
        self._roots = list(_documents().values())
        self._checkers = [Checker(read(root)) for root in self._roots]
        self.names = [sorted(checker.contracts.contracts) for checker in self._checkers]
        self._judges = _judges(self._roots)

    def seeds(self) -> Iterator[bytes]:
        """Yield calls that are valid, or nearly so, of each operation."""
        for number, root in enumerate(self._roots):
            for operation, name in enumerate(self.names[number]):
                for arguments in _calls(root, name):
                    yield json.dumps({"d": number, "o": operation, "l": 0, "a": arguments}).encode()
        for foreign in _FOREIGN:
            yield json.dumps({"d": 0, "o": 0, "l": 1, "a": {"text": {"$py": foreign}, "x": [SECRET]}}).encode()

    def __call__(self, data: bytes) -> None:
        """Check one call, its repair, and what is said of it."""
        try:
            given: object = json.loads(data)
        except (ValueError, RecursionError):
            return
        if not is_object(given):
            return
        number = _index(given.get("d"), len(self._checkers))
        checker, names = self._checkers[number], self.names[number]
        name = names[_index(given.get("o"), len(names))]
        arguments = _revived(given.get("a"), 0)
        location = (None, Location.BODY, Location.QUERY)[_index(given.get("l"), 3)]
        found = self._check(checker, name, arguments, location=location)
        _sane(found)
        _sane(checker.observe(name, arguments, location=location))
        if self._planted:
            _trip({one.kind for one in found})
        wrong = any(one.denies for one in found)
        if location is None:
            self._repaired(checker, checker.contracts.contracts[name], arguments)
            judge = self._judges.get((number, name))
            if judge is not None and _plain(arguments, 0) and judge.is_valid(arguments) is wrong:
                raise BrokenError(f"{name}: jsonschema says otherwise of {json.dumps(arguments)[:300]}")
        told = message(found)
        if len(told) > _LONGEST:
            raise BrokenError("a message without an end")
        if SECRET in f"{found!r}{told}" and not _in_a_name(arguments, 0):
            raise BrokenError("a value of the call is told")

    def _repaired(self, checker: Checker, contract: Contract, arguments: object) -> None:
        def fits(value: object) -> bool:
            return not any(one.denies for one in checker.check(contract.name, value))

        offered = plan(contract, checker.contracts.documents, arguments, fits)
        if offered is not None and not fits(apply(offered, arguments)):
            raise BrokenError("a repair that does not repair")


TARGETS: tuple[type[Loader | Caller], ...] = (Loader, Caller)


class _Judge(Protocol):
    def is_valid(self, instance: object) -> bool: ...


def _judges(roots: list[Json]) -> dict[tuple[int, str], _Judge]:
    """Return another validator for each tool: those of JSON Schemas alone are judged by python-jsonschema."""
    make = import_module("jsonschema").validators.validator_for
    found: dict[tuple[int, str], _Judge] = {}
    for number, root in enumerate(roots):
        for name, schema in _tools(root):
            found[number, name] = make(schema, default=import_module("jsonschema").Draft202012Validator)(schema)
    return found


def _agree(checker: Checker, name: str, schema: dict[str, Json]) -> None:
    """Raise where python-jsonschema judges a value of a tool otherwise, whatever became of its schema.

    Left out is what it does not mean alike: patterns (of Python), formats, keywords of other drafts, large numbers, and
    schemas that are none.
    """
    if not _plain(schema, 0) or _APART.search(json.dumps(schema)):
        return
    library = import_module("jsonschema")
    make = library.validators.validator_for(schema, default=library.Draft202012Validator)
    try:
        make.check_schema(schema)
        judge: _Judge = make(schema)
        values = [*_VALUES, *_values(Document(name, schema), schema)]
        verdicts = [judge.is_valid(value) for value in values]
    except (library.exceptions.SchemaError, library.exceptions.UnknownType, *_ODD):
        return  # no schema, or one that leads nowhere or has no end
    for value, allowed in zip(values, verdicts, strict=True):
        if allowed is any(one.denies for one in checker.check(name, value)):
            raise BrokenError(f"{name}: jsonschema says {allowed} of {json.dumps(value)[:300]}")


def _tools(root: Json) -> Iterator[tuple[str, dict[str, Json]]]:
    entries = root.get("tools", []) if isinstance(root, dict) else root
    for entry in entries if isinstance(entries, list) else []:
        tool = entry.get("function", entry) if isinstance(entry, dict) else None
        if isinstance(tool, dict):
            schemas = [tool[key] for key in ("inputSchema", "parameters", "input_schema") if key in tool]
            if len(schemas) == 1 and isinstance(schemas[0], dict):
                yield str(tool.get("name")), schemas[0]


def _documents() -> dict[str, Json]:
    return {file.name: msgspec.yaml.decode(file.read_bytes()) for file in sorted(DOCUMENTS.iterdir())}


def _parts(root: Json) -> Iterator[Json]:
    """Yield a document with one path at a time, or a list with one tool."""
    if isinstance(root, list):
        for entry in root:
            yield [entry]
    elif isinstance(root, dict):
        for key in ("paths", "tools"):
            inner = root.get(key)
            if isinstance(inner, dict):
                for path, entry in inner.items():
                    one: dict[str, Json] = {path: entry}
                    yield {**root, key: one}
            elif isinstance(inner, list):
                for entry in inner:
                    tools: list[Json] = [entry]
                    yield {key: tools}


def _calls(root: Json, name: str) -> Iterator[Json]:
    for tool, schema in _tools(root):
        if tool == name:
            yield from _values(Document(name, schema), schema)
    if isinstance(root, dict) and "paths" in root:
        document = Document(name, root)
        for operation in document.operations():
            for body in operation.bodies if operation.name == name else ():
                for value in _values(document, body.schema):
                    yield value
                    places: dict[str, Json] = {"body": value, "path": {}, "query": {}}
                    for parameter in operation.parameters:
                        given = places.setdefault(parameter.location, {})
                        if isinstance(given, dict):
                            given[parameter.name] = next(_values(document, parameter.schema), None)
                    yield places


def _values(document: Document, schema: Json) -> Iterator[Json]:
    for fill in (Fill(0, 0), Fill(1, 2), Fill(0.6, 4)):
        for attempt in range(4):
            try:
                yield write(document, schema, str(attempt), fill).value
            except Unsatisfiable:
                continue
            break


def _sane(found: tuple[Divergence, ...]) -> None:
    if len(found) > MAX_ERRORS + 1:
        raise BrokenError(f"{len(found)} findings")
    for one in found:
        if one.pointer and not one.pointer.startswith("/"):
            raise BrokenError(f"no pointer: {one.pointer[:200]!r}")
        if not encodable(f"{one.pointer}{one.expected}{one.observed}"):
            raise BrokenError(f"what was found cannot be written: {one!r}")


def _stumble(document: object) -> None:
    """Break where a schema has a boolean bound beside a length: the planted fault of the loader."""
    stack: list[object] = [document]
    while stack:
        node = stack.pop()
        if is_object(node):
            if "exclusiveMaximum" in node:
                _bounded(node)
            stack.extend(node.values())
        elif is_list(node):
            stack.extend(node)


def _trip(kinds: set[Kind]) -> None:
    """Break where two kinds come together: the planted fault of the checker."""
    if Kind.DEPENDENCY_MISSING in kinds:
        both = Kind.TYPE_MISMATCH in kinds
        if both:
            raise ZeroDivisionError("planted")


def _bounded(node: dict[str, object]) -> None:
    """One step after the other, so that whoever sees what is reached comes closer."""
    if "minLength" in node:
        bound = node["exclusiveMaximum"]
        if isinstance(bound, bool):
            raise ZeroDivisionError("planted")


def _index(value: object, count: int) -> int:
    return value % count if isinstance(value, int) and not isinstance(value, bool) else 0


def _revived(value: object, depth: int) -> object:
    """Return arguments with what stands for Python's own values put in."""
    if is_object(value):
        name = value.get("$py")
        if isinstance(name, str) and name in _FOREIGN:
            return _FOREIGN[name]()
        return {key: _revived(entry, depth + 1) for key, entry in value.items()}
    return [_revived(entry, depth + 1) for entry in value] if is_list(value) else value


def _plain(value: object, depth: int) -> bool:
    """Whether it is JSON that every validator reads alike: finite, not deep, numbers that a float holds exactly."""
    if depth > 40:
        return False
    if is_object(value):
        return all(type(key) is str and _plain(entry, depth + 1) for key, entry in value.items())
    if is_list(value):
        return len(value) < 500 and all(_plain(entry, depth + 1) for entry in value)
    return _plain_one(value)


def _plain_one(value: object) -> bool:
    if isinstance(value, str):
        return len(value) < 10_000 and encodable(value)
    if isinstance(value, float):
        return math.isfinite(value) and abs(value) < 2**40 and (value * 1024).is_integer()
    return value is None or (isinstance(value, int) and abs(value) < 2**40)


def _in_a_name(value: object, depth: int) -> bool:
    if depth > 200:
        return True
    if is_object(value):
        return any(SECRET in str(key) or _in_a_name(entry, depth + 1) for key, entry in value.items())
    return is_list(value) and any(_in_a_name(entry, depth + 1) for entry in value)
