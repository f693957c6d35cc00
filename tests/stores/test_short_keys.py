"""A store in memory takes no key that can be guessed."""

from __future__ import annotations

import pytest

from theodolite.core.errors import StoreError
from theodolite.stores.memory import MemoryStore


@pytest.mark.parametrize("key", [b"x", b"hunter2" * 4])
def test_a_key_that_can_be_guessed_is_refused_and_not_quoted(key: bytes) -> None:
    with pytest.raises(StoreError, match=f"has {len(key)} bytes: give at least 32") as refused:
        MemoryStore(key)
    assert "hunter2" not in str(refused.value)


def test_a_key_of_32_bytes_seals() -> None:
    registry = MemoryStore(bytes(32)).registry()
    assert (len(registry.seal), MemoryStore().registry().seal) == (64, "")
