"""Documents made in Python, of which one part stands in many places."""

from __future__ import annotations

import time

import pytest

from theodolite.contracts import read
from theodolite.contracts.document import own_copy
from theodolite.core.errors import ConfigError


def doubled(levels: int) -> dict[str, object]:
    schema: dict[str, object] = {"type": "string"}
    for _ in range(levels):
        schema = {"properties": {"a": schema, "b": schema}}
    return schema


@pytest.mark.parametrize("levels", [22, 400])
def test_what_would_not_end_when_it_is_written_out_is_refused_soon(levels: int) -> None:
    begun = time.monotonic()
    with pytest.raises(ConfigError, match=r"more than 2,000,000 values .* refer to what it has several times by \$ref"):
        read([{"name": "t", "inputSchema": doubled(levels)}])
    assert time.monotonic() - begun < 20


def test_what_stands_in_several_places_is_read() -> None:
    schema = doubled(3)
    assert own_copy(schema) == schema
    copy = own_copy(schema)
    assert isinstance(copy, dict)
    assert copy["properties"]["a"] is not copy["properties"]["b"]


def test_what_is_too_deep_is_refused() -> None:
    document: object = {}
    for _ in range(100_000):
        document = [document]
    with pytest.raises(ConfigError, match="more levels than can be read"):
        own_copy(document)
