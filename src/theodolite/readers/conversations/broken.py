"""Whether text that is no JSON was written so, or may have been cut or changed by whoever recorded it."""

from __future__ import annotations

import json
import re

__all__ = ("SHORTEST", "written_so")

SHORTEST = 50
"""Characters that a recorder leaves at least where it cuts texts (our choice: less serves nobody who reads logs)."""

# Marks of what was left out, blanked or replaced. They may be a model's own: then a fault is passed over.
_CHANGED = re.compile(
    r"\.{3}|\u2026|\*{3}|[\u2022\u2588]|[xX#]{4}"
    r"|(?i:redact|truncat|elided|omitted|masked|scrubbed|saniti[sz]ed|anonymi[sz]ed|pseudonym|censored)"
    r"|[\[<({]\s{0,4}(?:[A-Z][A-Z0-9_]|(?i:removed|hidden|filtered|deleted|secret|snip|cut|\d+ (?:more|bytes|char)))"
    r"|\[[a-zA-Z_]{1,40}:[0-9a-f]+\]"
)
# What may be left of a value, or of an escape, that breaks off. JSON's decoder points to where it begins.
_LITERALS = ("true", "false", "null", "NaN", "Infinity", "-Infinity")
_REST = re.compile(r"\s*\Z|-\Z|[.eE][+-]?\Z|\\?u?[0-9a-fA-F]{0,4}\Z|\\\Z")


def written_so(error: json.JSONDecodeError) -> bool:
    """Whether the text of an error was no JSON when it was written, an object by its beginning.

    Not where a mark of redaction or shortening stands in it, nor where it breaks off and is long enough to have been
    cut, nor where it is written as Python shows a dict, since recorders do that too. What begins in another way may
    stand in place of the text. Linear in the text.

    >>> def tried(text):
    ...     try:
    ...         json.loads(text)
    ...     except json.JSONDecodeError as error:
    ...         return written_so(error)
    >>> tried('{"city": "Paris"'), tried('{"city": Paris}'), tried('{"city": [REDACTED]}'), tried("{'city': 'Paris'}")
    (True, True, False, False)
    """
    text = error.doc
    if not text.startswith(("{", "```")) or text.startswith("{'") or _CHANGED.search(text):
        return False
    return len(text) < SHORTEST or not _breaks_off(error)


def _breaks_off(error: json.JSONDecodeError) -> bool:
    """Whether a longer text could go on where this one ends, and be JSON."""
    if error.msg.startswith("Unterminated"):
        return True
    rest = error.doc[error.pos :]
    return _REST.match(rest) is not None or any(literal.startswith(rest) for literal in _LITERALS)
