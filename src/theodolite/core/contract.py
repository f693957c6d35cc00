"""What a tool may be called with, and how a call may diverge from it: types alone."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import force_setattr

from theodolite.core.arguments import MAX_POINTER
from theodolite.core.surrogates import spell_out

__all__ = ("Contract", "Contracts", "Divergence", "Gap", "Group", "Kind", "Location", "Origin", "Part", "Schema")

# A schema of JSON Schema 2020-12, after normalization; only the engine and the dialects look into one.
Schema = Mapping[str, object] | bool


class Location(StrEnum):
    """Where in a request, or in what comes back, a part of a call stands."""

    ARGUMENTS = "arguments"
    BODY = "body"
    PATH = "path"
    QUERY = "query"
    HEADER = "header"
    COOKIE = "cookie"
    RESULT = "result"


class Origin(StrEnum):
    """Which form a contract was published in."""

    OPENAPI = "openapi"
    SWAGGER = "swagger"
    MCP = "mcp"
    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    PYDANTIC = "pydantic"
    SCHEMA = "schema"


class Part(Struct, frozen=True, kw_only=True):
    """One place that values go to: a body, a parameter, the arguments as a whole, a result.

    `name` is that of a parameter and empty elsewhere; `media_type` is that of a body or result of an operation (several
    parts where several are published); `status` is the status or range of statuses that a result belongs to ("200",
    "2XX", "default"); `description` is what is said of the part beside its schema. `schema` may hold `$ref`s into
    `Contracts.documents`, always with the absolute URI in them.
    """

    location: Location
    schema: Schema
    name: str = ""
    required: bool = False
    media_type: str = ""
    style: str = ""
    explode: bool = True
    status: str = ""
    pointer: str = ""
    description: str = ""

    def plainness(self) -> int:
        """Return 0 for JSON, and more the less its media type is like it."""
        plain = self.media_type.partition(";")[0].strip().lower()
        if plain == "application/json":
            return 0
        return 1 if plain.endswith("+json") else 2 if plain.endswith("*") else 3


class Contract(Struct, frozen=True, kw_only=True):
    """What one tool or operation may be called with, and what it may return.

    `name` is what calls use: a tool's name, an operationId, or "METHOD /path" of an operation that has none. `pointer`
    is where it stands in the document that it came from (RFC 6901). `annotations` are those of MCP, which are no
    schema but part of what was agreed, and of a tool without a schema all else that was published of it. `fields` are
    the names that the body of an operation declares at its top, by which flat arguments are split.
    """

    name: str
    origin: Origin
    parts: tuple[Part, ...]
    results: tuple[Part, ...] = ()
    method: str = ""
    path: str = ""
    title: str = ""
    description: str = ""
    pointer: str = ""
    annotations: Mapping[str, object] = {}
    fields: frozenset[str] = frozenset()

    @property
    def opaque(self) -> bool:
        """Whether nothing is published of what calls of it hold: a tool without a schema. Its calls are not judged."""
        return not self.parts and not self.method

    @property
    def bodies(self) -> tuple[Part, ...]:
        """The published bodies, the plainest JSON first: that is the one of a call which names no media type."""
        return tuple(sorted((part for part in self.parts if part.location is Location.BODY), key=Part.plainness))


class Gap(Struct, frozen=True, kw_only=True):
    """Something of a document that is not checked, where it stands, and why. Never a silent pass."""

    contract: str
    pointer: str
    reason: str


class Contracts(Struct, frozen=True, kw_only=True):
    """The contracts of one document or list of tools, ready for the engine.

    `aliases` leads from "METHOD /path" to the name of an operation that has another one. `documents` is the registry
    that every `$ref` is resolved in, by absolute URI: nothing is ever fetched. `digest` is the SHA-256 of the canonical
    form of what was agreed.
    """

    contracts: Mapping[str, Contract]
    digest: str
    aliases: Mapping[str, str] = {}
    documents: Mapping[str, object] = {}
    gaps: tuple[Gap, ...] = ()

    def find(self, name: str) -> Contract | None:
        """Return the contract of that name or alias, or None."""
        found = self.contracts.get(name)
        if found is None and (other := self.aliases.get(name)) is not None:
            found = self.contracts.get(other)
        return found


class Group(StrEnum):
    """The three kinds of the guard that users come from."""

    MISSING_REQUIRED = "missing_required"
    UNKNOWN_FIELD = "unknown_field"
    TYPE_MISMATCH = "type_mismatch"


class Kind(StrEnum):
    """How a value diverges from its contract."""

    MISSING_REQUIRED = "missing_required"
    UNKNOWN_FIELD = "unknown_field"
    TYPE_MISMATCH = "type_mismatch"
    NULL_NOT_ALLOWED = "null_not_allowed"
    DOUBLE_ENCODED = "double_encoded"
    ENUM_MISMATCH = "enum_mismatch"
    CONST_MISMATCH = "const_mismatch"
    FORMAT_MISMATCH = "format_mismatch"
    RANGE_MISMATCH = "range_mismatch"
    LENGTH_MISMATCH = "length_mismatch"
    PATTERN_MISMATCH = "pattern_mismatch"
    NOT_UNIQUE = "not_unique"
    DEPENDENCY_MISSING = "dependency_missing"
    CONTAINS_MISMATCH = "contains_mismatch"
    UNION_NO_MATCH = "union_no_match"
    UNION_AMBIGUOUS = "union_ambiguous"
    FORBIDDEN = "forbidden"
    READ_ONLY_SENT = "read_only_sent"
    WRONG_CONTENT_TYPE = "wrong_content_type"
    NOT_JSON = "not_json"
    TOO_LARGE = "too_large"
    TOO_DEEP = "too_deep"
    REGEX_LIMIT = "regex_limit"
    CONTRACT_ERROR = "contract_error"
    UNKNOWN_OPERATION = "unknown_operation"
    UNDECLARED_FIELD = "undeclared_field"

    @property
    def group(self) -> Group:
        """Return the coarse kind: what is missing, what nobody declared, and everything else as a mismatch."""
        if self in _MISSING:
            return Group.MISSING_REQUIRED
        return Group.UNKNOWN_FIELD if self in _UNKNOWN else Group.TYPE_MISMATCH


_MISSING = frozenset({Kind.MISSING_REQUIRED, Kind.DEPENDENCY_MISSING})
_UNKNOWN = frozenset({Kind.UNKNOWN_FIELD, Kind.UNDECLARED_FIELD, Kind.READ_ONLY_SENT, Kind.UNKNOWN_OPERATION})


class Divergence(Struct, frozen=True, kw_only=True):
    """One place where a call diverges from its contract. It never holds a value of the call.

    `pointer` (RFC 6901) leads into the arguments as they were given. `expected` is a type or a closed word of the
    contract, `observed` a JSON type, a Python type's name or a closed word. `keyword` and `schema_pointer` say which
    rule of the contract decided. One that does not `deny` is told and stops nothing.
    """

    kind: Kind
    pointer: str
    location: Location = Location.ARGUMENTS
    expected: str = ""
    observed: str = ""
    keyword: str = ""
    schema_pointer: str = ""
    denies: bool = True

    def __post_init__(self) -> None:
        spell_out(self, "pointer", "expected", "observed", "schema_pointer")
        if len(self.pointer) > MAX_POINTER:  # the names in it are those of a call, of any length
            force_setattr(self, "pointer", f"{self.pointer[: MAX_POINTER - 1]}\N{HORIZONTAL ELLIPSIS}")
