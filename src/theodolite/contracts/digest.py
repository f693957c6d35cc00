"""One hash for what was agreed, whoever wrote it down and in which order."""

from __future__ import annotations

import hashlib
import re

import msgspec

from theodolite.contracts.document import whole_number

__all__ = ("canonical", "fingerprint")

# A number that is an integer but is not written as one, after a key or in an array; met in text it costs one walk more.
_FLOAT = re.compile(rb"(?:^|[:,\[])-?\d+(?:\.0(?:[,\]}]|$)|\.?\d*[eE])")


def canonical(value: object) -> bytes:
    """Return the canonical form of plain JSON: sorted keys, no spaces, 1.0 written as 1 (up to 2^53).

    As RFC 8785, with three differences that do not matter to whom compares two hashes of this function alone: keys are
    sorted by code points and not by UTF-16 units, integers keep all their digits, and floats are written as Python
    writes them. 25 ms for 7 MB; six times that where it has whole numbers with a point, or text that looks so.

    >>> canonical({"b": 1.0, "a": [True, "x"]})
    b'{"a":[true,"x"],"b":1}'
    """
    text = msgspec.json.encode(value, order="sorted")
    return msgspec.json.encode(_DECODER.decode(text), order="sorted") if _FLOAT.search(text) else text


def fingerprint(value: object) -> str:
    """Return the SHA-256 of the canonical form.

    >>> fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2.0, "a": 1})
    True
    """
    return hashlib.sha256(canonical(value)).hexdigest()


_DECODER = msgspec.json.Decoder(float_hook=whole_number)
