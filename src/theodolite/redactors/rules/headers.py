"""Credentials on the wire: in front of the host of a URL, and in the headers of a request."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator

from theodolite.redactors.rules.randomness import looks_random
from theodolite.redactors.rules.span import Kind, Span
from theodolite.redactors.rules.view import View

__all__ = ("headers", "url_credentials")

_AUTHORITY = re.compile(r"://(?P<authority>[^\s/?#\"'<>\x00]++)")
# A password that holds what should have been escaped in it, or was, up to the `@` of a host with a dot or a port. What
# is digits alone is a port itself, and what follows it a path.
_UNESCAPED = re.compile(
    r"://[^\s/?#@:\"'<>\x00]{0,64}:(?![0-9]*[/?#])[^\s\"'<>\x00]{1,128}?@(?=[\w-]{1,64}(?:\.[\w-]|:[0-9]))"
)
_LONG_NAME = 20  # of a user without a password: long enough for a token in its place
# Source: Oracle Database JDBC developer's guide: the user, a slash, the password and the host.
_ORACLE = re.compile(r"jdbc:oracle:[a-z]{1,8}:(?P<user>[^\s/@\"'\x00]{1,64}/[^\s@\"'\x00]{1,128})@", re.IGNORECASE)


def url_credentials(view: View) -> Iterator[Span]:
    """Find user and password, or a token in the user's place, in front of the host of a URL."""
    chars = view.chars
    if "@" not in chars:
        return
    if "://" in chars:
        for found in _AUTHORITY.finditer(chars):
            user, at, _ = found["authority"].rpartition("@")
            if at and (":" in user or len(user) >= _LONG_NAME):
                start = found.start("authority")
                yield Span(start, start + len(user), Kind.CREDENTIALS)
        for found in _UNESCAPED.finditer(chars):
            yield Span(found.start() + len("://"), found.end() - 1, Kind.CREDENTIALS)
    if "racle" in chars:
        for found in _ORACLE.finditer(chars):
            yield Span(*found.span("user"), Kind.CREDENTIALS)


_AUTHORIZATION = re.compile(
    r"authorization[\"'\\]{0,3}[ \t]{0,4}[:=][ \t]{0,4}[\"'\\]{0,3}"
    r"(?:(?:digest|oauth|hawk|signature|aws4-hmac-sha256)[ \t]{1,4}"
    r"(?P<parameters>(?:[a-z_-]{1,32}=(?:\"[^\"\r\n\x00]*+\"|[^\s,\"';\x00]++)[,; ]{0,3})++)"
    r"|(?P<scheme>(?:bearer|basic|token|digest|negotiate|ntlm|bot|apikey|key)[ \t]{1,4})?"
    r"(?P<value>[^\s\"'\\,;<>\x00]{4,}+))"
)
_BEARER = re.compile(r"bearer(?<![a-z]bearer)[ \t]{1,4}[\"']?(?P<value>[a-z0-9._~+/=-]{6,}+)")
_BASIC = re.compile(r"basic(?<![a-z]basic)[ \t]{1,4}[\"']?(?P<value>[a-z0-9+/]{6,}+={0,2})")
_COOKIE = re.compile(
    r"cookie(?<![a-z]cookie)[\"']?[ \t]{0,4}:[ \t]{0,4}[\"']?(?P<value>[^\s=;,\"'\x00]{1,64}=[^\r\n\"'\x00]++)"
)
_NO_CREDENTIALS = frozenset({"required", "needed", "missing", "invalid", "expired", "authentication"})
# `$TOKEN`, `{token}`, `%s`, `YOUR_TOKEN`, `xxxx`, `...`
_BLANK = re.compile(
    r"[$%{(\[*].*|[.x]{3,}|(?:your|my|the|some|access|api|auth|bearer|id|user)?[_-]?(?:access|api|auth)?[_-]?"
    r"(?:token|key|jwt|credentials?|secret)(?:[_-]?here)?"
)
_SHORT_TOKEN = re.compile(r"(?=[^0-9]*[0-9])[!-~]{8}")  # `Bearer` in capitals and a digit say enough


def headers(view: View) -> Iterator[Span]:
    """Find what follows `Authorization:`, `Bearer`, `Basic` and `Cookie:`.

    What names its scheme is believed, unless it is a blank to be filled in; a value alone must look random.
    """
    lower = view.lower
    if "authorization" in lower:
        yield from _authorizations(view)
    if "bearer" in lower:
        for found in _BEARER.finditer(lower):
            start, end = found.span("value")
            believed = view.chars.startswith("Bearer", found.start()) and _SHORT_TOKEN.match(lower, start, end)
            if believed or looks_random(view.chars[start:end]):
                yield Span(start, end, Kind.CREDENTIALS)
    if "basic" in lower:
        for found in _BASIC.finditer(lower):
            start, end = found.span("value")
            if _holds_user_and_password(view.chars[start:end]):
                yield Span(start, end, Kind.CREDENTIALS)
    if "cookie" in lower:
        for found in _COOKIE.finditer(lower):
            yield Span(*found.span("value"), Kind.CREDENTIALS)


def _authorizations(view: View) -> Iterator[Span]:
    for found in _AUTHORIZATION.finditer(view.lower):
        if found["parameters"]:
            yield Span(*found.span("parameters"), Kind.CREDENTIALS)
            continue
        start, end = found.span("value")
        value = found["value"]
        named = found["scheme"] and value not in _NO_CREDENTIALS and not _BLANK.fullmatch(value)
        if named or looks_random(view.chars[start:end]):
            yield Span(start, end, Kind.CREDENTIALS)


def _holds_user_and_password(encoded: str) -> bool:
    """Whether it is base64 of `user:password` (RFC 7617). A word that happens to be base64 has no colon in it."""
    try:
        plain = base64.b64decode(encoded, validate=True)
    except ValueError:
        return False
    return b":" in plain and plain.isascii() and plain.decode().isprintable()
