"""What a store holds, written out: as JSON lines, or as the bundle that an auditor is given."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from theodolite.cli.counting import counting
from theodolite.cli.exits import FINDING, NOTHING, say
from theodolite.cli.moments import first_moment, last_moment
from theodolite.cli.newfile import new_file
from theodolite.config.settings import read_settings
from theodolite.config.wiring import store_key
from theodolite.core.errors import CalibrationError, ConfigError
from theodolite.core.redaction import Profile
from theodolite.core.store import ReadableStore, Record
from theodolite.reports.escaping import ascii_json, inert
from theodolite.reports.layout import counted
from theodolite.stores.bundle import write_bundle
from theodolite.stores.sqlite import ReadOnlySQLiteStore

__all__ = ("Export", "export_records")

_ENCODER = msgspec.json.Encoder()


class Export(Struct, frozen=True, kw_only=True):
    """What was asked for: the arguments of `store export`."""

    file: Path
    output: Path | None = None
    bundle: Path | None = None
    sessions: tuple[str, ...] = ()
    since: str = ""
    until: str = ""
    unseal: bool = False
    key_file: Path | None = None
    calibration: Path | None = None
    config: Path | None = None


def export_records(request: Export) -> int:
    """Write what was asked for, and return the exit status. Raises ConfigError and StoreError."""
    _check(request)
    key = store_key(request.file, request.key_file) if request.bundle or request.unseal else None
    with ReadOnlySQLiteStore(request.file) as evidence, evidence.still() as still:
        ends = {head.session: head.n + 1 for head in still.heads()}
        for session in request.sessions:
            if session not in ends:
                raise ConfigError(f"{request.file} holds no session {session!r}; `theodolite store heads` lists them")
        total = sum(ends[session] for session in request.sessions or ends)
        watch = partial(counting, what="records", total=total)
        if request.bundle is not None:
            if key is None and any(head.seal for head in still.heads()):
                say("warning: the store is sealed with a key, and the bundle is not: give --key-file to seal it too")
            return _bundle(request, request.bundle, still, key, watch)
        if request.unseal and key is None:
            raise ConfigError("--unseal needs --key-file: the key that sealed the payloads")
        payload = _opener(key) if request.unseal and key is not None else _kept
        with _output(request.output) as stream:
            stream.writelines(_line(record, payload(record)) for record in watch(_wanted(request, still)))
    return NOTHING


def _check(request: Export) -> None:
    if request.key_file is not None and not (request.unseal or request.bundle):
        raise ConfigError("--key-file is for --bundle and for --unseal: give one of them, or leave it out")
    if request.bundle is None:
        if request.calibration or request.config:
            raise ConfigError(
                "--calibration and --config say what goes into a bundle: give --bundle, or leave them out"
            )
        return
    if request.output:
        raise ConfigError("--output and --bundle are two things: export once with each")
    if request.since or request.until:
        raise ConfigError("a bundle holds whole sessions, since a chain with gaps proves nothing: give --session")
    if request.unseal:
        raise ConfigError("a bundle holds what was kept, since digests are over that: leave --unseal out")


def _wanted(request: Export, store: ReadableStore) -> Iterator[Record]:
    since = first_moment(request.since) if request.since else None
    until = last_moment(request.until) if request.until else None
    for session in request.sessions or (None,):
        yield from store.read(session=session, since=since, until=until)


@contextmanager
def _output(path: Path | None) -> Generator[BinaryIO]:
    if path is not None:
        with new_file(path) as stream:
            yield stream
        return
    sys.stdout.flush()
    yield sys.stdout.buffer
    sys.stdout.buffer.flush()


def _kept(record: Record) -> Raw | None:
    return record.payload


def _opener(key: bytes) -> Callable[[Record], Raw | None]:
    from theodolite.stores.sealing import Sealer  # noqa: PLC0415 - only those who unseal need the extra

    return Sealer(key).opened


def _line(record: Record, payload: Raw | None) -> bytes:
    return ascii_json(_ENCODER.encode(replace(record, payload=None if payload is None else _json(payload)))) + b"\n"


def _json(payload: Raw) -> Raw:
    """Return a payload on one line; in base64 what is no JSON, and so none of ours."""
    content = bytes(payload)
    try:
        content.decode()
        return Raw(msgspec.json.format(content, indent=-1))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Raw(_ENCODER.encode({"base64": content}))


def _bundle(
    request: Export,
    path: Path,
    still: ReadableStore,
    key: bytes | None,
    watch: Callable[[Iterable[Record]], Iterator[Record]],
) -> int:
    settings = read_settings(request.config)
    fitted = settings.calibration and Path(settings.folder, settings.calibration)
    about = {
        "theodolite": version("theodolite"),
        "python": platform.python_version(),
        "profile": settings.store.profile.value,
        "redactor": settings.redactor,
    }
    with new_file(path) as stream:
        found = write_bundle(
            still,
            stream,
            about=about,
            key=key,
            sessions=request.sessions or None,
            calibration=_calibration(request.calibration or fitted or None),
            opened=_opener(key) if key is not None and settings.store.profile is Profile.ENCRYPTED else _kept,
            watch=watch,
        )
    for problem in found.problems[:1]:
        more = f", and {counted(len(found.problems) - 1, 'more problem')}" * (len(found.problems) > 1)
        what = f"session {inert(problem.session)}: {problem.what}" if problem.session else problem.what
        say(f"warning: the store is not intact, and the bundle shows it: {what}{more}; run `theodolite store verify`")
    return NOTHING if found.intact else FINDING


def _calibration(path: Path | None) -> bytes | None:
    try:
        return None if path is None else path.read_bytes()
    except OSError as error:
        raise CalibrationError(f"the calibration {path} cannot be read: {error.strerror}; check the path") from error
