"""Secrets that only their name gives away: `password = ...`, `"token": "..."`, `my password is ...`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from theodolite.redactors.rules.randomness import looks_random
from theodolite.redactors.rules.span import Kind, Span
from theodolite.redactors.rules.view import HIDDEN, View, holds

__all__ = ("assignments", "codes")

# The names of passwords, which are believed, and of what must look random as well.
#
# In this module and the others a pattern begins with a letter or digit, and what may not stand before that is asked
# behind it: `auth(?<![a-z]auth)`. So the engine skips to where a find can begin, which takes a quarter of the time.
_BELIEVED_NAME = (
    r"(?:passw(?:or)?d|pass[ _-]?(?:phrase|code)|passwort|pass(?<=[_-]pass)|pass(?<![a-z]pass)(?==)|pwd|pw(?<![a-z]pw)"
    r"|kennwort|contrase[ñn]a|mot de passe|senha|пароль|密码|パスワード)"
    r"(?:s|[0-9]{1,2}|[_-]?(?:hash|digest|salt|confirm(?:ation)?|again|plain|value|text|encrypted))?"
)
_DOUBTED_NAME = (
    r"(?:token(?!i[sz])|secret(?!ar)|credential|signature"
    r"|(?:api|access|account|private|secret|signing|encryption|shared|auth|master)[ _-]?key"
    r"|auth(?<![a-z]auth)(?![a-z])|jwt(?<![a-z]jwt)|sig(?<![a-z]sig))[a-z0-9_-]{0,24}+"
)
# What may stand between a name and its value: the end of a quote, a subscript or bold type, and a sign; the end of a
# tag; a verb. Never a new line.
_SIGN = (
    r"\\{0,3}[\"'`\])*_]{0,3}[ \t]{0,8}"
    r"(?:=>|:=|(?::[ ]?(?:str|string|bytes|secretstr)(?:[ ]\|[ ]none)?[ ]?)?={1,3}|:)"
    r"\*{0,2}[ \t]{0,8}"
)
_VERB = (
    r"[\"'`*]{0,2}(?:[ ](?:for|to|of|on|at)[ ][^\n\x00.:;=!?]{1,40}?)?"
    r"[ \t](?:is|was|are|will be)[ \t]?:?[ \t]{1,2}(?=[^ \t])"
)
# `- name: DB_PASSWORD` and below it `value: ...`, as in the manifests of containers.
_ENTRY = r"[\"']?[ \t]{0,8},?\s{1,20}[\"']?value[\"']?[ \t]{0,4}[:=][ \t]{0,4}"
_IS = rf"(?:{_SIGN}|>|{_VERB}|{_ENTRY})"
_QUOTED_NEXT = r"[ ](?=[\"'`“][^\s\"'`”]{1,64}[\"'`”])"
# A quote that is not closed ends with its line. Outside of quotes, a closing sign belongs to the value if the value
# goes on behind it.
_VALUE = (
    r"(?:[bfru]{0,2}(?:"
    r"\"(?P<double>(?:[^\"\\\r\n]|\\[^\r\n])*+)"
    r"|'(?P<single>(?:[^'\\\r\n]|\\[^\r\n])*+)"
    r"|`(?P<ticks>[^`\r\n]*+)"
    r"|“(?P<curly>[^”\r\n]*+)"
    r"|\\{1,3}[\"'](?P<escaped>[^\"'\\\r\n]*+))"
    r"|(?P<bare>(?!\|[+-]?[ \t]*+[\r\n])(?:[^\s\"'`“<>,;&(){}\[\]]"
    r"|[,;&()}\]](?![\s\"'`<>,;:.&(){}\[\]]|\Z|[\w.-]{1,32}[\"']?[=:]))++))"
)
# On a line of its own below its name: one word, in quotes or not. There sentences begin, too, and lists.
_BELOW = (
    r"[\"'`*_]{0,3}[ \t]{0,4}(?::|={1,2}|:=)(?:[ \t]{0,4}[|>][+-]?)?\*{0,2}[ \t]{0,8}"
    r"(?:\r?\n[ \t]{0,40}){1,2}[\"'`*]{0,3}(?P<below>[^\s\"'`<>{}\[\]\x00]{4,64}+)[\"'`*]{0,3},?[ \t]{0,8}(?![^\r\n])"
)
_PASSWORD = re.compile(rf"{_BELIEVED_NAME}(?:(?:{_IS}|{_QUOTED_NEXT}){_VALUE}|{_BELOW})")
_SECRET = re.compile(rf"{_DOUBTED_NAME}(?:{_IS}{_VALUE}|{_BELOW})")
_PLAIN_WORD = re.compile(r"[a-z_-]*[.:,;!?]*\Z")
# In connection strings a value ends with a semicolon, and may hold what would otherwise end it.
_FIELD = re.compile(r";[ ]?(?:password|pwd)=(?P<bare>[^;\r\n\"'\x00]{1,128}+)")
_WHOLE_CALL = re.compile(r"[\w.]+\([^()]*\)")
# `password Winter2024!`, with no verb between: two digits at least and a letter, and not `sha256` or `v1.2.10`.
_SPOKEN = re.compile(
    r"passw(?:or)?d[ ](?P<bare>(?!(?:sha|md|rsa|aes|utf|iso|base|argon|pbkdf|v?[0-9])[0-9._-])"
    r"(?=[^\s0-9]*[0-9][^\s0-9]*[0-9])(?=[^\sa-z]*[a-z])[^\s\"'`<>(){},;\x00]{6,64}+)"
)
# Options that only their command tells: of MySQL's tools, sshpass and curl.
_COMMAND = re.compile(
    r"(?:(?:mysql|mariadb)[a-z-]{0,16}[ ](?:[^\r\n\x00|]{0,120}?[ ])?-p|sshpass[ ]-p[ ]?"
    r"|curl[ ](?:[^\r\n\x00|]{0,120}?[ ])?(?:-u|--user)[ =]?[\"']?[\w.@-]{1,64}:)[\"']?"
    r"(?P<bare>[^\s\"'$\x00]{3,128}+)"
)
_OPTION = re.compile(
    r"(?<![\w-])--?(?:[a-z]{1,16}-){0,3}(?:(?P<password>password|passwd|passphrase|pass|pwd)|token|secret|api-?key)"
    rf"[ ]{_VALUE}"
)
# One of these is in each name.
_PASSWORD_SIGNS = (
    *("passw", "phrase", "code", "pw", "pass=", "_pass", "-pass"),
    *("kennwort", "contrase", "mot de passe", "senha", "пароль", "密码", "パスワード"),
)
_COMMAND_SIGNS = ("mysql", "mariadb", "sshpass", "curl")
_SECRET_SIGNS = ("token", "secret", "credential", "signature", "key", "auth", "jwt", "sig")

# What follows "password:" or "password is" and is not one: words of programs and of sentences.
_NO_PASSWORD = frozenset(
    re.findall(
        r"\S+",
        """
        none null nil undefined true false str string text bytes int bool boolean varchar char object any optional
        required require requires mandatory missing empty blank incorrect wrong invalid valid correct weak strong
        secure insecure expired old new same different important unknown known safe case-sensitive a an the this that
        these it my your his her our their its not no never always already still only also just now then so too very
        more less at in on of to from for by with without via and or but if as when where who what how please enter
        click see use must should shall may might can cannot could will would is are was were be been being has have
        had do does did n/a tbd todo field input reset here there up out ok okay yes lost forgotten stolen masked
        redacted encrypted hashed changed updated saved stored protected provided confirmed kept hidden sent set shown
        at-least one long short enough good bad random unique
        """,
    )
)
_WORD_OF_SENTENCE = re.compile(r"[a-z]{3,}(?:ed|ing|ly|able|ible)[.!?]?\Z")
# No literal: `$VAR`, `%s`, `***`, a path, an option, a URL, an expression, an attribute, another name of a password.
_EXPRESSION = re.compile(
    r"[$%/~|]|--|\*+\Z|\.{2,}|x{3,}\Z|.\Z|[a-z]{3,8}://|[(\[{]\w*[.(\[]"
    r"|(?:self|this|os|env|environ|args|config|settings|process|request|user|options|opts|params|data|kwargs|form)[.\[]"
    r"|(?:[a-z]+_)?(?:password|passwd|passphrase|pwd?|credentials?|auth|user(?:name)?|return)(?:_[a-z]+)?\Z"
)
_CALL = re.compile(r"[\w.]+[(\[]")
# In quotes: a blank to be filled in, or what follows a closing quote that was taken for an opening one.
_BLANK = re.compile(r"(?:[^\w%]*%[sr])+|[$%]?[{(<][\w .-]*[)}>]s?|\$[a-z_]+|\*+|[\s,)\]};:+].*")
_NO_SECRET = re.compile(r"\s|://|\A0x[0-9A-Fa-f]{1,16}\Z")


def assignments(view: View) -> Iterator[Span]:
    """Find values that are named as passwords or secrets.

    A password is believed whatever it looks like, unless it is a word of a sentence or of a program. What is named
    token, secret or key must also look random.
    """
    lower = view.lower
    if holds(lower, _PASSWORD_SIGNS):
        yield from _passwords(view)
    if holds(lower, _SECRET_SIGNS):
        for found in _SECRET.finditer(lower):
            start, end = _span_of_value(found)
            value = view.chars[start:end]
            if looks_random(value) and not _NO_SECRET.search(value) and not _CALL.match(lower, start):
                yield Span(start, end, Kind.SECRET)
    if " -" in lower or lower.startswith("-"):
        for found in _OPTION.finditer(lower):
            yield from _believed(view, found, Kind.PASSWORD if found["password"] else Kind.SECRET)
        if holds(lower, _COMMAND_SIGNS):
            for found in _COMMAND.finditer(lower):
                yield Span(*_span_of_value(found), Kind.PASSWORD)


def _passwords(view: View) -> Iterator[Span]:
    lower = view.lower
    for found in _PASSWORD.finditer(lower):
        yield from _believed(view, found, Kind.PASSWORD)
    if "password " in lower or "passwd " in lower:
        for found in _SPOKEN.finditer(lower):
            yield from _believed(view, found, Kind.PASSWORD)
    if "password=" in lower or "pwd=" in lower:
        for found in _FIELD.finditer(lower):
            if not _WHOLE_CALL.fullmatch(found["bare"]) and found["bare"] not in _NO_PASSWORD:
                yield Span(*found.span("bare"), Kind.PASSWORD)


def _believed(view: View, found: re.Match[str], kind: Kind) -> Iterator[Span]:
    start, end = _span_of_value(found)
    value = view.lower[start:end]
    if not value.strip(HIDDEN + " "):
        return
    if found.lastgroup not in {"bare", "below"}:
        literal = _BLANK.fullmatch(value) is None
    else:
        spoken = view.lower[found.start() : start].rstrip()[-1:].isalpha()
        word = (spoken and _WORD_OF_SENTENCE.match(value)) or (found.lastgroup == "below" and _PLAIN_WORD.match(value))
        literal = not (word or _EXPRESSION.match(value) or _CALL.match(view.lower, start))
    if literal and value.rstrip(".!?") not in _NO_PASSWORD:
        yield Span(start, end, kind)


def _span_of_value(found: re.Match[str]) -> tuple[int, int]:
    kind = found.lastgroup or "bare"
    start, end = found.span(kind)
    if kind in {"bare", "below"}:
        end = start + len(found[kind].rstrip(".,;:"))
    return start, end


_CODE = re.compile(
    r"(?:pin(?<![a-z]pin)|otp(?<![a-z]otp)|cvv2?|cvc2?"
    r"|(?:one-time|verification|security|confirmation|2fa|mfa|sms) code)"
    r"(?: code| number)?[\"'*]{0,3}(?:[ \t]{0,4}(?:is|was|:|=|#)){1,2}[ \t]{0,4}[\"'`*]{0,3}"
    r"(?P<value>[0-9]{3,8})(?![0-9a-z_])"
)
_CODE_SIGNS = ("pin", "cvv", "cvc", "otp", " code")


def codes(view: View) -> Iterator[Span]:
    """Find PINs, card security codes and one-time codes that are called so."""
    if holds(view.lower, _CODE_SIGNS):
        for found in _CODE.finditer(view.lower):
            yield Span(*found.span("value"), Kind.PASSWORD)
