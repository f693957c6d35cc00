"""Every text in what is kept, for tests of what must not be in any."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from theodolite.core.arguments import is_mapping, is_sequence

__all__ = ("kept_texts",)


def kept_texts(value: object) -> list[str]:
    """Return the texts of a value as it would be kept, names of fields among them."""
    return list(_texts(msgspec.json.decode(msgspec.json.encode(value))))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif is_mapping(value):
        for key, item in value.items():
            yield str(key)
            yield from _texts(item)
    elif is_sequence(value):
        for item in value:
            yield from _texts(item)
