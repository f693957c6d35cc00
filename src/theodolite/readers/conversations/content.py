"""The content of a message: a text, or a list of parts with a type each."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.json import Decoder

from theodolite.core.event import Channel
from theodolite.readers.conversations.conversation import Conversation, kind_named

__all__ = ("Content", "Parts", "content_of")


class _Part(Struct, frozen=True):
    type: str
    text: str | UnsetType = UNSET
    refusal: str | UnsetType = UNSET
    annotations: Raw | UnsetType = UNSET


_CONTENT: Decoder[str | list[Raw] | None] = Decoder(str | list[Raw] | None)
_PART = Decoder(_Part)


class Parts(NamedTuple):
    """The types of parts that a place may hold: texts, and what is attached, by the channel it comes on."""

    texts: Collection[str]
    attached: Mapping[str, Channel]


class Content(NamedTuple):
    """What a content holds. Texts are joined by line ends; `annotations` are undecoded, each with its place."""

    text: str | UnsetType = UNSET
    parts: bool = False
    refusals: tuple[str, ...] = ()
    attached: tuple[Channel, ...] = ()
    annotations: tuple[tuple[str, Raw], ...] = ()


def content_of(under: Conversation, raw: Raw | UnsetType, known: Parts, field: str = "content") -> Content:
    """Return what a content holds; a part of any other type is reported."""
    value = under.decoded(_CONTENT, raw, field)
    if value is None or isinstance(value, str):
        return Content(UNSET if value is None else value)
    texts: list[str] = []
    refusals: list[str] = []
    channels: list[Channel] = []
    notes: list[tuple[str, Raw]] = []
    for index, item in enumerate(value):
        place = f"{field}[{index}]"
        part = under.decoded(_PART, item, place)
        if part is None:
            continue
        if part.type in known.texts and isinstance(part.text, str):
            texts.append(part.text)
            if isinstance(part.annotations, Raw):
                notes.append((f"{place}.annotations", part.annotations))
        elif part.type == "refusal" and isinstance(part.refusal, str):
            refusals.append(part.refusal)
        elif part.type in known.attached:
            channels.append(known.attached[part.type])
        elif part.type in known.texts:
            under.fault(place, "a text part without text")
        else:
            under.fault(place, f"a part of {kind_named(part.type)} is not read here")
    return Content(
        text="\n".join(texts) if texts else UNSET,
        parts=True,
        refusals=tuple(refusals),
        attached=tuple(channels),
        annotations=tuple(notes),
    )
