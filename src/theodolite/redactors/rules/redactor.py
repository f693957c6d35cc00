"""The redactor that is used where none is named."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from theodolite.core.errors import ConfigError
from theodolite.core.redaction import Profile, Redacted
from theodolite.core.text import printable
from theodolite.redactors.rules.assignments import assignments, codes
from theodolite.redactors.rules.headers import headers, url_credentials
from theodolite.redactors.rules.keys import private_keys, service_keys, web_tokens
from theodolite.redactors.rules.network import ipv4_addresses, ipv6_addresses
from theodolite.redactors.rules.payment import cards, ibans
from theodolite.redactors.rules.personal import emails, social_security_numbers
from theodolite.redactors.rules.phone import international_phones, national_phones
from theodolite.redactors.rules.pseudonyms import Pseudonyms
from theodolite.redactors.rules.remembered import Remembered
from theodolite.redactors.rules.span import PLACEHOLDER, Cut, Kind, Label, Span, placeholder
from theodolite.redactors.rules.view import View

__all__ = ("FREE_TEXT", "VOCABULARY", "RuleRedactor")

_TRUTH = frozenset({"true", "false"})
_DECISIONS = frozenset({"comply", "decline", "escalate", "unclear"})
_FIELDS = frozenset({"decision", "disclosed_data", "policy_cited", "escalation_suggested", "tool_call_attempted"})
VOCABULARY: Final[Mapping[str, Collection[str]]] = MappingProxyType(
    {
        "decision": _DECISIONS,
        "disclosed_data": _TRUTH,
        "policy_cited": _TRUTH,
        "escalation_suggested": _TRUTH,
        "tool_call_attempted": _TRUTH,
        "baseline": _DECISIONS,
        "contradiction": _FIELDS,
        "anomaly": frozenset({"parse_failure", "schema_mismatch", "field_missing", "tool_call_malformed"}),
        "triangulation": frozenset(
            {"legitimate", "drift_signal", "no_signal", "summary_calibration_anomaly", "all_differ"}
        ),
        "trigger": frozenset({"context_growth", "external_content", "compaction", "handoff", "reputation", "manual"}),
        "system": frozenset({"given", "absent"}),
        "gate": frozenset({"passed", "failed", "stale", "none"}),
        "length": frozenset({"brief", "short", "medium", "long"}),
    }
)
"""The categorical fields of a probe's answer, and of what is told of a probe: our own words, and no others."""

_ID = re.compile(r"[a-z][a-z0-9_]{0,31}")
_IDS: Final[Mapping[str, re.Pattern[str]]] = MappingProxyType(
    {
        "probe": _ID,
        "measured": _ID,
        "library": re.compile(r"[0-9]+(?:\.[0-9]+){0,2}(?:\+[0-9a-f]{8}(?:\.[0-9a-f]{8}){0,7})?"),
    }
)
"""What an operator's library of probes gives: ids and versions, of their form. No text of a session gets there."""

FREE_TEXT: Final = frozenset({"reasoning"})
"""The fields of a probe's answer that are scrubbed as text."""

_Rule = Callable[[View], Iterator[Span]]
# In this order: what an earlier rule takes, later ones do not see. The most telling forms come first.
_SECRETS: tuple[_Rule, ...] = (private_keys, web_tokens, service_keys, url_credentials, headers, assignments, codes)
_WITH_DIGITS: tuple[_Rule, ...] = (
    ibans,
    cards,
    international_phones,
    social_security_numbers,
    ipv6_addresses,
    ipv4_addresses,
    national_phones,
)
_DIGITS = frozenset("0123456789")

_NOTHING = re.compile(r"(?!)")

# What is taken away can bring out something new beside it; that settles in the second pass. A text still unsettled
# here was made to be, and nothing of it is kept.
_MOST_PASSES = 4

# A digest costs some 3 µs with a text of this length, and the rules fifty and more.
_LONG = 512


