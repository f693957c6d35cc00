"""Credentials on the wire: in front of the host of a URL, and in the headers of a request."""

from __future__ import annotations

import re
from collections.abc import Iterator

from theodolite.redactors.rules.randomness import looks_random
from theodolite.redactors.rules.span import Kind, Span
from theodolite.redactors.rules.view import View

__all__ = ("headers", "url_credentials")

_AUTHORITY = re.compile(r"://(?P<authority>[^\s/?#\"'<>\x00]++)")
_LONG_NAME = 20  # of a user without a password: long enough for a token in its place


def url_credentials(view: View) -> Iterator[Span]:
    """Find user and password, or a token in the user's place, in front of the host of a URL."""
    chars = view.chars
    if "://" not in chars or "@" not in chars:
        return
    for found in _AUTHORITY.finditer(chars):
        user, at, _ = found["authority"].rpartition("@")
        if at and (":" in user or len(user) >= _LONG_NAME):
            start = found.start("authority")
            yield Span(start, start + len(user), Kind.CREDENTIALS)


_AUTHORIZATION = re.compile(
    r"authorization[\"'\\]{0,3}[ \t]{0,4}[:=][ \t]{0,4}[\"'\\]{0,3}"
    r"(?P<scheme>(?:bearer|basic|token|digest|negotiate|apikey|key)[ \t]{1,4})?(?P<value>[^\s\"'\\,;<>\x00]{4,}+)"
)
_BEARER = re.compile(r"bearer(?<![a-z]bearer)[ \t]{1,4}[\"']?(?P<value>[a-z0-9._~+/=-]{6,}+)")
_COOKIE = re.compile(
    r"cookie(?<![a-z]cookie)[\"']?[ \t]{0,4}:[ \t]{0,4}[\"']?(?P<value>[^\s=;,\"'\x00]{1,64}=[^\r\n\"'\x00]++)"
)
_NO_CREDENTIALS = frozenset({"required", "needed", "missing", "invalid", "expired", "authentication"})


def headers(view: View) -> Iterator[Span]:
    """Find what follows `Authorization:`, `Bearer` and `Cookie:`.

    What names its scheme is believed; a value alone must look random.
    """
    lower = view.lower
    if "authorization" in lower:
        for found in _AUTHORIZATION.finditer(lower):
            start, end = found.span("value")
            named = found["scheme"] and found["value"] not in _NO_CREDENTIALS
            if named or looks_random(view.chars[start:end]):
                yield Span(start, end, Kind.CREDENTIALS)
    if "bearer" in lower:
        for found in _BEARER.finditer(lower):
            start, end = found.span("value")
            if looks_random(view.chars[start:end]):
                yield Span(start, end, Kind.CREDENTIALS)
    if "cookie" in lower:
        for found in _COOKIE.finditer(lower):
            yield Span(*found.span("value"), Kind.CREDENTIALS)
