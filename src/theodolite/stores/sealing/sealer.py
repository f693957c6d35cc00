"""The operator's key at work: AES-256-GCM under keys that HKDF derives from it."""

from __future__ import annotations

import hashlib
import hmac
import os
from typing import TYPE_CHECKING, Final, Literal

import msgspec
from msgspec import Raw, Struct

from theodolite.core.errors import MissingExtraError, StoreError
from theodolite.core.store import Kind, Record
from theodolite.core.text import printable

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

__all__ = ("Sealer",)

_ENCODER: Final = msgspec.json.Encoder()

# Bytes of an AES-256 key, of the nonce that GCM is made for (NIST SP 800-38D, section 5.2.1.1), and of a key's id,
# which tells a handful of keys of one operator apart: our choice.
_KEY, _NONCE, _ID = 32, 12, 8

# What each derived key is for. The heads are sealed with the operator's key itself, which none of these tells.
_SEALS, _NAMES, _IDENTIFIES = (f"theodolite 1: {what}".encode() for what in ("sealing", "names of files", "key id"))


class _Envelope(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    sealed: Literal["aes-256-gcm"]
    key: str
    nonce: bytes
    text: bytes


_ENVELOPES: Final = msgspec.json.Decoder(_Envelope)


class Sealer:
    """Seals bytes with the operator's key, and opens them again.

    What is sealed is JSON: the id of the key, a random nonce, and the text with its tag, in base64. It is bound to what
    it is `about`: under another session or kind it does not open. It tells its length, and nothing else of the text.
    The keys are HKDF-SHA256 (RFC 5869) of the operator's, each with a label of its own. Cost: some 4 us and a third
    more bytes. Limit: 2**32 texts under one key, after which nonces may repeat (NIST SP 800-38D, section 8.3).

    Raises MissingExtraError without the extra `sealing`, and StoreError for an empty key.

    >>> sealer = Sealer(bytes(32))
    >>> sealed = sealer.seal(b"words", "s-1", "decision")
    >>> b"words" in sealed, sealer.unseal(sealed, "s-1", "decision")
    (False, b'words')
    """

    def __init__(self, key: bytes) -> None:
        if not key:
            raise StoreError("the key is empty: give at least 32 random bytes")
        self.key_id = _derived(key, _IDENTIFIES, _ID).hex()
        self._cipher = _cipher(_derived(key, _SEALS, _KEY))
        self._naming = _derived(key, _NAMES, _KEY)

    def seal(self, text: bytes, *about: str) -> bytes:
        """Return a text sealed, as JSON."""
        nonce = os.urandom(_NONCE)
        sealed = self._cipher.encrypt(nonce, text, _about(about))
        return _ENCODER.encode(_Envelope(sealed="aes-256-gcm", key=self.key_id, nonce=nonce, text=sealed))

    def unseal(self, sealed: bytes, *about: str) -> bytes:
        """Return the text. Raises StoreError for what is not sealed, sealed with another key, or not as it was."""
        envelope = _envelope(sealed)
        if envelope is None:
            raise StoreError("it is not sealed, or was cut: keep it as it is, and verify what it belongs to")
        if envelope.key != self.key_id:
            raise StoreError(f"it is sealed with the key {envelope.key}, and this one is {self.key_id}: give that key")
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - an extra

        try:
            return self._cipher.decrypt(envelope.nonce, envelope.text, _about(about))
        except (InvalidTag, ValueError) as error:  # ValueError: a nonce of a length that cannot be
            raise StoreError(
                "it is not what was sealed here: it was changed, cut, or put in another's place; keep it as it is, and "
                "verify what it belongs to"
            ) from error

    def opened(self, record: Record) -> Raw | None:
        """Return the payload of a record of a `SealedStore`, unsealed; None for an erased one.

        What was kept before payloads were sealed is given as it is. Raises StoreError for a payload that is not the one
        of the record's digest, and like `unseal`.
        """
        if record.payload is None:
            return None
        where = f"record {record.n} of session {record.session!r}"
        if not record.holds:
            raise StoreError(
                f"{where}: the payload was changed; run `theodolite store verify`, and keep the file as it is"
            )
        if record.kind is Kind.ERASURE or _envelope(bytes(record.payload)) is None:
            return record.payload
        try:
            return Raw(self.unseal(bytes(record.payload), record.session, record.kind.value))
        except StoreError as error:
            raise StoreError(f"{where}: {error}") from error

    def name(self, text: str) -> str:
        """Return what stands for a text where it must not be read: 64 hex digits that only the key relates to it."""
        return hmac.new(self._naming, text.encode("utf-8", "backslashreplace"), hashlib.sha256).hexdigest()


def _about(names: tuple[str, ...]) -> bytes:
    return _ENCODER.encode([printable(name) for name in names])


def _envelope(sealed: bytes) -> _Envelope | None:
    try:
        return _ENVELOPES.decode(sealed)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _derived(key: bytes, label: bytes, length: int) -> bytes:
    try:
        from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415 - an extra
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingExtraError(extra="sealing", needed_for="sealed payloads") from error
    return HKDF(algorithm=SHA256(), length=length, salt=None, info=label).derive(key)


def _cipher(key: bytes) -> AESGCM:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - an extra

    return AESGCM(key)
