"""Verify a bundle of evidence, with nothing but the standard library of Python 3.8 or newer.

Recomputes the digest of every file and of every payload, every link between records and between sessions, every
session's end, and with the key every seal. Changes nothing, asks no network, runs nothing that the bundle holds.

Exit status: 0 nothing is wrong, 1 something is, 2 this is no bundle, or it or the key cannot be read.
"""

from __future__ import annotations

import argparse
import base64
import binascii
import hashlib
import hmac
import json
import re
import sys
import zipfile
import zlib
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any, TypeGuard

    Row = dict[str, Any]  # of JSON: `has` looks at it before anybody else does

__all__ = (
    "Bundle",
    "Check",
    "NotABundleError",
    "Number",
    "canonical",
    "counts",
    "digest",
    "has",
    "is_list",
    "is_object",
    "main",
    "parsed",
    "raw",
    "same",
    "sealed",
    "shown",
    "told",
)

FORM = 1
MANIFEST, SEAL, HEADS, RECORDS, REGISTRY = "manifest.json", "seal.txt", "heads.jsonl", "records.jsonl", "registry.json"
NAME = re.compile(r"[\w.-]+")
SEALED = re.compile(rb"sha256 ([0-9a-f]{64})\nhmac-sha256 ([0-9a-f]{64}|-)\n")
SALT = re.compile(r"[0-9a-f]{32}")
CHUNK = 1 << 20
LISTED = 100  # problems that are shown: who has more has one cause for them all

KEYED = """\
With the key, which only the operator has, this shows that nothing in the bundle was changed, removed, reordered or
added without it. Whoever has the key can make all of it anew.
Not shown: older copies of heads and registry that were put back in the store before the bundle was made. Compare with
heads that were kept elsewhere: theodolite store verify --heads.
"""
UNKEYED = """\
Without the key this shows that nothing was changed, removed, reordered or added by chance, or by somebody who did not
make the rest of it fit.
Not shown: a store or a bundle that was computed anew after a change; a cut tail or a removed session with heads that
were made to fit; payloads erased by another hand. Give --key-file, or compare the digest of the bundle with the one
that the operator told you by another way.
"""


class Number(str):
    """A number with a fraction or an exponent, as it is written: the writing is what was hashed."""

    __slots__ = ()


HEAD = {"session": (str,), "position": (int,), "link": (str,), "n": (int,), "hash": (str,), "seal": (str,)}
ENDS = {"count": (int,), "link": (str,), "seal": (str,)}
RECORD = {
    "session": (str,),
    "n": (int,),
    "at": (Number,),
    "kind": (str,),
    "codes": (list,),
    "payload": (str, dict, type(None)),
    "salt": (str, type(None)),
    "digest": (str,),
    "previous": (str,),
    "hash": (str,),
}


class NotABundleError(Exception):
    """What was named is no bundle, or cannot be read."""


def canonical(value: object) -> str:
    """Return a value in the one form of JSON that is hashed."""
    if isinstance(value, Number):
        return value
    if is_list(value):
        return "[" + ",".join([canonical(item) for item in value]) + "]"
    if is_object(value):
        return "{" + ",".join([f"{canonical(name)}:{canonical(item)}" for name, item in value.items()]) + "}"
    return json.dumps(value, ensure_ascii=False)


def is_list(value: object) -> TypeGuard[Sequence[object]]:
    """Tell whether a value is a list of JSON, or what becomes one."""
    return isinstance(value, (list, tuple))


def is_object(value: object) -> TypeGuard[dict[str, object]]:
    """Tell whether a value is an object of JSON."""
    return isinstance(value, dict)


def digest(*parts: object) -> str:
    """Return the SHA-256 of a list."""
    return hashlib.sha256(canonical(parts).encode()).hexdigest()


def parsed(line: bytes) -> object:
    """Return what a line of JSON says, or None where it is not in the form that is hashed."""
    try:
        text = line.decode()
        value: object = json.loads(text, parse_float=Number)
        return value if canonical(value) == text else None
    except (ValueError, RecursionError):
        return None


