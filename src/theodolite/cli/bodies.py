"""The body of a call, read from a file or from standard input."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import msgspec
from msgspec import Struct

from theodolite.core.errors import ConfigError
from theodolite.readers.specification import parse

__all__ = ("Body", "body_in", "is_input", "named", "typed")

# Bytes of a body that is read: more is no request that a model wrote (our choice).
LARGEST = 64_000_000
_INSTEAD = "name a file instead of -, or give something to read"
_BOM = b"\xef\xbb\xbf"
_BYTE = re.compile(r"JSON is malformed: (?P<what>.*) \(byte (?P<at>\d+)\)")


class Body(Struct, frozen=True, kw_only=True):
    """What a file holds. `fault` says where and why it is no JSON, and what to do, and is empty where it is JSON.

    `repeated` are the pointers to keys that stand in their object more than once, of which the last counts.
    """

    value: object = None
    fault: str = ""
    repeated: tuple[str, ...] = ()


def is_input(file: Path) -> bool:
    """Whether a name stands for standard input."""
    return str(file) == "-"


def named(file: Path) -> str:
    """Return what a message calls a file."""
    return "standard input" if is_input(file) else str(file)


def typed() -> bytes:
    """Return what standard input holds. Raises ConfigError for more than 64 MB, and where nobody can read it."""
    # Python has none where whoever started it closed it.
    stream = getattr(sys.stdin, "buffer", None)
    if stream is None:
        raise ConfigError(f"standard input is closed: {_INSTEAD}")
    try:
        data: bytes = stream.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        why = (isinstance(error, OSError) and error.strerror) or "it is closed"
        raise ConfigError(f"standard input cannot be read ({why}): {_INSTEAD}") from error
    return _bounded(data, "standard input")


def body_in(file: Path) -> Body:
    """Return the body in a file, or in standard input. Raises ConfigError where there is nothing to read."""
    if is_input(file):
        return _body(typed())
    try:
        with file.open("rb") as stream:
            data = stream.read(LARGEST + 1)
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read ({error.strerror}): give a file with a body as JSON") from error
    return _body(_bounded(data, str(file)))


def _bounded(data: bytes, where: str) -> bytes:
    if len(data) > LARGEST:
        raise ConfigError(f"{where}: it is larger than {LARGEST // 1_000_000} MB: give the body of one call")
    return data


def _body(data: bytes) -> Body:
    if not data.strip():
        return Body(fault="the body is empty: write it as JSON; {} is an object without fields")
    if data.startswith(_BOM):
        return Body(fault="line 1, column 1: it begins with a byte order mark, which is no JSON: save it without one")
    try:
        value: object = msgspec.json.decode(data)
    except RecursionError:
        return Body(fault="it is nested too deep to be read: flatten it")
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return Body(fault=_fault(data, error))
    # A name that ends so is read as JSON, whatever it begins with.
    return Body(value=value, repeated=parse(data, name="body.json").duplicates)


def _fault(data: bytes, error: Exception) -> str:
    """Return where text is no JSON, and why. The words are the reader's own, and no value is among them."""
    try:
        data.decode()
    except UnicodeDecodeError as wrong:
        return f"{_place(data, wrong.start)}: it is no UTF-8: save it as UTF-8"
    found = _BYTE.fullmatch(str(error))
    if found:
        return f"{_place(data, int(found['at']))}: it is no JSON ({found['what']}): correct it"
    if "truncated" in str(error):
        return f"{_place(data, len(data.rstrip()))}: it ends before it is complete: give the whole of it"
    return "it is no JSON, or holds a number that no JSON reader takes: correct it"


def _place(data: bytes, at: int) -> str:
    lines = data[:at].split(b"\n")
    return f"line {len(lines):,}, column {len(lines[-1].decode('utf-8', 'replace')) + 1:,}"
