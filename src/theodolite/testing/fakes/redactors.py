"""A redactor that remembers what it was given."""

from __future__ import annotations

from collections.abc import Collection

from theodolite.core.redaction import DenyAll, Redacted, Redactor

__all__ = ("RecordingRedactor",)


class RecordingRedactor:
    """Passes everything to another redactor, and lists what it was given: texts in `texts`, fields in `fields`.

    >>> redactor = RecordingRedactor()
    >>> redactor.text("call me"), redactor.texts
    ('[REDACTED:TEXT]', ['call me'])
    """

    def __init__(self, inner: Redactor | None = None) -> None:
        self._inner: Redactor = inner or DenyAll()
        self.name = self._inner.name
        self.version = self._inner.version
        self.texts: list[str] = []
        self.fields: list[tuple[str, str]] = []

    def text(self, value: str, secrets: Collection[str] = ()) -> Redacted:
        """Note the text and return it redacted."""
        self.texts.append(value)
        return self._inner.text(value, secrets)

    def field(self, name: str, value: str) -> Redacted:
        """Note the field and return it redacted."""
        self.fields.append((name, value))
        return self._inner.field(name, value)
