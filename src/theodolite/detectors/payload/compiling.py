"""Schemas into validators of the engine: what is wrong with one is told here, and not at the first call."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import urldefrag

import msgspec
from jsonschema_rs import (
    FancyRegexOptions,
    ReferencingError,
    RegexOptions,
    Registry,
    ValidationError,
    ValidationErrorKind,
    Validator,
    validator_for,
)

from theodolite.contracts.document import show
from theodolite.core.arguments import is_mapping, is_sequence, pointer
from theodolite.core.contract import Schema
from theodolite.core.errors import ConfigError
from theodolite.detectors.payload.branching import MAX_WAYS, Branching

__all__ = ("Compiler",)

# Steps back that a pattern with look-around may take on one text: 0.2 ms at most. The engine's own limit is 1,000,000.
BACKTRACK_LIMIT = 10_000


class Compiler:
    """Makes the validators of the schemas of one set of documents; equal schemas share one. Fetches nothing, ever.

    Patterns are matched in linear time. Where one needs look-around or a back-reference, the validator that it belongs
    to matches with a limit on the steps back; what goes beyond it is a finding of its own.
    """

    def __init__(self, documents: Mapping[str, object], *, formats: bool = False) -> None:
        self._formats = formats
        self.documents = documents
        self._made: dict[bytes, Validator] = {}
        try:
            self._registry = Registry([(uri, _held(document)) for uri, document in documents.items()])
        except (ValueError, ReferencingError) as error:
            raise ConfigError(f"the documents of the contracts cannot be read: {show(str(error))}") from error
        self.branching = Branching(self._registry, documents)

    def compile(self, schema: Schema, *, where: str, what: str) -> Validator:
        """Return the validator of a schema that stands at the pointer `where` and belongs to `what`.

        Raises ConfigError with the pointer of what is wrong: a type or pattern that is none, a reference that leads
        nowhere or out of the documents; and of a schema with more ways than the engine can go (`Branching`).
        """
        if self.branching.excessive(schema):
            raise ConfigError(
                f"{what}: what the schema at {show(where)} leads to holds more than {MAX_WAYS:,} schemas against one "
                "value, each counted as often as $ref, allOf, anyOf, oneOf, not, if, then and else come to it, or "
                "leads on from one to the next more than 40 times, or back to itself in more ways than can be counted: "
                "no check of it would end; name each once"
            )
        return self.compile_own(schema, where=where, what=what)

    def compile_own(self, schema: Schema, *, where: str = "", what: str = "a schema of ours") -> Validator:
        """Return the validator of a schema that is made of such as were compiled before, and has no more ways."""
        key = hashlib.sha256(msgspec.json.encode(schema)).digest()
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = self._compiled(schema, where, what)
        return made

    def takes(self, schemas: Sequence[Schema]) -> bool:
        """Whether all of some schemas can be compiled, in a fifth of the time that it takes to compile each."""
        if any(map(self.branching.excessive, schemas)):
            return False
        # A document as a whole is looked at as a schema only where it is started from.
        whole = [schema for schema in schemas if self._entry(schema)[1] is not None]
        try:
            for schema in (*whole, {"anyOf": list(schemas) or [True]}):
                self._validator(schema, FancyRegexOptions(backtrack_limit=BACKTRACK_LIMIT))
        except (ValueError, ReferencingError):
            return False
        return True

    def _compiled(self, schema: Schema, where: str, what: str) -> Validator:
        try:
            return self._validator(schema, RegexOptions())
        except (ValueError, ReferencingError):
            pass  # a pattern that has no linear form, or a fault that comes again
        try:
            return self._validator(schema, FancyRegexOptions(backtrack_limit=BACKTRACK_LIMIT))
        except ValidationError as error:
            raise self._fault(error, schema, where, what) from error
        except (ValueError, ReferencingError) as error:
            raise ConfigError(f"{what}: the schema at {show(where)} is none: {show(str(error))}") from error

    def _validator(self, schema: Schema, patterns: RegexOptions | FancyRegexOptions) -> Validator:
        entry, base = self._entry(schema)
        return validator_for(
            entry,
            base_uri=base,
            offline=True,
            registry=self._registry,
            pattern_options=patterns,
            validate_formats=self._formats,
            mask="a value",  # what is never shown is not copied into messages either: a third of the time
        )

    def _entry(self, schema: Schema) -> tuple[dict[str, object] | bool, str | None]:
        """Return the schema to start from: the document itself where one as a whole is meant.

        The engine takes the draft of where it starts for that of the metaschemas that it knows.
        """
        if isinstance(schema, bool):
            return schema, None
        reference = schema.get("$ref")
        document = self.documents.get(reference) if isinstance(reference, str) and len(schema) == 1 else None
        return (_held(document), str(reference)) if is_mapping(document) else (dict(schema), None)

    def _fault(self, error: ValidationError, schema: Schema, where: str, what: str) -> ConfigError:
        if isinstance(error.kind, ValidationErrorKind.Referencing):
            at, reference = next(self._lost(schema, where), (where, ""))
            return ConfigError(
                f"{what}: the reference '{show(reference)}' at {show(at)} leads nowhere in the document: "
                "nothing is ever fetched, so put what it names into the document"
            )
        path = tuple(error.instance_path)
        at = where if _leads(self._entry(schema)[0], path) else ""
        for key in path:
            at = pointer(at, key)
        if isinstance(error.kind, ValidationErrorKind.Format):
            return ConfigError(f"{what}: the pattern at {show(at)} is no regular expression that the engine knows")
        return ConfigError(f"{what}: at {show(at)} stands no JSON Schema: {show(error.message)}")

    def _lost(self, schema: object, where: str) -> Iterator[tuple[str, str]]:
        """Yield the references that lead nowhere, with their pointers: of the schema, then of what it leads to."""
        todo: list[tuple[str, str, object]] = [("", where, schema)]
        seen: set[str] = set()
        while todo:
            base, at, one = todo.pop()
            for place, reference in _references(one, at):
                if (key := f"{base}\n{reference}") in seen:
                    continue
                seen.add(key)
                try:
                    found = self._registry.resolver(base).lookup(reference)
                except (ValueError, ReferencingError):
                    yield place, reference
                    continue
                uri, fragment = urldefrag(reference)
                todo.append((uri or base, fragment, found.contents))


def _held(document: object) -> dict[str, object]:
    if is_mapping(document):
        return {str(key): value for key, value in document.items()}
    raise ConfigError("a document of contracts must be a JSON object")


def _references(schema: object, at: str) -> Iterator[tuple[str, str]]:
    todo: list[tuple[object, str]] = [(schema, at)]
    while todo:
        one, where = todo.pop()
        if is_mapping(one):
            for key, item in one.items():
                if key in {"$ref", "$dynamicRef"} and isinstance(item, str):
                    yield pointer(where, str(key)), item
                else:
                    todo.append((item, pointer(where, str(key))))
        elif is_sequence(one):
            todo.extend((item, pointer(where, place)) for place, item in enumerate(one))


def _leads(schema: object, path: tuple[str | int, ...]) -> bool:
    """Whether a path leads somewhere in a schema, and so is not one in another document."""
    for key in path:
        if is_mapping(schema):
            schema = schema.get(key)
        elif is_sequence(schema) and isinstance(key, int) and key < len(schema):
            schema = schema[key]
        else:
            return False
    return schema is not None
