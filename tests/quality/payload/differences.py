"""Where guard and oracle part, all of it, and the clause that decides each time against the oracle."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from tests.quality.payload.comparison import Case
from tests.quality.payload.mutations import Fault

__all__ = ("DIFFERENCES", "Difference", "explained")

REFUSED, ALLOWED = False, True
OLD = frozenset({"2.0", "3.0"})


class Difference(NamedTuple):
    """A reason to differ. `oracle` is what the oracle says of the call, which the guard rightly does not say."""

    name: str
    oracle: bool
    clause: str
    covers: Callable[[Case], bool]


def _whole_fraction(case: Case) -> bool:
    return case.dialect in OLD and case.mutation.detail == "integer to whole fraction"


def _read_only_sent(case: Case) -> bool:
    return case.dialect == "3.0" and case.mutation.fault is Fault.READ_ONLY


def _read_only_parameter(case: Case) -> bool:
    marked = any(rule.get("readOnly") is True for rule in case.mutation.rules)
    return case.dialect in OLD and marked and not case.place.startswith("body") and case.mutation.pointer == ""


def _other_header(case: Case) -> bool:
    place, _, name = case.place.partition(" ")
    return case.dialect != "2.0" and place == "header" and name.lower() in {"accept", "authorization", "content-type"}


def _line_after(case: Case) -> bool:
    return case.mutation.detail == "line after" and any("pattern" in rule for rule in case.mutation.rules)


DIFFERENCES = (
    Difference(
        "1.0 is an integer",
        REFUSED,
        "JSON Schema 2020-12, validation, 6.1.1: integer is any number with a zero fractional part, so since draft 6. "
        "Draft 4, which Swagger 2.0 and OpenAPI 3.0 build on, has a wording for either reading, and the official suite "
        "lists its own test of it (draft4/optional/zeroTerminatedFloats) as optional. A value that was parsed has no "
        "spelling left (RFC 8259, section 6), and serializers of other languages write 1.0 as 1",
        _whole_fraction,
    ),
    Difference(
        "what is read-only was sent",
        REFUSED,
        "OpenAPI 3.0.3, 4.7.24, readOnly: it SHOULD NOT be sent as part of the request. That is no MUST NOT, which "
        "Swagger 2.0 has there: clients send back what they got, and servers ignore it",
        _read_only_sent,
    ),
    Difference(
        "a parameter whose schema is marked read-only",
        REFUSED,
        "OpenAPI 3.0.3, 4.7.24, readOnly: relevant only for Schema `properties` definitions. A schema that properties "
        "and a parameter share may have the mark; the oracle then refuses every value of the parameter",
        _read_only_parameter,
    ),
    Difference(
        "a header that is described elsewhere",
        REFUSED,
        "OpenAPI 3.0.3, 4.7.12, Parameter Object, name: the definition of a parameter in the header named Accept, "
        "Content-Type or Authorization SHALL be ignored",
        _other_header,
    ),
    Difference(
        "a line feed after what a pattern ends with",
        ALLOWED,
        "JSON Schema 2020-12, core, 6.4, as the drafts before: patterns are those of ECMA-262, where `$` without the "
        "flag m matches at the very end alone (there: Assertion); that of Python also matches before a last line feed",
        _line_after,
    ),
)


def explained(case: Case, differences: Iterable[Difference] = DIFFERENCES) -> Difference | None:
    """Return what a difference between oracle and guard is due to, or None."""
    return next((one for one in differences if one.oracle is case.allowed and one.covers(case)), None)
