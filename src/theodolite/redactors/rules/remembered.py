"""What long texts came to, so that one that is quoted again and again is scrubbed once."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterable

__all__ = ("Remembered",)

# Our choice: the scrubbed windows of some sixteen sessions at once.
_ROOM = 1 << 22


class Remembered:
    """The scrubbed forms of the texts that were asked for last, `room` characters of them, and the newest in any case.

    No text is held, only its digest: what a session said is forgotten with the session. Threads may share it.
    """

    def __init__(self, room: int = _ROOM) -> None:
        self._room = room
        self._held = 0
        self._lock = threading.Lock()
        self._scrubbed: OrderedDict[bytes, str] = OrderedDict()

    def get(self, key: bytes) -> str | None:
        """Return what the text of this key came to, or None when that is not known any more."""
        with self._lock:
            scrubbed = self._scrubbed.get(key)
            if scrubbed is not None:
                self._scrubbed.move_to_end(key)
            return scrubbed

    def put(self, key: bytes, scrubbed: str) -> None:
        """Remember what the text of this key came to."""
        with self._lock:
            self._held += len(scrubbed) - len(self._scrubbed.pop(key, ""))
            self._scrubbed[key] = scrubbed
            while self._held > self._room and len(self._scrubbed) > 1:
                self._held -= len(self._scrubbed.popitem(last=False)[1])

    @staticmethod
    def key(texts: Iterable[str]) -> bytes:
        """Return the digest of some texts, in their order."""
        digest = hashlib.sha256()
        for text in texts:
            data = text.encode("utf-8", "surrogatepass")
            digest.update(b"%d:" % len(data))
            digest.update(data)
        return digest.digest()
