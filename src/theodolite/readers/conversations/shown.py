"""What of a nested result can be seen: the texts in it, whether some of it is hidden, and whether it says it failed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from msgspec import UNSET, Raw, UnsetType
from msgspec.json import Decoder

from theodolite.readers.conversations.conversation import Conversation, kind_named

__all__ = ("Kinds", "Shown", "shown")

_VALUE: Decoder[str | list[Raw] | dict[str, Raw] | bool | int | float | None] = Decoder(
    str | list[Raw] | dict[str, Raw] | bool | int | float | None
)
_CODE: Decoder[int | float | str | bool | None] = Decoder(int | float | str | bool | None)
# The results of the APIs nest four deep (a page, its document, the source of that, its blocks). Our choice: twice that.
_DEPTH = 8


class Kinds(NamedTuple):
    """What the types of objects in a result show; "" is the type of those that have none.

    `shows` maps each known type to its fields whose text was seen, in order. `hides` are the types of which more than
    that was returned. `fails` maps a type that can say that the call failed to its field with an exit code, or to
    nothing where it always says so.
    """

    shows: Mapping[str, tuple[str, ...]]
    hides: frozenset[str] = frozenset()
    fails: Mapping[str, str] = {}


class Shown(NamedTuple):
    """What was seen. `parts`: it was no plain text."""

    texts: tuple[str, ...] = ()
    parts: bool = False
    hidden: bool = False
    failed: bool = False

    @property
    def text(self) -> str | UnsetType:
        """The texts, joined by line ends; UNSET where there is none and something is hidden."""
        return UNSET if self.hidden and not self.texts else "\n".join(self.texts)


def shown(under: Conversation, raw: Raw | UnsetType, kinds: Kinds, field: str) -> Shown:
    """Return what can be seen of a result; what is in it and of no known type is reported and hidden.

    An absent one, and null, is hidden.
    """
    seeing = _Seeing(under, kinds)
    seeing.see(raw, field, _DEPTH)
    return Shown(tuple(seeing.texts), seeing.parts, seeing.hidden, seeing.failed)


class _Seeing:
    """What was seen so far."""

    def __init__(self, under: Conversation, kinds: Kinds) -> None:
        self.texts: list[str] = []
        self.parts = False
        self.hidden = False
        self.failed = False
        self._under = under
        self._kinds = kinds

    def see(self, raw: Raw | UnsetType, field: str, depth: int) -> None:
        """Take a value, and what is in it."""
        if not depth and isinstance(raw, Raw):
            self.hidden = True
            self._under.fault(field, "nested too deeply to be read")
            return
        value = self._under.decoded(_VALUE, raw, field)
        self.parts = self.parts or isinstance(value, list | dict)
        if isinstance(value, str):
            self.texts += [value] if value else []
        elif isinstance(value, list):
            for index, item in enumerate(value):
                self.see(item, f"{field}[{index}]", depth - 1)
        elif isinstance(value, dict):
            self._object(value, field, depth)
        elif value is None and depth == _DEPTH:
            self.hidden = True

    def _object(self, value: Mapping[str, Raw], field: str, depth: int) -> None:
        kind = self._under.text(value["type"], f"{field}.type") if "type" in value else ""
        fields = self._kinds.shows.get(kind)
        if fields is None:
            self.hidden = True
            self._under.fault(field, f"a part of {kind_named(kind)} is not read here")
            return
        self.hidden = self.hidden or kind in self._kinds.hides
        for name in fields:
            self.see(value.get(name, UNSET), f"{field}.{name}", depth - 1)
        code = self._kinds.fails.get(kind)
        if code is not None:
            told = self._under.decoded(_CODE, value.get(code, UNSET), f"{field}.{code}")
            self.failed = self.failed or not code or told not in {None, 0}
