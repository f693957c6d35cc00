"""Credentials that only their surroundings give away: `password = ...`, `"token": "..."`, headers, URLs, spoken ones."""

from __future__ import annotations

import re
from collections.abc import Iterator

from theodolite.redactors.rules.randomness import looks_random
from theodolite.redactors.rules.span import Kind, Span
from theodolite.redactors.rules.view import HIDDEN, View

__all__ = ("assignments", "codes", "headers", "url_credentials")

# In this module and the others a pattern begins with a letter or digit, and what may not stand before that is asked
# behind it: `auth(?<![a-z]auth)`. So the engine skips to where a find can begin, four times as fast.
_PASSWORD = (
    r"(?:passw(?:or)?d|pass[ _-]?(?:phrase|code)|passwort|pass(?<=[_-]pass)|pass(?<![a-z]pass)(?==)|pwd|pw(?<![a-z]pw)"
    r"|kennwort|contrase[ñn]a|mot de passe|senha|пароль|密码|パスワード)"
    r"(?:s|[0-9]{1,2}|[_-]?(?:hash|digest|salt|confirm(?:ation)?|again|plain|value|text|encrypted))?"
)
_SECRET = (
    r"(?:token|secret|credential|signature|(?:api|access|account|private|secret|signing|encryption|shared|auth|master)"
    r"[ _-]?key|auth(?<![a-z]auth)|jwt(?<![a-z]jwt)|sig(?<![a-z]sig))[a-z0-9_-]{0,24}"
)
# What may stand between a name and its value: the end of a quote, a subscript or bold type; a sign or a verb. A
# space is never more than eight of them, and never a new line.
_IS = (
    r"(?:\\{0,3}[\"'`\])*_]{0,3}[ \t]{0,8}(?:=>|:=|(?::[ ]?(?:str|string|bytes|secretstr)(?:[ ]\|[ ]none)?[ ]?)?={1,3}|:)"
    r"\*{0,2}[ \t]{0,8}|>"
    r"|[\"'`*]{0,2}(?:[ ](?:for|to|of|on|at)[ ][^\n\x00.:;=!?]{1,40}?)?[ \t](?:is|was|are|will be)[ \t]?:?[ \t]{1,2}(?=[^ \t]))"
)
_VALUE = (
    r"(?:[bfru]{0,2}(?:"
    r"\"(?P<double>(?:[^\"\\\r\n]|\\[^\r\n])*+)"
    r"|'(?P<single>(?:[^'\\\r\n]|\\[^\r\n])*+)"
    r"|`(?P<ticks>[^`\r\n]*+)"
    r"|“(?P<curly>[^”\r\n]*+)"
    r"|\\{1,3}[\"'](?P<escaped>[^\"'\\\r\n]*+))"
    # A closing sign belongs to the value if the value goes on behind it.
    r"|(?P<bare>(?:[^\s\"'`“<>,;&(){}\[\]]|[,;&()}\]](?![\s\"'`<>,;&(){}\[\]]|\Z|[\w.-]{1,32}[\"']?[=:]))++))"
)
_QUOTED_NEXT = r"[ ](?=[\"'`“][^\s\"'`”]{1,64}[\"'`”])"
_PASSWORD_IS = re.compile(rf"{_PASSWORD}(?:{_IS}|{_QUOTED_NEXT}){_VALUE}")
_SECRET_IS = re.compile(rf"{_SECRET}{_IS}{_VALUE}")
_OPTION = re.compile(
    r"(?<![\w-])--?(?:[a-z]{1,16}-){0,3}(?:(?P<password>password|passwd|passphrase|pass|pwd)|token|secret|api-?key)"
    rf"[ ]{_VALUE}"
)
_PASSWORD_SIGNS = ("passw", "phrase", "code", "pw", "pass=", "_pass", "-pass", "kennwort", "contrase", "mot de", "senha")
_PASSWORD_SIGNS += ("пароль", "密码", "パスワード")
_SECRET_SIGNS = ("token", "secret", "credential", "signature", "key", "auth", "jwt", "sig")
_QUOTED = ("double", "single", "ticks", "curly", "escaped")

# What follows "password:" or "password is" and is not one: values of programs, and words of sentences.
_NO_PASSWORD = frozenset(
    """
    none null nil undefined true false str string text bytes int bool boolean varchar char object any optional
    required require requires mandatory missing empty blank incorrect wrong invalid valid correct weak strong secure
    insecure expired old new same different important unknown known safe case-sensitive a an the this that these it
    my your his her our their its not no never always already still only also just now then so too very more less at in
    on of to from for by with without via and or but if as when where who what how please enter click see use must
    should shall may might can cannot could will would is are was were be been being has have had do does did n/a tbd
    todo field input reset here there up out ok okay yes lost forgotten stolen kept hidden sent set shown at-least one
    long short enough good bad random unique
    """.split()
)
_WORD_OF_SENTENCE = re.compile(r"[a-z]{3,}(?:ed|ing|ly|able|ible)[.!?]?\Z")
# `$VAR`, `${VAR}`, `%s`, `<your password>`, `***`, a path, a type, a call, an attribute: no literal.
_REFERENCE = re.compile(
    r"[$%/~|]|--|\*+\Z|\.{2,}|x{3,}\Z|[a-z]{3,8}://|"
    r"(?:self|this|os|env|environ|args|config|settings|process|request|user|options|opts|params|data|kwargs|form)[.\[]"
)
_CALL = re.compile(r"[\w.]+\(")


