"""Values of a wrong type that are what is due, only written otherwise: text that holds it, a number in quotes."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

import msgspec

from theodolite.contracts.nodes import type_of

__all__ = ("TEXT", "TIMES", "fitting", "meant")

# Longer texts are not read as JSON, nor what is encoded more often: it costs time, and is no slip.
TEXT, TIMES = 100_000, 3
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,14})", re.ASCII)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,17})?(?:[eE][+-]?[0-9]{1,2})?", re.ASCII)
_WORDS: Mapping[str, bool] = {"true": True, "false": False, "True": True, "False": False}
# Digits of a number that every reader of JSON keeps whole.
_DIGITS = 15


def fitting(value: object, types: frozenset[str]) -> tuple[str, object] | None:
    """Return which of the types that are due a value of another one can be had as, and what it then is.

    >>> due = frozenset({"integer", "array"})
    >>> fitting("7", due), fitting('"[7]"', due), fitting("07", due)
    (('integer', 7), ('array', [7]), None)
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return ("string", str(value)) if "string" in types and abs(value) < 10**_DIGITS else None
    if not isinstance(value, str) or len(value) > TEXT:
        return None
    for kind in ("integer", "number", "boolean", "null", "object", "array"):
        if ("fraction" if kind == "number" else kind) in types:
            try:
                return kind, meant(value, kind)
            except ValueError:
                continue
    return None


def meant(text: str, kind: str, times: int = TIMES) -> object:
    """Return the value of a type that a text is the JSON of, encoded so many times at most.

    Raises ValueError where it is of none, or of another.

    >>> meant('"true"', "boolean")
    True
    """
    if kind == "boolean" and text in _WORDS:
        return _WORDS[text]
    if kind == "null" and text == "null":
        return None
    if kind == "integer" and _INTEGER.fullmatch(text):
        return int(text)
    if kind == "number" and _NUMBER.fullmatch(text) and math.isfinite(number := float(text)):
        return number
    if kind == "string" or (kind in {"object", "array"} and text.lstrip()[:1] in {"{", "["}):
        decoded = _decoded(text)
        if type_of(decoded) == kind:
            return decoded
    elif times > 1 and text.lstrip()[:1] == '"' and isinstance(inner := _decoded(text), str):
        return meant(inner, kind, times - 1)
    raise ValueError(kind)


def _decoded(text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        raise ValueError("no JSON") from None
