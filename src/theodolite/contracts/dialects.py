"""Which draft of JSON Schema a schema is written in, and where that draft has schemas below a schema."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, IntEnum

__all__ = ("EVERY_KEYWORD", "Draft", "Holds", "draft_of", "holds", "identifier", "is_openapi", "metaschemas")


class Draft(IntEnum):
    """A published draft."""

    DRAFT_4 = 4
    DRAFT_6 = 6
    DRAFT_7 = 7
    DRAFT_2019 = 2019
    DRAFT_2020 = 2020

    @property
    def uri(self) -> str:
        """Return what `$schema` says of it."""
        return next(uri if self >= Draft.DRAFT_2019 else f"{uri}#" for uri, draft in _URIS.items() if draft is self)


class Holds(Enum):
    """What stands under a keyword that has schemas below it."""

    SCHEMA = "a schema"
    LIST = "an array of schemas"
    MAP = "an object of schemas"
    EITHER = "a schema or an array of schemas"
    MIXED = "an object of schemas or arrays of names"


_URIS = {
    "http://json-schema.org/draft-04/schema": Draft.DRAFT_4,
    "http://json-schema.org/draft-06/schema": Draft.DRAFT_6,
    "http://json-schema.org/draft-07/schema": Draft.DRAFT_7,
    "https://json-schema.org/draft/2019-09/schema": Draft.DRAFT_2019,
    "https://json-schema.org/draft/2020-12/schema": Draft.DRAFT_2020,
}
_VOCABULARIES = {
    Draft.DRAFT_2019: ("core", "applicator", "validation", "meta-data", "format", "content"),
    Draft.DRAFT_2020: (
        "core", "applicator", "unevaluated", "validation", "meta-data", "format-annotation", "format-assertion",
        "content",
    ),
}  # fmt: skip
# The dialects of OpenAPI 3.1 and 3.2 add annotations to 2020-12, and nothing that checks.
_OPENAPI = "https://spec.openapis.org/oas/"

_OLD: Mapping[str, Holds] = {
    "additionalItems": Holds.SCHEMA,
    "additionalProperties": Holds.SCHEMA,
    "allOf": Holds.LIST,
    "anyOf": Holds.LIST,
    "definitions": Holds.MAP,
    "dependencies": Holds.MIXED,
    "items": Holds.EITHER,
    "not": Holds.SCHEMA,
    "oneOf": Holds.LIST,
    "patternProperties": Holds.MAP,
    "properties": Holds.MAP,
}
_SIX = {**_OLD, "contains": Holds.SCHEMA, "propertyNames": Holds.SCHEMA}
_SEVEN = {**_SIX, "if": Holds.SCHEMA, "then": Holds.SCHEMA, "else": Holds.SCHEMA}
_2019 = {
    **_SEVEN,
    "$defs": Holds.MAP,
    "contentSchema": Holds.SCHEMA,
    "dependentSchemas": Holds.MAP,
    "unevaluatedItems": Holds.SCHEMA,
    "unevaluatedProperties": Holds.SCHEMA,
}
_2020 = {name: what for name, what in _2019.items() if name != "additionalItems"} | {
    "items": Holds.SCHEMA,
    "prefixItems": Holds.LIST,
}
_HOLDS: Mapping[Draft, Mapping[str, Holds]] = {
    Draft.DRAFT_4: _OLD,
    Draft.DRAFT_6: _SIX,
    Draft.DRAFT_7: _SEVEN,
    Draft.DRAFT_2019: _2019,
    Draft.DRAFT_2020: _2020,
}

EVERY_KEYWORD: Mapping[str, Holds] = {**_2020, **_2019}
"""The keywords of any draft that have schemas below them."""


def metaschemas(draft: Draft) -> frozenset[str]:
    """Return the addresses, without a fragment, that the engine knows by itself in a schema of a draft.

    >>> sorted(metaschemas(Draft.DRAFT_7))
    ['http://json-schema.org/draft-07/schema']
    """
    own = draft.uri.removesuffix("#")
    base = own.removesuffix("schema")
    return frozenset({own} | {f"{base}meta/{name}" for name in _VOCABULARIES.get(draft, ())})


def draft_of(uri: str) -> Draft | None:
    """Return the draft that a `$schema` names, or None of one that is not known.

    >>> draft_of("http://json-schema.org/draft-07/schema#"), draft_of("https://spec.openapis.org/oas/3.1/dialect/base")
    (<Draft.DRAFT_7: 7>, <Draft.DRAFT_2020: 2020>)
    """
    plain = uri.removesuffix("#")
    if is_openapi(plain):
        return Draft.DRAFT_2020
    rest = plain.partition("://")[2]
    return _URIS.get(f"http://{rest}") or _URIS.get(f"https://{rest}")


def is_openapi(uri: object) -> bool:
    """Whether a `$schema` names a dialect of OpenAPI.

    >>> is_openapi("https://spec.openapis.org/oas/3.1/dialect/base")
    True
    """
    return isinstance(uri, str) and uri.startswith(_OPENAPI)


def holds(draft: Draft) -> Mapping[str, Holds]:
    """Return the keywords of a draft that have schemas below them."""
    return _HOLDS[draft]


def identifier(draft: Draft) -> str:
    """Return the keyword that names a schema.

    >>> identifier(Draft.DRAFT_4), identifier(Draft.DRAFT_7)
    ('id', '$id')
    """
    return "id" if draft is Draft.DRAFT_4 else "$id"
