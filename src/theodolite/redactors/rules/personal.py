"""E-mail addresses and US social security numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from theodolite.redactors.rules.span import Kind, Span
from theodolite.redactors.rules.view import View

__all__ = ("emails", "social_security_numbers")

# RFC 5321 and 6531, without the signs that are more often around an address than in it: & / = ? ^ ` { | } %.
_LOCAL = r"\w.+'!#$*~\-"
_DOMAIN = r"(?P<domain>[^\W_](?:[^\W_]|-)*+(?:\.(?:[^\W_]|-)++)++)"
# A run is tried at its beginning alone: without that, a long run without "@" would be read once from each character.
_ADDRESS = rf"(?P<local>[{_LOCAL}]++)@{_DOMAIN}"
_ADDRESSES = re.compile(rf"(?<![{_LOCAL}]){_ADDRESS}")
_ADJOINING = re.compile(_ADDRESS)
_QUOTED_ADDRESSES = re.compile(rf'(?P<local>"[^"\r\n\x00]{{1,64}}")@{_DOMAIN}')
_TOP_LEVEL = re.compile(r"xn--[a-z0-9-]+|[^\W\d_]{2,}", re.IGNORECASE)
# `icon@2x.png` is a picture for dense screens.
_PICTURES = frozenset({"gif", "jpeg", "jpg", "png", "svg", "webp"})


def emails(view: View) -> Iterator[Span]:
    """Find addresses with letters of any script, also with a quoted local part.

    Left alone: a host without a dot (`root@localhost`), and the `git@host:` of a repository's address.
    """
    chars = view.chars
    if "@" not in chars:
        return
    done = 0
    for first in _ADDRESSES.finditer(chars):
        found = first if first.start() >= done else None
        while found is not None and (end := _end_of_domain(found)):
            done = end
            start = found.start() + _leading_signs(found["local"])
            if start < found.end("local") and not _is_repository(chars, start, end):
                yield Span(start, end, Kind.EMAIL)
            found = _ADJOINING.match(chars, end)
    if '"@' in chars:
        for found in _QUOTED_ADDRESSES.finditer(chars):
            if end := _end_of_domain(found):
                yield Span(found.start(), end, Kind.EMAIL)


def _leading_signs(local: str) -> int:
    """Count what belongs to the sentence, such as an opening quote or the stars of bold type."""
    return len(local) - len(local.lstrip(".'!#$*~-"))


def _end_of_domain(found: re.Match[str]) -> int:
    """Return where the last label ends that can be a top-level domain, or 0 if there is none."""
    start, end = found.span("domain")
    domain = found["domain"]
    while (dot := domain.rfind(".", 0, end - start)) > 0:
        label = _TOP_LEVEL.match(domain, dot + 1, end - start)
        if label and label[0].lower() not in _PICTURES:
            return start + label.end()
        end = start + dot
    return 0


def _is_repository(chars: str, start: int, end: int) -> bool:
    return chars.startswith("git@", start) and chars[end : end + 1] in {":", "/"}


# Source: SSA, "Social Security Number Randomization" (2011): no area 000, 666 or 900-999, no group 00, no serial 0000.
# A digit comes first in the pattern, and what may not precede it after it: so the engine skips to digits.
_AREA = r"[0-8](?<![0-9A-Za-z][0-8])(?<![0-9][-.][0-8])[0-9]{2}(?<!000)(?<!666)"
_SEPARATED = re.compile(_AREA + r"(?P<by>[ -])(?!00)[0-9]{2}(?P=by)(?!0000)[0-9]{4}(?![0-9A-Za-z]|[-.][0-9])")
_NAMED = re.compile(
    r"(?<![a-z])(?:ssn|social security(?: number| no\.?| #)?)"
    r"[\"'\\]{0,3} {0,3}(?:[:=#]|is)? {0,3}[\"'\\]{0,3}"
    rf"(?P<number>{_AREA}(?!00)[0-9]{{2}}(?!0000)[0-9]{{4}})(?![0-9a-z])"
)


def social_security_numbers(view: View) -> Iterator[Span]:
    """Find US social security numbers with dashes or spaces, and nine digits that are said to be one."""
    for found in _SEPARATED.finditer(view.chars):
        yield Span(*found.span(), Kind.SSN)
    if "ssn" in view.lower or "social sec" in view.lower:
        for found in _NAMED.finditer(view.lower):
            yield Span(*found.span("number"), Kind.SSN)
