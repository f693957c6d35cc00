"""Keys that show by their own form what they are: private keys, JSON web tokens, and keys of known services."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from theodolite.redactors.rules.span import Kind, Span
from theodolite.redactors.rules.view import View, holds

__all__ = ("private_keys", "service_keys", "web_tokens")

_BEGIN = r"-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}"
_END = r"-{4,5} ?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}"
# Up to the END line if it is the next thing of its kind; else what can be base64, its line ends (also written `\n`)
# and PEM headers. RFC 4716 (SSH2) has four dashes and a space.
_ARMORED = re.compile(rf"{_BEGIN}(?:(?:[^-]++|-(?!---))*+{_END}|[A-Za-z0-9+/=\s\\:,-]*+)")
# Source: PuTTY user manual, appendix C: lines of 64 characters, the last one shorter, and a MAC over them.
_BASE64 = "[A-Za-z0-9+/]"
_PPK = re.compile(
    rf"Private-Lines:[ \t]?[0-9]{{1,4}}"
    rf"(?:(?:\s{{1,16}}{_BASE64}{{64}})++(?:\s{{1,16}}(?!Private-){_BASE64}{{1,63}}={{0,2}})?"
    rf"|\s{{1,16}}{_BASE64}{{20,63}}={{0,2}})"
    r"(?:\s{1,16}Private-(?:MAC|Hash):[ \t]?[0-9a-fA-F]{1,128})?"
)
# Source: the formats of minisign and of OpenBSD's signify: algorithm `Ed`, then how the key is sealed.
_SIGNING = re.compile(rf"(?<![A-Za-z0-9+/])RW(?:RTY0Iy|QAAEIy|RCSw){_BASE64}{{90,}}+={{0,2}}")
_PRIVATE = (
    (("PRIVATE KEY",), _ARMORED),
    (("Private-Lines:",), _PPK),
    (("RWRTY0Iy", "RWQAAEIy", "RWRCSw"), _SIGNING),
)


def private_keys(view: View) -> Iterator[Span]:
    """Find private keys in PEM, OpenPGP and SSH2 armor, also without their end, and those of PuTTY and minisign."""
    for signs, pattern in _PRIVATE:
        if holds(view.chars, signs):
            for found in pattern.finditer(view.chars):
                yield Span(found.start(), found.start() + len(found[0].rstrip()), Kind.PRIVATE_KEY)


# Source: RFC 7515 (three parts; the signature may be missing), RFC 7516 (five). `eyJ` is `{"` in base64url.
_WEB_TOKEN = re.compile(r"eyJ(?<![A-Za-z0-9_-]eyJ)[A-Za-z0-9_-]{5,}+\.[A-Za-z0-9_-]{5,}+(?:\.[A-Za-z0-9_-]*+){0,3}")


def web_tokens(view: View) -> Iterator[Span]:
    """Find JSON web tokens, signed, encrypted or neither."""
    if "eyJ" in view.chars:
        for found in _WEB_TOKEN.finditer(view.chars):
            yield Span(*found.span(), Kind.JWT)


class _Form(NamedTuple):
    """The keys of a service: a word that each of them has, and the pattern of the whole."""

    sign: str
    pattern: re.Pattern[str]


def _form(sign: str, rest: str, *, head: str = "") -> _Form:
    return _Form(sign, re.compile(rf"(?<![A-Za-z0-9]){head}{re.escape(sign)}{rest}"))


_WORD = "[A-Za-z0-9]"
_WORDS = "[A-Za-z0-9_-]"
_HEX = "[0-9a-f]"
# Lengths are lower bounds, for services make their keys longer. Source: the services' own documentation; where that
# says nothing, keys that they publish as examples.
_FORMS = (
    *(
        # The secret key, 40 characters without a sign of their own, often stands right behind the id of its key.
        _form(sign, r"[A-Z0-9]{16}(?![A-Z0-9])(?:[\s:,;/|\"']{1,4}[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+]))?")
        for sign in ("AKIA", "ASIA", "ABIA", "ACCA", "AGPA", "AIDA", "AROA", "ANPA", "ANVA")
    ),
    *(_form(sign, rf"{_WORD}{{20,}}+") for sign in ("ghp_", "gho_", "ghu_", "ghs_", "ghr_")),
    *(_form(sign, rf"{_WORDS}{{16,}}+") for sign in ("sk-ant-", "sk-proj-", "sk-or-v1-", "sk-svcacct-")),
    _form("github_pat_", r"[A-Za-z0-9_]{22,}+"),
    _form("xox", rf"[a-z](?:\.xox[a-z])?-{_WORDS}{{10,}}+"),
    _form("xapp-", rf"{_WORDS}{{10,}}+"),
    _form("hooks.slack.com/", r"(?:services|workflows|triggers)/[A-Za-z0-9/_-]{16,}+"),
    _form("AIza", rf"{_WORDS}{{30,}}+"),
    _form("ya29.", rf"{_WORDS}{{20,}}+"),
    _form("GOCSPX-", rf"{_WORDS}{{20,}}+"),
    *(_form(sign, rf"{_WORD}{{10,}}+") for sign in ("sk_live_", "sk_test_", "rk_live_", "rk_test_")),
    _form("whsec_", r"[A-Za-z0-9+/=]{24,}+"),
    _form("npm_", rf"{_WORD}{{30,}}+"),
    _form("pypi-AgE", rf"{_WORDS}{{40,}}+"),
    _form("rubygems_", rf"{_HEX}{{40,}}+"),
    *(_form(sign, r"[A-Za-z0-9_.-]{18,}+") for sign in ("glpat-", "gldt-", "glrt-", "glptt-", "glsoat-", "glcbt-")),
    _form("hf_", rf"{_WORD}{{30,}}+"),
    _form("SG.", rf"{_WORDS}{{16,}}+\.{_WORDS}{{16,}}+"),
    _form("key-", rf"{_HEX}{{32}}(?!{_WORD})"),
    *(_form(sign, rf"{_HEX}{{60,}}+") for sign in ("dop_v1_", "doo_v1_", "dor_v1_")),
    *(_form(sign, r"[0-9a-fA-F]{32}") for sign in ("shpat_", "shpca_", "shppa_", "shpss_")),
    _form("dapi", rf"{_HEX}{{32}}(?!{_WORD})"),
    *(_form(sign, rf"{_WORD}{{32,}}+") for sign in ("gsk_", "xai-", "r8_", "pplx-", "ntn_", "lin_api_")),
    *(_form(sign, r"[A-Za-z0-9_.-]{20,}+") for sign in ("hvs.", "hvb.", "figd_", "glsa_", "glc_", "sntrys_", "sbp_")),
    *(_form(sign, r"[A-Za-z0-9_.-]{30,}+") for sign in ("ATATT3", "dp.pt.", "tskey-", "NRAK-")),
    _form("AGE-SECRET-KEY-", r"(?:PQ-)?1[0-9A-Z]{50,}+"),
    _form("AGE-PLUGIN-", r"[A-Z0-9]{1,24}-1[0-9A-Z]{20,}+"),
    *(
        _form(sign, rf"{_WORDS}{{20,}}+")
        for sign in ("dckr_pat_", "dckr_oat_", "nvapi-", "sq0csp-", "sq0atp-", "PMAK-")
    ),
    _form("pul-", rf"{_HEX}{{40}}"),
    _form(":AA", rf"{_WORDS}{{32,}}+", head="(?:bot)?[0-9]{8,10}"),  # Telegram bots
)
# OpenAI and those that follow it. Kebab-case words may begin alike, hence the check below.
_SK = _form("sk-", rf"{_WORDS}{{20,}}+")
_DRAWN = re.compile(r"[A-Za-z0-9]{16}")
_LONG_WORD = re.compile(r"[A-Za-z0-9_./:-]{14}")  # the shortest of all the forms


def service_keys(view: View) -> Iterator[Span]:
    """Find keys of cloud, code, payment, chat and model services by the words that they begin with."""
    chars = view.chars
    if not _LONG_WORD.search(chars):
        return
    for sign, pattern in _FORMS:
        if sign in chars:
            for found in pattern.finditer(chars):
                yield Span(*found.span(), Kind.API_KEY)
    if "sk-" in chars:
        for found in _SK.pattern.finditer(chars):
            if _DRAWN.search(found[0]):
                yield Span(*found.span(), Kind.API_KEY)
