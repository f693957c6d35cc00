"""What may leave memory: the port of redactors, and the one that lets nothing through."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from enum import StrEnum
from typing import NewType, Protocol, TypeVar

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from theodolite.core.arguments import is_mapping, is_sequence
from theodolite.core.event import Event, ToolCallProposed, encode_event
from theodolite.core.quotation import MARK, Hidden, Whole, spliced
from theodolite.core.reading import Evidence, Fact, Failure, Reading

__all__ = ("CategoricalOnly", "DenyAll", "Profile", "Redacted", "Redactor", "Scrubber", "redact", "redact_event")

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
    """How much text the store may hold: scrubbed, none at all, or scrubbed and for the operator's eyes alone."""

    STANDARD = "standard"
    CATEGORICAL = "categorical"
    ENCRYPTED = "encrypted"


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


class CategoricalOnly:
    """A redactor without free text, whatever the one inside would let pass; categorical fields are the inner one's.

    >>> CategoricalOnly(DenyAll()).text("anything")
    '[REDACTED:TEXT]'
    """

    def __init__(self, inner: Redactor) -> None:
        self._inner = inner
        self.name = inner.name
        self.version = inner.version

    def text(self, value: str, secrets: Collection[str] = ()) -> Redacted:
        """Return a placeholder for any text that is not empty."""
        return DenyAll().text(value, secrets)

    def field(self, name: str, value: str) -> Redacted:
        """Return what the inner redactor makes of a categorical value."""
        return self._inner.field(name, value)


# Fields of events by what they hold; a field that stands in none is not kept. Plain: identifiers, counts, members of
# closed lists, and the operator, who answers for what he did. Names and texts are scrubbed.
PLAIN_FIELDS = frozenset(
    {"event", "session", "agent", "seq", "at", "turn", "channel", "source", "role", "error", "operator"}
    | {"length", "temperature", "top_p", "input_tokens", "output_tokens", "before", "after"}
    | {"about", "exchanges", "reused", "checked", "verdict"}
)
NAME_FIELDS = frozenset(
    {"tool", "tools", "call", "model", "to", "child", "contract", "prompt_hash", "asker", "first", "usage"}
)
TEXT_FIELDS = frozenset({"text", "arguments", "foreign", "reason", "snapshot", "said", "canaries"})
# Names that hosts and operators gave, such as `to` and `id`, stand by chance in any long key. A shorter one is held
# against no other text.
_TELLING = 8

CLOSED_WORDS = frozenset(
    {"array", "boolean", "integer", "null", "number", "object", "string"}
    | {"comply", "decline", "escalate", "unclear", "true", "false", "kept", "told"}
)
"""What `expected` and `observed` may say under any profile.

The types of JSON Schema, alone or joined by ` or `, and the words of the categorical fields of a probe's answer.
"""

_S = TypeVar("_S", Reading, Failure, Reading | Failure)


def redact(said: _S, redactor: Redactor, secrets: Collection[str] = (), *, around: Sequence[Event] = ()) -> _S:
    """Return a reading or failure with every free text and every categorical word passed through the redactor.

    Session does this once to each answer; nothing unredacted gets further. `around` are the events it may quote: what
    stands in one of them is shown only as far as that whole text, scrubbed, shows it. A line of a private key does not
    look like one; the key does.
    """
    if isinstance(said, Failure):
        scrub = Scrubber(redactor, secrets, ())
        return replace(said, detail=scrub.quote(said.detail)) if said.detail else said
    if not (said.evidence or said.facts or said.models):
        return said
    scrub = Scrubber(redactor, secrets, around)
    return replace(
        said,
        evidence=tuple([_evidence(item, scrub) for item in said.evidence]),
        facts=tuple([_fact(item, redactor, secrets) for item in said.facts]),
        models=tuple([redactor.text(model, secrets) for model in said.models]),
    )


def _evidence(item: Evidence, scrub: Scrubber) -> Evidence:
    if not (item.path or item.expected or item.observed):
        return item
    return replace(
        item,
        path=scrub.quote(item.path, name=True),
        expected=scrub.word(item.expected),
        observed=scrub.word(item.observed),
    )


def _fact(item: Fact, redactor: Redactor, secrets: Collection[str]) -> Fact:
    if not isinstance(item.value, str):
        return item
    passed = redactor.field(item.name, item.value)
    # A field may be free text, and its redactor is told of no secrets there.
    if secrets and not MARK.fullmatch(passed) and redactor.text(passed, secrets) != redactor.text(passed):
        passed = DenyAll().field(item.name, passed)
    return Fact(item.name, passed)


def redact_event(
    event: Event, redactor: Redactor, secrets: Collection[str] = (), *, around: Sequence[Event] = ()
) -> Raw:
    """Return an event as JSON that may be kept: every text in it scrubbed, long ones cut, values of arguments too.

    `around` are other events of the session, as for `redact`: a value that a call took from one of them is kept only
    where it may be kept there.
    """
    scrub = Scrubber(redactor, secrets, [other for other in around if other.seq != event.seq])
    plain = msgspec.json.decode(encode_event(event), type=dict[str, object])
    return Raw(msgspec.json.encode({key: scrub.member(key, value) for key, value in plain.items()}))


