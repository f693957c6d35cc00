"""From a store to a bundle."""

from __future__ import annotations

import hashlib
import hmac
import operator
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Final

import msgspec
from msgspec import Raw, Struct

from theodolite.core.errors import StoreError
from theodolite.core.store import Head, Indexed, Problem, ReadableStore, Record, Registry, Verification, verify

__all__ = ("write_bundle",)

_ENCODER: Final = msgspec.json.Encoder()
_FORM: Final = 1
_HERE: Final = Path(__file__).parent

# What the dates in a zip file can say: APPNOTE.TXT of PKWARE, section 4.4.6, counts years from 1980 in seven bits.
_EARLIEST, _LATEST = datetime(1980, 1, 1, tzinfo=UTC).timestamp(), datetime(2107, 12, 31, tzinfo=UTC).timestamp()

# A file that its owner alone may write: what unpacks the zip file on POSIX makes of it.
_MODE: Final = 0o100644 << 16

_Watch = Callable[[Iterable[Record]], Iterable[Record]]


class _Line(Struct, frozen=True, gc=False):
    session: str
    n: int
    at: float
    kind: str
    codes: tuple[str, ...]
    payload: str | dict[str, bytes] | None
    salt: str | None
    digest: str
    previous: str
    hash: str


class _Said(Struct, frozen=True, gc=False):
    detector: str = ""
    version: str = ""


class _Signal(Struct, frozen=True, gc=False):
    said: _Said = _Said()
    calibration: str | None = None


class _Decision(Struct, frozen=True, gc=False):
    signals: tuple[_Signal, ...] = ()


class _Kept(Struct, frozen=True, gc=False):
    decision: _Decision = _Decision()


class _Manifest(Struct, frozen=True, kw_only=True):
    bundle: int
    date: str
    records: int
    sessions: tuple[str, ...] | None
    about: Mapping[str, str]
    detectors: Mapping[str, tuple[str, ...]]
    calibrations: tuple[str, ...]
    files: Mapping[str, str]
    sizes: Mapping[str, int]


def write_bundle(  # noqa: PLR0913 - what goes into it, by name
    store: ReadableStore,
    stream: BinaryIO,
    *,
    about: Mapping[str, str],
    key: bytes | None = None,
    sessions: Collection[str] | None = None,
    calibration: bytes | None = None,
    date: float | None = None,
    opened: Callable[[Record], Raw | None] = operator.attrgetter("payload"),
    watch: _Watch = iter,
) -> Verification:
    """Write a store's records as a bundle, and return what a verification of the store found.

    Nothing may be written to the store meanwhile: give what `still` gives of one. With `sessions` the records of those
    alone are in it, and the heads of all, which hold the others' names. `about` is what the manifest says of how the
    records came to be: versions, profile, redactor. `key` seals the manifest, and checks the heads. `date` (seconds
    since the epoch) is that of all files in the zip file, the newest record's otherwise, so that one store gives the
    same bytes each time, on one installation. `opened` gives the payload of a record, where a store seals
    it, to see who spoke; the bundle holds it sealed. `watch` is put around the records that are written.

    Reads the store twice, holding a record at a time. A store that is not intact is bundled all the same: what is wrong
    with it is evidence too. Raises StoreError where the store cannot be read, and OSError where the stream cannot be
    written: it must be seekable.
    """
    noted = _Noting(store, None if sessions is None else frozenset(sessions), opened)
    found = verify(noted, key)
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        files = _Files(archive, noted.newest if date is None else date)
        for name in ("README.txt", "verify.py"):
            files.add(name, [(_HERE / name).read_bytes()])
        files.add("heads.jsonl", (_ENCODER.encode(head) + b"\n" for head in store.heads()))
        files.add("registry.json", [_ENCODER.encode(store.registry())])
        files.add("records.jsonl", map(_line, watch(filter(noted.wants, store.read()))))
        if calibration is not None:
            files.add("calibration.json", [calibration])
        manifest = _ENCODER.encode(noted.manifest(files, about))
        files.add("manifest.json", [manifest])
        files.add("seal.txt", [_seal(manifest, key)])
    return found


