"""What may leave memory: the port of redactors, and the one that lets nothing through."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import NewType, Protocol, TypeVar

from msgspec.structs import replace

from theodolite.core.reading import Evidence, Fact, Failure, Reading

__all__ = ("DenyAll", "Profile", "Redacted", "Redactor", "redact")

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


_S = TypeVar("_S", Reading, Failure)


def redact(said: _S, redactor: Redactor, secrets: Collection[str] = ()) -> _S:
    """Return a reading or failure with every free text and every categorical word passed through the redactor.

    Session does this once to each answer, before it is graded; nothing unredacted gets further.
    """
    if isinstance(said, Failure):
        return replace(said, detail=redactor.text(said.detail, secrets)) if said.detail else said
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
        path=redactor.text(item.path, secrets),
        expected=redactor.text(item.expected, secrets),
        observed=redactor.text(item.observed, secrets),
    )


def _fact(item: Fact, redactor: Redactor) -> Fact:
    if not isinstance(item.value, str):
        return item
    return Fact(item.name, redactor.field(item.name, item.value))