class Scrubber:
    """A redactor at work on one answer or event, among the texts that this may quote."""

    def __init__(self, redactor: Redactor, secrets: Collection[str], around: Sequence[Event]) -> None:
        self._redactor = redactor
        self._secrets = secrets
        self._around = around
        # One text is quoted from several times, and a value is looked at with its name and without.
        self._passed: dict[str, str] = {}
        self._known: dict[str, Whole] = {}
        self._texts: list[str] | None = None

    def member(self, name: str, value: object) -> object:
        """Return a field of an event as it may be kept."""
        if name in PLAIN_FIELDS:
            return value
        if name in NAME_FIELDS:
            return self.value(value, name=True)
        return self.value(value) if name in TEXT_FIELDS else DenyAll().field(name, "")

    def value(self, value: object, *, name: bool = False) -> object:
        """Return a value of JSON with every text in it scrubbed; `name` says that they are names."""
        if isinstance(value, str):
            return self.words(value, name=name)
        if is_mapping(value):
            return {
                self.words(str(key), name=True): self._named(str(key), item, name=name) for key, item in value.items()
            }
        if is_sequence(value):
            return [self.value(item, name=name) for item in value]
        if isinstance(value, int | float) and not isinstance(value, bool):
            # A card or account number may come as a number.
            passed = self.words(str(value), name=True)
            return value if passed == str(value) else _mark(passed, "[REDACTED:NUMBER]")
        return value

    def _named(self, key: str, value: object, *, name: bool) -> object:
        """Return a member of a mapping scrubbed: what is called a password is one, whatever it looks like."""
        if isinstance(value, bool) or not isinstance(value, str | int | float) or len(str(value)) > EVENT_TEXT:
            return self.value(value, name=name)
        line = self._pass(f"{key}: {value}")
        if line.endswith(f": {self._pass(str(value))}"):
            return self.value(value, name=name)
        return _mark(line.removeprefix(f"{key}: "), "[REDACTED:SECRET]")

    def word(self, text: str) -> str:
        """Return a closed word as it is, and any other text as a quotation."""
        closed = all(word in CLOSED_WORDS for word in text.split(" or "))
        if closed and not any(secret and secret.casefold() in text for secret in self._secrets):
            return text
        return self.quote(text)

    def quote(self, text: str, *, name: bool = False) -> str:
        """Return a text scrubbed, and cut to the length of a quotation."""
        passed = self.words(text, name=name)
        return passed if len(passed) <= QUOTE else passed[: QUOTE - 1] + "\N{HORIZONTAL ELLIPSIS}"

    def words(self, text: str, *, name: bool = False) -> str:
        """Return a text scrubbed, a long one cut; no secret is cut in two, and no part of one is shown."""
        passed = self._beginning(text)
        if not text or (name and len(text) < _TELLING):
            return passed
        hidden = self._inherited(text, passed)
        return self._beginning(spliced(text, hidden)) if hidden else passed

    def _inherited(self, piece: str, passed: str) -> list[Hidden]:
        """Return what of a piece is hidden in the texts that it may come from.

        A short piece may stand in several by chance: it is shown if one of them shows it.
        """
        hidden: list[Hidden] = []
        for whole in self._wholes(piece):
            if not whole.shows(piece, passed):
                hidden += whole.over(piece)
            elif len(piece) < _TELLING:
                return []
        return hidden

    def _pass(self, text: str) -> str:
        if text not in self._passed:
            self._passed[text] = self._redactor.text(text, self._secrets)
        return self._passed[text]

    def _beginning(self, text: str) -> str:
        if len(text) <= EVENT_TEXT:
            return self._pass(text)
        # A secret that lies across the cut looks like one only with its end: what is kept is what the text scrubbed up
        # to the cut and the text scrubbed beyond it begin with alike.
        short = self._pass(text[:EVENT_TEXT])
        longer = self._pass(text[: EVENT_TEXT + BEYOND])
        return f"{short[: _alike(short, longer)]} [CUT: {len(text)} characters]"

    def _wholes(self, piece: str) -> Iterator[Whole]:
        """Yield each text that a piece may come from, the newest first."""
        if self._texts is None:
            self._texts = [text for event in reversed(self._around) if (text := _said(event))]
        for text in self._texts:
            if piece in text:
                if text not in self._known:
                    self._known[text] = Whole(text, self._pass(text))
                yield self._known[text]


def _said(event: Event) -> str:
    """Return the text of an event; of a call its arguments, as JSON."""
    if isinstance(event, ToolCallProposed):
        return bytes(event.arguments).decode() if isinstance(event.arguments, Raw) else ""
    text = getattr(event, "text", "")
    return text if isinstance(text, str) else ""


def _mark(passed: str, otherwise: str) -> str:
    """Return the mark that is all that was left of a value, where it tells the value from others."""
    return passed if MARK.fullmatch(passed) and not passed.startswith("[REDACTED:") else otherwise


def _alike(one: str, other: str) -> int:
    if other.startswith(one):
        return len(one)
    return next((place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(other))
