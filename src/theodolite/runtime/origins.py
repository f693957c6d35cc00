"""Where the arguments of a call came from, as a report may show it: derived from the session, and never evidence."""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping

from msgspec.structs import replace

from theodolite.core.intent import ArgumentOrigin, Origin
from theodolite.core.redaction import Scrubber

__all__ = ("ARGUMENTS", "shown")

ARGUMENTS = 64
"""Values of a call that are shown. No recorded call that we have read has over 8."""

_CUT = "\N{HORIZONTAL ELLIPSIS}"
# Paths of a session that are remembered. Its tools have a handful of arguments each.
_KNOWN = 1_024


def shown(
    origins: Iterable[ArgumentOrigin], scrub: Scrubber, known: MutableMapping[str, str]
) -> tuple[ArgumentOrigin, ...]:
    """Return the origins of a call with every name in their paths redacted.

    Of more than 64 values those from untrusted text come first. Each name is scrubbed as it was before it became a
    part of a pointer; one that the pointer cut short is left out, since half a secret is not known as one. `known` are
    paths of the same session as they were shown before: to hide later what was shown is of no use, and the same few
    come with each call. At most 1,024 are remembered.

    >>> from theodolite.core.redaction import DenyAll
    >>> found = ArgumentOrigin(path="/to", origin=Origin.USER)
    >>> shown([found], Scrubber(DenyAll(), (), ()), {})[0].path
    '[REDACTED:TEXT]'
    """
    found = list(origins)
    if len(found) > ARGUMENTS:
        found.sort(key=lambda item: item.origin is not Origin.TOOL_RESULT)
    return tuple([replace(item, path=_path(item.path, scrub, known)) for item in found[:ARGUMENTS]])


def _path(path: str, scrub: Scrubber, known: MutableMapping[str, str]) -> str:
    if path not in known:
        if len(known) >= _KNOWN:
            known.clear()
        known[path] = _scrubbed(path, scrub)
    return known[path]


def _scrubbed(path: str, scrub: Scrubber) -> str:
    root, *names = path.split("/")
    return scrub.quote("/".join([root, *[_name(name, scrub) for name in names]]), name=True)


def _name(name: str, scrub: Scrubber) -> str:
    """Return one name of a JSON Pointer (RFC 6901), scrubbed."""
    if name.endswith(_CUT):
        return _CUT
    plain = name.replace("~1", "/").replace("~0", "~")
    return scrub.words(plain, name=True).replace("~", "~0").replace("/", "~1")
