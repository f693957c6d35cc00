"""The port to where sessions with open inquiries outlive their process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

__all__ = ("Shelf",)


class Shelf(Protocol):
    """Keeps what `Session.save` gave of sessions with open inquiries. It holds raw text: an implementation seals it.

    Laws: what was kept last of a session is what is held of it, also after a crash; a session that was dropped is not
    held; sessions may be kept and dropped while `held` is read; safe for several threads, each session on one of them.
    """

    def keep(self, session: str, saved: bytes) -> None:
        """Hold a session in place of what was held of it. Returns when that is durable. Raises StoreError."""
        ...

    def drop(self, session: str) -> None:
        """Hold a session no longer; nothing happens where it is not held. Raises StoreError."""
        ...

    def held(self) -> Iterator[bytes]:
        """Yield what is held, in any order. Raises StoreError for what cannot be read, after all that can."""
        ...
