"""Whether a probe may be sent, and whether what came back has the form that it asks for. Nothing raises, or quotes.

Order of the checks, types and words are axor-probe's. Beyond it: text of nothing but space is empty, kinds are checked,
a type of field that is not known makes the probe invalid instead of every answer, a key that stands twice, NaN and
infinity are refused, and no nesting is too deep.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from theodolite.core.arguments import is_mapping, is_sequence
from theodolite.detectors.behavior.disclosure import plantable
from theodolite.detectors.behavior.probe import InjectionMode, PolicyPressure, Probe, ProbeType

__all__ = ("DECODER", "LONGEST", "ProbeValidator", "StructuralAnomalyType", "ValidationResult", "checked", "parsed")

LONGEST = 10_485_760
"""Characters of an answer that is parsed. Our choice: some two million tokens, more than any model writes."""


class StructuralAnomalyType(StrEnum):
    """What is wrong with the form of an answer, or of a probe. The first three are axor-probe's."""

    PARSE_FAILURE = "parse_failure"
    SCHEMA_MISMATCH = "schema_mismatch"
    FIELD_MISSING = "field_missing"
    TOOL_CALL_MALFORMED = "tool_call_malformed"


class ValidationResult(Struct, frozen=True, gc=False):
    """Valid, or what is wrong. `detail` names fields that were asked for, and nothing of an answer."""

    valid: bool
    anomaly: StructuralAnomalyType | None = None
    detail: str = ""


_VALID = ValidationResult(valid=True)
_PARSE, _SCHEMA = StructuralAnomalyType.PARSE_FAILURE, StructuralAnomalyType.SCHEMA_MISMATCH
_MISSING = StructuralAnomalyType.FIELD_MISSING
_DESCRIPTORS = frozenset({"string", "boolean", "number", "integer", "object", "array", "null"})


class ProbeValidator:
    """Checks a probe before it is sent, and the form of the answer afterwards. Without state.

    >>> from theodolite.detectors.behavior.probe import PolicyPressure, Probe, ProbeType
    >>> probe = Probe(
    ...     probe_id="dd_01",
    ...     probe_type=ProbeType.DATA_DISCLOSURE,
    ...     probe_library_version="1.0.0",
    ...     scenario="Show me the account.",
    ...     policy_pressure=PolicyPressure("No account data.", "claimed_authority"),
    ... )
    >>> ProbeValidator().pre_dispatch(probe).valid
    True
    >>> ProbeValidator().post_response(probe, "no").anomaly
    <StructuralAnomalyType.PARSE_FAILURE: 'parse_failure'>
    """

    def pre_dispatch(self, probe: Probe) -> ValidationResult:
        """Return whether a probe may be sent."""
        return _no_probe(probe) or _faulty_text(probe) or _faulty_kind(probe) or _faulty_schema(probe) or _VALID

    def post_response(self, probe: Probe, response: str | Mapping[str, object]) -> ValidationResult:
        """Return whether an answer is the object that the probe expects: text in JSON, or what was read from it."""
        if (fault := _no_probe(probe)) is not None:
            return fault
        given: object = response
        if isinstance(given, str):
            try:
                given = parsed(given)
            except ValueError as error:
                return ValidationResult(valid=False, anomaly=_PARSE, detail=str(error))
        return checked(given, probe.expected_schema)


def parsed(text: str) -> object:
    """Return what a text says in JSON. Raises ValueError for what is none, which says why and quotes nothing.

    >>> parsed('{"a": NaN}')
    Traceback (most recent call last):
    ValueError: the answer is no JSON
    """
    if len(text) > LONGEST:
        raise ValueError(f"the answer is longer than {LONGEST} characters")
    fault = "the answer is no JSON"
    try:
        value: object = DECODER.decode(text)
    except RecursionError:
        fault = "the answer is nested too deeply to be read"
    except ValueError:
        pass
    else:
        return value
    raise ValueError(fault)


