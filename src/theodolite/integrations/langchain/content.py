"""The content of a LangChain message: a text, or a list of blocks with a type each."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import UNSET, UnsetType

from theodolite.core.arguments import is_mapping, is_sequence
from theodolite.core.event import Channel

__all__ = ("Content", "content_of")

# The standard blocks of LangChain and the forms of OpenAI and Anthropic, which it passes on. Any other is a file.
_ATTACHED = {
    "audio": Channel.USER_AUDIO,
    "image": Channel.USER_IMAGE,
    "image_url": Channel.USER_IMAGE,
    "input_audio": Channel.USER_AUDIO,
}


class Content(NamedTuple):
    """What a content holds. Texts are joined by line ends; `attached` is the channel of each block that is no text."""

    text: str | UnsetType = UNSET
    parts: bool = False
    attached: tuple[Channel, ...] = ()


def content_of(content: object) -> Content:
    r"""Return what a content holds.

    >>> content_of(["Look", {"type": "text", "text": "here:"}, {"type": "image", "url": "https://example.org"}])[:2]
    ('Look\nhere:', True)
    """
    if isinstance(content, str):
        return Content(content)
    texts: list[str] = []
    attached: list[Channel] = []
    for block in content if is_sequence(content) else ():
        kind, text = (block.get("type"), block.get("text")) if is_mapping(block) else ("text", block)
        if kind == "text" and isinstance(text, str):
            texts.append(text)
        else:
            attached.append(_ATTACHED.get(str(kind), Channel.USER_FILE))
    return Content("\n".join(texts) if texts else UNSET, parts=True, attached=tuple(attached))