class Bundle:
    """The files of a bundle, in a zip file or in a folder."""

    def __init__(self, place: Path) -> None:
        self.folder = place
        self.archive: zipfile.ZipFile | None = None
        if not place.is_dir():
            try:
                self.archive = zipfile.ZipFile(str(place))
            except (OSError, zipfile.BadZipFile) as error:
                raise NotABundleError(f"{place} cannot be read as a zip file: {error}") from error
        if MANIFEST not in self.names():
            raise NotABundleError(f"{place} holds no {MANIFEST}: give the bundle, or the folder it was unpacked into")

    def names(self) -> list[str]:
        """Return the names of all files."""
        if self.archive is not None:
            return self.archive.namelist()
        return sorted([path.name for path in self.folder.iterdir() if path.is_file()])

    def _open(self, name: str) -> IO[bytes]:
        return (self.folder / name).open("rb") if self.archive is None else self.archive.open(name)

    def chunks(self, name: str) -> Iterator[bytes]:
        """Yield what a file holds, as far as it can be read: a digest tells what is missing."""
        try:
            with self._open(name) as file:
                chunk = file.read(CHUNK)
                while chunk:
                    yield chunk
                    chunk = file.read(CHUNK)
        except (KeyError, OSError, EOFError, ValueError, NotImplementedError, zipfile.BadZipFile, zlib.error):
            return

    def read(self, name: str) -> bytes:
        """Return what a file holds."""
        return b"".join(self.chunks(name))

    def lines(self, name: str) -> Iterator[bytes]:
        """Yield the lines of a file, without their ends; one that has none is given with a mark that is no JSON."""
        rest = b""
        for chunk in self.chunks(name):
            whole = (rest + chunk).split(b"\n")
            rest = whole.pop()
            yield from whole
        if rest:
            yield rest + b" without its end"