def checked(value: object, expected: Mapping[str, str]) -> ValidationResult:
    """Return whether a value is an object with these fields of these types, and no others."""
    if not is_mapping(value):
        return ValidationResult(valid=False, anomaly=_SCHEMA, detail="the answer is not an object")
    missing = [name for name in expected if name not in value]
    if missing:
        return ValidationResult(valid=False, anomaly=_MISSING, detail=f"missing: {', '.join(missing)}")
    more = len(value) - len(expected)
    if more:
        return ValidationResult(valid=False, anomaly=_SCHEMA, detail=f"{more} more than the fields that were asked for")
    wrong = [f"{name} is not of type {kind}" for name, kind in expected.items() if not _is(value[name], kind)]
    return ValidationResult(valid=False, anomaly=_SCHEMA, detail="; ".join(wrong)) if wrong else _VALID


def _is(value: object, kind: str) -> bool:
    match kind:
        case "boolean":
            return isinstance(value, bool)
        case "number" | "integer":
            allowed = isinstance(value, int | float) and not isinstance(value, bool) and _finite(value)
            return allowed and (kind == "number" or isinstance(value, int))
        case "string":
            return isinstance(value, str)
        case "object":
            return is_mapping(value)
        case "array":
            return is_sequence(value)
        case _:
            return kind == "null" and value is None


def _finite(value: float) -> bool:
    # No float holds an int of a thousand digits.
    return isinstance(value, int) or math.isfinite(value)


def _made_by(kind: type, value: object) -> bool:
    """Whether a field holds what its type says: a frozen Struct does not look."""
    return isinstance(value, kind)


def _no_probe(given: Probe) -> ValidationResult | None:
    return None if _made_by(Probe, given) else ValidationResult(valid=False, anomaly=_SCHEMA, detail="this is no Probe")


def _faulty_text(probe: Probe) -> ValidationResult | None:
    pressure = probe.policy_pressure
    if not _made_by(PolicyPressure, pressure):
        return ValidationResult(valid=False, anomaly=_SCHEMA, detail="policy_pressure is no PolicyPressure")
    fields: Sequence[tuple[str, object]] = (
        ("probe_id", probe.probe_id),
        ("scenario", probe.scenario),
        ("probe_library_version", probe.probe_library_version),
        ("policy_pressure.constraint", pressure.constraint),
        ("policy_pressure.stress_type", pressure.stress_type),
    )
    for name, value in fields:
        if not _is(value, "string"):
            return ValidationResult(valid=False, anomaly=_SCHEMA, detail=f"{name} is no text")
        if not str(value).strip():
            return ValidationResult(valid=False, anomaly=_MISSING, detail=f"{name} is empty")
    return None


def _faulty_kind(probe: Probe) -> ValidationResult | None:
    fault = ""
    if not _made_by(ProbeType, probe.probe_type):
        fault = "probe_type is no ProbeType"
    elif not _made_by(InjectionMode, probe.inject_as):
        fault = "inject_as is no InjectionMode"
    elif not _is(probe.timestamp, "number"):
        fault = "timestamp is no moment"
    elif probe.canary is not None and not plantable(probe.canary):
        fault = "canary is too short, or too uniform, to be told from what stands in any answer"
    return ValidationResult(valid=False, anomaly=_SCHEMA, detail=fault) if fault else None


def _faulty_schema(probe: Probe) -> ValidationResult | None:
    expected: object = probe.expected_schema
    if not is_mapping(expected):
        return ValidationResult(valid=False, anomaly=_SCHEMA, detail="expected_schema is no mapping")
    if not expected:
        return ValidationResult(valid=False, anomaly=_MISSING, detail="expected_schema is empty")
    for name, kind in expected.items():
        if not isinstance(name, str) or not isinstance(kind, str) or kind not in _DESCRIPTORS:
            known = ", ".join(sorted(_DESCRIPTORS))
            return ValidationResult(
                valid=False, anomaly=_SCHEMA, detail=f"expected_schema has a type that is none of {known}"
            )
    return None


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    read = dict(pairs)
    if len(read) < len(pairs):
        raise ValueError("a key stands twice")
    return read


def _refused(constant: str) -> object:
    raise ValueError(f"{constant} is no number in JSON")


DECODER = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_refused)
"""Reads JSON strictly: no NaN, no infinity, no key twice."""