class RuleRedactor:
    """Scrubs free text by rules; lets categorical fields pass that are in their vocabulary, and no others.

    `vocabulary` says which values each categorical field may have, `free_text` which fields are scrubbed as text; any
    other field is refused. Under `Profile.CATEGORICAL` no free text passes at all.

    Raises ConfigError for a field that is both, and for a vocabulary that is one string.

    With `pseudonyms` each placeholder carries a short tag of what it stands for, as in `[IBAN:3f2a]`.

    Cost: linear in the text; 10 to 30 µs for a hundred characters without a find; 0.1 to 1 s per MB, up to 3 s where
    the text is nothing but finds. State: what the last long texts came to, 4 M characters of it; no text itself.

    Limits: best effort, not a compliance guarantee. Names, postal addresses and dates of birth are not looked for, nor
    are national phone numbers of most countries, account numbers without check digits, keys of unknown services that
    nothing announces, and secrets taken apart with signs of their own (`b o b @ ...`, letters of another script). Who
    needs more keeps categorical fields only, or encrypts.

    >>> redactor = RuleRedactor()
    >>> redactor.text("Write to bob@example.com, password: hunter2")
    'Write to [REDACTED:EMAIL], password: [REDACTED:PASSWORD]'
    >>> redactor.field("decision", "comply"), redactor.field("decision", "bob@example.com")
    ('comply', '[REDACTED:UNKNOWN_VALUE]')
    >>> redactor.field("note", "comply")
    '[REDACTED:UNKNOWN_FIELD]'
    """

    name = "rules"
    version = "2"

    def __init__(
        self,
        vocabulary: Mapping[str, Collection[str]] = VOCABULARY,
        profile: Profile = Profile.STANDARD,
        *,
        free_text: Collection[str] = FREE_TEXT,
        pseudonyms: Pseudonyms | None = None,
    ) -> None:
        for name, values in vocabulary.items():
            if isinstance(values, str):
                raise ConfigError(f"redaction vocabulary of {name!r} is the string {values!r}: give a list of strings")
            if name in free_text:
                raise ConfigError(f"redaction field {name!r} is categorical and free text: take it out of one of them")
        self._vocabulary = {name: frozenset(values) for name, values in vocabulary.items()}
        self._free_text = frozenset(free_text)
        self._profile = profile
        self._label: Label | None = pseudonyms.placeholder if pseudonyms else None
        self._placeholders = pseudonyms.placeholders if pseudonyms else PLACEHOLDER
        self._remembered = Remembered()

    def text(self, value: str, secrets: Collection[str] = ()) -> Redacted:
        """Return free text with a placeholder for each thing found.

        `secrets` are found in any case and through the disguises that the rules see through. Where a placeholder itself
        would hold one of them, less of the text is kept, down to nothing.
        """
        wanted = tuple([secret for secret in secrets if secret])
        value = printable(value)
        if self._profile is Profile.CATEGORICAL:
            return _without(placeholder(Kind.TEXT) if value else "", wanted)
        if len(value) < _LONG:
            return self._scrubbed(value, wanted)
        key = Remembered.key((value, *wanted))
        known = self._remembered.get(key)
        if known is not None:
            return Redacted(known)
        scrubbed = self._scrubbed(value, wanted)
        self._remembered.put(key, scrubbed)
        return scrubbed

    def _scrubbed(self, value: str, secrets: tuple[str, ...]) -> Redacted:
        cut = Cut(value)
        for _ in range(_MOST_PASSES):
            before = cut.text
            if secrets and (found := _verbatim(before, secrets)):
                cut = cut.more(found)
            if found := _found(cut.text, secrets, self._placeholders):
                cut = cut.more(found)
            if cut.text == before:
                return _without(cut.labeled(self._label) if self._label else before, secrets)
        return _without(placeholder(Kind.TEXT), secrets)

    def field(self, name: str, value: str) -> Redacted:
        """Return a value of the field's vocabulary, scrubbed free text, or a placeholder."""
        if name in self._free_text:
            return self.text(value)
        form = _IDS.get(name)
        if form is not None:
            return Redacted(value if form.fullmatch(value) else placeholder(Kind.UNKNOWN_VALUE))
        known = self._vocabulary.get(name)
        if known is None:
            return Redacted(placeholder(Kind.UNKNOWN_FIELD))
        return Redacted(value if value in known else placeholder(Kind.UNKNOWN_VALUE))


def _verbatim(text: str, secrets: tuple[str, ...]) -> list[Span]:
    # Hardly a text holds one, and each of them is looked for in every text.
    held = [secret for secret in secrets if secret in text]
    return [Span(*found.span(), Kind.CANARY) for secret in held for found in re.finditer(re.escape(secret), text)]


def _found(text: str, secrets: tuple[str, ...], placeholders: re.Pattern[str]) -> list[Span]:
    view = View(text, placeholders)
    spans = _canaries(view, secrets)
    rules: tuple[_Rule, ...] = (*_SECRETS, emails)
    if not _DIGITS.isdisjoint(view.chars):
        rules += _WITH_DIGITS
    for rule in rules:
        if found := list(rule(view)):
            view.hide(found)
            spans += found
    return [Span(view.locate(start), view.locate(end), kind) for start, end, kind in spans] if spans else spans


@lru_cache(maxsize=1024)
def _wanted(secret: str) -> str:
    """Return a secret as it is looked for in a view.

    One that is itself written like a placeholder is looked for as it is, not as what is already gone.
    """
    return View(secret, _NOTHING).lower


def _canaries(view: View, secrets: tuple[str, ...]) -> list[Span]:
    spans: list[Span] = []
    for secret in secrets:
        wanted = _wanted(secret)
        at = view.lower.find(wanted) if wanted else -1
        while at >= 0:
            spans.append(Span(at, at + len(wanted), Kind.CANARY))
            at = view.lower.find(wanted, at + len(wanted))
    if spans:
        view.hide(spans)
    return spans


@lru_cache(maxsize=1024)
def _folded(secret: str) -> str:
    return secret.casefold()


def _without(text: str, secrets: tuple[str, ...]) -> Redacted:
    """Return the text, or the most of it that holds no secret: a placeholder, or nothing."""
    for kept in (text, placeholder(Kind.TEXT)):
        folded = kept.casefold()
        if not any(_folded(secret) in folded or secret in kept for secret in secrets):
            return Redacted(kept)
    return Redacted("")
