"""Keeps whole sessions, raw, for an operator who opted in."""

from __future__ import annotations

import hashlib
from pathlib import Path

from theodolite.core.errors import ConfigError, StoreError
from theodolite.core.event import AnyEvent
from theodolite.core.recording import HEADER, encode_line

__all__ = ("Recorder",)


class Recorder:
    """Writes each event of a session as a line of our own form to a file of its own, readable by the owner alone.

    What is written is unredacted. Own events are sealed with `key`, so that the file can be replayed in full. A file is
    opened for each event and closed again: some 50 us, and nothing is held.
    Raises ConfigError when the folder does not exist, and StoreError when a line cannot be written.
    """

    def __init__(self, folder: Path, key: bytes) -> None:
        if not folder.is_dir():
            raise ConfigError(f"{folder} is not a folder: make it, or leave raw_events out to keep no sessions")
        self._folder = folder
        self._key = key

    def path(self, session: str) -> Path:
        """Return the file of a session: its name is a hash, since session ids may hold anything."""
        return self._folder / f"{hashlib.sha256(session.encode()).hexdigest()[:32]}.jsonl"

    def __call__(self, event: AnyEvent) -> None:
        """Write an event."""
        path = self.path(event.session)
        try:
            path.touch(mode=0o600)
            with path.open("ab") as lines:
                lines.write((b"" if lines.tell() else HEADER) + encode_line(event, self._key))
        except OSError as error:
            raise StoreError(f"{path} cannot be written: {error}. Free space, or leave raw_events out.") from error
