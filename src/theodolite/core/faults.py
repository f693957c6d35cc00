"""What is wrong with data that does not decode, without a word of the data: it may be hostile, or a secret."""

from __future__ import annotations

import re

import msgspec

__all__ = ("place_of",)

# msgspec's messages that are made of our own types and field names alone.
_INERT = re.compile(
    r"(?:Expected `[\w |]+`(?:, got `\w+`)?|Object missing required field `\w+`|JSON is malformed: .+|"
    r"Input data was truncated|Invalid UTF-8 encoded string|Integer value out of range|Number out of range)"
    r"(?: - at `(?:key in )?\$[\w.\[\]]*`)?\Z"
)
_UNKNOWN = "Object contains unknown field "
_PLACE = re.compile(r" - at (?:`key` in )?`(\$[\w.\[\]]*)`\Z")


def place_of(error: msgspec.DecodeError | RecursionError) -> str:
    """Return what is wrong with a document and where, by the types that were wanted and the error of decoding it.

    msgspec's own message may hold a value, or the name of a key, that the document has.

    >>> try:
    ...     msgspec.json.decode(b'[1, "of Anna"]', type=list[int])
    ... except msgspec.DecodeError as error:
    ...     place_of(error)
    'Expected int, got str - at $[...]'
    """
    if isinstance(error, RecursionError):
        return "nested too deeply to be read"
    said = str(error)
    if _INERT.match(said):
        return said.replace("`", "")
    if said.startswith(_UNKNOWN):
        return "a key that is not known"  # it may look like the end of a message: no place can be told from it
    place = _PLACE.search(said)
    return f"a value that is not allowed - at {place[1] if place else '$'}"