class Check:
    """What is wrong with a bundle. `run` looks at everything; `problems` says what was found."""

    def __init__(self, bundle: Bundle, key: bytes | None) -> None:
        self.bundle = bundle
        self.key = key
        self.problems: list[str] = []
        self.about: Row = {}
        self.digest = ""
        self.heads: dict[str, Row] = {}
        self.ended: set[str] = set()
        self.records = self.erased = 0
        self.last: Row | None = None
        self.gone = 0  # payloads of this session that are gone, with no erasure behind them yet

    def wrong(self, where: str, what: str) -> None:
        """Keep a problem."""
        self.problems.append(f"{where}: {what}")

    def run(self) -> None:
        """Check all there is."""
        self.files()
        self.ends()
        for number, line in enumerate(self.bundle.lines(RECORDS), 1):
            row = parsed(line)
            if has(row, RECORD):
                self.record(row)
            else:
                self.wrong(f"{RECORDS}, line {number}", "it is no record as a bundle holds them")
        self.end()
        self.complete()

    def manifest(self) -> dict[str, object]:
        """Check the manifest against its seal, and return the digests that it names."""
        manifest = self.bundle.read(MANIFEST)
        found = SEALED.fullmatch(self.bundle.read(SEAL))
        told, seal = (found[1].decode(), found[2].decode()) if found else ("", "")
        self.digest = hashlib.sha256(manifest).hexdigest()
        if told != hashlib.sha256(manifest + seal.encode()).hexdigest():
            self.wrong(MANIFEST, f"it is not the one that {SEAL} was made for")
        if self.key is not None and not same(seal, sealed(self.key, "bundle", self.digest)):
            self.wrong(MANIFEST, "it is not sealed with this key")
        about = parsed(manifest)
        files = about.get("files") if is_object(about) else None
        if not is_object(about) or not is_object(files) or about.get("bundle") != FORM:
            self.wrong(MANIFEST, f"it is no manifest of form {FORM}, which is all that this script knows")
            return {}
        self.about = about
        return files

    def files(self) -> None:
        """Check every file against the manifest."""
        files, names = self.manifest(), self.bundle.names()
        for name, told in files.items():
            if not NAME.fullmatch(name) or names.count(name) != 1:
                self.wrong(ascii(name), "the manifest names it, and it is not there, or there twice")
                continue
            hashed = hashlib.sha256()
            for chunk in self.bundle.chunks(name):
                hashed.update(chunk)
            if hashed.hexdigest() != told:
                self.wrong(name, "it is not the file that the manifest names")
        for name in sorted(set(names) - {MANIFEST, SEAL, *files}):
            # A folder gathers files of its own, which nobody reads; a zip file does not.
            if self.bundle.archive is not None:
                self.wrong(ascii(name), "the manifest does not name it")

    def ends(self) -> None:
        """Check the heads of all sessions, their chain, and the registry at its end."""
        link, count = "", 0
        for line in self.bundle.lines(HEADS):
            head = parsed(line)
            if not has(head, HEAD):
                self.wrong(f"{HEADS}, line {count + 1}", "it is no head")
                continue
            name = head["session"]
            link = digest(name, link)
            if (head["position"], head["link"]) != (count, link) or name in self.heads:
                self.wrong(shown(name), "the chain of sessions is broken here: a session before it was removed")
            link, count = head["link"], count + 1
            self.heads[name] = head
            self.seal(shown(name), head, "head", "session", "position", "link", "n", "hash")
        registry = parsed(self.bundle.read(REGISTRY))
        if not has(registry, ENDS):
            self.wrong(REGISTRY, "the registry of sessions is gone")
            return
        if (registry["count"], registry["link"]) != (count, link):
            self.wrong(REGISTRY, f"it counts {registry['count']} sessions, and does not end with the last of {count}")
        self.seal(REGISTRY, registry, "registry", "count", "link")

    def seal(self, where: str, row: Row, kind: str, *names: str) -> None:
        """Check the seal of a head or of the registry, where there is a key."""
        if self.key is not None and not same(row["seal"], sealed(self.key, kind, *[row[name] for name in names])):
            self.wrong(where, "it is not sealed with this key")

    def record(self, row: Row) -> None:
        """Check one record against the one before it."""
        session, n = row["session"], row["n"]
        if self.last is None or self.last["session"] != session:
            self.end()
            if session in self.ended:
                self.wrong(shown(session), "its records stand in two places")
            self.last = None
        before, self.last = self.last, row
        self.records += 1
        where = f"{shown(session)}, record {n}"
        expected = (0, "") if before is None else (before["n"] + 1, before["hash"])
        if (n, row["previous"]) != expected:
            self.wrong(where, f"record {expected[0]} was expected here: removed, reordered or added")
        names = ("session", "n", "at", "kind", "codes", "digest", "previous")
        if digest(*[row[name] for name in names]) != row["hash"]:
            self.wrong(where, "the record was changed")
        self.payload(where, row)

    def payload(self, where: str, row: Row) -> None:
        """Check the payload of a record, and what an erasure says of those before it."""
        payload, salt = row["payload"], row["salt"]
        if payload is None and salt is None:
            self.erased += 1
            self.gone += 1
        elif payload is None or salt is None:
            self.wrong(where, "its salt is gone and its payload is not, or the other way round: no erasure leaves that")
        elif (
            not SALT.fullmatch(salt) or hashlib.sha256(bytes.fromhex(salt) + raw(payload)).hexdigest() != row["digest"]
        ):
            self.wrong(where, "the payload was changed")
        if row["kind"] == "erasure" and payload is not None:
            if not counts(raw(payload), self.gone, row["n"] - 1):
                self.wrong(where, f"of the payloads before it {self.gone} more are gone: its erasure says otherwise")
            self.gone = 0

    def end(self) -> None:
        """Check the end of the session that was read last."""
        if self.last is None:
            return
        session = self.last["session"]
        self.ended.add(session)
        if self.gone:
            self.wrong(shown(session), f"{self.gone} payloads are gone without an erasure behind them")
            self.gone = 0
        head = self.heads.get(session)
        if head is None:
            self.wrong(shown(session), "it has records but no head: its head was removed, or it was added")
        elif (head["n"], head["hash"]) != (self.last["n"], self.last["hash"]):
            self.wrong(shown(session), f"its head is record {head['n']}: the tail was cut or rewritten")

    def complete(self) -> None:
        """Check that every session is there that the bundle says it holds."""
        named = self.about.get("sessions")
        wanted = {str(name) for name in named} if is_list(named) else set(self.heads)
        for session in sorted(wanted ^ self.ended):
            self.wrong(shown(session), "its records were removed, or the manifest does not name it")
        if self.about and self.about.get("records") != self.records:
            self.wrong(MANIFEST, f"it counts {self.about.get('records')} records, and there are {self.records}")