def _seal(manifest: bytes, key: bytes | None) -> bytes:
    said = _ENCODER.encode(("bundle", hashlib.sha256(manifest).hexdigest()))
    seal = b"-" if key is None else hmac.new(key, said, hashlib.sha256).hexdigest().encode()
    return b"sha256 %s\nhmac-sha256 %s\n" % (hashlib.sha256(manifest + seal).hexdigest().encode(), seal)


def _line(record: Record) -> bytes:
    line = _Line(
        session=record.session,
        n=record.n,
        at=record.at,
        kind=record.kind.value,
        codes=record.codes,
        payload=None if record.payload is None else _text(record.payload),
        salt=record.salt,
        digest=record.digest,
        previous=record.previous,
        hash=record.hash,
    )
    return _ENCODER.encode(line) + b"\n"


def _text(payload: Raw) -> str | dict[str, bytes]:
    content = bytes(payload)
    try:
        return content.decode()
    except UnicodeDecodeError:  # not what this package writes
        return {"base64": content}


class _Files:
    """The files of a zip file: dated alike, and their digests remembered."""

    def __init__(self, archive: zipfile.ZipFile, date: float) -> None:
        self._archive = archive
        self.date = datetime.fromtimestamp(min(max(date, _EARLIEST), _LATEST), UTC)
        self.digests: dict[str, str] = {}
        self.sizes: dict[str, int] = {}

    def add(self, name: str, pieces: Iterable[bytes]) -> None:
        entry = zipfile.ZipInfo(name, self.date.timetuple()[:6])
        entry.compress_type, entry.external_attr, entry.create_system = zipfile.ZIP_DEFLATED, _MODE, 3
        entry.create_version = entry.extract_version = zipfile.ZIP64_VERSION  # Python 3.11.3 and older forget it
        hashed, size = hashlib.sha256(), 0
        with self._archive.open(entry, "w", force_zip64=True) as file:
            for piece in pieces:
                hashed.update(piece)
                size += file.write(piece)
        self.digests[name], self.sizes[name] = hashed.hexdigest(), size


class _Noting:
    """A store that is verified, and what of its records goes into the manifest."""

    def __init__(
        self, store: ReadableStore, sessions: frozenset[str] | None, opened: Callable[[Record], Raw | None]
    ) -> None:
        self._store = store
        self._opened = opened
        self._sessions = sessions
        self._records = 0
        self._names: set[str] = set()
        self._detectors: set[tuple[str, str]] = set()
        self._calibrations: set[str] = set()
        self.newest = _EARLIEST

    def wants(self, record: Record) -> bool:
        return self._sessions is None or record.session in self._sessions

    def read(
        self,
        *,
        session: str | None = None,
        since: float | None = None,
        until: float | None = None,
        code: str | None = None,
    ) -> Iterator[Record]:
        for record in self._store.read(session=session, since=since, until=until, code=code):
            if self.wants(record):
                self._note(record)
            yield record

    def _note(self, record: Record) -> None:
        self._records += 1
        self._names.add(record.session)
        self.newest = max(self.newest, record.at)
        try:
            kept = msgspec.json.decode(self._opened(record) or b"{}", type=_Kept)
        except (StoreError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return
        for signal in kept.decision.signals:
            self._detectors.add((signal.said.detector, signal.said.version))
            if signal.calibration is not None:
                self._calibrations.add(signal.calibration)

    def head(self, session: str) -> Head | None:
        return self._store.head(session)

    def heads(self) -> Iterator[Head]:
        return self._store.heads()

    def registry(self) -> Registry | None:
        return self._store.registry()

    def strays(self) -> Iterator[Problem]:
        return self._store.strays() if isinstance(self._store, Indexed) else iter(())

    def manifest(self, files: _Files, about: Mapping[str, str]) -> _Manifest:
        detectors: dict[str, tuple[str, ...]] = {}
        for name, version in sorted(self._detectors):
            detectors[name] = (*detectors.get(name, ()), version)
        return _Manifest(
            bundle=_FORM,
            date=files.date.isoformat(),
            records=self._records,
            sessions=None if self._sessions is None else tuple(sorted(self._names)),
            about=dict(sorted(about.items())),
            detectors=detectors,
            calibrations=tuple(sorted(self._calibrations)),
            files=dict(files.digests),
            sizes=dict(files.sizes),
        )