def assignments(view: View) -> Iterator[Span]:
    """Find values that are named as passwords or secrets.

    A password is believed whatever it looks like, unless it is a word of a sentence or of a program. What is named
    token, secret or key must also look random.
    """
    lower = view.lower
    if any(sign in lower for sign in _PASSWORD_SIGNS):
        for found in _PASSWORD_IS.finditer(lower):
            yield from _believed(view, found, Kind.PASSWORD)
    if any(sign in lower for sign in _SECRET_SIGNS):
        for found in _SECRET_IS.finditer(lower):
            start, end = _span_of_value(found)
            value = view.chars[start:end]
            if looks_random(value) and "://" not in value and not _CALL.match(lower, start):
                yield Span(start, end, Kind.SECRET)
    if " -" in lower or lower.startswith("-"):
        for found in _OPTION.finditer(lower):
            yield from _believed(view, found, Kind.PASSWORD if found["password"] else Kind.SECRET)


def _believed(view: View, found: re.Match[str], kind: Kind) -> Iterator[Span]:
    start, end = _span_of_value(found)
    value = view.lower[start:end]
    if not value.strip(HIDDEN + " "):
        return
    if found["bare"] is not None and _is_no_literal(view.lower, start, value):
        return
    if value.rstrip(".!?") not in _NO_PASSWORD:
        yield Span(start, end, kind)


def _span_of_value(found: re.Match[str]) -> tuple[int, int]:
    kind = found.lastgroup or "bare"
    start, end = found.span(kind)
    if kind == "bare":
        end = start + len(found[kind].rstrip(".,;:"))
    return start, end


def _is_no_literal(lower: str, start: int, value: str) -> bool:
    return bool(_REFERENCE.match(value) or _WORD_OF_SENTENCE.match(value) or _CALL.match(lower, start))


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


_HEADER = re.compile(
    r"authorization[\"'\\]{0,3}[ \t]{0,4}[:=][ \t]{0,4}[\"'\\]{0,3}"
    r"(?P<scheme>(?:bearer|basic|token|digest|negotiate|apikey|key)[ \t]{1,4})?(?P<value>[^\s\"'\\,;<>\x00]{4,}+)"
)
_BEARER = re.compile(r"bearer(?<![a-z]bearer)[ \t]{1,4}[\"']?(?P<value>[a-z0-9._~+/=-]{8,}+)")
_COOKIE = re.compile(r"cookie(?<![a-z]cookie)[\"']?[ \t]{0,4}:[ \t]{0,4}[\"']?(?P<value>[^\s=;,\"'\x00]{1,64}=[^\r\n\"'\x00]++)")


def headers(view: View) -> Iterator[Span]:
    """Find what follows `Authorization:`, `Bearer` and `Cookie:`."""
    lower = view.lower
    if "authorization" in lower:
        for found in _HEADER.finditer(lower):
            start, end = found.span("value")
            if looks_random(view.chars[start:end]) or (found["scheme"] and found["value"] not in _NO_PASSWORD):
                yield Span(start, end, Kind.CREDENTIALS)
    if "bearer" in lower:
        for found in _BEARER.finditer(lower):
            start, end = found.span("value")
            if looks_random(view.chars[start:end]):
                yield Span(start, end, Kind.CREDENTIALS)
    if "cookie" in lower:
        for found in _COOKIE.finditer(lower):
            yield Span(*found.span("value"), Kind.CREDENTIALS)


_CODE = re.compile(
    r"(?:pin(?<![a-z]pin)|otp(?<![a-z]otp)|cvv2?|cvc2?|(?:one-time|verification|security|confirmation|2fa|mfa|sms) code)"
    r"(?: code| number)?[\"'*]{0,3}(?:[ \t]{0,4}(?:is|was|:|=|#)){1,2}[ \t]{0,4}[\"'`*]{0,3}(?P<value>[0-9]{3,8})(?!\w)"
)
_CODE_SIGNS = ("pin", "cvv", "cvc", "otp", " code")


def codes(view: View) -> Iterator[Span]:
    """Find PINs, card security codes and one-time codes that are called so."""
    if any(sign in view.lower for sign in _CODE_SIGNS):
        for found in _CODE.finditer(view.lower):
            yield Span(*found.span("value"), Kind.PASSWORD)