def has(row: object, fields: Mapping[str, Sequence[type]]) -> TypeGuard[Row]:
    """Tell whether a row of JSON has these fields, in this order and of these types, and no others."""
    if not is_object(row) or list(row) != list(fields):
        return False
    return all(type(row[name]) in kinds for name, kinds in fields.items())


def raw(payload: object) -> bytes:
    """Return the bytes of a payload: its text, or what stands in base64 where it is none."""
    if isinstance(payload, str):
        return payload.encode()
    if is_object(payload) and list(payload) == ["base64"]:
        try:
            return base64.b64decode(str(payload["base64"]), validate=True)
        except (ValueError, binascii.Error):
            return b""
    return b""


def counts(payload: bytes, payloads: int, through: int) -> bool:
    """Tell whether the payload of an erasure says that it took so many, and why, and nothing else."""
    said = parsed(payload)
    if not is_object(said):
        return False
    wanted: list[tuple[str, object]] = [("payloads", payloads), ("through", through)]
    if isinstance(said.get("reason"), str) and said["reason"]:
        wanted.append(("reason", said["reason"]))
    return list(said.items()) == wanted


def sealed(key: bytes, *parts: object) -> str:
    """Return the HMAC-SHA256 of a list under the operator's key."""
    return hmac.new(key, canonical(parts).encode(), hashlib.sha256).hexdigest()


def same(one: str, other: str) -> bool:
    """Tell whether two seals are alike, in a time that does not tell where they differ."""
    return hmac.compare_digest(one.encode(), other.encode())


def shown(session: str) -> str:
    """Return the name of a session so that no terminal obeys it."""
    return f"session {session!a}"


def told(check: Check) -> Iterator[str]:
    """Yield, line by line, what was checked, what is wrong, and what that proves."""
    many = len(check.problems)
    state = "intact" if not many else f"{many} problem{'s' * (many != 1)}"
    yield f"{check.bundle.folder}: {state}"
    yield f"  {len(check.ended)} sessions, {check.records} records, the payloads of {check.erased} of them erased"
    left = len(check.heads) - len(check.ended)
    if left > 0:
        yield f"  {left} more sessions are known by their heads alone: their records are not in this bundle"
    yield f"  seals: {'not checked, since no key was given' if check.key is None else 'checked with the key'}"
    yield f"  digest of the bundle: {check.digest}"
    for problem in check.problems[:LISTED]:
        yield f"  {problem}"
    if many > LISTED:
        yield f"  ... and {many - LISTED} more"
    yield ""
    yield from (UNKEYED if check.key is None else KEYED).splitlines()


def main(arguments: Sequence[str] | None = None) -> int:
    """Verify the bundle that the command line names, and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    beside = Path(__file__).parent
    parser.add_argument("bundle", nargs="?", type=Path, default=beside, help="zip file or folder; default: this folder")
    parser.add_argument("--key-file", type=Path, help="the operator's key: checks the seals too")
    given = parser.parse_args(arguments)
    try:
        key = given.key_file.read_bytes().strip() if given.key_file is not None else None
        check = Check(Bundle(given.bundle), key)
        check.run()
    except (OSError, NotABundleError) as error:
        sys.stderr.write(f"error: {str(error)!a}\n")
        return 2
    sys.stdout.write("".join([f"{line}\n" for line in told(check)]).encode("ascii", "backslashreplace").decode())
    return 1 if check.problems else 0


if __name__ == "__main__":
    sys.exit(main())
