"""Our own recorded form: a header line, then one event a line; own events under the operator's seal.

A file may come from anywhere, and an own event changes what a session decided: a forged Cleared would lift a
restriction. So an own event carries an HMAC-SHA256 of its JSON, and without a valid one it is refused. The seal covers
what the event says, its session, seq and time included; it does not say which file the event belongs to.
"""

from __future__ import annotations

import hashlib
import hmac

import msgspec
from msgspec import Struct

from theodolite.core.errors import ConfigError, EventError
from theodolite.core.event import AnyEvent, Event, OwnEvent, encode_event
from theodolite.core.lines import decode

__all__ = ("HEADER", "VERSION", "check_header", "decode_line", "encode_line")

VERSION = 1
HEADER = b'{"theodolite":"events","version":%d}\n' % VERSION


class _Header(Struct):
    theodolite: str
    version: int


class _Seal(Struct):
    seal: str = ""


class _Kind(Struct):
    event: str


_HEADER = msgspec.json.Decoder(_Header)
_EVENT: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)
_SEAL = msgspec.json.Decoder(_Seal)
_KIND = msgspec.json.Decoder(_Kind)
_KINDS = frozenset(kind.__name__ for kind in AnyEvent.__args__)


def check_header(line: bytes) -> int:
    """Return the version that a header line states. Raises EventError when the line is no header."""
    try:
        header = decode(_HEADER, line)
    except EventError:
        header = None
    if header is None or header.theodolite != "events" or header.version < 1:
        raise EventError(f"no header: the first line must be {HEADER.decode().strip()}")
    return header.version


def encode_line(event: Event, key: bytes | None) -> bytes:
    """Return an event as one line, its newline included. Equal events give equal bytes, and so does reading them back.

    An OwnEvent is sealed with `key`. Raises ConfigError when it has to be and there is no key, and EventError when the
    event holds what JSON cannot say: a number that is not finite, or a lone surrogate.
    """
    try:
        # What is written is what will be read: arguments that a host gave as JSON lose their white space here.
        text = encode_event(_EVENT.decode(encode_event(event)))
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        raise EventError(
            f"a {type(event).__name__} of session {event.session!r} holds what JSON cannot say: make its numbers "
            "finite, its nesting shallow and its text free of lone surrogates"
        ) from None
    if not isinstance(event, OwnEvent):
        return text + b"\n"
    if not key:
        raise ConfigError(
            f"a {type(event).__name__} can only be written with a key, which seals it: give the operator's key, or "
            "leave own events out"
        )
    return b'%b,"seal":"%b"}\n' % (text[:-1], _seal(text, key))


def decode_line(line: bytes, key: bytes | None) -> AnyEvent:
    """Return the event of one line.

    Raises EventError with a reason that quotes nothing of the line: when it is no event of this version, or when it is
    an own event without a valid seal.

    >>> from theodolite.core.event import GoalStated
    >>> decode_line(encode_line(GoalStated(session="s", text="book a table"), None), None).text
    'book a table'
    """
    try:
        event = decode(_EVENT, line)
    except EventError:
        if _unknown(line):
            raise EventError("an event kind that this version does not know: a newer one may have written it") from None
        raise
    if isinstance(event, OwnEvent):
        _check_seal(event, line, key)
    return event


def _unknown(line: bytes) -> bool:
    try:
        return decode(_KIND, line).event not in _KINDS
    except EventError:
        return False


def _check_seal(event: OwnEvent, line: bytes, key: bytes | None) -> None:
    if not key:
        raise EventError("own events count only with the operator's key, which was not given")
    given = decode(_SEAL, line).seal
    if not hmac.compare_digest(_seal(encode_event(event), key), given.encode()):
        raise EventError("own events count only with the operator's key: the seal is missing or does not fit")


def _seal(text: bytes, key: bytes) -> bytes:
    return hmac.new(key, text, hashlib.sha256).hexdigest().encode()
