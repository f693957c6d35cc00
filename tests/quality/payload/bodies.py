"""Values that a schema allows, written from the schema as published: by a seed, sparse or full, never endless."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from random import Random
from types import MappingProxyType
from typing import NamedTuple

from tests.quality.payload.published import Document, Json, elements, members, token

__all__ = ("Fill", "Unsatisfiable", "Written", "write")

_DEEPEST = 24  # levels below where optional properties end: a schema that requires more has no finite value
_FORMATS = MappingProxyType({
    "date-time": "2026-01-02T03:04:05Z", "date": "2026-01-02", "time": "03:04:05Z", "uri": "https://example.org/a",
    "url": "https://example.org/a", "uri-reference": "/a", "email": "a@example.org", "hostname": "example.org",
    "ipv4": "192.0.2.1", "ipv6": "2001:db8::1", "uuid": "2f1d5c1e-6b0a-4c8e-9a53-0d6a7f1b2c3d", "byte": "YWJj",
    "int-or-string": "http", "json": "{}", "duration": "P1D", "regex": "a", "repo.nwo": "a/b", "binary": "abc",
})  # fmt: skip
# Tried in turn where a pattern has to match; a text of hexadecimal digits of a due length comes after them.
_TEXTS = (
    "a", "A", "abc", "1", "12", "0.1.0", "1.2.3", "a-b", "a_b", "a.b", "a/b", "YWJj", "#a1b2c3", "a1b2c3",
    "https://example.org/a", "http://example.org", "/a", "refs/heads/a", "pkg:npm/a@1.0.0", "ssh-rsa AAAA",
    "sha256:" + "0a" * 32, "0a" * 20, "0a" * 32, "a@example.org", "2026-01-02", "2026-01-02T03:04:05Z", "en", "en-US",
    "EUR", "+15551234567", "192.0.2.1", "AC" + "0a" * 16, "{}", "10Gi", '"a"', "1h", "P1D", "*", "a=b", "ab:cd",
)  # fmt: skip
_NAMES = ("key-0", "key-1", "key-2")
_HINTS = (
    ("object", ("properties", "required", "additionalProperties", "patternProperties", "minProperties", "propertyNames",
                "dependentRequired", "dependentSchemas", "unevaluatedProperties")),
    ("array", ("items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains", "unevaluatedItems")),
    ("number", ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")),
)  # fmt: skip

Flat = tuple[dict[str, Json], ...]


class Unsatisfiable(Exception):  # noqa: N818 - it says what the schema is, and is no fault
    """This way through the schema leads to no value."""


class Fill(NamedTuple):
    """How much of what is optional is written: the share of properties, down to which depth."""

    share: float
    depth: int


class Written(NamedTuple):
    """A value; which schemas apply where in it, by pointer; what only responses have, as what it would be there."""

    value: Json
    rules: Mapping[str, Flat]
    read_only: Mapping[str, Mapping[str, Json]]


def write(document: Document, schema: Json, seed: str, fill: Fill) -> Written:
    """Return a value that the schema probably allows. The same seed gives the same. Raises Unsatisfiable."""
    writer = _Writer(document, seed, fill.share)
    value = writer.value(writer.flat(schema), "", fill.depth)
    return Written(value, writer.rules, writer.read_only)


class _Writer:
    def __init__(self, document: Document, seed: str, share: float) -> None:
        self.document = document
        self.dice = Random(seed)  # noqa: S311 - test data
        self.share = share
        self.rules: dict[str, Flat] = {}
        self.read_only: dict[str, dict[str, Json]] = {}

    def flat(self, schema: Json, depth: int = 0) -> Flat:
        """Return all that applies at a place, `$ref`s followed, one branch of each union taken."""
        if schema is False or depth > _DEEPEST:
            raise Unsatisfiable
        if not isinstance(schema, dict):
            return ()
        reference = schema.get("$ref", schema.get("$dynamicRef"))
        if isinstance(reference, str):
            target, _ = self.document.followed({"$ref": reference}, "")
            kept = () if self.document.legacy else (key for key in schema if key not in {"$ref", "$dynamicRef"})
            rest: Json = {key: schema[key] for key in kept}
            return (*self.flat(target, depth + 1), *(self.flat(rest, depth + 1) if rest else ()))
        found: list[dict[str, Json]] = [schema]
        for member in elements(schema.get("allOf")):
            found += self.flat(member, depth + 1)
        for union in ("oneOf", "anyOf"):
            if branches := elements(schema.get(union)):
                branch = self.dice.choice(branches)
                found += [*self.flat(branch, depth + 1), *_discriminated(schema, branch)]
        if "if" in schema:
            taken = ("if", "then") if self.dice.random() < 0.5 else ("else",)
            for key in taken:
                found += self.flat(schema.get(key), depth + 1)
        return tuple(found)

    def value(self, flat: Flat, pointer: str, depth: int) -> Json:
        """Return a value for a place, and note what applies there."""
        if depth < -_DEEPEST:
            raise Unsatisfiable
        self.rules[pointer] = flat
        for schema in flat:
            if "const" in schema:
                return schema["const"]
        if (options := _options(flat)) is not None:
            return self.dice.choice(options)
        kind = self._kind(flat)
        if kind in {"object", "array"}:
            return (self._object if kind == "object" else self._array)(flat, pointer, depth)
        if kind in {"integer", "number"}:
            return self._number(flat, whole=kind == "integer")
        if kind in {"boolean", "null"}:
            return self.dice.random() < 0.5 if kind == "boolean" else None
        return self._text(flat)

    def _kind(self, flat: Flat) -> str:
        allowed: list[str] | None = None
        for schema in flat:
            kinds = schema.get("type")
            if isinstance(kinds, str | list):
                own = [kinds] if isinstance(kinds, str) else [str(kind) for kind in kinds if kind != "null"] or ["null"]
                if "number" in own:
                    own.append("integer")
                allowed = own if allowed is None else [kind for kind in allowed if kind in own]
        if allowed is not None:
            if not allowed:
                raise Unsatisfiable
            return allowed[0] if len(allowed) == 1 or "integer" in allowed else self.dice.choice(allowed)
        for kind, keywords in _HINTS:
            if any(keyword in schema for schema in flat for keyword in keywords):
                return kind
        return "string"

    def _object(self, flat: Flat, pointer: str, depth: int) -> Json:
        declared: dict[str, list[Json]] = {}
        for schema in flat:
            for name, entry in members(schema.get("properties")):
                declared.setdefault(name, []).append(entry)
        required = {name for schema in flat for name in elements(schema.get("required")) if isinstance(name, str)}
        found: dict[str, Json] = {}
        for name, entries in declared.items():
            below = f"{pointer}/{token(name)}"
            try:
                rules = tuple(rule for entry in entries for rule in self.flat(entry))
                hidden = any(rule.get("readOnly") is True for rule in rules)
                if hidden:
                    self._keep_apart(rules, pointer, name)
                elif name in required or (depth > 0 and self.dice.random() < self.share):
                    found[name] = self.value(rules, below, depth - 1)
            except Unsatisfiable:
                if name in required:
                    raise
        for name in sorted(required - declared.keys()):
            found[name] = self._undeclared(flat, name, pointer, depth)
        self._further(flat, found, pointer, depth)
        return found

    def _keep_apart(self, rules: Flat, pointer: str, name: str) -> None:
        aside = _Writer(self.document, name, 0)
        self.read_only.setdefault(pointer, {})[name] = aside.value(rules, "", 0)

    def _undeclared(self, flat: Flat, name: str, pointer: str, depth: int) -> Json:
        rules: list[dict[str, Json]] = []
        for schema in flat:
            for pattern, entry in members(schema.get("patternProperties")):
                if re.search(pattern, name):
                    rules += self.flat(entry)
            if name not in dict(members(schema.get("properties"))):
                for keyword in ("additionalProperties", "unevaluatedProperties"):
                    rules += self.flat(schema.get(keyword))
        return self.value(tuple(rules), f"{pointer}/{token(name)}", depth - 1)

    def _further(self, flat: Flat, found: dict[str, Json], pointer: str, depth: int) -> None:
        """Add members that nobody declared: where a schema of theirs is published, or as many as must be there."""
        for name in self._names(flat, found, depth):
            try:
                found[name] = self._undeclared(flat, name, pointer, depth)
            except Unsatisfiable:
                continue

    def _names(self, flat: Flat, found: Mapping[str, Json], depth: int) -> list[str]:
        least = max([int(_number(schema.get("minProperties"), 0)) for schema in flat], default=0)
        most = min([int(_number(schema.get("maxProperties"), 99)) for schema in flat], default=99)
        typed = any(isinstance(schema.get("additionalProperties"), dict) for schema in flat)
        naming = [rule for schema in flat for rule in self.flat(schema.get("propertyNames"))]
        patterns = [str(rule["pattern"]) for rule in naming if "pattern" in rule]
        fitting = [text for text in (*_NAMES, *_TEXTS) if all(re.search(one, text) for one in patterns)]
        names = fitting[: max(least - len(found), 2 if typed and depth > 0 else 0)]
        for schema in flat:
            for name, needs in members(schema.get("dependentRequired")):
                names += [str(need) for need in elements(needs) if name in found and need not in found]
            if depth > 0:
                names += [_matching([one], "", 0, 99)[0] for one, _ in members(schema.get("patternProperties"))]
        return names[: max(most - len(found), 0)]

    def _array(self, flat: Flat, pointer: str, depth: int) -> Json:
        least = max([int(_number(schema.get("minItems"), 0)) for schema in flat], default=0)
        most = min([int(_number(schema.get("maxItems"), 99)) for schema in flat], default=99)
        count = min(max(least, 2 if depth > 0 and self.share else 0), most)
        unique = any(schema.get("uniqueItems") is True for schema in flat)
        found: list[Json] = []
        for _ in range(count * 8 if unique else count):
            index = len(found)
            if index == count:
                break
            try:
                one = self.value(self._items(flat, index), f"{pointer}/{index}", depth - 1)
            except Unsatisfiable:
                if index < least:
                    raise
                break
            if not unique or one not in found:
                found.append(one)
        return found

    def _items(self, flat: Flat, index: int) -> Flat:
        rules: list[dict[str, Json]] = []
        for schema in flat:
            first = elements(schema.get("prefixItems")) or elements(schema.get("items"))
            if index < len(first):
                rules += self.flat(first[index])
            elif not isinstance(schema.get("items"), list):
                rules += self.flat(schema.get("items"))
            if "contains" in schema:
                rules += self.flat(schema["contains"])
        return tuple(rules)

    def _number(self, flat: Flat, *, whole: bool) -> Json:
        low, high, step = -math.inf, math.inf, 1.0 if whole else 0.0
        for schema in flat:
            least, most = schema.get("minimum"), schema.get("maximum")
            above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
            gap = 1 if whole else 0.5
            low = max(low, _number(least, -math.inf) + (gap if above is True else 0), _number(above, -math.inf) + gap)
            high = min(high, _number(most, math.inf) - (gap if below is True else 0), _number(below, math.inf) - gap)
            step = max(step, _number(schema.get("multipleOf"), 0))
        if low == -math.inf:
            low = 1 if high >= 1 else high - 10
        high = min(high, low + 60)
        if low > high:
            raise Unsatisfiable
        if step:
            steps = self.dice.randint(math.ceil(low / step), max(math.floor(high / step), math.ceil(low / step)))
            return int(steps * step) if float(step).is_integer() else steps * step
        return round(low + (high - low) * self.dice.random(), 2)

    def _text(self, flat: Flat) -> Json:
        least = max([int(_number(schema.get("minLength"), 0)) for schema in flat], default=0)
        most = min([int(_number(schema.get("maxLength"), 10_000)) for schema in flat], default=10_000)
        formats = [str(schema["format"]) for schema in flat if "format" in schema]
        patterns = [str(schema["pattern"]) for schema in flat if "pattern" in schema]
        form = next((_FORMATS[name] for name in formats if name in _FORMATS), "")
        if not patterns:
            if form and least <= len(form) <= most:
                return form
            text = f"v{self.dice.randrange(10**6):06d}"
            return text.ljust(least, "a")[:most]
        texts = _matching(patterns, form, least, most)
        if not texts:
            raise Unsatisfiable
        return self.dice.choice(texts[:3])


def _matching(patterns: list[str], form: str, least: int, most: int) -> list[str]:
    texts = [*([form] if form else []), *_TEXTS, *("0" * count for count in range(3, 12)), *_spelled(patterns)]
    return [text for text in texts if least <= len(text) <= most and all(re.search(one, text) for one in patterns)]


def _spelled(patterns: Iterable[str]) -> Iterator[str]:
    """Yield the literal text that a pattern begins with, alone and with something after it."""
    for pattern in patterns:
        literal = re.match(r"\^?((?:[\w:/@ -]|\\[./-])+)", pattern)
        if literal:
            text = literal[1].replace("\\", "")
            yield from (text, f"{text}a", f"{text}1", f"{text}{'0a' * 16}")


def _discriminated(schema: dict[str, Json], branch: Json) -> Flat:
    """Return the rule that names the branch in the property which tells the branches apart."""
    told = schema.get("discriminator")
    name = told.get("propertyName") if isinstance(told, dict) else None
    reference = branch.get("$ref") if isinstance(branch, dict) else None
    if not isinstance(told, dict) or not isinstance(name, str) or not isinstance(reference, str):
        return ()
    short = reference.rpartition("/")[2]
    value = next((key for key, at in members(told.get("mapping")) if at in {reference, short}), short)
    return ({"properties": {name: {"enum": [value]}}},)


def _options(flat: Flat) -> list[Json] | None:
    """Return the values that every `enum` has, without null where there are others; None where there is no `enum`."""
    lists = [elements(schema["enum"]) for schema in flat if isinstance(schema.get("enum"), list)]
    if not lists:
        return None
    options = [value for value in lists[0] if all(value in other for other in lists[1:])]
    if not options:
        raise Unsatisfiable
    if len(options) > 1 and None in options:
        options.remove(None)
    return options


def _number(value: Json, absent: float) -> float:
    return absent if isinstance(value, bool) or not isinstance(value, int | float) else value
