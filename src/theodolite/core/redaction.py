"""What may leave memory: the port of redactors, and the one that lets nothing through."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import NewType, Protocol, TypeVar

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from theodolite.core.arguments import is_mapping, is_sequence
from theodolite.core.event import Event, encode_event
from theodolite.core.reading import Evidence, Fact, Failure, Reading

__all__ = ("DenyAll", "Profile", "Redacted", "Redactor", "redact", "redact_event")

# A quotation in evidence is there to be recognized, not read whole. Scrubbed first, cut then: a secret that is cut in
# two would no longer be known as one.
QUOTE = 240
# The same for the text of a kept event. Of what is longer only the beginning is scrubbed and kept.
EVENT_TEXT = 4096
# How much more is scrubbed to see what the beginning ends in. A 4096-bit private key takes 3,272 characters.
BEYOND = 4096

Redacted = NewType("Redacted", str)
"""Text that a redactor has passed. Only redactors make it."""


class Profile(StrEnum):
    """How much text the store may hold: scrubbed text, or none at all."""

    STANDARD = "standard"
    CATEGORICAL = "categorical"


class Redactor(Protocol):
    """Turns what a session said into what may be kept.

    Laws: total (no string raises, lone surrogates included); pure; idempotent; linear time in the text; none of
    `secrets` survives, in any case.
    """

    @property
    def name(self) -> str:
        """Return the name that records carry."""
        ...

    @property
    def version(self) -> str:
        """Return the version of the rules."""
        ...

    def text(self, value: str, secrets: Collection[str] = ()) -> Redacted:
        """Return free text without what the rules know as secret or personal. `secrets`: canaries that we planted."""
        ...

    def field(self, name: str, value: str) -> Redacted:
        """Return a categorical value if it belongs to the vocabulary of that name, and a placeholder if not."""
        ...


class DenyAll:
    """The redactor of a Monitor that was given none: no text and no categorical value passes.

    >>> DenyAll().text("call me on +44 20 7946 0958")
    '[REDACTED:TEXT]'
    """

    name = "deny_all"
    version = "1"

    def text(self, value: str, secrets: Collection[str] = ()) -> Redacted:
        """Return a placeholder for any text that is not empty."""
        del secrets
        return Redacted("[REDACTED:TEXT]" if value else "")

    def field(self, name: str, value: str) -> Redacted:
        """Return a placeholder, whatever the field."""
        del name, value
        return Redacted("[REDACTED:UNKNOWN_FIELD]")


# Fields of events that hold no words of the session's: identifiers, counts, and members of closed lists.
_PLAIN_FIELDS = frozenset({"event", "session", "agent", "seq", "at", "turn", "channel", "source", "role", "error"})

_S = TypeVar("_S", Reading, Failure, Reading | Failure)


def redact(said: _S, redactor: Redactor, secrets: Collection[str] = ()) -> _S:
    """Return a reading or failure with every free text and every categorical word passed through the redactor.

    Session does this once to each answer, before it is graded; nothing unredacted gets further.
    """
    if isinstance(said, Failure):
        return replace(said, detail=_quote(said.detail, redactor, secrets)) if said.detail else said
    if not (said.evidence or said.facts or said.models):
        return said
    return replace(
        said,
        evidence=tuple([_evidence(item, redactor, secrets) for item in said.evidence]),
        facts=tuple([_fact(item, redactor) for item in said.facts]),
        models=tuple([redactor.text(model, secrets) for model in said.models]),
    )


def _evidence(item: Evidence, redactor: Redactor, secrets: Collection[str]) -> Evidence:
    if not (item.path or item.expected or item.observed):
        return item
    return replace(
        item,
        path=_quote(item.path, redactor, secrets),
        expected=_quote(item.expected, redactor, secrets),
        observed=_quote(item.observed, redactor, secrets),
    )


def _fact(item: Fact, redactor: Redactor) -> Fact:
    if not isinstance(item.value, str):
        return item
    return Fact(item.name, redactor.field(item.name, item.value))


def _quote(text: str, redactor: Redactor, secrets: Collection[str]) -> str:
    passed = _beginning(text, redactor, secrets)
    return passed if len(passed) <= QUOTE else passed[: QUOTE - 1] + "\N{HORIZONTAL ELLIPSIS}"


def redact_event(event: Event, redactor: Redactor, secrets: Collection[str] = ()) -> Raw:
    """Return an event as JSON that may be kept: every text in it scrubbed, long ones cut, values of arguments too."""
    plain = msgspec.json.decode(encode_event(event), type=dict[str, object])
    return Raw(msgspec.json.encode({key: _passed(key, value, redactor, secrets) for key, value in plain.items()}))


def _passed(key: str, value: object, redactor: Redactor, secrets: Collection[str]) -> object:
    if key in _PLAIN_FIELDS:
        return value
    if isinstance(value, str):
        return _beginning(value, redactor, secrets)
    if is_mapping(value):
        return {
            _beginning(str(name), redactor, secrets): _passed("", item, redactor, secrets)
            for name, item in value.items()
        }
    if is_sequence(value):
        return [_passed("", item, redactor, secrets) for item in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        # A card or account number may come as a number.
        return value if redactor.text(str(value), secrets) == str(value) else "[REDACTED:NUMBER]"
    return value


def _beginning(text: str, redactor: Redactor, secrets: Collection[str]) -> str:
    """Return a text scrubbed, a long one cut; no secret is cut in two."""
    if len(text) <= EVENT_TEXT:
        return redactor.text(text, secrets)
    # A secret that lies across the cut looks like one only with its end: what is kept is what the text scrubbed up to
    # the cut and the text scrubbed beyond it begin with alike.
    short = redactor.text(text[:EVENT_TEXT], secrets)
    longer = redactor.text(text[: EVENT_TEXT + BEYOND], secrets)
    return f"{short[: _alike(short, longer)]} [CUT: {len(text)} characters]"


def _alike(one: str, other: str) -> int:
    if other.startswith(one):
        return len(one)
    return next((place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(other))
