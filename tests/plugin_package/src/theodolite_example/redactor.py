"""A redactor that keeps nothing but lengths."""

from __future__ import annotations

import re
from collections.abc import Collection

from theodolite.core.redaction import Profile, Redacted

__all__ = ("MARK", "LengthRedactor")

MARK = "[REDACTED:%d]"
_MARKED = re.compile(r"\[REDACTED:[0-9]+\]")


class LengthRedactor:
    """Says how long a text was, whatever the profile; no field passes."""

    name = "lengths"
    version = "1"

    def __init__(self, profile: Profile = Profile.STANDARD) -> None:
        self.profile = profile

    def text(self, value: str, secrets: Collection[str] = ()) -> Redacted:
        """Return the length of a text."""
        del secrets
        return Redacted(value if _MARKED.fullmatch(value) else MARK % len(value))

    def field(self, name: str, value: str) -> Redacted:
        """Return a placeholder."""
        del name, value
        return Redacted("[REDACTED:UNKNOWN_FIELD]")
